//! Statistics that all processes share.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::layout::{LINE, STRIPES};
use super::sys;

/// An event; its number is its word in a line.
#[derive(Clone, Copy)]
pub(super) enum Count {
    Hits,
    Misses,
    Stored,
    Refused,
    Deleted,
    Evicted,
    Moved,
    Repaired,
}

/// Counts of events since the file was made, in all processes. The counts of a killed process stay. The sums are not
/// a snapshot of one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct L1Stats {
    /// Reads that found an entry, fresh or stale.
    pub hits: u64,
    /// Reads that found none.
    pub misses: u64,
    /// Values stored.
    pub stored: u64,
    /// Values not stored, because their ticket was out of date.
    pub refused: u64,
    /// Entries deleted by a caller.
    pub deleted: u64,
    /// Entries that made room for others.
    pub evicted: u64,
    /// Entries that were copied on when their place was reused, instead of being evicted.
    pub moved: u64,
    /// Shards emptied because their memory was damaged, or because a stopped process held the lock.
    pub shards_reset: u64,
}

/// The lines of statistics: a thread counts in the line of its id, so that threads seldom share one.
#[derive(Clone, Copy)]
pub(super) struct Counts<'a>(pub(super) &'a [AtomicU64]);

impl Counts<'_> {
    #[inline]
    pub(super) fn add(self, count: Count) {
        let line = sys::thread_id() as usize % STRIPES * LINE;
        self.0[line + count as usize].fetch_add(1, Relaxed);
    }

    pub(super) fn sum(self) -> L1Stats {
        let sum = |count: Count| {
            let words = self.0.iter().skip(count as usize).step_by(LINE);
            words.fold(0u64, |sum, word| sum.wrapping_add(word.load(Relaxed)))
        };
        L1Stats {
            hits: sum(Count::Hits),
            misses: sum(Count::Misses),
            stored: sum(Count::Stored),
            refused: sum(Count::Refused),
            deleted: sum(Count::Deleted),
            evicted: sum(Count::Evicted),
            moved: sum(Count::Moved),
            shards_reset: sum(Count::Repaired),
        }
    }
}
