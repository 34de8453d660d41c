//! Statistics that all processes share: how events are counted, and the counts as a caller reads them.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::layout::LINE;

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

/// Counts of events, in calls, values, entries or shards. They never decrease. Read while others count, they are not a
/// snapshot of one instant.
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
    /// Entries that made room for others before their time was over. Each is followed by one miss at most, so
    /// `evicted / (hits + misses)` is the most by which the share of hits would rise in a larger file.
    pub evicted: u64,
    /// Entries that were copied on when their place was reused, instead of being evicted.
    pub moved: u64,
    /// Shards emptied because their memory was damaged, or because a stopped process held the lock.
    pub shards_reset: u64,
}

/// What one process has counted since it first used the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct L1Process {
    /// Its id in its own PID namespace. Where containers share a cache, several processes may have the same one.
    pub pid: u32,
    /// Its counts.
    pub stats: L1Stats,
}

/// The counts of all processes, apart. Those of `living` and `others` together are [`L1Stats`] of all processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct L1Processes {
    /// Processes that live, have used the file and have a row in it, by their ids.
    pub living: Vec<L1Process>,
    /// The counts of all others: of processes that have ended, of those beyond the number of rows, and what the first
    /// calls of a process counted while another of its threads took its row.
    pub others: L1Stats,
}

/// The counts of a line.
#[derive(Clone, Copy, Default)]
pub(super) struct Counted([u64; LINE]);

impl Counted {
    /// Adds up lines of counts.
    pub(super) fn in_lines(lines: &[AtomicU64]) -> Counted {
        let mut sum = Counted::default();
        for line in lines.chunks(LINE) {
            sum.0.iter_mut().zip(line).for_each(|(sum, word)| *sum = sum.wrapping_add(word.load(Relaxed)));
        }
        sum
    }

    pub(super) fn plus(self, other: Counted) -> Counted {
        Counted(std::array::from_fn(|at| self.0[at].wrapping_add(other.0[at])))
    }

    /// Wraps where the memory is damaged.
    pub(super) fn minus(self, other: Counted) -> Counted {
        Counted(std::array::from_fn(|at| self.0[at].wrapping_sub(other.0[at])))
    }

    /// Returns the words of a line with these counts.
    pub(super) fn words(self) -> [u64; LINE] {
        self.0
    }

    pub(super) fn stats(self) -> L1Stats {
        let count = |count: Count| self.0[count as usize];
        L1Stats {
            hits: count(Count::Hits),
            misses: count(Count::Misses),
            stored: count(Count::Stored),
            refused: count(Count::Refused),
            deleted: count(Count::Deleted),
            evicted: count(Count::Evicted),
            moved: count(Count::Moved),
            shards_reset: count(Count::Repaired),
        }
    }
}

/// The line of statistics that a thread counts in: the words of the file, and where the line begins.
#[derive(Clone, Copy)]
pub(super) struct Counts<'a>(pub(super) &'a [AtomicU64], pub(super) usize);

impl Counts<'_> {
    #[inline]
    pub(super) fn add(self, count: Count) {
        self.0[self.1 + count as usize].fetch_add(1, Relaxed);
    }
}
