//! Items in lists that are ordered by time: what LRU, queues and segments of them are made of.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::{Held, Item};

/// Spreads keys, which are numbers.
#[derive(Clone, Copy, Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number ^ number >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ mixed >> 29;
    }
}

/// A map by key.
pub type ByKey<T> = HashMap<u64, T, BuildHasherDefault<KeyHasher>>;

const NONE: u32 = u32::MAX;

struct Node {
    item: Item,
    list: u8,
    freq: u8,
    newer: u32,
    older: u32,
}

#[derive(Clone, Copy)]
struct Ends {
    newest: u32,
    oldest: u32,
    bytes: u64,
}

/// An item in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The item.
    pub item: Item,
    /// Which list.
    pub list: usize,
    /// A number that the policy keeps with it.
    pub freq: u8,
}

/// Lists, each from its newest item to its oldest.
pub struct Lists {
    at: ByKey<u32>,
    nodes: Vec<Node>,
    free: Vec<u32>,
    ends: Vec<Ends>,
    held: Held,
}

impl Lists {
    /// So many empty lists.
    pub fn new(count: usize) -> Lists {
        let ends = vec![Ends { newest: NONE, oldest: NONE, bytes: 0 }; count];
        Lists { at: ByKey::default(), nodes: Vec::new(), free: Vec::new(), ends, held: Held::default() }
    }

    fn place(&self, at: u32) -> Place {
        let node = &self.nodes[at as usize];
        Place { item: node.item, list: node.list.into(), freq: node.freq }
    }

    /// Returns what all lists hold.
    pub fn held(&self) -> Held {
        self.held
    }

    /// Returns the bytes of a list.
    pub fn bytes(&self, list: usize) -> u64 {
        self.ends[list].bytes
    }

    /// Returns the bytes of all lists.
    pub fn all_bytes(&self) -> u64 {
        self.ends.iter().map(|ends| ends.bytes).sum()
    }

    /// Returns where a key's item is.
    pub fn find(&self, key: u64) -> Option<Place> {
        self.at.get(&key).map(|at| self.place(*at))
    }

    /// Returns the oldest item of a list.
    pub fn oldest(&self, list: usize) -> Option<Place> {
        let at = self.ends[list].oldest;
        (at != NONE).then(|| self.place(at))
    }

    /// Sets the number that is kept with an item.
    pub fn set_freq(&mut self, key: u64, freq: u8) {
        if let Some(at) = self.at.get(&key) {
            self.nodes[*at as usize].freq = freq;
        }
    }

    /// Adds an item, whose key is in no list, as the newest one of a list.
    pub fn push(&mut self, place: Place) {
        let node =
            Node { item: place.item, list: place.list as u8, freq: place.freq, newer: NONE, older: NONE };
        let at = self.free.pop().unwrap_or(self.nodes.len() as u32);
        match self.nodes.get_mut(at as usize) {
            Some(slot) => *slot = node,
            None => self.nodes.push(node),
        }
        self.at.insert(place.item.key, at);
        self.held.add(&place.item);
        self.link(at);
    }

    fn link(&mut self, at: u32) {
        let (list, bytes) = {
            let node = &self.nodes[at as usize];
            (usize::from(node.list), u64::from(node.item.bytes))
        };
        let newest = self.ends[list].newest;
        self.nodes[at as usize].older = newest;
        self.nodes[at as usize].newer = NONE;
        match newest {
            NONE => self.ends[list].oldest = at,
            newest => self.nodes[newest as usize].newer = at,
        }
        self.ends[list].newest = at;
        self.ends[list].bytes += bytes;
    }

    fn unlink(&mut self, at: u32) {
        let Node { item, list, newer, older, .. } = self.nodes[at as usize];
        let ends = &mut self.ends[usize::from(list)];
        ends.bytes -= u64::from(item.bytes);
        match newer {
            NONE => ends.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => ends.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
    }

    /// Makes an item the newest one of a list.
    pub fn renew(&mut self, key: u64, list: usize) {
        if let Some(at) = self.at.get(&key).copied() {
            self.unlink(at);
            self.nodes[at as usize].list = list as u8;
            self.link(at);
        }
    }

    /// Removes an item.
    pub fn remove(&mut self, key: u64) -> Option<Place> {
        let at = self.at.remove(&key)?;
        self.unlink(at);
        self.free.push(at);
        let place = self.place(at);
        self.held.take(&place.item);
        Some(place)
    }

    /// Removes the oldest item of a list.
    pub fn pop(&mut self, list: usize) -> Option<Place> {
        self.oldest(list).and_then(|place| self.remove(place.item.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_keep_their_order_and_lists_their_bytes() {
        let mut lists = Lists::new(2);
        let place = |key, list| Place { item: Item { key, bytes: 10, ..Item::default() }, list, freq: 0 };
        (1..=4).for_each(|key| lists.push(place(key, 0)));
        lists.renew(1, 0);
        lists.renew(3, 1);
        assert_eq!(lists.remove(4), Some(place(4, 0)));
        lists.push(place(5, 0));
        assert_eq!((lists.bytes(0), lists.bytes(1), lists.held().items), (30, 10, 4));
        let order: Vec<u64> = std::iter::from_fn(|| lists.pop(0)).map(|place| place.item.key).collect();
        assert_eq!(order, [2, 1, 5]);
        assert_eq!((lists.pop(1), lists.pop(1), lists.all_bytes()), (Some(place(3, 1)), None, 0));
    }
}
