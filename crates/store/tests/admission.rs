//! The admission that two shadows choose while a store serves, against both fixed ones: hits on streams of which each
//! suits one, how fast it follows a change, and that new items are kept where nothing is read.

#[path = "../examples/policy/look_aside.rs"]
mod look_aside;

use larder_store::{Admission, SEGMENT_BYTES};
use look_aside::{Counts, LookAside, Op, Request, config};

const RAM_BYTES: u64 = 16 << 20;
const SSD_SEGMENTS: u64 = 8;
const ITEM_BYTES: u32 = 1_024;
const LIVE_PERCENT: u32 = 70;
/// Keys of the skewed streams: about 190 MiB of them.
const KEYS: u64 = 180_000;
/// One key of so many is in the sample of the shadows.
const SCALE: u32 = 4;
const KEY_BYTES: usize = 30;

/// Numbers that look random: SplitMix64, whose stream is fixed by where it begins.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// What kind of stream.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Popular keys, and many that are asked for once: `returning` protects the former.
    Wonders,
    /// Every key is asked for twice, the second time so many requests later, after it left RAM: `all` finds it then.
    Twice(u64),
    /// Popular keys that become others.
    Churn,
    /// Nothing is read.
    Stores,
}

/// Returns request `number` of a stream.
fn request(kind: Kind, number: u64, state: &mut u64) -> Request {
    let unit = (random(state) >> 11) as f64 / (1_u64 << 53) as f64;
    let popular = (unit.powi(3) * KEYS as f64) as u64;
    let chance = random(state) % 100;
    let (key, op) = match kind {
        Kind::Wonders if chance < 40 => ((1 << 40) + number, Op::Get),
        Kind::Wonders => (popular, Op::Get),
        Kind::Twice(_) if number.is_multiple_of(2) => ((2 << 40) + number, Op::Get),
        Kind::Twice(later) => ((2 << 40) + (number + 1).saturating_sub(later), Op::Get),
        Kind::Churn if chance < 2 => ((3 << 40) + popular + number / 8, Op::Delete),
        Kind::Churn => ((3 << 40) + popular + number / 8, if chance < 6 { Op::Set } else { Op::Get }),
        Kind::Stores => ((4 << 40) + number, Op::Set),
    };
    let value_bytes = (random(&mut key.clone()) % 2_000) as usize;
    Request { at_s: (number / 10_000) as u32, key, key_bytes: KEY_BYTES, value_bytes, ttl_s: 0, op }
}

/// A cache that admits by a fixed rule, or by the one that is chosen.
struct Cache {
    cache: LookAside,
    number: u64,
    state: u64,
}

impl Cache {
    fn new(fixed: Option<Admission>) -> Cache {
        let config = config(RAM_BYTES, SSD_SEGMENTS, ITEM_BYTES, fixed.unwrap_or_default(), LIVE_PERCENT);
        let mut cache =
            LookAside::new(RAM_BYTES, SSD_SEGMENTS, ITEM_BYTES, config.ssd_admission, LIVE_PERCENT)
                .expect("the sizes fit");
        if fixed.is_none() {
            cache.choose_admission(&config, SCALE).expect("the sizes fit");
        }
        Cache { cache, number: 0, state: 7 }
    }

    /// Sends so many requests of a kind, and returns the hits among them, in percent of the gets.
    fn run(&mut self, kind: Kind, requests: u64) -> f64 {
        let before = self.cache.counts;
        for _ in 0..requests {
            self.step(kind);
        }
        self.hit_percent_since(&before)
    }

    fn hit_percent_since(&self, before: &Counts) -> f64 {
        let after = self.cache.counts;
        let since = Counts {
            gets: after.gets - before.gets,
            hits_ram: after.hits_ram - before.hits_ram,
            hits_ssd: after.hits_ssd - before.hits_ssd,
            ..Counts::default()
        };
        since.hit_percent()
    }

    fn step(&mut self, kind: Kind) {
        self.cache.request(&request(kind, self.number, &mut self.state));
        self.number += 1;
    }

    /// Sends requests of a kind until another admission is chosen, and returns how many that were.
    fn run_until_switched(&mut self, kind: Kind, requests_max: u64) -> u64 {
        let admission = self.cache.store.admission();
        let begun = self.number;
        while self.cache.store.admission() == admission && self.number - begun < requests_max {
            self.step(kind);
        }
        self.number - begun
    }

