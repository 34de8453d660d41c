//! What to do about bytes that are no reply: which server or protocol they look like.

/// Beginnings of foreign replies, and what to do about each.
const SIGNS: &[(&[u8], &str)] = &[
    (b"ERROR Too many open connections", LIMIT_MEMCACHED),
    (b"-ERR max number of clients", LIMIT_REDIS),
    (b"-NOAUTH", "the server wants a password"),
    (b"-WRONGPASS", "the server refuses the password"),
    (b"HTTP/", "this is a web server: name the port of the cache (-p)"),
    (b"\x15\x03", "this looks like TLS: add --tls"),
    (b"\x81", "this looks like memcached's binary protocol: -P binary"),
    (b"-", "this looks like redis: -P resp2"),
    (b"*", "this looks like redis: -P resp2"),
    (b"$", "this looks like redis: -P resp2"),
    (b"+", "this looks like redis: -P resp2"),
    (b":", "this looks like redis: -P resp2"),
    (b"ERROR", "this looks like memcached: -P text"),
    (b"VERSION ", "this looks like memcached: -P text"),
];

const LIMIT_MEMCACHED: &str = "use fewer connections (-c), or start the server with more (memcached: -c)";
const LIMIT_REDIS: &str = "use fewer connections (-c), or allow the server more (redis: maxclients)";

/// Returns what to do about bytes that are no reply to the request before them; none if they look like nothing known.
pub(super) fn of(input: &[u8]) -> Option<&'static str> {
    SIGNS.iter().find(|(sign, _)| input.starts_with(sign)).map(|(_, hint)| *hint)
}

/// Whether a reply refuses the whole connection: the server has as many as it takes.
pub(super) fn is_limit(input: &[u8]) -> bool {
    matches!(of(input), Some(LIMIT_MEMCACHED | LIMIT_REDIS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_replies_say_what_to_do() {
        for (input, hint) in [
            (&b"-ERR unknown command 'get'\r\n"[..], "-P resp2"),
            (b"-ERR max number of clients reached\r\n", "maxclients"),
            (b"ERROR Too many open connections\r\n", "(-c)"),
            (b"ERROR\r\n", "-P text"),
            (b"\x81\x00\x00\x00", "-P binary"),
            (b"\x15\x03\x01\x00\x02\x02\x46", "--tls"),
            (b"HTTP/1.1 400 Bad Request\r\n", "web server"),
        ] {
            assert!(of(input).is_some_and(|said| said.contains(hint)), "{}", input.escape_ascii());
        }
        assert_eq!(of(b"HELLO THERE\r\n"), None);
        assert!(is_limit(b"ERROR Too many open connections") && !is_limit(b"ERROR"));
    }
}
