//! The pool of RAM segments: the owner of each, and the only access to their bytes.
//!
//! A segment is free, owned by a shard (whose lock the caller holds: it has the shard's [`Owner`]), reserved
//! for a large value on its way in ([`Reservation`]), or a zombie: given up by its shard while readers still
//! hold a [`Pin`].
//!
//! ```text
//!            take                    give_back
//!   free ------------> owned (log) ------------> free
//!     \  reserve            adopt            release, no pin
//!      +--------> reserved ------> owned (large) ------> free
//!                    \ drop                   \ release, pinned      last unpin
//!                     +--> free                +-------------> zombie ---------> free
//! ```
//! A *log* segment is written by its owner at any time and never pinned. A *large* segment belongs to one
//! record, is never written again, and can be pinned. There is no edge from reserved to zombie: a
//! segment that was never adopted cannot be pinned.

mod holes;
mod log;
pub(crate) mod recover;
mod reservation;
mod withhold;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::{Arc, Mutex, PoisonError};
use zerocopy::FromBytes;

use crate::arena::{Region, SharedRegion};
use crate::crash::step;
use crate::record::HEADER_BYTES;

use holes::Holes;
pub(crate) use log::LogParts;
use reservation::Arrivals;
pub(crate) use reservation::Reservation;

/// Number of a segment in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentId(pub u32);

/// What the arena knows of one segment.
#[derive(FromBytes)]
#[repr(C)]
pub(crate) struct RamSegmentMeta {
    /// Neighbours in the queue this segment is in, as number + 1; 0 where there is none.
    next: AtomicU32,
    prev: AtomicU32,
    /// Which queue that is; 0 for none.
    queue: AtomicU32,
    /// The next segment of a large record's chain, likewise; of a log segment the one in which its last record
    /// ends or runs on.
    chain: AtomicU32,
    /// Bytes of records in a log segment; bytes of the whole content, prefix included, in a chain's first
    /// segment.
    used: AtomicU32,
    /// Bytes at the front of a log segment that belong to a record which begins in an earlier one.
    first: AtomicU32,
    /// Readers of the chain that begins here, plus [`ZOMBIE`].
    pins: AtomicU32,
    /// 1 while a large record is being written to the SSD.
    demoting: AtomicU32,
}

/// Whose a segment is: one of these, or an owner's number. Each look at a record reads it, so these words lie
/// apart from the rest of the table, sixteen segments to a cache line.
pub(crate) type OwnerWord = AtomicU32;
const FREE: u32 = 0;
const RESERVED: u32 = 1;
const FIRST_OWNER: u32 = 2;
/// Beside the owner's number, for each segment of a large record.
const LARGE: u32 = 1 << 31;
const ZOMBIE: u32 = 1 << 31;

/// Bytes before the record in a chain's first segment: room for the header that an SSD extent begins with, so
/// that a large record can be written from where it lies.
pub(crate) const LARGE_PREFIX_BYTES: usize = 16;

/// A queue of segments, oldest first, linked through the pool's table. Numbers are one more than a segment's;
/// 0 is none.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes)]
pub(crate) struct Queue {
    first: u32,
    last: u32,
    name: u32,
    pub(crate) segments: u32,
}

impl Queue {
    /// An empty queue; `name` is not 0 and unlike the owner's other queues'.
    pub(crate) fn new(name: u32) -> Queue {
        Queue { first: 0, last: 0, name, segments: 0 }
    }

    pub(crate) fn front(&self) -> Option<SegmentId> {
        self.first.checked_sub(1).map(SegmentId)
    }
}

/// The right to the segments of one shard. There is one for each, inside the shard, behind its lock.
pub(crate) struct Owner(u32);

pub(crate) struct Pool {
    memory: SharedRegion,
    owner_words: Region<OwnerWord>,
    meta: Region<RamSegmentMeta>,
    segment_bytes: usize,
    free: Mutex<VecDeque<u32>>,
    /// The length of `free`, written under its lock only, so that it never shows more than there are.
    free_count: AtomicU32,
    reserved: AtomicU32,
    /// Segments that values on their way in have or will take.
    promised: AtomicU32,
    arrivals: Arrivals,
    /// Free segments that are kept out of use, and how many segments may be in use.
    withheld: Mutex<Vec<u32>>,
    limit: AtomicU32,
    /// Segments whose memory has become part of an index, and how many these are.
    lent: Mutex<Vec<u32>>,
    lent_count: AtomicU32,
    /// Where the withheld and the lent ones were.
    holes: Mutex<Holes>,
    owners: AtomicU32,
}

