//! Every command on an item that lies on the SSD means what it means in RAM.

use larder_store::*;

use crate::rig::{COUNT, Rig, SET, bytes, config};

/// Runs a test on the same item in both tiers.
fn in_both_tiers(value: &[u8], test: impl Fn(&Rig, u64)) {
    let ram = Rig::new(8, 16);
    let cas = ram.set("key", value);
    test(&ram, cas);
    let ssd = Rig::new(8, 16);
    let cas = ssd.set_on_ssd("key", value, &SET);
    test(&ssd, cas);
    ssd.store.check().expect("every count is right");
}

fn number(result: Option<ArithResult>) -> u64 {
    match result {
        Some(ArithResult::Value { value, .. }) => value,
        other => panic!("{other:?}"),
    }
}

#[test]
fn incr_grows_wraps_and_decr_stops_at_zero_and_pads() {
    in_both_tiers(b"99", |rig, cas| {
        assert_eq!(number(rig.arith("key", &COUNT)), 100);
        assert_eq!(rig.value("key"), Some(b"100".to_vec()));
        let down = Arith { decrement: true, ..COUNT };
        assert_eq!(number(rig.arith("key", &down)), 99);
        let item = rig.get("key").expect("there");
        assert_eq!((item.value, item.client_flags), (b"99 ".to_vec(), 7));
        assert!(item.cas > cas, "each change is a new version");
        assert_eq!(number(rig.arith("key", &Arith { delta: 1000, ..down })), 0);
        assert_eq!(number(rig.arith("key", &Arith { delta: u64::MAX, ..COUNT })), u64::MAX);
        assert_eq!(number(rig.arith("key", &Arith { delta: 2, ..COUNT })), 1);
    });
}

#[test]
fn decr_of_a_padded_item_on_the_ssd_keeps_its_length() {
    let rig = Rig::new(8, 16);
    rig.set("key", b"1000");
    number(rig.arith("key", &Arith { delta: 995, decrement: true, ..COUNT }));
    rig.push_out();
    assert_eq!(rig.peek("key").map(|item| (item.value, item.tier)), Some((b"5   ".to_vec(), Tier::Ssd)));
    assert_eq!(number(rig.arith("key", &COUNT)), 6);
    assert_eq!(rig.value("key"), Some(b"6   ".to_vec()));
}

#[test]
fn what_is_no_number_is_not_counted() {
    in_both_tiers(b"ten", |rig, _| {
        assert_eq!(rig.arith("key", &COUNT), Some(ArithResult::NonNumeric));
        assert_eq!(rig.value("key"), Some(b"ten".to_vec()));
    });
}

#[test]
fn counting_compares_and_touches() {
    in_both_tiers(b"5", |rig, cas| {
        let wrong = Arith { compare: Some(cas + 77), ..COUNT };
        assert_eq!(rig.arith("key", &wrong), Some(ArithResult::Exists));
        let touch = Some(rig.in_seconds(50));
        let right = Arith { compare: Some(cas), touch, new_cas: Some(4711), ..COUNT };
        let (expiry_before, expiry) = (Expiry::Never, rig.in_seconds(50));
        assert_eq!(
            rig.arith("key", &right),
            Some(ArithResult::Value { value: 6, cas: 4711, expiry_before, expiry, created: false })
        );
        assert_eq!(rig.get("key").map(|item| (item.cas, item.expiry)), Some((4711, expiry)));
    });
}

#[test]
fn append_and_prepend_keep_flags_and_expiry() {
    let expiry = Expiry::At(Seconds(5_000));
    for on_ssd in [false, true] {
        let rig = Rig::new(8, 16);
        let put = Put { expiry, ..SET };
        if on_ssd {
            rig.set_on_ssd("key", b"middle", &put)
        } else {
            rig.set_with("key", b"middle", &put)
        };
        let append = Put { mode: PutMode::Append, client_flags: 99, ..SET };
        rig.set_with("key", b" end", &append);
        rig.set_with("key", b"begin ", &Put { mode: PutMode::Prepend, ..append });
        let item = rig.get("key").expect("there");
        assert_eq!((item.value, item.client_flags, item.expiry), (b"begin middle end".to_vec(), 7, expiry));
    }
}

