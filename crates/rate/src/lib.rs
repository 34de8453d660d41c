//! The rules of rate limits: a state, a time and a cost in, a verdict and the new state out. The server and the client
//! share them, so a limit means the same wherever it is decided. No I/O and no clock.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod fixed;
mod gcra;
mod sliding;
mod state;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use state::{STATE_BYTES_MAX, State, StateText};

/// How requests are counted. Each is exact by its own rule, however many clients ask at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// A count for each period of the clock. Around the turn of a period twice the limit may pass within a short time.
    FixedWindow,
    /// The count of this period, and of the last one the part that is still within one period. Assumes that the
    /// last period's requests came evenly.
    SlidingWindow,
    /// The generic cell rate algorithm: a bucket of `burst` that refills evenly. In any time `t` no more than `burst`
    /// and `t` times the rate pass.
    Gcra {
        /// How much may pass at once after a pause.
        burst: u64,
    },
}

/// So much in each period, counted in a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How much may pass in a period. With 0 nothing passes a window, and the bucket of [`Algorithm::Gcra`] refills as
    /// with 1.
    pub count: u64,
    /// The period, from a millisecond to 366 days. Parts of a millisecond are rounded up.
    pub period: Duration,
    /// How it is counted.
    pub algorithm: Algorithm,
}

/// The shortest period, in milliseconds.
pub const PERIOD_MS_MIN: u64 = 1;
/// The longest period, in milliseconds.
pub const PERIOD_MS_MAX: u64 = 366 * 86_400 * 1000;

const NS_PER_MS: u64 = 1_000_000;

impl Limit {
    /// Returns a limit for each period of the clock.
    pub fn fixed_window(count: u64, period: Duration) -> Self {
        Limit { count, period, algorithm: Algorithm::FixedWindow }
    }

    /// Returns a limit for the last period at any time.
    pub fn sliding_window(count: u64, period: Duration) -> Self {
        Limit { count, period, algorithm: Algorithm::SlidingWindow }
    }

    /// Returns a rate, with bursts of as much as passes in a period.
    pub fn gcra(count: u64, period: Duration) -> Self {
        Limit { count, period, algorithm: Algorithm::Gcra { burst: count } }
    }

    /// Returns the period in milliseconds, within its bounds.
    pub fn period_ms(&self) -> u64 {
        let ms = self.period.as_nanos().div_ceil(u128::from(NS_PER_MS));
        u64::try_from(ms).unwrap_or(u64::MAX).clamp(PERIOD_MS_MIN, PERIOD_MS_MAX)
    }

    /// Returns the largest cost that can ever pass.
    pub fn cost_max(&self) -> u64 {
        match self.algorithm {
            Algorithm::Gcra { burst } => burst,
            _ => self.count,
        }
    }

    /// Decides whether `cost` passes at `now_ns` (nanoseconds since 1970), by the state of a key; none at first, and a
    /// state of another algorithm is none. Returns the new state if there is one: if the cost passes, and is not 0.
    pub fn decide(&self, state: Option<State>, now_ns: u64, cost: u64) -> (Verdict, Option<State>) {
        if cost > self.cost_max() {
            return (Verdict::NEVER, None);
        }
        let (verdict, new) = match self.algorithm {
            Algorithm::FixedWindow => fixed::decide(self, state, now_ns, cost),
            Algorithm::SlidingWindow => sliding::decide(self, state, now_ns, cost),
            Algorithm::Gcra { burst } => gcra::decide(self, burst, state, now_ns, cost),
        };
        (verdict, new.filter(|_| cost > 0))
    }

    /// Returns how long a state matters that was written at `now_ns`.
    pub fn state_lives(&self, state: &State, now_ns: u64) -> Duration {
        match *state {
            State::Gcra { full_at_ns } => Duration::from_nanos(full_at_ns.saturating_sub(now_ns)),
            State::Fixed { .. } | State::Sliding { .. } => Duration::from_nanos(self.period_ns()) * 2,
        }
    }

    /// Judges a fixed window's count at `now_ns` that already includes this request: one that a server added up.
    pub fn judge_counted(&self, counted: u64, now_ns: u64) -> Verdict {
        fixed::judge(self, counted, fixed::period(self, now_ns).1)
    }

    /// Returns the number of the clock's period at `now_ns`, and the nanoseconds that are left of it.
    pub fn period_at(&self, now_ns: u64) -> (u64, u64) {
        fixed::period(self, now_ns)
    }

    fn count(&self) -> u64 {
        self.count.max(1)
    }

    fn period_ns(&self) -> u64 {
        self.period_ms() * NS_PER_MS
    }
}

/// The verdict of a rule on any request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the cost passes.
    pub is_allowed: bool,
    /// How much could still pass now.
    pub remaining: u64,
    /// The nanoseconds until this cost passes, if no other request comes. Zero if it has passed, none if it never can.
    pub retry_after_ns: Option<u64>,
    /// The nanoseconds until all of the limit is available again.
    pub reset_after_ns: u64,
}

impl Verdict {
    /// The verdict on a cost that is larger than the limit.
    const NEVER: Verdict =
        Verdict { is_allowed: false, remaining: 0, retry_after_ns: None, reset_after_ns: 0 };
}
