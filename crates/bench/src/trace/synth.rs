//! Streams of requests made up from published figures: they have the row's key and value sizes, operations,
//! one-hit wonders, requests a key, Zipf exponent, expiry and rate, and are otherwise independent of each
//! other.
//!
//! **Twitter's clusters.** Of `n` requests, `n / mean frequency` are the keys. The share of them that are
//! one-hit wonders is asked for once, each at a random moment. Every other key is asked for twice at least,
//! in a shuffled round each half of the run; the rest goes to them by Zipf's law. So the published share
//! of one-hit wonders and the mean frequency hold for a stream of any length. The row gives the mean size of
//! values only: sizes are exponential about it, the same for the same key. Operations that the table leaves
//! out of expiry and operations as rare is left out here too.
//!
//! **Meta's caches.** A bucket of keys by its weight, then a key of it; one-hit wonders besides. `scale`
//! divides the keys of each bucket (at least one stays) and leaves its weight. All requests are gets: replay
//! them look-aside.
//!
//! **Time.** Requests come at random (exponential gaps) at the row's rate times `scale`, so that the
//! live data at one time, by rate and expiry, is `scale` of the row's working set.

use super::clusters::Cluster;
use super::meta::Shape;
use super::{Op, Record};
use crate::random::{Random, spread};
use crate::workload::zipf::Zipf;

/// memcached's default bound of an item.
const VALUE_BYTES_MAX: f64 = 1_000_000.0;
/// One-hit wonders have numbers from here on, so that no other key meets them.
const WONDERS: u64 = 1 << 48;
/// Requests a second of Meta's caches at scale 1: their rate is not published.
const META_RATE: f64 = 100_000.0;

/// Which key comes next.
enum Keys {
    /// One-hit wonders, two rounds over all others, and Zipf's law.
    Rounds { wonders: f64, rounds: f64, others: u64, next_in_round: u64, zipf: Zipf },
    /// Buckets by cumulative weight: (weight up to here, first key, keys).
    Buckets { wonders: f64, ends: Vec<(u64, u64, u64)> },
}

/// How long keys and values are; by a number that is the key's own.
enum Sizes {
    Exponential { key_bytes: u16, mean: f64 },
    Table { values: Vec<(u64, u32)>, keys: Vec<(f64, u16, u16)> },
}

/// A made-up stream; endless is the caller's choice of `requests`.
pub struct Stream {
    rng: Random,
    draws: Random,
    left: u64,
    gap_ns: f64,
    time_ns: f64,
    keys: Keys,
    next_wonder: u64,
    sizes: Sizes,
    operations: Vec<(f64, Op)>,
    ttls: Vec<(f64, u32)>,
    seed: u64,
}

/// Shares as running sums, to be found by a number of 0 to 1.
fn cumulate<T: Copy>(shares: &[(T, f64)]) -> Vec<(f64, T)> {
    let mut sum = 0.0;
    let mut running: Vec<(f64, T)> = Vec::with_capacity(shares.len());
    for (what, share) in shares {
        sum += share;
        running.push((sum, *what));
    }
    running
}

fn pick<T: Copy>(running: &[(f64, T)], unit: f64) -> T {
    let at = running.partition_point(|entry| entry.0 <= unit);
    running[at.min(running.len() - 1)].1
}

impl Stream {
    /// The stream of a Twitter cluster: `requests` of it, at `scale` of its rate.
    pub fn twitter(row: &Cluster, requests: u64, scale: f64, seed: u64) -> Self {
        let keys = (requests as f64 / row.frequency()).max(1.0);
        let wonders = keys * row.one_hit_wonders;
        let others = ((keys - wonders).round() as u64).max(1);
        let share = wonders / requests.max(1) as f64;
        // Two rounds over the others, or as much of them as the requests allow.
        let rounds = (2.0 * others as f64 / requests.max(1) as f64).min(1.0 - share);
        Self {
            rng: Random::new(seed),
            draws: Random::new(seed),
            left: requests,
            gap_ns: 1e9 / (row.rate * scale),
            time_ns: 0.0,
            keys: Keys::Rounds {
                wonders: share,
                rounds,
                others,
                next_in_round: 0,
                zipf: Zipf::new(others, row.zipf_alpha.max(0.0)),
            },
            next_wonder: WONDERS,
            sizes: Sizes::Exponential { key_bytes: row.key_bytes.round() as u16, mean: row.value_bytes },
            operations: cumulate(&row.operations),
            ttls: cumulate(&row.ttls),
            seed,
        }
    }