impl Pool {
    /// A pool with all segments free.
    pub(crate) fn new(
        memory: SharedRegion,
        owner_words: Region<OwnerWord>,
        meta: Region<RamSegmentMeta>,
        segment_bytes: usize,
    ) -> Arc<Pool> {
        let count = meta.len();
        assert_eq!(owner_words.len(), count);
        assert!(segment_bytes.is_power_of_two() && memory.bytes() == count * segment_bytes);
        let holes = Mutex::new(Holes::new(&memory));
        Arc::new(Pool {
            memory,
            owner_words,
            segment_bytes,
            free: Mutex::new((0..count as u32).rev().collect()),
            free_count: AtomicU32::new(count as u32),
            reserved: AtomicU32::new(0),
            promised: AtomicU32::new(0),
            arrivals: Arrivals::new(),
            withheld: Mutex::new(Vec::new()),
            limit: AtomicU32::new(count as u32),
            lent: Mutex::new(Vec::new()),
            lent_count: AtomicU32::new(0),
            holes,
            owners: AtomicU32::new(FIRST_OWNER),
            meta,
        })
    }

    /// A new owner, unlike all others.
    pub(crate) fn new_owner(&self) -> Owner {
        Owner(self.owners.fetch_add(1, Relaxed))
    }

    pub(crate) fn segment_bytes(&self) -> usize {
        self.segment_bytes
    }

    pub(crate) fn count(&self) -> u32 {
        self.meta.len() as u32
    }

    pub(crate) fn free_count(&self) -> u32 {
        self.free_count.load(Relaxed)
    }

    /// Segments held by values that are still arriving.
    pub(crate) fn reserved_count(&self) -> u32 {
        self.reserved.load(Relaxed)
    }

    #[inline]
    fn owner_word(&self, id: SegmentId) -> &OwnerWord {
        &self.owner_words[id.0 as usize]
    }

    fn meta(&self, id: SegmentId) -> &RamSegmentMeta {
        &self.meta[id.0 as usize]
    }

