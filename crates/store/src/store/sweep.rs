//! The sweep of the index: clears entries whose segment was opened again, before the four bits of the
//! generation in an entry can repeat. How often a segment may be opened between two sweeps is `ssd::openings`'
//! business.

use super::Store;
use crate::index::entry::State;

/// How far the sweep is.
#[derive(Default)]
pub(super) struct Sweep {
    shard: u32,
    bucket: u32,
    /// Buckets that this sweep has visited.
    visited: u64,
    /// Openings of SSD segments when this sweep began.
    openings: u32,
}

impl Sweep {
    /// Returns a sweep that begins when `openings` segments have been opened.
    pub(super) fn begin(openings: u32) -> Sweep {
        Sweep { openings, ..Sweep::default() }
    }
}

/// Buckets swept under one hold of a shard's lock.
const HOLD_BUCKETS: u32 = 256;
/// A sweep takes so many turns of the SSD.
const SWEEP_TURNS: u64 = 4;
/// A sweep is over when a segment was opened so often.
const SWEEP_OPENINGS: u64 = 6;
/// Buckets an opening may have swept on behalf of one segment that is opened more often than others; writing a
/// segment takes longer.
const OPENING_BUCKETS_MAX: u64 = 64 << 10;
/// Buckets swept at once when no segment can be opened before a sweep has ended.
const WANTED_BUCKETS: u64 = 1 << 20;

impl Store {
    /// Sweeps as much of the index as the segments that were opened ask for.
    pub(super) fn sweep(&self) {
        let Ok(mut sweep) = self.swept.try_lock() else {
            return;
        };
        let log = &self.tiers.log;
        let segments = u64::from(self.layout.ssd_segments);
        if segments == 0 {
            return;
        }
        let buckets = u64::from(self.layout.shards) * u64::from(self.layout.buckets_per_shard);
        let openings = u64::from(log.table.openings().wrapping_sub(sweep.openings));
        let by_turns = openings * buckets.div_ceil(segments * SWEEP_TURNS);
        let by_most = u64::from(log.most_openings()) * buckets.div_ceil(SWEEP_OPENINGS);
        let mut due = by_turns.max(by_most.min(openings * OPENING_BUCKETS_MAX));
        if log.is_sweep_wanted() {
            due = due.max(sweep.visited + WANTED_BUCKETS);
        }
        let due = due.min(buckets);
        while sweep.visited < due {
            self.sweep_some(&mut sweep);
        }
        if sweep.visited >= buckets {
            *sweep = Sweep::begin(log.table.openings());
            log.begin_sweep();
        }
    }

    /// Sweeps on if no segment can be opened before that.
    pub(super) fn sweep_if_wanted(&self) {
        if self.tiers.log.is_sweep_wanted() {
            self.sweep();
        }
    }

    fn sweep_some(&self, sweep: &mut Sweep) {
        let mut shard = self.change(sweep.shard);
        let end = (sweep.bucket + HOLD_BUCKETS).min(self.layout.buckets_per_shard);
        for bucket in sweep.bucket..end {
            shard.sweep(bucket, |entry| {
                entry.state() == State::Ssd
                    && self.tiers.log.table.current_generation(entry.ssd_place()).is_none()
            });
        }
        sweep.visited += u64::from(end - sweep.bucket);
        sweep.bucket = end;
        if end == self.layout.buckets_per_shard {
            sweep.bucket = 0;
            sweep.shard = (sweep.shard + 1) % self.layout.shards;
        }
    }
}