    /// The stream of a Meta cache: `requests` of it, at `scale` of its keys.
    pub fn meta(shape: &Shape, requests: u64, scale: f64, seed: u64) -> Self {
        let (mut weight, mut first) = (0, 0);
        let buckets = shape.weights.iter().zip(&shape.buckets);
        let ends = buckets.map(|(more, keys)| {
            let keys = ((*keys as f64 * scale).round() as u64).max(1);
            weight += more;
            first += keys;
            (weight, first - keys, keys)
        });
        let keys = Keys::Buckets { wonders: shape.one_hits, ends: ends.collect() };
        let mut sum = 0;
        let values = shape.value_bytes.iter().zip(&shape.value_weights).map(|(bytes, weight)| {
            sum += weight;
            (sum, *bytes)
        });
        let values = values.collect();
        let ranges = shape.key_bytes.windows(2).map(|pair| (pair[0], pair[1]));
        let ranges: Vec<((u16, u16), f64)> = ranges.zip(shape.key_weights.iter().copied()).collect();
        let key_ranges = cumulate(&ranges).into_iter().map(|(end, (low, high))| (end, low, high)).collect();
        Self {
            rng: Random::new(seed),
            draws: Random::new(seed),
            left: requests,
            gap_ns: 1e9 / (META_RATE * scale),
            time_ns: 0.0,
            keys,
            next_wonder: WONDERS,
            sizes: Sizes::Table { values, keys: key_ranges },
            operations: vec![(1.0, Op::Get)],
            ttls: vec![(1.0, 0)],
            seed,
        }
    }

    /// By name: `twitter-N`, `meta-kvcache`, `meta-graph`.
    ///
    /// # Errors
    /// There is none of this name, or the scale is not above 0.
    pub fn named(name: &str, requests: u64, scale: f64, seed: u64) -> Result<Self, String> {
        if !(scale > 0.0 && scale <= 1000.0) {
            return Err("the scale must be above 0 and at most 1000".to_string());
        }
        let unknown = || format!("there is no workload `{name}`; `larder-bench workload list` names them");
        match name {
            "meta-kvcache" => Ok(Self::meta(&super::meta::kvcache(), requests, scale, seed)),
            "meta-graph" => Ok(Self::meta(&super::meta::graph(), requests, scale, seed)),
            name => {
                let number =
                    name.strip_prefix("twitter-").ok_or_else(unknown)?.parse().map_err(|_| unknown())?;
                Ok(Self::twitter(&super::clusters::find(number)?, requests, scale, seed))
            }
        }
    }

    fn key(&mut self) -> u64 {
        let unit = self.rng.unit();
        match &mut self.keys {
            Keys::Rounds { wonders, .. } | Keys::Buckets { wonders, .. } if unit < *wonders => {
                self.next_wonder += 1;
                self.next_wonder
            }
            Keys::Rounds { wonders, rounds, others, next_in_round, .. } if unit < *wonders + *rounds => {
                *next_in_round += 1;
                shuffled(*next_in_round % *others, *others, self.seed)
            }
            Keys::Rounds { zipf, others, .. } => zipf.draw(&mut self.draws) % *others,
            Keys::Buckets { ends, .. } => {
                let most = ends.last().map_or(1, |end| end.0);
                let weight = self.rng.below(most);
                let (_, first, keys) = ends[ends.partition_point(|end| end.0 <= weight).min(ends.len() - 1)];
                first + self.rng.below(keys)
            }
        }
    }

