//! An index that grows while the store fills.

use std::time::{Duration, Instant};

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
fn with_an_ssd_small_items_of_unknown_size_are_found_after_they_fill_it() {
    for (items, value_bytes) in [(1_000_000, 100), (600_000, 250), (90_000, 2_000), (17_000, 10_240)] {
        let rig = Rig::with(&Config { item_bytes: 512, ..config(20 << 20, 14) });
        let before = rig.store.stats();
        for i in 0..items {
            rig.set(&format!("key-{i}"), &bytes(i, value_bytes));
        }
        let stats = rig.store.stats();
        let found = (0..items).step_by(7).filter(|i| rig.peek(&format!("key-{i}")).is_some()).count() as u64;
        let of = items.div_ceil(7);
        assert!(found * 100 >= of * 95, "{items} of {value_bytes} bytes: {found} of {of} found, {stats:?}");
        assert!(in_use(&stats) <= in_use(&before) + stats.ram_segment_bytes, "{before:?} {stats:?}");
        let per_item = stats.index_bytes as f64 / stats.index_entries as f64;
        assert!(per_item < 9.5 || stats.index_bytes == before.index_bytes, "{per_item} bytes an item");
        rig.store.check().expect("every count is right");
    }
}

#[test]
fn an_index_that_small_items_made_large_returns_its_memory_when_items_are_large() {
    for (memory_mib, segments) in [(20, 14), (64, 20)] {
        let rig = Rig::with(&Config { item_bytes: 512, ..config(memory_mib << 20, segments) });
        let began = rig.store.stats();
        let small = segments * SEGMENT_BYTES / 150;
        fill(&rig, small, 100);
        let grown = rig.store.stats();
        assert!(grown.index_bytes > 4 * began.index_bytes, "{began:?} {grown:?}");
        let large = segments * SEGMENT_BYTES / 10_000 * 3;
        for i in 0..large {
            rig.set(&format!("large-{i}"), &bytes(i, 10_000));
            if i % 100 == 0 {
                rig.store.upkeep(rig.now.get());
                rig.perform_io();
            }
        }
        (0..1_000).for_each(|_| rig.store.upkeep(rig.now.get()));
        let stats = rig.store.stats();
        rig.store.check().expect("every count is right");
        assert!(stats.index_bytes * 2 < grown.index_bytes, "{grown:?} {stats:?}");
        assert!(stats.ram_tier_bytes > grown.ram_tier_bytes, "{grown:?} {stats:?}");
        assert!(in_use(&stats) + stats.ram_segment_bytes >= in_use(&began), "{began:?} {stats:?}");
        assert_eq!(stats.index_evictions, 0);
        // And again.
        fill(&rig, small, 100);
        let found = (0..small).step_by(7).filter(|i| rig.peek(&format!("key-{i}")).is_some()).count() as u64;
        assert!(
            found * 100 >= small.div_ceil(7) * 95,
            "{found} of {} found, {:?}",
            small / 7,
            rig.store.stats()
        );
        rig.store.check().expect("every count is right");
    }
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
    assert_eq!(stats.evictions, stats.index_collisions);
    assert!(missing < 10, "{missing}");
    // Of two keys that the index cannot tell apart the later one stays: one in some hundred thousand.
    assert_eq!(stats.ram_items + stats.index_collisions, 240_000, "every item that is lost is counted");
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
    assert!(stats.index_bytes <= grown.index_bytes, "{stats:?}");
    assert!(!rig.store.set_memory_limit(4 << 20), "the index takes more");
    assert!(rig.store.set_memory_limit(64 << 20));
    fill(&rig, 600_000, 40);
    rig.store.check().expect("every count is right");
    assert!(rig.store.stats().ram_items * 100 > grown.ram_items * 98);
}

