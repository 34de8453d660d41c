//! What the shared cache does, call by call.

#[path = "l1/rig.rs"]
mod rig;

use std::thread::sleep;
use std::time::Duration;

use larder_client::{Entry, Hit, L1, L1Options, Stored, now_ms};
use rig::{Folder, entry, name, read, value};

fn cache(bytes: u64) -> L1 {
    L1Options::new().bytes(bytes).anonymous().expect("there is memory")
}

fn get(l1: &L1, key: &[u8]) -> Option<(Vec<u8>, Hit)> {
    let mut value = b"what was in the buffer before".to_vec();
    let hit = l1.get(key, &mut value);
    assert!(hit.is_some() || value.is_empty(), "a miss leaves no bytes of an earlier value");
    hit.map(|hit| (value, hit))
}

fn cas(l1: &L1, key: &[u8]) -> Option<u64> {
    get(l1, key).map(|(_, hit)| hit.cas)
}

#[test]
fn everything_of_an_entry_comes_back() {
    let l1 = cache(1 << 20);
    let now = now_ms();
    let stored = Entry {
        value: b"the value",
        flags: 0xFEDC_BA98,
        cas: u64::MAX,
        epoch: u32::MAX - 1,
        mark: 255,
        feed: 0,
        fresh_until_ms: now + 100_000,
        stale_until_ms: now + 300_000,
    };
    assert_eq!(get(&l1, b"key"), None);
    assert_eq!(l1.set(b"key", &stored), Stored::Yes);
    let (bytes, hit) = get(&l1, b"key").expect("it was stored");
    assert_eq!(bytes, b"the value");
    assert_eq!((hit.flags, hit.cas, hit.epoch, hit.mark), (0xFEDC_BA98, u64::MAX, u32::MAX - 1, 255));
    assert!(hit.is_fresh && hit.fresh_until_ms == now + 100_000 && hit.stale_until_ms == now + 300_000);
    assert_eq!(l1.get_with(b"key", |hit, value| (hit.mark, value.len())), Some((255, 9)));
    assert_eq!(l1.get_with(b"kex", |_, _| ()), None);
    let nested = l1.get_with(b"key", |_, outer| l1.get_with(b"key", |_, inner| inner == outer));
    assert_eq!(nested, Some(Some(true)));
    assert_eq!((l1.len(), l1.is_empty()), (1, false));
}

#[test]
fn values_of_every_size_up_to_the_bound_come_back_and_larger_ones_delete_the_key() {
    for bytes in [512 << 10, 4 << 20, 64 << 20] {
        let l1 = cache(bytes);
        let max = l1.value_bytes_max();
        assert!(max as u64 > bytes.min(4 << 20) / 4, "{max} of {bytes}");
        let sizes = [0, 1, 7, 8, 9, 255, 256, 257, 4_095, 4_096, 28_579, 100_000, max - 1, max];
        for (key, len) in sizes.into_iter().filter(|len| *len <= max).enumerate() {
            let (key, mut buffer) = (key as u64, Vec::new());
            for version in [1, 2] {
                let stored = value(key, version, len);
                assert_eq!(l1.set(&name(key), &entry(&stored, version)), Stored::Yes);
                assert_eq!(read(&l1, key, &mut buffer).map(|hit| hit.cas), Some(version), "{len} bytes");
                assert_eq!(buffer.len(), len);
            }
            for too_long in [max + 256, 3 * max, 32 << 20] {
                assert_eq!(l1.set(&name(key), &entry(&vec![0; too_long], 3)), Stored::TooLarge);
                assert_eq!(cas(&l1, &name(key)), None, "an older value must not come back");
                let _ = l1.set(&name(key), &entry(&value(key, 2, len), 2));
            }
        }
    }
}

#[test]
fn keys_of_every_length_are_told_apart() {
    let l1 = cache(4 << 20);
    let keys: Vec<Vec<u8>> = (0..=250usize).flat_map(|len| [vec![0; len], vec![b'k'; len]]).collect();
    for (nth, key) in keys.iter().enumerate() {
        assert_eq!(l1.set(key, &entry(&nth.to_le_bytes(), nth as u64)), Stored::Yes);
    }
    for (nth, key) in keys.iter().enumerate().skip(2) {
        assert_eq!(cas(&l1, key), Some(nth as u64), "{} bytes", key.len());
    }
    assert_eq!(l1.set(&[b'k'; 251], &entry(b"", 1)), Stored::TooLarge);
    assert_eq!(cas(&l1, &[b'k'; 251]), None);
    assert!(!l1.delete(&[b'k'; 251]));
}

#[test]
fn an_entry_is_fresh_then_stale_then_gone() {
    let l1 = cache(1 << 20);
    let now = now_ms();
    let times =
        Entry { value: b"v", fresh_until_ms: now + 60, stale_until_ms: now + 160, ..Entry::default() };
    let _ = l1.set(b"key", &times);
    assert!(get(&l1, b"key").is_some_and(|(_, hit)| hit.is_fresh || now_ms() >= now + 60));
    sleep(Duration::from_millis(80));
    assert!(get(&l1, b"key").map_or(now_ms() >= now + 160, |(_, hit)| !hit.is_fresh));
    sleep(Duration::from_millis(100));
    assert_eq!(get(&l1, b"key"), None);
    assert!(!l1.delete(b"key"), "it had gone before");
    let _ = l1.set(b"past", &Entry { value: b"v", fresh_until_ms: 1, stale_until_ms: 2, ..Entry::default() });
    assert_eq!(get(&l1, b"past"), None);
}

