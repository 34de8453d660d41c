//! An index that grows while the store fills.

use larder_store::*;

use crate::rig::{Rig, SET, bytes, config};

/// The memory that the index and the RAM tier have together.
fn in_use(stats: &Stats) -> u64 {
    stats.index_bytes + stats.ram_segments * stats.ram_segment_bytes
}

fn fill(rig: &Rig, items: u64, value_bytes: usize) {
    for i in 0..items {
        rig.set(&format!("key-{i}"), &bytes(i, value_bytes));
    }
}

#[test]
fn the_index_follows_the_number_of_items_and_takes_its_memory_from_the_ram_tier() {
    let mut kept = Vec::new();
    for value_bytes in [10, 100, 1_000, 10_000] {
        let rig = Rig::new(32, 0);
        let before = rig.store.stats();
        fill(&rig, (48 << 20) / (value_bytes as u64 + 48), value_bytes);
        let stats = rig.store.stats();
        rig.store.check().expect("every count is right");
        assert_eq!(
            stats.index_evictions, 0,
            "values of {value_bytes} bytes: nothing gives way for want of an entry"
        );
        assert!(in_use(&stats) <= in_use(&before) + stats.ram_segment_bytes, "{before:?} {stats:?}");
        assert!(
            stats.index_entries * 100 >= stats.index_capacity * 70 || stats.index_bytes == before.index_bytes
        );
        kept.push(stats.index_bytes * 100 / stats.arena_bytes);
        for i in 0..1_000 {
            let key = format!("last-{i}");
            rig.set(&key, &bytes(i, value_bytes));
            assert_eq!(rig.value(&key), Some(bytes(i, value_bytes)));
        }
    }
    assert_eq!(kept[2..], [0, 0], "in percent of the memory");
    assert!(kept[0] > kept[1] && kept[1] > 4, "{kept:?}");
}

#[test]
fn no_item_is_lost_or_changed_while_the_index_grows() {
    let rig = Rig::new(64, 0);
    let mut missing = 0;
    for i in 0..300_000_u64 {
        rig.set(&format!("key-{i}"), &i.to_le_bytes());
        if i % 1_000 == 999 {
            // Those that are looked for have been moved from bucket to bucket, overwritten or deleted.
            for earlier in (i % 977..i).step_by(9_973) {
                let value = rig.value(&format!("key-{earlier}"));
                let expected = if earlier % 5 == 3 { None } else { Some(earlier.to_le_bytes().to_vec()) };
                assert!(value.is_none() || value == expected || earlier + 1_000 > i, "key-{earlier} of {i}");
                missing += u32::from(value != expected && earlier + 1_000 <= i);
            }
            for recent in i - 999..=i {
                match recent % 5 {
                    3 => drop(rig.remove(&format!("key-{recent}"), &Remove::default())),
                    4 => drop(rig.set(&format!("key-{recent}"), &recent.to_le_bytes())),
                    _ => {}
                }
            }
        }
    }
    let stats = rig.store.stats();
    assert_eq!(stats.evictions, 0);
    assert!(missing < 10, "{missing}");
    // Of two keys that the index cannot tell apart the later one stays: one in some hundred thousand.
    assert!(stats.ram_items > 239_990, "{} items", stats.ram_items);
    rig.store.check().expect("every count is right");
}

#[test]
fn a_lower_memory_limit_holds_for_an_index_that_has_grown() {
    let rig = Rig::new(64, 0);
    fill(&rig, 600_000, 40);
    let grown = rig.store.stats();
    assert!(rig.store.set_memory_limit(32 << 20));
    for _ in 0..500 {
        rig.store.upkeep(rig.now.get());
    }
    let stats = rig.store.stats();
    let withheld = stats.ram_segments_withheld * stats.ram_segment_bytes;
    assert!(in_use(&stats) - withheld <= 32 << 20, "{stats:?}");
    assert_eq!(stats.index_bytes, grown.index_bytes);
    assert!(!rig.store.set_memory_limit(4 << 20), "the index takes more");
    assert!(rig.store.set_memory_limit(64 << 20));
    fill(&rig, 600_000, 40);
    rig.store.check().expect("every count is right");
    assert!(rig.store.stats().ram_items * 100 > grown.ram_items * 98);
}

#[test]
fn in_a_full_index_new_items_do_not_lose_to_old_ones_that_are_not_read() {
    let rig = Rig::with(&Config { index_bytes: Some(256 << 10), ..config(32 << 20, 0) });
    let entries = rig.store.stats().index_capacity;
    fill(&rig, entries * 4, 10);
    let kept = |from, to| (from..to).filter(|i| rig.peek(&format!("key-{i}")).is_some()).count() as u64;
    let (oldest, newest) = (kept(0, entries), kept(entries * 3, entries * 4));
    assert!(newest > entries / 2 && oldest < entries / 5, "{newest} of the newest, {oldest} of the oldest");
}

#[test]
fn a_key_that_looks_like_another_takes_nothing_of_it_where_nothing_may_be_evicted() {
    let rig = Rig::with(&Config { evict: false, ..config(4 << 20, 0) });
    let store = &rig.store;
    rig.set("one", b"one");
    // The index cannot tell keys of one hash apart.
    let (hash, now) = (store.hash(b"one"), rig.now.get());
    let call = Call { key: b"two", hash, now, loaded: None, on_full: OnFull::Drop };
    assert!(matches!(store.put(&call, &SET, &mut Payload::Bytes(b"two")), Step::NoMemory));
    // As the server does after a set that failed.
    store.forget(&call);
    assert_eq!(rig.value("one"), Some(b"one".to_vec()));
    store.forget(&Call { key: b"one", ..call });
    assert_eq!(rig.value("one"), None);
}

#[test]
fn a_store_that_may_not_evict_never_loses_an_item_to_a_key_that_looks_alike() {
    let rig = Rig::with(&Config { evict: false, index_bytes: Some(2 << 20), ..config(32 << 20, 0) });
    let stored: Vec<u64> =
        (0..260_000_u64).filter(|i| rig.put(&format!("key-{i}"), &i.to_le_bytes(), &SET).is_some()).collect();
    assert!(stored.len() > 240_000, "{} items", stored.len());
    for i in stored {
        assert_eq!(rig.value(&format!("key-{i}")), Some(i.to_le_bytes().to_vec()), "key-{i}");
    }
}
