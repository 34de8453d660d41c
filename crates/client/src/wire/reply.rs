//! Replies: one line at the front of the input, checked and bounded. The bytes of a value follow it and are the
//! caller's to read.

use memchr::memchr;
use thiserror::Error;

/// The longest line a server may send, its end included. memcached's own are far shorter.
pub const LINE_BYTES_MAX: usize = 4096;

/// What a reply can tell about an item. Facts that were not asked for are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The cas unique.
    pub cas: Option<u64>,
    /// The client flags.
    pub flags: Option<u32>,
    /// Seconds left to live; -1 for ever.
    pub ttl_s: Option<i64>,
    /// What could still pass a limit.
    pub remaining: Option<u64>,
    /// Milliseconds until a denied cost passes; 0 if it has passed, -1 if it never can.
    pub retry_after_ms: Option<i64>,
    /// Milliseconds until all of a limit is available again.
    pub reset_after_ms: Option<u64>,
    /// The number that the request carried.
    pub opaque: Option<u32>,
    /// The item was marked stale (`X`).
    pub is_stale: bool,
    /// The asker has the lease to renew the item (`W`).
    pub has_lease: bool,
    /// Another client has that lease (`Z`).
    pub lease_is_taken: bool,
    /// The next change of the key will be announced (`A`).
    pub is_announced: bool,
}

/// One reply line. Of the text of a line, what is no UTF-8 is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// `VA`: that many bytes of value and CR LF follow.
    Value {
        /// The value's length in bytes, as the server says.
        len: usize,
        /// About the item.
        facts: Facts,
    },
    /// `HD`: done, or found without its value.
    Done(Facts),
    /// `EN`: a miss.
    Miss(Facts),
    /// `NS`: not stored.
    NotStored(Facts),
    /// `EX`: the item has another cas unique.
    Exists(Facts),
    /// `NF`: there is no such item.
    NotFound(Facts),
    /// `MN`.
    Noop,
    /// `MI`: the number of the connection's subscription.
    Subscribed(u64),
    /// `IN`: the keys that were announced by these numbers have changed.
    Changed(Vec<u64>),
    /// `IN *`: every key may have changed.
    AllChanged,
    /// `ME`: the item's metadata, as the line has it after the key.
    Debug(String),
    /// `OK`.
    Ok,
    /// `VERSION`.
    Version(String),
    /// `STAT`: a name and its value.
    Stat(String, String),
    /// `END` of statistics.
    End,
    /// `RESET`, of `stats reset`.
    Reset,
    /// `ERROR`, `CLIENT_ERROR` or `SERVER_ERROR`: the whole line.
    Refused(String),
}

/// What no memcached server sends. The connection is of no more use, since what follows cannot be told apart.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// A line does not end within [`LINE_BYTES_MAX`].
    #[error("a line of more than {LINE_BYTES_MAX} bytes")]
    LineTooLong,
    /// A line that begins with no known word.
    #[error("an unknown reply: {0:?}")]
    Unknown(String),
    /// A number that is none, or out of range.
    #[error("a number that is none in {0:?}")]
    Number(String),
    /// A value is not followed by CR LF.
    #[error("a value that does not end where its head said")]
    ValueEnd,
    /// A value larger than the client accepts.
    #[error("a value of {len} bytes, more than the {max} that this client accepts")]
    ValueTooLarge {
        /// What the server announced.
        len: usize,
        /// The accepted form.
        max: usize,
    },
    /// More bytes or lines than one request may bring.
    #[error("more than {max} {unit} in reply to one call")]
    TooMuch {
        /// The bound.
        max: usize,
        /// Of what.
        unit: &'static str,
    },
    /// A reply to another request than the one whose turn it is.
    #[error("the reply to another request")]
    OutOfOrder,
    /// A reply that this request cannot have.
    #[error("a reply that does not fit the request: {0}")]
    Unfitting(String),
}

/// Parses the line at the front of `input`. Returns the reply and the line's length in bytes, or none if the line has
/// not ended.
///
/// # Errors
/// When the line is too long, or is no reply that memcached knows.
pub fn parse(input: &[u8]) -> Result<Option<(Reply, usize)>, Malformed> {
    let searched = input.get(..LINE_BYTES_MAX).unwrap_or(input);
    let Some(end) = memchr(b'\n', searched) else {
        return if input.len() < LINE_BYTES_MAX { Ok(None) } else { Err(Malformed::LineTooLong) };
    };
    let line = input.get(..end).unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    Ok(Some((reply(line)?, end + 1)))
}

