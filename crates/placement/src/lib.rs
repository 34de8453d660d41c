//! Which server a key belongs to, agreeing key by key with the clients and proxies that are in use.
#![forbid(unsafe_code)]

mod hash;
mod ketama;
mod rendezvous;

pub use hash::{KeyHash, murmur3_32};
pub use ketama::Ketama;
pub use rendezvous::Rendezvous;

/// One server, as placement sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The hashed name: the address, or a name that stays when the address changes.
    pub name: String,
    /// Its share of the keys relative to the others'; at least 1. Rendezvous placement ignores it.
    pub weight: u32,
}

/// How keys are placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placement {
    /// As pymemcache's `HashClient` places `str` keys: the server whose murmur3 of `name-key` is highest.
    #[default]
    Rendezvous,
    /// As libmemcached with `MEMCACHED_BEHAVIOR_KETAMA` and this `HASH`: Django's `PyLibMCCache` and pylibmc with
    /// `ketama` have [`KeyHash::OneAtATime`]. A weight above 1 turns the weighted ring on, as there.
    Ketama(KeyHash),
    /// As libmemcached with `MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED`: php-memcached with `OPT_LIBKETAMA_COMPATIBLE`.
    KetamaWeighted,
    /// As twemproxy with `distribution: ketama` and this `hash`.
    Twemproxy(KeyHash),
}

/// Places keys on a fixed list of servers.
#[derive(Debug)]
pub struct Router {
    ring: Ring,
    hash_tag: Option<(u8, u8)>,
}

#[derive(Debug)]
enum Ring {
    Rendezvous(Rendezvous),
    Ketama(Ketama),
}

impl Router {
    /// Makes a router over `nodes`. With `hash_tag` (an opening and a closing byte), only the part of a key between
    /// the first opening byte and the next closing one decides, if it is not empty.
    pub fn new(placement: Placement, nodes: &[Node], hash_tag: Option<(u8, u8)>) -> Self {
        let ring = match placement {
            Placement::Rendezvous => Ring::Rendezvous(Rendezvous::new(nodes)),
            Placement::Ketama(hash) if nodes.iter().all(|node| node.weight <= 1) => {
                Ring::Ketama(Ketama::plain(nodes, hash))
            }
            Placement::KetamaWeighted => Ring::Ketama(Ketama::weighted(nodes, KeyHash::Md5)),
            Placement::Ketama(hash) | Placement::Twemproxy(hash) => {
                Ring::Ketama(Ketama::weighted(nodes, hash))
            }
        };
        Router { ring, hash_tag }
    }

    /// Returns the number of the server that `key` belongs to, of those that `is_live` accepts. None if it accepts
    /// none. The keys of a server that is not live go to the others; all other keys stay.
    pub fn pick(&self, key: &[u8], is_live: impl Fn(usize) -> bool) -> Option<usize> {
        let key = self.hash_tag.and_then(|tag| tagged(key, tag)).unwrap_or(key);
        match &self.ring {
            Ring::Rendezvous(ring) => ring.pick(key, is_live),
            Ring::Ketama(ring) => ring.pick(key, is_live),
        }
    }
}

/// Returns the part of a key between the bytes of a hash tag.
fn tagged(key: &[u8], (open, close): (u8, u8)) -> Option<&[u8]> {
    let start = key.iter().position(|byte| *byte == open)? + 1;
    let inside = key.get(start..)?;
    let end = inside.iter().position(|byte| *byte == close)?;
    inside.get(..end).filter(|inside| !inside.is_empty())
}

/// Returns the name that libmemcached, and twemproxy after it, hash for an address: memcached's own port is left out.
pub fn ketama_name(host: &str, port: u16) -> String {
    if port == 11211 { host.to_string() } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_tag_is_what_stands_between_the_first_pair() {
        let tag = (b'{', b'}');
        for (key, inside) in [
            ("user:{17}:name", Some("17")),
            ("{a}{b}", Some("a")),
            ("{}x", None),
            ("}{x", None),
            ("plain", None),
            ("a}b{c}d", Some("c")),
        ] {
            assert_eq!(tagged(key.as_bytes(), tag), inside.map(str::as_bytes), "{key}");
        }
        assert_eq!(tagged(b"a|b|c", (b'|', b'|')), Some(&b"b"[..]));
    }

    #[test]
    fn keys_of_one_tag_live_together() {
        let nodes: Vec<Node> = (0..7).map(|at| Node { name: format!("h{at}:1"), weight: 1 }).collect();
        for placement in
            [Placement::Rendezvous, Placement::Ketama(KeyHash::Md5), Placement::Twemproxy(KeyHash::Fnv1a64)]
        {
            let router = Router::new(placement, &nodes, Some((b'{', b'}')));
            let at = |key: &str| router.pick(key.as_bytes(), |_| true);
            assert_eq!(at("{user 1}:a"), at("{user 1}:b"));
            assert_eq!(at("{user 1}:a"), at("user 1"));
        }
    }

    #[test]
    fn keys_of_live_servers_stay_when_another_server_goes() {
        let nodes: Vec<Node> = (0..5).map(|at| Node { name: format!("h{at}:1"), weight: 1 }).collect();
        for placement in [Placement::Rendezvous, Placement::Ketama(KeyHash::Md5), Placement::KetamaWeighted] {
            let router = Router::new(placement, &nodes, None);
            let mut moved_to = [0; 5];
            for number in 0..5000 {
                let key = format!("key {number}");
                let before = router.pick(key.as_bytes(), |_| true).expect("there are servers");
                let after = router.pick(key.as_bytes(), |at| at != 3).expect("four are left");
                if before == 3 {
                    moved_to[after] += 1;
                } else {
                    assert_eq!(before, after);
                }
            }
            assert_eq!(moved_to[3], 0);
            assert!(moved_to.iter().filter(|count| **count > 50).count() == 4, "{placement:?} {moved_to:?}");
            assert_eq!(router.pick(b"key", |_| false), None);
        }
    }
}
