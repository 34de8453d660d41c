//! A cache of two tiers: what leaves RAM goes to the SSD, if it is admitted there.

use super::cachelib::RejectFirst;
use super::{Item, Tier};
use crate::look_aside::{Counts, Op, Request};

/// Bytes of a record besides key and value, as the simulated store's.
pub const HEADER_BYTES: u32 = 32;
/// Bytes of RAM for an entry of an index, as the simulated store's.
pub const INDEX_BYTES: u32 = 9;
/// memcached's header with a unique number (CAS), and its pointer in the hash table.
const MEMCACHED_BYTES: u32 = 56 + 8;
/// What stays in RAM of an item on extstore, besides its key: a header, the item's place and a pointer.
const EXTSTORE_BYTES: u32 = MEMCACHED_BYTES + 12;
/// Items with shorter values stay in RAM: `ext_item_size`.
const EXTSTORE_ITEM_BYTES: u32 = 512;
/// One read of so many copies an item from extstore back to RAM: `ext_recache_rate`.
const EXTSTORE_RECACHE: u64 = 2_000;
/// RAM that is left to items, however large the index: one of so many parts.
const RAM_PARTS: u64 = 16;

/// What differs between caches besides their tiers.
#[derive(Clone)]
pub struct Rules {
    /// Bytes of an item in RAM besides key and value.
    pub header_bytes: u32,
    /// Bytes of RAM for an item on the SSD.
    pub index_bytes: u32,
    /// Whether its key stays in RAM, too.
    pub index_has_keys: bool,
    /// Items of fewer bytes are not written to the SSD.
    pub ssd_item_bytes_min: u32,
    /// One hit of so many on the SSD copies the item to RAM.
    pub promoted: u64,
    /// Whether the copy on the SSD stays when an item is copied to RAM, so that it need not be written again.
    pub keeps_copy: bool,
    /// Admission to the SSD, if not all items are admitted.
    pub reject_first: Option<RejectFirst>,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            header_bytes: HEADER_BYTES + INDEX_BYTES,
            index_bytes: 0,
            index_has_keys: false,
            ssd_item_bytes_min: 0,
            promoted: 1,
            keeps_copy: true,
            reject_first: None,
        }
    }
}

impl Rules {
    /// memcached without an SSD.
    pub fn memcached() -> Rules {
        Rules { header_bytes: MEMCACHED_BYTES, ..Rules::default() }
    }

    /// memcached with extstore and its defaults.
    pub fn extstore() -> Rules {
        Rules {
            index_bytes: EXTSTORE_BYTES,
            index_has_keys: true,
            ssd_item_bytes_min: EXTSTORE_ITEM_BYTES,
            promoted: EXTSTORE_RECACHE,
            keeps_copy: false,
            ..Rules::memcached()
        }
    }
}

/// A cache, and what came of its requests.
pub struct Peer {
    ram: Box<dyn Tier>,
    ssd: Option<Box<dyn Tier>>,
    rules: Rules,
    ram_bytes: u64,
    leaving: Vec<Item>,
    /// What came of the requests.
    pub counts: Counts,
}

impl Peer {
    /// A cache of these tiers.
    pub fn new(ram_bytes: u64, ram: Box<dyn Tier>, ssd: Option<Box<dyn Tier>>, rules: Rules) -> Peer {
        Peer { ram, ssd, rules, ram_bytes, leaving: Vec::new(), counts: Counts::default() }
    }

    /// Returns the bytes that were written to the SSD.
    pub fn ssd_bytes_written(&self) -> u64 {
        self.ssd.as_ref().map_or(0, |ssd| ssd.written_bytes())
    }

    /// One request: what a get misses is stored.
    pub fn request(&mut self, request: &Request) {
        let key = request.key;
        match request.op {
            Op::Get => {
                self.counts.gets += 1;
                self.note(key);
                if !self.get(key, request.at_s) {
                    self.set(request);
                }
            }
            Op::Set => {
                self.note(key);
                self.set(request);
            }
            Op::Delete => self.remove(key),
        }
    }

    fn note(&mut self, key: u64) {
        self.ram.note(key);
        if let Some(ssd) = &mut self.ssd {
            ssd.note(key);
        }
    }

    fn remove(&mut self, key: u64) {
        self.ram.remove(key);
        if let Some(ssd) = &mut self.ssd {
            ssd.remove(key);
        }
    }

    fn get(&mut self, key: u64, now: u32) -> bool {
        let in_ram = self.ram.find(key);
        let found = in_ram.or_else(|| self.ssd.as_ref().and_then(|ssd| ssd.find(key)));
        let Some(item) = found else { return false };
        if has_expired(&item, now) {
            self.remove(key);
            return false;
        }
        if in_ram.is_some() {
            self.counts.hits_ram += 1;
            self.ram.hit(key);
            return true;
        }
        self.counts.hits_ssd += 1;
        if let Some(ssd) = &mut self.ssd {
            ssd.hit(key);
            if self.counts.hits_ssd.is_multiple_of(self.rules.promoted) {
                if !self.rules.keeps_copy {
                    ssd.remove(key);
                }
                let bytes = item.bytes - HEADER_BYTES + self.rules.header_bytes;
                self.ram.insert(Item { bytes, ..item }, &mut self.leaving);
                self.demote(now);
            }
        }
        true
    }