fn reply(line: &[u8]) -> Result<Reply, Malformed> {
    let (word, rest) = split_word(line);
    Ok(match word {
        b"VA" => {
            let (len, flags) = split_word(rest);
            let len = number(len).and_then(|len: u64| usize::try_from(len).ok());
            let len = len.ok_or_else(|| Malformed::Number(text(line)))?;
            Reply::Value { len, facts: facts(flags, line)? }
        }
        b"HD" => Reply::Done(facts(rest, line)?),
        b"EN" => Reply::Miss(facts(rest, line)?),
        b"NS" => Reply::NotStored(facts(rest, line)?),
        b"EX" => Reply::Exists(facts(rest, line)?),
        b"NF" => Reply::NotFound(facts(rest, line)?),
        b"MN" => Reply::Noop,
        b"MI" => Reply::Subscribed(number(rest).ok_or_else(|| Malformed::Number(text(line)))?),
        b"IN" if rest == b"*" => Reply::AllChanged,
        b"IN" => {
            let numbers = rest.split(|byte| *byte == b' ').map(number).collect::<Option<Vec<u64>>>();
            Reply::Changed(numbers.ok_or_else(|| Malformed::Number(text(line)))?)
        }
        b"ME" => Reply::Debug(text(split_word(rest).1)),
        b"OK" => Reply::Ok,
        b"VERSION" => Reply::Version(text(rest)),
        b"STAT" => {
            let (name, value) = split_word(rest);
            Reply::Stat(text(name), text(value))
        }
        b"END" => Reply::End,
        b"RESET" => Reply::Reset,
        b"ERROR" | b"ERROR:" | b"CLIENT_ERROR" | b"SERVER_ERROR" | b"SERVER_ERROR:" => {
            Reply::Refused(text(line))
        }
        _ => return Err(Malformed::Unknown(text(line.get(..80).unwrap_or(line)))),
    })
}

/// Reads the flags of a reply. Unknown letters are left to later versions of memcached.
fn facts(flags: &[u8], line: &[u8]) -> Result<Facts, Malformed> {
    let mut facts = Facts::default();
    let mut rest = flags;
    while !rest.is_empty() {
        let (token, next) = split_word(rest);
        rest = next;
        let Some((letter, argument)) = token.split_first() else { continue };
        let bad = || Malformed::Number(text(line));
        match letter {
            b'c' => facts.cas = Some(number(argument).ok_or_else(bad)?),
            b'f' => facts.flags = Some(number(argument).ok_or_else(bad)?),
            b't' => facts.ttl_s = Some(number(argument).ok_or_else(bad)?),
            b'r' => facts.remaining = Some(number(argument).ok_or_else(bad)?),
            b'w' => facts.retry_after_ms = Some(number(argument).ok_or_else(bad)?),
            b'a' => facts.reset_after_ms = Some(number(argument).ok_or_else(bad)?),
            b'O' => facts.opaque = Some(number(argument).ok_or_else(bad)?),
            b'X' => facts.is_stale = true,
            b'W' => facts.has_lease = true,
            b'Z' => facts.lease_is_taken = true,
            b'A' => facts.is_announced = true,
            _ => {}
        }
    }
    Ok(facts)
}

/// Splits at the first blank; blanks after it are skipped.
fn split_word(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr(b' ', bytes).unwrap_or(bytes.len());
    let (word, rest) = bytes.split_at(end);
    let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
    (word, rest.get(blanks..).unwrap_or_default())
}

