//! S3-FIFO, after algorithm 1 of "FIFO queues are all you need for cache eviction" (Yang et al., SOSP 2023): a small
//! queue of a tenth, a main queue, and the keys that left the small one. Here it governs the SSD behind an LRU in RAM.
//! An item that goes from the small queue to the main one, or to the head of that, is written again.

use std::collections::VecDeque;

use super::lists::{ByKey, Lists, Place};
use super::{Held, Item, Tier};

const SMALL: usize = 0;
const MAIN: usize = 1;
const SMALL_PERCENT: u64 = 10;
const FREQ_MAX: u8 = 3;

/// Keys that left the small queue: as many as had items of `bytes_max`.
struct Ghosts {
    order: VecDeque<(u64, u64, u32)>,
    known: ByKey<u64>,
    next: u64,
    bytes: u64,
    bytes_max: u64,
}

impl Ghosts {
    fn new(bytes_max: u64) -> Ghosts {
        Ghosts { order: VecDeque::new(), known: ByKey::default(), next: 0, bytes: 0, bytes_max }
    }

    fn remember(&mut self, item: &Item) {
        self.next += 1;
        self.bytes += u64::from(item.bytes);
        self.order.push_back((item.key, self.next, item.bytes));
        self.known.insert(item.key, self.next);
        while self.bytes > self.bytes_max
            && let Some((key, number, bytes)) = self.order.pop_front()
        {
            self.bytes -= u64::from(bytes);
            if self.known.get(&key) == Some(&number) {
                self.known.remove(&key);
            }
        }
    }

    fn recall(&mut self, key: u64) -> bool {
        self.known.remove(&key).is_some()
    }
}

/// The three queues.
pub struct S3Fifo {
    lists: Lists,
    ghosts: Ghosts,
    bytes_max: u64,
    written_bytes: u64,
}

impl S3Fifo {
    /// An empty tier of `bytes_max`.
    pub fn new(bytes_max: u64) -> S3Fifo {
        let ghosts = Ghosts::new(bytes_max - bytes_max * SMALL_PERCENT / 100);
        S3Fifo { lists: Lists::new(2), ghosts, bytes_max, written_bytes: 0 }
    }

    fn push(&mut self, item: Item, list: usize, freq: u8) {
        self.written_bytes += u64::from(item.bytes);
        self.lists.push(Place { item, list, freq });
    }
}

impl Tier for S3Fifo {
    fn find(&self, key: u64) -> Option<Item> {
        self.lists.find(key).map(|place| place.item)
    }

    fn hit(&mut self, key: u64) {
        if let Some(place) = self.lists.find(key) {
            self.lists.set_freq(key, (place.freq + 1).min(FREQ_MAX));
        }
    }

    fn insert(&mut self, item: Item, out: &mut Vec<Item>) {
        if u64::from(item.bytes) > self.bytes_max {
            out.push(item);
            return;
        }
        while self.lists.all_bytes() + u64::from(item.bytes) > self.bytes_max {
            out.extend(self.evict());
        }
        let list = if self.ghosts.recall(item.key) { MAIN } else { SMALL };
        self.push(item, list, 0);
    }

    fn remove(&mut self, key: u64) -> Option<Item> {
        self.lists.remove(key).map(|place| place.item)
    }

    fn evict(&mut self) -> Option<Item> {
        loop {
            let is_small = self.lists.bytes(SMALL) >= self.bytes_max * SMALL_PERCENT / 100;
            if let Some(place) = if is_small { self.lists.pop(SMALL) } else { None } {
                if place.freq > 1 {
                    self.push(place.item, MAIN, 0);
                    continue;
                }
                self.ghosts.remember(&place.item);
                return Some(place.item);
            }
            let Some(place) = self.lists.pop(MAIN) else {
                return self.lists.pop(SMALL).map(|place| place.item);
            };
            if place.freq == 0 {
                return Some(place.item);
            }
            self.push(place.item, MAIN, place.freq - 1);
        }
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
    fn what_was_read_twice_goes_on_to_the_main_queue() {
        let mut fifo = S3Fifo::new(100);
        let mut out = Vec::new();
        (1..=10).for_each(|key| fifo.insert(item(key), &mut out));
        [1, 1, 2].iter().for_each(|key| fifo.hit(*key));
        fifo.insert(item(11), &mut out);
        assert_eq!(out, [item(2)], "1 was read twice, 2 once");
        assert_eq!(fifo.lists.find(1).map(|place| place.list), Some(MAIN));
        assert_eq!(fifo.written_bytes(), 120);
    }

    #[test]
    fn what_returns_soon_begins_in_the_main_queue() {
        let mut fifo = S3Fifo::new(30);
        let mut out = Vec::new();
        [1, 2, 3, 4, 1].iter().for_each(|key| fifo.insert(item(*key), &mut out));
        assert_eq!(out, [item(1), item(2)]);
        assert_eq!(fifo.lists.find(1).map(|place| place.list), Some(MAIN));
        // The small queue is above its tenth, so it gives way first.
        fifo.insert(item(5), &mut out);
        assert_eq!(out[2], item(3));
    }
}
