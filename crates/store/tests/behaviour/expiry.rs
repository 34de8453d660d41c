//! Time and flushes: exact to the second in both tiers, and cheap.

use std::time::Instant;

use larder_store::*;

use crate::rig::{Rig, SET, bytes};

#[test]
fn expiry_is_exact_on_the_ssd() {
    let rig = Rig::new(8, 16);
    for seconds in [10, 11, 60, 4_000, 3_000_000] {
        rig.set(&format!("never-{seconds}"), b"stays");
        rig.set_with(&format!("key-{seconds}"), b"goes", &Put { expiry: rig.in_seconds(seconds), ..SET });
    }
    rig.push_out();
    let start = rig.now.get().0;
    for seconds in [10, 11, 60, 4_000, 3_000_000] {
        let key = format!("key-{seconds}");
        rig.at(start + seconds - 1);
        let item = rig.peek(&key).expect("there until the last second");
        assert_eq!((item.tier, item.expiry), (Tier::Ssd, Expiry::At(Seconds(start + seconds))));
        rig.at(start + seconds);
        assert_eq!(rig.peek(&key), None, "gone at its second");
        assert!(rig.peek(&format!("never-{seconds}")).is_some());
    }
}

#[test]
fn an_expiry_in_the_past_stores_what_is_never_seen_and_replaces_what_was() {
    for on_ssd in [false, true] {
        let rig = Rig::new(8, 16);
        if on_ssd {
            rig.set_on_ssd("key", b"old", &SET)
        } else {
            rig.set("key", b"old")
        };
        rig.set_with("key", b"new", &Put { expiry: Expiry::At(Seconds(0)), ..SET });
        assert_eq!(rig.get("key"), None);
        rig.push_out();
        assert_eq!(rig.get("key"), None);
    }
}

#[test]
fn touching_into_the_past_removes() {
    let rig = Rig::new(8, 16);
    rig.set_on_ssd("key", b"value", &SET);
    let touch = Fetch { touch: Some(Expiry::At(Seconds(1))), ..Fetch::default() };
    assert!(rig.fetch("key", &touch).is_some());
    assert_eq!(rig.get("key"), None);
}

#[test]
fn a_flush_hides_everything_in_both_tiers_at_once() {
    let rig = Rig::new(8, 16);
    for i in 0..3_000 {
        rig.set(&format!("old-{i}"), &bytes(i, 1_500));
    }
    rig.push_out();
    rig.set("ram", b"value");
    let began = Instant::now();
    rig.store.flush(None, rig.now.get());
    assert!(began.elapsed().as_millis() < 5, "nothing is visited");
    assert_eq!((rig.get("ram"), rig.get("old-17")), (None, None));
    rig.set("new", b"value");
    rig.push_out();
    assert!(rig.get("new").is_some());
    assert!((0..3_000).all(|i| rig.get(&format!("old-{i}")).is_none()));
    rig.store.check().expect("every count is right");
}

#[test]
fn a_flush_to_come_hides_what_is_there_when_it_comes() {
    let rig = Rig::new(8, 16);
    rig.set_on_ssd("ssd", b"value", &SET);
    rig.store.flush(Some(Seconds(1010)), rig.now.get());
    rig.now.set(Seconds(1009));
    rig.set("ram", b"value");
    assert!(rig.get("ssd").is_some() && rig.get("ram").is_some());
    // No upkeep has run: the first operation of that second carries the flush out.
    rig.now.set(Seconds(1010));
    assert_eq!((rig.get("ssd"), rig.get("ram")), (None, None));
    rig.set("after", b"value");
    rig.now.set(Seconds(1011));
    assert!(rig.get("after").is_some());
}

#[test]
fn a_later_flush_replaces_the_one_to_come() {
    let rig = Rig::new(8, 16);
    rig.store.flush(Some(Seconds(1010)), rig.now.get());
    rig.store.flush(Some(Seconds(1020)), rig.now.get());
    rig.set("key", b"value");
    rig.at(1019);
    assert!(rig.get("key").is_some());
    rig.at(1020);
    assert_eq!(rig.get("key"), None);
    rig.set("key", b"value");
    rig.store.flush(Some(Seconds(1030)), rig.now.get());
    rig.store.flush(None, rig.now.get());
    rig.set("key", b"value");
    rig.at(1030);
    assert!(rig.get("key").is_some(), "an immediate flush takes the place of the one to come");
}

