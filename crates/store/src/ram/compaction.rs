//! How hard a store that may not evict looks for room. It looks through segments for records that have expired
//! or were overwritten; when it has looked through all of them in vain, a request is refused without another
//! look until something has changed.

use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::{Mutex, PoisonError};

use crate::clock::Seconds;

/// Segments looked through a second although nothing was freed: what has expired is found by looking only.
const SEGMENTS_PER_SECOND: u32 = 8;

/// The right to look through segments.
pub(crate) struct Compaction {
    state: Mutex<State>,
    /// Bytes of records removed or overwritten since they were last counted.
    freed_bytes: AtomicU64,
    segment_bytes: u64,
    segments: u32,
}

struct State {
    /// Segments that may be looked through.
    credit: u32,
    second: Seconds,
}

impl Compaction {
    /// The right to look through all of `segments` segments of `segment_bytes` once.
    pub(crate) fn new(segments: u32, segment_bytes: usize) -> Compaction {
        Compaction {
            state: Mutex::new(State { credit: segments, second: Seconds(0) }),
            freed_bytes: AtomicU64::new(0),
            segment_bytes: segment_bytes as u64,
            segments,
        }
    }

    /// Notes that so many bytes of records are dead from now on.
    pub(crate) fn note_freed(&self, bytes: u64) {
        self.freed_bytes.fetch_add(bytes, Relaxed);
    }

    /// Notes that looking through a segment made room, or had to wait for a write: only looks in vain are limited.
    pub(crate) fn note_success(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).credit += 1;
    }

    /// Whether one more segment may be looked through now.
    pub(crate) fn may_look(&self, now: Seconds) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if now > state.second {
            state.second = now;
            state.credit += SEGMENTS_PER_SECOND;
        }
        // What is dead may lie scattered: for each segment's worth of it, a round of all segments would be the
        // most that can help; a part of that finds it soon enough.
        let freed = self.freed_bytes.load(Relaxed);
        if freed >= self.segment_bytes {
            self.freed_bytes.fetch_sub(freed, Relaxed);
            let worth = (freed / self.segment_bytes).min(u64::from(self.segments)) as u32;
            state.credit = state.credit.saturating_add(worth.saturating_mul(self.segments / 4 + 1));
        }
        state.credit = state.credit.min(2 * self.segments);
        let may = state.credit > 0;
        state.credit -= u32::from(may);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_store_looks_again_when_something_was_freed_or_time_has_passed() {
        let compaction = Compaction::new(16, 1000);
        let looks = |now| (0..1000).take_while(|_| compaction.may_look(Seconds(now))).count();
        assert_eq!(looks(1), 16 + 8, "all segments once");
        assert_eq!(looks(1), 0, "then none");
        assert_eq!(looks(2), 8);
        compaction.note_freed(999);
        assert_eq!(looks(2), 0);
        compaction.note_freed(1);
        assert_eq!(looks(2), 5);
    }
}
