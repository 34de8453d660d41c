//! One part of the cache: a lock, an index, two rings. This file reads it, without the lock; `write` changes it.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::layout::{BUCKET, CONTROL, LINE, Layout};
use super::record::Header;
use super::ring::{Found, Ring};
use super::slot::{FREQ_MAX, Place, Slot};

pub(super) mod write;

/// Attempts to read an entry that is being moved or replaced.
const TRIES: u32 = 8;

/// One shard of a file.
#[derive(Clone, Copy)]
pub(super) struct Shard<'a> {
    words: &'a [AtomicU64],
    layout: &'a Layout,
    nth: usize,
}

impl<'a> Shard<'a> {
    /// Returns the shard of the key with this hash.
    #[inline]
    pub(super) fn of(words: &'a [AtomicU64], layout: &'a Layout, hash: u64) -> Shard<'a> {
        Shard { words, layout, nth: ((hash >> 48) as usize * layout.shards) >> 16 }
    }

    /// Returns the shard with this number.
    pub(super) fn at(words: &'a [AtomicU64], layout: &'a Layout, nth: usize) -> Shard<'a> {
        Shard { words, layout, nth }
    }

    fn control(&self) -> usize {
        self.layout.controls_at + self.nth * CONTROL
    }

    fn lock(&self) -> &'a AtomicU64 {
        &self.words[self.control()]
    }

    #[inline]
    fn ring(&self, place: Place) -> Ring<'a> {
        let Layout { small, main, rings_at, .. } = *self.layout;
        let begin = rings_at + self.nth * (small + main);
        let (begin, len, bounds) =
            if place == Place::Small { (begin, small, LINE) } else { (begin + small, main, LINE + 2) };
        let bounds = &self.words[self.control() + bounds..][..2];
        Ring { words: &self.words[begin..begin + len], head: &bounds[0], reclaimed: &bounds[1] }
    }

    fn index(&self) -> &'a [AtomicU64] {
        let len = self.layout.buckets * BUCKET;
        &self.words[self.layout.indexes_at + self.nth * len..][..len]
    }

    #[inline]
    fn bucket(&self, hash: u64) -> &'a [AtomicU64; BUCKET] {
        let buckets = self.layout.buckets;
        let nth = ((hash >> 16 & 0xFFFF_FFFF) * buckets as u64) >> 32;
        let at = self.layout.indexes_at + (self.nth * buckets + nth as usize) * BUCKET;
        self.words[at..].first_chunk().expect("an index lies in front of the rings")
    }

    /// Copies the key's value to `value` and returns its header. Writes nothing that is shared, unless the entry was
    /// read less than three times since it was stored or moved.
    #[inline]
    pub(super) fn read(&self, hash: u64, key: &[u8], value: &mut Vec<u8>) -> Option<Header> {
        let tag = Slot::tag_of(hash);
        self.bucket(hash).iter().find_map(|cell| {
            let slot = Slot(cell.load(Acquire));
            let may_be = slot.tag() == tag && slot.has_record();
            if may_be { self.follow(cell, slot, hash, key, value) } else { None }
        })
    }

    /// Returns whether the entry with a header that was read is still the one of its key. One that is being moved may
    /// not be.
    #[inline]
    pub(super) fn has(&self, hash: u64, header: &Header) -> bool {
        self.bucket(hash).iter().any(|cell| {
            let slot = Slot(cell.load(Acquire));
            slot.tag() == Slot::tag_of(hash) && slot.has_record() && slot.leads_to(header.position())
        })
    }

    #[inline]
    fn follow(
        &self,
        cell: &AtomicU64,
        mut slot: Slot,
        hash: u64,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Option<Header> {
        for _ in 0..TRIES {
            let found = self.ring(slot.place()).read(slot, hash, key, value);
            if let Found::Record(header) = found {
                if slot.freq() < FREQ_MAX {
                    let read = slot.with_freq(slot.freq() + 1);
                    let _ = cell.compare_exchange(slot.0, read.0, Relaxed, Relaxed);
                }
                return Some(header);
            }
            let now = Slot(cell.load(Acquire));
            let is_final = matches!(found, Found::Other) && now.is_same_entry(slot);
            if is_final || now.tag() != slot.tag() || !now.has_record() {
                return None;
            }
            slot = now;
            std::hint::spin_loop();
        }
        None
    }

    /// Returns the thread that holds the lock, and how often it was taken.
    pub(super) fn holder(&self) -> Option<(u32, u32)> {
        super::lock::holder(self.lock())
    }

    /// Returns the number of slots that have a record.
    pub(super) fn len(&self) -> usize {
        let has_record = |cell: &&AtomicU64| {
            let slot = Slot(cell.load(Relaxed));
            slot.has_record() && !self.ring(slot.place()).is_behind(slot)
        };
        self.index().iter().filter(has_record).count()
    }

    /// Makes the shard of a new file empty.
    pub(super) fn init(&self) {
        self.ring(Place::Small).reset();
        self.ring(Place::Main).reset();
    }
}
