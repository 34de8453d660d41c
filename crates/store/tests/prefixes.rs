//! What is estimated of prefixes of keys against what the real store does for each: seeded streams of five prefixes,
//! and keys that are meant to be hard.

#[path = "../examples/policy/look_aside.rs"]
#[allow(dead_code, reason = "other tests use all of it")]
mod look_aside;

use std::cell::RefCell;
use std::rc::Rc;

use larder_store::sample::EventReceiver;
use larder_store::shadow::{PREFIXES_SHOWN, PrefixAmounts, PrefixReport, Quantity, Real, Shadows};
use larder_store::*;
use look_aside::{Counts, LookAside, Op as Does, Request, config};

const LIVE_PERCENT: u32 = 70;
/// Ample: the samples are chosen by the tests, and none becomes smaller.
const SHADOW_BYTES: u64 = 1 << 30;
const PREFIX_BYTES: u64 = 1 << 20;
const RING_SLOTS: usize = 1 << 14;

/// Numbers that look random: SplitMix64, whose stream is fixed by where it begins.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A store with shadows that account for prefixes.
struct Accounted {
    cache: LookAside,
    receivers: Vec<EventReceiver>,
    shadows: Shadows,
}

impl Accounted {
    /// A store of so many MiB and segments, of whose keys one in `scale` is in the sample. The seed chooses which.
    fn new(memory_mib: u64, ssd_segments: u64, scale: u32, seed: u64) -> Accounted {
        let memory_bytes = memory_mib << 20;
        let all = Admission::All;
        let config = Config { seed, ..config(memory_bytes, ssd_segments, 1_024, all, LIVE_PERCENT) };
        let cache = LookAside::of(&config).expect("the sizes fit");
        let mut shadows = Shadows::new(&config, SHADOW_BYTES).expect("the sizes fit");
        assert_eq!(shadows.scale(), 1, "there is memory for all keys");
        while shadows.scale() < scale {
            shadows.halve();
        }
        let (receivers, names) = cache.store.sample_by_prefix(scale, RING_SLOTS, b':');
        shadows.account(names, PREFIX_BYTES);
        Accounted { cache, receivers, shadows }
    }

    fn request(&mut self, key: &[u8], request: &Request) {
        self.cache.request_of(key, request);
        for receiver in &mut self.receivers {
            std::iter::from_fn(|| receiver.take()).for_each(|event| self.shadows.feed(&event));
        }
    }

    fn report(&mut self) -> PrefixReport {
        self.shadows.settle_prefixes();
        let dropped: u64 = self.receivers.iter().map(EventReceiver::dropped).sum();
        assert_eq!(dropped, 0);
        self.shadows.prefixes().expect("they are accounted for")
    }
}

fn request(number: u64, op: Does, value_bytes: usize) -> Request {
    Request { at_s: (number / 10_000) as u32, key: 0, key_bytes: 0, value_bytes, ttl_s: 0, op }
}

/// A prefix of the stream.
struct Kind {
    name: &'static str,
    /// Requests of a hundred.
    percent: u64,
    value_bytes: usize,
    /// Different keys; 0 if each is used once.
    keys: u64,
    /// 1 if each key is as popular as another, and 3 if few have most requests.
    skew: i32,
    op: Does,
}

const KINDS: [Kind; 5] = [
    Kind { name: "session", percent: 40, value_bytes: 300, keys: 60_000, skew: 2, op: Does::Get },
    Kind { name: "page", percent: 20, value_bytes: 3_000, keys: 20_000, skew: 2, op: Does::Get },
    Kind { name: "scan", percent: 15, value_bytes: 1_500, keys: 0, skew: 1, op: Does::Set },
    Kind { name: "count", percent: 15, value_bytes: 60, keys: 4_000, skew: 1, op: Does::Get },
    Kind { name: "tail", percent: 10, value_bytes: 800, keys: 60_000, skew: 1, op: Does::Get },
];

/// Digits of the number in a key.
const DIGITS: usize = 9;

