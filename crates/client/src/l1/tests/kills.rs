//! A writer that is killed before any of its stores leaves a cache that needs no repair.

use std::collections::BTreeMap;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::super::crash::armed::kill_at;
use super::super::{L1, now_ms};
use super::{entry, name, restore, small_cache, snapshot, value, version};

/// Fills both rings, several laps of them, and reads some entries, so that the next change moves some.
fn filled() -> (L1, BTreeMap<u64, u64>) {
    let l1 = small_cache();
    let mut model = BTreeMap::new();
    for round in 0..4_000 {
        let key = round % 1_500;
        let value = value(key, round, 100 + (key as usize * 37) % 700);
        let _ = l1.set(&name(key), &entry(&value, round));
        model.insert(key, round);
        if round % 3 == 0 {
            (0..5).for_each(|back| _ = version(&l1, key.saturating_sub(back * back)));
        }
    }
    let moved = l1.stats().moved;
    assert!(moved > 300 && l1.len() > 300, "{moved} moved, {} left", l1.len());
    (l1, model)
}

/// Checks every key against the versions it may have, then that the cache works and nothing had to be repaired.
fn check(l1: &L1, model: &BTreeMap<u64, u64>, changed: u64, to: Option<u64>, context: &str) {
    let mut found = 0;
    for (key, expected) in model {
        if let Some(version) = version(l1, *key) {
            let may_be = version == *expected || *key == changed && Some(version) == to;
            assert!(may_be, "{context}: key {key} has version {version}, not {expected}");
            found += 1;
        }
    }
    assert!(found > 200, "{context}: {found} found");
    for key in 5_000..5_040 {
        let value = value(key, 1, 500);
        let _ = l1.set(&name(key), &entry(&value, 1));
        assert_eq!(version(l1, key), Some(1), "{context}: a later set");
    }
    assert_eq!(l1.stats().shards_reset, 0, "{context}");
}

/// Ends `change` before each of its stores in turn, from the same state.
fn at_every_store(name: &str, changed: u64, to: Option<u64>, change: impl Fn(&L1)) {
    let (l1, model) = filled();
    let state = snapshot(&l1);
    let mut steps = 1;
    while kill_at(steps, || change(&l1)).is_none() {
        check(&l1, &model, changed, to, &format!("{name}, store {steps}"));
        restore(&l1, &state);
        steps += 1;
    }
    assert!(steps > 2, "{name} has no stores");
    check(&l1, &model, changed, to, name);
}

#[test]
fn a_set_killed_at_any_store_leaves_the_old_value_or_the_new_one() {
    for (kind, key, len) in
        [("a new key", 9_999, 300), ("a known key", 1_490, 300), ("a large value", 9_999, 9_000)]
    {
        at_every_store(kind, key, Some(77_777), |l1| {
            let value = value(key, 77_777, len);
            let _ = l1.set(&name(key), &entry(&value, 77_777));
        });
    }
}

#[test]
fn a_delete_killed_at_any_store_leaves_the_value_or_nothing() {
    at_every_store("delete", 1_490, None, |l1| {
        l1.delete(&name(1_490));
    });
}

#[test]
fn a_touch_killed_at_any_store_leaves_the_value() {
    let (l1, model) = filled();
    let key = (0..1_500).rev().find(|key| version(&l1, *key).is_some()).expect("some key is there");
    let ticket = l1.begin_fetch(&name(key));
    assert!(kill_at(1, || l1.touch(&ticket, &name(key), model[&key], now_ms() + 5_000_000)).is_none());
    check(&l1, &model, key, None, "touch");
}

#[test]
fn a_fill_killed_before_it_is_visible_leaves_no_older_value() {
    let (l1, model) = filled();
    let state = snapshot(&l1);
    let ticket = l1.begin_fetch(b"key-9999");
    let fetched = value(9_999, 5, 200);
    for steps in 1..200 {
        let fill = || l1.fill(&ticket, b"key-9999", &entry(&fetched, 5));
        let is_killed = kill_at(steps, fill).is_none();
        l1.delete(b"key-9999");
        assert_eq!(l1.fill(&ticket, b"key-9999", &entry(&fetched, 5)), super::super::Stored::Refused);
        check(&l1, &model, 9_999, None, "fill");
        restore(&l1, &state);
        assert!(is_killed || steps > 10);
    }
}

/// Many changes, killed at random stores, one behind the other: what one leaves, the next begins with.
#[test]
fn any_number_of_kills_leave_only_versions_that_were_stored() {
    let seed = match std::env::var("LARDER_MODEL_SEED").as_deref() {
        Ok("random") => now_ms() ^ u64::from(std::process::id()) << 32,
        Ok(seed) => seed.parse().expect("a number, or random"),
        Err(_) => 11,
    };
    println!("seed {seed}");
    let times: u64 =
        std::env::var("LARDER_MODEL_TIMES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let l1 = small_cache();
    // What a key may have: the last change, and the one before where that was killed.
    let mut model: BTreeMap<u64, Vec<Option<u64>>> = BTreeMap::new();
    let (mut killed, mut hits) = (0, 0);
    for round in 1..60_000 * times {
        let key = (random.next_u64() % 40) * (random.next_u64() % 40);
        let len = [0, 1, 8, 60, 300, 2_000, 12_000][(random.next_u64() % 7) as usize];
        let fate = if random.next_u64() % 10 == 0 { None } else { Some(round) };
        let steps = if random.next_u64() % 3 == 0 { 1 + random.next_u64() % 400 } else { 0 };
        let done = kill_at(steps, || match fate {
            None => drop(l1.delete(&name(key))),
            Some(_) => _ = l1.set(&name(key), &entry(&value(key, round, len), round)),
        });
        let may_be = model.entry(key).or_default();
        if done.is_some() {
            may_be.clear();
        } else {
            killed += 1;
        }
        may_be.push(fate);
        for key in [key, (random.next_u64() % 40) * (random.next_u64() % 40)] {
            let Some(version) = version(&l1, key) else { continue };
            hits += 1;
            let may_be = model.entry(key).or_default();
            assert!(
                may_be.contains(&Some(version)),
                "seed {seed}, round {round}: key {key} has {version}, not {may_be:?}"
            );
            *may_be = vec![Some(version)];
        }
    }
    assert!(killed > 5_000 && hits > 30_000, "{killed} killed, {hits} hits");
    assert_eq!(l1.stats().shards_reset, 0);
}
