//! What moves between the tiers, and what does not.

use larder_store::*;

use crate::rig::{Rig, SET, bytes, config};

#[test]
fn a_promoted_item_that_did_not_change_is_not_written_again() {
    let rig = Rig::new(8, 16);
    for i in 0..200 {
        rig.set(&format!("key-{i}"), &bytes(i, 1_000));
    }
    rig.push_out();
    for _ in 0..4 {
        (0..200).for_each(|i| assert!(rig.get(&format!("key-{i}")).is_some()));
    }
    let promoted = (0..200).filter(|i| rig.peek(&format!("key-{i}")).is_some_and(|f| f.tier == Tier::Ram));
    let promoted: Vec<u64> = promoted.collect();
    assert!(promoted.len() > 150, "{}", promoted.len());
    let admitted = |rig: &Rig| rig.store.stats().ssd_bytes_admitted;
    let before = admitted(&rig);
    let mut fillers = 0;
    for round in 0..20 {
        for i in 0..1_000_u64 {
            // These expire before they are worth a write, so that all that is admitted would be ours.
            let key = format!("f-{round}-{i}");
            rig.set_with(&key, &bytes(i, 2_000), &Put { expiry: rig.in_seconds(1), ..SET });
            (0..3).for_each(|_| drop(rig.get(&key)));
            fillers += 2_000;
        }
    }
    assert!(fillers > 4 * rig.store.stats().ram_tier_bytes);
    let back = promoted.iter().filter(|i| rig.peek(&format!("key-{i}")).is_some_and(|f| f.tier == Tier::Ssd));
    assert!(back.count() > promoted.len() / 2);
    assert_eq!(admitted(&rig), before, "nothing was written again");
    (0..200).for_each(|i| assert_eq!(rig.value(&format!("key-{i}")), Some(bytes(i, 1_000))));
}

#[test]
fn a_promoted_item_that_changed_is_written_again_with_the_change() {
    let rig = Rig::new(8, 16);
    rig.set_on_ssd("key", b"value", &SET);
    for _ in 0..4 {
        rig.get("key");
    }
    assert_eq!(rig.peek("key").map(|item| item.tier), Some(Tier::Ram));
    let touch = Some(rig.in_seconds(500));
    rig.fetch("key", &Fetch { touch, no_bump: true, ..Fetch::default() });
    for _ in 0..4 {
        rig.push_out();
    }
    let item = rig.peek("key").expect("there");
    assert_eq!((item.tier, item.expiry, item.value), (Tier::Ssd, rig.in_seconds(500), b"value".to_vec()));
}

#[test]
fn a_counter_that_is_only_counted_stays() {
    let rig = Rig::new(8, 0);
    rig.set("counter", b"0000000000");
    for i in 1..=40_000_u64 {
        rig.set(&format!("other-{i}"), &bytes(i, 1_000));
        if i % 10 == 0 {
            let counted = rig.arith("counter", &crate::rig::COUNT);
            assert!(
                matches!(counted, Some(ArithResult::Value { value, .. }) if value == i / 10),
                "{counted:?}"
            );
        }
    }
}

#[test]
fn what_fits_in_memory_is_not_evicted_by_overwriting() {
    let rig = Rig::new(16, 0);
    let fit = rig.store.stats().ram_tier_bytes / 4 / 1_100;
    for i in 0..fit {
        rig.set(&format!("unread-{i}"), &bytes(i, 1_000));
    }
    // Values of changing size, so that none is overwritten where it lies: ten times the memory.
    for i in 0..fit * 40 {
        rig.set(&format!("busy-{}", i % 100), &bytes(i, 900 + (i / 100 % 100) as usize));
    }
    let kept = (0..fit).filter(|i| rig.peek(&format!("unread-{i}")).is_some()).count() as u64;
    assert_eq!(kept, fit, "evicted {}", rig.store.stats().evictions);
}

