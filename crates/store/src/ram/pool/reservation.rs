//! Memory for a large record that is on its way in: taken as the bytes arrive, then a shard's.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, PoisonError};

use super::{LARGE, LARGE_PREFIX_BYTES, Owner, Pool, RESERVED, SegmentId};
use crate::crash::step;

impl Pool {
    /// Memory for a record of `record_bytes` that is on its way in; none is taken yet. Those that have to wait are
    /// served in the order in which they began.
    pub(crate) fn begin(self: &Arc<Self>, record_bytes: usize) -> Reservation {
        let arrival = self.arrivals.count.fetch_add(1, Relaxed) + 1;
        let mut reservation = self.begin_at_once(record_bytes);
        reservation.arrival = arrival;
        reservation
    }

    /// Memory for a record that is there already and does not wait.
    fn begin_at_once(self: &Arc<Self>, record_bytes: usize) -> Reservation {
        Reservation {
            pool: self.clone(),
            arrival: 0,
            is_waiting: false,
            segments: Vec::new(),
            filled: LARGE_PREFIX_BYTES,
            end: LARGE_PREFIX_BYTES + record_bytes,
            promised: 0,
        }
    }

    /// How many segments will be promised if so many more are: `None` if those are more than half of all.
    fn promise_more(&self, promised: u32, segments: u32) -> Option<u32> {
        promised.checked_add(segments).filter(|sum| *sum <= self.limit() / 2)
    }

    /// Sets segments aside for a record of `record_bytes`; `None` when there are not enough.
    pub(crate) fn reserve(self: &Arc<Self>, record_bytes: usize) -> Option<Reservation> {
        let mut reservation = self.begin_at_once(record_bytes);
        for _ in 0..self.segments_for(record_bytes) {
            reservation.grow().then_some(())?;
        }
        Some(reservation)
    }

    /// Makes a filled reservation the owner's large record; returns its first segment.
    pub(crate) fn adopt(&self, owner: &mut Owner, mut reservation: Reservation) -> SegmentId {
        assert_eq!(reservation.filled, reservation.end, "adopting a record that has not arrived");
        reservation.zero_tail();
        let segments = std::mem::take(&mut reservation.segments);
        self.reserved.fetch_sub(segments.len() as u32, Relaxed);
        self.promised.fetch_sub(std::mem::take(&mut reservation.promised), Relaxed);
        for (i, &id) in segments.iter().enumerate() {
            step();
            self.meta(id).chain.store(segments.get(i + 1).map_or(0, |next| next.0 + 1), Relaxed);
            self.owner_word(id).store(owner.0 | LARGE, Relaxed);
        }
        step();
        self.meta(segments[0]).used.store(reservation.end as u32, Relaxed);
        segments[0]
    }
}

/// Values on their way in, by the order in which they began, from 1.
pub(super) struct Arrivals {
    count: AtomicU64,
    /// Those that wait for a promise.
    waiting: Mutex<BTreeSet<u64>>,
    /// The first of them; `u64::MAX` for none. Written under the lock only.
    first: AtomicU64,
}

impl Arrivals {
    pub(super) fn new() -> Arrivals {
        Arrivals {
            count: AtomicU64::new(0),
            waiting: Mutex::new(BTreeSet::new()),
            first: AtomicU64::new(u64::MAX),
        }
    }

    fn note(&self, arrival: u64, waits: bool) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waits {
            waiting.insert(arrival);
        } else {
            waiting.remove(&arrival);
        }
        self.first.store(waiting.first().copied().unwrap_or(u64::MAX), Relaxed);
    }
}

/// A large record's memory while its bytes arrive. Dropped unadopted, the memory is free again.
pub(crate) struct Reservation {
    pool: Arc<Pool>,
    /// Its place among the values on their way in; 0 for a record that does not wait.
    arrival: u64,
    /// Whether it is known to wait.
    is_waiting: bool,
    /// Those taken so far.
    segments: Vec<SegmentId>,
    filled: usize,
    end: usize,
    /// How many it has been promised: none, or all that it will take.
    promised: u32,
}

impl Reservation {
    /// How many segments it takes once all of it has come.
    fn segments_max(&self) -> u32 {
        self.pool.segments_for(self.end - LARGE_PREFIX_BYTES)
    }

    /// Whether it has to wait: others have been promised too much, or one that began earlier waits.
    pub(crate) fn waits(&self) -> bool {
        let promised = self.pool.promised.load(Relaxed);
        let is_full = self.pool.promise_more(promised, self.segments_max()).is_none();
        self.promised == 0 && (is_full || self.is_behind())
    }

    fn is_behind(&self) -> bool {
        self.pool.arrivals.first.load(Relaxed) < self.arrival
    }

