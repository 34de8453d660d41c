//! CacheLib's hybrid cache, after "The CacheLib Caching Engine" (Berg et al., OSDI 2020) and its documentation: RAM is
//! LRU2Q, an item is written to flash when it leaves RAM for the second time within a window (reject first), and
//! flash is regions, reused by FIFO or LRU.

use super::lists::{ByKey, Lists, Place};
use super::log::Log;
use super::{Held, Item, Tier};

const HOT: usize = 0;
const WARM: usize = 1;
const COLD: usize = 2;
/// Shares of RAM, in percent, that the hot and the cold queue have; the warm one has the rest.
const HOT_PERCENT: u64 = 30;
const COLD_PERCENT: u64 = 30;

/// RAM: new items are hot, then cold; cold ones that are read become warm.
pub struct Segmented {
    lists: Lists,
    bytes_max: u64,
}

impl Segmented {
    /// An empty tier of `bytes_max`.
    pub fn new(bytes_max: u64) -> Segmented {
        Segmented { lists: Lists::new(3), bytes_max }
    }

    fn balance(&mut self, out: &mut Vec<Item>) {
        for (list, percent) in [(HOT, HOT_PERCENT), (WARM, 100 - HOT_PERCENT - COLD_PERCENT)] {
            while self.lists.bytes(list) > self.bytes_max * percent / 100
                && let Some(place) = self.lists.oldest(list)
            {
                self.lists.renew(place.item.key, COLD);
            }
        }
        while self.lists.all_bytes() > self.bytes_max {
            out.extend(self.evict());
        }
    }
}

impl Tier for Segmented {
    fn find(&self, key: u64) -> Option<Item> {
        self.lists.find(key).map(|place| place.item)
    }

    fn hit(&mut self, key: u64) {
        if let Some(place) = self.lists.find(key) {
            self.lists.renew(key, if place.list == HOT { HOT } else { WARM });
            // Nothing leaves: the sum of bytes is the same.
            self.balance(&mut Vec::new());
        }
    }

    fn insert(&mut self, item: Item, out: &mut Vec<Item>) {
        self.lists.push(Place { item, list: HOT, freq: 0 });
        self.balance(out);
    }

    fn remove(&mut self, key: u64) -> Option<Item> {
        self.lists.remove(key).map(|place| place.item)
    }

    fn evict(&mut self) -> Option<Item> {
        let place = self.lists.pop(COLD).or_else(|| self.lists.pop(HOT)).or_else(|| self.lists.pop(WARM));
        place.map(|place| place.item)
    }

    fn resize(&mut self, bytes: u64, out: &mut Vec<Item>) {
        self.bytes_max = bytes;
        self.balance(out);
    }

    fn held(&self) -> Held {
        self.lists.held()
    }

    fn written_bytes(&self) -> u64 {
        0
    }
}

/// Admission: a key that left RAM within the last `window` keys is written when it leaves again. Two halves of the
/// window are kept, the older of which is forgotten whole.
#[derive(Clone)]
pub struct RejectFirst {
    halves: [ByKey<()>; 2],
    half: usize,
}

impl RejectFirst {
    /// Remembers up to `window` keys.
    pub fn new(window: usize) -> RejectFirst {
        RejectFirst { halves: Default::default(), half: (window / 2).max(1) }
    }

    /// Returns whether the key is written, and remembers it.
    pub fn admits(&mut self, key: u64) -> bool {
        let is_known = self.halves.iter().any(|half| half.contains_key(&key));
        self.halves[0].insert(key, ());
        if self.halves[0].len() >= self.half {
            self.halves.swap(0, 1);
            self.halves[0].clear();
        }
        is_known
    }
}

/// Flash: regions in the order in which they were opened, or last read.
pub struct Regions {
    log: Log,
    is_lru: bool,
}

impl Regions {
    /// Empty regions of `region_bytes`.
    pub fn new(bytes: u64, region_bytes: u64, is_lru: bool) -> Regions {
        Regions { log: Log::new(bytes, region_bytes, 1), is_lru }
    }

    fn empty_next(&mut self) -> Vec<Item> {
        let next = if self.is_lru { self.log.least_read() } else { self.log.oldest(u64::MAX) };
        next.map(|region| self.log.empty(region)).unwrap_or_default()
    }
}

impl Tier for Regions {
    fn find(&self, key: u64) -> Option<Item> {
        self.log.find(key)
    }

    fn hit(&mut self, key: u64) {
        self.log.hit(key);
    }

    fn insert(&mut self, item: Item, out: &mut Vec<Item>) {
        if self.log.needs_page(0, item.bytes) && self.log.is_out_of_pages() {
            out.extend(self.empty_next());
        }
        if !self.log.append(0, item) {
            out.push(item);
        }
    }

    fn remove(&mut self, key: u64) -> Option<Item> {
        self.log.remove(key)
    }

    fn evict(&mut self) -> Option<Item> {
        self.empty_next().pop()
    }

    fn held(&self) -> Held {
        self.log.held()
    }

    fn written_bytes(&self) -> u64 {
        self.log.written_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(key: u64) -> Item {
        Item { key, bytes: 10, ..Item::default() }
    }

    #[test]
    fn cold_items_that_are_read_become_warm() {
        let mut ram = Segmented::new(100);
        let mut out = Vec::new();
        (1..=10).for_each(|key| ram.insert(item(key), &mut out));
        // 8, 9 and 10 are hot, the others cold.
        ram.hit(1);
        ram.insert(item(11), &mut out);
        ram.insert(item(12), &mut out);
        assert_eq!(out, [item(2), item(3)]);
        assert!(ram.find(1).is_some());
    }

    #[test]
    fn a_key_is_admitted_the_second_time_within_the_window() {
        let mut first = RejectFirst::new(4);
        assert_eq!([1, 2, 1].map(|key| first.admits(key)), [false, false, true]);
        // 1 is known since it was rejected first; after four other keys it is not.
        assert_eq!([3, 4, 5, 6, 1].map(|key| first.admits(key)), [false; 5]);
    }

    #[test]
    fn the_region_that_is_reused_is_the_oldest_or_the_one_read_longest_ago() {
        for (is_lru, kept, gone) in [(false, 3, 1), (true, 1, 3)] {
            let mut flash = Regions::new(60, 20, is_lru);
            let mut out = Vec::new();
            (1..=6).for_each(|key| flash.insert(item(key), &mut out));
            flash.hit(2);
            flash.insert(item(7), &mut out);
            assert_eq!(out, [item(gone), item(gone + 1)]);
            assert!(flash.find(kept).is_some() && flash.find(gone).is_none());
        }
    }
}