#[test]
fn memory_full_of_what_was_flushed_or_expired_is_as_good_as_free() {
    for flush in [true, false] {
        let rig = Rig::new(8, 0);
        let fit = rig.store.stats().ram_tier_bytes / 1_100;
        for i in 0..fit * 2 {
            let key = format!("old-{i}");
            rig.set_with(&key, &bytes(i, 1_000), &Put { expiry: rig.in_seconds(10), ..SET });
            (0..3).for_each(|_| drop(rig.get(&key)));
        }
        if flush {
            rig.store.flush(None, rig.now.get());
        } else {
            rig.at(rig.now.get().0 + 10);
        }
        let fit = fit * 9 / 10;
        for i in 0..fit {
            rig.set(&format!("new-{i}"), &bytes(i, 1_000));
        }
        let kept = (0..fit).filter(|i| rig.peek(&format!("new-{i}")).is_some()).count() as u64;
        assert!(kept > fit * 9 / 10, "{kept} of {fit}");
    }
}

#[test]
fn one_ssd_segment_is_enough_to_go_on() {
    for segments in 1..=4 {
        let rig = Rig::new(8, segments);
        for i in 0..10_000_u64 {
            let expiry = if i % 3 == 0 { rig.in_seconds(600) } else { Expiry::Never };
            // The rig panics when a store says it is busy while there is nothing to write.
            rig.set_with(
                &format!("key-{i}"),
                &bytes(i, 1_000 + (i % 7) as usize * 1_000),
                &Put { expiry, ..SET },
            );
            if i % 1_000 == 999 {
                assert!(rig.get(&format!("key-{i}")).is_some());
            }
        }
        rig.settle();
        assert!(rig.store.stats().ssd_items > 0, "{segments}");
        rig.store.check().expect("every count is right");
    }
}

#[test]
fn no_more_is_written_to_the_ssd_than_the_limit_allows() {
    let limit = 1 << 20;
    let rig = Rig::with(&Config { ssd_write_limit: Some(limit), ..config(8 << 20, 4) });
    // Awkward sizes: what is counted is what the device has to write.
    let mut written = 0;
    for second in 1..=60_u32 {
        rig.at(1_000 + second);
        for i in 0..600_u64 {
            let key = format!("key-{second}-{i}");
            rig.set(&key, &bytes(i, if i % 2 == 0 { 2_100 } else { 4_200 }));
            rig.get(&key);
            if let Some(plan) = rig.store.next_readmission() {
                let bytes = rig.read(&plan);
                rig.store.readmit(Loaded { plan: &plan, bytes: bytes.as_deref() }, rig.now.get());
            }
        }
        while rig.write_one() {}
        written = rig.store.stats().ssd_bytes_written;
        // Beyond the rate: a second's saving, and the buffers that were open when it ran out.
        let allowed = limit * u64::from(second + 2) + 3 * (64 << 10);
        assert!(written <= allowed, "{written} of {allowed} after {second} s");
    }
    assert!(written > limit * 40, "only {written} written");
}

#[test]
fn what_is_written_is_hardly_more_than_what_was_stored() {
    for size in [100, 200, 700, 1_024, 1_300, 2_000, 3_000, 4_096, 6_000, 20_000, 60_000] {
        let rig = Rig::with(&Config { item_bytes: size as u32, ..config(32 << 20, 8) });
        let count = (48 << 20) / size as u64;
        for i in 0..count {
            rig.set(&format!("key-{i}"), &bytes(i, size));
        }
        rig.settle();
        let stats = rig.store.stats();
        assert!(stats.ssd_bytes_admitted > 8 << 20, "{size}");
        let amplification = stats.ssd_bytes_written as f64 / stats.ssd_bytes_admitted as f64;
        assert!(amplification < 1.08, "{size} bytes: {amplification:.3}");
        let sample: Vec<u64> = (0..count).step_by(97).collect();
        let there =
            sample.iter().filter(|&&i| rig.value(&format!("key-{i}")).is_some_and(|v| v == bytes(i, size)));
        assert!(there.count() * 1000 >= sample.len() * 998, "{size} bytes");
    }
}

