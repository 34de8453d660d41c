//! The items in RAM that a listing shows.

use std::collections::HashSet;

use larder_store::*;

use crate::rig::{Rig, SET, bytes};

fn keys(rig: &Rig, limit: usize) -> Vec<String> {
    let listed = rig.store.list_ram(limit, rig.now.get());
    listed.into_iter().map(|item| String::from_utf8(item.key).expect("text")).collect()
}

#[test]
fn every_item_of_a_small_cache_is_listed_once_and_the_last_stored_first() {
    let rig = Rig::new(64, 0);
    // The sizes of records inside a segment, over its end, and of segments of their own.
    let sizes = [0, 100, 9_000, 70_000, 500_000];
    for i in 0..100_u64 {
        rig.set(&format!("key-{i}"), &bytes(i, sizes[i as usize % sizes.len()]));
    }
    let expected: Vec<String> = (0..100).rev().map(|i| format!("key-{i}")).collect();
    assert_eq!(keys(&rig, usize::MAX), expected);
    assert_eq!(keys(&rig, 3)[0], "key-99");
    assert_eq!((keys(&rig, 3).len(), keys(&rig, 0).len()), (3, 0));
    let item = &rig.store.list_ram(1, rig.now.get())[0];
    assert_eq!((item.value_len, item.expiry), (500_000, Expiry::Never));
}

#[test]
fn items_that_are_gone_are_not_listed() {
    let rig = Rig::new(64, 0);
    for i in 0..50_u64 {
        let expiry = if i < 10 { rig.in_seconds(5) } else { Expiry::Never };
        rig.set_with(&format!("key-{i}"), &bytes(i, 1_000), &Put { expiry, ..SET });
    }
    for i in 10..20 {
        rig.remove(&format!("key-{i}"), &Remove::default());
    }
    for i in 20..30 {
        rig.set(&format!("key-{i}"), b"again");
    }
    rig.now.set(Seconds(rig.now.get().0 + 6));
    let listed: HashSet<String> = keys(&rig, 1_000).into_iter().collect();
    assert_eq!(listed, (20..50).map(|i| format!("key-{i}")).collect());
    assert_eq!(keys(&rig, 1_000).len(), 30, "each once");
}

#[test]
fn a_listing_of_a_full_cache_shows_as_many_as_were_asked_for() {
    let rig = Rig::new(64, 0);
    for i in 0..200_000_u64 {
        rig.set(&format!("key-{i}"), &bytes(i, 500));
    }
    let listed = keys(&rig, 5_000);
    assert_eq!(listed.len(), 5_000);
    let new = listed.iter().filter(|key| key[4..].parse::<u64>().expect("a number") >= 190_000).count();
    assert!(new > 4_500, "only {new} of 5,000 are of the newest 10,000");
}

/// Lists all items, and does `between` between two steps. Returns the keys in the order of the list.
fn all(rig: &Rig, mut between: impl FnMut()) -> Vec<(String, Tier)> {
    let mut dump = rig.store.begin_listing();
    let (mut listed, mut read) = (Vec::new(), None);
    loop {
        let (plan, buffer): (ReadPlan, _) = match read.take() {
            Some((plan, buffer)) => (plan, buffer),
            None => match rig.store.list_next(&mut dump, rig.now.get(), None) {
                Listed::End => return listed,
                Listed::Read(plan) => {
                    let buffer = rig.read(&plan);
                    read = Some((plan, buffer));
                    between();
                    continue;
                }
                Listed::Items(items) => {
                    listed.extend(items.into_iter().map(named));
                    between();
                    continue;
                }
            },
        };
        let loaded = Loaded { plan: &plan, bytes: buffer.as_deref() };
        match rig.store.list_next(&mut dump, rig.now.get(), Some(loaded)) {
            Listed::Items(items) => listed.extend(items.into_iter().map(named)),
            other => panic!("{other:?}"),
        }
        between();
    }
}

fn named(item: ListedItem) -> (String, Tier) {
    (String::from_utf8(item.key).expect("text"), item.tier)
}

