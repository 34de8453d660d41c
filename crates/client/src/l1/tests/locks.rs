//! The lock of a shard, when its holder ends, stops, or comes back.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustix::thread::futex::OWNER_DIED;

use super::super::crash::armed::stop_at;
use super::super::layout::LINE;
use super::super::shard::write::Writer;
use super::super::{L1, L1Options, Stored, now_ms};
use super::{entry, name, small_cache, value, version};

/// Much less than the patience of those that wait here, and more than a busy machine makes a thread wait.
const AT_ONCE: Duration = Duration::from_secs(4);

fn writer(l1: &L1, patience: Duration) -> Writer<'_> {
    l1.inner.shard_at(0).write(l1.inner.counts(), now_ms(), patience)
}

#[test]
fn the_kernel_releases_the_lock_of_a_thread_that_ended() {
    let l1 = small_cache();
    let _ = l1.set(b"key-1", &entry(&value(1, 1, 100), 1));
    let other = l1.clone();
    // The lock is never released: the thread ends while it holds it.
    std::thread::spawn(move || std::mem::forget(writer(&other, Duration::from_secs(9))))
        .join()
        .expect("it ends");
    let lock = &l1.inner.words()[l1.inner.cache.layout.controls_at];
    assert!(lock.load(Relaxed) as u32 & OWNER_DIED != 0, "{:x}", lock.load(Relaxed));
    let since = Instant::now();
    let _ = l1.set(b"key-2", &entry(&value(2, 1, 100), 1));
    assert!(since.elapsed() < AT_ONCE, "{:?}", since.elapsed());
    assert_eq!((version(&l1, 1), version(&l1, 2)), (Some(1), Some(1)));
    assert_eq!(l1.stats().shards_reset, 0);
}

#[test]
fn a_thread_that_waits_has_the_lock_at_once_when_the_holder_ends() {
    let l1 = small_cache();
    let (holds, held) = std::sync::mpsc::channel();
    let (other, third) = (l1.clone(), l1.clone());
    let holder = std::thread::spawn(move || {
        let writer = writer(&other, Duration::from_secs(9));
        holds.send(()).expect("the test waits");
        std::thread::sleep(Duration::from_millis(30));
        std::mem::forget(writer);
        Instant::now()
    });
    held.recv().expect("the thread holds the lock");
    let waiter = std::thread::spawn(move || {
        drop(writer(&third, Duration::from_secs(9)));
        Instant::now()
    });
    let (ended, had) = (holder.join().expect("it ends"), waiter.join().expect("it ends"));
    let waited = had.saturating_duration_since(ended);
    assert!(waited < AT_ONCE, "{waited:?}");
    assert_eq!(l1.stats().shards_reset, 0);
}

#[test]
fn a_holder_that_was_stopped_loses_its_lock_and_its_change() {
    let l1 = small_cache();
    let _ = l1.set(b"key-1", &entry(&value(1, 1, 100), 1));
    let other = l1.clone();
    let (holds, held) = std::sync::mpsc::channel();
    let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
    let stopped = std::thread::spawn(move || {
        let fetched = value(1, 1, 100);
        let hash = other.inner.hash(&name(1));
        let header = super::super::record::Header::new(hash, &name(1), &entry(&fetched, 1), 0);
        let mut writer = writer(&other, Duration::from_secs(9));
        holds.send(()).expect("the test waits");
        goes_on.recv().expect("the test goes on");
        writer.store(&header, &name(1), &fetched, 1_000);
    });
    held.recv().expect("the thread holds the lock");
    assert_eq!(version(&l1, 1), Some(1), "readers do not wait for a lock");
    let since = Instant::now();
    l1.delete(b"key-1");
    assert!(since.elapsed() < AT_ONCE, "{:?}", since.elapsed());
    let _ = l1.set(b"key-2", &entry(&value(2, 7, 100), 7));
    go_on.send(()).expect("the thread waits");
    stopped.join().expect("it ends");
    assert_eq!(version(&l1, 1), None, "what the stopped holder stored was deleted after it had begun");
    assert_eq!(version(&l1, 2), Some(7));
    assert_eq!(l1.stats().shards_reset, 1);
    for key in 0..2_000 {
        assert_eq!(l1.set(&name(key), &entry(&value(key, 9, 300), 9)), Stored::Yes);
        assert_eq!(version(&l1, key), Some(9));
    }
    assert_eq!(l1.stats().shards_reset, 1);
}