#[test]
fn what_is_overwritten_again_and_again_stays_as_long_as_it_fits_the_ssd() {
    let rig = Rig::new(8, 8);
    // Two fifths of the SSD; nobody ever reads any of it.
    let keys = 25_000_u64;
    for round in 0..6 {
        for i in 0..keys {
            // In order, or as it comes.
            let key = if round < 3 { i } else { (i * 7_919 + round) % keys };
            rig.set(&format!("key-{key}"), &bytes(key + round, 2_000));
            while rig.write_one() {}
        }
    }
    assert!(rig.store.stats().ssd_bytes_written > 2 * 8 * SEGMENT_BYTES, "{:?}", rig.store.stats());
    let there = (0..keys).filter(|i| rig.get(&format!("key-{i}")).is_some()).count() as u64;
    assert!(there * 100 > keys * 95, "{there} of {keys}");
}

/// Hot items of a size, among ever new ones that fill the SSD again and again; answers how many are still there.
fn hot_items_kept(count: u64, size: usize) -> usize {
    let rig = Rig::new(8, 4);
    let hot = 0..count;
    for i in hot.clone() {
        rig.set(&format!("hot-{i}"), &bytes(i, size));
    }
    rig.push_out();
    // Once is enough to be kept, and not enough to be promoted.
    hot.clone().for_each(|i| assert!(rig.get(&format!("hot-{i}")).is_some()));
    let mut filler = 0;
    while rig.store.stats().ssd_bytes_written < 5 * SEGMENT_BYTES {
        filler += 1;
        let key = format!("filler-{filler}");
        rig.set(&key, &bytes(filler, 2_000));
        rig.get(&key);
        while rig.write_one() {}
        while let Some(plan) = rig.store.next_readmission() {
            let pages = rig.read(&plan);
            rig.store.readmit(Loaded { plan: &plan, bytes: pages.as_deref() }, rig.now.get());
        }
    }
    hot.filter(|i| rig.value(&format!("hot-{i}")) == Some(bytes(*i, size))).count()
}

#[test]
fn a_hot_item_that_lies_over_a_pages_end_is_readmitted() {
    // A quarter of them do.
    let kept = hot_items_kept(400, 1_000);
    assert!(kept > 380, "{kept}");
}

#[test]
fn a_hot_item_of_many_pages_is_readmitted() {
    for size in [9_000, 20_000, 29_000] {
        let kept = hot_items_kept(30, size);
        assert!(kept >= 28, "{kept} of {size} bytes");
    }
}

#[test]
fn a_promoted_item_outlives_sixteen_turns_of_the_segment_that_its_copy_was_in() {
    let rig = Rig::new(8, 1);
    let keys: Vec<String> = (0..200).map(|i| format!("key-{i}")).collect();
    keys.iter().for_each(|key| _ = rig.set(key, &bytes(7, 1_000)));
    rig.push_out();
    let read_all = || keys.iter().for_each(|key| drop(rig.get(key)));
    (0..4).for_each(|_| read_all());
    let in_ram = |key: &&String| rig.peek(key).is_some_and(|item| item.tier == Tier::Ram);
    let promoted: Vec<&String> = keys.iter().filter(in_ram).collect();
    assert!(promoted.len() > 150, "{}", promoted.len());
    let turns = || rig.store.stats().ssd_bytes_written / SEGMENT_BYTES;
    // Exactly as often as makes the four bits of a generation in an index entry repeat.
    let (first, mut filler) = (turns(), 0);
    while turns() < first + 16 || rig.store.stats().ssd_bytes_written % SEGMENT_BYTES < SEGMENT_BYTES / 4 {
        for _ in 0..100 {
            filler += 1;
            rig.set(&format!("filler-{filler}"), &bytes(filler, 2_000));
        }
        read_all();
        rig.perform_io();
        rig.store.upkeep(rig.now.get());
    }
    assert!(promoted.iter().all(in_ram), "what is read all the time stays in RAM");
    rig.push_out();
    let lost = promoted.iter().filter(|key| rig.value(key) != Some(bytes(7, 1_000))).count();
    assert_eq!(lost, 0, "of {} after {} turns", promoted.len(), turns() - first);
}
