//! The last minutes, for the charts of the page: a ring of points, each the rates and times of one interval.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use larder_store::Stats;

use crate::counters::Totals;
use crate::histogram::Times;
use crate::latency::AllTimes;
use crate::shared::Shared;

/// The time between two points.
pub(super) const INTERVAL: Duration = Duration::from_secs(2);
/// The most points, which are five minutes.
pub(super) const POINTS_MAX: usize = 150;

/// One interval. Rates are per second, times are in microseconds and not a number where nothing was timed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub hits_ram: f32,
    pub hits_ssd: f32,
    pub misses: f32,
    pub stores: f32,
    /// Deletes, changes of numbers, touches.
    pub others: f32,
    pub ram_p99_us: f32,
    pub ssd_p99_us: f32,
    pub store_p99_us: f32,
    pub read_p99_us: f32,
    pub reads: f32,
    pub read_bytes: f32,
    pub writes: f32,
    pub written_bytes: f32,
    pub admitted_bytes: f32,
    /// Items dropped, in the order of [`Dropped`].
    pub dropped: [f32; Dropped::ALL.len()],
    pub accepted: f32,
}

/// The reason why an item was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dropped {
    /// RAM was full, and nothing moves to an SSD.
    RamFull,
    /// Its segment of the SSD was reused.
    SsdFull,
    IndexFull,
    /// Writes are rationed, and it was not wanted again.
    Unwanted,
    WriteLimit,
    Expiring,
    TooLarge,
    /// The SSD had no room for it in time.
    Behind,
}

impl Dropped {
    pub(super) const ALL: [Dropped; 8] = [
        Dropped::RamFull,
        Dropped::SsdFull,
        Dropped::IndexFull,
        Dropped::Unwanted,
        Dropped::WriteLimit,
        Dropped::Expiring,
        Dropped::TooLarge,
        Dropped::Behind,
    ];

    /// Returns how many items have been dropped for this reason.
    pub(super) fn count(self, store: &Stats) -> u64 {
        let refused = [
            store.ssd_refused_unwanted,
            store.ssd_refused_limit,
            store.ssd_refused_expiring,
            store.ssd_refused_unfit,
            store.ssd_admissions_dropped,
        ];
        match self {
            Dropped::RamFull => store.evictions_ram.saturating_sub(refused.iter().sum()),
            Dropped::SsdFull => store.evictions_ssd,
            Dropped::IndexFull => store.index_evictions + store.index_collisions,
            Dropped::Unwanted => refused[0],
            Dropped::WriteLimit => refused[1],
            Dropped::Expiring => refused[2],
            Dropped::TooLarge => refused[3],
            Dropped::Behind => refused[4],
        }
    }
}

/// The counters at one time.
struct Counted {
    at: Instant,
    totals: Totals,
    store: Stats,
    times: AllTimes,
}

/// The ring, oldest point first.
#[derive(Default)]
pub(super) struct History {
    points: VecDeque<Point>,
    last: Option<Box<Counted>>,
}

impl History {
    /// Returns when the next point is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.last.as_ref().map(|last| last.at + INTERVAL)
    }

    /// Adds the point of the interval that ends now. The first call begins the first interval.
    pub(super) fn add(&mut self, shared: &Shared, now: Instant) {
        let (totals, store, times) = (shared.lifetime(), shared.store.stats(), shared.times());
        let counted = Counted { at: now, totals, store, times };
        if let Some(last) = &self.last {
            let point = between(last, &counted);
            self.push(point);
        }
        self.last = Some(Box::new(counted));
    }

    fn push(&mut self, point: Point) {
        if self.points.len() == POINTS_MAX {
            self.points.pop_front();
        }
        self.points.push_back(point);
    }

    /// Returns one figure of every point, oldest first.
    pub(super) fn series(&self, of: impl Fn(&Point) -> f32) -> Vec<f64> {
        self.points.iter().map(|point| f64::from(of(point))).collect()
    }

    /// Returns the mean of a figure over the last points, at most `points`; 0 if there are none.
    pub(super) fn mean(&self, points: usize, of: impl Fn(&Point) -> f32) -> f64 {
        let last = self.points.iter().rev().take(points).map(|point| f64::from(of(point)));
        let number = last.len().max(1) as f64;
        // The sum of no numbers is -0, which would be shown.
        last.fold(0.0, |sum, value| sum + value) / number
    }

    /// Returns a figure of the last point; not a number if there is none.
    pub(super) fn now(&self, of: impl Fn(&Point) -> f32) -> f64 {
        self.points.back().map_or(f64::NAN, |point| f64::from(of(point)))
    }
}

