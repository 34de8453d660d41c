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
