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

/// The words of one shard.
#[derive(Clone, Copy)]
pub(super) struct Shard<'a> {
    control: &'a [AtomicU64],
    index: &'a [AtomicU64],
    rings: &'a [AtomicU64],
    small_words: usize,
}

impl<'a> Shard<'a> {
    /// Returns the shard of the key with this hash.
    #[inline]
    pub(super) fn of(words: &'a [AtomicU64], layout: &Layout, hash: u64) -> Shard<'a> {
        Shard::at(words, layout, ((hash >> 48) as usize * layout.shards) >> 16)
    }

    /// Returns the shard with this number.
    #[inline]
    pub(super) fn at(words: &'a [AtomicU64], layout: &Layout, nth: usize) -> Shard<'a> {
        let part = |at: usize, len: usize| &words[at + nth * len..][..len];
        Shard {
            control: part(layout.controls_at, CONTROL),
            index: part(layout.indexes_at, layout.buckets * BUCKET),
            rings: part(layout.rings_at, layout.small + layout.main),
            small_words: layout.small,
        }
    }

    #[inline]
    fn ring(&self, place: Place) -> Ring<'a> {
        let (small, main) = self.rings.split_at(self.small_words);
        let (words, bounds) = if place == Place::Small { (small, LINE) } else { (main, LINE + 2) };
        Ring { words, head: &self.control[bounds], reclaimed: &self.control[bounds + 1] }
    }

    #[inline]
    fn bucket(&self, hash: u64) -> &'a [AtomicU64] {
        let buckets = (self.index.len() / BUCKET) as u64;
        let nth = ((hash >> 16 & 0xFFFF_FFFF) * buckets) >> 32;
        &self.index[nth as usize * BUCKET..][..BUCKET]
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

    /// Returns the number of slots that have a record.
    pub(super) fn len(&self) -> usize {
        let has_record = |cell: &&AtomicU64| {
            let slot = Slot(cell.load(Relaxed));
            slot.has_record() && !self.ring(slot.place()).is_behind(slot)
        };
        self.index.iter().filter(has_record).count()
    }

    /// Makes the shard of a new file empty.
    pub(super) fn init(&self) {
        self.ring(Place::Small).reset();
        self.ring(Place::Main).reset();
    }
}