    fn pop_free(&self, owner: u32) -> Option<SegmentId> {
        let id = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let id = free.pop_back()?;
            self.free_count.store(free.len() as u32, Relaxed);
            id
        };
        let meta = &self.meta[id as usize];
        step();
        meta.next.store(0, Relaxed);
        meta.prev.store(0, Relaxed);
        meta.queue.store(0, Relaxed);
        meta.demoting.store(0, Relaxed);
        step();
        meta.chain.store(0, Relaxed);
        meta.used.store(0, Relaxed);
        meta.first.store(0, Relaxed);
        meta.pins.store(0, Relaxed);
        step();
        let before = self.owner_words[id as usize].swap(owner, Relaxed);
        assert_eq!(before, FREE, "segment {id} was on the free list while owned");
        Some(SegmentId(id))
    }

    fn push_free(&self, id: SegmentId) {
        step();
        self.owner_word(id).store(FREE, Relaxed);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.push_back(id.0);
        self.free_count.store(free.len() as u32, Relaxed);
    }

    /// Gives the memory of a segment back to the system. The segment is free and has been taken off the free
    /// list.
    fn discard(&self, id: SegmentId) {
        assert_eq!(self.owner_word(id).load(Relaxed), FREE, "segment {} is in use", id.0);
        // SAFETY: the segment has no owner, so no slice of it lives; only pop_free gives a segment an owner, and
        // it takes segments from the free list alone.
        unsafe { self.memory.discard(self.start(id), self.segment_bytes) };
    }

    /// A free segment, now the owner's log segment.
    pub(crate) fn take(&self, owner: &mut Owner) -> Option<SegmentId> {
        self.pop_free(owner.0)
    }

    /// Ends a log segment's life.
    pub(crate) fn give_back(&self, owner: &mut Owner, id: SegmentId) {
        self.check_log(owner, id);
        self.push_free(id);
    }

    #[inline]
    fn check_owned(&self, owner: &Owner, id: SegmentId) {
        let word = self.owner_word(id).load(Relaxed);
        assert_eq!(word & !LARGE, owner.0, "segment {} is not this shard's", id.0);
    }

    #[inline]
    fn check_log(&self, owner: &Owner, id: SegmentId) {
        let word = self.owner_word(id).load(Relaxed);
        assert_eq!(word, owner.0, "segment {} is not a log segment of this shard", id.0);
    }

    fn start(&self, id: SegmentId) -> usize {
        id.0 as usize * self.segment_bytes
    }

    /// Where the word that says whose the segment at a byte offset is lies in memory, to prefetch it: each look
    /// at a record reads it.
    #[inline]
    pub(crate) fn owner_address(&self, offset: u64) -> usize {
        std::ptr::from_ref(self.owner_word(self.locate(offset).0)).addr()
    }

    /// Where the tier begins in memory, to prefetch from it.
    pub(crate) fn address(&self) -> usize {
        self.memory.address()
    }

    /// The segment and the place inside it of a byte offset of the tier.
    #[inline]
    pub(crate) fn locate(&self, offset: u64) -> (SegmentId, usize) {
        debug_assert!(self.segment_bytes.is_power_of_two());
        let shift = self.segment_bytes.trailing_zeros();
        (SegmentId((offset >> shift) as u32), offset as usize & (self.segment_bytes - 1))
    }

    pub(crate) fn offset(&self, id: SegmentId, at: usize) -> u64 {
        self.start(id) as u64 + at as u64
    }

    /// The bytes of an owned segment.
    #[inline]
    pub(crate) fn bytes<'a>(&'a self, owner: &'a Owner, id: SegmentId) -> &'a [u8] {
        self.check_owned(owner, id);
        // SAFETY: the segment is the owner's, so it is written only through bytes_mut with &mut Owner
        // (excluded by the borrow) or, before adoption, through a Reservation (which no longer lists
        // it).
        unsafe { self.memory.slice(self.start(id), self.segment_bytes) }
    }

    /// The bytes of an owned log segment, to change.
    #[inline]
    pub(crate) fn bytes_mut<'a>(&'a self, owner: &'a mut Owner, id: SegmentId) -> &'a mut [u8] {
        self.check_log(owner, id);
        step();
        // SAFETY: the segment is the owner's and a log segment, so no Pin refers to it; every other access
        // goes through this owner, borrowed exclusively here.
        unsafe { self.memory.slice_mut(self.start(id), self.segment_bytes) }
    }

    /// Copies bytes between two different log segments of one owner.
    fn copy(&self, owner: &mut Owner, from: (SegmentId, usize), to: (SegmentId, usize), len: usize) {
        assert_ne!(from.0, to.0);
        self.check_log(owner, from.0);
        self.check_log(owner, to.0);
        // SAFETY: both segments are the exclusively borrowed owner's log segments and differ, so the source
        // is not written and the target not read or written by anyone else.
        let (from_segment, to_segment) = unsafe {
            (
                self.memory.slice(self.start(from.0), self.segment_bytes),
                self.memory.slice_mut(self.start(to.0), self.segment_bytes),
            )
        };
        step();
        to_segment[to.1..to.1 + len].copy_from_slice(&from_segment[from.1..from.1 + len]);
    }

    pub(crate) fn used(&self, id: SegmentId) -> usize {
        self.meta(id).used.load(Relaxed) as usize
    }

    pub(crate) fn set_used(&self, owner: &mut Owner, id: SegmentId, used: usize) {
        self.check_log(owner, id);
        step();
        self.meta(id).used.store(used as u32, Relaxed);
    }

    pub(crate) fn is_large(&self, id: SegmentId) -> bool {
        self.owner_word(id).load(Relaxed) & LARGE != 0
    }

    /// Puts an owned segment at the back of a queue. The links from the front on lead through the whole queue at
    /// every instant, here and in [`unqueue`](Self::unqueue).
    pub(crate) fn push_back(&self, owner: &mut Owner, queue: &mut Queue, id: SegmentId) {
        self.check_owned(owner, id);
        let meta = self.meta(id);
        step();
        assert_eq!(meta.queue.swap(queue.name, Relaxed), 0, "segment {} is in a queue already", id.0);
        meta.prev.store(queue.last, Relaxed);
        meta.next.store(0, Relaxed);
        step();
        match queue.last.checked_sub(1) {
            Some(last) => self.meta(SegmentId(last)).next.store(id.0 + 1, Relaxed),
            None => queue.first = id.0 + 1,
        }
        step();
        queue.last = id.0 + 1;
        step();
        queue.segments += self.size_of(id);
    }

    /// Takes a segment out of the queue it is in.
    pub(crate) fn unqueue(&self, owner: &mut Owner, queue: &mut Queue, id: SegmentId) {
        self.check_owned(owner, id);
        let meta = self.meta(id);
        step();
        assert_eq!(meta.queue.swap(0, Relaxed), queue.name, "segment {} is not in this queue", id.0);
        let (prev, next) = (meta.prev.load(Relaxed), meta.next.load(Relaxed));
        match prev.checked_sub(1) {
            Some(prev) => self.meta(SegmentId(prev)).next.store(next, Relaxed),
            None => queue.first = next,
        }
        step();
        match next.checked_sub(1) {
            Some(next) => self.meta(SegmentId(next)).prev.store(prev, Relaxed),
            None => queue.last = prev,
        }
        step();
        queue.segments -= self.size_of(id);
    }

    /// The name of the queue a segment is in; 0 for none.
    pub(crate) fn queue_of(&self, id: SegmentId) -> u32 {
        self.meta(id).queue.load(Relaxed)
    }

    /// How many segments a large record of `record_bytes` fills.
    pub(crate) fn segments_for(&self, record_bytes: usize) -> u32 {
        (LARGE_PREFIX_BYTES + record_bytes).div_ceil(self.segment_bytes) as u32
    }

    /// Ends a large record's life: at once, or when its last reader is done.
    pub(crate) fn release(&self, owner: &mut Owner, head: SegmentId) {
        self.check_owned(owner, head);
        assert!(self.is_large(head));
        step();
        if self.meta(head).pins.fetch_or(ZOMBIE, AcqRel) == 0 {
            self.free_chain(head);
        }
    }

    fn free_chain(&self, head: SegmentId) {
        let mut at = Some(head);
        while let Some(id) = at {
            at = self.meta(id).chain.load(Relaxed).checked_sub(1).map(SegmentId);
            self.push_free(id);
        }
    }

    /// Returns how many segments a queued segment stands for: a large record's first for all of its chain.
    pub(crate) fn size_of(&self, id: SegmentId) -> u32 {
        if self.is_large(id) { self.used(id).div_ceil(self.segment_bytes) as u32 } else { 1 }
    }

    /// How many segments the chain that begins here has.
    pub(crate) fn chain_len(&self, head: SegmentId) -> u32 {
        let next = |id: &SegmentId| self.meta(*id).chain.load(Relaxed).checked_sub(1).map(SegmentId);
        std::iter::successors(Some(head), next).count() as u32
    }

    /// The segments of one queue (a large record's first stands for all of its own), oldest first.
    pub(crate) fn queued(&self, queue: &Queue) -> impl Iterator<Item = SegmentId> {
        let next = |id: &SegmentId| self.meta(*id).next.load(Relaxed).checked_sub(1).map(SegmentId);
        std::iter::successors(queue.front(), next)
    }

    /// The segments of one queue, newest first.
    pub(crate) fn queued_newest(&self, queue: &Queue) -> impl Iterator<Item = SegmentId> {
        let prev = |id: &SegmentId| self.meta(*id).prev.load(Relaxed).checked_sub(1).map(SegmentId);
        std::iter::successors(queue.last.checked_sub(1).map(SegmentId), prev)
    }

    /// Recounts an owner's segments: those in use, and those given up that are still read. For checks.
    pub(crate) fn recount(&self, owner: &Owner) -> (u32, u32) {
        let of_owner = |id: &SegmentId| self.owner_word(*id).load(Relaxed) & !LARGE == owner.0;
        let all = (0..self.count()).map(SegmentId).filter(of_owner);
        let is_zombie = |id: &SegmentId| self.meta(*id).pins.load(Relaxed) & ZOMBIE != 0;
        let zombies = all.clone().filter(is_zombie).map(|head| self.chain_len(head)).sum();
        (all.count() as u32 - zombies, zombies)
    }

    /// The header of a large record, to change; `None` while the record is being demoted.
    pub(crate) fn header_mut<'a>(
        &'a self,
        owner: &'a mut Owner,
        head: SegmentId,
    ) -> Option<&'a mut [u8; HEADER_BYTES]> {
        self.check_owned(owner, head);
        assert!(self.is_large(head));
        if self.meta(head).demoting.load(Relaxed) != 0 {
            return None;
        }
        // SAFETY: the owner is borrowed exclusively, so bytes() lends nothing of this segment; pins leave the
        // header out except while it is demoted, which was ruled out and can only begin with the owner.
        let header = unsafe { self.memory.slice_mut(self.start(head) + LARGE_PREFIX_BYTES, HEADER_BYTES) };
        header.first_chunk_mut()
    }

    /// Forbids changes of a large record's header until [`end_demotion`](Self::end_demotion), while it is
    /// written to the SSD.
    pub(crate) fn begin_demotion(&self, owner: &mut Owner, head: SegmentId) {
        self.check_owned(owner, head);
        step();
        assert_eq!(self.meta(head).demoting.swap(1, Relaxed), 0);
    }

    /// See [`begin_demotion`](Self::begin_demotion).
    pub(crate) fn end_demotion(&self, owner: &mut Owner, head: SegmentId) {
        self.check_owned(owner, head);
        step();
        self.meta(head).demoting.store(0, Relaxed);
    }

    /// Keeps a large record readable without the shard's lock.
    pub(crate) fn pin(self: &Arc<Self>, owner: &Owner, head: SegmentId) -> Pin {
        self.check_owned(owner, head);
        assert!(self.is_large(head));
        step();
        let before = self.meta(head).pins.fetch_add(1, AcqRel);
        assert!(before & ZOMBIE == 0 && before < ZOMBIE - 1);
        Pin { pool: self.clone(), head, bytes: self.used(head) }
    }
}

