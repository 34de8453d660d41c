//! The items of a shadow, by a hash of 32 bits: what the policy asks of an item, and no key or value.

/// Where an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In a queue of RAM, at this position.
    Ram { queue: usize, position: u32 },
    /// In a segment of the SSD, in one generation of it.
    Ssd(SsdPlace),
}

/// A segment of the SSD, and which generation of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SsdPlace {
    pub segment: u16,
    pub generation: u16,
}

const SSD_BIT: u32 = 1 << 31;
const QUEUE_SHIFT: u32 = 30;
/// Positions in a queue are counted modulo this.
pub(super) const POSITIONS: u32 = 1 << QUEUE_SHIFT;
const SEGMENT_SHIFT: u32 = 16;
/// The most segments that a place can tell apart.
pub(super) const SEGMENTS_MAX: u16 = 1 << 14;

impl Place {
    fn to_word(self) -> u32 {
        match self {
            Place::Ram { queue, position } => ((queue as u32) << QUEUE_SHIFT) + position % POSITIONS,
            Place::Ssd(place) => SSD_BIT | place.to_word(),
        }
    }

    fn from_word(word: u32) -> Place {
        if word & SSD_BIT != 0 {
            return Place::Ssd(SsdPlace::from_word(word & !SSD_BIT));
        }
        Place::Ram { queue: (word >> QUEUE_SHIFT) as usize, position: word % POSITIONS }
    }
}

impl SsdPlace {
    fn to_word(self) -> u32 {
        u32::from(self.segment) << SEGMENT_SHIFT | u32::from(self.generation)
    }

    fn from_word(word: u32) -> SsdPlace {
        SsdPlace { segment: (word >> SEGMENT_SHIFT) as u16, generation: word as u16 }
    }
}

/// Stands for no copy on the SSD.
const NO_COPY: u32 = u32::MAX;
const FREQ_MASK: u8 = 0b11;
const FETCHED: u8 = 1 << 2;
const AWAITED: u8 = 1 << 3;
const HOT: u8 = 1 << 4;
const STORED_AGAIN: u8 = 1 << 5;

/// An item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// The hash; 0 for an empty slot.
    tag: u32,
    /// Bytes of its record.
    pub bytes: u32,
    /// As in a record: 0 for never.
    pub expires: u32,
    place: u32,
    copy: u32,
    flags: u8,
    /// The second, modulo 256, in which a client missed it in the real cache.
    missed_at: u8,
    /// What it is accounted for under; 0 at first.
    pub label: u16,
}

const _: () = assert!(size_of::<Item>() == 24);

impl Item {
    const EMPTY: Item =
        Item { tag: 0, bytes: 0, expires: 0, place: 0, copy: NO_COPY, flags: 0, missed_at: 0, label: 0 };

    /// An item that was not read yet.
    pub(super) fn new(tag: u32, bytes: u32, expires: u32, place: Place) -> Item {
        Item { tag, bytes, expires, place: place.to_word(), ..Item::EMPTY }
    }

    pub(super) fn tag(&self) -> u32 {
        self.tag
    }

    pub(super) fn place(&self) -> Place {
        Place::from_word(self.place)
    }

    pub(super) fn set_place(&mut self, place: Place) {
        self.place = place.to_word();
    }

    /// Where the unchanged copy of an item in RAM is, or was.
    pub(super) fn copy(&self) -> Option<SsdPlace> {
        (self.copy != NO_COPY).then(|| SsdPlace::from_word(self.copy))
    }

    pub(super) fn set_copy(&mut self, copy: Option<SsdPlace>) {
        self.copy = copy.map_or(NO_COPY, SsdPlace::to_word);
    }

    pub(super) fn freq(&self) -> u8 {
        self.flags & FREQ_MASK
    }

    pub(super) fn set_freq(&mut self, freq: u8) {
        self.flags = self.flags & !FREQ_MASK | freq.min(FREQ_MASK);
    }

    /// Whether it has been read since it was stored.
    pub(super) fn is_fetched(&self) -> bool {
        self.flags & FETCHED != 0
    }

    pub(super) fn set_fetched(&mut self, is_fetched: bool) {
        self.flags = self.flags & !FETCHED | if is_fetched { FETCHED } else { 0 };
    }

    /// Whether it was stored in place of its former version.
    pub(super) fn is_stored_again(&self) -> bool {
        self.flags & STORED_AGAIN != 0
    }

    pub(super) fn set_stored_again(&mut self, is_stored_again: bool) {
        self.flags = self.flags & !STORED_AGAIN | if is_stored_again { STORED_AGAIN } else { 0 };
    }

    /// Notes a read of an item on the SSD. Returns whether it is the first since the item was written there.
    pub(super) fn take_first_read(&mut self) -> bool {
        let is_first = self.flags & HOT == 0;
        self.flags |= HOT;
        is_first
    }

    /// Whether it was read on the SSD since it was written there.
    pub(super) fn is_hot(&self) -> bool {
        self.flags & HOT != 0
    }

    /// Notes that the item was written to the SSD, or moved there.
    pub(super) fn set_written(&mut self, place: SsdPlace, freq: u8) {
        self.set_place(Place::Ssd(place));
        self.set_copy(None);
        self.set_freq(freq);
        self.flags &= !HOT;
    }

    /// Notes that the real cache has missed the item in this second, so that its client will store it.
    pub(super) fn expect_set(&mut self, now: u32) {
        self.flags |= AWAITED;
        self.missed_at = now as u8;
    }

    /// Returns whether a client that stores the item in this second does so because the real cache missed it.
    pub(super) fn take_expected_set(&mut self, now: u32) -> bool {
        let is_expected = self.flags & AWAITED != 0 && (now as u8).wrapping_sub(self.missed_at) <= 1;
        self.flags &= !AWAITED;
        is_expected
    }