impl Kind {
    fn key(&self, number: u64) -> Vec<u8> {
        format!("{}:{number:0DIGITS$}", self.name).into_bytes()
    }

    fn record_bytes(&self) -> f64 {
        (RECORD_HEADER_BYTES + self.name.len() + 1 + DIGITS + self.value_bytes) as f64
    }
}

/// What the real store did for each kind, in the order of [`Quantity::ALL`].
type Exact = [[f64; Quantity::ALL.len()]; KINDS.len()];

/// Returns how many records of each kind begin in what is written. Values are zeros.
fn records(data: &[u8]) -> [f64; KINDS.len()] {
    let mut counts = [0.0; KINDS.len()];
    for at in 0..data.len() {
        if data[at] != b':' || !data[at + 1..].first().is_some_and(u8::is_ascii_digit) {
            continue;
        }
        let kind = KINDS.iter().position(|kind| data[..at].ends_with(kind.name.as_bytes()));
        kind.iter().for_each(|kind| counts[*kind] += 1.0);
    }
    counts
}

/// Returns the reads that requests have asked for.
fn reads_of(counts: &Counts) -> u64 {
    counts.device_reads - counts.readmission_reads
}

/// Runs the stream, and returns the report and the truth.
fn run(requests: u64, scale: u32, seed: u64) -> (PrefixReport, Exact) {
    let mut accounted = Accounted::new(16, 10, scale, seed);
    let mut exact = Exact::default();
    let written = Rc::new(RefCell::new([0.0; KINDS.len()]));
    let counts = written.clone();
    accounted.cache.on_write = Some(Box::new(move |data| {
        let found = records(data);
        counts.borrow_mut().iter_mut().zip(found).for_each(|(sum, count)| *sum += count);
    }));
    let (mut state, mut scanned) = (seed, 0);
    for number in 0..requests {
        let mut chance = random(&mut state) % 100;
        let mut is_chosen = |kind: &Kind| {
            let is_chosen = chance < kind.percent;
            chance = chance.saturating_sub(kind.percent);
            is_chosen
        };
        let (nth, kind) =
            KINDS.iter().enumerate().find(|(_, kind)| is_chosen(kind)).expect("they are all of a hundred");
        let unit = (random(&mut state) >> 11) as f64 / (1_u64 << 53) as f64;
        let key = match kind.keys {
            0 => {
                scanned += 1;
                scanned
            }
            keys => (unit.powi(kind.skew) * keys as f64) as u64,
        };
        let before = accounted.cache.counts;
        accounted.request(&kind.key(key), &request(number, kind.op, kind.value_bytes));
        let after = accounted.cache.counts;
        let hits = after.hits_ram + after.hits_ssd - before.hits_ram - before.hits_ssd;
        let reads = reads_of(&after) - reads_of(&before);
        exact[nth][Quantity::Hits as usize] += hits as f64;
        exact[nth][Quantity::Misses as usize] += (after.gets - before.gets - hits) as f64;
        exact[nth][Quantity::DeviceReads as usize] += reads as f64;
        if number % 10_000 == 0 {
            accounted.shadows.settle_prefixes();
        }
    }
    let report = accounted.report();
    let record_bytes: f64 =
        KINDS.iter().zip(&*written.borrow()).map(|(kind, count)| kind.record_bytes() * count).sum();
    // What is wasted at the ends of pages and buffers, by the records' bytes.
    let waste = accounted.cache.store.stats().ssd_bytes_written as f64 / record_bytes;
    for (nth, kind) in KINDS.iter().enumerate() {
        exact[nth][Quantity::SsdBytesWritten as usize] = written.borrow()[nth] * kind.record_bytes() * waste;
        for key in 0..if kind.keys == 0 { scanned + 1 } else { kind.keys } {
            let quantity = match accounted.cache.tier_of(&kind.key(key)) {
                Some(Tier::Ram) => Quantity::RamBytes,
                Some(Tier::Ssd) => Quantity::SsdBytes,
                None => continue,
            };
            exact[nth][quantity as usize] += kind.record_bytes();
        }
    }
    (report, exact)
}

