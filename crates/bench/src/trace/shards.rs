//! The miss ratio of LRU at every size, from one pass over a sample of the items (SHARDS with a fixed rate).
//!
//! An item is in the sample when the hash of its number is below the rate, so either all of its requests are
//! or none. The *distance* of a read is the bytes of the other items that were used since the item was last,
//! each once, plus its own; a read hits in every cache that is as large as that. In a sample of rate R those
//! other items have R times the bytes, so they count 1/R. A sample with more or fewer reads than R of them
//! all has caught too many or too few of the hot items, whose distances are short: the difference is made up
//! for at distance 0.
//!
//! At rate 1 this is exact for a cache that fills all of its room; an LRU whose last item does not fit any
//! more leaves some empty.

use super::access::{Access, Does};
use crate::random::spread;

/// LRU's misses by size.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Of the sampled reads that were not the first of their item, in rising order.
    distances: Vec<f64>,
    /// Sampled reads that there should be.
    expected: f64,
    /// Reads in the sample.
    pub sampled: u64,
}

impl Curve {
    /// Of a trace, with a share `rate` of its items (more than 0, at most 1).
    pub fn of(all: &[Access], rate: f64) -> Self {
        let is_sampled =
            |access: &&Access| ((spread(u64::from(access.item)) >> 11) as f64) < rate * (1u64 << 53) as f64;
        let sample: Vec<&Access> = all.iter().filter(is_sampled).collect();
        let items = all.iter().map(|access| access.item as usize + 1).max().unwrap_or(0);
        let mut stack = Stack::new(sample.len());
        let mut last: Vec<Option<(usize, u64)>> = vec![None; items];
        let (mut distances, mut sampled) = (Vec::new(), 0);
        for (at, access) in sample.into_iter().enumerate() {
            let own = &mut last[access.item as usize];
            if access.does == Does::Read {
                sampled += 1;
            }
            if let Some((before, bytes)) = own.take() {
                if access.does == Does::Read {
                    let others = stack.above(before) as f64 / rate;
                    distances.push(others + access.bytes as f64);
                }
                stack.remove(before, bytes);
            }
            if access.does != Does::Delete {
                stack.add(at, access.bytes);
                *own = Some((at, access.bytes));
            }
        }
        distances.sort_unstable_by(f64::total_cmp);
        let reads = all.iter().filter(|access| access.does == Does::Read).count();
        Self { distances, expected: reads as f64 * rate, sampled }
    }

    /// The share of reads that LRU of this many bytes misses; none when nothing was sampled.
    pub fn miss_ratio(&self, capacity_bytes: u64) -> Option<f64> {
        let hits = self.distances.partition_point(|distance| *distance <= capacity_bytes as f64) as f64;
        let made_up = self.expected - self.sampled as f64;
        let is_known = self.sampled > 0;
        is_known.then(|| (1.0 - (hits + made_up) / self.expected).clamp(0.0, 1.0))
    }
}

/// Bytes by the time of their last use, as a tree of sums (Fenwick's).
struct Stack {
    sums: Vec<u64>,
    total: u64,
}

impl Stack {
    fn new(times: usize) -> Self {
        Self { sums: vec![0; times + 1], total: 0 }
    }

    fn add(&mut self, time: usize, bytes: u64) {
        self.change(time, |sum| *sum += bytes);
        self.total += bytes;
    }

    fn remove(&mut self, time: usize, bytes: u64) {
        self.change(time, |sum| *sum -= bytes);
        self.total -= bytes;
    }

    fn change(&mut self, time: usize, change: impl Fn(&mut u64)) {
        let mut at = time + 1;
        while at < self.sums.len() {
            change(&mut self.sums[at]);
            at += at & at.wrapping_neg();
        }
    }