#[test]
fn segments_whose_items_have_all_expired_are_used_again_before_any_live_one() {
    let rig = Rig::new(8, 8);
    for i in 0..6_000 {
        rig.set_with(&format!("short-{i}"), &bytes(i, 4_000), &Put { expiry: rig.in_seconds(60), ..SET });
    }
    for i in 0..5_000 {
        rig.set(&format!("long-{i}"), &bytes(i, 4_000));
    }
    rig.push_out();
    let mut kept: Vec<u64> = (0..5_000).collect();
    kept.retain(|i| rig.peek(&format!("long-{i}")).is_some());
    assert!(kept.len() > 4_900, "{}", kept.len());
    rig.at(1060);
    for i in 0..5_000 {
        rig.set(&format!("more-{i}"), &bytes(i, 4_000));
        if i % 50 == 0 {
            rig.store.upkeep(rig.now.get());
        }
    }
    let lost = kept.iter().filter(|i| rig.peek(&format!("long-{i}")).is_none()).count();
    assert_eq!(lost, 0, "the expired segments made room");
}

#[test]
fn a_flush_takes_its_items_out_of_the_counts_at_once() {
    let rig = Rig::new(64, 16);
    let counts = || {
        let stats = rig.store.stats();
        (stats.ram_items, stats.ram_item_bytes > 0, stats.ssd_items)
    };
    let fill = |name: &str, items: u64| {
        (0..items).for_each(|i| {
            rig.set(&format!("{name}-{i}"), &bytes(i, 500));
        });
    };
    let push_out = || {
        while !rig.store.evict_all(rig.now.get()) {
            rig.settle();
        }
        rig.settle();
    };
    fill("out", 3_000);
    push_out();
    fill("in", 200);
    rig.set("large", &bytes(1, 700_000));
    assert_eq!(counts(), (201, true, 3_000));
    rig.store.flush(None, rig.now.get());
    assert_eq!(counts(), (0, false, 0), "nothing was visited");
    // Old and new items in one queue and one stream are told apart, whatever becomes of the old ones.
    fill("in", 100);
    assert_eq!(counts(), (100, true, 0));
    push_out();
    assert_eq!(counts(), (0, false, 100));
    (0..3_000).for_each(|i| assert_eq!(rig.get(&format!("out-{i}")), None));
    assert_eq!(counts(), (0, false, 100));
    rig.store.check().expect("every count is right");
}

#[test]
fn what_a_flush_made_invisible_on_the_ssd_is_free_again() {
    let rig = Rig::new(8, 8);
    for round in 0..40 {
        for i in 0..200 {
            rig.set(&format!("{round}-{i}"), &bytes(i, 3_000));
        }
        rig.push_out();
        rig.store.flush(None, rig.now.get());
        rig.at(rig.now.get().0 + 1);
        rig.store.upkeep(rig.now.get());
    }
    for i in 0..200 {
        rig.set(&format!("last-{i}"), &bytes(i, 3_000));
    }
    rig.push_out();
    for i in 0..200 {
        assert_eq!(rig.value(&format!("last-{i}")), Some(bytes(i, 3_000)));
    }
    assert_eq!(rig.store.stats().ssd_items, 200);
}

#[test]
fn lookups_that_find_an_item_expired_or_flushed_are_counted() {
    for on_ssd in [false, true] {
        let rig = Rig::new(8, 16);
        let found = || {
            let stats = rig.store.stats();
            (stats.found_expired, stats.found_flushed)
        };
        let put = |key: &str, expiry| match on_ssd {
            true => rig.set_on_ssd(key, b"value", &Put { expiry, ..SET }),
            false => rig.set_with(key, b"value", &Put { expiry, ..SET }),
        };
        put("stays", Expiry::Never);
        put("expires", rig.in_seconds(10));
        rig.at(rig.now.get().0 + 10);
        assert_eq!((rig.get("nothing"), rig.get("expires"), rig.get("expires")), (None, None, None));
        assert_eq!(found(), (1, 0), "the second lookup finds nothing");
        put("flushed", Expiry::Never);
        rig.store.flush(None, rig.now.get());
        put("newer", Expiry::Never);
        assert_eq!((rig.get("flushed"), rig.get("flushed")), (None, None));
        assert_eq!(found(), (1, 1));
        assert!(rig.get("newer").is_some());
        assert_eq!(found(), (1, 1));
    }
}
