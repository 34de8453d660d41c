//! One shard's index: cache-line buckets of eight entries, two candidate buckets a key, partial-key cuckoo.
//!
//! Within the two buckets of a key there is at most one live entry with its tag: a tag match *is* the key as
//! far as the index can tell, and an insert replaces it. The second bucket follows from the first and the tag
//! alone, so an entry can be moved to its other bucket without its key, which lies on the SSD.

use crate::arena::Region;
use crate::entry::{Entry, State};
use crate::hash::KeyHash;

/// Entries of a bucket: one cache line.
pub(crate) const BUCKET_ENTRIES: usize = 8;

/// One cache line of entries.
#[repr(C, align(64))]
pub(crate) struct Bucket([Entry; BUCKET_ENTRIES]);

const _: () = assert!(size_of::<Bucket>() == 64);

/// Where an entry sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    bucket: u32,
    slot: u8,
}

/// What the index asks about entries it cannot judge itself.
pub(crate) trait Judge {
    /// False when the entry points at something that is gone (an SSD segment filled anew, expired or
    /// flushed).
    fn is_live(&self, entry: Entry) -> bool;
    /// Larger is older, for the choice of a victim.
    fn age(&self, entry: Entry) -> u64;
}

/// What an insert did besides inserting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// It took a slot that was empty.
    Fresh,
    /// It took the slot of an entry that was dead.
    OverDead(Entry),
    /// Both buckets were full of live entries: this one gave way.
    Evicted(Entry),
}

/// The index of one shard.
pub(crate) struct Index {
    buckets: Region<Bucket>,
}

