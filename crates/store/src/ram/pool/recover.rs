//! What of the pool's table a later process may believe: which segments are whose, in which order.
//!
//! The table may say anything: every number is checked before it is used, and no walk is longer than the
//! table.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering::*};

use super::{FIRST_OWNER, FREE, LARGE, LARGE_PREFIX_BYTES, Owner, Pool, Queue, SegmentId, ZOMBIE};
use crate::crash::step;

/// Segments that still have an owner.
pub(crate) struct Kept(Vec<AtomicBool>);

/// What one shard turned out to have. Dropped unfinished, it has nothing.
pub(crate) struct ClaimedSegments<'a> {
    kept: &'a Kept,
    mine: Vec<u32>,
}

impl Drop for ClaimedSegments<'_> {
    fn drop(&mut self) {
        for &id in &self.mine {
            self.kept.0[id as usize].store(false, Relaxed);
        }
    }
}

impl<'a> ClaimedSegments<'a> {
    pub(crate) fn new(kept: &'a Kept) -> ClaimedSegments<'a> {
        ClaimedSegments { kept, mine: Vec::new() }
    }

    /// The shard keeps what it claimed; what the last process's readers and writes held of it is over.
    pub(crate) fn keep(mut self, pool: &Pool) {
        for id in std::mem::take(&mut self.mine) {
            step();
            pool.meta(SegmentId(id)).pins.store(0, Relaxed);
            pool.meta(SegmentId(id)).demoting.store(0, Relaxed);
        }
    }
}

impl Pool {
    /// No segment is known to have an owner.
    pub(crate) fn kept(&self) -> Kept {
        Kept((0..self.count()).map(|_| AtomicBool::new(false)).collect())
    }

    /// The segment, if it is the owner's and has not been claimed before.
    pub(crate) fn claim(
        &self,
        owner: &Owner,
        id: u32,
        claimed: &mut ClaimedSegments<'_>,
    ) -> Option<SegmentId> {
        let word = self.owner_words.get(id as usize)?.load(Relaxed);
        if word & !LARGE != owner.0 || claimed.kept.0[id as usize].swap(true, Relaxed) {
            return None;
        }
        claimed.mine.push(id);
        Some(SegmentId(id))
    }

    /// The segments of a queue, oldest first, each claimed; `None` unless all of it holds together.
    pub(crate) fn claim_queue(
        &self,
        owner: &Owner,
        queue: &Queue,
        name: u32,
        claimed: &mut ClaimedSegments<'_>,
    ) -> Option<Vec<SegmentId>> {
        let (mut found, mut prev, mut next) = (Vec::new(), 0, queue.first);
        let mut segments = 0_u64;
        while let Some(id) = next.checked_sub(1) {
            // A segment is claimed once, so this ends.
            let id = self.claim(owner, id, claimed)?;
            let meta = self.meta(id);
            if meta.queue.load(Relaxed) != name || meta.prev.load(Relaxed) != prev {
                return None;
            }
            segments += u64::from(self.size_of(id));
            found.push(id);
            (prev, next) = (id.0 + 1, meta.next.load(Relaxed));
        }
        let whole = queue.last == prev && u64::from(queue.segments) == segments && queue.name == name;
        whole.then_some(found)
    }

    /// Whether there is such a segment and the owner has it.
    pub(crate) fn owns(&self, owner: &Owner, id: SegmentId) -> bool {
        self.owner_words.get(id.0 as usize).is_some_and(|word| word.load(Relaxed) & !LARGE == owner.0)
    }

    /// The segments that are linked from the front of a queue on, oldest first, whatever else is said of them;
    /// `None` if they are not all the owner's, or linked in a circle.
    pub(crate) fn linked(&self, owner: &Owner, queue: &Queue) -> Option<Vec<SegmentId>> {
        let (mut found, mut next) = (Vec::new(), queue.first);
        while let Some(id) = next.checked_sub(1).map(SegmentId) {
            if !self.owns(owner, id) || found.len() == self.meta.len() {
                return None;
            }
            found.push(id);
            next = self.meta(id).next.load(Relaxed);
        }
        Some(found)
    }

    /// Makes a queue of segments, whatever they were linked to. Returns `None` if they are not all the owner's.
    ///
    /// A process that ends meanwhile leaves the old links in front of new ones: if the segments keep the order
    /// they were linked in, the front still leads to all of them.
    pub(crate) fn relink(&self, owner: &mut Owner, name: u32, segments: &[SegmentId]) -> Option<Queue> {
        if !segments.iter().all(|id| self.owns(owner, *id)) {
            return None;
        }
        let number = |at: usize| segments.get(at).map_or(0, |id| id.0 + 1);
        for (at, id) in segments.iter().enumerate().rev() {
            let meta = self.meta(*id);
            step();
            meta.queue.store(name, Relaxed);
            meta.prev.store(at.checked_sub(1).map_or(0, number), Relaxed);
            meta.next.store(number(at + 1), Relaxed);
        }
        step();
        let sizes = segments.iter().map(|id| self.size_of(*id));
        Some(Queue {
            first: number(0),
            last: segments.len().checked_sub(1).map_or(0, number),
            name,
            segments: sizes.fold(0, u32::saturating_add),
        })
    }

    /// Makes a log segment one that is in no queue, and in which the last record ends.
    pub(crate) fn reopen(&self, owner: &mut Owner, id: SegmentId) -> Option<()> {
        let meta = self.owns(owner, id).then(|| self.meta(id))?;
        step();
        meta.queue.store(0, Relaxed);
        meta.chain.store(0, Relaxed);
        Some(())
    }

