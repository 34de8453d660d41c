//! One shard's index: cache-line buckets of eight entries, two candidate buckets a key, partial-key cuckoo.
//!
//! Within the two buckets of a key there is at most one live entry with its tag: a tag match *is* the key as
//! far as the index can tell, and an insert replaces it. The second bucket follows from the first and what the
//! entry holds, so an entry can be moved to its other bucket without its key, which may lie on the SSD. As items
//! come and go, the index [grows and shrinks](Shape).

pub(crate) mod entry;
pub(crate) mod hash;
mod shape;

use crate::arena::Strided;
use crate::index::entry::{Entry, State, identity};
use crate::index::hash::KeyHash;
use zerocopy::FromBytes;

pub(crate) use shape::Shape;

/// Entries of a bucket: one cache line.
pub(crate) const BUCKET_ENTRIES: usize = 8;

/// One cache line of entries.
#[derive(FromBytes)]
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
    /// As many as it may grow to.
    buckets: Strided<Bucket>,
    shape: Shape,
    /// The bits of an entry that tell whose it is: those that its bucket was chosen by must be among them.
    identity: u64,
    /// The walk over all entries that is under way, if there is one.
    walk: Option<Walk>,
}

/// A walk over the buckets, between two steps.
struct Walk {
    /// The bucket to go on with.
    next: u32,
    /// Slots before it to which entries have been moved since the last step.
    moved: Vec<Slot>,
}

/// Moves between two steps of a walk from which on it begins anew: a bound on memory.
const WALK_MOVES_MAX: usize = 1 << 14;

impl Index {
    /// An index of `base` buckets, which may grow to as many as there are, if they are granted: fewer than the base
    /// times `1 << part_bits`, the bits of a part that its entries have.
    pub(crate) fn new(buckets: Strided<Bucket>, base: u32, part_bits: u32) -> Self {
        let most = buckets.most();
        assert!(base > 0 && base as usize <= most && u32::try_from(most).is_ok());
        assert!(base as usize == most || most / (base as usize) < 1 << part_bits);
        Index { buckets, shape: Shape::new(base, base), identity: identity(part_bits), walk: None }
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// How many buckets are in use.
    pub(crate) fn count(&self) -> u32 {
        self.shape.count()
    }

    /// Whether there are buckets that are not in use.
    #[inline]
    pub(crate) fn may_grow(&self) -> bool {
        (self.count() as usize) < self.buckets.most()
    }

    /// How many entries the buckets in use have room for.
    pub(crate) fn capacity(&self) -> u64 {
        u64::from(self.count()) * BUCKET_ENTRIES as u64
    }

    /// What the buckets in use take, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.count()) * size_of::<Bucket>() as u64
    }

    /// Goes on with an index that an earlier process had let grow to `count` buckets. Returns false, and changes
    /// nothing, if it cannot have.
    pub(crate) fn resume(&mut self, count: u64) -> bool {
        let is_possible = count >= u64::from(self.shape.base()) && count <= self.buckets.most() as u64;
        let is_possible = is_possible && self.buckets.resize(count as usize);
        if is_possible {
            self.shape = Shape::new(self.shape.base(), count as u32);
        }
        is_possible
    }

    /// Fills the next bucket with the entries that it takes over, before it is in use. Returns false if it is not
    /// granted.
    pub(crate) fn begin_split(&mut self) -> bool {
        if !self.may_grow() || !self.buckets.resize(self.count() as usize + 1) {
            return false;
        }
        let (from, bit) = self.shape.next_split();
        let moves = |entry: Entry| if entry.part() & bit != 0 { entry } else { Entry::EMPTY };
        let moved = self.bucket(from).0.map(moves);
        crate::crash::step();
        self.buckets.get_mut(self.shape.count() as usize).0 = moved;
        true
    }

    /// Takes the next bucket into use.
    pub(crate) fn end_split(&mut self) {
        self.shape = self.shape.grow();
        self.clear_moved();
    }

    /// Clears what the last bucket has taken over where it was.
    pub(crate) fn clear_moved(&mut self) {
        let Some(before) = self.shape.shrink() else { return };
        let (from, bit) = before.next_split();
        for entry in &mut self.buckets.get_mut(from as usize).0 {
            if entry.part() & bit != 0 {
                crate::crash::step();
                *entry = Entry::EMPTY;
            }
        }
    }

