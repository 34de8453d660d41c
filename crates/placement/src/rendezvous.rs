//! Rendezvous placement: each server scores each key, and the highest score has it.

use super::{Node, murmur3_32};

/// Scores with murmur3 of `name-key`, as pymemcache does.
///
/// pymemcache hashes the characters of a `str`, of each the low byte; so a key that is UTF-8 is read as characters
/// here. (A `bytes` key it hashes as Python would print it, `b'...'`; that is not followed.)
#[derive(Debug)]
pub struct Rendezvous {
    /// `name-`, as hashed, with the name for ties.
    nodes: Vec<(Vec<u8>, String)>,
}

impl Rendezvous {
    /// Makes the placement over `nodes`.
    pub fn new(nodes: &[Node]) -> Self {
        let node = |node: &Node| (low_bytes(&format!("{}-", node.name)), node.name.clone());
        Rendezvous { nodes: nodes.iter().map(node).collect() }
    }

    /// Returns the live node with the highest score; of two with the same, the one whose name is greater.
    pub fn pick(&self, key: &[u8], is_live: impl Fn(usize) -> bool) -> Option<usize> {
        let decoded = if key.is_ascii() { None } else { std::str::from_utf8(key).ok().map(low_bytes) };
        let key = decoded.as_deref().unwrap_or(key);
        let mut hashed = Vec::with_capacity(320);
        let scores =
            self.nodes.iter().enumerate().filter(|(at, _)| is_live(*at)).map(|(at, (prefix, name))| {
                hashed.clear();
                hashed.extend_from_slice(prefix);
                hashed.extend_from_slice(key);
                ((murmur3_32(&hashed, 0), name), at)
            });
        scores.max_by(|(one, _), (other, _)| one.cmp(other)).map(|(_, at)| at)
    }
}

/// The low byte of each character: what pymemcache hashes.
fn low_bytes(text: &str) -> Vec<u8> {
    text.chars().map(|character| character as u32 as u8).collect()
}
