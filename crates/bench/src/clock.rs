//! One clock for all threads of a run: nanoseconds since the run began.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Counts nanoseconds from its making; copies count from the same moment.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
    began_unix: Duration,
}

impl Clock {
    /// Begins now.
    pub fn start() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { began: Instant::now(), began_unix: unix }
    }

    /// Nanoseconds since the beginning.
    pub fn now_ns(&self) -> u64 {
        let passed = self.began.elapsed();
        passed.as_secs() * 1_000_000_000 + u64::from(passed.subsec_nanos())
    }

    /// Returns this clock's time at an instant; 0 for one before its beginning.
    pub fn at_ns(&self, instant: Instant) -> u64 {
        instant.saturating_duration_since(self.began).as_nanos() as u64
    }

    /// A moment of this clock in milliseconds of the Unix clock.
    pub fn unix_ms(&self, at_ns: u64) -> u64 {
        (self.began_unix + Duration::from_nanos(at_ns)).as_millis() as u64
    }
}
