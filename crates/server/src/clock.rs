//! The daemon's clock of seconds, for expiry. Precise instants are `std::time::Instant`.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use larder_store::Seconds;
use rustix::time::{ClockId, clock_gettime};

/// Counts the seconds since the machine started, which do not run backwards when the time is set. A second begins where
/// one of the time of day does, so that an item with an absolute exptime never expires early.
pub struct Clock {
    /// Unix time at second 0 of this clock.
    unix_base: i64,
    /// Seconds that this clock is ahead of the time since the machine started.
    ahead: i64,
    /// Nanoseconds from this clock's second to that of the time of day, as of the daemon's start.
    fraction_ns: i64,
    /// Seconds added for tests by the hidden command `debugtime`.
    shift: AtomicI64,
    /// The time since the machine started at which this clock stands still, or [`RUNNING`].
    paused_at: AtomicI64,
}

const RUNNING: i64 = -1;
const NS_PER_S: i64 = 1_000_000_000;
/// How often the time of day is read beside this clock. The reading that took the least time counts: the others may
/// have been interrupted.
const READINGS: usize = 16;

impl Clock {
    /// Returns a clock that knows the time of day as of now.
    pub fn new() -> Self {
        Clock {
            unix_base: unix_now() - Self::boot_seconds(),
            ahead: 0,
            fraction_ns: 0,
            shift: AtomicI64::new(0),
            paused_at: AtomicI64::new(RUNNING),
        }
        .aligned()
    }

    /// Returns the clock with its seconds divided where those of the time of day are, if it shows that time at all.
    fn aligned(self) -> Clock {
        let read = || {
            let before = i128::from(self.unix_ns());
            let time_of_day = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            let after = i128::from(self.unix_ns());
            (after - before, i128::try_from(time_of_day).unwrap_or(0) - (before + after) / 2)
        };
        let (_, fraction_ns) = (0..READINGS).map(|_| read()).min().unwrap_or_default();
        let is_near = fraction_ns.abs() < 2 * i128::from(NS_PER_S);
        Clock { fraction_ns: if is_near { fraction_ns as i64 } else { 0 }, ..self }
    }

    /// Returns the clock of an earlier daemon, which had its second 0 at `unix_base` and came to second `last`. It
    /// continues by the time of day, but never runs back.
    pub fn going_on(unix_base: i64, last: Seconds) -> Self {
        let second = (unix_now() - unix_base).clamp(i64::from(last.0), i64::from(u32::MAX) - 1);
        let ahead = second - Self::boot_seconds();
        let aligned = Clock { unix_base, ahead, fraction_ns: 0, ..Clock::new() }.aligned();
        // If the time of day was set back, the next second would be one that has been.
        if aligned.now() < last { Clock { fraction_ns: 0, ..aligned } } else { aligned }
    }

    /// Returns the Unix time at second 0 of this clock.
    pub fn unix_base(&self) -> i64 {
        self.unix_base
    }

    fn boot_seconds() -> i64 {
        boot_time().0
    }

    /// Returns the current second.
    pub fn now(&self) -> Seconds {
        let paused = self.paused_at.load(Relaxed);
        let seconds = if paused == RUNNING { self.seconds() } else { paused };
        Seconds((seconds + self.ahead + self.shift.load(Relaxed)).clamp(2, i64::from(u32::MAX) - 1) as u32)
    }

    /// Returns the seconds since the machine started that have begun where those of the time of day do.
    fn seconds(&self) -> i64 {
        let (seconds, nanoseconds) = boot_time();
        seconds + (nanoseconds + self.fraction_ns).div_euclid(NS_PER_S)
    }

    /// Returns the Unix time at `now`.
    pub fn unix(&self, now: Seconds) -> u64 {
        (self.unix_base + i64::from(now.0)).max(0) as u64
    }

    /// Returns the nanoseconds since 1970: the time of day as of the daemon's start, and what has passed since. So it
    /// does not run backwards when the time is set.
    pub fn unix_ns(&self) -> u64 {
        let paused = self.paused_at.load(Relaxed);
        let (seconds, nanoseconds) = match paused {
            RUNNING => boot_time(),
            // Whole seconds, which tests can count with.
            paused => (paused, -self.fraction_ns),
        };
        let seconds = seconds + self.ahead + self.shift.load(Relaxed) + self.unix_base;
        let ns = seconds.saturating_mul(NS_PER_S).saturating_add(nanoseconds + self.fraction_ns);
        u64::try_from(ns).unwrap_or(0)
    }

    /// Stops the clock (for tests).
    pub fn pause(&self) {
        self.paused_at.store(self.seconds(), Relaxed);
    }

    /// Lets the clock run again.
    pub fn resume(&self) {
        self.paused_at.store(RUNNING, Relaxed);
    }

    /// Moves the clock (for tests).
    pub fn shift(&self, seconds: i64) {
        self.shift.fetch_add(seconds, Relaxed);
    }
}

/// Returns the seconds since the machine started, 2 or more, so that second 1 is always past, and the nanoseconds of
/// the current one.
fn boot_time() -> (i64, i64) {
    let now = clock_gettime(ClockId::Boottime);
    (now.tv_sec + 2, now.tv_nsec)
}

fn unix_now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_are_those_of_the_day_and_do_not_run_back() {
        let clock = Clock::new();
        let time_of_day = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos();
        let (before, ns, after) = (time_of_day(), u128::from(clock.unix_ns()), time_of_day());
        assert!((before - 500_000_000..=after + 500_000_000).contains(&ns), "{before} {ns} {after}");
        clock.shift(5000);
        let (seconds, ns) = (clock.unix(clock.now()), clock.unix_ns());
        assert!(seconds.abs_diff(ns / 1_000_000_000) <= 2, "{seconds} {ns}");
        let later_ns = clock.unix_ns();
        assert!(later_ns > ns && later_ns - ns < 1_000_000_000, "it moves within a second: {ns} {later_ns}");
        clock.pause();
        let paused = [clock.unix_ns(), clock.unix_ns(), clock.unix(clock.now()) * 1_000_000_000];
        assert_eq!(paused, [paused[0]; 3]);
    }

    #[test]
    fn seconds_begin_with_those_of_the_day() {
        let clock = Clock::new();
        let continued = Clock::going_on(clock.unix_base() - 1000, Seconds(2));
        let until = std::time::Instant::now() + std::time::Duration::from_millis(1200);
        while std::time::Instant::now() < until {
            for clock in [&clock, &continued] {
                let before = unix_now() as u64;
                let second = clock.unix(clock.now());
                assert!((before..=unix_now() as u64).contains(&second), "{before} {second}");
            }
        }
    }

    #[test]
    fn a_clock_that_continues_keeps_its_seconds() {
        let clock = Clock::new();
        let now = clock.now();
        let next = Clock::going_on(clock.unix_base() - 1000, now);
        assert!((now.0 + 1000..now.0 + 1003).contains(&next.now().0), "{now:?} {:?}", next.now());
        assert!(next.unix(next.now()).abs_diff(clock.unix(now)) < 3);
        let set_back = Clock::going_on(clock.unix_base() + 5000, Seconds(now.0 + 50));
        assert!((now.0 + 50..now.0 + 53).contains(&set_back.now().0), "it never goes back");
        let just_ahead = Seconds(now.0 + 1);
        assert!(
            Clock::going_on(clock.unix_base(), just_ahead).now() >= just_ahead,
            "not by one second either"
        );
    }
}
