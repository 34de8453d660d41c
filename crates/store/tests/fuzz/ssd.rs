//! Pages of an SSD that are changed, exchanged and put back as they were earlier, behind the back of a store.

use std::collections::HashMap;

use larder_device::{Device, IoBuf};
use larder_store::*;

use super::harness::Choices;
use super::rig::{COUNT, Rig, SET, bytes};

const SSD_SEGMENTS: u64 = 4;
const PAGES: u64 = SSD_SEGMENTS * SEGMENT_BYTES / PAGE_BYTES as u64;
/// From records of which many share a page to one of its own segments in RAM.
const SIZES: [usize; 5] = [1, 100, 3_000, 20_000, 200_000];

/// One input: what is stored, and what is done to the pages. Returns how many items were found after the damage,
/// and how many were not.
pub fn check(data: &[u8]) -> (u64, u64) {
    let (stored, rest) = data.split_at(data.len() / 2);
    let (damage, later) = rest.split_at(rest.len() / 2);
    let mut damaged = Damaged::new(stored);
    damaged.fill(200);
    damaged.remember_pages();
    damaged.fill(500);
    damaged.random = Choices::new(damage);
    while !damaged.random.is_over() {
        damaged.damage();
    }
    damaged.random = Choices::new(later);
    let outcome = damaged.read_all();
    damaged.change();
    damaged.list();
    // Segments are reused, for which what is damaged is read back.
    damaged.fill(300);
    damaged.rig.perform_io();
    damaged.damage();
    damaged.read_all();
    damaged.rig.store.check().expect("the store is in order");
    outcome
}

/// A store whose items are on its SSD, what each key holds, and pages as they were earlier.
struct Damaged<'a> {
    rig: Rig,
    random: Choices<'a>,
    /// How many values were made, which tells them apart.
    made: u64,
    stored: HashMap<String, Vec<u8>>,
    earlier: Vec<(u64, IoBuf)>,
}

impl<'a> Damaged<'a> {
    fn new(data: &'a [u8]) -> Damaged<'a> {
        let (rig, random) = (Rig::new(8, SSD_SEGMENTS), Choices::new(data));
        Damaged { rig, random, made: 0, stored: HashMap::new(), earlier: Vec::new() }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound as usize) as u64
    }

    /// Returns bytes that no other call returns.
    fn other_bytes(&mut self, len: usize) -> Vec<u8> {
        self.made += 1;
        bytes(self.made, len)
    }

    /// Stores items, some of them again with other values, and moves all of them to the SSD.
    fn fill(&mut self, items: u64) {
        for _ in 0..items {
            if self.random.is_over() {
                break;
            }
            let key = format!("key-{}", self.random.below(600));
            let size = SIZES[self.random.below(SIZES.len())];
            let size = self.random.below(size);
            let value = self.other_bytes(size);
            if self.rig.put(&key, &value, &SET).is_some() {
                self.stored.insert(key, value);
            } else {
                self.stored.remove(&key);
            }
        }
        self.rig.push_out();
        self.rig.settle();
    }

    fn page(&self, page: u64) -> IoBuf {
        let mut buffer = IoBuf::zeroed(PAGE_BYTES);
        self.rig.device.read_at(&mut buffer, page * PAGE_BYTES as u64).expect("inside");
        buffer
    }

    /// Returns a page that is likely to have been written.
    fn written_page(&mut self) -> u64 {
        let segment = self.below(SSD_SEGMENTS) * (SEGMENT_BYTES / PAGE_BYTES as u64);
        let near = 1 << self.below(13);
        (segment + self.below(near)).min(PAGES - 1)
    }

    fn remember_pages(&mut self) {
        for _ in 0..200 {
            let page = self.written_page();
            let contents = self.page(page);
            self.earlier.push((page, contents));
        }
    }

    /// Changes one page: bits, bytes, all of it, another page's contents or its own earlier ones.
    fn damage(&mut self) {
        let page = self.written_page();
        let mut contents = self.page(page);
        let at = self.random.below(PAGE_BYTES);
        match self.random.below(7) {
            0 => contents[at] ^= 1 << self.random.below(8),
            1 => contents[at] = self.random.below(256) as u8,
            // The page's own header, or a record's.
            2 => contents[at % 64] = self.random.below(256) as u8,
            3 => contents[at..].fill(self.random.below(2) as u8 * 0xFF),
            4 => contents.copy_from_slice(&self.other_bytes(PAGE_BYTES)),
            5 => {
                let other = self.written_page();
                contents = self.page(other);
            }
            _ => {
                if self.earlier.is_empty() {
                    return;
                }
                let which = self.random.below(self.earlier.len());
                let (page, contents) = &self.earlier[which];
                let written = self.rig.device.write_at(contents, page * PAGE_BYTES as u64);
                assert_eq!(written.expect("inside"), PAGE_BYTES);
                return;
            }
        }
        let written = self.rig.device.write_at(&contents, page * PAGE_BYTES as u64);
        assert_eq!(written.expect("inside"), PAGE_BYTES);
    }

    /// Reads every key. Returns how many items were there and how many were not.
    fn read_all(&self) -> (u64, u64) {
        let (mut found, mut missed) = (0, 0);
        for (key, value) in &self.stored {
            match self.rig.value(key) {
                Some(got) => {
                    assert!(got == *value, "{key} holds {} bytes that were not stored", got.len());
                    found += 1;
                }
                None => missed += 1,
            }
        }
        (found, missed)
    }

    /// Changes items in every way; a value that came to be is known only where it was stored whole.
    fn change(&mut self) {
        for _ in 0..200 {
            let key = format!("key-{}", self.random.below(600));
            match self.random.below(5) {
                0 => drop(self.rig.arith(&key, &COUNT)),
                1 => drop(self.rig.put(&key, b"+", &Put { mode: PutMode::Append, ..SET })),
                2 => drop(self.rig.remove(&key, &Remove::default())),
                3 => drop(self.rig.put(&key, b"new", &Put { mode: PutMode::Add, ..SET })),
                _ => {
                    let touch = Fetch { touch: Some(self.rig.in_seconds(500)), ..Fetch::default() };
                    let _ = self.rig.fetch(&key, &touch);
                    continue;
                }
            }
            self.stored.remove(&key);
        }
    }

    fn list(&self) {
        let mut dump = self.rig.store.begin_listing();
        let mut read: Option<(ReadPlan, Option<IoBuf>)> = None;
        for _ in 0..1_000_000 {
            let loaded = read.as_ref().map(|(plan, bytes)| Loaded { plan, bytes: bytes.as_deref() });
            match self.rig.store.list_next(&mut dump, self.rig.now.get(), loaded) {
                Listed::Items(_) => read = None,
                Listed::Read(plan) => {
                    let bytes = self.rig.read(&plan);
                    read = Some((plan, bytes));
                }
                Listed::End => return,
            }
        }
        panic!("the listing does not end");
    }
}