    /// Returns the two buckets that become one when the index shrinks by one: the last one, and the one that its
    /// entries are from. `None` if it has its first size.
    pub(crate) fn next_merge(&self) -> Option<(u32, u32)> {
        let (to, _) = self.shape.shrink()?.next_split();
        Some((self.count() - 1, to))
    }

    /// Copies the entries of the last bucket to the one that they are from, before the last one is given up. Returns
    /// false if there is no room for them. At every instant the index is as after a split that was not ended.
    pub(crate) fn begin_merge(&mut self) -> bool {
        let Some((last, to)) = self.next_merge() else { return false };
        while self.entries_in(last) + self.entries_in(to) > BUCKET_ENTRIES {
            if !self.move_one_out([last, to]) && !self.move_two_out([last, to]) {
                return false;
            }
        }
        for entry in self.bucket(last).0.into_iter().filter(|entry| entry.state() != State::Empty) {
            let Some(slot) = self.empty_slot(to) else { return false };
            self.set(slot, entry);
            self.note_moved(slot);
        }
        true
    }

    /// Gives up the last bucket.
    pub(crate) fn end_merge(&mut self) {
        if let Some(shape) = self.shape.shrink() {
            self.shape = shape;
            let is_fewer = self.buckets.resize(shape.count() as usize);
            debug_assert!(is_fewer, "fewer are always granted");
        }
    }

    fn entries_in(&self, bucket: u32) -> usize {
        self.bucket(bucket).0.iter().filter(|entry| entry.state() != State::Empty).count()
    }

    /// Moves an entry of one of two buckets to its other bucket, if that is a third one with room.
    fn move_one_out(&mut self, both: [u32; 2]) -> bool {
        self.ways_out(both, both).any(|(from, other)| {
            let to = self.empty_slot(other);
            to.map(|to| self.move_entry(from, to)).is_some()
        })
    }

    /// The same, with an entry of the third bucket making room.
    fn move_two_out(&mut self, both: [u32; 2]) -> bool {
        self.ways_out(both, both).any(|(from, other)| {
            self.ways_out([other; 2], both).any(|(via, end)| {
                let to = self.empty_slot(end).filter(|_| end != other);
                let freed = to.map(|to| self.move_entry(via, to));
                freed.map(|via| self.move_entry(from, via)).is_some()
            })
        })
    }

    /// Returns the entries of two buckets that could move to a bucket other than those in `not`, and that bucket.
    fn ways_out(&self, both: [u32; 2], not: [u32; 2]) -> impl Iterator<Item = (Slot, u32)> + use<> {
        let slots = both
            .into_iter()
            .flat_map(|bucket| (0..BUCKET_ENTRIES as u8).map(move |slot| Slot { bucket, slot }));
        let ways: [Option<(Slot, u32)>; 2 * BUCKET_ENTRIES] = {
            let mut ways = [None; 2 * BUCKET_ENTRIES];
            for (way, from) in ways.iter_mut().zip(slots) {
                let entry = self.at(from);
                let other = self.shape.other(from.bucket, entry);
                *way = (entry.state() != State::Empty && !not.contains(&other)).then_some((from, other));
            }
            ways
        };
        ways.into_iter().flatten()
    }

    /// Where the first bucket is in memory, and how many bytes lie between one and the next.
    pub(crate) fn address(&self) -> (usize, usize) {
        self.buckets.address()
    }

    #[inline]
    fn bucket(&self, bucket: u32) -> &Bucket {
        self.buckets.get(bucket as usize)
    }

    pub(crate) fn at(&self, slot: Slot) -> Entry {
        self.bucket(slot.bucket).0[usize::from(slot.slot)]
    }

    #[inline]
    pub(crate) fn set(&mut self, slot: Slot, entry: Entry) {
        crate::crash::step();
        self.buckets.get_mut(slot.bucket as usize).0[usize::from(slot.slot)] = entry;
    }

    fn find_in(&self, bucket: u32, hash_bits: u64) -> Option<(Slot, Entry)> {
        let (entries, identity) = (&self.bucket(bucket).0, self.identity);
        let is_it = |entry: &Entry| (entry.0 ^ hash_bits) & identity == 0 && entry.state() != State::Empty;
        let slot = entries.iter().position(is_it)?;
        Some((Slot { bucket, slot: slot as u8 }, entries[slot]))
    }

