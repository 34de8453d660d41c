//! How far another host's monotonic clock is from ours, and how sure that is.
//!
//! ```text
//!   ours    sent ----------------------- received
//!                \                     /
//!   theirs        ------- remote ------
//! ```
//!
//! Whatever the way there and back took, `remote` was read between `sent` and `received`. So the offset
//! (theirs less ours) lies between `remote - received` and `remote - sent`, and several exchanges narrow it
//! down to what all of them allow. Monotonic clocks are compared, so a step of the time of day changes
//! nothing.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Exchanges that one estimate is made of.
pub const EXCHANGES: usize = 16;

/// Nanoseconds of this host's monotonic clock, which all its processes share.
pub fn monotonic_ns() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The moment when this host's monotonic clock shows so much.
pub fn instant_at(at_ns: i64) -> Instant {
    let (now, left_ns) = (Instant::now(), at_ns - monotonic_ns());
    let passed = Duration::from_nanos(left_ns.unsigned_abs());
    if left_ns >= 0 { now + passed } else { now.checked_sub(passed).unwrap_or(now) }
}

/// One exchange.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// When it was sent, on our clock.
    pub sent_ns: i64,
    /// When it was answered, on theirs.
    pub remote_ns: i64,
    /// When the answer was here, on ours.
    pub received_ns: i64,
}

/// What some exchanges say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offset {
    /// Their clock less ours.
    pub offset_ns: i64,
    /// It is off by no more than this.
    pub error_ns: i64,
    /// The shortest way there and back.
    pub round_trip_ns: i64,
    /// When this was found, on our clock.
    pub at_ns: i64,
}

impl Offset {
    /// Returns the offset that the exchanges show; none without exchanges.
    pub fn estimate(exchanges: &[Exchange]) -> Option<Self> {
        let least = exchanges.iter().map(|e| e.remote_ns - e.received_ns).max()?;
        let most = exchanges.iter().map(|e| e.remote_ns - e.sent_ns).min()?;
        Some(Self {
            offset_ns: least + (most - least) / 2,
            // Clocks that drift while we ask may contradict themselves by a little, which is an error too.
            error_ns: ((most - least).abs() + 1) / 2,
            round_trip_ns: exchanges.iter().map(|e| e.received_ns - e.sent_ns).min()?,
            at_ns: exchanges.iter().map(|e| e.received_ns).max()?,
        })
    }

    /// What their clock shows when ours shows `at_ns`.
    pub fn theirs(&self, at_ns: i64) -> i64 {
        at_ns + self.offset_ns
    }

    /// What our clock shows when theirs shows `at_ns`: between this estimate and a later one the clocks drift
    /// evenly.
    pub fn ours(&self, later: &Self, at_ns: i64) -> i64 {
        let rough_ns = at_ns - self.offset_ns;
        let span_ns = later.at_ns - self.at_ns;
        if span_ns <= 0 {
            return rough_ns;
        }
        let part = ((rough_ns - self.at_ns) as f64 / span_ns as f64).clamp(0.0, 1.0);
        at_ns - self.offset_ns - ((later.offset_ns - self.offset_ns) as f64 * part) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that are the same each time.
    fn noise(seed: u64) -> impl FnMut(i64) -> i64 {
        let mut state = seed;
        move |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % below as u64) as i64
        }
    }

    fn exchanges(
        offset_ns: i64,
        mut there_ns: impl FnMut() -> i64,
        mut back_ns: impl FnMut() -> i64,
    ) -> Vec<Exchange> {
        let mut now_ns = 1_000_000;
        (0..EXCHANGES)
            .map(|_| {
                let sent_ns = now_ns;
                let arrived_ns = sent_ns + there_ns();
                now_ns = arrived_ns + back_ns();
                Exchange { sent_ns, remote_ns: arrived_ns + offset_ns, received_ns: now_ns }
            })
            .collect()
    }

    #[test]
    fn the_offset_is_within_its_error_however_lopsided_the_way() {
        for seed in 0..1000 {
            let (mut there, mut back) = (noise(seed), noise(seed + 5000));
            let offset_ns = noise(seed + 9000)(1 << 40) - (1 << 39);
            // The way there is quick and even; the way back is slow, and now and then ten times as slow.
            let there = || 50_000 + there(5_000);
            let back = || {
                let slow = if back(4) == 0 { 2_000_000 } else { 0 };
                200_000 + back(300_000) + slow
            };
            let found = exchanges(offset_ns, there, back);
            let estimate = Offset::estimate(&found).expect("there are some");
            let off_ns = (estimate.offset_ns - offset_ns).abs();
            assert!(off_ns <= estimate.error_ns, "seed {seed}: off by {off_ns}, {estimate:?}");
            assert!(estimate.error_ns <= estimate.round_trip_ns / 2 + 1, "seed {seed}: {estimate:?}");
        }
    }

    #[test]
    fn exchanges_with_opposite_delays_narrow_each_other_down() {
        let slow_there = Exchange { sent_ns: 0, remote_ns: 7_900, received_ns: 1_000 };
        let slow_back = Exchange { sent_ns: 2_000, remote_ns: 9_100, received_ns: 3_000 };
        let estimate = Offset::estimate(&[slow_there, slow_back]).expect("there are two");
        assert_eq!((estimate.offset_ns, estimate.error_ns), (7_000, 100));
        assert_eq!(estimate.round_trip_ns, 1_000);
        assert_eq!(Offset::estimate(&[]), None);
    }

    #[test]
    fn a_drift_between_two_estimates_is_taken_out() {
        let before = Offset { offset_ns: 1_000_000, at_ns: 0, ..Offset::default() };
        let after = Offset { offset_ns: 1_002_000, at_ns: 100_000_000, ..Offset::default() };
        assert_eq!(before.ours(&after, 1_000_000), 0);
        assert_eq!(before.ours(&after, 51_001_000), 50_000_000);
        assert_eq!(before.ours(&after, 101_002_000), 100_000_000);
        assert_eq!(before.ours(&before, 51_000_000), 50_000_000);
        assert_eq!(before.theirs(5), 1_000_005);
    }

    #[test]
    fn a_moment_of_the_monotonic_clock_is_an_instant() {
        let at_ns = monotonic_ns() + 50_000_000;
        let left = instant_at(at_ns).saturating_duration_since(Instant::now());
        assert!(left <= Duration::from_millis(50) && left > Duration::from_millis(20), "{left:?}");
        assert!(instant_at(monotonic_ns() - 1_000_000) < Instant::now());
    }
}
