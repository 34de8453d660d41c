//! Values of all sizes, in both tiers, and what may happen to a large one on its way between them.

use larder_store::*;

use crate::rig::{Rig, SET, bytes, config};

const SIZES: [usize; 12] =
    [0, 1, 4_000, 4_048, 4_049, 4_096, 40 << 10, 200_000, 300 << 10, (3 << 20) + 5, (8 << 20) - 1, 8 << 20];

#[test]
fn a_large_value_that_is_read_again_is_promoted_and_not_written_again() {
    let rig = Rig::new(64, 8);
    // Values of more than half a RAM segment, and of several.
    for size in [150_000, 700_000] {
        let key = format!("key-{size}");
        rig.set_on_ssd(&key, &bytes(1, size), &SET);
        let tiers: Vec<_> = (0..20).map(|_| rig.get(&key).map(|item| item.tier)).collect();
        let from_ssd = tiers.iter().filter(|tier| **tier == Some(Tier::Ssd)).count();
        assert!(from_ssd <= 4 && tiers.iter().all(Option::is_some), "{size} bytes: {tiers:?}");
        assert_eq!(rig.value(&key), Some(bytes(1, size)));
        let before = rig.store.stats().ssd_bytes_admitted;
        for _ in 0..4 {
            rig.push_out();
        }
        let item = rig.peek(&key).expect("it is there");
        assert_eq!((item.tier, item.value), (Tier::Ssd, bytes(1, size)), "{size} bytes");
        assert!(rig.store.stats().ssd_bytes_admitted - before < size as u64, "it was written again");
        // Changed in RAM, it is written with the change.
        (0..4).for_each(|_| drop(rig.get(&key)));
        assert_eq!(rig.peek(&key).map(|item| item.tier), Some(Tier::Ram));
        let touch = Some(rig.in_seconds(500));
        rig.fetch(&key, &Fetch { touch, no_bump: true, ..Fetch::default() });
        for _ in 0..4 {
            rig.push_out();
        }
        let item = rig.peek(&key).expect("it is there");
        assert_eq!((item.tier, item.expiry, item.value), (Tier::Ssd, rig.in_seconds(500), bytes(1, size)));
        rig.store.check().expect("every count is right");
    }
}

#[test]
fn values_of_every_size_come_back_from_both_tiers() {
    let rig = Rig::new(64, 16);
    for (i, &size) in SIZES.iter().enumerate() {
        let key = format!("key-{size}");
        rig.set(&key, &bytes(i as u64, size));
        let item = rig.get(&key).expect("in RAM");
        assert!(item.value == bytes(i as u64, size) && item.tier == Tier::Ram, "{size}");
        rig.set(&key, &bytes(i as u64 + 1, size));
    }
    rig.push_out();
    for (i, &size) in SIZES.iter().enumerate() {
        let item = rig.get(&format!("key-{size}")).unwrap_or_else(|| panic!("{size} bytes are gone"));
        assert!(item.value == bytes(i as u64 + 1, size), "{size}");
        assert_eq!(item.tier, Tier::Ssd, "{size}");
    }
    rig.store.check().expect("every count is right");
}

#[test]
fn mutations_of_large_values_on_the_ssd_bring_them_to_ram() {
    let rig = Rig::new(64, 16);
    for size in [300 << 10, 3 << 20] {
        let value = bytes(3, size);
        rig.set_on_ssd("key", &value, &SET);
        rig.set_with("key", b"tail", &Put { mode: PutMode::Append, ..SET });
        let item = rig.get("key").expect("there");
        assert!(item.value == [&value[..], b"tail"].concat() && item.tier == Tier::Ram);
        rig.push_out();
        let touch = Some(rig.in_seconds(100));
        assert!(rig.fetch("key", &Fetch { touch, ..Fetch::default() }).is_some());
        let item = rig.get("key").expect("there");
        assert!(item.value == [&value[..], b"tail"].concat() && item.expiry == rig.in_seconds(100));
        assert_eq!(rig.remove("key", &Remove::default()), Some(RemoveResult::Removed));
        assert_eq!(rig.get("key"), None);
    }
}

#[test]
fn a_value_too_large_for_the_ssd_lives_in_ram() {
    let rig = Rig::new(128, 4);
    let value = bytes(9, 20 << 20);
    rig.set("key", &value);
    assert!(rig.get("key").is_some_and(|item| item.value == value && item.tier == Tier::Ram));
    rig.push_out();
    rig.push_out();
    assert_eq!(rig.get("key"), None, "it is dropped when its time comes, and never half there");
    rig.store.check().expect("every count is right");
}