    /// The one entry that may be the key's, dead or alive.
    #[inline]
    pub(crate) fn find(&self, hash: KeyHash) -> Option<(Slot, Entry)> {
        let hash_bits = Entry::of_hash(hash);
        self.find_in(self.shape.bucket(hash), hash_bits)
            .or_else(|| self.find_in(self.shape.other_bucket(hash), hash_bits))
    }

    /// The entry that points exactly at `place` (frequency aside), if the key's entry does.
    pub(crate) fn find_place(&self, hash: KeyHash, place: Entry) -> Option<(Slot, Entry)> {
        self.find(hash).filter(|(_, entry)| entry.same_place(place))
    }

    /// The two buckets of a key.
    pub(crate) fn buckets_of(&self, hash: KeyHash) -> [u32; 2] {
        [self.shape.bucket(hash), self.shape.other_bucket(hash)]
    }

    /// Makes sure that an insert of the key would cost no live entry; false when it must.
    pub(crate) fn make_slot(&mut self, hash: KeyHash, judge: &impl Judge) -> bool {
        let both = self.buckets_of(hash);
        let free = |entry: &Entry| entry.state() == State::Empty || !judge.is_live(*entry);
        both.iter().any(|&bucket| self.bucket(bucket).0.iter().any(free))
            || self.displace_one(both).is_some()
            || self.displace_two(both).is_some()
    }

    /// Adds an entry for a key that [`find`](Self::find) does not find, where it takes no more than moving another
    /// entry. `None` if it does.
    pub(crate) fn try_insert(&mut self, hash: KeyHash, entry: Entry, judge: &impl Judge) -> Option<Inserted> {
        debug_assert!(self.find(hash).is_none() && entry.tag() == hash.tag());
        let both = self.buckets_of(hash);
        for bucket in both {
            if let Some(slot) = self.empty_slot(bucket) {
                self.set(slot, entry);
                return Some(Inserted::Fresh);
            }
        }
        for bucket in both {
            for slot in 0..BUCKET_ENTRIES as u8 {
                let slot = Slot { bucket, slot };
                let old = self.at(slot);
                if !judge.is_live(old) {
                    self.set(slot, entry);
                    return Some(Inserted::OverDead(old));
                }
            }
        }
        let slot = self.displace_one(both)?;
        self.set(slot, entry);
        Some(Inserted::Fresh)
    }

    /// Adds an entry for a key that [`find`](Self::find) does not find; if there is no room, the oldest entry gives
    /// way.
    pub(crate) fn insert(&mut self, hash: KeyHash, entry: Entry, judge: &impl Judge) -> Inserted {
        if let Some(inserted) = self.try_insert(hash, entry, judge) {
            return inserted;
        }
        let both = self.buckets_of(hash);
        if let Some(slot) = self.displace_two(both) {
            self.set(slot, entry);
            return Inserted::Fresh;
        }
        // Of several that are as old any one may go, and not always the last that came.
        let first = usize::from(hash.part());
        let slots = (first..first + 2 * BUCKET_ENTRIES)
            .map(|n| Slot { bucket: both[n / BUCKET_ENTRIES % 2], slot: (n % BUCKET_ENTRIES) as u8 });
        let oldest = slots.max_by_key(|slot| judge.age(self.at(*slot))).expect("two buckets have slots");
        let old = self.at(oldest);
        self.set(oldest, entry);
        Inserted::Evicted(old)
    }

    fn empty_slot(&self, bucket: u32) -> Option<Slot> {
        let slot = self.bucket(bucket).0.iter().position(|e| e.state() == State::Empty)?;
        Some(Slot { bucket, slot: slot as u8 })
    }

    /// Returns the buckets to which the entries of two buckets could move.
    pub(crate) fn around(&self, both: [u32; 2]) -> [u32; 2 * BUCKET_ENTRIES] {
        std::array::from_fn(|nth| {
            let from = Slot { bucket: both[nth / BUCKET_ENTRIES], slot: (nth % BUCKET_ENTRIES) as u8 };
            self.shape.other(from.bucket, self.at(from))
        })
    }

