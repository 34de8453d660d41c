//! Computes how long the reply to a login waits. A connection waits longer after each of its failures. While many
//! logins of the process fail, every login waits, also a successful one: otherwise a guesser could take a missing reply
//! for a failure and reconnect at once.
//!
//! Both waits are bounded. Only replies wait: the worker serves other connections meanwhile.

use std::time::{Duration, Instant};

/// The wait after a connection's first failure. It doubles with each further one, up to [`FAILURE_MAX`].
const FAILURE: Duration = Duration::from_millis(250);
const FAILURE_MAX: Duration = Duration::from_secs(2);

/// Recent failures of the process beyond which every login waits. Their count halves each second.
const FREE_FAILURES: f64 = 10.0;
/// The wait of every login for each failure beyond these, up to [`CROWD_MAX`].
const CROWD: Duration = Duration::from_millis(10);
const CROWD_MAX: Duration = Duration::from_secs(1);

/// The recent failures of the process.
#[derive(Default)]
pub(super) struct Throttle {
    recent: f64,
    counted_at: Option<Instant>,
}

impl Throttle {
    /// Returns how long the answer to a login has to wait. `failures` are those of its connection in a row, this one
    /// included; 0 for a login that succeeds.
    pub(super) fn delay(&mut self, failures: u32, now: Instant) -> Duration {
        let since = self.counted_at.map_or(0.0, |at| now.saturating_duration_since(at).as_secs_f64());
        self.recent *= 0.5_f64.powf(since);
        self.counted_at = Some(now);
        let crowd = CROWD.mul_f64((self.recent - FREE_FAILURES).clamp(0.0, 1000.0)).min(CROWD_MAX);
        if failures == 0 {
            return crowd;
        }
        self.recent += 1.0;
        let own = FAILURE.saturating_mul(1 << (failures - 1).min(8)).min(FAILURE_MAX);
        own.max(crowd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_waits_longer_after_each_failure_up_to_a_bound() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        let waits = [1, 2, 3, 4, 5, 1_000_000].map(|failures| throttle.delay(failures, now).as_millis());
        assert_eq!(waits, [250, 500, 1000, 2000, 2000, 2000]);
        assert_eq!(throttle.delay(0, now), Duration::ZERO, "few failures delay no other login");
    }

    #[test]
    fn many_failures_delay_every_login_for_a_second_at_most_and_are_forgotten() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        (0..60).for_each(|_| _ = throttle.delay(1, now));
        let success = throttle.delay(0, now);
        assert_eq!(success.as_millis(), 500);
        (0..10_000).for_each(|_| _ = throttle.delay(1, now));
        assert_eq!((throttle.delay(0, now), throttle.delay(1, now)), (CROWD_MAX, CROWD_MAX));
        assert_eq!(throttle.delay(0, now + Duration::from_secs(20)), Duration::ZERO);
    }
}