#[test]
fn a_value_of_more_than_half_the_ram_is_refused() {
    let rig = Rig::new(16, 4);
    let too_large = rig.store.value_bytes_max() as usize + 1;
    assert_eq!(rig.put("key", &vec![0; too_large], &SET), None);
    rig.set("key", &bytes(1, rig.store.value_bytes_max() as usize / 2));
}

/// Bytes of a large value in the tests that follow.
const SIZE: usize = 100 << 10;

/// A store of one shard in which `large-0` is on its way to the SSD.
fn demotion() -> Rig {
    let rig = Rig::new(7, 8);
    assert_eq!(rig.store.stats().shards, 1);
    rig.writes.set(false);
    for i in 0.. {
        rig.set(&format!("large-{i}"), &bytes(i, SIZE));
        if rig.store.writes_pending() > 0 {
            break;
        }
    }
    rig.writes.set(true);
    rig
}

#[test]
fn a_large_value_can_be_read_while_it_is_written_to_the_ssd() {
    let rig = demotion();
    assert!(rig.get("large-0").is_some_and(|item| item.value == bytes(0, SIZE) && item.tier == Tier::Ram));
    rig.settle();
    assert!(rig.get("large-0").is_some_and(|item| item.value == bytes(0, SIZE) && item.tier == Tier::Ssd));
    rig.store.check().expect("every count is right");
}

#[test]
fn a_large_value_deleted_or_replaced_while_it_is_written_does_not_come_back() {
    for replace in [false, true] {
        let rig = demotion();
        if replace {
            rig.set("large-0", b"new");
        } else {
            assert_eq!(rig.remove("large-0", &Remove::default()), Some(RemoveResult::Removed));
        }
        rig.settle();
        assert_eq!(rig.value("large-0"), replace.then(|| b"new".to_vec()));
        rig.store.check().expect("every count is right");
    }
}

#[test]
fn touching_a_large_value_while_it_is_written_waits_for_the_write() {
    let rig = demotion();
    let expiry = rig.in_seconds(77);
    let touched = rig.fetch("large-0", &Fetch { touch: Some(expiry), ..Fetch::default() });
    assert!(touched.is_some_and(|item| item.value == bytes(0, SIZE)));
    rig.settle();
    assert!(rig.get("large-0").is_some_and(|item| item.value == bytes(0, SIZE) && item.expiry == expiry));
}

#[test]
fn touching_a_large_value_that_is_being_written_does_not_wait_for_good() {
    let rig = demotion();
    rig.writes.set(false);
    // The device hangs. Whoever has no patience left gets an answer, whatever it is.
    let expiry = rig.in_seconds(77);
    let _ = rig.fetch("large-0", &Fetch { touch: Some(expiry), ..Fetch::default() });
    rig.remove("large-0", &Remove { invalidate: true, ..Remove::default() });
}

#[test]
fn large_values_on_their_way_to_a_device_that_hangs_leave_room_for_others() {
    let rig = Rig::new(7, 8);
    rig.writes.set(false);
    for i in 0..400 {
        rig.set(&format!("large-{i}"), &bytes(i, SIZE));
        rig.set(&format!("small-{i}"), &bytes(i, 500));
    }
    rig.store.check().expect("every count is right");
    rig.writes.set(true);
    rig.settle();
    rig.store.check().expect("every count is right");
}

#[test]
fn a_large_value_that_did_not_land_is_gone_and_its_memory_free() {
    use larder_device::{Fault, FaultRule, OpKind, When};
    let rig = demotion();
    rig.device.inject(FaultRule::new(OpKind::Write, Fault::Error, When::Nth(1)));
    rig.settle();
    assert!(rig.get("large-0").is_none());
    rig.store.check().expect("every count is right");
}

