//! Whatever is written over the memory of a cache: no crash, and no value that was not stored under the key.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::super::layout::BUCKET;
use super::super::slot::{Place, Slot};
use super::super::{Claim, L1};
use super::{entry, name, small_cache, value, version};

const KEYS: u64 = 300;

/// Every kind of call.
fn use_it(l1: &L1, random: &mut Xoshiro256PlusPlus) {
    let key = random.next_u64() % KEYS;
    let len = [0, 5, 200, 3_000][(random.next_u64() % 4) as usize];
    let now = random.next_u64() % 1_000_000;
    match random.next_u64() % 12 {
        0 => drop(l1.delete(&name(key))),
        1 => {
            let ticket = l1.begin_fetch(&name(key));
            let _ = l1.fill(&ticket, &name(key), &entry(&value(key, now, len), now));
        }
        2 => drop(l1.touch(&l1.begin_fetch(&name(key)), &name(key), now, u64::MAX)),
        3..6 => _ = l1.set(&name(key), &entry(&value(key, now, len), now)),
        _ => drop(version(l1, key)),
    }
}

/// Returns one of the first words of a record that a slot leads to.
fn record_of_a_slot(l1: &L1, random: &mut Xoshiro256PlusPlus) -> usize {
    let layout = &l1.inner.cache.layout;
    let slots = (layout.buckets * BUCKET) as u64;
    let at = layout.indexes_at + (random.next_u64() % slots) as usize;
    let slot = Slot(l1.inner.words()[at].load(Relaxed));
    let ring = if slot.place() == Place::Main { layout.rings_at + layout.small } else { layout.rings_at };
    ring + slot.offset() % layout.main + (random.next_u64() % 7) as usize
}

/// Overwrites some words behind the header: with anything, with a flipped bit, or with another word.
fn scribble(l1: &L1, random: &mut Xoshiro256PlusPlus) {
    let words = &l1.inner.words()[512..];
    let at = match random.next_u64() % 6 {
        // These are few words, and matter more than those of the rings.
        0 => l1.inner.cache.layout.controls_at - 512 + (random.next_u64() % 16) as usize,
        2 => l1.inner.cache.layout.flights_at - 512 + (random.next_u64() % 64) as usize,
        1 => l1.inner.cache.layout.indexes_at - 512 + (random.next_u64() % 4_096) as usize,
        3 => record_of_a_slot(l1, random) - 512,
        _ => (random.next_u64() % words.len() as u64) as usize,
    };
    for word in words.iter().skip(at).take(1 + (random.next_u64() % 4) as usize) {
        let other = words[(random.next_u64() % words.len() as u64) as usize].load(Relaxed);
        let now = word.load(Relaxed);
        let scribbled =
            [random.next_u64(), now ^ 1 << (random.next_u64() % 64), other, 0, u64::MAX, now.wrapping_add(1)];
        word.store(scribbled[(random.next_u64() % 6) as usize], Relaxed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scribbled_memory_is_a_miss(seed in any::<u64>(), often in 1u64..200) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let l1 = small_cache();
        for round in 1..3_000 {
            use_it(&l1, &mut random);
            // A scribbled lock costs the time after which it is taken, and is one word among many.
            if round % often == 0 {
                scribble(&l1, &mut random);
            }
        }
        let _ = (l1.stats(), l1.stats_by_process());
        if let Claim::Waiter(waiter) = l1.claim(b"key-1") {
            let since = Instant::now();
            drop(waiter.wait(Duration::from_millis(50)));
            prop_assert!(since.elapsed() < Duration::from_secs(5));
        }
    }
}

#[test]
fn memory_that_is_scribbled_on_meanwhile_is_a_miss() {
    let l1 = small_cache();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (l1, is_over) = (&l1, &is_over);
            scope.spawn(move || {
                let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
                while !is_over.load(Relaxed) {
                    use_it(l1, &mut random);
                }
            });
        }
        let mut random = Xoshiro256PlusPlus::seed_from_u64(99);
        for _ in 0..200 {
            scribble(&l1, &mut random);
            std::thread::sleep(Duration::from_millis(5));
        }
        is_over.store(true, Relaxed);
    });
}