    fn note_waiting(&mut self, waits: bool) {
        if self.arrival > 0 && std::mem::replace(&mut self.is_waiting, waits) != waits {
            self.pool.arrivals.note(self.arrival, waits);
        }
    }

    /// Promises all segments that the record will take, so that of values that do not fit together some arrive.
    /// False if it has to [wait](Self::waits).
    pub(crate) fn promise(&mut self) -> bool {
        if self.promised == 0 {
            let (pool, segments) = (&self.pool, self.segments_max());
            let more = |promised| pool.promise_more(promised, segments);
            if !self.is_behind() && pool.promised.fetch_update(Relaxed, Relaxed, more).is_ok() {
                self.promised = segments;
            }
            self.note_waiting(self.promised == 0);
        }
        self.promised > 0
    }

    /// Takes the segment for the next bytes; false when none is free, or it has to [wait](Self::waits).
    pub(crate) fn grow(&mut self) -> bool {
        if !self.promise() {
            return false;
        }
        let Some(id) = self.pool.pop_free(RESERVED) else { return false };
        self.pool.reserved.fetch_add(1, Relaxed);
        self.segments.push(id);
        true
    }

    /// Whether nothing of the record has come.
    pub(crate) fn is_new(&self) -> bool {
        self.filled == LARGE_PREFIX_BYTES
    }

    /// Bytes still to come.
    pub(crate) fn missing(&self) -> usize {
        self.end - self.filled
    }

    /// Where the next bytes go: the rest of the current segment. Empty when all of it has come, and when another
    /// segment has to be [taken](Self::grow) first.
    pub(crate) fn spare(&mut self) -> &mut [u8] {
        let segment_bytes = self.pool.segment_bytes;
        let (segment, at) = (self.filled / segment_bytes, self.filled % segment_bytes);
        let Some(&id) = self.segments.get(segment) else {
            return &mut [];
        };
        let len = (segment_bytes - at).min(self.end - self.filled);
        // SAFETY: the segment is reserved and listed here and nowhere else; &mut self makes the access
        // exclusive.
        unsafe { self.pool.memory.slice_mut(self.pool.start(id) + at, len) }
    }

    /// Counts `len` bytes of what [`spare`](Self::spare) gave as filled.
    pub(crate) fn advance(&mut self, len: usize) {
        assert!(len <= self.missing());
        self.filled += len;
    }

    /// Appends bytes, no more than are missing.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let spare = self.spare();
            let len = spare.len().min(bytes.len());
            assert!(len > 0, "more bytes than were reserved for");
            spare[..len].copy_from_slice(&bytes[..len]);
            bytes = &bytes[len..];
            self.advance(len);
        }
    }

    /// Writes over the front of the record; the header is known last.
    pub(crate) fn write_front(&mut self, bytes: &[u8]) {
        let len = bytes.len();
        assert!(LARGE_PREFIX_BYTES + len <= self.pool.segment_bytes.min(self.end));
        // SAFETY: as in spare.
        let front = unsafe {
            self.pool.memory.slice_mut(self.pool.start(self.segments[0]) + LARGE_PREFIX_BYTES, len)
        };
        front.copy_from_slice(bytes);
    }

    /// Writes into the room before the record, which only a demotion needs.
    pub(crate) fn write_prefix(&mut self, bytes: &[u8]) {
        let len = bytes.len();
        assert!(len <= LARGE_PREFIX_BYTES);
        // SAFETY: as in spare; every segment is longer than the prefix.
        unsafe { self.pool.memory.slice_mut(self.pool.start(self.segments[0]), len) }.copy_from_slice(bytes);
    }

    /// What has arrived of the record, one slice a segment.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let (mut left, mut skip) = (self.filled, LARGE_PREFIX_BYTES);
        self.segments.iter().map(move |&id| {
            let len = left.min(self.pool.segment_bytes);
            left -= len;
            let from = std::mem::take(&mut skip).min(len);
            // SAFETY: as in spare; &self lets nothing be written meanwhile.
            unsafe { self.pool.memory.slice(self.pool.start(id) + from, len - from) }
        })
    }

    /// Zeroes the rest of the last page, which goes to the SSD with the record.
    fn zero_tail(&mut self) {
        let segment_bytes = self.pool.segment_bytes;
        let at = self.end % segment_bytes;
        if at == 0 {
            return;
        }
        let id = self.segments[self.end / segment_bytes];
        let len = at.next_multiple_of(4096).min(segment_bytes) - at;
        // SAFETY: as in spare.
        unsafe { self.pool.memory.slice_mut(self.pool.start(id) + at, len) }.fill(0);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.note_waiting(false);
        self.pool.reserved.fetch_sub(self.segments.len() as u32, Relaxed);
        self.pool.promised.fetch_sub(self.promised, Relaxed);
        for &id in &self.segments {
            self.pool.push_free(id);
        }
    }
}
