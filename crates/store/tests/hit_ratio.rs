//! What the policy keeps, in figures: a stream of popular keys among one-hit wonders, look-aside, over both
//! kinds of store. The stream and the store are the same in every run, so are the hits: a bound that breaks
//! is a change of policy.

#[path = "../examples/policy/look_aside.rs"]
mod look_aside;

use larder_store::Admission;
use look_aside::{LookAside, Op, Request};

const REQUESTS: u64 = 600_000;
/// Keys that are asked for more than once: about 190 MiB of them, ten times RAM and twice RAM and SSD.
const KEYS: u64 = 180_000;
const RAM_BYTES: u64 = 16 << 20;
const SSD_SEGMENTS: u64 = 5;

/// Numbers that look random: SplitMix64, whose stream is fixed by where it begins.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Three of ten requests are for keys that are never asked for again. Of the others' keys, number `k` of `n`
/// is asked for in proportion to `(k / n)^(-2/3)`. Some are stored anew or deleted.
fn requests() -> impl Iterator<Item = Request> {
    let mut state = 1;
    (0..REQUESTS).map(move |number| {
        let unit = (random(&mut state) >> 11) as f64 / (1_u64 << 53) as f64;
        let is_wonder = random(&mut state) % 10 < 3;
        let key = if is_wonder { KEYS + number } else { (unit.powi(3) * KEYS as f64) as u64 };
        let value_bytes = (random(&mut key.clone()) % 2_000) as usize;
        let at_s = (number / 10_000) as u32;
        let op = match random(&mut state) % 100 {
            0 => Op::Delete,
            1..=4 => Op::Set,
            _ => Op::Get,
        };
        Request { at_s, key, key_bytes: 30, value_bytes, ttl_s: 0, op }
    })
}

fn hit_percent(ssd_segments: u64, admission: Admission) -> f64 {
    let mut cache = LookAside::new(RAM_BYTES, ssd_segments, 1024, admission, 70).expect("the sizes fit");
    requests().for_each(|request| cache.request(&request));
    cache.store.check().expect("the counts hold");
    let (counts, stats) = (cache.counts, cache.store.stats());
    println!("{:.2} % hits: {counts:?} {stats:?}", counts.hit_percent());
    assert!(counts.gets > REQUESTS * 9 / 10 && counts.refused == 0);
    assert_eq!(counts.hits_ssd > 0, ssd_segments > 0);
    counts.hit_percent()
}

#[test]
fn ram_keeps_what_is_read_again() {
    let percent = hit_percent(0, Admission::All);
    // 24.60; LRU over as many bytes has 17.
    assert!(percent > 24.3, "{percent}");
}

#[test]
fn the_ssd_keeps_what_comes_back() {
    for (admission, least) in [(Admission::All, 35.9), (Admission::Returning, 37.2)] {
        let percent = hit_percent(SSD_SEGMENTS, admission);
        // 36.18 and 37.53.
        assert!(percent > least, "{percent} with {admission:?}");
    }
}