#[test]
fn a_fetch_that_began_before_a_change_is_not_stored() {
    // Large, so that hardly ever two of the keys share a count of changes.
    let l1 = cache(64 << 20);
    let fetched = entry(b"old", 1);
    let refused = |change: &dyn Fn()| {
        let ticket = l1.begin_fetch(b"key");
        change();
        let before = cas(&l1, b"key");
        assert_eq!(l1.fill(&ticket, b"key", &fetched), Stored::Refused);
        assert_eq!(cas(&l1, b"key"), before);
    };
    refused(&|| _ = l1.delete(b"key"));
    refused(&|| _ = l1.set(b"key", &entry(b"new", 2)));
    refused(&|| _ = l1.delete(b"key"));
    refused(&|| _ = l1.fill(&l1.begin_fetch(b"key"), b"key", &entry(b"another's", 3)));
    refused(&|| l1.clear());
    refused(&|| _ = l1.set(b"key", &entry(&vec![0; 32 << 20], 2)));
    let ticket = l1.begin_fetch(b"key");
    assert_eq!(l1.fill(&ticket, b"other", &fetched), Stored::Refused, "a ticket is for one key");
    let _ = l1.set(b"an unrelated key", &entry(b"v", 9));
    assert_eq!(l1.fill(&ticket, b"key", &fetched), Stored::Yes);
    assert_eq!(l1.fill(&ticket, b"key", &fetched), Stored::Refused, "a ticket is good for one fill");
    assert_eq!(l1.stats().refused, 8);
}

#[test]
fn a_deleted_key_stays_deleted_however_much_is_stored_meanwhile() {
    let l1 = cache(512 << 10);
    let _ = l1.set(b"key", &entry(b"old", 1));
    let ticket = l1.begin_fetch(b"key");
    assert!(l1.delete(b"key") && !l1.delete(b"key"));
    for nth in 0..5_000 {
        let _ = l1.set(&name(nth), &entry(&value(nth, 1, 400), 1));
    }
    assert!(l1.stats().evicted > 3_000, "what could have told of the delete was overwritten");
    assert_eq!(l1.fill(&ticket, b"key", &entry(b"old", 1)), Stored::Refused);
}

#[test]
fn a_touch_makes_the_same_version_fresh_and_no_other() {
    let l1 = cache(1 << 20);
    let now = now_ms();
    let stale =
        Entry { value: b"v", cas: 7, fresh_until_ms: now, stale_until_ms: now + 50_000, ..Entry::default() };
    let _ = l1.set(b"key", &stale);
    assert!(get(&l1, b"key").is_some_and(|(_, hit)| !hit.is_fresh));
    let ticket = l1.begin_fetch(b"key");
    assert!(!l1.touch(&ticket, b"key", 8, now + 90_000) && !l1.touch(&ticket, b"kex", 7, now + 90_000));
    assert!(l1.touch(&ticket, b"key", 7, now + 90_000));
    let (bytes, hit) = get(&l1, b"key").expect("it is there");
    assert!(hit.is_fresh && hit.fresh_until_ms == now + 90_000 && hit.stale_until_ms == now + 140_000);
    assert_eq!(bytes, b"v");
    l1.delete(b"key");
    let _ = l1.set(b"key", &stale);
    assert!(!l1.touch(&ticket, b"key", 7, now + 90_000), "the key has changed since");
    assert!(get(&l1, b"key").is_some_and(|(_, hit)| !hit.is_fresh));
}

#[test]
fn revalidation_makes_all_that_was_fetched_before_stale() {
    // Large, so that hardly ever two of the keys share a count of changes.
    let l1 = cache(64 << 20);
    for key in 0..100 {
        let _ = l1.set(&name(key), &entry(&value(key, key, 100), key));
    }
    let (early, touched) = (l1.begin_fetch(b"early"), l1.begin_fetch(&name(7)));
    l1.revalidate_all();
    let is_fresh = |key: &[u8]| get(&l1, key).map(|(_, hit)| hit.is_fresh);
    assert!((0..100).all(|key| is_fresh(&name(key)) == Some(false)), "they are there, and stale");
    assert_eq!(l1.fill(&early, b"early", &entry(b"v", 1)), Stored::Yes);
    assert!(l1.touch(&touched, &name(7), 7, now_ms() + 90_000));
    assert_eq!((is_fresh(b"early"), is_fresh(&name(7))), (Some(false), Some(false)), "asked before");
    assert!(l1.touch(&l1.begin_fetch(&name(7)), &name(7), 7, now_ms() + 90_000));
    let _ = l1.set(b"late", &entry(b"v", 1));
    assert_eq!((is_fresh(b"late"), is_fresh(&name(7))), (Some(true), Some(true)), "asked afterwards");
}