/// A reader's hold on a large record.
pub(crate) struct Pin {
    pool: Arc<Pool>,
    head: SegmentId,
    bytes: usize,
}

impl Pin {
    /// Key and value, one slice a segment.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.parts_from(LARGE_PREFIX_BYTES + HEADER_BYTES)
    }

    /// The whole record, header included, which is not changed while it is [demoted](Pool::begin_demotion).
    pub(crate) fn record_parts(&self) -> impl Iterator<Item = &[u8]> {
        assert_eq!(self.pool.meta(self.head).demoting.load(Relaxed), 1);
        self.parts_from(LARGE_PREFIX_BYTES)
    }

    fn parts_from(&self, mut skip: usize) -> impl Iterator<Item = &[u8]> {
        let segment_bytes = self.pool.segment_bytes;
        let mut at = Some(self.head);
        let mut left = self.bytes;
        std::iter::from_fn(move || {
            let id = at?;
            at = self.pool.meta(id).chain.load(Relaxed).checked_sub(1).map(SegmentId);
            let len = left.min(segment_bytes);
            left -= len;
            let from = std::mem::take(&mut skip);
            // SAFETY: a pinned chain is not freed; a large record past its header is never written again, and
            // the header, if asked for, not while it is demoted.
            Some(unsafe { self.pool.memory.slice(self.pool.start(id) + from, len - from) })
        })
    }

    /// Writes the extent header before the record; only for the record's demotion.
    pub(crate) fn write_prefix(&self, prefix: &[u8; LARGE_PREFIX_BYTES]) {
        assert_eq!(self.pool.meta(self.head).demoting.load(Relaxed), 1);
        // SAFETY: nothing but segment() lends the prefix, and of the pins of a record only the one of its one
        // demotion is asked for segments, later than this.
        unsafe { self.pool.memory.slice_mut(self.pool.start(self.head), LARGE_PREFIX_BYTES) }
            .copy_from_slice(prefix);
    }

    /// The chain's `index`-th segment as it goes to the SSD: prefix included, whole pages.
    pub(crate) fn segment(&self, index: u32) -> Option<&[u8]> {
        let mut id = self.head;
        for _ in 0..index {
            id = SegmentId(self.pool.meta(id).chain.load(Relaxed).checked_sub(1)?);
        }
        let left = self.bytes.checked_sub(index as usize * self.pool.segment_bytes)?;
        let len = left.min(self.pool.segment_bytes).next_multiple_of(4096).min(self.pool.segment_bytes);
        // SAFETY: as in parts; the prefix is written before the first segment is asked for.
        Some(unsafe { self.pool.memory.slice(self.pool.start(id), len) })
    }

    /// Bytes of prefix and record.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Clone for Pin {
    fn clone(&self) -> Self {
        let before = self.pool.meta(self.head).pins.fetch_add(1, AcqRel);
        assert!(before & !ZOMBIE > 0 && before & !ZOMBIE < ZOMBIE - 1);
        Pin { pool: self.pool.clone(), head: self.head, bytes: self.bytes }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if self.pool.meta(self.head).pins.fetch_sub(1, AcqRel) == ZOMBIE + 1 {
            self.pool.free_chain(self.head);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::arena::Arena;

    pub(crate) fn pool(segments: usize) -> Arc<Pool> {
        let mut arena = Arena::new(segments * (8192 + 64) + 8192, None).expect("memory");
        let (owner_words, meta) = (arena.carve(segments), arena.carve(segments));
        Pool::new(arena.carve_shared(segments * 8192), owner_words, meta, 8192)
    }

    #[test]
    fn a_record_given_up_while_read_stays_readable_and_is_free_afterwards() {
        let pool = pool(8);
        let mut owner = pool.new_owner();
        let content: Vec<u8> = (0..20_000).map(|i| i as u8).collect();
        let mut reservation = pool.reserve(content.len()).expect("3 of 8 segments");
        reservation.push(&content);
        let head = pool.adopt(&mut owner, reservation);
        let pin = pool.pin(&owner, head);
        pool.release(&mut owner, head);
        assert_eq!(pool.free_count(), 5);
        assert_eq!(pin.parts().collect::<Vec<_>>().concat(), content[HEADER_BYTES..]);
        assert_eq!(pin.segment(2).map(<[u8]>::len), Some(4096), "whole pages go to the SSD");
        drop(pin.clone());
        assert_eq!(pool.free_count(), 5);
        drop(pin);
        assert_eq!(pool.free_count(), 8);
    }

    #[test]
    fn a_reservation_that_cannot_be_met_gives_everything_back() {
        let pool = pool(4);
        let mut owner = pool.new_owner();
        assert!(pool.reserve(20_000).is_none(), "more than half");
        let taken: Vec<_> = (0..3).map(|_| pool.take(&mut owner).expect("free")).collect();
        assert!(pool.reserve(10_000).is_none(), "two segments, with one free");
        assert_eq!((pool.free_count(), pool.reserved_count()), (1, 0));
        taken.into_iter().for_each(|id| pool.give_back(&mut owner, id));
        drop(pool.reserve(10_000).expect("two of four"));
        assert_eq!((pool.free_count(), pool.reserved_count()), (4, 0));
    }

    #[test]
    fn values_on_their_way_take_memory_as_they_arrive_and_half_of_it_at_most() {
        let pool = pool(32);
        let mut incoming: Vec<_> = (0..20).map(|_| pool.begin(30_000)).collect();
        assert_eq!((pool.free_count(), pool.reserved_count()), (32, 0), "nothing has come");
        assert!(incoming[0].spare().is_empty() && incoming[0].grow() && !incoming[0].spare().is_empty());
        assert!(incoming[1..4].iter_mut().all(super::Reservation::grow));
        assert_eq!((pool.free_count(), incoming[4].waits(), incoming[4].grow()), (28, true, false));
        incoming.remove(0);
        assert!(
            !incoming[3].waits() && incoming[3].grow(),
            "what one that left was promised goes to another"
        );
    }

    #[test]
    fn a_large_value_that_waits_is_not_passed_by_smaller_ones_that_came_later() {
        let pool = pool(32);
        let mut first = pool.begin(30_000);
        let mut large = pool.begin(110_000);
        assert!(first.grow() && !large.grow(), "together more than half of all segments");
        let mut later = pool.begin(10_000);
        assert!(later.waits() && !later.grow());
        assert!(pool.reserve(4_000).is_some(), "a record that is there is no value on its way");
        drop(first);
        assert!(!later.grow() && large.grow() && !later.waits() && later.grow());
        let mut gone = pool.begin(60_000);
        assert!(!gone.grow());
        drop((gone, large));
        assert!(pool.begin(4_000).grow(), "one that waited and left holds up none");
    }

    #[test]
    fn of_values_that_do_not_fit_together_those_that_have_begun_are_never_held_up() {
        let pool = pool(32);
        let mut incoming: Vec<_> = (0..10).map(|_| pool.begin(30_000)).collect();
        for round in 0..4 {
            for (i, value) in incoming.iter_mut().enumerate() {
                assert_eq!(value.grow(), i < 4, "value {i} in round {round}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "not this shard's")]
    fn a_segment_of_another_shard_is_out_of_reach() {
        let pool = pool(2);
        let (mut mine, yours) = (pool.new_owner(), pool.new_owner());
        let id = pool.take(&mut mine).expect("free");
        pool.bytes(&yours, id);
    }
}
