//! The sweep of the index: clears entries whose segment was opened again, before the four bits of the
//! generation in an entry can repeat. How often a segment may be opened between two sweeps is `ssd::openings`'
//! business.

use super::Store;

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
        let buckets: u64 = self.indexes.iter().map(|index| u64::from(index.count())).sum();
        let openings = u64::from(log.table.openings().wrapping_sub(sweep.openings));
        let by_turns = openings * buckets.div_ceil(segments * SWEEP_TURNS);
        let by_most = u64::from(log.most_openings()) * buckets.div_ceil(SWEEP_OPENINGS);
        let mut due = by_turns.max(by_most.min(openings * OPENING_BUCKETS_MAX));
        if log.is_sweep_wanted() {
            due = due.max(sweep.visited + WANTED_BUCKETS);
        }
        // The number of buckets changes meanwhile: it is over when every shard has had its turn.
        while sweep.shard < self.layout.shards && (sweep.visited < due || due >= buckets) {
            self.sweep_some(&mut sweep);
        }
        if sweep.shard == self.layout.shards {
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
        let (visited, next) = self.change(sweep.shard).sweep(&self.tiers, sweep.bucket, HOLD_BUCKETS);
        sweep.visited += u64::from(visited);
        (sweep.shard, sweep.bucket) = match next {
            Some(bucket) => (sweep.shard, bucket),
            None => (sweep.shard + 1, 0),
        };
    }
}
