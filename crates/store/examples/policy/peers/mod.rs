//! Other caches' policies, by simulation: what they would hit with the same RAM and SSD.
//!
//! Written from the papers and documents that each module names. None of them has pages, slab classes or free room of
//! its own; all sizes are bytes, and what each must keep in RAM for an item on the SSD is taken out of its RAM. RAM and
//! SSD are two [`Tier`]s of a [`Peer`], each with a policy.

mod cachelib;
mod extstore;
mod lists;
mod log;
mod lru;
mod peer;
mod s3_fifo;
mod tiny_lfu;

pub use peer::Peer;

use cachelib::{Regions, RejectFirst, Segmented};
use extstore::Pages;
use lru::Lru;
use peer::Rules;
use s3_fifo::S3Fifo;
use tiny_lfu::TinyLfu;

/// An item, as far as a policy sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Its key.
    pub key: u64,
    /// Bytes that it takes in its tier, header included.
    pub bytes: u32,
    /// Bytes of the key.
    pub key_bytes: u16,
    /// The second at which it expires; 0 for never.
    pub expires_s: u32,
}

/// What a tier holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Items.
    pub items: u64,
    /// Bytes of their keys.
    pub key_bytes: u64,
}

impl Held {
    fn add(&mut self, item: &Item) {
        self.items += 1;
        self.key_bytes += u64::from(item.key_bytes);
    }

    fn take(&mut self, item: &Item) {
        self.items -= 1;
        self.key_bytes -= u64::from(item.key_bytes);
    }
}

/// RAM or the SSD under a policy.
pub trait Tier {
    /// Returns the item of a key.
    fn find(&self, key: u64) -> Option<Item>;
    /// Notes a request for a key, which may not be here.
    fn note(&mut self, _key: u64) {}
    /// Notes that an item was read here.
    fn hit(&mut self, key: u64);
    /// Stores an item whose key is not here, or refuses it, and adds what leaves to `out`.
    fn insert(&mut self, item: Item, out: &mut Vec<Item>);
    /// Removes an item.
    fn remove(&mut self, key: u64) -> Option<Item>;
    /// Removes the item that goes next.
    fn evict(&mut self) -> Option<Item>;
    /// Lets the tier hold `bytes` from now on, and adds what leaves to `out`. A log on the SSD keeps its size.
    fn resize(&mut self, _bytes: u64, _out: &mut Vec<Item>) {}
    /// Returns what is held.
    fn held(&self) -> Held;
    /// Returns the bytes that were written so far, if the tier is an SSD.
    fn written_bytes(&self) -> u64;
}

/// Bytes of a page of extstore's and of a region of CacheLib's: a segment of the simulated store.
pub const PAGE_BYTES: u64 = larder_store::SEGMENT_BYTES;

/// Returns all peers, with `ram_bytes` and `ssd_bytes` each, and items of about `item_bytes`.
pub fn all(ram_bytes: u64, ssd_bytes: u64, item_bytes: u32) -> Vec<(&'static str, Peer)> {
    let ssd_items = (ssd_bytes / u64::from(item_bytes.max(1))) as usize;
    let lru = || Box::new(Lru::new(ram_bytes));
    let two = Rules { index_bytes: peer::INDEX_BYTES, ..Rules::default() };
    let cachelib = |is_lru| {
        let ssd = Box::new(Regions::new(ssd_bytes, PAGE_BYTES, is_lru));
        let rules = Rules { reject_first: Some(RejectFirst::new(ssd_items)), ..two.clone() };
        Peer::new(ram_bytes, Box::new(Segmented::new(ram_bytes)), Some(ssd), rules)
    };
    let one = Rules { header_bytes: peer::HEADER_BYTES + peer::INDEX_BYTES, ..Rules::default() };
    let both = ram_bytes + ssd_bytes;
    vec![
        ("lru_ram", Peer::new(ram_bytes, lru(), None, Rules::memcached())),
        ("lru_both", Peer::new(both, Box::new(Lru::new(both)), None, one)),
        (
            "extstore",
            Peer::new(ram_bytes, lru(), Some(Box::new(Pages::new(ssd_bytes, PAGE_BYTES))), Rules::extstore()),
        ),
        ("cachelib_fifo", cachelib(false)),
        ("cachelib_lru", cachelib(true)),
        (
            "w_tinylfu",
            Peer::new(ram_bytes, lru(), Some(Box::new(TinyLfu::new(ssd_bytes, ssd_items))), two.clone()),
        ),
        ("s3_fifo", Peer::new(ram_bytes, lru(), Some(Box::new(S3Fifo::new(ssd_bytes))), two)),
    ]
}
