//! A memory limit that is changed while the store runs.

use larder_store::*;

use crate::rig::{Rig, SET, bytes, config};

/// The most that one step of upkeep may evict, in bytes.
const STEP_BYTES: u64 = 4 << 20;

fn segments_in_use(rig: &Rig) -> u64 {
    let stats = rig.store.stats();
    stats.ram_segments - stats.ram_segments_free - stats.ram_segments_withheld
}

/// Upkeep until the store has shrunk to its limit; returns after how many steps.
fn shrink(rig: &Rig) -> u32 {
    for steps in 1..2_000 {
        let before = segments_in_use(rig);
        rig.store.upkeep(rig.now.get());
        let stats = rig.store.stats();
        let gone = before.saturating_sub(segments_in_use(rig)) * stats.ram_segment_bytes;
        assert!(gone <= STEP_BYTES, "one step evicted {gone} bytes");
        rig.settle();
        let withheld = stats.ram_segments_withheld * stats.ram_segment_bytes;
        if stats.arena_bytes - withheld <= rig.store.memory_limit_bytes() {
            return steps;
        }
    }
    panic!("the store never shrinks: {:?}", rig.store.stats());
}

fn fill(rig: &Rig) {
    for i in 0..60_000_u64 {
        rig.set(&format!("key-{i}"), &bytes(i, 1_000));
    }
}

#[test]
fn a_lower_limit_evicts_in_steps_and_a_higher_one_makes_room_again() {
    let rig = Rig::new(64, 0);
    fill(&rig);
    let full = rig.store.stats().ram_items;
    assert!(rig.store.set_memory_limit(24 << 20));
    assert!(shrink(&rig) > 5);
    let small = rig.store.stats().ram_items;
    assert!(small < full / 2 && small > full / 8, "{small} of {full} items");
    fill(&rig);
    assert!(rig.store.stats().ram_items < full / 2, "what is set later keeps to the limit");
    rig.store.check().expect("every count is right");
    assert!(rig.store.set_memory_limit(64 << 20));
    fill(&rig);
    assert_eq!(rig.store.stats().ram_segments_withheld, 0);
    assert!(rig.store.stats().ram_items > full * 9 / 10);
    assert_eq!(rig.value("key-59999"), Some(bytes(59_999, 1_000)));
    rig.store.check().expect("every count is right");
}

#[test]
fn with_an_ssd_no_item_is_lost_to_a_lower_limit() {
    let rig = Rig::new(64, 16);
    for i in 0..20_000_u64 {
        rig.set(&format!("key-{i}"), &bytes(i, 1_000));
    }
    assert!(rig.store.set_memory_limit(24 << 20));
    shrink(&rig);
    assert!(rig.store.stats().ssd_items > 0);
    for i in 0..20_000_u64 {
        assert_eq!(rig.value(&format!("key-{i}")), Some(bytes(i, 1_000)), "key-{i}");
    }
    rig.store.check().expect("every count is right");
}

#[test]
fn a_store_that_may_not_evict_keeps_everything_under_a_lower_limit() {
    let rig = Rig::with(&Config { evict: false, ..config(64 << 20, 0) });
    for i in 0..10_000_u64 {
        rig.set(&format!("key-{i}"), &bytes(i, 1_000));
    }
    assert!(rig.store.set_memory_limit(20 << 20));
    (0..100).for_each(|_| rig.store.upkeep(rig.now.get()));
    assert!((0..20_000_u64).any(|i| rig.put(&format!("more-{i}"), &bytes(i, 1_000), &SET).is_none()));
    for i in 0..10_000_u64 {
        assert_eq!(rig.value(&format!("key-{i}")), Some(bytes(i, 1_000)), "key-{i}");
    }
    rig.store.check().expect("every count is right");
}

#[test]
fn a_limit_that_cannot_be_kept_is_refused() {
    let rig = Rig::new(64, 0);
    assert!(!rig.store.set_memory_limit((64 << 20) + 1), "the arena was made for less");
    assert!(!rig.store.set_memory_limit(1 << 20), "its index and a RAM tier take more");
    assert_eq!(rig.store.memory_limit_bytes(), 64 << 20);
    assert!(rig.store.set_memory_limit(20 << 20));
    assert_eq!(rig.store.memory_limit_bytes(), 20 << 20);
}

#[test]
fn the_limit_may_change_while_threads_set_and_get() {
    const THREADS: u64 = 3;
    const SETS: u64 = 20_000;
    let store = Store::open(&config(48 << 20, 0)).expect("the configuration fits");
    let now = Seconds(1_000);
    let value = bytes(1, 3_000);
    let run = |thread: u64| {
        for i in 0..SETS {
            let key = format!("{thread}-{}", i % 8_000);
            let hash = store.hash(key.as_bytes());
            let call = Call { key: key.as_bytes(), hash, now, loaded: None, on_full: OnFull::Drop };
            let mut put = || store.put(&call, &SET, &mut Payload::Bytes(&value));
            let stored = std::iter::repeat_with(&mut put).find(|step| !matches!(step, Step::Again));
            let stored = stored.expect("it ends");
            assert!(matches!(stored, Step::Done(PutResult::Stored(_))), "{stored:?}");
            // The item may have been evicted since; if it is there, its value is whole.
            let is_right = store.fetch(&call, &Fetch::default(), |found| {
                found.is_none_or(|found| {
                    let mut whole = Vec::new();
                    found.value.append_to(&mut whole);
                    whole == value
                })
            });
            assert!(matches!(is_right, Step::Done(true)), "{is_right:?}");
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || run(thread))).collect();
        for round in 0.. {
            assert!(store.set_memory_limit(if round % 2 == 0 { 16 << 20 } else { 48 << 20 }));
            (0..20).for_each(|_| store.upkeep(now));
            if threads.iter().all(|thread| thread.is_finished()) {
                break;
            }
        }
    });
    assert!(store.set_memory_limit(16 << 20));
    (0..50).for_each(|_| store.upkeep(now));
    let stats = store.stats();
    assert!(
        stats.arena_bytes - stats.ram_segments_withheld * stats.ram_segment_bytes <= 16 << 20,
        "{stats:?}"
    );
    store.check().expect("every count is right");
}
