//! Changes a shard, under its lock.
//!
//! A writer may be killed before any of its stores. The order of the stores keeps the shard valid, so that the next
//! holder of the lock repairs nothing: a record is part of its ring before a slot leads to it, a slot is changed by
//! one store, and words are reclaimed before they are overwritten. At worst a record lies in a ring and no slot leads
//! to it, or a slot leads to a record that was reclaimed, which is no entry.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use super::super::crash;
use super::super::feed::FeedId;
use super::super::header::{NAMESPACE_WORD, NAMESPACES_SEVERAL};
use super::super::lock::{Guard, Taken, lock};
use super::super::position::Position;
use super::super::record::Header;
use super::super::ring::{RingWriter, Tail};
use super::super::slot::{Place, Slot};
use super::super::stats::{Count, Counts};
use super::Shard;

/// Laps of the small ring after which a key that left it unread is forgotten: then as much has passed through it as
/// the main ring holds.
const GHOST_LAPS: u64 = 7;
/// The most entries that stay in the main ring while one change makes room, and the words of them beyond which no
/// more do.
const MOVES_MAX: u32 = 32;
const MOVED_WORDS_MAX: usize = 16 << 10;

/// A shard whose lock is held.
pub(in super::super) struct Writer<'a> {
    shard: Shard<'a>,
    small: RingWriter<'a>,
    main: RingWriter<'a>,
    counts: Counts<'a>,
    now_ms: u64,
    moves: u32,
    moved_words: usize,
    guard: Guard<'a>,
}

impl<'a> Shard<'a> {
    /// Takes the lock; from a holder that keeps it for longer than `patience`.
    pub(in super::super) fn write(self, counts: Counts<'a>, now_ms: u64, patience: Duration) -> Writer<'a> {
        let (guard, taken) = lock(self.lock(), patience);
        let (mut small, mut main) = (self.ring(Place::Small).writer(), self.ring(Place::Main).writer());
        let has_equal_ids = || self.words[NAMESPACE_WORD].load(Acquire) == NAMESPACES_SEVERAL;
        let may_go_on = match taken {
            Taken::Free => false,
            // The kernel compares ids only: in another PID namespace, the holder may be alive.
            Taken::AfterDeath => has_equal_ids(),
            Taken::FromHolder => true,
        };
        // A last holder that goes on finds that all positions it knows are in the past.
        if may_go_on || !small.is_sound() || !main.is_sound() {
            counts.add(Count::Repaired);
            self.clear();
            (small, main) = (self.ring(Place::Small).writer(), self.ring(Place::Main).writer());
        }
        Writer { shard: self, small, main, counts, now_ms, moves: 0, moved_words: 0, guard }
    }

    fn clear(&self) {
        self.init();
        for cell in self.index() {
            crash::step();
            cell.store(Slot::EMPTY.0, Relaxed);
        }
    }
}

impl<'a> Writer<'a> {
    /// Empties the shard.
    pub(in super::super) fn clear(self) {
        self.shard.clear();
    }

    fn ring(&mut self, place: Place) -> &mut RingWriter<'a> {
        if place == Place::Small { &mut self.small } else { &mut self.main }
    }

    /// Returns the key's cell and record.
    fn find(&self, hash: u64, key: &[u8]) -> Option<(&'a AtomicU64, Slot, Header)> {
        self.shard.bucket(hash).iter().find_map(|cell| {
            let slot = Slot(cell.load(Relaxed));
            if slot.tag() != Slot::tag_of(hash) || !slot.has_record() {
                return None;
            }
            let header = self.shard.ring(slot.place()).record_of(slot, hash, key)?;
            Some((cell, slot, header))
        })
    }

    /// Changes a slot, whatever was read meanwhile. Returns false where another writer has taken the lock and
    /// changed it.
    fn publish(&self, cell: &AtomicU64, mut seen: Slot, new: Slot) -> bool {
        loop {
            crash::step();
            match cell.compare_exchange(seen.0, new.0, Release, Relaxed) {
                Ok(_) => return true,
                Err(now) if Slot(now).is_same_entry(seen) => seen = Slot(now),
                Err(_) => return false,
            }
        }
    }

