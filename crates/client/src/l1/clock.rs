//! The time that all processes of a host share.

use rustix::time::{ClockId, clock_gettime};

use crate::simulation;

/// Returns the milliseconds since the machine started, without those it was suspended: `CLOCK_MONOTONIC`, which
/// setting the time of day does not change. It may lag by one tick of the kernel, 10 ms at most, and never goes back.
#[inline]
pub fn now_ms() -> u64 {
    simulation::step();
    if let Some(now_ms) = simulation::coarse_now_ms() {
        return now_ms;
    }
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec.unsigned_abs() * 1000 + now.tv_nsec.unsigned_abs() / 1_000_000
}

/// Returns the microseconds of the same clock without its lag. That takes some 20 ns more.
#[inline]
pub(crate) fn now_us() -> u64 {
    simulation::step();
    if let Some(now_ms) = simulation::now_ms() {
        return now_ms * 1000;
    }
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1_000
}
