//! Measures what the SSD tier keeps of items that are overwritten at random, and what it writes for that: the
//! real store over a device in memory.
//!
//! ```text
//! cargo run --release -p larder-store --example churn
//! ```
//! Each line is one run: items of 2,000 bytes that take a share of the SSD are stored, then overwritten at
//! random, four times as many as there are.

#[path = "../policy/look_aside.rs"]
#[expect(dead_code, reason = "it serves the example policy too")]
mod look_aside;

use larder_store::{Admission, Call, Fetch, OnFull, SEGMENT_BYTES, Seconds, Step};
use look_aside::{LookAside, Op, Request};

const SEGMENTS: u64 = 96;
const RAM_BYTES: u64 = 40 << 20;
const VALUE_BYTES: usize = 2_000;
/// A value with its header and key.
const RECORD_BYTES: u64 = VALUE_BYTES as u64 + 32 + 10;
const ROUNDS: u64 = 4;

fn main() {
    println!("items, % of the SSD | bound, % | kept, % | written / admitted | cleaned segments");
    for percent in [35, 50, 60, 65, 70, 80, 100, 150] {
        for bound in [0, 50, 60, 70, 80] {
            run(percent, bound);
        }
    }
}

fn run(percent: u64, bound: u32) {
    let mut cache = LookAside::new(RAM_BYTES, SEGMENTS, VALUE_BYTES as u32, Admission::All, bound)
        .expect("the sizes fit each other");
    let count = SEGMENTS * SEGMENT_BYTES * percent / 100 / RECORD_BYTES;
    let mut random = 1_u64;
    let mut filled = cache.store.stats();
    for number in 0..count * (1 + ROUNDS) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = if number < count { number } else { (random >> 33) % count };
        let at_s = (number / 10_000) as u32;
        let (value_bytes, key_bytes) = (VALUE_BYTES, 10);
        cache.request(&Request { at_s, key, key_bytes, value_bytes, ttl_s: 0, op: Op::Set });
        if number == count {
            filled = cache.store.stats();
        }
    }
    let stats = cache.store.stats();
    let written = (stats.ssd_bytes_written - filled.ssd_bytes_written) as f64;
    let admitted = (stats.ssd_bytes_admitted - filled.ssd_bytes_admitted) as f64;
    let kept = (0..count).filter(|&key| is_there(&cache, key)).count() as f64;
    println!(
        "{percent} | {bound} | {:.3} | {:.3} | {}",
        kept * 100.0 / count as f64,
        written / admitted,
        stats.ssd_segments_cleaned - filled.ssd_segments_cleaned
    );
}

/// Returns whether the index has the key: a key that it takes for another one counts, about one in ten
/// thousand.
fn is_there(cache: &LookAside, key: u64) -> bool {
    let key = format!("{key:010}").into_bytes();
    let hash = cache.store.hash(&key);
    let call = Call { key: &key, hash, now: Seconds(u32::MAX / 2), loaded: None, on_full: OnFull::Drop };
    let fetch = Fetch { no_bump: true, ..Fetch::default() };
    match cache.store.fetch(&call, &fetch, |found| found.is_some()) {
        Step::Done(found) => found,
        Step::Read(_) => true,
        Step::Again | Step::Busy | Step::NoMemory => false,
    }
}