    /// Stores a record, which must not be longer than the layout's `record_words_max`; it goes to the small ring
    /// only if it is not longer than `small_words_max`.
    pub(in super::super) fn store(
        &mut self,
        header: &Header,
        key: &[u8],
        value: &[u8],
        small_words_max: usize,
    ) {
        let hash = header.hash();
        let earlier = self.find(hash, key).map(|(cell, slot, _)| (cell, slot.place()));
        let is_main = header.words() > small_words_max
            || earlier.map_or_else(|| self.left_not_long_ago(hash), |(_, place)| place == Place::Main);
        let place = if is_main { Place::Main } else { Place::Small };
        let Some(begin) = self.make_room(place, header.words()) else { return };
        if !self.ring(place).append(begin, header, key, value) {
            return;
        }
        let cell = earlier.map_or_else(|| self.cell_for_new(hash), |(cell, _)| cell);
        let seen = Slot(cell.load(Relaxed));
        let freq = if earlier.is_some() { seen.freq() } else { 0 };
        if self.publish(cell, seen, Slot::new(Slot::tag_of(hash), freq, place, begin)) {
            self.counts.add(Count::Stored);
        }
    }

    /// Forgets the key; returns whether it had an entry.
    pub(in super::super) fn delete(&mut self, hash: u64, key: &[u8]) -> bool {
        let mut was_there = false;
        // More than once only where another writer has taken the lock and moves the entry.
        while let Some((cell, slot, header)) = self.find(hash, key) {
            was_there = header.stale_until_ms() > self.now_ms;
            if self.publish(cell, slot, Slot::EMPTY) {
                break;
            }
        }
        was_there
    }

    /// Forgets all keys with this hash; there is seldom more than one.
    pub(in super::super) fn delete_hash(&mut self, hash: u64) {
        for cell in self.shard.bucket(hash) {
            let mut slot = Slot(cell.load(Relaxed));
            while slot.tag() == Slot::tag_of(hash)
                && slot.has_record()
                && self.shard.ring(slot.place()).is_of_hash(slot, hash)
                && !self.publish(cell, slot, Slot::EMPTY)
            {
                slot = Slot(cell.load(Relaxed));
            }
        }
    }

    /// Replaces the word that says until when the key's record is fresh, if the record has this cas and feed.
    pub(in super::super) fn touch(
        &mut self,
        hash: u64,
        key: &[u8],
        (cas, feed): (u64, FeedId),
        fresh: u64,
    ) -> bool {
        let Some((_, slot, header)) = self.find(hash, key) else { return false };
        if header.cas() != cas || header.feed() != feed || header.stale_until_ms() <= self.now_ms {
            return false;
        }
        let word = self.shard.ring(slot.place()).fresh_word(&header);
        crash::step();
        // Compared, because a holder that lost its lock may find another record here.
        word.compare_exchange(header.0[super::super::record::FRESH_WORD], fresh, Relaxed, Relaxed).is_ok()
    }

    fn left_not_long_ago(&self, hash: u64) -> bool {
        let lap = self.shard.ring(Place::Small).head().lap();
        let mut slots = self.shard.bucket(hash).iter().map(|cell| Slot(cell.load(Relaxed)));
        slots.any(|slot| {
            slot.place() == Place::Ghost
                && slot.tag() == Slot::tag_of(hash)
                && slot.laps_to(lap) <= GHOST_LAPS
        })
    }

