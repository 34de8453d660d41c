//! Consistent placement on a ring, as libmemcached and twemproxy draw it.

use super::hash::md5_points;
use super::{KeyHash, Node};

/// Places of a server on the ring of equals, one for each hash.
const PLAIN_POINTS: u32 = 100;
/// Places of a server of average weight on the weighted ring, four for each MD5.
const WEIGHTED_POINTS: f32 = 160.0;

/// A ring of places, each of one server. A key belongs to the first place at or after its own.
#[derive(Debug)]
pub struct Ketama {
    /// Places and the number of their server, in order.
    points: Vec<(u32, u32)>,
    hash: KeyHash,
}

impl Ketama {
    /// The ring of servers that are all equal: libmemcached's ketama without weights. One hash places servers and keys.
    pub fn plain(nodes: &[Node], hash: KeyHash) -> Self {
        let places = |node: &Node| -> Vec<u32> {
            (0..PLAIN_POINTS).map(|at| hash.hash(format!("{}-{at}", node.name).as_bytes())).collect()
        };
        Ketama::of(nodes.iter().map(places), hash)
    }

    /// The ring on which a server has places by its weight: libmemcached's weighted ketama, and twemproxy's. MD5 places
    /// the servers, `hash` the keys.
    pub fn weighted(nodes: &[Node], hash: KeyHash) -> Self {
        let total: f32 = nodes.iter().map(|node| u64::from(node.weight.max(1))).sum::<u64>() as f32;
        let places = |node: &Node| -> Vec<u32> {
            // In this order and precision: where it rounds down, a server has four places fewer.
            let share = node.weight.max(1) as f32 / total;
            let md5s = (share * WEIGHTED_POINTS / 4.0 * nodes.len() as f32).floor() as u32;
            (0..md5s).flat_map(|at| md5_points(format!("{}-{at}", node.name).as_bytes())).collect()
        };
        Ketama::of(nodes.iter().map(places), hash)
    }

    fn of(places: impl Iterator<Item = Vec<u32>>, hash: KeyHash) -> Self {
        let mut points: Vec<(u32, u32)> = places
            .zip(0..)
            .flat_map(|(places, at)| places.into_iter().map(move |place| (place, at)))
            .collect();
        points.sort_unstable();
        Ketama { points, hash }
    }

    /// Returns the server of the first place at or after the key's own whose server is live.
    pub fn pick(&self, key: &[u8], is_live: impl Fn(usize) -> bool) -> Option<usize> {
        let hash = self.hash.hash(key);
        let first = self.points.partition_point(|(place, _)| *place < hash);
        let (before, after) = self.points.split_at_checked(first)?;
        let mut servers = after.iter().chain(before).map(|(_, server)| *server as usize);
        servers.find(|server| is_live(*server))
    }
}
