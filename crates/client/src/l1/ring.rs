//! A ring of words that records are appended to, and the rules by which it is read and overwritten.
//!
//! ```text
//!   0        head                       reclaimed                    len
//!   |---------|- - - - - - - - - - - - - - -|---------------------------|
//!    lap n+1    free: being written to,       records of lap n
//!               or about to be
//! ```
//! The holder of the shard's lock moves `reclaimed` on before it writes to the words in front of it, and moves
//! `head` on after it has written. So at every instant, whatever the writer was doing when it was killed:
//!
//! - from `reclaimed` to `head` there are whole records and fillers, one behind the other;
//! - a reader that has copied a record and *then* finds `reclaimed` at or before it has copied no word of a later
//!   record.
//!
//! For the second, a writer has a release fence between its store of `reclaimed` and its stores of words, and a
//! reader an acquire fence between its loads of words and its load of `reclaimed`: a reader that has seen one of
//! those words also sees that store.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::fence;

use super::crash;
use super::entry::KEY_BYTES_MAX;
use super::mapping::STRING_BYTES_MIN;
use super::position::{LAPS_MAX, Position};
use super::record::{FRESH_WORD, HEADER_WORDS, Header};
use super::slot::Slot;
use super::words::{copy_in, copy_out, copy_within, hold, words_of};

// A key is compared by whole words, with zeros behind it.
const _: () = assert!(KEY_BYTES_MAX < STRING_BYTES_MIN);

/// One ring of a shard.
#[derive(Clone, Copy)]
pub(super) struct Ring<'a> {
    pub(super) words: &'a [AtomicU64],
    pub(super) head: &'a AtomicU64,
    pub(super) reclaimed: &'a AtomicU64,
}

/// The result of following a slot.
pub(super) enum Found {
    /// The key's record; its value is copied.
    Record(Header),
    /// Another key's record, or none that verifies.
    Other,
    /// The record was being overwritten.
    Reclaimed,
}

/// The oldest thing in a ring.
pub(super) enum Tail {
    /// There is none.
    Empty,
    /// Words that are not used, up to this position.
    Filler(Position),
    /// A record.
    Record(Header),
    /// Words that no writer leaves: the memory was damaged.
    Broken,
}

impl<'a> Ring<'a> {
    /// Copies the value of the key's record to `value`, if the slot leads to it. Takes no lock and does not wait.
    #[inline]
    pub(super) fn read(&self, slot: Slot, hash: u64, key: &[u8], value: &mut Vec<u8>) -> Found {
        let Some(record) = self.words.get(slot.offset()..) else { return Found::Other };
        let Some(header) = header_of(record) else { return Found::Other };
        if !slot.leads_to(header.position()) || header.hash() != hash || header.key_len() != key.len() {
            return self.other(slot);
        }
        let (key_words, value_words) = (words_of(key.len()), words_of(header.value_len()));
        let (key_at, value_at) = (HEADER_WORDS, HEADER_WORDS + key_words);
        let Some(words) = record.get(value_at..value_at + value_words) else { return Found::Other };
        if !hold(&record[key_at..value_at], key) {
            return self.other(slot);
        }
        value.resize(header.value_len(), 0);
        copy_out(words, value);
        fence(Acquire);
        if header.position() < self.reclaimed() {
            return Found::Reclaimed;
        }
        if header.verifies(value) { Found::Record(header) } else { Found::Other }
    }

    /// Tells a slot that leads to another key's record from one whose record is being overwritten.
    #[cold]
    fn other(&self, slot: Slot) -> Found {
        fence(Acquire);
        if self.is_behind(slot) { Found::Reclaimed } else { Found::Other }
    }

    /// Returns whether the slot's position has been reclaimed within the last 32,768 laps.
    pub(super) fn is_behind(&self, slot: Slot) -> bool {
        let reclaimed = self.reclaimed();
        match slot.laps_to(reclaimed.lap()) {
            0 => slot.offset() < reclaimed.offset(),
            laps => laps < 1 << 15,
        }
    }

    pub(super) fn head(&self) -> Position {
        Position(self.head.load(Relaxed))
    }

    #[inline]
    pub(super) fn reclaimed(&self) -> Position {
        Position(self.reclaimed.load(Relaxed))
    }

    /// Returns whether a record may be at the position: it was written, and not reclaimed. For the holder of the
    /// lock.
    pub(super) fn has(&self, slot: Slot) -> bool {
        let header = self.words.get(slot.offset()..).and_then(header_of);
        header.is_some_and(|header| {
            let position = header.position();
            slot.leads_to(position) && self.reclaimed() <= position && position < self.head()
        })
    }

    /// Returns the key's record at the slot. For the holder of the lock.
    pub(super) fn record_of(&self, slot: Slot, hash: u64, key: &[u8]) -> Option<Header> {
        let record = self.words.get(slot.offset()..)?;
        let header = header_of(record)?;
        let key_words = record.get(HEADER_WORDS..HEADER_WORDS + words_of(key.len()))?;
        let is_it =
            self.has(slot) && header.hash() == hash && header.key_len() == key.len() && hold(key_words, key);
        is_it.then_some(header)
    }

    /// Returns whether a slot leads to a record of a key with this hash.
    pub(super) fn is_of_hash(&self, slot: Slot, hash: u64) -> bool {
        let header = self.words.get(slot.offset()..).and_then(header_of);
        self.has(slot) && header.is_some_and(|header| header.hash() == hash)
    }