/// Others take the lock from a holder before each of its stores, delete the key that it is about to store, and store
/// much themselves. Then it goes on.
#[test]
fn a_holder_stopped_at_any_store_brings_nothing_back_and_breaks_nothing() {
    let l1 = L1Options::new().bytes(512 << 10).lock_patience(Duration::from_micros(200));
    let l1 = l1.anonymous().expect("there is memory");
    for key in 0..3_000 {
        let _ = l1.set(&name(key), &entry(&value(key, 1, 300), 1));
        (0..40).for_each(|hot| _ = version(&l1, hot));
    }
    for (laps, len) in [(0, 100), (0, 3_000), (1, 3_000), (3, 100)] {
        let mut steps = 1;
        loop {
            let (fetched, ticket) = (value(1, 7, len), l1.begin_fetch(&name(1)));
            let other = l1.clone();
            let meanwhile = move || {
                other.delete(&name(1));
                for key in 100..110 + laps * 200 {
                    let _ = other.set(&name(key), &entry(&value(key, 9, 3_000), 9));
                }
            };
            let fill = || l1.fill(&ticket, &name(1), &entry(&fetched, 7));
            let resets = l1.stats().shards_reset;
            let (_, was_stopped) = stop_at(steps, meanwhile, fill);
            if !was_stopped {
                assert!(steps > 20, "{steps}");
                break;
            }
            assert_eq!(version(&l1, 1), None, "{len} bytes, {laps} laps, stopped before store {steps}");
            let kept = (100..110).filter(|key| version(&l1, *key) == Some(9)).count();
            assert!(kept >= 8 || laps > 0, "{kept} of 10 that others stored, stopped before store {steps}");
            for key in 0..20 {
                let _ = l1.set(&name(key), &entry(&value(key, 2, 500), 2));
                assert_eq!(version(&l1, key), Some(2));
            }
            let resets = l1.stats().shards_reset - resets;
            assert!(resets == 1 || laps > 0, "{resets} resets, stopped before store {steps}");
            l1.delete(&name(1));
            steps += 1 + steps / 30;
        }
    }
}

#[test]
fn a_lock_that_holds_nonsense_is_had_after_a_while() {
    let l1 = small_cache();
    for nonsense in [u64::MAX, 1, u64::from(u32::MAX) >> 2, 5 << 32 | 1 << 31, u64::from(OWNER_DIED)] {
        l1.inner.words()[l1.inner.cache.layout.controls_at].store(nonsense, Relaxed);
        let since = Instant::now();
        let _ = l1.set(b"key-3", &entry(&value(3, 1, 100), 1));
        assert!(since.elapsed() < AT_ONCE, "{:?}", since.elapsed());
        assert_eq!(version(&l1, 3), Some(1));
    }
}

#[test]
fn bounds_that_make_no_sense_empty_the_shard() {
    let l1 = small_cache();
    for at in LINE..LINE + 4 {
        for nonsense in [0, 1, u64::MAX, 5 << 28, (1 << 28) - 1, 2 << 28 | 0xFFF_FFFF] {
            l1.inner.words()[l1.inner.cache.layout.controls_at + at].store(nonsense, Relaxed);
            for key in 0..50 {
                let _ = l1.set(&name(key), &entry(&value(key, 1, 3_000), 1));
                assert_eq!(version(&l1, key), Some(1));
            }
        }
    }
    assert!(l1.stats().shards_reset > 10);
}
