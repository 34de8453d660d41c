//! Sends what requests of a shard on sampled keys do.

use super::Shard;
use crate::sample::{Op, Request, Sampler};

impl Shard {
    /// Returns what sends sampled requests, to change.
    pub(crate) fn sampler(&mut self) -> &mut Sampler {
        &mut self.sampler
    }

    /// Sends a request, if its key is sampled: `bytes` and `expires` are those of the item's record.
    #[inline]
    pub(crate) fn sample(&mut self, op: Op, request: Request<'_>, bytes: usize, expires: u32) {
        if self.sampler.wants(request.hash) {
            self.sampler.send(op, request, bytes as u32, expires);
        }
    }
}
