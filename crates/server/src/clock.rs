//! The daemon's clock: seconds for expiry, and what clients' exptimes mean on it. Precise instants are
//! `std::time::Instant`.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use larder_protocol::Exptime;
use larder_store::{Expiry, Seconds};
use rustix::time::{ClockId, clock_gettime};

/// Exptimes up to this many seconds (30 days) are relative, larger ones are absolute Unix time (memcached's
/// rule).
const RELATIVE_MAX: i64 = 60 * 60 * 24 * 30;

/// Seconds since the machine started, which do not run backwards when the time is set.
pub struct Clock {
    /// Unix time at second 0 of this clock.
    unix_base: i64,
    /// By how much it is ahead of the time since the machine started.
    ahead: i64,
    /// Added for tests by the hidden command `debugtime`; `PAUSED` set means the time stands still at that
    /// value.
    shift: AtomicI64,
    paused_at: AtomicI64,
}

const RUNNING: i64 = -1;

impl Clock {
    /// A clock that knows the time of day as of now.
    pub fn new() -> Self {
        Clock {
            unix_base: unix_now() - Self::boot_seconds(),
            ahead: 0,
            shift: AtomicI64::new(0),
            paused_at: AtomicI64::new(RUNNING),
        }
    }

    /// The clock of an earlier daemon, which had its second 0 at `unix_base` and came to second `last`: it
    /// goes on by the time of day, but never back.
    pub fn going_on(unix_base: i64, last: Seconds) -> Self {
        let second = (unix_now() - unix_base).clamp(i64::from(last.0), i64::from(u32::MAX) - 1);
        Clock { unix_base, ahead: second - Self::boot_seconds(), ..Clock::new() }
    }

    /// Unix time at its second 0.
    pub fn unix_base(&self) -> i64 {
        self.unix_base
    }

    /// Never below 2, so that second 1 is always past.
    fn boot_seconds() -> i64 {
        clock_gettime(ClockId::Boottime).tv_sec + 2
    }

    /// The current second.
    pub fn now(&self) -> Seconds {
        let paused = self.paused_at.load(Relaxed);
        let seconds = if paused == RUNNING { Self::boot_seconds() } else { paused };
        Seconds((seconds + self.ahead + self.shift.load(Relaxed)).clamp(2, i64::from(u32::MAX) - 1) as u32)
    }

    /// Unix time at `now`.
    pub fn unix(&self, now: Seconds) -> u64 {
        (self.unix_base + i64::from(now.0)).max(0) as u64
    }

    /// What an exptime sent now means.
    pub fn expiry(&self, exptime: Exptime, now: Seconds) -> Expiry {
        match exptime.0 {
            0 => Expiry::Never,
            ..0 => Expiry::At(Seconds(1)),
            1..=RELATIVE_MAX => Expiry::At(Seconds(now.0.saturating_add(exptime.0 as u32))),
            absolute => Expiry::At(Seconds((absolute - self.unix_base).clamp(1, i64::from(u32::MAX)) as u32)),
        }
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
    fn a_clock_that_goes_on_keeps_its_seconds() {
        let clock = Clock::new();
        let now = clock.now();
        let next = Clock::going_on(clock.unix_base() - 1000, now);
        assert!((now.0 + 1000..now.0 + 1003).contains(&next.now().0), "{now:?} {:?}", next.now());
        assert!(next.unix(next.now()).abs_diff(clock.unix(now)) < 3);
        let set_back = Clock::going_on(clock.unix_base() + 5000, Seconds(now.0 + 50));
        assert!((now.0 + 50..now.0 + 53).contains(&set_back.now().0), "it never goes back");
    }

    #[test]
    fn exptimes_mean_what_they_mean_to_memcached() {
        let clock = Clock::new();
        let now = clock.now();
        let unix = clock.unix(now) as i64;
        assert_eq!(clock.expiry(Exptime(0), now), Expiry::Never);
        assert!(clock.expiry(Exptime(-1), now).has_passed(now));
        assert_eq!(clock.expiry(Exptime(60), now).seconds_left(now), Some(60));
        assert_eq!(clock.expiry(Exptime(RELATIVE_MAX), now).seconds_left(now), Some(2_592_000));
        assert!(clock.expiry(Exptime(RELATIVE_MAX + 1), now).has_passed(now), "an absolute time in 1970");
        assert_eq!(clock.expiry(Exptime(unix + 100), now).seconds_left(now), Some(100));
        let far = clock.expiry(Exptime(i64::from(u32::MAX)), now).seconds_left(now).map(i64::from);
        assert_eq!(far, Some(i64::from(u32::MAX) - unix), "the binary wire's latest second, in 2106");
    }
}
