//! Keys that the index can hardly tell apart.

use larder_store::*;

use crate::rig::{Rig, SET, bytes, config};

#[test]
fn with_an_ssd_a_stored_key_is_not_lost_to_another_that_looks_alike() {
    const KEYS: u64 = 300_000;
    let rig = Rig::with(&Config { item_bytes: 256, ..config(24 << 20, 8) });
    for i in 0..KEYS {
        rig.set(&format!("key-{i}"), &bytes(i, 100));
    }
    let lost = (0..KEYS).filter(|i| rig.peek(&format!("key-{i}")).is_none()).count();
    let stats = rig.store.stats();
    assert!(stats.ssd_items > KEYS / 3, "{stats:?}");
    // With 16 bits of the hash in an entry, instead of 22, these were 21.
    assert!(lost <= 7, "{lost} of {KEYS}");
    assert_eq!(stats.index_entries, KEYS - lost as u64);
    rig.store.check().expect("every count is right");
}

#[test]
fn an_item_that_gives_way_to_a_key_that_looks_alike_is_counted() {
    for value_bytes in [0, 100, 100_000] {
        let rig = Rig::new(16, 0);
        let value = bytes(1, value_bytes);
        rig.set("one", &value);
        // The index cannot tell keys of one hash apart.
        let hash = rig.store.hash(b"one");
        let call = Call { key: b"two", hash, now: rig.now.get(), loaded: None, on_full: OnFull::Drop };
        let stored = rig.store.put(&call, &SET, &mut Payload::Bytes(&value)).done();
        assert!(matches!(stored, Some(PutResult::Stored(_))), "{value_bytes} bytes: {stored:?}");
        assert_eq!((rig.value("one"), rig.store.stats().index_collisions), (None, 1), "{value_bytes} bytes");
        rig.set("one", &value);
        rig.set("one", &bytes(2, value_bytes + 50));
        let stats = rig.store.stats();
        assert_eq!((stats.index_collisions, stats.evictions), (2, 2), "a key gives way to itself uncounted");
        rig.store.check().expect("every count is right");
    }
}

/// Stores a key that the index cannot tell from `like`, in place of that, and deletes it.
fn set_alike(rig: &Rig, like: &str, mode: PutMode) {
    let (hash, put) = (rig.store.hash(like.as_bytes()), Put { mode, ..SET });
    let stored = rig.run(like, |call| {
        let call = Call { key: b"another", hash, ..*call };
        let stored = rig.store.put(&call, &put, &mut Payload::Bytes(b"another"));
        // Before it leaves RAM: it is not where its own hash tells.
        if matches!(stored, Step::Done(_)) {
            rig.store.forget(&call);
        }
        stored
    });
    assert!(matches!(stored, Some(PutResult::Stored(_))), "{like}: {stored:?}");
    assert_eq!(rig.value(like), None);
}

#[test]
fn a_read_of_the_ssd_that_brings_another_keys_item_is_counted() {
    let rig = Rig::new(8, 8);
    rig.set_on_ssd("one", &bytes(1, 100), &SET);
    let hash = rig.store.hash(b"one");
    let found = rig.run("one", |call| {
        let call = Call { key: b"two", hash, ..*call };
        rig.store.fetch(&call, &Fetch::default(), |found| found.is_some())
    });
    assert_eq!((found, rig.store.stats().ssd_false_reads), (Some(false), 1));
    assert!(rig.get("one").is_some());
    assert_eq!(rig.store.stats().ssd_false_reads, 1, "a read that brings what it is for is none");
}

#[test]
fn an_item_on_the_ssd_that_gives_way_to_a_key_that_looks_alike_is_counted_where_it_is_known() {
    let rig = Rig::new(8, 8);
    let counts = || {
        let stats = rig.store.stats();
        (stats.index_collisions, stats.evictions - stats.evictions_ram - stats.evictions_ssd)
    };
    // It was read, since `add` has to know whether there is an item.
    rig.set_on_ssd("one", &bytes(1, 100), &SET);
    set_alike(&rig, "one", PutMode::Add);
    assert_eq!(counts(), (1, 1));
    // A set does not read it.
    rig.set_on_ssd("one", &bytes(1, 100), &SET);
    let before = counts();
    set_alike(&rig, "one", PutMode::Set);
    assert_eq!(counts(), before);
    // It is still in a write buffer.
    rig.set("buffered", b"value");
    while !rig.peek("buffered").is_some_and(|item| item.tier == Tier::Ssd) {
        rig.writes.set(false);
        rig.store.evict_all(rig.now.get());
    }
    let before = counts();
    set_alike(&rig, "buffered", PutMode::Set);
    assert_eq!(counts(), (before.0 + 1, before.1 + 1));
    rig.set("buffered", b"value");
    rig.store.check().expect("every count is right");
}
