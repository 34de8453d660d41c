//! Sends what requests of a shard on sampled keys do.

use super::Shard;
use crate::clock::Seconds;
use crate::index::hash::KeyHash;
use crate::sample::{Op, Sampler};

impl Shard {
    /// Returns what sends sampled requests, to change.
    pub(crate) fn sampler(&mut self) -> &mut Sampler {
        &mut self.sampler
    }

    /// Sends a request, if its key is sampled: `bytes` and `expires` are those of the item's record.
    #[inline]
    pub(crate) fn sample(&mut self, op: Op, hash: KeyHash, bytes: usize, expires: u32, now: Seconds) {
        if self.sampler.wants(hash) {
            self.sampler.send(op, hash, bytes as u32, expires, now);
        }
    }
}
