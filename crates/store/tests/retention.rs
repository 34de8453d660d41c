//! Tests which items the SSD tier still holds after it was written over and over.

mod rig;

use larder_store::*;
use rig::{Rig, bytes, config};

/// Returns the share, in percent, of the items `from..to` that are found, without counting accesses.
fn percent_found(rig: &Rig, items: std::ops::Range<u64>, size: usize) -> f64 {
    let count = items.end - items.start;
    let found = items.filter(|i| rig.peek(&format!("key-{i}")).is_some_and(|item| item.value.len() == size));
    found.count() as f64 * 100.0 / count as f64
}

#[test]
fn items_written_last_are_found_when_the_ssd_was_full_of_items_that_nobody_reads() {
    // A RAM segment holds 64 KiB: the largest values have RAM segments of their own.
    for size in [300, 2_000, 20_000, 50_000, 150_000] {
        let segments = 16;
        let rig = Rig::with(&Config { item_bytes: size as u32, ..config(32 << 20, segments) });
        let half = segments * SEGMENT_BYTES * 8 / 10 / (size as u64 + 40);
        for i in 0..2 * half {
            rig.set(&format!("key-{i}"), &bytes(i, size));
            rig.perform_io();
        }
        let (old, new) = (percent_found(&rig, 0..half, size), percent_found(&rig, half..2 * half, size));
        println!("{size} bytes: {old:.1} % of the first half, {new:.1} % of the last");
        assert!(new >= 95.0, "{size} bytes: {new:.1} % of the last half");
        rig.store.check().expect("every count is right");
    }
}