#[test]
fn appending_past_the_largest_item_is_refused() {
    in_both_tiers(&bytes(1, 900), |rig, _| {
        let put = Put { mode: PutMode::Append, item_bytes_max: 1000, ..SET };
        assert_eq!(rig.put("key", &bytes(2, 200), &put), Some(PutResult::TooLarge));
        assert_eq!(rig.value("key"), Some(bytes(1, 900)));
    });
}

#[test]
fn appending_to_nothing_stores_nothing_unless_it_may_vivify() {
    let rig = Rig::new(8, 16);
    let append = Put { mode: PutMode::Append, ..SET };
    assert_eq!(rig.put("key", b"x", &append), Some(PutResult::NotStored));
    let expiry = rig.in_seconds(9);
    rig.set_with("key", b"x", &Put { vivify: Some(expiry), ..append });
    assert_eq!(rig.get("key").map(|item| (item.value, item.expiry)), Some((b"x".to_vec(), expiry)));
}

#[test]
fn no_two_keys_share_a_cas_unique() {
    let rig = Rig::new(64, 0);
    assert!(rig.store.stats().shards > 1);
    let mut given: Vec<u64> = (0..2_000).map(|i| rig.set(&format!("key-{i}"), b"1")).collect();
    given.extend((0..2_000).map(|i| match rig.arith(&format!("key-{i}"), &COUNT) {
        Some(ArithResult::Value { cas, .. }) => cas,
        other => panic!("{other:?}"),
    }));
    assert!(given.is_sorted(), "each is larger than all before");
    given.dedup();
    assert_eq!(given.len(), 4_000);
}

#[test]
fn cas_uniques_tell_nothing_of_the_hash_seed() {
    let given = |seed| {
        let rig = Rig::with(&Config { seed, ..config(64 << 20, 0) });
        (0..500).map(|i| rig.set(&format!("key-{i}"), b"1")).collect::<Vec<u64>>()
    };
    assert_eq!(given(1), given(u64::MAX));
}

#[test]
fn cas_stores_over_the_version_it_names_and_no_other() {
    in_both_tiers(b"old", |rig, cas| {
        let put = |compare| Put { compare: Some(compare), ..SET };
        assert_eq!(rig.put("key", b"new", &put(cas + 9)), Some(PutResult::Exists));
        assert_eq!(rig.value("key"), Some(b"old".to_vec()));
        assert!(matches!(rig.put("key", b"new", &put(cas)), Some(PutResult::Stored(_))));
        assert_eq!(rig.put("key", b"newer", &put(cas)), Some(PutResult::Exists));
        assert_eq!(rig.value("key"), Some(b"new".to_vec()));
        assert_eq!(rig.put("nothing", b"x", &put(1)), Some(PutResult::NotFound));
    });
}

#[test]
fn add_and_replace_see_what_is_there() {
    in_both_tiers(b"old", |rig, _| {
        let add = Put { mode: PutMode::Add, ..SET };
        let replace = Put { mode: PutMode::Replace, ..SET };
        assert_eq!(rig.put("key", b"x", &add), Some(PutResult::NotStored));
        assert_eq!(rig.value("key"), Some(b"old".to_vec()));
        rig.set_with("key", b"new", &replace);
        assert_eq!(rig.value("key"), Some(b"new".to_vec()));
        assert_eq!(rig.put("other", b"x", &replace), Some(PutResult::NotStored));
        rig.set_with("other", b"x", &add);
    });
}

