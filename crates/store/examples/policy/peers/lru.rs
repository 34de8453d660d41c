//! LRU: the item that was read or stored longest ago goes first. memcached's own segmented LRU is close to it.

use super::lists::{Lists, Place};
use super::{Held, Item, Tier};

/// Items by their last request.
pub struct Lru {
    lists: Lists,
    bytes_max: u64,
}

impl Lru {
    /// An empty tier of `bytes_max`.
    pub fn new(bytes_max: u64) -> Lru {
        Lru { lists: Lists::new(1), bytes_max }
    }

    fn shrink(&mut self, out: &mut Vec<Item>) {
        while self.lists.all_bytes() > self.bytes_max {
            out.extend(self.evict());
        }
    }
}

impl Tier for Lru {
    fn find(&self, key: u64) -> Option<Item> {
        self.lists.find(key).map(|place| place.item)
    }

    fn hit(&mut self, key: u64) {
        self.lists.renew(key, 0);
    }

    fn insert(&mut self, item: Item, out: &mut Vec<Item>) {
        self.lists.push(Place { item, list: 0, freq: 0 });
        self.shrink(out);
    }

    fn remove(&mut self, key: u64) -> Option<Item> {
        self.lists.remove(key).map(|place| place.item)
    }

    fn evict(&mut self) -> Option<Item> {
        self.lists.pop(0).map(|place| place.item)
    }

    fn resize(&mut self, bytes: u64, out: &mut Vec<Item>) {
        self.bytes_max = bytes;
        self.shrink(out);
    }

    fn held(&self) -> Held {
        self.lists.held()
    }

    fn written_bytes(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_longest_ago_leaves() {
        let mut lru = Lru::new(30);
        let mut out = Vec::new();
        let item = |key| Item { key, bytes: 10, ..Item::default() };
        (1..=3).for_each(|key| lru.insert(item(key), &mut out));
        lru.hit(1);
        lru.insert(item(4), &mut out);
        assert_eq!(out, [item(2)]);
        lru.resize(10, &mut out);
        assert_eq!(out, [item(2), item(3), item(1)]);
        assert_eq!((lru.find(4), lru.find(1)), (Some(item(4)), None));
    }
}
