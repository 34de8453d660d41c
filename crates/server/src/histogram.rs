//! Histograms of times. Each has one writer, so a record is two plain loads and stores.

use std::time::Duration;

use crate::counters::Counter;

/// Upper bounds of the buckets: 1 us, 2 us, 4 us and so on to 4.2 s. One more bucket has all that is longer.
pub const BOUNDS: usize = 23;

/// Counts of times by their length.
#[derive(Default)]
pub struct Histogram {
    buckets: [Counter; BOUNDS + 1],
    sum_ns: Counter,
}

/// The sum of several histograms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Times by the first bound that they do not exceed; the last has those that exceed all.
    pub buckets: [u64; BOUNDS + 1],
    /// All times together, in nanoseconds.
    pub sum_ns: u64,
}

/// Returns the bound of a bucket in microseconds; the last bucket has none.
pub fn bound_us(bucket: usize) -> Option<u64> {
    (bucket < BOUNDS).then(|| 1 << bucket)
}

impl Histogram {
    /// Adds a time.
    #[inline]
    pub fn record(&self, time: Duration) {
        self.record_times(time, 1);
    }

    /// Adds the same time `count` times.
    #[inline]
    pub fn record_times(&self, time: Duration, count: u64) {
        let ns = time.as_nanos() as u64;
        self.buckets[bucket_of(ns)].add(count);
        self.sum_ns.add(ns.wrapping_mul(count));
    }

    /// Adds its times to `times`.
    pub fn add_to(&self, times: &mut Times) {
        for (sum, bucket) in times.buckets.iter_mut().zip(&self.buckets) {
            *sum += bucket.get();
        }
        times.sum_ns = times.sum_ns.wrapping_add(self.sum_ns.get());
    }
}

/// Returns the first bucket whose bound is not exceeded.
#[inline]
fn bucket_of(ns: u64) -> usize {
    let us = ns.div_ceil(1000);
    let doublings = u64::BITS - us.saturating_sub(1).leading_zeros();
    (doublings as usize).min(BOUNDS)
}

impl Times {
    /// Returns the times that were added since it was `earlier`.
    pub fn since(&self, earlier: &Times) -> Times {
        let mut since = self.clone();
        for (count, before) in since.buckets.iter_mut().zip(&earlier.buckets) {
            *count = count.saturating_sub(*before);
        }
        since.sum_ns = self.sum_ns.wrapping_sub(earlier.sum_ns);
        since
    }

    /// Returns how many there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns a time that a share of them, from 0 to 1, does not exceed: the bound of its bucket, or the largest one
    /// for all beyond. 0 if there are none.
    pub fn quantile(&self, share: f64) -> Duration {
        let (count, mut below) = (self.count(), 0);
        for (bucket, number) in self.buckets.iter().enumerate() {
            below += number;
            if below > 0 && below as f64 >= share * count as f64 {
                return Duration::from_micros(bound_us(bucket.min(BOUNDS - 1)).unwrap_or(0));
            }
        }
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        assert_eq!([0, 1, 999, 1000].map(bucket_of), [0; 4]);
        for bucket in 1..BOUNDS {
            let bound_ns = 1000 * bound_us(bucket).expect("it has one");
            assert_eq!((bucket_of(bound_ns), bucket_of(bound_ns + 1)), (bucket, bucket + 1));
            assert_eq!(bucket_of(bound_ns / 2 + 1), bucket);
        }
        assert_eq!([bucket_of(u64::MAX), bucket_of(4_194_304_001)], [BOUNDS; 2]);
    }

    #[test]
    fn several_writers_histograms_add_up() {
        let [one, other] = [Histogram::default(), Histogram::default()];
        one.record(Duration::from_micros(3));
        other.record_times(Duration::from_micros(4), 5);
        other.record(Duration::from_secs(60));
        let mut times = Times::default();
        one.add_to(&mut times);
        other.add_to(&mut times);
        assert_eq!((times.buckets[2], times.buckets[BOUNDS], times.count()), (6, 1, 7));
        assert_eq!(times.sum_ns, 3_000 + 20_000 + 60_000_000_000);
        assert_eq!(times.quantile(0.5), Duration::from_micros(4));
        assert_eq!(times.quantile(1.0), Duration::from_micros(1 << 22));
        let before = times.clone();
        one.record(Duration::from_micros(7));
        one.add_to(&mut times);
        let since = times.since(&before);
        assert_eq!((since.count(), since.buckets[3], since.sum_ns), (2, 1, 10_000));
        assert_eq!(Times::default().quantile(0.99), Duration::ZERO);
    }
}