fn other(count: u32, bucket: u32, tag: u16) -> u32 {
    let count = u64::from(count);
    let spread = (u64::from(tag) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let sum = (spread * count) >> 32;
    let other = sum + count - u64::from(bucket);
    (if other >= count { other - count } else { other }) as u32
}

/// The two buckets of a key in an index of `count`.
#[inline]
pub(crate) fn buckets_of(hash: KeyHash, count: u32) -> [u32; 2] {
    let first = hash.bucket(count);
    [first, other(count, first, hash.tag())]
}

impl Index {
    pub(crate) fn new(buckets: Region<Bucket>) -> Self {
        assert!(!buckets.is_empty() && u32::try_from(buckets.len()).is_ok());
        Index { buckets }
    }

    fn count(&self) -> u32 {
        self.buckets.len() as u32
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.buckets.len() as u64 * BUCKET_ENTRIES as u64
    }

    /// Where the buckets begin in memory and how many there are, to prefetch one without the shard's lock.
    pub(crate) fn span(&self) -> (usize, u32) {
        (self.buckets.as_ptr() as usize, self.count())
    }

    /// The other bucket of an entry with `tag` in `bucket`. Its own inverse.
    #[inline]
    fn other(&self, bucket: u32, tag: u16) -> u32 {
        other(self.count(), bucket, tag)
    }

    pub(crate) fn at(&self, slot: Slot) -> Entry {
        self.buckets[slot.bucket as usize].0[usize::from(slot.slot)]
    }

    #[inline]
    pub(crate) fn set(&mut self, slot: Slot, entry: Entry) {
        crate::crash::step();
        self.buckets[slot.bucket as usize].0[usize::from(slot.slot)] = entry;
    }

    fn find_in(&self, bucket: u32, tag: u16) -> Option<(Slot, Entry)> {
        let entries = &self.buckets[bucket as usize].0;
        let slot = entries.iter().position(|e| e.tag() == tag && e.state() != State::Empty)?;
        Some((Slot { bucket, slot: slot as u8 }, entries[slot]))
    }

    /// The one entry that may be the key's, dead or alive.
    #[inline]
    pub(crate) fn find(&self, hash: KeyHash) -> Option<(Slot, Entry)> {
        let (tag, first) = (hash.tag(), hash.bucket(self.count()));
        self.find_in(first, tag).or_else(|| self.find_in(self.other(first, tag), tag))
    }

    /// The entry that points exactly at `place` (hotness aside), if the key's entry does.
    pub(crate) fn find_place(&self, hash: KeyHash, place: Entry) -> Option<(Slot, Entry)> {
        self.find(hash).filter(|(_, entry)| entry.same_place(place))
    }

    /// Makes sure that an insert of the key would cost no live entry; false when it must.
    pub(crate) fn make_slot(&mut self, hash: KeyHash, judge: &impl Judge) -> bool {
        let both = buckets_of(hash, self.count());
        let free = |entry: &Entry| entry.state() == State::Empty || !judge.is_live(*entry);
        both.iter().any(|&bucket| self.buckets[bucket as usize].0.iter().any(free))
            || self.displace(both).is_some()
    }

    /// Adds an entry for a key that [`find`](Self::find) does not find.
    pub(crate) fn insert(&mut self, hash: KeyHash, entry: Entry, judge: &impl Judge) -> Inserted {
        debug_assert!(self.find(hash).is_none() && entry.tag() == hash.tag());
        let both = buckets_of(hash, self.count());
        for bucket in both {
            if let Some(slot) = self.empty_slot(bucket) {
                self.set(slot, entry);
                return Inserted::Fresh;
            }
        }
        for bucket in both {
            for slot in 0..BUCKET_ENTRIES as u8 {
                let slot = Slot { bucket, slot };
                let old = self.at(slot);
                if !judge.is_live(old) {
                    self.set(slot, entry);
                    return Inserted::OverDead(old);
                }
            }
        }
        if let Some(slot) = self.displace(both) {
            self.set(slot, entry);
            return Inserted::Fresh;
        }
        let mut victim = (Slot { bucket: both[0], slot: 0 }, 0);
        for bucket in both {
            for slot in 0..BUCKET_ENTRIES as u8 {
                let slot = Slot { bucket, slot };
                let age = judge.age(self.at(slot));
                if age >= victim.1 {
                    victim = (slot, age);
                }
            }
        }
        let old = self.at(victim.0);
        self.set(victim.0, entry);
        Inserted::Evicted(old)
    }

    fn empty_slot(&self, bucket: u32) -> Option<Slot> {
        let slot = self.buckets[bucket as usize].0.iter().position(|e| e.state() == State::Empty)?;
        Some(Slot { bucket, slot: slot as u8 })
    }

    /// Frees a slot in one of two full buckets by moving entries to their other buckets, at most two moves
    /// deep.
    fn displace(&mut self, both: [u32; 2]) -> Option<Slot> {
        for bucket in both {
            for slot in 0..BUCKET_ENTRIES as u8 {
                let from = Slot { bucket, slot };
                if let Some(to) = self.empty_slot(self.other(bucket, self.at(from).tag())) {
                    return Some(self.move_entry(from, to));
                }
            }
        }
        for bucket in both {
            for slot in 0..BUCKET_ENTRIES as u8 {
                let from = Slot { bucket, slot };
                let middle = self.other(bucket, self.at(from).tag());
                if both.contains(&middle) {
                    continue;
                }
                for slot in 0..BUCKET_ENTRIES as u8 {
                    let via = Slot { bucket: middle, slot };
                    let end = self.other(middle, self.at(via).tag());
                    if let Some(to) = self.empty_slot(end) {
                        self.move_entry(via, to);
                        return Some(self.move_entry(from, via));
                    }
                }
            }
        }
        None
    }

    fn move_entry(&mut self, from: Slot, to: Slot) -> Slot {
        let entry = self.at(from);
        self.set(to, entry);
        self.set(from, Entry::EMPTY);
        from
    }

    /// Whether one entry could stand for either key: same tag, same two buckets.
    pub(crate) fn are_rivals(&self, one: KeyHash, two: KeyHash) -> bool {
        let (first, second) = (one.bucket(self.count()), two.bucket(self.count()));
        one.tag() == two.tag() && (first == second || self.other(first, one.tag()) == second)
    }

    /// Every entry that is not empty.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.buckets.iter().flat_map(|bucket| bucket.0).filter(|entry| entry.state() != State::Empty)
    }

    /// Empties every entry that `keep` does not want; answers how many stay.
    pub(crate) fn keep(&mut self, mut keep: impl FnMut(Entry) -> bool) -> u64 {
        let mut kept = 0;
        for entry in self.buckets.iter_mut().flat_map(|bucket| &mut bucket.0) {
            if entry.state() == State::Empty {
                continue;
            }
            if keep(*entry) {
                kept += 1;
            } else {
                *entry = Entry::EMPTY;
            }
        }
        kept
    }

    /// Empties every entry.
    pub(crate) fn clear(&mut self) {
        for bucket in self.buckets.iter_mut() {
            crate::crash::step();
            bucket.0 = [Entry::EMPTY; BUCKET_ENTRIES];
        }
    }

    /// Empties the second of two equal entries, as a move that was interrupted leaves them. False if a key could
    /// have two entries that differ: no interrupted change leaves such.
    pub(crate) fn end_move(&mut self) -> bool {
        for bucket in 0..self.count() {
            for slot in 0..BUCKET_ENTRIES as u8 {
                let entry = self.at(Slot { bucket, slot });
                if entry.state() == State::Empty {
                    continue;
                }
                let other = self.other(bucket, entry.tag());
                let here = (slot + 1..BUCKET_ENTRIES as u8).map(|slot| Slot { bucket, slot });
                let there = (0..BUCKET_ENTRIES as u8).map(|slot| Slot { bucket: other, slot });
                for rival in here.chain(there.filter(|_| other > bucket)) {
                    let second = self.at(rival);
                    if second.state() == State::Empty || second.tag() != entry.tag() {
                        continue;
                    }
                    if second != entry {
                        return false;
                    }
                    self.set(rival, Entry::EMPTY);
                }
            }
        }
        true
    }

    /// Empties every entry of one bucket that `dead` says is dead; answers how many.
    pub(crate) fn sweep(&mut self, bucket: u32, mut dead: impl FnMut(Entry) -> bool) -> u32 {
        let mut swept = 0;
        for entry in &mut self.buckets[bucket as usize].0 {
            if entry.state() != State::Empty && dead(*entry) {
                crate::crash::step();
                *entry = Entry::EMPTY;
                swept += 1;
            }
        }
        swept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use crate::hash::Hasher;

    struct AllLive;
    impl Judge for AllLive {
        fn is_live(&self, _: Entry) -> bool {
            true
        }
        fn age(&self, entry: Entry) -> u64 {
            entry.ram_offset()
        }
    }

    fn index(buckets: usize) -> Index {
        Index::new(Arena::new(buckets * 64 + 4096, None).expect("memory").carve(buckets))
    }

    #[test]
    fn the_other_bucket_of_the_other_bucket_is_the_first() {
        for buckets in [1, 2, 3, 1000, 65_537] {
            let index = index(buckets);
            for tag in (0..=u16::MAX).step_by(97) {
                for bucket in [0, buckets as u32 / 2, buckets as u32 - 1] {
                    let other = index.other(bucket, tag);
                    assert!((other as usize) < buckets);
                    assert_eq!(index.other(other, tag), bucket);
                }
            }
        }
    }

    /// What an item costs in RAM rests on this: eight bytes an entry over the fill reached before anything
    /// gives way.
    #[test]
    fn fills_to_95_percent_before_the_first_entry_gives_way() {
        let mut index = index(4000);
        let hasher = Hasher::new(42);
        let mut inserted = 0_u64;
        for key in 0_u64.. {
            let hash = hasher.hash(&key.to_le_bytes());
            if index.find(hash).is_some() {
                continue;
            }
            if let Inserted::Evicted(_) =
                index.insert(hash, Entry::ram(hash.tag(), 0, State::Ram, key * 8), &AllLive)
            {
                break;
            }
            inserted += 1;
        }
        let fill = inserted as f64 / index.capacity() as f64;
        assert!(fill > 0.95, "only {fill:.3} full");
    }

    #[test]
    fn the_oldest_of_both_buckets_gives_way() {
        let mut index = index(1);
        let hasher = Hasher::new(1);
        let mut first = None;
        for key in 0_u64.. {
            let hash = hasher.hash(&key.to_le_bytes());
            if index.find(hash).is_some() {
                continue;
            }
            // The age is the offset, so the first key is the oldest.
            let entry = Entry::ram(hash.tag(), 0, State::Ram, (1_000_000 - key) * 8);
            first.get_or_insert(entry);
            if let Inserted::Evicted(old) = index.insert(hash, entry, &AllLive) {
                assert_eq!(Some(old), first);
                return;
            }
        }
    }
}
