//! Bounds: memory, index, and a store that may not evict.

use larder_store::*;

use crate::rig::{Rig, SET, bytes, config};

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: u64 =
        statm.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * 4096
}

#[test]
fn resident_memory_stays_within_the_limit() {
    // A process of its own, so that no other test's memory is counted.
    if std::env::var_os("LARDER_BOUNDS_CHILD").is_none() {
        let child = std::process::Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "bounds::resident_memory_stays_within_the_limit", "--nocapture"])
            .env("LARDER_BOUNDS_CHILD", "1")
            // The buffers of large reads go back to the system at once: holes in the heap are not the store's.
            .env("MALLOC_MMAP_THRESHOLD_", "131072")
            .status();
        assert!(child.expect("it runs").success());
        return;
    }
    let memory = 48 << 20;
    let rig = Rig::with(&config(memory, 6));
    // The device's memory is not the store's: take all of it first.
    let chunk = larder_device::IoBuf::zeroed(1 << 20);
    use larder_device::Device;
    for offset in (0..rig.device.len()).step_by(1 << 20) {
        rig.device.write_at(&chunk, offset).expect("it works");
    }
    drop(chunk);
    let before = resident_bytes();
    for i in 0..120_000_u64 {
        let len = if i % 1_000 == 0 { 700 << 10 } else { (i * 37 % 4_000) as usize };
        rig.set(&format!("key-{i}"), &bytes(i, len));
        if i % 3 == 0 {
            rig.get(&format!("key-{}", i / 2));
        }
    }
    let grown = resident_bytes().saturating_sub(before);
    println!("grown by {grown} of {memory}");
    assert!(grown <= memory + (8 << 20), "{grown}");
    rig.settle();
    rig.store.check().expect("every count is right");
}

#[test]
fn a_store_that_may_not_evict_says_when_it_is_full_and_keeps_everything() {
    for segments in [0, 1, 3, 6] {
        let rig = Rig::with(&Config { evict: false, item_bytes: 1_024, ..config(8 << 20, segments) });
        let mut stored = Vec::new();
        let mut refused = 0;
        for i in 0..200_000_u64 {
            let len = if i % 100 == 0 { 50_000 } else { 1_500 };
            match rig.put(&format!("key-{i}"), &bytes(i, len), &SET) {
                Some(PutResult::Stored(_)) => stored.push((i, len)),
                None => refused += 1,
                other => panic!("{other:?}"),
            }
            if refused > 50 {
                break;
            }
        }
        assert!(refused > 50, "{segments} segments, {} stored", stored.len());
        let lost = stored.iter().filter(|(i, len)| rig.value(&format!("key-{i}")) != Some(bytes(*i, *len)));
        let lost: Vec<_> = lost.collect();
        // Two keys that the index cannot tell apart, one in some ten thousand, still take each other's place.
        assert!(
            lost.len() <= stored.len() / 5_000,
            "{segments} segments: {} of {} lost",
            lost.len(),
            stored.len()
        );
        let bytes_stored: usize = stored.iter().map(|(_, len)| len).sum();
        let room = rig.store.stats().ram_tier_bytes + segments * SEGMENT_BYTES;
        assert!(bytes_stored as u64 > room / 2, "{bytes_stored} of {room} used");
        for (i, _) in &stored[..stored.len() / 2] {
            rig.remove(&format!("key-{i}"), &Remove::default());
        }
        if segments == 0 {
            for i in 0..100 {
                rig.set(&format!("again-{i}"), &bytes(i, 1_500));
            }
        }
        rig.store.check().expect("every count is right");
    }
}

#[test]
fn a_full_index_refuses_where_nothing_may_be_evicted() {
    let config = Config { index_bytes: Some(64 * 64), evict: false, ..config(16 << 20, 0) };
    let rig = Rig::with(&config);
    let mut stored = Vec::new();
    for i in 0..2_000_u64 {
        if rig.put(&format!("key-{i}"), &bytes(i, 50), &SET).is_some() {
            stored.push(i);
        }
    }
    assert!(stored.len() > 400 && stored.len() < 600, "{}", stored.len());
    let lost: Vec<_> = stored.iter().filter(|i| rig.get(&format!("key-{i}")).is_none()).collect();
    assert!(lost.len() <= 2, "only what the index cannot tell apart may go: {lost:?}");
    assert_eq!(rig.store.stats().index_evictions, 0);
    rig.set("key-0", &bytes(0, 70));
}

#[test]
fn memory_that_readers_hold_is_refused_and_not_waited_for() {
    let rig = Rig::with(&Config { item_bytes: 4_096, ..config(2 << 20, 0) });
    for i in 0..20 {
        rig.set(&format!("small-{i}"), &bytes(i, 100));
    }
    let mut lent = Vec::new();
    for i in 0..60 {
        let key = format!("large-{i}");
        if rig.put(&key, &bytes(i, 90_000), &SET).is_none() {
            break;
        }
        let keep = |found: Option<&Found<'_>>| match found.map(|found| found.value.clone()) {
            Some(Value::Large(large)) => large,
            _ => panic!("a large value is lent in parts"),
        };
        lent.push(rig.run(&key, |call| rig.store.fetch(call, &Fetch::default(), keep)));
    }
    assert!(lent.len() < 60, "readers hold everything");
    rig.store.check().expect("every count is right");
    drop(lent);
    rig.set("large", &bytes(1, 90_000));
}

#[test]
fn a_tiny_store_works() {
    let rig = Rig::with(&Config { item_bytes: 4_096, ..config(2 << 20, 0) });
    for i in 0..20_000_u64 {
        rig.set(&format!("key-{i}"), &bytes(i, 300));
    }
    assert!(rig.get("key-19999").is_some());
    rig.set("large", &bytes(1, 300 << 10));
    assert!(rig.get("large").is_some());
    rig.store.check().expect("every count is right");
}

#[test]
fn sizes_that_no_machine_has_are_refused_and_do_not_overflow() {
    let spans = |bytes| vec![Span { device: 0, offset: 0, bytes }];
    for config in [
        Config { index_bytes: Some(u64::MAX), ..config(64 << 20, 0) },
        Config { index_bytes: Some(1 << 50), ..config(64 << 20, 4) },
        Config { memory_bytes: u64::MAX, ..config(0, 0) },
        Config { memory_bytes: 0, ..config(0, 0) },
        Config { memory_bytes: 1 << 36, ssd: spans(1 << 50), item_bytes: 1, ..config(0, 0) },
    ] {
        assert!(Store::open(&config).is_err(), "{config:?}");
    }
}
