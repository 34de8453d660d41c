//! What a later process finds in a memory file: everything, or an empty store and the reason.

#[path = "../../../fuzz/harness.rs"]
mod harness;
#[path = "fuzz/memory.rs"]
mod memory;
mod rig;

use std::cell::Cell;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use harness::for_a_while;
use larder_store::*;
use rig::restart::{CLOCK, PATHS, SSD, again, begin, begin_with, copy, memory_file, open_left, with_file};
use rig::{COUNT, Rig, SET, bytes, config};

fn warm(rig: &Rig) -> (u64, u64) {
    match rig.store.start() {
        Start::Warm { items, shards_reset, .. } => (items, shards_reset),
        cold => panic!("{cold:?}"),
    }
}

#[test]
fn everything_is_back_wherever_it_was() {
    let (rig, config) = begin(8, 8);
    let keys: Vec<String> = (0..3_000).map(|i| format!("key-{i}")).collect();
    let value = |i: usize| bytes(i as u64, if i.is_multiple_of(50) { 80_000 } else { 1_000 + i % 2_000 });
    for (i, key) in keys.iter().enumerate() {
        rig.set(key, &value(i));
    }
    let there: Vec<_> = keys.iter().map(|key| rig.peek(key)).collect();
    let tiers = |tier| there.iter().flatten().filter(|item| item.tier == tier).count();
    assert!(tiers(Tier::Ram) > 500 && tiers(Tier::Ssd) > 500, "both tiers are in use");
    assert!(rig.store.writes_pending() > 0 || rig.write_one(), "something is in write buffers");
    let before = rig.store.stats();
    let rig = again(rig, &config);
    assert_eq!(warm(&rig), (before.ram_items + before.ssd_items, 0));
    let after = rig.store.stats();
    assert_eq!((after.ram_items, after.ssd_items), (before.ram_items, before.ssd_items));
    assert_eq!((after.ram_item_bytes, after.index_entries), (before.ram_item_bytes, before.index_entries));
    assert_eq!((after.evictions, after.ssd_bytes_written), (0, 0), "counts are of this process");
    for (key, item) in keys.iter().zip(&there) {
        assert_eq!(&rig.peek(key), item, "{key}");
    }
    rig.settle();
    for (i, (key, item)) in keys.iter().zip(&there).enumerate() {
        assert_eq!(rig.value(key), item.as_ref().map(|_| value(i)), "{key}, written again");
    }
    rig.push_out();
    rig.store.check().expect("and it goes on");
}

#[test]
fn records_that_lie_over_the_ends_of_segments_are_back() {
    for size in [700, 3_000, 30_000, 110_000] {
        let (rig, config) = begin(6, 0);
        for round in 0..4 {
            let items = (8 << 20) / size as u64;
            // What is begun in a segment that was emptied ends in one that was not, at many places of it.
            for i in round * items / 5..(round + 1) * items / 3 {
                rig.set(&format!("key-{i}"), &bytes(i, size + (i % 7) as usize * 100));
            }
        }
        let before = rig.store.stats();
        assert!(before.evictions > 0, "segments have been emptied");
        let rig = again(rig, &config);
        assert_eq!(warm(&rig), (before.ram_items, 0), "{size} bytes");
        for i in 0..(12 << 20) / size as u64 {
            let value = rig.value(&format!("key-{i}"));
            assert!(value.is_none_or(|value| value == bytes(i, size + (i % 7) as usize * 100)), "{i}");
        }
        rig.set("more", &bytes(1, size));
        rig.store.check().expect("and it goes on");
    }
}

#[test]
fn what_was_only_in_a_write_buffer_is_written_by_the_next_process() {
    let (rig, config) = begin(4, 8);
    rig.set("filler", &bytes(1, 1_000));
    for i in 0..1_500 {
        rig.set(&format!("key-{i}"), &bytes(i, 3_000));
    }
    let there =
        (0..1_500).filter(|i| rig.peek(&format!("key-{i}")).is_some_and(|item| item.tier == Tier::Ssd));
    let there: Vec<u64> = there.collect();
    let written = rig.store.stats().ssd_bytes_written / 4096;
    assert!(there.len() as u64 > written + 10, "{} left RAM, {written} were written", there.len());
    let rig = again(rig, &config);
    assert!(rig.store.writes_pending() > 0);
    rig.settle();
    assert!(rig.store.stats().ssd_device_writes > 0);
    for i in there {
        assert_eq!(rig.value(&format!("key-{i}")), Some(bytes(i, 3_000)), "key-{i}");
    }
}

