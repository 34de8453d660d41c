//! Segments taken out of use: withheld, so that a store takes less memory than its arena was made with, or lent
//! to an index that grows.
//!
//! Such a segment is free (its owner word says so) and on no free list. A later process, which works out its
//! free list from the owner words, begins with all segments in use again, and lends as many as its index has
//! taken.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::*;

use super::{Pool, SegmentId};

/// Free segments among which the one to lend is chosen: all of them, once the tier is full.
const LOOKED_AT_MAX: usize = 64;

impl Pool {
    /// Returns how many segments may be in use.
    pub(crate) fn limit(&self) -> u32 {
        self.limit.load(Relaxed).saturating_sub(self.lent_count())
    }

    /// Returns how many segments are lent to the index.
    pub(crate) fn lent_count(&self) -> u32 {
        self.lent_count.load(Relaxed)
    }

    /// Lends a free segment to the index, and gives its memory back to the system. Returns `None` if no more than
    /// `spare` are free.
    ///
    /// One in a large page that has a hole already is taken, so that others stay whole; else the one that has been free
    /// for longest: while the tier fills for the first time those are its last ones.
    pub(crate) fn lend(&self, spare: u32) -> Option<SegmentId> {
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        let id = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            if free.len() <= spare as usize {
                return None;
            }
            let holes = self.holes.lock().unwrap_or_else(PoisonError::into_inner);
            let looked_at = free.iter().take(LOOKED_AT_MAX);
            let beside = looked_at.copied().position(|id| holes.is_beside_one(self.start(SegmentId(id))));
            let id = free.remove(beside.unwrap_or(0))?;
            self.free_count.store(free.len() as u32, Relaxed);
            id
        };
        self.take_out(SegmentId(id));
        lent.push(id);
        self.lent_count.store(lent.len() as u32, Relaxed);
        Some(SegmentId(id))
    }

    /// Takes the segment back that was lent last. Without memory for it, it is withheld.
    pub(crate) fn take_back(&self) {
        let mut withheld = self.withheld.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(id) = lent.pop().map(SegmentId) else { return };
        self.lent_count.store(lent.len() as u32, Relaxed);
        if self.populate(id) {
            self.bring_back(id);
            self.push_free(id);
        } else {
            self.limit.fetch_sub(1, Relaxed);
            withheld.push(id.0);
        }
    }

    /// Withholds the free segments for which the system has no memory.
    pub(crate) fn withhold_missing(&self) {
        let mut withheld = self.withheld.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.retain(|&id| {
            let is_there = self.populate(SegmentId(id));
            if !is_there {
                self.take_out(SegmentId(id));
                self.limit.fetch_sub(1, Relaxed);
                withheld.push(id);
            }
            is_there
        });
        self.free_count.store(free.len() as u32, Relaxed);
    }

    /// Returns how many segments are withheld.
    pub(crate) fn withheld_count(&self) -> u32 {
        self.withheld.lock().unwrap_or_else(PoisonError::into_inner).len() as u32
    }

    /// Bounds the segments in use. A higher bound makes room at once; for a lower one, segments have to be
    /// [withheld](Self::withhold). Returns false, and changes nothing, if the system has too little memory for
    /// the segments of a higher bound.
    pub(crate) fn set_limit(&self, segments: u32) -> bool {
        let limit = segments.min(self.count());
        let mut withheld = self.withheld.lock().unwrap_or_else(PoisonError::into_inner);
        let keep = (self.count() - limit) as usize;
        let wanted = withheld.get(keep..).unwrap_or_default();
        if let Some(without) = wanted.iter().position(|&id| !self.populate(SegmentId(id))) {
            wanted[..=without].iter().for_each(|&id| self.discard(SegmentId(id)));
            return false;
        }
        self.limit.store(limit, Relaxed);
        if withheld.len() > keep {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            free.extend(withheld.drain(keep..).inspect(|&id| self.bring_back(SegmentId(id))));
            self.free_count.store(free.len() as u32, Relaxed);
        }
        true
    }

    /// Gives the memory of a segment back to the system, which does not fill the hole up again.
    fn take_out(&self, id: SegmentId) {
        let mut holes = self.holes.lock().unwrap_or_else(PoisonError::into_inner);
        holes.open(self.start(id), self.segment_bytes, &self.memory);
        self.discard(id);
    }

    /// Notes that a segment which was taken out is in use again.
    fn bring_back(&self, id: SegmentId) {
        let mut holes = self.holes.lock().unwrap_or_else(PoisonError::into_inner);
        holes.close(self.start(id), self.segment_bytes, &self.memory);
    }

    /// Takes the memory of a segment from the system again. Returns false if there is none.
    fn populate(&self, id: SegmentId) -> bool {
        self.memory.populate(self.start(id), self.segment_bytes)
    }

    /// Withholds at most `most` free segments but for the last `spare` ones, and gives their memory back to the
    /// system. Returns how many are still to be withheld.
    pub(crate) fn withhold(&self, most: u32, spare: u32) -> u32 {
        let mut withheld = self.withheld.lock().unwrap_or_else(PoisonError::into_inner);
        let excess = (self.count() - self.limit.load(Relaxed)).saturating_sub(withheld.len() as u32);
        let mut taken = 0;
        while taken < excess.min(most) {
            let id = {
                let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
                if free.len() <= spare as usize {
                    break;
                }
                let Some(id) = free.pop_back() else { break };
                self.free_count.store(free.len() as u32, Relaxed);
                id
            };
            self.take_out(SegmentId(id));
            withheld.push(id);
            taken += 1;
        }
        excess - taken
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::pool;

    #[test]
    fn segments_over_the_limit_are_withheld_as_they_become_free() {
        let pool = pool(8);
        let mut owner = pool.new_owner();
        let used: Vec<_> = (0..6).map(|_| pool.take(&mut owner).expect("free")).collect();
        assert!(pool.set_limit(3));
        assert_eq!(pool.withhold(9, 1), 4, "two are free, of which one is spare");
        assert_eq!((pool.free_count(), pool.withheld_count()), (1, 1));
        used.into_iter().for_each(|id| pool.give_back(&mut owner, id));
        assert_eq!(pool.withhold(2, 0), 2, "no more than asked for");
        assert_eq!(pool.withhold(9, 0), 0);
        assert_eq!((pool.free_count(), pool.withheld_count()), (3, 5));
        assert!(pool.set_limit(7));
        assert_eq!((pool.free_count(), pool.withheld_count()), (7, 1));
        assert!(pool.set_limit(100));
        assert_eq!((pool.free_count(), pool.withheld_count(), pool.limit()), (8, 0, 8));
    }

    #[test]
    fn a_segment_that_was_withheld_is_one_like_any_other() {
        let pool = pool(2);
        assert!(pool.set_limit(1));
        assert_eq!(pool.withhold(1, 0), 0);
        assert!(pool.set_limit(2));
        let mut owner = pool.new_owner();
        for _ in 0..2 {
            let id = pool.take(&mut owner).expect("free");
            pool.bytes_mut(&mut owner, id).fill(7);
            assert!(pool.bytes(&owner, id).iter().all(|byte| *byte == 7));
        }
        assert_eq!(pool.take(&mut owner).map(|id| id.0), None);
    }
}