    fn switches(&self) -> u64 {
        self.cache.choice.as_ref().map_or(0, |choice| choice.chosen().switches)
    }
}

#[test]
fn the_chosen_admission_hits_as_much_as_the_better_fixed_one() {
    for kind in [Kind::Wonders, Kind::Twice(60_000), Kind::Churn] {
        let hits = [Some(Admission::All), Some(Admission::Returning), None].map(|fixed| {
            let mut cache = Cache::new(fixed);
            cache.run(kind, 300_000);
            let hits = cache.run(kind, 500_000);
            (hits, cache.switches())
        });
        let [(all, _), (returning, _), (chosen, switches)] = hits;
        println!(
            "{kind:?}: all {all:.2} %, returning {returning:.2} %, chosen {chosen:.2} %, {switches} switches"
        );
        assert!(chosen >= all.max(returning) - 0.5, "{kind:?}: {hits:?}");
        assert!(switches <= 2, "{kind:?}: {switches} switches");
    }
}

/// Items of the mean size that RAM holds.
const RAM_ITEMS: u64 = RAM_BYTES / 1_060;

#[test]
fn a_sudden_change_of_workload_is_followed_within_a_turn_of_ram() {
    let mut cache = Cache::new(None);
    cache.run(Kind::Wonders, 600_000);
    assert_eq!(cache.cache.store.admission(), Admission::Returning);
    // New items leave RAM after a tenth of a turn: before, nothing can be told.
    let stored_before = cache.cache.counts.sets;
    let requests = cache.run_until_switched(Kind::Twice(8_000), 400_000);
    let stored = cache.cache.counts.sets - stored_before;
    println!("{requests} requests, {stored} of which stored, {RAM_ITEMS} fit RAM");
    assert_eq!(cache.cache.store.admission(), Admission::All);
    assert!(stored <= RAM_ITEMS, "{stored} items were stored, {RAM_ITEMS} fit RAM");
}

#[test]
fn new_items_are_not_kept_out_by_old_ones_where_nothing_is_read() {
    for before in [None, Some(Kind::Wonders)] {
        let mut cache = Cache::new(None);
        if let Some(kind) = before {
            cache.run(kind, 600_000);
            assert_eq!(cache.cache.store.admission(), Admission::Returning);
        }
        // As much as the SSD holds, twice.
        let items = SSD_SEGMENTS * SEGMENT_BYTES / 1_060 * 2;
        let begun = cache.number;
        cache.run(Kind::Stores, items);
        // Live items are moved while they take less than 70 %.
        let last = items / 2 * u64::from(LIVE_PERCENT) / 100 / 2;
        let counts = cache.cache.counts;
        for number in begun + items - last..begun + items {
            let request = request(Kind::Stores, number, &mut 0);
            cache.cache.request(&Request { op: Op::Get, at_s: u32::MAX / 2, ..request });
        }
        let found = cache.hit_percent_since(&counts);
        println!("after {before:?}: {found:.2} % of the last {last} of {items} found");
        assert!(found >= 95.0, "{found}");
    }
}

#[test]
fn an_item_stored_in_place_of_its_version_on_the_ssd_is_admitted_although_writes_are_rationed() {
    let mut cache = Cache::new(Some(Admission::Returning));
    // Twice as much as the SSD holds: it is full, and what is new and unread is dropped.
    let items = SSD_SEGMENTS * SEGMENT_BYTES / 1_060 * 2;
    cache.run(Kind::Stores, items);
    let again = 20_000..21_000;
    for number in again.clone() {
        let request = request(Kind::Stores, number, &mut 0);
        cache.cache.request(&Request { at_s: (items / 10_000) as u32, ..request });
    }
    cache.run(Kind::Stores, 4 * RAM_ITEMS);
    let counts = cache.cache.counts;
    for number in again {
        let request = request(Kind::Stores, number, &mut 0);
        cache.cache.request(&Request { op: Op::Get, at_s: u32::MAX / 2, ..request });
    }
    let found = cache.hit_percent_since(&counts);
    assert!(found >= 95.0, "{found:.2} % of the items stored again are found");
}