    /// Bytes that were used after a time.
    fn above(&self, time: usize) -> u64 {
        let mut at = time + 1;
        let mut up_to = 0;
        while at > 0 {
            up_to += self.sums[at];
            at &= at - 1;
        }
        self.total - up_to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::access::Accesses;
    use crate::trace::synth::Stream;

    fn reads(items: &[u32], bytes: &[u64]) -> Vec<Access> {
        let read = |item: &u32| Access { item: *item, does: Does::Read, bytes: bytes[*item as usize] };
        items.iter().map(read).collect()
    }

    #[test]
    fn tiny_traces_by_hand() {
        // Each read of the second round has two others since, so 3 bytes hold all and 2 hold none.
        let curve = Curve::of(&reads(&[0, 1, 2, 0, 1, 2], &[1; 3]), 1.0);
        let at = |bytes| curve.miss_ratio(bytes).expect("there are reads");
        assert_eq!([at(0), at(2), at(3), at(9)], [1.0, 1.0, 0.5, 0.5]);
        // Distances: 1's second is 10 + 1 + 1 (0, 2 and itself), 2's is 1 (itself), 0's is 10 + 1 + 1.
        let curve = Curve::of(&reads(&[1, 0, 2, 2, 1, 0], &[10, 1, 1]), 1.0);
        let at = |bytes| curve.miss_ratio(bytes).expect("there are reads");
        assert_eq!([at(0), at(1), at(11), at(12)], [1.0, 5.0 / 6.0, 5.0 / 6.0, 0.5]);
    }

    #[test]
    fn stores_bring_and_deletes_take_away() {
        let mut all = reads(&[0, 0, 0], &[4]);
        all[0].does = Does::Store;
        assert_eq!(Curve::of(&all, 1.0).miss_ratio(4), Some(0.0));
        assert_eq!(Curve::of(&all, 1.0).miss_ratio(3), Some(1.0));
        all[1].does = Does::Delete;
        assert_eq!(Curve::of(&all, 1.0).miss_ratio(4), Some(1.0));
        assert_eq!(Curve::of(&[], 1.0).miss_ratio(4), None);
    }

    #[test]
    fn the_curve_is_that_of_an_lru() {
        let (all, footprint) = made_up();
        let curve = Curve::of(&all, 1.0);
        for part in [50, 10, 3] {
            let capacity = footprint / part;
            let real = lru(&all, capacity);
            let found = curve.miss_ratio(capacity).expect("there are reads");
            assert!((real - found).abs() < 0.002, "of {footprint} / {part}: {found}, and an LRU {real}");
        }
    }

    #[test]
    fn a_tenth_of_the_items_shows_nearly_the_same_curve() {
        let (all, footprint) = made_up();
        let (whole, sample) = (Curve::of(&all, 1.0), Curve::of(&all, 0.1));
        assert!(sample.sampled < whole.sampled / 3, "{} of {}", sample.sampled, whole.sampled);
        for part in [50, 10, 3, 1] {
            let ratio = |curve: &Curve| curve.miss_ratio(footprint / part).expect("there are reads");
            let off = (ratio(&whole) - ratio(&sample)).abs();
            assert!(off < 0.05, "of {footprint} / {part}: {} and {}", ratio(&whole), ratio(&sample));
        }
    }

    fn made_up() -> (Vec<Access>, u64) {
        let stream = Stream::named("twitter-45", 200_000, 0.05, 3).expect("it is one of them");
        let accesses = Accesses::read(stream.map(Ok)).expect("nothing is wrong");
        (accesses.all, accesses.footprint_bytes)
    }

    /// A cache that is one: the oldest go until there is room.
    fn lru(all: &[Access], capacity_bytes: u64) -> f64 {
        use std::collections::{BTreeMap, HashMap};
        let (mut by_time, mut of): (BTreeMap<usize, Access>, HashMap<u32, usize>) = Default::default();
        let (mut used_bytes, mut hits, mut reads) = (0, 0, 0);
        for (at, access) in all.iter().enumerate() {
            let was = of.remove(&access.item).and_then(|time| by_time.remove(&time));
            used_bytes -= was.map_or(0, |was| was.bytes);
            if access.does == Does::Read {
                reads += 1;
                hits += u64::from(was.is_some());
            }
            if access.does != Does::Delete {
                by_time.insert(at, *access);
                of.insert(access.item, at);
                used_bytes += access.bytes;
            }
            while used_bytes > capacity_bytes {
                let Some((_, oldest)) = by_time.pop_first() else { break };
                of.remove(&oldest.item);
                used_bytes -= oldest.bytes;
            }
        }
        1.0 - hits as f64 / f64::from(reads)
    }
}