fn number<N: std::str::FromStr>(bytes: &[u8]) -> Option<N> {
    // A plus sign is no part of the wire.
    if bytes.first() == Some(&b'+') {
        return None;
    }
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Reply {
    /// Returns what the reply says about its item, if it is of a kind that does.
    pub fn facts(&self) -> Option<&Facts> {
        match self {
            Reply::Value { facts, .. }
            | Reply::Done(facts)
            | Reply::Miss(facts)
            | Reply::NotStored(facts)
            | Reply::Exists(facts)
            | Reply::NotFound(facts) => Some(facts),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &[u8]) -> Reply {
        let (reply, len) = parse(line).expect("it is well-formed").expect("it is whole");
        assert_eq!(len, line.len());
        reply
    }

    #[test]
    fn each_word_of_the_wire_is_known() {
        let facts = Facts { cas: Some(7), flags: Some(3), ttl_s: Some(-1), ..Facts::default() };
        assert_eq!(one(b"VA 5 c7 f3 t-1\r\n"), Reply::Value { len: 5, facts });
        assert_eq!(one(b"HD c7 f3 t-1\r\n"), Reply::Done(facts));
        let leases = Facts { is_stale: true, has_lease: true, lease_is_taken: true, ..Facts::default() };
        assert_eq!(one(b"HD Z X W\r\n"), Reply::Done(leases));
        assert_eq!(one(b"EN\r\n"), Reply::Miss(Facts::default()));
        let opaque = Facts { opaque: Some(12), ..Facts::default() };
        assert_eq!(one(b"NF O12\r\n"), Reply::NotFound(opaque));
        let limit = Facts {
            remaining: Some(0),
            retry_after_ms: Some(-1),
            reset_after_ms: Some(9),
            ..Facts::default()
        };
        assert_eq!(one(b"NS r0 w-1 a9\r\n"), Reply::NotStored(limit));
        assert_eq!(one(b"NS\n"), Reply::NotStored(Facts::default()));
        assert_eq!(one(b"EX c0\r\n").facts().and_then(|facts| facts.cas), Some(0));
        assert_eq!(one(b"MN\r\n"), Reply::Noop);
        assert_eq!(one(b"MI 18446744073709551615\r\n"), Reply::Subscribed(u64::MAX));
        assert_eq!(one(b"IN 5\r\n"), Reply::Changed(vec![5]));
        assert_eq!(one(b"IN 5 18446744073709551615 7\r\n"), Reply::Changed(vec![5, u64::MAX, 7]));
        assert_eq!(one(b"IN *\r\n"), Reply::AllChanged);
        assert!(one(b"HD A c7\r\n").facts().is_some_and(|facts| facts.is_announced));
        assert_eq!(one(b"ME key exp=-1 la=0\r\n"), Reply::Debug("exp=-1 la=0".into()));
        assert_eq!(one(b"OK\r\n"), Reply::Ok);
        assert_eq!(one(b"VERSION 1.6.45\r\n"), Reply::Version("1.6.45".into()));
        assert_eq!(one(b"STAT version 1.6 a b\r\n"), Reply::Stat("version".into(), "1.6 a b".into()));
        assert_eq!(one(b"END\r\n"), Reply::End);
        let refused = "SERVER_ERROR object too large for cache";
        assert_eq!(one(format!("{refused}\r\n").as_bytes()), Reply::Refused(refused.into()));
    }

    #[test]
    fn letters_of_later_versions_are_skipped() {
        assert_eq!(one(b"HD k/+= b y9 c1\r\n").facts().and_then(|facts| facts.cas), Some(1));
    }

    #[test]
    fn a_line_waits_for_its_end_and_no_longer_than_the_bound() {
        assert_eq!(parse(b""), Ok(None));
        assert_eq!(parse(b"VA 5 c7"), Ok(None));
        let line = [b'x'; LINE_BYTES_MAX];
        assert_eq!(parse(&line[..LINE_BYTES_MAX - 1]), Ok(None));
        assert_eq!(parse(&line), Err(Malformed::LineTooLong));
    }

    #[test]
    fn what_no_server_sends_is_an_error() {
        for bad in ["VA\r\n", "VA x\r\n", "VA -1\r\n", "VA +1\r\n", "VA 99999999999999999999\r\n"] {
            assert!(matches!(parse(bad.as_bytes()), Err(Malformed::Number(_))), "{bad}");
        }
        for bad in [
            "MI\r\n",
            "MI x\r\n",
            "IN\r\n",
            "IN 5 x\r\n",
            "HD c\r\n",
            "HD c-1\r\n",
            "HD f4294967296\r\n",
            "HD tx\r\n",
            "EN Oab\r\n",
        ] {
            assert!(matches!(parse(bad.as_bytes()), Err(Malformed::Number(_))), "{bad}");
        }
        for bad in ["\r\n", "HDx\r\n", "hd\r\n", "VALUE a 0 1\r\n", "\0\r\n"] {
            assert!(matches!(parse(bad.as_bytes()), Err(Malformed::Unknown(_))), "{bad}");
        }
    }
}