#[test]
fn flushes_and_cas_uniques_go_on_where_they_were() {
    let (rig, config) = begin(4, 0);
    rig.set("old", b"1");
    rig.store.flush(None, rig.now.get());
    let cas = (0..100).map(|i| rig.set(&format!("key-{i}"), b"x")).max().expect("a hundred");
    let cas = cas.max(rig.set("counted", b"7"));
    rig.store.flush(Some(Seconds(1_010)), rig.now.get());
    let rig = again(rig, &config);
    assert_eq!(warm(&rig).1, 0);
    assert_eq!(rig.get("old"), None, "flushed");
    assert_eq!(rig.get("counted").map(|item| item.cas), Some(cas));
    let counted = rig.arith("counted", &COUNT);
    let Some(ArithResult::Value { value: 8, cas: next, .. }) = counted else { panic!("{counted:?}") };
    assert!(next > cas, "no key of the earlier process has had it");
    rig.at(1_010);
    assert_eq!(rig.get("counted"), None, "the flush that was pending was carried out");
}

#[test]
fn a_large_value_on_its_way_to_the_ssd_is_still_in_ram() {
    let (rig, config) = begin(4, 8);
    let value = bytes(9, 300_000);
    rig.set("large", &value);
    rig.writes.set(false);
    for i in 0..40 {
        rig.put(&format!("other-{i}"), &bytes(i, 100_000), &SET);
    }
    assert!(rig.store.writes_pending() > 0, "large values are demotion");
    let there: Vec<_> = (0..40).map(|i| rig.peek(&format!("other-{i}"))).collect();
    let large = rig.peek("large");
    let rig = again(rig, &config);
    assert_eq!(warm(&rig).1, 0);
    assert_eq!(rig.peek("large"), large);
    for (i, item) in there.iter().enumerate() {
        assert_eq!(&rig.peek(&format!("other-{i}")), item, "other-{i}");
    }
    rig.writes.set(true);
    rig.push_out();
    rig.store.check().expect("all of it can leave again");
}

#[test]
fn a_reader_of_a_deleted_large_value_leaves_its_memory_free() {
    let (rig, config) = begin(4, 0);
    rig.set("large", &bytes(1, 400_000));
    let hash = rig.store.hash(b"large");
    let call = Call { key: b"large", hash, now: rig.now.get(), loaded: None, on_full: OnFull::Drop };
    let held =
        rig.store.fetch(&call, &Fetch::default(), |found| match found.map(|found| found.value.clone()) {
            Some(Value::Large(large)) => large,
            _ => panic!("a large value is lent in pieces"),
        });
    rig.remove("large", &Remove::default());
    let free = rig.store.stats().ram_segments_free;
    let rig = again(rig, &config);
    assert!(rig.store.stats().ram_segments_free > free);
    drop(held);
}

#[test]
fn a_shard_of_which_a_change_has_panicked_is_emptied() {
    let (rig, config) = begin(8, 0);
    let large = bytes(1, rig.store.large_bytes() + 1_000);
    rig.set("large", &large);
    rig.set("small", b"value");
    let call = Call {
        key: b"large",
        hash: rig.store.hash(b"large"),
        now: rig.now.get(),
        loaded: None,
        on_full: OnFull::Drop,
    };
    let fetch = Fetch::default();
    let answer = |_: Option<&Found<'_>>| -> () { std::panic::resume_unwind(Box::new("on purpose")) };
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rig.store.fetch(&call, &fetch, answer)))
        .expect_err("the answer panics");
    rig.set("large", &large);
    let left = |config: &Config| copy(config.memory_file.as_ref().expect("a file"));
    let (rig, config) = open_left(rig, left(&config), &config);
    assert_eq!(warm(&rig).1, 1, "later changes do not make it whole");
    assert!(rig.peek("large").is_none());
    rig.set("large", &large);
    let rig = again(rig, &config);
    assert!(warm(&rig).1 == 0 && rig.value("large") == Some(large));
}