    /// Returns the cell of the bucket that costs least: an empty one, that of the key's own ghost, another ghost's,
    /// or that of the entry that was read least.
    fn cell_for_new(&self, hash: u64) -> &'a AtomicU64 {
        let bucket = self.shard.bucket(hash);
        let cost = |slot: Slot| match slot.place() {
            Place::Empty => 0,
            Place::Ghost if slot.tag() == Slot::tag_of(hash) => 0,
            place if slot.has_record() && self.shard.ring(place).is_behind(slot) => 0,
            Place::Ghost => 1,
            Place::Small => 2 + slot.freq() * 2,
            Place::Main => 3 + slot.freq() * 2,
        };
        let cheapest =
            bucket.iter().map(|cell| (cell, cost(Slot(cell.load(Relaxed))))).min_by_key(|cell| cell.1);
        let (cell, cost) = cheapest.unwrap_or((&bucket[0], 0));
        if cost > 1 {
            self.counts.add(Count::Evicted);
        }
        cell
    }

    /// Reclaims records until one of so many words has room, and returns where it begins. Returns `None` if the ring
    /// makes no sense, or is another's by now; then the shard is emptied, and nothing more may be stored.
    fn make_room(&mut self, place: Place, words: usize) -> Option<Position> {
        loop {
            let ring = self.ring(place);
            if let Some(begin) = ring.room(words) {
                return Some(begin);
            }
            match ring.tail() {
                Tail::Filler(end) => ring.reclaim_to(end),
                Tail::Record(record) if place == Place::Small => self.leave_small(&record)?,
                Tail::Record(record) => self.leave_main(&record),
                Tail::Empty | Tail::Broken => {
                    if self.guard.is_held() {
                        self.counts.add(Count::Repaired);
                        self.shard.clear();
                    }
                    return None;
                }
            }
        }
    }

    /// Returns the cell that leads to a record of a ring, if there is one.
    fn cell_of(&self, place: Place, record: &Header) -> Option<(&'a AtomicU64, Slot)> {
        let mut cells = self.shard.bucket(record.hash()).iter().map(|cell| (cell, Slot(cell.load(Relaxed))));
        cells.find(|(_, slot)| slot.place() == place && slot.leads_to(record.position()))
    }

    /// Returns whether the main ring has room for so many words, without an entry that could still be used having to
    /// leave.
    fn main_has_room(&mut self, words: usize) -> bool {
        loop {
            if self.main.room(words).is_some() {
                return true;
            }
            match self.main.tail() {
                Tail::Filler(end) => self.main.reclaim_to(end),
                Tail::Record(record) => {
                    if let Some((cell, slot)) = self.cell_of(Place::Main, &record) {
                        if record.stale_until_ms() > self.now_ms {
                            return false;
                        }
                        self.publish(cell, slot, Slot::EMPTY);
                    }
                    self.main.reclaim_to(record.position().plus(record.words()));
                }
                Tail::Empty | Tail::Broken => return false,
            }
        }
    }

    /// Moves the oldest record of the small ring to the main ring if it was read, or that has room for it anyway, as
    /// in a new file or behind entries whose time is over; else it leaves.
    fn leave_small(&mut self, record: &Header) -> Option<()> {
        if let Some((cell, slot)) = self.cell_of(Place::Small, record) {
            let is_over = record.stale_until_ms() <= self.now_ms;
            let may_stay = !is_over && (slot.freq() > 0 || self.main_has_room(record.words()));
            if may_stay {
                let begin = self.make_room(Place::Main, record.words())?;
                self.copy_to_main(begin, self.small.ring.words_at(record), cell, slot, 0);
            } else {
                self.publish(cell, slot, if is_over { Slot::EMPTY } else { slot.ghost() });
                self.count_eviction(record);
            }
        }
        self.small.reclaim_to(record.position().plus(record.words()));
        Some(())
    }

    /// Moves the oldest record of the main ring to its front if it was read; else it leaves.
    fn leave_main(&mut self, record: &Header) {
        let end = record.position().plus(record.words());
        let Some((cell, slot)) = self.cell_of(Place::Main, record) else { return self.main.reclaim_to(end) };
        let may_move = self.moves < MOVES_MAX && self.moved_words < MOVED_WORDS_MAX;
        if slot.freq() > 0 && may_move && record.stale_until_ms() > self.now_ms {
            self.moves += 1;
            self.moved_words += record.words();
            self.main.reclaim_to(end);
            if let Some(begin) = self.main.room(record.words()) {
                return self.copy_to_main(
                    begin,
                    self.main.ring.words_at(record),
                    cell,
                    slot,
                    slot.freq() - 1,
                );
            }
        }
        self.publish(cell, slot, Slot::EMPTY);
        self.count_eviction(record);
        self.main.reclaim_to(end);
    }

    /// Counts an entry that had to leave, unless its time was over anyway.
    fn count_eviction(&self, record: &Header) {
        if record.stale_until_ms() > self.now_ms {
            self.counts.add(Count::Evicted);
        }
    }

    fn copy_to_main(
        &mut self,
        begin: Position,
        record: &[AtomicU64],
        cell: &AtomicU64,
        slot: Slot,
        freq: u64,
    ) {
        if self.main.append_copy(begin, record) {
            self.publish(cell, slot, Slot::new(slot.tag(), freq, Place::Main, begin));
            self.counts.add(Count::Moved);
        }
    }
}