#[test]
fn touch_changes_expiry_alone() {
    in_both_tiers(b"value", |rig, cas| {
        let touch = Some(rig.in_seconds(30));
        let before = rig.fetch("key", &Fetch { touch, ..Fetch::default() }).expect("there");
        assert_eq!((before.value, before.expiry), (b"value".to_vec(), rig.in_seconds(30)));
        let item = rig.get("key").expect("there");
        assert_eq!((item.value, item.cas, item.client_flags), (b"value".to_vec(), cas, 7));
        assert_eq!(item.expiry, rig.in_seconds(30));
        rig.at(1029);
        assert!(rig.get("key").is_some());
        rig.at(1030);
        assert_eq!(rig.get("key"), None);
    });
}

#[test]
fn delete_compares_and_removes() {
    in_both_tiers(b"value", |rig, cas| {
        let compare = |cas| Remove { compare: Some(cas), ..Remove::default() };
        assert_eq!(rig.remove("key", &compare(cas + 1)), Some(RemoveResult::Exists));
        assert!(rig.get("key").is_some());
        assert_eq!(rig.remove("key", &compare(cas)), Some(RemoveResult::Removed));
        assert_eq!(rig.get("key"), None);
        assert_eq!(rig.remove("key", &Remove::default()), Some(RemoveResult::NotFound));
        rig.push_out();
        assert_eq!(rig.get("key"), None, "nothing brings it back");
    });
}

#[test]
fn an_invalidated_item_is_stale_and_one_reader_wins() {
    in_both_tiers(b"value", |rig, cas| {
        let expiry = rig.in_seconds(30);
        let remove = Remove { invalidate: true, touch: Some(expiry), ..Remove::default() };
        let Some(RemoveResult::Kept(new)) = rig.remove("key", &remove) else { panic!("not kept") };
        assert!(new > cas);
        let mg = Fetch { may_win: true, ..Fetch::default() };
        let first = rig.fetch("key", &mg).expect("there");
        assert_eq!(
            (first.value, first.stale, first.won, first.expiry),
            (b"value".to_vec(), true, true, expiry)
        );
        rig.push_out();
        let second = rig.fetch("key", &mg).expect("there");
        assert_eq!((second.stale, second.won, second.win_sent), (true, false, true));
        let older = Put { compare: Some(cas), invalidate: true, ..SET };
        rig.set_with("key", b"late", &older);
        let third = rig.get("key").expect("there");
        assert_eq!((third.value, third.stale, third.expiry), (b"late".to_vec(), true, expiry));
        rig.set("key", b"fresh");
        let fresh = rig.fetch("key", &mg).expect("there");
        assert_eq!((fresh.stale, fresh.won, fresh.win_sent), (false, false, false));
    });
}

#[test]
fn an_emptied_item_keeps_its_place_without_value_and_flags() {
    in_both_tiers(b"value", |rig, cas| {
        let remove = Remove { empty: true, ..Remove::default() };
        assert!(matches!(rig.remove("key", &remove), Some(RemoveResult::Kept(new)) if new > cas));
        let item = rig.get("key").expect("there");
        assert_eq!((item.value, item.client_flags, item.expiry), (vec![], 0, Expiry::Never));
    });
}

#[test]
fn a_miss_vivifies_once_and_an_item_on_the_ssd_not_at_all() {
    let rig = Rig::new(8, 16);
    let expiry = rig.in_seconds(30);
    let vivify = Fetch { vivify: Some(expiry), may_win: true, ..Fetch::default() };
    let first = rig.fetch("key", &vivify).expect("created");
    assert_eq!((first.value, first.won, first.expiry), (vec![], true, expiry));
    let second = rig.fetch("key", &vivify).expect("there");
    assert_eq!((second.won, second.win_sent), (false, true));
    rig.set_on_ssd("other", b"value", &SET);
    assert_eq!(
        rig.fetch("other", &vivify).map(|item| (item.value, item.won)),
        Some((b"value".to_vec(), false))
    );
}