fn cold_reason(config: &Config) -> Cold {
    let store = Store::open(config).expect("it opens");
    match store.start() {
        Start::Cold(why) => why,
        warm @ Start::Warm { .. } => panic!("{warm:?}"),
    }
}

fn content(config: &Config) -> Vec<u8> {
    let file = &config.memory_file.as_ref().expect("a file").file;
    let mut content = vec![0; file.metadata().expect("a file").len() as usize];
    file.read_exact_at(&mut content, 0).expect("it is that long");
    content
}

#[test]
fn memory_that_no_daemon_can_use_again_is_begun_anew_and_why_is_said() {
    type Change = fn(&mut Config);
    let changes: [(Cold, Change); 2] = [
        (Cold::OtherSsd, |config| config.memory_file.as_mut().expect("a file").ssd.push(1)),
        (Cold::OtherClock, |config| config.memory_file.as_mut().expect("a file").clock.push('!')),
    ];
    for (why, change) in changes {
        let (rig, mut config) = begin(8, 8);
        rig.set("key", b"value");
        change(&mut config);
        assert_eq!(cold_reason(&config), why);
        // What was in it is gone, and until the new one is ready it is none.
        assert_eq!(cold_reason(&config), Cold::Unfinished);
    }
}

#[test]
fn memory_made_with_other_options_is_refused_and_waits_for_these() {
    let changes: [fn(&mut Config); 5] = [
        |config| config.memory_bytes += 1 << 20,
        |config| config.ssd[0].bytes += SEGMENT_BYTES,
        |config| config.item_bytes = 1_000,
        |config| config.evict = false,
        |config| {
            let memory = config.memory_file.as_mut().expect("a file");
            (memory.ssd, memory.paths) = (b"another SSD".to_vec(), b"another path".to_vec());
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let (rig, config) = begin(8, 8);
        rig.set("key", b"value");
        let before = content(&config);
        let mut changed = config.clone();
        change(&mut changed);
        let refused = Store::open(&changed).map(|_| ()).expect_err("made with other options");
        let OpenError::OtherOptions(made) = refused else { panic!("change {number}: {refused}") };
        let sizes = (made.memory_bytes, made.ssd_segments, made.item_bytes, made.evict);
        assert_eq!(sizes, (8 << 20, 8, config.item_bytes, true), "change {number}");
        assert!(made.had_paths(PATHS) && made.is_on_clock(CLOCK) && made.index_bytes.is_none());
        assert!(content(&config) == before, "change {number}: it was changed");
        assert_eq!(rig.get("key").map(|item| item.value), Some(b"value".to_vec()));
        let rig = again(rig, &config);
        assert_eq!(warm(&rig), (1, 0), "change {number}");
    }
}

#[test]
fn sizes_that_come_to_the_same_layout_are_the_same() {
    let (rig, config) = begin_with(&Config { index_bytes: Some(1_000_001), ..config(8 << 20, 8) });
    rig.set("key", b"value");
    let index_bytes = Some(rig.store.stats().index_bytes);
    assert_ne!(index_bytes, config.index_bytes);
    let rig = again(rig, &Config { index_bytes, ..config });
    assert_eq!(warm(&rig), (1, 0));
    let (rig, config) = begin(8, 8);
    rig.set("key", b"value");
    let index_bytes = Some(rig.store.stats().index_bytes);
    let rig = again(rig, &Config { index_bytes, ..config.clone() });
    assert_eq!(warm(&rig), (1, 0), "the size that it would have had");
    // One that keeps its size has no addresses behind it.
    let refused = Store::open(&Config { index_bytes, evict: false, ..config }).map(|_| ());
    let refused = refused.expect_err("it keeps its size");
    assert!(matches!(refused, OpenError::OtherOptions(_)), "{refused}");
}

#[test]
fn with_an_ssd_an_index_that_has_grown_is_back_and_still_shrinks() {
    const ITEMS: u64 = 300_000;
    let (rig, config) = begin(12, 10);
    let began = rig.store.stats();
    for i in 0..ITEMS {
        rig.set(&format!("key-{i}"), &bytes(i, 100));
    }
    let before = rig.store.stats();
    assert!(before.index_bytes > 3 * began.index_bytes && before.ssd_items > ITEMS / 2, "{before:?}");
    let memory = copy(config.memory_file.as_ref().expect("a file"));
    let (mut rig, mut config) = open_left(rig, memory, &config);
    assert_eq!(warm(&rig), (before.ram_items + before.ssd_items, 0));
    let after = rig.store.stats();
    assert_eq!((after.index_bytes, after.ram_tier_bytes), (before.index_bytes, before.ram_tier_bytes));
    // What the last one had in its write buffers is written again.
    rig.perform_io();
    let found = (0..ITEMS).filter(|i| rig.value(&format!("key-{i}")) == Some(bytes(*i, 100))).count() as u64;
    assert_eq!(found, after.ram_items + after.ssd_items);
    for i in 0..ITEMS {
        rig.remove(&format!("key-{i}"), &Remove::default());
    }
    // Restarts on the way are warm too.
    for _ in 0..4 {
        rig.store.upkeep(rig.now.get());
        let left = rig.store.stats();
        let memory = copy(config.memory_file.as_ref().expect("a file"));
        (rig, config) = open_left(rig, memory, &config);
        let stats = rig.store.stats();
        assert_eq!(stats.index_bytes, left.index_bytes);
        assert!(stats.ram_tier_bytes >= left.ram_tier_bytes, "{left:?} {stats:?}");
    }
    (0..100).for_each(|_| rig.store.upkeep(rig.now.get()));
    let stats = rig.store.stats();
    assert_eq!((stats.index_bytes, stats.ram_tier_bytes), (began.index_bytes, began.ram_tier_bytes));
    rig.store.check().expect("every count is right");
}

#[test]
fn an_index_that_has_grown_is_back_and_takes_no_more_memory_than_before() {
    let (rig, config) = begin(16, 0);
    let began = rig.store.stats();
    for i in 0..100_000_u64 {
        rig.set(&format!("key-{i}"), &i.to_le_bytes());
    }
    let before = rig.store.stats();
    assert!(before.index_bytes > 3 * began.index_bytes, "{before:?}");
    let rig = again(rig, &config);
    assert_eq!(warm(&rig), (before.ram_items, 0));
    let after = rig.store.stats();
    assert_eq!((after.index_bytes, after.ram_segments), (before.index_bytes, before.ram_segments));
    let found = (0..100_000_u64).filter(|i| rig.value(&format!("key-{i}")) == Some(i.to_le_bytes().to_vec()));
    assert_eq!(found.count() as u64, before.ram_items);
    for i in 0..400_000_u64 {
        rig.set(&format!("more-{i}"), &i.to_le_bytes());
    }
    let stats = rig.store.stats();
    let in_use = stats.index_bytes + stats.ram_segments * stats.ram_segment_bytes;
    assert!(stats.index_bytes > before.index_bytes && in_use <= stats.arena_bytes, "{stats:?}");
    rig.store.check().expect("every count is right");
}

#[test]
fn a_header_that_is_not_whole_is_not_taken_for_one() {
    let change = |at: u64| {
        let (rig, config) = begin(4, 0);
        rig.set("key", b"value");
        let file = &config.memory_file.as_ref().expect("a file").file;
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).expect("it is that long");
        file.write_all_at(&[byte[0] ^ 1 << 7], at).expect("it can be written");
        config
    };
    for at in [0, 8, 12, 33, 60, 3_000, 3_967] {
        let config = change(at);
        let before = content(&config);
        let refused = Store::open(&config).map(|_| ()).expect_err("no memory file");
        assert!(matches!(refused, OpenError::NotMemory), "byte {at}: {refused}");
        assert!(content(&config) == before, "byte {at}: it was changed");
    }
    assert_eq!(cold_reason(&change(4_073)), Cold::OtherSsd);
    assert_eq!(cold_reason(&change(4_090)), Cold::Unfinished);
    let (_, config) = begin(4, 0);
    let file = &config.memory_file.as_ref().expect("a file").file;
    file.set_len(file.metadata().expect("a file").len() - 4096).expect("shorter");
    assert_eq!(cold_reason(&config), Cold::Cut);
}

