//! The time that breakers and rate limits see.

use rustix::time::{ClockId, clock_gettime};

/// Tells milliseconds. A test replaces it by a clock of its own.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Returns milliseconds since a moment that all processes which share a state agree on.
    fn now_ms(&self) -> u64;
}

/// The host's monotonic clock: the same for all its processes, and never set.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostClock;

impl Clock for HostClock {
    fn now_ms(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        // Neither part is ever negative.
        now.tv_sec.cast_unsigned() * 1000 + now.tv_nsec.cast_unsigned() / 1_000_000
    }
}

/// The time of day, which all hosts share as far as their clocks agree.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnixClock;

impl Clock for UnixClock {
    /// Returns milliseconds since 1970.
    fn now_ms(&self) -> u64 {
        let now = clock_gettime(ClockId::Realtime);
        u64::try_from(now.tv_sec).unwrap_or(0) * 1000 + now.tv_nsec.cast_unsigned() / 1_000_000
    }
}