#[test]
fn a_lent_value_stays_whole_when_its_item_goes() {
    let rig = Rig::with(&config(16 << 20, 0));
    let size = 3 << 20;
    rig.set("key", &bytes(5, size));
    let lent = rig.run("key", |call| {
        rig.store.fetch(call, &Fetch::default(), |found| match found.map(|found| found.value.clone()) {
            Some(Value::Large(large)) => large,
            _ => panic!("a large value is lent in parts"),
        })
    });
    let lent = lent.expect("there");
    rig.remove("key", &Remove::default());
    rig.push_out();
    assert_eq!(lent.parts().collect::<Vec<_>>().concat(), bytes(5, size));
    assert_eq!(lent.part_at(size - 1), &bytes(5, size)[size - 1..]);
    let free = rig.store.stats().ram_segments_free;
    rig.store.check().expect("every count is right");
    drop(lent);
    assert!(rig.store.stats().ram_segments_free > free, "the memory comes back with the last reader");
    rig.store.check().expect("every count is right");
}

/// Begins to add to an item on the SSD, and returns the read that this takes.
fn planned_add(rig: &Rig) -> ReadPlan {
    let call = Call {
        key: b"key",
        hash: rig.store.hash(b"key"),
        now: rig.now.get(),
        loaded: None,
        on_full: OnFull::Drop,
    };
    match rig.store.put(&call, &Put { mode: PutMode::Add, ..SET }, &mut Payload::Bytes(b"new")) {
        Step::Read(plan) => plan,
        _ => panic!("the item is not on the SSD"),
    }
}

/// Goes on with what [`planned_add`] began, with what the device gives now.
fn complete_add(rig: &Rig, plan: &ReadPlan) -> Option<PutResult> {
    let bytes = rig.read(plan);
    let call = Call {
        key: b"key",
        hash: rig.store.hash(b"key"),
        now: rig.now.get(),
        loaded: Some(Loaded { plan, bytes: bytes.as_deref() }),
        on_full: OnFull::Drop,
    };
    rig.store.put(&call, &Put { mode: PutMode::Add, ..SET }, &mut Payload::Bytes(b"new")).done()
}

#[test]
fn a_header_that_was_read_counts_only_while_the_item_is_the_one_it_was_read_for() {
    let rig = Rig::new(64, 4);
    let value = bytes(5, 500_000);
    rig.set_on_ssd("key", &value, &SET);
    let plan = planned_add(&rig);
    assert_eq!(plan.bytes(), 4096, "header and key lie in one page");
    assert_eq!(complete_add(&rig, &plan), Some(PutResult::NotStored), "it is there");
    // Deleted while its header is read.
    let plan = planned_add(&rig);
    rig.remove("key", &Remove::default());
    assert!(matches!(complete_add(&rig, &plan), Some(PutResult::Stored(_))));
    assert_eq!(rig.value("key"), Some(b"new".to_vec()));
    // Overwritten, and the new one on the SSD too: that one's header is what counts.
    let expired = Put { expiry: rig.in_seconds(40), ..SET };
    rig.set_on_ssd("key", &value, &SET);
    let plan = planned_add(&rig);
    rig.set_on_ssd("key", &value, &expired);
    assert_eq!(complete_add(&rig, &plan), None, "another read is asked for");
    rig.now.set(Seconds(rig.now.get().0 + 50));
    let stored = complete_add(&rig, &planned_add(&rig));
    assert!(matches!(stored, Some(PutResult::Stored(_))), "its header says that it has expired");
}

#[test]
fn a_header_that_was_read_from_a_segment_filled_again_is_a_miss() {
    let rig = Rig::new(64, 4);
    rig.set_on_ssd("key", &bytes(5, 500_000), &SET);
    let hash = rig.store.hash(b"key");
    let fetch = Fetch { without_value: true, no_bump: true, ..Fetch::default() };
    let mut call = Call { key: b"key", hash, now: rig.now.get(), loaded: None, on_full: OnFull::Drop };
    let lens = |found: Option<&Found<'_>>| found.map(|found| (found.value_len, found.value.len()));
    let Step::Read(plan) = rig.store.fetch(&call, &fetch, lens) else { panic!("not on the SSD") };
    let before = rig.read(&plan);
    for i in 0..300 {
        rig.set(&format!("other-{i}"), &bytes(i, 500_000));
        rig.perform_io();
    }
    let after = rig.read(&plan);
    assert!(before.as_deref() != after.as_deref(), "the segment was filled again");
    call.loaded = Some(Loaded { plan: &plan, bytes: after.as_deref() });
    assert_eq!(rig.store.fetch(&call, &fetch, lens).done(), Some(None));
    // What the device gave before that is what the item was when the read was planned.
    call.loaded = Some(Loaded { plan: &plan, bytes: before.as_deref() });
    assert_eq!(rig.store.fetch(&call, &fetch, lens).done(), Some(Some((500_000, 0))));
}