#[test]
fn in_a_full_index_new_items_do_not_lose_to_old_ones_that_are_not_read() {
    let rig = Rig::new(4, 12);
    let before = rig.store.stats();
    // Until all memory that it may have is taken.
    fill(&rig, before.index_capacity_max, 10);
    let entries = rig.store.stats().index_capacity;
    assert!(entries > before.index_capacity * 4, "{before:?}");
    fill(&rig, entries * 4, 10);
    let stats = rig.store.stats();
    assert_eq!(stats.index_capacity, entries);
    assert!(stats.index_evictions > entries && stats.index_entries * 100 >= entries * 95, "{stats:?}");
    assert!(stats.ram_tier_bytes >= 1 << 20, "{stats:?}");
    rig.store.check().expect("every count is right");
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

/// Stores small items until the index has grown, then large ones while it shrinks; `each` is called every hundred
/// items, with whether the index has just grown or shrunk.
fn grow_and_shrink(rig: &Rig, small: u64, large: u64, mut each: impl FnMut(&Stats, &Stats)) {
    let mut before = rig.store.stats();
    for i in 0..small + large {
        match i.checked_sub(small) {
            None => rig.set(&format!("key-{i}"), &bytes(i, 60)),
            Some(i) => rig.set(&format!("large-{i}"), &bytes(i, 10_000)),
        };
        if i % 100 == 99 {
            // A hundred requests in a tenth of a second.
            rig.at(1_000 + (i / 1_000) as u32);
            rig.perform_io();
            let stats = rig.store.stats();
            each(&before, &stats);
            before = stats;
        }
    }
}

#[test]
fn a_flush_while_the_index_grows_or_shrinks_hides_what_was_stored_before_it_and_nothing_else() {
    for segments in [0, 7] {
        let rig = Rig::new(20, segments);
        let began = rig.store.stats();
        let (mut grew, mut shrank) = (0, 0);
        let flush = |number: u64| {
            rig.set("before", b"value");
            rig.store.flush(None, rig.now.get());
            let stats = rig.store.stats();
            assert_eq!((stats.ram_items, stats.ssd_items), (0, 0), "flush {number}");
            assert_eq!(rig.value("before"), None);
            rig.set("after", b"value");
            assert_eq!(rig.value("after"), Some(b"value".to_vec()));
        };
        for _ in 0..2 {
            grow_and_shrink(&rig, 200_000, 14_000, |before, stats| {
                assert_eq!(stats.index_evictions, 0, "{before:?} {stats:?}");
                grew += u64::from(stats.index_bytes > before.index_bytes);
                shrank += u64::from(stats.index_bytes < before.index_bytes);
                if (stats.index_bytes > before.index_bytes && grew % 100 == 99)
                    || (stats.index_bytes < before.index_bytes && shrank % 10 == 9)
                {
                    flush(grew + shrank);
                    rig.store.check().expect("every count is right");
                }
            });
        }
        let stats = rig.store.stats();
        assert!(
            grew > 300 && shrank > 20,
            "{segments} segments: grew {grew} times, shrank {shrank}: {stats:?}"
        );
        assert!(in_use(&stats) <= in_use(&began) + stats.ram_segment_bytes, "{stats:?}");
        assert_eq!(stats.index_evictions, 0);
    }
}

#[test]
fn a_limit_that_changes_while_the_index_grows_or_shrinks_holds() {
    for segments in [0, 7] {
        let rig = Rig::new(48, segments);
        let (mut step, mut refused) = (0_u64, 0);
        for round in 0..2 {
            grow_and_shrink(&rig, 300_000, 14_000, |_, _| {
                step += 1;
                if step.is_multiple_of(50) {
                    let mib = 24 + step * 7 % 25;
                    refused += u64::from(!rig.store.set_memory_limit(mib << 20));
                }
            });
            rig.store.check().expect("every count is right");
            while !rig.store.set_memory_limit(32 << 20) {
                refused += 1;
                rig.store.upkeep(rig.now.get());
            }
            for _ in 0..2_000 {
                rig.store.upkeep(rig.now.get());
                rig.perform_io();
            }
            let stats = rig.store.stats();
            let withheld = stats.ram_segments_withheld * stats.ram_segment_bytes;
            assert!(stats.arena_bytes - withheld <= 32 << 20, "round {round}: {stats:?}");
            let last = bytes(13_999, 10_000);
            assert_eq!(rig.value("large-13999"), Some(last), "round {round}: {refused} limits were refused");
        }
    }
}

#[test]
fn indexes_of_one_shard_and_of_many_grow_and_shrink_alike() {
    for (memory_mib, segments, shards, small) in
        [(6, 0, 1, 80_000), (6, 8, 1, 300_000), (300, 0, 64, 700_000), (300, 4, 64, 700_000)]
    {
        let rig = Rig::new(memory_mib, segments);
        let began = rig.store.stats();
        assert_eq!(began.shards, shards, "{began:?}");
        let capacity = began.index_capacity;
        fill(&rig, small, 10);
        let grown = rig.store.stats();
        assert!(grown.index_capacity > capacity + capacity / 4, "{began:?} {grown:?}");
        assert_eq!(grown.index_evictions, 0);
        let lost = small - grown.ram_items - grown.ssd_items;
        assert!(lost * 1_000 <= small, "{lost} of {small} lost: {grown:?}");
        rig.store.flush(None, rig.now.get());
        // What was flushed makes way to as many bytes.
        for i in 0..grown.arena_bytes / 10_000 * 3 / 2 {
            rig.set(&format!("large-{i}"), &bytes(i, 10_000));
            rig.perform_io();
        }
        (0..1_000).for_each(|i| rig.at(2_000 + i));
        let stats = rig.store.stats();
        assert!(
            stats.index_bytes <= began.index_bytes.max(grown.index_bytes / 3),
            "{began:?} {grown:?} {stats:?}"
        );
        rig.store.check().expect("every count is right");
    }
}

#[test]
fn items_of_a_mebibyte_leave_the_index_no_larger_than_the_small_ones_that_stay_need() {
    let rig = Rig::new(64, 10);
    let began = rig.store.stats();
    fill(&rig, 700_000, 100);
    let grown = rig.store.stats();
    assert!(grown.index_bytes > 3 * began.index_bytes, "{began:?} {grown:?}");
    for i in 0..400 {
        rig.set(&format!("large-{i}"), &bytes(i, 1 << 20));
        rig.perform_io();
        rig.store.upkeep(rig.now.get());
    }
    (0..1_000).for_each(|i| rig.at(1_000 + i));
    let stats = rig.store.stats();
    // Small items stay in RAM beside large ones.
    let live = stats.ram_items + stats.ssd_items;
    assert!(live < 300_000 && stats.index_capacity * 68 <= live * 100, "{stats:?}");
    assert_eq!(stats.index_evictions, 0);
    let found = (250..400).filter(|i| rig.value(&format!("large-{i}")) == Some(bytes(*i, 1 << 20))).count();
    assert!(found > 100, "{found} of the last 150 fill the SSD: {stats:?}");
    rig.store.check().expect("every count is right");
}

#[test]
fn no_step_of_growing_or_shrinking_takes_more_than_its_bound() {
    /// Buckets of 64 bytes that one change takes into use, and that one step of upkeep gives up.
    const SPLIT_BYTES_MAX: u64 = 64 * 64;
    const MERGED_BYTES_MAX: u64 = (2_048 + 64) * 64;
    /// The most that one step of upkeep gives back to the RAM tier, in bytes.
    const RETURNED_BYTES_MAX: u64 = 4 << 20;
    for segments in [0, 7] {
        let rig = Rig::new(20, segments);
        let (mut grew, mut shrank) = (0, 0);
        let (mut set_longest, mut step_longest) = (Duration::ZERO, Duration::ZERO);
        let mut before = rig.store.stats();
        let mut compare = |stats: Stats, split: u64, merged: u64, lent: u64, returned: u64| {
            let case = format!("{before:?} {stats:?}");
            assert!(stats.index_bytes <= before.index_bytes + split, "{case}");
            assert!(stats.index_bytes + merged >= before.index_bytes, "{case}");
            assert!(stats.ram_segments + lent >= before.ram_segments, "{case}");
            assert!(stats.ram_tier_bytes <= before.ram_tier_bytes + returned, "{case}");
            grew += u64::from(stats.index_bytes > before.index_bytes);
            shrank += u64::from(stats.index_bytes < before.index_bytes);
            before = stats;
        };
        for i in 0..200_000 + 18_000 {
            let is_small = i < 200_000;
            let value = bytes(i, if is_small { 60 } else { 10_000 });
            let key = format!("{}-{i}", if is_small { "key" } else { "large" });
            let began = Instant::now();
            rig.set(&key, &value);
            set_longest = set_longest.max(if is_small { began.elapsed() } else { Duration::ZERO });
            compare(rig.store.stats(), SPLIT_BYTES_MAX, 0, 1, 0);
            if i % 10 == 0 {
                rig.perform_io();
                let began = Instant::now();
                rig.store.upkeep(rig.now.get());
                step_longest = step_longest.max(began.elapsed());
                compare(rig.store.stats(), 0, MERGED_BYTES_MAX, 0, RETURNED_BYTES_MAX);
            }
        }
        println!("{segments} segments: a set {set_longest:?} at most, a step of upkeep {step_longest:?}");
        assert!(grew > 200 && shrank > 3, "grew in {grew} steps, shrank in {shrank}");
    }
}