#[test]
fn recaching_ahead_of_expiry_is_won_once() {
    let rig = Rig::new(8, 16);
    rig.set_on_ssd("key", b"value", &Put { expiry: rig.in_seconds(100), ..SET });
    let soon = |seconds| Fetch { recache_seconds: Some(seconds), may_win: true, ..Fetch::default() };
    assert_eq!(rig.fetch("key", &soon(100)).map(|item| item.won), Some(false));
    assert_eq!(rig.fetch("key", &soon(101)).map(|item| item.won), Some(true));
    assert_eq!(rig.fetch("key", &soon(101)).map(|item| (item.won, item.win_sent)), Some((false, true)));
}

#[test]
fn whether_an_item_was_read_is_known_in_both_tiers() {
    in_both_tiers(b"value", |rig, _| {
        assert_eq!(rig.peek("key").map(|item| item.fetched), Some(false));
        assert_eq!(rig.get("key").map(|item| item.fetched), Some(false));
        assert_eq!(rig.peek("key").map(|item| item.fetched), Some(true));
    });
    let rig = Rig::new(8, 16);
    rig.set("key", b"value");
    rig.get("key");
    rig.set("key", b"other");
    rig.push_out();
    assert_eq!(rig.peek("key").map(|item| (item.fetched, item.tier)), Some((false, Tier::Ssd)));
}

/// Adds one to a value of one byte, while it is below `max`; returns the byte before.
fn step(rig: &Rig, max: u8) -> Option<Option<Option<u8>>> {
    rig.run("key", |call| {
        rig.store.update(call, false, |value| {
            let before = value.map(|value| value[0]);
            let next = before.map_or(0, |before| before + 1);
            let expiry = rig.in_seconds(50);
            ((next <= max).then_some(Updated { value: [next], expiry }), before)
        })
    })
}

#[test]
fn an_update_stores_what_a_function_makes_of_the_value() {
    in_both_tiers(b"\x05", |rig, cas| {
        assert_eq!(step(rig, 9), Some(Some(Some(5))));
        let item = rig.peek("key").expect("it is there");
        assert_eq!((item.value, item.client_flags, item.tier), (vec![6], 7, Tier::Ram));
        assert_eq!(item.expiry, rig.in_seconds(50));
        assert!(item.cas > cas, "each change is a new version");
    });
}

#[test]
fn an_update_that_stores_nothing_changes_nothing_but_the_tier() {
    in_both_tiers(b"\x05", |rig, cas| {
        assert_eq!(step(rig, 5), Some(Some(Some(5))));
        let item = rig.peek("key").expect("it is there");
        assert_eq!((item.value, item.cas, item.expiry, item.tier), (vec![5], cas, Expiry::Never, Tier::Ram));
    });
}

#[test]
fn an_update_creates_an_item_or_leaves_none() {
    let rig = Rig::new(8, 0);
    let nothing = |call: &Call<'_>| rig.store.update(call, false, |_| (None::<Updated<[u8; 1]>>, ()));
    assert_eq!(rig.run("key", nothing), Some(Some(())));
    assert_eq!(rig.get("key"), None);
    assert_eq!(step(&rig, 9), Some(Some(None)));
    assert_eq!(rig.value("key"), Some(vec![0]));
    rig.at(2000);
    assert_eq!(step(&rig, 9), Some(Some(None)), "it has expired");
}

#[test]
fn an_update_of_a_longer_value_does_nothing() {
    let longer = [1; UPDATE_BYTES_MAX + 1];
    in_both_tiers(&longer, |rig, cas| {
        assert_eq!(step(rig, 9), Some(None));
        assert_eq!(rig.peek("key").map(|item| (item.value, item.cas)), Some((longer.to_vec(), cas)));
    });
    in_both_tiers(&longer[1..], |rig, _| assert_eq!(step(rig, 9), Some(Some(Some(1)))));
}