    /// Frees a slot in one of two full buckets by moving one of its entries to its other bucket.
    fn displace_one(&mut self, both: [u32; 2]) -> Option<Slot> {
        for bucket in both {
            for slot in 0..BUCKET_ENTRIES as u8 {
                let from = Slot { bucket, slot };
                if let Some(to) = self.empty_slot(self.shape.other(bucket, self.at(from))) {
                    return Some(self.move_entry(from, to));
                }
            }
        }
        None
    }

    /// The same, with another entry making room in that bucket.
    fn displace_two(&mut self, both: [u32; 2]) -> Option<Slot> {
        for bucket in both {
            for slot in 0..BUCKET_ENTRIES as u8 {
                let from = Slot { bucket, slot };
                let middle = self.shape.other(bucket, self.at(from));
                if both.contains(&middle) {
                    continue;
                }
                for slot in 0..BUCKET_ENTRIES as u8 {
                    let via = Slot { bucket: middle, slot };
                    let end = self.shape.other(middle, self.at(via));
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
        self.note_moved(to);
        from
    }

    /// Tells a walk that is under way of an entry that has moved behind it.
    fn note_moved(&mut self, to: Slot) {
        if let Some(walk) = &mut self.walk
            && to.bucket < walk.next
            && walk.moved.len() < WALK_MOVES_MAX
        {
            walk.moved.push(to);
        }
    }

    /// Returns the entries of the next buckets, empty ones included, and the bucket to go on with; `None` at the end.
    /// A walk from bucket 0 on returns every entry that is there all the time: entries that move to buckets behind
    /// it are returned by the next step. There is one walk at a time.
    pub(crate) fn walk(&mut self, from: u32, most: u32) -> (Vec<Entry>, Option<u32>) {
        let walk = self.walk.take().filter(|walk| walk.next == from && walk.moved.len() < WALK_MOVES_MAX);
        let (from, moved) = walk.map_or((0, Vec::new()), |walk| (walk.next, walk.moved));
        let end = self.count().min(from + most);
        let moved = moved.into_iter().filter(|slot| slot.bucket < self.count());
        let mut entries: Vec<Entry> = moved.map(|slot| self.at(slot)).collect();
        entries.extend((from..end).flat_map(|bucket| self.bucket(bucket).0));
        let next = (end < self.count()).then_some(end);
        self.walk = next.map(|next| Walk { next, moved: Vec::new() });
        (entries, next)
    }

    /// Whether one entry could stand for either key: same bits in it, same two buckets.
    pub(crate) fn are_rivals(&self, one: KeyHash, two: KeyHash) -> bool {
        (Entry::of_hash(one) ^ Entry::of_hash(two)) & self.identity == 0 && self.shape.share_buckets(one, two)
    }

    /// Every entry that is not empty.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        (0..self.count())
            .flat_map(|bucket| self.bucket(bucket).0)
            .filter(|entry| entry.state() != State::Empty)
    }

    /// Empties every entry that `keep` does not want; returns how many stay.
    pub(crate) fn keep(&mut self, mut keep: impl FnMut(Entry) -> bool) -> u64 {
        let mut kept = 0;
        for bucket in 0..self.count() {
            for entry in &mut self.buckets.get_mut(bucket as usize).0 {
                if entry.state() == State::Empty {
                    continue;
                }
                if keep(*entry) {
                    kept += 1;
                } else {
                    *entry = Entry::EMPTY;
                }
            }
        }
        kept
    }

    /// Empties every entry.
    pub(crate) fn clear(&mut self) {
        for bucket in 0..self.count() {
            crate::crash::step();
            self.buckets.get_mut(bucket as usize).0 = [Entry::EMPTY; BUCKET_ENTRIES];
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
                let other = self.shape.other(bucket, entry);
                let here = (slot + 1..BUCKET_ENTRIES as u8).map(|slot| Slot { bucket, slot });
                let there = (0..BUCKET_ENTRIES as u8).map(|slot| Slot { bucket: other, slot });
                for rival in here.chain(there.filter(|_| other > bucket)) {
                    let second = self.at(rival);
                    if second.state() == State::Empty || (second.0 ^ entry.0) & self.identity != 0 {
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

    /// Empties every entry of one bucket that `dead` says is dead; returns how many.
    pub(crate) fn sweep(&mut self, bucket: u32, mut dead: impl FnMut(Entry) -> bool) -> u32 {
        let mut swept = 0;
        for entry in &mut self.buckets.get_mut(bucket as usize).0 {
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
    use crate::index::hash::Hasher;

    struct AllLive;
    impl Judge for AllLive {
        fn is_live(&self, _: Entry) -> bool {
            true
        }
        fn age(&self, entry: Entry) -> u64 {
            entry.ram_offset()
        }
    }

    fn index(buckets: usize, base: u32) -> Index {
        let mut arena = Arena::new(buckets * 64 + 4096, None).expect("memory");
        Index::new(arena.carve_strided(buckets, buckets, 1).0.remove(0), base, 6)
    }

    /// What an item costs in RAM rests on this: eight bytes an entry over the fill reached before anything
    /// gives way.
    #[test]
    fn fills_to_95_percent_before_the_first_entry_gives_way() {
        let mut index = index(4000, 4000);
        let hasher = Hasher::new(42);
        let mut inserted = 0_u64;
        for key in 0_u64.. {
            let hash = hasher.hash(&key.to_le_bytes());
            if index.find(hash).is_some() {
                continue;
            }
            if let Inserted::Evicted(_) =
                index.insert(hash, Entry::ram(hash, 0, State::Ram, key * 8), &AllLive)
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
        let mut index = index(1, 1);
        let hasher = Hasher::new(1);
        let mut first = None;
        for key in 0_u64.. {
            let hash = hasher.hash(&key.to_le_bytes());
            if index.find(hash).is_some() {
                continue;
            }
            // The age is the offset, so the first key is the oldest.
            let entry = Entry::ram(hash, 0, State::Ram, (1_000_000 - key) * 8);
            first.get_or_insert(entry);
            if let Inserted::Evicted(old) = index.insert(hash, entry, &AllLive) {
                assert_eq!(Some(old), first);
                return;
            }
        }
    }

    #[test]
    fn nothing_gives_way_while_an_index_grows_and_all_that_it_holds_is_found() {
        let hasher = Hasher::new(9);
        let mut index = index(16_000, 1_000);
        let mut stored = Vec::new();
        for key in 0_u64.. {
            let hash = hasher.hash(&key.to_le_bytes());
            if index.find(hash).is_some() {
                continue;
            }
            if stored.len() as u64 * 100 > index.capacity() * crate::shard::resize::INDEX_FILL_PERCENT {
                if !index.may_grow() {
                    break;
                }
                assert!(index.begin_split());
                index.end_split();
            }
            let entry = Entry::ram(hash, 0, State::Ram, key * 8);
            assert_eq!(index.insert(hash, entry, &AllLive), Inserted::Fresh, "at {} buckets", index.count());
            stored.push((hash, entry));
        }
        assert!(stored.iter().all(|(hash, entry)| index.find_place(*hash, *entry).is_some()));
        assert_eq!(index.entries().count(), stored.len());
        let mut again = index;
        assert!(!again.resume(999) && !again.resume(16_001) && again.resume(16_000));
        assert!(stored.iter().all(|(hash, entry)| again.find_place(*hash, *entry).is_some()));
    }

    #[test]
    fn nothing_is_lost_while_an_index_shrinks_below_what_it_grows_at() {
        let hasher = Hasher::new(11);
        let mut index = index(12_000, 1_000);
        assert!(index.resume(12_000));
        let mut stored = Vec::new();
        for key in 0_u64..12_000 * 8 * 65 / 100 {
            let hash = hasher.hash(&key.to_le_bytes());
            if index.find(hash).is_none() {
                let entry = Entry::ram(hash, 0, State::Ram, key * 8);
                index.insert(hash, entry, &AllLive);
                stored.push((hash, entry));
            }
        }
        while stored.len() > 2_000 {
            // Some go, and the index follows.
            for _ in 0..200 {
                let (hash, entry) = stored.swap_remove(stored.len() * 7 / 10);
                let (slot, _) = index.find_place(hash, entry).expect("it was stored");
                index.set(slot, Entry::EMPTY);
            }
            while index.count() > 1_000 && stored.len() as u64 * 100 < index.capacity() * 70 {
                assert!(index.begin_merge(), "{} entries in {} buckets", stored.len(), index.count());
                index.end_merge();
            }
            assert!(stored.iter().all(|(hash, entry)| index.find_place(*hash, *entry).is_some()));
            assert_eq!(index.entries().count(), stored.len());
        }
        assert_eq!((index.count(), index.next_merge()), (1_000, None));
    }
}