    pub(super) fn has_expired(&self, now: u32) -> bool {
        self.expires != 0 && self.expires <= now
    }
}

/// The items, in a table with linear probing.
pub(super) struct Items {
    slots: Vec<Item>,
    count: usize,
}

const SLOTS_MIN: usize = 64;

/// Spreads tags of which some bits are alike over all numbers of 32 bits.
pub(super) fn spread(tag: u32) -> u32 {
    tag.wrapping_mul(0x9E37_79B1)
}

impl Items {
    pub(super) fn new() -> Items {
        Items { slots: vec![Item::EMPTY; SLOTS_MIN], count: 0 }
    }

    /// Returns the memory that the table takes, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.len() * size_of::<Item>()
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns all items, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Item> {
        self.slots.iter().filter(|item| item.tag != 0)
    }

    /// Returns all items to change, in no order.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Item> {
        self.slots.iter_mut().filter(|item| item.tag != 0)
    }

    fn home(&self, tag: u32) -> usize {
        ((u64::from(spread(tag)) * self.slots.len() as u64) >> 32) as usize
    }

    fn slot(&self, tag: u32) -> Result<usize, usize> {
        let mut at = self.home(tag);
        loop {
            match self.slots[at].tag {
                0 => return Err(at),
                found if found == tag => return Ok(at),
                _ => at = (at + 1) % self.slots.len(),
            }
        }
    }

    pub(super) fn get(&self, tag: u32) -> Option<&Item> {
        self.slot(tag).ok().map(|at| &self.slots[at])
    }

    pub(super) fn get_mut(&mut self, tag: u32) -> Option<&mut Item> {
        self.slot(tag).ok().map(|at| &mut self.slots[at])
    }

    /// Adds an item, or replaces the one of its tag.
    pub(super) fn put(&mut self, item: Item) {
        match self.slot(item.tag) {
            Ok(at) => self.slots[at] = item,
            Err(_) if (self.count + 1) * 5 > self.slots.len() * 4 => {
                self.resize(self.slots.len() * 2);
                self.put(item);
            }
            Err(at) => {
                self.slots[at] = item;
                self.count += 1;
            }
        }
    }

    fn resize(&mut self, slots: usize) {
        let old = std::mem::replace(&mut self.slots, vec![Item::EMPTY; slots]);
        self.count = 0;
        old.into_iter().filter(|item| item.tag != 0).for_each(|item| self.put(item));
    }

    /// Removes an item and returns it. Those behind it that probed past its slot move up.
    pub(super) fn remove(&mut self, tag: u32) -> Option<Item> {
        let mut gap = self.slot(tag).ok()?;
        let removed = std::mem::replace(&mut self.slots[gap], Item::EMPTY);
        self.count -= 1;
        let len = self.slots.len();
        let mut at = (gap + 1) % len;
        while self.slots[at].tag != 0 {
            let home = self.home(self.slots[at].tag);
            if (at + len - home) % len >= (at + len - gap) % len {
                self.slots.swap(gap, at);
                gap = at;
            }
            at = (at + 1) % len;
        }
        Some(removed)
    }

    /// Keeps the items that `is_kept` returns true for, in as small a table as they fit.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&Item) -> bool) {
        let kept: Vec<Item> = self.iter().filter(|item| is_kept(item)).copied().collect();
        let slots = (kept.len() * 3 / 2).next_power_of_two().max(SLOTS_MIN);
        (self.slots, self.count) = (vec![Item::EMPTY; slots], 0);
        kept.into_iter().for_each(|item| self.put(item));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_finds_what_was_put_and_not_removed() {
        let mut items = Items::new();
        let place = Place::Ram { queue: 1, position: POSITIONS - 1 };
        let mut truth = std::collections::BTreeMap::new();
        let mut state = 1_u64;
        for step in 0..200_000_u32 {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(99);
            // Few different ones, many of which have the same home.
            let tag = ((state >> 40) as u32 % 3_000).wrapping_mul(1 << 20) | (state >> 60) as u32 | 1;
            if state >> 33 & 1 == 0 {
                items.put(Item::new(tag, step, 0, place));
                truth.insert(tag, step);
            } else {
                assert_eq!(items.remove(tag).map(|item| item.bytes), truth.remove(&tag));
            }
            assert_eq!(items.count(), truth.len());
        }
        assert!(truth.iter().all(|(tag, bytes)| items.get(*tag).is_some_and(|item| item.bytes == *bytes)));
        items.retain(|item| item.tag() & 16 == 0);
        truth.retain(|tag, _| tag & 16 == 0);
        assert!(items.count() == truth.len() && truth.keys().all(|tag| items.get(*tag).is_some()));
    }

    #[test]
    fn places_survive_packing() {
        let on_ssd = SsdPlace { segment: SEGMENTS_MAX - 1, generation: u16::MAX };
        for place in [Place::Ssd(on_ssd), Place::Ram { queue: 0, position: 7 }] {
            let mut item = Item::new(1, 2, 3, place);
            assert_eq!((item.place(), item.copy()), (place, None));
            item.set_copy(Some(on_ssd));
            item.set_freq(9);
            assert_eq!((item.copy(), item.freq(), item.is_fetched()), (Some(on_ssd), 3, false));
        }
    }

    #[test]
    fn a_set_is_expected_for_a_second_after_a_miss_and_once() {
        let mut item = Item::new(1, 2, 3, Place::Ram { queue: 0, position: 0 });
        assert!(!item.take_expected_set(255));
        item.expect_set(255);
        assert!(item.take_expected_set(256) && !item.take_expected_set(256));
        item.expect_set(255);
        assert!(!item.take_expected_set(257));
    }
}
