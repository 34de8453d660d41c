//! W-TinyLFU, after "TinyLFU: A Highly Efficient Cache Admission Policy" (Einziger, Friedman and Manes, ACM
//! Transactions on Storage 2017): what leaves the window is admitted to the main part if it was requested more often of
//! late than the item that would go. RAM is the window, the SSD the main part: segmented LRU, four fifths of it
//! protected.

use super::lists::{Lists, Place};
use super::{Held, Item, Tier};

const PROBATION: usize = 0;
const PROTECTED: usize = 1;
const PROTECTED_PERCENT: u64 = 80;
/// Requests for each item that there is room for, after which all counts are halved.
const REQUESTS_AN_ITEM: usize = 10;
const ROWS: usize = 4;
const COUNT_MAX: u8 = 15;

/// Counts of requests by key, in four rows of counters (count-min) that fade.
struct Sketch {
    rows: [Vec<u8>; ROWS],
    left: usize,
    period: usize,
}

impl Sketch {
    fn new(items: usize) -> Sketch {
        let width = items.next_power_of_two().max(16);
        let period = items.max(1) * REQUESTS_AN_ITEM;
        Sketch { rows: std::array::from_fn(|_| vec![0; width]), left: period, period }
    }

    fn places(&self, key: u64) -> [usize; ROWS] {
        let mask = self.rows[0].len() - 1;
        let first = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let second = (first ^ first >> 31).wrapping_mul(0xBF58_476D_1CE4_E5B9) | 1;
        std::array::from_fn(|row| (first.wrapping_add(second.wrapping_mul(row as u64)) >> 24) as usize & mask)
    }

    fn count(&self, key: u64) -> u8 {
        let places = self.places(key);
        (0..ROWS).map(|row| self.rows[row][places[row]]).min().unwrap_or(0)
    }

    fn add(&mut self, key: u64) {
        let (places, count) = (self.places(key), self.count(key));
        if count < COUNT_MAX {
            // Only the least counters grow, so that keys which share one count less of each other.
            (0..ROWS).for_each(|row| {
                let counter = &mut self.rows[row][places[row]];
                *counter = (*counter).max(count + 1);
            });
        }
        self.left -= 1;
        if self.left == 0 {
            self.left = self.period;
            self.rows.iter_mut().flatten().for_each(|counter| *counter /= 2);
        }
    }
}

/// The main part.
pub struct TinyLfu {
    lists: Lists,
    sketch: Sketch,
    bytes_max: u64,
    written_bytes: u64,
}

impl TinyLfu {
    /// An empty tier of `bytes_max`, for about so many items.
    pub fn new(bytes_max: u64, items: usize) -> TinyLfu {
        TinyLfu { lists: Lists::new(2), sketch: Sketch::new(items), bytes_max, written_bytes: 0 }
    }
}

impl Tier for TinyLfu {
    fn find(&self, key: u64) -> Option<Item> {
        self.lists.find(key).map(|place| place.item)
    }

    fn note(&mut self, key: u64) {
        self.sketch.add(key);
    }

    fn hit(&mut self, key: u64) {
        self.lists.renew(key, PROTECTED);
        while self.lists.bytes(PROTECTED) > self.bytes_max * PROTECTED_PERCENT / 100
            && let Some(place) = self.lists.oldest(PROTECTED)
        {
            self.lists.renew(place.item.key, PROBATION);
        }
    }

    fn insert(&mut self, item: Item, out: &mut Vec<Item>) {
        let bytes = u64::from(item.bytes);
        let victim = self.lists.oldest(PROBATION).or_else(|| self.lists.oldest(PROTECTED));
        if bytes > self.bytes_max
            || self.lists.all_bytes() + bytes > self.bytes_max
                && victim
                    .is_some_and(|victim| self.sketch.count(item.key) <= self.sketch.count(victim.item.key))
        {
            out.push(item);
            return;
        }
        while self.lists.all_bytes() + bytes > self.bytes_max {
            out.extend(self.evict());
        }
        self.lists.push(Place { item, list: PROBATION, freq: 0 });
        self.written_bytes += bytes;
    }

    fn remove(&mut self, key: u64) -> Option<Item> {
        self.lists.remove(key).map(|place| place.item)
    }

    fn evict(&mut self) -> Option<Item> {
        let place = self.lists.pop(PROBATION).or_else(|| self.lists.pop(PROTECTED));
        place.map(|place| place.item)
    }

    fn held(&self) -> Held {
        self.lists.held()
    }

    fn written_bytes(&self) -> u64 {
        self.written_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(key: u64) -> Item {
        Item { key, bytes: 10, ..Item::default() }
    }

    #[test]
    fn only_what_was_requested_more_often_than_the_victim_is_admitted() {
        let mut main = TinyLfu::new(20, 100);
        let mut out = Vec::new();
        [1, 1, 2, 2, 3, 4, 4, 4].iter().for_each(|key| main.note(*key));
        [1, 2, 3, 4].iter().for_each(|key| main.insert(item(*key), &mut out));
        assert_eq!(out, [item(3), item(1)], "3 is refused, 4 replaces 1");
        assert_eq!(main.written_bytes(), 30);
    }

    #[test]
    fn what_was_read_is_protected() {
        let mut main = TinyLfu::new(20, 100);
        let mut out = Vec::new();
        [1, 2, 3, 3].iter().for_each(|key| main.note(*key));
        [1, 2].iter().for_each(|key| main.insert(item(*key), &mut out));
        main.hit(1);
        main.insert(item(3), &mut out);
        assert_eq!(out, [item(2)]);
    }

    #[test]
    fn counts_fade() {
        let mut sketch = Sketch::new(1);
        (0..9).for_each(|_| sketch.add(7));
        assert_eq!(sketch.count(7), 9);
        sketch.add(7);
        assert_eq!(sketch.count(7), 5);
    }
}