    /// ClaimedSegments the rest of the chain of a large record whose first segment is claimed; `None` unless it
    /// is as long as its content.
    pub(crate) fn claim_chain(
        &self,
        owner: &Owner,
        head: SegmentId,
        claimed: &mut ClaimedSegments<'_>,
    ) -> Option<()> {
        let used = self.used(head);
        let segments = used.div_ceil(self.segment_bytes);
        if used <= LARGE_PREFIX_BYTES || segments > self.count() as usize {
            return None;
        }
        let mut at = head;
        for _ in 1..segments {
            at = self.claim(owner, self.meta(at).chain.load(Relaxed).checked_sub(1)?, claimed)?;
            if !self.is_large(at) || self.meta(at).queue.load(Relaxed) != 0 {
                return None;
            }
        }
        (self.meta(at).chain.load(Relaxed) == 0).then_some(())
    }

    /// The first segments of the large records that were on their way to the SSD, by the number of their
    /// owner, as the table says.
    pub(crate) fn were_demoting(&self, owners: u32) -> Vec<Vec<u32>> {
        let mut found = vec![Vec::new(); owners as usize];
        for (id, meta) in self.meta.iter().enumerate() {
            let word = self.owner_words[id].load(Relaxed);
            let number = (word & !LARGE).wrapping_sub(FIRST_OWNER) as usize;
            let demotes = meta.demoting.load(Relaxed) != 0 && word & LARGE != 0;
            let has_gone = meta.pins.load(Relaxed) & ZOMBIE != 0 || meta.queue.load(Relaxed) != 0;
            if demotes && !has_gone && number < found.len() {
                found[number].push(id as u32);
            }
        }
        found
    }

    /// Frees every segment without an owner.
    pub(crate) fn free_the_rest(&self, kept: &Kept) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.clear();
        for (id, (word, kept)) in self.owner_words.iter().zip(&kept.0).enumerate().rev() {
            if !kept.load(Relaxed) {
                if word.load(Relaxed) != FREE {
                    step();
                    word.store(FREE, Relaxed);
                }
                free.push_back(id as u32);
            }
        }
        self.free_count.store(free.len() as u32, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::pool;
    use super::*;

    fn queue_of(pool: &Pool, owner: &mut Owner, segments: u32) -> Queue {
        let mut queue = Queue::new(1);
        for _ in 0..segments {
            let id = pool.take(owner).expect("free");
            pool.push_back(owner, &mut queue, id);
        }
        queue
    }

    #[test]
    fn a_queue_comes_back_in_its_order_and_what_nobody_has_is_free() {
        let pool = pool(8);
        let (mut mine, mut yours) = (pool.new_owner(), pool.new_owner());
        let queue = queue_of(&pool, &mut mine, 3);
        pool.take(&mut yours).expect("free");
        let order: Vec<_> = pool.queued(&queue).collect();
        let kept = pool.kept();
        let mut claimed = ClaimedSegments::new(&kept);
        assert_eq!(pool.claim_queue(&mine, &queue, 1, &mut claimed), Some(order));
        claimed.keep(&pool);
        pool.free_the_rest(&kept);
        assert_eq!(pool.free_count(), 5, "what the other took is in no queue");
    }

    #[test]
    fn a_queue_that_does_not_hold_together_is_not_believed() {
        type Damage = fn(&Pool, &mut Queue, SegmentId);
        let damages: [Damage; 8] = [
            |pool, _, id| pool.meta(id).next.store(id.0 + 1, Relaxed),
            |pool, _, id| pool.meta(id).next.store(u32::MAX, Relaxed),
            |pool, _, id| pool.meta(id).prev.store(0, Relaxed),
            |pool, _, id| pool.meta(id).queue.store(2, Relaxed),
            |pool, _, id| pool.owner_word(id).store(FREE, Relaxed),
            |_, queue, _| queue.segments = 2,
            |_, queue, _| queue.last = queue.first,
            |_, queue, _| queue.first = 77,
        ];
        for damage in damages {
            let pool = pool(8);
            let mut owner = pool.new_owner();
            let mut queue = queue_of(&pool, &mut owner, 3);
            let middle = pool.queued(&queue).nth(1).expect("three");
            damage(&pool, &mut queue, middle);
            let kept = pool.kept();
            let mut claimed = ClaimedSegments::new(&kept);
            assert_eq!(pool.claim_queue(&owner, &queue, 1, &mut claimed), None);
            drop(claimed);
            pool.free_the_rest(&kept);
            assert_eq!(pool.free_count(), 8);
        }
    }

    #[test]
    fn a_chain_is_as_long_as_its_record() {
        for damage in 0..4 {
            let pool = pool(8);
            let mut owner = pool.new_owner();
            let mut reservation = pool.reserve(20_000).expect("3 segments");
            reservation.push(&[7; 20_000]);
            let head = pool.adopt(&mut owner, reservation);
            let second = pool.meta(head).chain.load(Relaxed) - 1;
            match damage {
                0 => {}
                1 => pool.meta(SegmentId(second)).chain.store(head.0 + 1, Relaxed),
                2 => pool.meta(head).used.store(9_000, Relaxed),
                _ => pool.meta(head).used.store(u32::MAX, Relaxed),
            }
            let kept = pool.kept();
            let mut claimed = ClaimedSegments::new(&kept);
            pool.claim(&owner, head.0, &mut claimed).expect("its own");
            assert_eq!(pool.claim_chain(&owner, head, &mut claimed).is_some(), damage == 0);
        }
    }
}