fn row<'r>(report: &'r PrefixReport, name: &str) -> &'r PrefixAmounts {
    let named = report.rows.iter().find(|row| row.name.as_deref() == Some(name.as_bytes()));
    named.unwrap_or_else(|| panic!("{name} is not among {report:?}"))
}

/// How amounts compare with the truth.
#[derive(Debug, Default)]
struct Compared {
    amounts: u32,
    /// Those within a tenth, and those within their stated error.
    close: u32,
    stated: u32,
    /// Those within neither.
    off: Vec<String>,
}

/// Compares a report with the truth.
fn compare(report: &PrefixReport, exact: &Exact, compared: &mut Compared) {
    for (kind, exact) in KINDS.iter().zip(exact) {
        let row = row(report, kind.name);
        for quantity in Quantity::ALL {
            let (amount, exact) = (row.of(quantity), exact[quantity as usize]);
            let all: f64 = report.rows.iter().map(|row| row.of(quantity).value).sum();
            let off = (amount.value - exact).abs();
            let shown = format!(
                "{:>8} {:>17} {exact:>11.0}, by one of {} {:>11.0} +- {:>9.0}, {:>5.1} % off",
                kind.name,
                quantity.name(),
                report.scale,
                amount.value,
                amount.error,
                off / exact.max(1.0) * 100.0
            );
            println!("{shown}");
            // What is less than a hundredth of all is no figure to decide by.
            if exact.max(amount.value) < all / 100.0 {
                continue;
            }
            let (is_close, is_stated) = (off <= exact / 10.0, off <= amount.error);
            compared.amounts += 1;
            compared.close += u32::from(is_close);
            compared.stated += u32::from(is_stated);
            if !is_close && !is_stated {
                compared.off.push(shown);
            }
        }
    }
}

#[test]
fn amounts_of_five_prefixes_are_those_of_the_store() {
    let (report, exact) = run(400_000, 1, 7);
    let mut compared = Compared::default();
    compare(&report, &exact, &mut compared);
    assert!(compared.off.is_empty(), "{compared:?}");
    let others = report.rows.last().expect("it is there always");
    assert!(others.name.is_none() && others.of(Quantity::Misses).value < 100.0, "{others:?}");
}

