//! One cache in many threads: no value older than one that a thread has seen, no fill of a key that was deleted
//! meanwhile.

#[path = "l1/rig.rs"]
mod rig;

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use larder_client::{L1, L1Options, Stored};
use rig::{Numbers, entry, name, read, value};

const THREADS: [u64; 4] = [1, 2, 4, 64];
const SIZES: [usize; 6] = [0, 1, 64, 1_000, 9_000, 100_000];

fn cache() -> L1 {
    L1Options::new().bytes(2 << 20).anonymous().expect("there is memory")
}

/// Each thread stores rising versions of its own keys and reads those of all: a version that it finds is never older
/// than one that was acknowledged before it looked, nor than one that it has seen.
fn versions_rise(threads: u64, size: usize) {
    const KEYS: u64 = 8;
    let l1 = cache();
    let acknowledged: Vec<AtomicU64> = (0..threads * KEYS).map(|_| AtomicU64::new(0)).collect();
    let rounds = (40_000 / threads).min(10_000_000 / (threads * (size as u64 + 500))).max(50);
    let hits = AtomicU64::new(0);
    let work = |own: u64| {
        let (mut numbers, mut buffer) = (Numbers(own), Vec::new());
        for version in 1..=rounds {
            let key = own * KEYS + numbers.below(KEYS);
            if numbers.below(4) == 0 {
                assert_eq!(l1.set(&name(key), &entry(&value(key, version, size), version)), Stored::Yes);
                acknowledged[key as usize].store(version, Release);
            }
            let other = numbers.below(threads * KEYS);
            let at_least = acknowledged[other as usize].load(Acquire);
            if let Some(hit) = read(&l1, other, &mut buffer) {
                assert!(hit.cas >= at_least, "key {other} has {}, and {at_least} was stored before", hit.cas);
                acknowledged[other as usize].fetch_max(hit.cas, AcqRel);
                hits.fetch_add(1, AcqRel);
            }
        }
    };
    std::thread::scope(|scope| {
        for own in 0..threads {
            scope.spawn(move || work(own));
        }
    });
    let hits = hits.into_inner();
    assert!(hits > rounds / 10, "{threads} threads, {size} bytes: {hits} hits of {}", rounds * threads);
}

#[test]
fn no_thread_reads_a_version_that_was_replaced_before_it_looked() {
    for threads in THREADS {
        for size in SIZES {
            versions_rise(threads, size);
        }
    }
}

/// A server's version of a key, which threads change there and then delete here, while others fetch it.
#[test]
fn what_was_fetched_before_a_delete_never_comes_back() {
    const FILLS: u64 = 300;
    for threads in [2, 4, 64] {
        let l1 = cache();
        let server = AtomicU64::new(1);
        let deleted = AtomicU64::new(0);
        let is_over = AtomicBool::new(false);
        let (fills, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        let fetch = || {
            let mut buffer = Vec::new();
            while !is_over.load(Acquire) {
                let at_least = deleted.load(Acquire);
                match read(&l1, 1, &mut buffer) {
                    Some(hit) => {
                        assert!(hit.cas >= at_least, "{} after {at_least} was announced", hit.cas);
                        std::thread::yield_now();
                    }
                    None => {
                        let ticket = l1.begin_fetch(&name(1));
                        let version = server.load(Acquire);
                        // The value is on its way.
                        (0..version % 7).for_each(|_| std::thread::yield_now());
                        let stored = l1.fill(&ticket, &name(1), &entry(&value(1, version, 300), version));
                        let count = if stored == Stored::Yes { &fills } else { &refused };
                        count.fetch_add(1, AcqRel);
                    }
                }
            }
        };
        let mut numbers = Numbers(threads);
        std::thread::scope(|scope| {
            (1..threads).for_each(|_| _ = scope.spawn(fetch));
            let since = Instant::now();
            // Until enough was stored between deletes, on a machine that may have other things to do.
            while fills.load(Acquire) < FILLS && since.elapsed() < Duration::from_secs(60) {
                let version = server.fetch_add(1, AcqRel) + 1;
                l1.delete(&name(1));
                deleted.store(version, Release);
                // Sometimes at once, sometimes after several reads and fills.
                (0..numbers.below(20) * numbers.below(200)).for_each(|_| std::hint::spin_loop());
            }
            is_over.store(true, Release);
        });
        println!("{threads} threads: {fills:?} fills, {refused:?} refused");
        assert!(fills.into_inner() >= 30, "{threads} threads");
    }
}