    /// A number of 0 to 1 that is always the same for the same key and purpose.
    fn own(&self, key: u64, purpose: u64) -> f64 {
        (spread(spread(key.wrapping_add(self.seed)) ^ purpose) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn sizes(&self, key: u64) -> (u16, u32) {
        let (for_value, for_key) = (self.own(key, 1), self.own(key, 2));
        match &self.sizes {
            Sizes::Exponential { key_bytes, mean } => {
                // One byte at least, and still the mean of the row.
                let bytes = 1.0 - (1.0 - for_value).ln() * (mean - 1.0).max(0.0);
                (*key_bytes, bytes.round().min(VALUE_BYTES_MAX) as u32)
            }
            Sizes::Table { values, keys } => {
                let most = values.last().map_or(1, |end| end.0);
                let weight = (for_value * most as f64) as u64;
                let value = values[values.partition_point(|end| end.0 <= weight).min(values.len() - 1)].1;
                let at = keys.partition_point(|end| end.0 <= for_key).min(keys.len() - 1);
                let (end, low, high) = keys[at];
                let start = at.checked_sub(1).map_or(0.0, |before| keys[before].0);
                let within = ((for_key - start) / (end - start)).clamp(0.0, 1.0);
                (low + (f64::from(high - low) * within) as u16, value)
            }
        }
    }
}

impl Iterator for Stream {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        self.left = self.left.checked_sub(1)?;
        let key = self.key();
        let (key_bytes, value_bytes) = self.sizes(key);
        let op = pick(&self.operations, self.rng.unit());
        // A get has one too: a look-aside cache stores a missed item with it.
        let ttl_s = pick(&self.ttls, self.own(key, 3));
        let time_ns = self.time_ns as u64;
        self.time_ns += self.gap_ns * self.rng.exponential();
        Some(Record { time_ns, key, key_bytes, value_bytes, ttl_s, op })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

/// A permutation of 0..n, the same for a seed: a multiplication modulo the next power of two, repeated until
/// it falls within.
fn shuffled(at: u64, n: u64, seed: u64) -> u64 {
    let mask = n.next_power_of_two() - 1;
    let factor = spread(seed) | 1;
    let bits = mask.count_ones().max(1);
    let mut x = at;
    loop {
        x = x.wrapping_mul(factor) & mask;
        x ^= x >> bits.div_ceil(2);
        if x < n {
            return x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::mean;
    use crate::trace::{clusters, meta};
    use std::collections::HashMap;

    fn frequencies(records: &[Record]) -> HashMap<u64, u64> {
        let mut counts = HashMap::new();
        records.iter().for_each(|record| *counts.entry(record.key).or_default() += 1);
        counts
    }

    fn near(found: f64, wanted: f64, share: f64, what: &str) {
        assert!((found / wanted - 1.0).abs() <= share, "{what}: {found}, the row says {wanted}");
    }

    #[test]
    fn a_permutation_meets_every_number_once() {
        for n in [1, 2, 3, 100, 4097] {
            let mut all: Vec<u64> = (0..n).map(|at| shuffled(at, n, 9)).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..n), "{n}");
        }
    }

    #[test]
    fn every_cluster_has_the_figures_of_its_row() {
        for row in clusters::all() {
            let records: Vec<Record> = Stream::twitter(&row, 200_000, 0.01, 7).collect();
            let name = |what: &str| format!("cluster {}, {what}", row.number);
            let n = records.len() as f64;
            for (op, share) in &row.operations {
                let found = records.iter().filter(|record| record.op == *op).count() as f64 / n;
                assert!((found - share).abs() < 0.006, "{}: {found}, {share}", name(op.name()));
            }
            near(n / (records[records.len() - 1].time_ns as f64 / 1e9), row.rate * 0.01, 0.01, &name("rate"));
            assert!(records.iter().all(|record| f64::from(record.key_bytes) == row.key_bytes));
            let counts = frequencies(&records);
            if row.mean_frequency < 300.0 {
                near(n / counts.len() as f64, row.frequency(), 0.03, &name("requests a key"));
                let once = counts.values().filter(|count| **count == 1).count() as f64 / counts.len() as f64;
                assert!((once - row.one_hit_wonders).abs() < 0.02, "{}: {once}", name("one-hit wonders"));
                let mut sizes: HashMap<u64, u32> = HashMap::new();
                for record in &records {
                    let known = sizes.insert(record.key, record.value_bytes);
                    assert!(known.is_none_or(|bytes| bytes == record.value_bytes), "a key keeps its size");
                }
                let sizes: Vec<f64> = sizes.values().map(|bytes| f64::from(*bytes)).collect();
                let slack = 0.03 + 4.0 / (sizes.len() as f64).sqrt() + row.value_bytes / VALUE_BYTES_MAX;
                near(mean(&sizes), row.value_bytes, slack, &name("value size"));
            }
        }
    }

    #[test]
    fn expiry_is_the_rows() {
        let row = clusters::find(4).expect("it has figures");
        let stored: Vec<Record> =
            Stream::twitter(&row, 2_000_000, 1.0, 3).filter(|record| record.op.stores()).collect();
        let by_key: HashMap<u64, u32> = stored.iter().map(|record| (record.key, record.ttl_s)).collect();
        for (ttl, share) in &row.ttls {
            let found = by_key.values().filter(|known| **known == *ttl).count() as f64 / by_key.len() as f64;
            assert!((found - share).abs() < 0.02, "{ttl} s: {found}, {share}");
        }
    }

    #[test]
    fn popularity_falls_by_the_rows_exponent() {
        for number in [6, 14, 19, 54] {
            let row = clusters::find(number).expect("it has figures");
            let records: Vec<Record> = Stream::twitter(&row, 1_000_000, 1.0, 11).collect();
            let mut counts: Vec<u64> = frequencies(&records).into_values().collect();
            counts.sort_unstable_by(|a, b| b.cmp(a));
            // The slope between the 2nd and the 32nd key, where every key has many requests.
            let slope = -((counts[31] as f64).ln() - (counts[1] as f64).ln()) / 16f64.ln();
            assert!((slope - row.zipf_alpha).abs() < 0.15, "cluster {number}: {slope}, {}", row.zipf_alpha);
        }
    }

    #[test]
    fn what_is_alive_is_the_rows_working_set_scaled() {
        let row = clusters::find(12).expect("it has figures");
        let (scale, mut alive) = (0.01, HashMap::new());
        let records: Vec<Record> = Stream::twitter(&row, 60_000, scale, 5).collect();
        let end = records[records.len() - 1].time_ns;
        let horizon = 300 * 1_000_000_000;
        // A value comes into a cache by a store; a get of another key leaves nothing.
        for record in records.iter().filter(|record| record.op.stores() && record.time_ns + horizon > end) {
            alive.insert(record.key, u64::from(record.value_bytes) + u64::from(record.key_bytes));
        }
        let bytes = alive.values().sum::<u64>() as f64;
        near(bytes, row.working_set * scale, 0.25, "working set");
    }

    #[test]
    fn meta_has_its_popularity_and_sizes() {
        let shape = meta::graph();
        let records: Vec<Record> = Stream::meta(&shape, 400_000, 0.01, 1).collect();
        let wonders = records.iter().filter(|record| record.key > WONDERS).count() as f64 / 400_000.0;
        assert!((wonders - shape.one_hits).abs() < 0.005, "{wonders}");
        let counts = frequencies(&records);
        let total: u64 = shape.weights.iter().sum();
        let hottest = counts[&0] as f64 / (400_000.0 * (1.0 - shape.one_hits));
        near(hottest, shape.weights[0] as f64 / total as f64, 0.1, "the hottest key");
        let sizes: HashMap<u64, u32> =
            records.iter().map(|record| (record.key, record.value_bytes)).collect();
        let sizes: Vec<f64> = sizes.values().map(|bytes| f64::from(*bytes)).collect();
        near(mean(&sizes), shape.mean_value_bytes(), 0.05, "value size");
        assert!(records.iter().all(|record| (1..=64).contains(&record.key_bytes) && record.op == Op::Get));
        let short = records.iter().map(|r| (r.key, r.key_bytes)).collect::<HashMap<_, _>>();
        let short = short.values().filter(|bytes| **bytes < 8).count() as f64 / short.len() as f64;
        assert!((short - 0.3).abs() < 0.02, "{short}");
    }

    #[test]
    fn names_lead_to_streams_and_seeds_decide() {
        let of = |seed| Stream::named("twitter-52", 100, 1.0, seed).map(Iterator::collect::<Vec<Record>>);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert!(Stream::named("meta-kvcache", 1, 0.01, 1).is_ok());
        for (name, scale) in [("twitter-5", 1.0), ("twitter-x", 1.0), ("nothing", 1.0), ("twitter-1", 0.0)] {
            assert!(Stream::named(name, 1, scale, 1).is_err(), "{name}");
        }
    }
}