/// More of them take minutes.
fn seeds() -> u64 {
    std::env::var("LARDER_PREFIXES_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(3)
}

#[test]
fn amounts_of_a_sample_are_within_their_stated_error() {
    let mut compared = Compared::default();
    for seed in 1..=seeds() {
        let scale = 4 << (seed % 3);
        let (report, exact) = run(400_000, scale, seed);
        compare(&report, &exact, &mut compared);
    }
    println!("{compared:?}");
    // An interval of 95 % leaves some out.
    assert!(compared.off.len() as u32 * 20 <= compared.amounts, "{compared:?}");
}

/// Sets of as many keys, of which `key` tells the names.
fn hostile(seed: u64, keys: u64, key: impl Fn(u64) -> Vec<u8>) -> Accounted {
    let mut accounted = Accounted::new(16, 4, 1, seed);
    for number in 0..keys {
        accounted.request(&key(number), &request(number, Does::Get, 100));
        if number % 4_000 == 0 {
            accounted.shadows.settle_prefixes();
        }
    }
    accounted
}

#[test]
fn a_million_prefixes_are_bounded_and_do_not_hide_the_one_that_matters() {
    const KEYS: u64 = 1_100_000;
    let mut accounted = Accounted::new(16, 0, 1, 1);
    for number in 0..KEYS {
        // The one that matters comes when the flood has taken all places.
        let key = match number {
            number if number > KEYS / 2 && number.is_multiple_of(10) => format!("busy:{}", number % 20_000),
            number => format!("p{number}:key"),
        };
        accounted.request(key.as_bytes(), &request(number, Does::Set, 10));
        if number % 10_000 == 0 {
            accounted.shadows.settle_prefixes();
        }
    }
    let report = accounted.report();
    assert!(report.rows.len() <= PREFIXES_SHOWN + 1);
    assert_eq!(report.rows[0].name.as_deref(), Some(&b"busy"[..]));
    assert_eq!(row(&report, "busy").items, 2_000);
}

#[test]
fn what_was_counted_of_a_prefix_stays_among_all_when_another_takes_its_place() {
    let key = |number: u64| match number {
        number if number > 60_000 && number.is_multiple_of(10) => format!("busy:{}", number % 20_000),
        number => format!("p{}:{number}", number / 4),
    };
    let report = hostile(1, 200_000, |number| key(number).into_bytes()).report();
    let gets = |row: &PrefixAmounts| row.of(Quantity::Hits).value + row.of(Quantity::Misses).value;
    let busy = row(&report, "busy");
    assert!(gets(busy) > 12_000.0 && gets(busy) <= 14_000.0, "{busy:?}");
    assert_eq!(report.rows.iter().map(gets).sum::<f64>(), 200_000.0);
}

#[test]
fn a_prefix_that_only_holds_room_keeps_its_place() {
    let key = |number: u64| match number {
        number if number < 20_000 => format!("old:{number}"),
        number => format!("p{number}:key"),
    };
    let report = hostile(2, 60_000, |number| key(number).into_bytes()).report();
    let old = row(&report, "old");
    let held = old.of(Quantity::RamBytes).value + old.of(Quantity::SsdBytes).value;
    assert!(held > 20_000.0 * 100.0, "{old:?}");
}

#[test]
fn long_binary_and_plain_keys_have_prefixes_too() {
    let key = |number: u64| match number % 4 {
        0 => [vec![0xFF; 240], b":".to_vec(), number.to_le_bytes().to_vec()].concat(),
        1 => [b"\0\r\n \x7f:".to_vec(), number.to_be_bytes().to_vec()].concat(),
        2 => format!("plain{number}").into_bytes(),
        _ => format!(":{number}").into_bytes(),
    };
    let report = hostile(3, 40_000, key).report();
    let names: Vec<&[u8]> = report.rows.iter().filter_map(|row| row.name.as_deref()).collect();
    for name in [&[0xFF; 240][..], b"\0\r\n \x7f", b""] {
        assert!(names.contains(&name), "{name:?} in {names:?}");
    }
    assert_eq!(names.len(), 3);
    assert_eq!(row(&report, "").items, 20_000);
}

#[test]
fn prefixes_take_no_more_memory_than_they_are_given() {
    let config = config(64 << 20, 0, 1_024, Admission::All, LIVE_PERCENT);
    for given in [1 << 16, 1 << 18, 1 << 20] {
        let mut shadows = Shadows::new(&config, 1 << 20).expect("the sizes fit");
        let store = Store::open(&config).expect("the sizes fit");
        let before = shadows.memory_bytes();
        shadows.account(store.sample_by_prefix(1, RING_SLOTS, b':').1, given);
        let taken = (shadows.memory_bytes() - before) as u64;
        assert!(taken <= given && taken > given / 4, "{taken} of {given}");
    }
}

#[test]
fn a_flush_forgets_what_is_held_and_a_window_what_was_counted() {
    let mut accounted = hostile(4, 10_000, |number| format!("p:{number}").into_bytes());
    assert_eq!(row(&accounted.report(), "p").items, 10_000);
    accounted.shadows.flush();
    let report = accounted.report();
    assert_eq!((row(&report, "p").items, row(&report, "p").of(Quantity::RamBytes).value), (0, 0.0));
    assert_eq!(row(&report, "p").of(Quantity::Misses).value, 10_000.0);
    accounted.shadows.forget(Real::default());
    let report = accounted.report();
    assert!(report.rows.iter().all(|row| row.of(Quantity::Misses).value == 0.0), "{report:?}");
}
