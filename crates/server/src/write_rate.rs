//! How fast the SSD was written to lately, which tells how long it lasts.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time that a rate is of, once the daemon runs for so long: a day, because load follows the hours of a day.
const WINDOW: Duration = Duration::from_secs(24 * 3_600);
/// The least time between two marks, which bounds their number.
const SPACING: Duration = Duration::from_secs(600);
const DAY_S: f64 = 86_400.0;

/// The bytes written up to some times of the last day.
pub struct WriteRate(Mutex<VecDeque<(Instant, u64)>>);

impl WriteRate {
    /// Returns the rate of a daemon that starts, and has written nothing.
    pub fn new(now: Instant) -> WriteRate {
        WriteRate(Mutex::new(VecDeque::from([(now, 0)])))
    }

    /// Takes note of all bytes written so far.
    pub fn note(&self, now: Instant, written: u64) {
        let mut marks = self.lock();
        let since = |(at, _): &(Instant, u64)| now.saturating_duration_since(*at);
        if marks.back().is_none_or(|mark| since(mark) >= SPACING) {
            marks.push_back((now, written));
        }
        // The first mark is the last one from before the window.
        while marks.get(1).is_some_and(|mark| since(mark) >= WINDOW) {
            marks.pop_front();
        }
    }

    /// Returns the bytes a day at the rate of the last day, or since the start if that is not as long ago. `written`
    /// are all bytes written so far.
    pub fn per_day(&self, now: Instant, written: u64) -> f64 {
        let first = self.lock().front().copied();
        let (at, before) = first.unwrap_or((now, written));
        let seconds = now.saturating_duration_since(at).as_secs_f64().max(1.0);
        written.saturating_sub(before) as f64 / seconds * DAY_S
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Instant, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);
    const GB: u64 = 1_000_000_000;

    #[test]
    fn the_first_hours_count_from_the_start() {
        let start = Instant::now();
        let rate = WriteRate::new(start);
        rate.note(start + HOUR, GB);
        let per_day = rate.per_day(start + 2 * HOUR, 2 * GB);
        assert!((per_day / GB as f64 - 24.0).abs() < 0.01, "{per_day}");
    }

    #[test]
    fn a_filling_of_days_ago_does_not_count() {
        let start = Instant::now();
        let rate = WriteRate::new(start);
        // 1,000 GB in the first hour, then one an hour for a week.
        let written =
            |minute: u64| if minute < 60 { 1_000 * GB * minute / 60 } else { 999 * GB + GB * minute / 60 };
        for minute in 1..=7 * 24 * 60 {
            rate.note(start + Duration::from_secs(60 * minute), written(minute));
        }
        let per_day = rate.per_day(start + 7 * 24 * HOUR, written(7 * 24 * 60));
        assert!((per_day / GB as f64 - 24.0).abs() < 0.01, "{per_day}");
        assert!(rate.lock().len() <= 24 * 6 + 2, "{}", rate.lock().len());
    }
}
