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

/// What came of overwriting items at random.
#[derive(Debug)]
struct Churned {
    percent_kept: f64,
    write_amplification: f64,
    segments_cleaned: u64,
}

/// Stores items that take `percent` of the SSD, then overwrites items at random, as many as there are `rounds`
/// times over, reading none.
fn churn(segments: u64, percent: u64, size: usize, rounds: u64) -> Churned {
    let rig = Rig::with(&Config { item_bytes: size as u32, ..config(32 << 20, segments) });
    let count = segments * SEGMENT_BYTES * percent / 100 / (size as u64 + 40);
    let mut versions = vec![0_u8; count as usize];
    let mut random = 1_u64;
    let mut at = None;
    for i in 0..count * (1 + rounds) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = if i < count { i } else { (random >> 33) % count };
        let version = &mut versions[key as usize];
        *version = version.wrapping_add(1);
        rig.set(&format!("key-{key}"), &bytes(u64::from(*version), size));
        rig.perform_io();
        if i % 1_000 == 0 {
            rig.store.upkeep(rig.now.get());
        }
        // Amplification counts from when the SSD has been filled once.
        if at.is_none() && i > count * rounds / 4 {
            at = Some(rig.store.stats());
        }
    }
    let (before, after) = (at.expect("it went on"), rig.store.stats());
    let admitted = after.ssd_bytes_admitted - before.ssd_bytes_admitted;
    let write_amplification = (after.ssd_bytes_written - before.ssd_bytes_written) as f64 / admitted as f64;
    let kept = (0..count).filter(|&key| {
        let item = rig.peek(&format!("key-{key}"));
        item.is_some_and(|item| item.value == bytes(u64::from(versions[key as usize]), size))
    });
    let kept = kept.count() as u64;
    println!("{percent} % of {segments} segments, {size} bytes: {} of {count} lost, {after:?}", count - kept);
    rig.store.check().expect("every count is right");
    Churned {
        percent_kept: kept as f64 * 100.0 / count as f64,
        write_amplification,
        segments_cleaned: after.ssd_segments_cleaned,
    }
}

fn stays(segments: u64, percent: u64, kept_min: f64, written_max: f64) {
    let churned = churn(segments, percent, 2_000, 4);
    println!("{percent} %: {churned:?}");
    assert!(churned.percent_kept >= kept_min, "{percent} %: {churned:?}");
    assert!(churned.write_amplification <= written_max, "{percent} %: {churned:?}");
}

#[test]
fn live_items_on_a_third_of_the_ssd_stay_for_a_tenth_more_writes() {
    stays(32, 35, 99.99, 1.10);
}

#[test]
fn live_items_on_half_of_the_ssd_stay_for_three_tenths_more_writes() {
    stays(48, 50, 99.9, 1.30);
}

#[test]
fn live_items_just_below_the_bound_stay_for_twice_the_writes() {
    stays(32, 65, 99.9, 1.80);
}

#[test]
fn live_items_that_do_not_fit_a_write_buffer_stay_too() {
    for size in [300_000, 2_000_000] {
        let churned = churn(20, 60, size, 4);
        println!("{size} bytes: {churned:?}");
        assert!(churned.percent_kept >= 99.9 && churned.segments_cleaned > 5, "{size} bytes: {churned:?}");
    }
}