/// A header as every version writes it: its magic, its format and its checksum.
#[test]
fn a_file_of_another_version_is_known_for_one() {
    let memory = memory_file();
    let mut page = [0; 4096];
    page[..12].copy_from_slice(b"LARDERMM\x08\0\0\0");
    let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &page[..3968]) as u32;
    page[12..16].copy_from_slice(&crc.to_le_bytes());
    memory.file.write_all_at(&page, 0).expect("it can be written");
    assert_eq!(cold_reason(&with_file(4, 0, &memory)), Cold::OtherVersion { found: 8 });
}

#[test]
fn what_is_not_a_memory_file_is_left_alone() {
    let in_the_middle = [vec![0; 40_000], b"a disk image".to_vec(), vec![0; 40_000]].concat();
    let named = [b"LARDERMM is how a memory file begins".to_vec(), vec![b' '; 9_000]].concat();
    let written_zeros = vec![0; 20_000];
    for content in [b"a letter".to_vec(), vec![7; 10_000], in_the_middle, named, written_zeros] {
        let memory = memory_file();
        memory.file.write_all_at(&content, 0).expect("it can be written");
        let refused = Store::open(&with_file(4, 0, &memory)).map(|_| ()).expect_err("not a memory file");
        assert!(matches!(refused, OpenError::NotMemory), "{refused}");
        assert_eq!(memory.file.metadata().expect("a file").len(), content.len() as u64);
        let mut still = vec![0; content.len()];
        memory.file.read_exact_at(&mut still, 0).expect("it is there");
        assert!(still == content);
    }
}