    /// Empties the ring and moves it two laps on, past every position that a writer which lost its lock could still
    /// publish.
    pub(super) fn reset(&self) {
        let lap = self.head().lap().max(self.reclaimed().lap());
        let begin = if lap + 2 < LAPS_MAX { Position::new(lap + 2, 0) } else { Position::FIRST };
        crash::step();
        self.head.store(begin.0, Release);
        crash::step();
        self.reclaimed.store(begin.0, Release);
    }

    /// Returns a writer that knows the current head.
    pub(super) fn writer(self) -> RingWriter<'a> {
        RingWriter { ring: self, head: self.head() }
    }

    /// The words of a record that [`RingWriter::tail`] has returned.
    pub(super) fn words_at(&self, header: &Header) -> &'a [AtomicU64] {
        &self.words[header.position().offset()..][..header.words()]
    }

    /// The word of a record that says until when it is fresh.
    pub(super) fn fresh_word(&self, header: &Header) -> &'a AtomicU64 {
        &self.words[header.position().offset() + FRESH_WORD]
    }
}

/// A ring for the holder of the shard's lock. It knows the head by itself: where another has taken the lock and
/// moved the head on, nothing more becomes part of the ring.
pub(super) struct RingWriter<'a> {
    pub(super) ring: Ring<'a>,
    head: Position,
}

impl RingWriter<'_> {
    /// Returns whether the bounds are plausible.
    pub(super) fn is_sound(&self) -> bool {
        let (head, reclaimed, len) = (self.head, self.ring.reclaimed(), self.ring.words.len());
        let is_inside = head.offset() <= len && reclaimed.offset() <= len;
        is_inside && reclaimed.words_to(head, len).is_some() && reclaimed.lap() > 0 && head.lap() < LAPS_MAX
    }

    /// Returns where a record of so many words would begin, if there is room for it: words that are reclaimed. A ring
    /// without records has room for half of its words.
    pub(super) fn room(&self, words: usize) -> Option<Position> {
        let (head, len) = (self.head, self.ring.words.len());
        let used = self.ring.reclaimed().words_to(head, len)?;
        let rest = len - head.offset();
        let (begin, needed) = if words <= rest { (head, words) } else { (head.next_lap(), rest + words) };
        (needed <= len - used).then_some(begin)
    }

    /// Returns the oldest thing in the ring.
    pub(super) fn tail(&self) -> Tail {
        let (at, head) = (self.ring.reclaimed(), self.head);
        if at == head {
            return Tail::Empty;
        }
        if at.words_to(head, self.ring.words.len()).is_none() {
            return Tail::Broken;
        }
        if at.offset() >= self.ring.words.len() || self.ring.words[at.offset()].load(Relaxed) == at.filler() {
            return if at.next_lap() <= head { Tail::Filler(at.next_lap()) } else { Tail::Broken };
        }
        match header_of(&self.ring.words[at.offset()..]) {
            Some(header) if header.position() == at && self.holds(at, header.words()) => Tail::Record(header),
            _ => Tail::Broken,
        }
    }

    fn holds(&self, at: Position, words: usize) -> bool {
        let written = at.words_to(self.head, self.ring.words.len());
        at.offset() + words <= self.ring.words.len() && written.is_some_and(|written| words <= written)
    }

    /// Gives up everything before the position.
    pub(super) fn reclaim_to(&self, position: Position) {
        crash::step();
        self.ring.reclaimed.fetch_max(position.0, Relaxed);
    }

    /// Writes a record at `begin`, which [`RingWriter::room`] has returned. Returns whether it is part of the ring;
    /// it is not where another writer has taken the lock meanwhile.
    pub(super) fn append(&mut self, begin: Position, header: &Header, key: &[u8], value: &[u8]) -> bool {
        self.begin(begin);
        let record = &self.ring.words[begin.offset()..begin.offset() + header.words()];
        let (front, value_words) = record.split_at(HEADER_WORDS + words_of(key.len()));
        crash::step();
        record[0].store(begin.0, Relaxed);
        store_header(front, header);
        copy_in(&front[HEADER_WORDS..], key);
        copy_in(value_words, value);
        self.end(begin.plus(header.words()))
    }

    /// Copies a record, of this ring or another, to `begin`, as [`RingWriter::append`]. In its own ring the
    /// record must have been given up before: the two may overlap.
    pub(super) fn append_copy(&mut self, begin: Position, from: &[AtomicU64]) -> bool {
        self.begin(begin);
        let record = &self.ring.words[begin.offset()..begin.offset() + from.len()];
        crash::step();
        record[0].store(begin.0, Relaxed);
        if !std::ptr::eq(record.as_ptr(), from.as_ptr()) {
            copy_within(&from[1..], &record[1..]);
        }
        self.end(begin.plus(from.len()))
    }

    /// Makes readers of what lay here before notice; marks the rest of the lap as not used where `begin` is in the
    /// next.
    fn begin(&self, begin: Position) {
        fence(Release);
        if let (true, Some(word)) = (begin != self.head, self.ring.words.get(self.head.offset())) {
            crash::step();
            word.store(self.head.filler(), Relaxed);
        }
    }

    fn end(&mut self, end: Position) -> bool {
        crash::step();
        let is_mine = self.ring.head.compare_exchange(self.head.0, end.0, Release, Relaxed).is_ok();
        self.head = end;
        is_mine
    }
}

#[inline]
fn header_of(record: &[AtomicU64]) -> Option<Header> {
    let words: &[AtomicU64; HEADER_WORDS] = record.first_chunk()?;
    Some(Header(std::array::from_fn(|at| words[at].load(Relaxed))))
}

fn store_header(record: &[AtomicU64], header: &Header) {
    for (word, value) in record.iter().zip(header.0).skip(1) {
        crash::step();
        word.store(value, Relaxed);
    }
}