    fn set(&mut self, request: &Request) {
        self.remove(request.key);
        self.counts.sets += 1;
        let digits = request.key.checked_ilog10().unwrap_or(0) as usize + 1;
        let key_bytes = request.key_bytes.min(250).max(digits);
        let item = Item {
            key: request.key,
            bytes: (key_bytes + request.value_bytes) as u32 + self.rules.header_bytes,
            key_bytes: key_bytes as u16,
            expires_s: if request.ttl_s == 0 { 0 } else { request.at_s.saturating_add(request.ttl_s) },
        };
        self.ram.insert(item, &mut self.leaving);
        self.demote(request.at_s);
    }

    /// Writes to the SSD what left RAM, and makes RAM as much smaller as the index became larger.
    fn demote(&mut self, now: u32) {
        let Some(ssd) = &mut self.ssd else {
            self.leaving.clear();
            return;
        };
        let mut dropped = Vec::new();
        while let Some(item) = self.leaving.pop() {
            let bytes = item.bytes - self.rules.header_bytes + HEADER_BYTES;
            let has_copy = ssd.find(item.key).is_some();
            if !has_copy
                && !has_expired(&item, now)
                && bytes >= self.rules.ssd_item_bytes_min
                && self.rules.reject_first.as_mut().is_none_or(|first| first.admits(item.key))
            {
                ssd.insert(Item { bytes, ..item }, &mut dropped);
                // As memory that is written to: of what is dropped nothing is kept.
                dropped.clear();
            }
            let index_bytes = |ssd: &dyn Tier| {
                let held = ssd.held();
                let keys = if self.rules.index_has_keys { held.key_bytes } else { 0 };
                held.items * u64::from(self.rules.index_bytes) + keys
            };
            let most = self.ram_bytes - self.ram_bytes / RAM_PARTS;
            while index_bytes(ssd.as_ref()) > most && ssd.evict().is_some() {}
            self.ram.resize(self.ram_bytes - index_bytes(ssd.as_ref()).min(most), &mut self.leaving);
        }
    }
}

fn has_expired(item: &Item, now: u32) -> bool {
    item.expires_s != 0 && item.expires_s <= now
}

#[cfg(test)]
mod tests {
    use super::super::lru::Lru;
    use super::*;

    fn request(op: Op, key: u64, at_s: u32) -> Request {
        // With a header of 32 bytes, 100.
        Request { at_s, key, key_bytes: 8, value_bytes: 60, ttl_s: 10, op }
    }

    fn peer(rules: Rules) -> Peer {
        let rules = Rules { header_bytes: HEADER_BYTES, ..rules };
        Peer::new(200, Box::new(Lru::new(200)), Some(Box::new(Lru::new(300))), rules)
    }

    #[test]
    fn what_leaves_ram_is_read_from_the_ssd_and_copied_back() {
        let mut peer = peer(Rules::default());
        [1, 2, 3, 1, 1, 9].iter().for_each(|key| peer.request(&request(Op::Get, *key, 0)));
        assert_eq!((peer.counts.hits_ssd, peer.counts.hits_ram, peer.counts.sets), (1, 1, 4));
    }

    #[test]
    fn what_has_expired_or_was_deleted_is_missed() {
        let mut peer = peer(Rules::default());
        peer.request(&request(Op::Set, 1, 0));
        peer.request(&request(Op::Get, 1, 9));
        peer.request(&request(Op::Get, 1, 10));
        peer.request(&request(Op::Delete, 1, 11));
        peer.request(&request(Op::Get, 1, 11));
        assert_eq!((peer.counts.gets, peer.counts.hits_ram), (3, 1));
    }

    #[test]
    fn the_index_is_taken_out_of_ram() {
        let mut peer = peer(Rules { index_bytes: 50, ..Rules::default() });
        // Two items fit RAM while the SSD is empty; the first item there leaves room for one.
        (1..=3).for_each(|key| peer.request(&request(Op::Get, key, 0)));
        assert_eq!(peer.ram.held().items, 1);
        peer.request(&request(Op::Get, 2, 0));
        assert_eq!(peer.counts.hits_ssd, 1);
    }

    #[test]
    fn extstore_leaves_small_items_out_and_copies_few_back() {
        let rules = Rules { ssd_item_bytes_min: 101, ..Rules::default() };
        let mut small = peer(rules);
        (1..=3).chain([1]).for_each(|key| small.request(&request(Op::Get, key, 0)));
        assert_eq!(small.counts.hits_ssd, 0);
        let mut large = peer(Rules { promoted: 2, keeps_copy: false, ..Rules::default() });
        (1..=3).chain([1, 1, 1]).for_each(|key| large.request(&request(Op::Get, key, 0)));
        assert_eq!((large.counts.hits_ssd, large.counts.hits_ram), (2, 1));
    }
}