#[test]
fn a_sparse_file_with_data_behind_its_first_page_is_left_alone() {
    let memory = memory_file();
    memory.file.set_len(64 << 20).expect("a length");
    memory.file.write_all_at(b"a file system's superblock", 65_600).expect("it can be written");
    let refused = Store::open(&with_file(4, 0, &memory)).map(|_| ()).expect_err("not a memory file");
    assert!(matches!(refused, OpenError::NotMemory), "{refused}");
    let mut still = [0; 26];
    memory.file.read_exact_at(&mut still, 65_600).expect("it is there");
    assert_eq!(&still, b"a file system's superblock");
    memory.file.set_len(0).and_then(|()| memory.file.set_len(64 << 20)).expect("a length");
    assert_eq!(cold_reason(&with_file(4, 0, &memory)), Cold::Unfinished, "nothing was ever written to it");
}

#[test]
fn memory_is_allocated_before_it_is_used() {
    let blocks = |config: &Config| {
        let file = &config.memory_file.as_ref().expect("a file").file;
        let metadata = file.metadata().expect("a file");
        std::os::unix::fs::MetadataExt::blocks(&metadata) * 512
    };
    let mut config = with_file(8, 0, &memory_file());
    config.memory_file.as_mut().expect("a file").allocate = true;
    let store = Store::open(&config).expect("it opens");
    let (allocated, len) = (blocks(&config), store.stats().arena_bytes);
    assert!(allocated >= len && len > 7 << 20, "{allocated} of {len}");
    store.make_ready(&config, SSD);
    assert!(store.set_memory_limit(4 << 20), "a lower limit");
    for second in 1..200 {
        store.upkeep(Seconds(1_000 + second));
    }
    assert!(blocks(&config) < len - (2 << 20), "it gives room back");
    assert!(store.set_memory_limit(8 << 20), "a higher limit");
    assert!(blocks(&config) >= len, "and has it again before it is used");
    drop(store);
    // As a daemon leaves it that did not allocate its file.
    let file = &config.memory_file.as_ref().expect("a file").file;
    let hole = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(file, hole, 1 << 20, 1 << 20).expect("a hole");
    assert!(blocks(&config) < len);
    assert!(matches!(Store::open(&config).expect("it opens").start(), Start::Warm { .. }));
    // What lies behind the last bucket is given back, and taken when the index grows.
    assert!(blocks(&config) + (8 << 10) >= len);
}

/// Bytes of the file are changed, most of them where the tables are; whatever comes of it, it is neither a
/// crash nor a loop.
#[test]
fn damaged_memory_is_survived() {
    let (reset, whole) = (Cell::new(0), Cell::new(0));
    for_a_while("memory", Duration::ZERO, 150, 8_000, |data| {
        let shards_reset = memory::check(data);
        reset.set(reset.get() + shards_reset);
        whole.set(whole.get() + u64::from(shards_reset == 0));
    });
    let (reset, whole) = (reset.get(), whole.get());
    println!("{reset} reset, {whole} whole");
    assert!(reset > 10 && whole > 10, "{reset} reset, {whole} whole");
}