/// Returns the point between two counts.
fn between(last: &Counted, next: &Counted) -> Point {
    let seconds = next.at.saturating_duration_since(last.at).as_secs_f64().max(1e-3);
    let rate = |count: u64, before: u64| (count.saturating_sub(before) as f64 / seconds) as f32;
    let totals = next.totals.since(&last.totals);
    let of_totals = |count: u64| rate(count, 0);
    let (store, before) = (&next.store, &last.store);
    let times = next.times.since(&last.times);
    Point {
        hits_ram: of_totals(totals.get_hits_ram),
        hits_ssd: of_totals(totals.get_hits_ssd),
        misses: of_totals(totals.get_misses),
        stores: of_totals(totals.cmd_set),
        others: of_totals(others(&totals)),
        ram_p99_us: p99_us(&times.ram_hits),
        ssd_p99_us: p99_us(&times.ssd_hits),
        store_p99_us: p99_us(&times.stores),
        read_p99_us: p99_us(&times.ssd_reads),
        reads: of_totals(totals.ssd_device_reads),
        read_bytes: of_totals(totals.ssd_bytes_read),
        writes: rate(store.ssd_device_writes, before.ssd_device_writes),
        written_bytes: rate(store.ssd_bytes_written, before.ssd_bytes_written),
        admitted_bytes: rate(store.ssd_bytes_admitted, before.ssd_bytes_admitted),
        dropped: Dropped::ALL.map(|reason| rate(reason.count(store), reason.count(before))),
        accepted: of_totals(totals.total_connections),
    }
}

/// Returns the commands on keys that are neither gets nor stores.
pub(super) fn others(totals: &Totals) -> u64 {
    let Totals { delete_hits, delete_misses, incr_hits, incr_misses, decr_hits, decr_misses, .. } = totals;
    let changes = delete_hits + delete_misses + incr_hits + incr_misses + decr_hits + decr_misses;
    changes + totals.cmd_touch
}

fn p99_us(times: &Times) -> f32 {
    match times.count() {
        0 => f32::NAN,
        _ => times.quantile(0.99).as_micros() as f32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(at: Instant) -> Counted {
        Counted { at, totals: Totals::default(), store: Stats::default(), times: AllTimes::default() }
    }

    #[test]
    fn a_point_has_the_rates_of_its_interval() {
        let began = Instant::now();
        let (mut last, mut next) = (counted(began), counted(began + 2 * INTERVAL));
        (last.totals.get_hits_ram, next.totals.get_hits_ram) = (100, 500);
        (last.store.ssd_bytes_written, next.store.ssd_bytes_written) = (1 << 20, 9 << 20);
        (next.store.evictions_ram, next.store.ssd_refused_limit) = (12, 4);
        next.times.ram_hits.buckets[4] = 10;
        let point = between(&last, &next);
        assert_eq!((point.hits_ram, point.misses, point.ram_p99_us), (100.0, 0.0, 16.0));
        assert_eq!(point.written_bytes, f32::from(2_u8) * (1 << 20) as f32);
        assert_eq!((point.dropped[0], point.dropped[4]), (2.0, 1.0));
        assert!(point.ssd_p99_us.is_nan(), "nothing was timed");
    }

    #[test]
    fn the_ring_has_a_bound_and_forgets_the_oldest() {
        let mut history = History::default();
        assert_eq!(
            (history.mean(3, |point| point.misses).to_string(), history.due()),
            ("0".to_string(), None)
        );
        for misses in 0..POINTS_MAX as u16 + 5 {
            history.push(Point { misses: f32::from(misses), ..Point::default() });
        }
        assert_eq!(history.points.len(), POINTS_MAX);
        assert_eq!(history.series(|point| point.misses)[0], 5.0);
        assert_eq!(history.now(|point| point.misses), 154.0);
        assert_eq!(history.mean(2, |point| point.misses), 153.5);
        assert!(POINTS_MAX * size_of::<Point>() < 16 << 10, "some KB");
    }
}
