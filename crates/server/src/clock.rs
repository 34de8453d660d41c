//! The daemon's clock of seconds, for expiry. Precise instants are `std::time::Instant`.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use larder_store::Seconds;
use rustix::time::{ClockId, clock_gettime};

/// Counts the seconds since the machine started, which do not run backwards when the time is set.
pub struct Clock {
    /// Unix time at second 0 of this clock.
    unix_base: i64,
    /// Seconds that this clock is ahead of the time since the machine started.
    ahead: i64,
    /// Seconds added for tests by the hidden command `debugtime`.
    shift: AtomicI64,
    /// The time since the machine started at which this clock stands still, or [`RUNNING`].
    paused_at: AtomicI64,
}

const RUNNING: i64 = -1;

impl Clock {
    /// Returns a clock that knows the time of day as of now.
    pub fn new() -> Self {
        Clock {
            unix_base: unix_now() - Self::boot_seconds(),
            ahead: 0,
            shift: AtomicI64::new(0),
            paused_at: AtomicI64::new(RUNNING),
        }
    }

    /// Returns the clock of an earlier daemon, which had its second 0 at `unix_base` and came to second `last`. It
    /// continues by the time of day, but never runs back.
    pub fn going_on(unix_base: i64, last: Seconds) -> Self {
        let second = (unix_now() - unix_base).clamp(i64::from(last.0), i64::from(u32::MAX) - 1);
        Clock { unix_base, ahead: second - Self::boot_seconds(), ..Clock::new() }
    }

    /// Returns the Unix time at second 0 of this clock.
    pub fn unix_base(&self) -> i64 {
        self.unix_base
    }

    /// Returns the seconds since the machine started, 2 or more, so that second 1 is always past.
    fn boot_seconds() -> i64 {
        clock_gettime(ClockId::Boottime).tv_sec + 2
    }

    /// Returns the current second.
    pub fn now(&self) -> Seconds {
        let paused = self.paused_at.load(Relaxed);
        let seconds = if paused == RUNNING { Self::boot_seconds() } else { paused };
        Seconds((seconds + self.ahead + self.shift.load(Relaxed)).clamp(2, i64::from(u32::MAX) - 1) as u32)
    }

    /// Returns the Unix time at `now`.
    pub fn unix(&self, now: Seconds) -> u64 {
        (self.unix_base + i64::from(now.0)).max(0) as u64
    }

    /// Stops the clock (for tests).
    pub fn pause(&self) {
        self.paused_at.store(Self::boot_seconds(), Relaxed);
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
    fn a_clock_that_continues_keeps_its_seconds() {
        let clock = Clock::new();
        let now = clock.now();
        let next = Clock::going_on(clock.unix_base() - 1000, now);
        assert!((now.0 + 1000..now.0 + 1003).contains(&next.now().0), "{now:?} {:?}", next.now());
        assert!(next.unix(next.now()).abs_diff(clock.unix(now)) < 3);
        let set_back = Clock::going_on(clock.unix_base() + 5000, Seconds(now.0 + 50));
        assert!((now.0 + 50..now.0 + 53).contains(&set_back.now().0), "it never goes back");
    }
}