const SIZES: [usize; 6] = [0, 100, 3_000, 9_000, 70_000, 300_000];

fn size_of(i: u64) -> usize {
    if i.is_multiple_of(50) { SIZES[(i / 50) as usize % SIZES.len()] } else { 100 + (i % 7) as usize * 100 }
}

#[test]
fn all_items_of_both_tiers_are_listed_once_while_nothing_moves() {
    for on_device in [false, true] {
        let rig = Rig::new(64, 12);
        for i in 0..120_000_u64 {
            rig.set(&format!("key-{i}"), &bytes(i, size_of(i)));
        }
        if on_device {
            rig.settle();
        }
        let there: HashSet<String> =
            (0..120_000).map(|i| format!("key-{i}")).filter(|key| rig.peek(key).is_some()).collect();
        let listed = all(&rig, || {});
        let keys: HashSet<String> = listed.iter().map(|(key, _)| key.clone()).collect();
        assert_eq!(keys, there, "on the device: {on_device}");
        assert_eq!(listed.len(), there.len(), "each once");
        let on_ssd = listed.iter().filter(|(_, tier)| *tier == Tier::Ssd).count();
        let stats = rig.store.stats();
        assert_eq!(on_ssd as u64, stats.ssd_items, "the SSD's");
        assert!(on_ssd > 10_000 && listed.len() - on_ssd > 1_000, "{on_ssd} of {}", listed.len());
    }
}

#[test]
fn an_item_that_is_only_moved_while_a_listing_runs_is_listed() {
    let rig = Rig::new(64, 24);
    for i in 0..150_000_u64 {
        rig.set(&format!("key-{i}"), &bytes(i, size_of(i)));
    }
    rig.settle();
    // Others are stored, which pushes items out of RAM and makes the log reuse segments, and items are read, which
    // brings them to RAM.
    let (mut stored, mut step) = (150_000_u64, 0_u64);
    let listed = all(&rig, || {
        step += 1;
        for _ in 0..15 {
            rig.set(&format!("key-{stored}"), &bytes(stored, 600));
            stored += 1;
        }
        for i in 0..20 {
            let key = (step * 7919 + i * 31) % 150_000;
            (0..3).for_each(|_| drop(rig.get(&format!("key-{key}"))));
        }
        if step.is_multiple_of(3) {
            rig.perform_io();
        }
        rig.store.upkeep(rig.now.get());
    });
    let keys: HashSet<String> = listed.iter().map(|(key, _)| key.clone()).collect();
    let missing: Vec<u64> = (0..150_000)
        .filter(|i| !keys.contains(&format!("key-{i}")) && rig.peek(&format!("key-{i}")).is_some())
        .collect();
    assert!(
        missing.is_empty(),
        "{} are there and not listed, as {:?}",
        missing.len(),
        &missing[..missing.len().min(5)]
    );
    let twice = listed.len() - keys.len();
    assert!(twice < listed.len() / 10, "{twice} of {} twice", listed.len());
    assert!(stored > 170_000, "{stored} were stored");
}

#[test]
fn a_listing_leaves_out_what_a_failing_ssd_cannot_read_and_ends() {
    let rig = Rig::new(64, 12);
    for i in 0..100_000_u64 {
        rig.set(&format!("key-{i}"), &bytes(i, 600));
    }
    rig.settle();
    let mut dump = rig.store.begin_listing();
    let (mut reads, mut failed, mut items) = (0, None, 0);
    loop {
        let loaded = failed.as_ref().map(|plan| Loaded { plan, bytes: None });
        match rig.store.list_next(&mut dump, rig.now.get(), loaded) {
            Listed::End => break,
            Listed::Read(plan) => (reads, failed) = (reads + 1, Some(plan)),
            Listed::Items(some) => (items, failed) = (items + some.len() as u64, None),
        }
    }
    assert!(reads > 10 && items == rig.store.stats().ram_items, "{reads} reads, {items} items");
}
