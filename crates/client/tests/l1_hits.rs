//! Which entries stay: the share of hits beside that of a cache of the same bytes that drops the entry used longest
//! ago.

#[path = "l1/rig.rs"]
mod rig;

use std::collections::{BTreeMap, HashMap};

use larder_client::{L1, L1Options};
use rig::{Numbers, entry, name, read, value};

const BYTES: u64 = 2 << 20;

/// Drops the entry used longest ago; an entry takes what a record of the cache takes, and 16 bytes of index.
struct Lru {
    bytes: usize,
    used: usize,
    now: u64,
    entries: HashMap<u64, (u64, usize)>,
    by_use: BTreeMap<u64, u64>,
}

impl Lru {
    fn get(&mut self, key: u64) -> bool {
        self.now += 1;
        let Some((used, _)) = self.entries.get_mut(&key) else { return false };
        self.by_use.remove(used);
        *used = self.now;
        self.by_use.insert(self.now, key);
        true
    }

    fn set(&mut self, key: u64, len: usize) {
        let bytes = 56 + 16 + name(key).len().next_multiple_of(8) + len.next_multiple_of(8);
        while self.used + bytes > self.bytes
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.used -= self.entries.remove(&oldest).map_or(0, |(_, bytes)| bytes);
        }
        self.now += 1;
        self.entries.insert(key, (self.now, bytes));
        self.by_use.insert(self.now, key);
        self.used += bytes;
    }
}

/// Returns the percentages of hits of the cache and of the other one, when each stores what it misses.
fn hits(mut keys: impl FnMut() -> u64, requests: u64) -> (f64, f64) {
    let l1: L1 = L1Options::new().bytes(BYTES).anonymous().expect("there is memory");
    let mut lru =
        Lru { bytes: BYTES as usize, used: 0, now: 0, entries: HashMap::new(), by_use: BTreeMap::new() };
    let mut buffer = Vec::new();
    let (mut own, mut other) = (0u32, 0u32);
    for _ in 0..requests {
        let key = keys();
        let len = 50 + (key as usize * 7919) % 500;
        if read(&l1, key, &mut buffer).is_some() {
            own += 1;
        } else {
            let _ = l1.set(&name(key), &entry(&value(key, 1, len), 1));
        }
        if lru.get(key) { other += 1 } else { lru.set(key, len) }
    }
    let percent = |hits: u32| f64::from(hits) * 100.0 / requests as f64;
    (percent(own), percent(other))
}

/// Keys of which the nth most frequent comes in proportion to 1/n.
fn zipf(keys: u64, seed: u64) -> impl FnMut() -> u64 {
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=keys)
        .map(|nth| {
            sum += 1.0 / nth as f64;
            sum
        })
        .collect();
    let mut numbers = Numbers(seed);
    move || {
        let at = numbers.below(1 << 52) as f64 / (1u64 << 52) as f64 * sum;
        sums.partition_point(|sum| *sum < at) as u64
    }
}

#[test]
fn frequent_keys_stay_at_least_as_well_as_by_last_use() {
    let (own, lru) = hits(zipf(50_000, 5), 400_000);
    println!("zipf: {own:.1} % hits, by last use {lru:.1} %");
    assert!(own > lru + 1.0, "{own} % and {lru} %");
}

#[test]
fn a_scan_does_not_wash_out_what_is_read_often() {
    let (mut frequent, mut nth) = (zipf(50_000, 6), 0);
    let mixed = move || {
        nth += 1;
        // Now and then 20,000 keys that are read once: several times what fits.
        if nth % 100_000 > 80_000 { 1_000_000 + nth } else { frequent() }
    };
    let (own, lru) = hits(mixed, 500_000);
    println!("zipf with scans: {own:.1} % hits, by last use {lru:.1} %");
    assert!(own > lru + 2.0, "{own} % and {lru} %");
}

#[test]
fn keys_that_all_fit_are_all_kept() {
    let mut numbers = Numbers(9);
    let (own, lru) = hits(|| numbers.below(4_000), 400_000);
    println!("uniform, all fit: {own:.1} % hits, by last use {lru:.1} %");
    assert!(own > lru - 1.5, "{own} % and {lru} %");
}
