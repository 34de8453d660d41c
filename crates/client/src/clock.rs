//! The time that the client sees.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::simulation;

/// Returns the present instant.
#[inline]
pub fn now() -> Instant {
    simulation::now().unwrap_or_else(Instant::now)
}

/// Waits for so long.
pub fn sleep(time: Duration) {
    if !simulation::sleep(time) {
        std::thread::sleep(time);
    }
}

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
        if let Some(now_ms) = simulation::now_ms() {
            return now_ms;
        }
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
        if let Some(now_ms) = simulation::now_ms() {
            return now_ms;
        }
        let now = clock_gettime(ClockId::Realtime);
        u64::try_from(now.tv_sec).unwrap_or(0) * 1000 + now.tv_nsec.cast_unsigned() / 1_000_000
    }
}