#[test]
fn clearing_forgets_everything_and_the_cache_goes_on() {
    let l1 = cache(16 << 20);
    let store = |version| {
        for key in 0..2_000 {
            let _ = l1.set(&name(key), &entry(&value(key, version, 300), version));
        }
    };
    store(1);
    assert_eq!(l1.len(), 2_000);
    l1.clear();
    assert_eq!(l1.len(), 0);
    assert!((0..2_000).all(|key| cas(&l1, &name(key)).is_none()));
    store(2);
    assert!((0..2_000).all(|key| cas(&l1, &name(key)) == Some(2)));
    assert_eq!(l1.stats().shards_reset, 0);
}

/// Stores so many entries that are never read.
fn pass_through(l1: &L1, from: u64, entries: u64) {
    for key in from..from + entries {
        let _ = l1.set(&name(key), &entry(&value(key, 1, 200), 1));
    }
}

#[test]
fn what_is_read_stays_and_what_is_not_leaves() {
    let l1 = cache(512 << 10);
    let mut buffer = Vec::new();
    pass_through(&l1, 0, 3_000);
    assert!(l1.len() > 1_000, "a new file fills: {}", l1.len());
    pass_through(&l1, 10_000, 50);
    for round in 0..200 {
        (10_000..10_050).for_each(|hot| _ = read(&l1, hot, &mut buffer));
        pass_through(&l1, 20_000 + round * 100, 100);
    }
    let kept = (10_000..10_050).filter(|hot| read(&l1, *hot, &mut buffer).is_some()).count();
    assert!(kept >= 48, "{kept} of 50 hot entries");
    assert!(l1.stats().evicted > 15_000, "{:?}", l1.stats());
}

#[test]
fn entries_that_come_back_soon_after_they_left_stay() {
    let l1 = cache(512 << 10);
    let mut buffer = Vec::new();
    let keys = 10_000..10_040;
    pass_through(&l1, 0, 3_000);
    keys.clone().for_each(|key| _ = l1.set(&name(key), &entry(&value(key, 1, 200), 1)));
    pass_through(&l1, 20_000, 400);
    let gone = keys.clone().filter(|key| read(&l1, *key, &mut buffer).is_none()).collect::<Vec<_>>();
    assert!(gone.len() >= 32, "{} of 40 left", gone.len());
    gone.iter().for_each(|key| _ = l1.set(&name(*key), &entry(&value(*key, 2, 200), 2)));
    pass_through(&l1, 30_000, 400);
    let kept = gone.iter().filter(|key| read(&l1, **key, &mut buffer).map(|hit| hit.cas) == Some(2)).count();
    // Which keys share a shard is different in each file, and some are forgotten early.
    assert!(kept >= gone.len() / 2, "{kept} of {} stay", gone.len());
}

#[test]
fn an_entry_whose_time_is_over_makes_room_and_is_no_eviction() {
    let l1 = cache(512 << 10);
    let value = value(1, 1, 200);
    let until_ms = now_ms() + 50;
    let brief = Entry { fresh_until_ms: until_ms, stale_until_ms: until_ms, ..entry(&value, 1) };
    (0..1_000).for_each(|key| assert_eq!(l1.set(&name(key), &brief), Stored::Yes));
    let before = l1.stats().evicted;
    std::thread::sleep(Duration::from_millis(100));
    // As much as the small ring holds.
    pass_through(&l1, 10_000, 150);
    // One of eight entries that share a bucket of the index leaves for a ninth, and is counted whatever its time.
    assert!(l1.stats().evicted <= before + 8, "{:?}", l1.stats());
    // What nobody reads takes the room of what is over, and more than that has to leave.
    pass_through(&l1, 20_000, 1_000);
    assert!(l1.stats().evicted < before + 100, "{:?}", l1.stats());
    pass_through(&l1, 30_000, 3_000);
    assert!(l1.stats().evicted > before + 1_000, "{:?}", l1.stats());
}

#[test]
fn calls_are_counted() {
    let l1 = cache(1 << 20);
    let _ = l1.set(b"key", &entry(b"v", 1));
    (0..3).for_each(|_| drop(get(&l1, b"key")));
    drop(get(&l1, b"kex"));
    l1.delete(b"key");
    l1.delete(b"key");
    let stats = l1.stats();
    assert_eq!((stats.hits, stats.misses, stats.stored, stats.deleted), (3, 1, 1, 1));
}

#[test]
fn words_are_shared_by_name() {
    let folder = Folder::new();
    let l1 = folder.options(1 << 20).open("words").expect("a cache");
    assert_eq!(l1.shared_words().len(), 512);
    assert!(l1.shared_words().iter().all(|word| word.load(std::sync::atomic::Ordering::Relaxed) == 0));
    l1.shared_words()[511].store(5, std::sync::atomic::Ordering::Relaxed);
    let again = folder.options(1 << 20).open("words").expect("a cache");
    assert_eq!(again.shared_words()[511].load(std::sync::atomic::Ordering::Relaxed), 5);
}
