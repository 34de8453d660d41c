//! Rate limits that all clients of a cache share, on any memcached: exact under concurrency, and with a choice of what
//! happens while the cache fails.

mod fixed;
mod gcra;
mod local;
mod shared;
mod sliding;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::client::Client;
use crate::clock::{Clock, UnixClock};
use crate::error::{Error, Result};
use local::Local;

/// How requests are counted. Each is exact by its own rule, however many clients ask at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// A count for each period of the clock. Around the turn of a period twice the limit may pass within a short time.
    /// One round trip, also where many ask for one key. Denied requests count, too.
    FixedWindow,
    /// The count of this period, and of the last one the part that is still within one period. Assumes that the
    /// last period's requests came evenly. Two round trips, one for a denial.
    SlidingWindow,
    /// The generic cell rate algorithm: a bucket of `burst` that refills evenly. In any time `t` no more than `burst`
    /// and `t` times the rate pass. Two round trips, one for a denial.
    Gcra {
        /// How much may pass at once after a pause.
        burst: u64,
    },
}

/// So much in each period, counted in a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How much may pass in a period; at least 1.
    pub count: u64,
    /// The period, from a microsecond to a year.
    pub period: Duration,
    /// How it is counted.
    pub algorithm: Algorithm,
}

impl Limit {
    /// A limit for each period of the clock.
    pub fn fixed_window(count: u64, period: Duration) -> Self {
        Limit { count, period, algorithm: Algorithm::FixedWindow }
    }

    /// A limit for the last period at any time.
    pub fn sliding_window(count: u64, period: Duration) -> Self {
        Limit { count, period, algorithm: Algorithm::SlidingWindow }
    }

    /// A rate, with bursts of as much as passes in a period.
    pub fn gcra(count: u64, period: Duration) -> Self {
        Limit { count, period, algorithm: Algorithm::Gcra { burst: count } }
    }

    /// The period in nanoseconds, within its bounds.
    fn period_ns(&self) -> u64 {
        self.period.clamp(PERIOD_MIN, PERIOD_MAX).as_nanos() as u64
    }

    /// The largest cost that can ever pass.
    fn cost_max(&self) -> u64 {
        match self.algorithm {
            Algorithm::Gcra { burst } => burst,
            _ => self.count,
        }
    }

    /// Decides by the state of a key; none at first. Returns the verdict, and the new state if it passes.
    fn decide(&self, state: Option<State>, now_ns: u64, cost: u64) -> (Verdict, Option<State>) {
        match self.algorithm {
            Algorithm::FixedWindow => fixed::decide(self, state, now_ns, cost),
            Algorithm::SlidingWindow => sliding::decide(self, state, now_ns, cost),
            Algorithm::Gcra { burst } => gcra::decide(self, burst, state, now_ns, cost),
        }
    }

    /// How long a state matters after it was written.
    fn state_lives(&self, state: &State, now_ns: u64) -> Duration {
        match self.algorithm {
            Algorithm::FixedWindow | Algorithm::SlidingWindow => Duration::from_nanos(self.period_ns()) * 2,
            Algorithm::Gcra { .. } => Duration::from_nanos(state.0[0].saturating_sub(now_ns)),
        }
    }
}

const PERIOD_MIN: Duration = Duration::from_micros(1);
const PERIOD_MAX: Duration = Duration::from_secs(366 * 86_400);

/// What a rule remembers of a key. What the numbers mean is the rule's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State([u64; 3]);

/// The verdict of a rule, on any request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Verdict {
    is_allowed: bool,
    remaining: u64,
    retry_after_ns: Option<u64>,
    reset_after_ns: u64,
}

/// Whether a request may pass, and what a caller may tell its own client.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Whether it may.
    pub is_allowed: bool,
    /// How much could still pass now.
    pub remaining: u64,
    /// How long to wait until this cost could pass, if no other request comes. Zero if it has passed, none if it
    /// never can.
    pub retry_after: Option<Duration>,
    /// How long until all of the limit is available again.
    pub reset_after: Duration,
    /// Why the cache could not decide, if it could not: then [`OnFailure`] has decided.
    pub failure: Option<Error>,
}

/// The decision while the cache fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// Everything passes.
    Open,
    /// Nothing passes.
    Closed,
    /// This process counts for itself, by the same rule: with `n` processes up to `n` times the limit passes.
    #[default]
    Local,
}

/// Counts against limits in the servers of a client.
///
/// The time is the clients': while their clocks differ by `d`, what the rate lets pass in `d` may pass in addition. The
/// count of a key that a server evicts begins again.
#[derive(Clone, Debug)]
pub struct Limiter {
    client: Client,
    on_failure: OnFailure,
    clock: Arc<dyn Clock>,
    local: Arc<Local>,
}

impl Limiter {
    /// Makes a limiter whose counts are in the servers of `client`.
    pub fn new(client: Client, on_failure: OnFailure) -> Self {
        Limiter::with_clock(client, on_failure, Arc::new(UnixClock))
    }

    /// Makes a limiter with another clock, which must be the same for all that share a key.
    pub fn with_clock(client: Client, on_failure: OnFailure, clock: Arc<dyn Clock>) -> Self {
        Limiter { client, on_failure, clock, local: Arc::default() }
    }

    /// Asks whether `cost` of a limit may pass for a key, and counts it if so. With a cost of 0 nothing is counted, and
    /// [`Decision::remaining`] tells how much could pass. A key belongs to one limit. A fixed window adds some 20 bytes
    /// to it.
    ///
    /// # Errors
    /// When the key cannot be used. A cache that fails is no error: see [`OnFailure`].
    pub fn check(&self, key: &[u8], limit: &Limit, cost: u64) -> Result<Decision> {
        let limit = &Limit { count: limit.count.max(1), ..*limit };
        let now_ns = self.clock.now_ms().saturating_mul(1_000_000);
        if cost > limit.cost_max() {
            let never = Verdict { is_allowed: false, remaining: 0, retry_after_ns: None, reset_after_ns: 0 };
            return Ok(never.decision(None));
        }
        let decided = match limit.algorithm {
            Algorithm::FixedWindow => shared::count(&self.client, key, limit, now_ns, cost),
            _ => shared::compare_and_swap(&self.client, key, limit, now_ns, cost),
        };
        match decided {
            Ok(verdict) => Ok(verdict.decision(None)),
            Err(error @ Error::Key(_)) => Err(error),
            Err(error) => Ok(self.without_cache(key, limit, now_ns, cost).decision(Some(error))),
        }
    }

    fn without_cache(&self, key: &[u8], limit: &Limit, now_ns: u64, cost: u64) -> Verdict {
        let (is_allowed, retry_after_ns) = match self.on_failure {
            OnFailure::Local => return self.local.check(key, limit, now_ns, cost),
            OnFailure::Open => (true, Some(0)),
            OnFailure::Closed => (false, Some(RETRY_CLOSED_NS)),
        };
        Verdict { is_allowed, remaining: 0, retry_after_ns, reset_after_ns: 0 }
    }
}

/// When to try again after a denial that no count stands behind.
const RETRY_CLOSED_NS: u64 = 1_000_000_000;

impl Verdict {
    fn decision(self, failure: Option<Error>) -> Decision {
        Decision {
            is_allowed: self.is_allowed,
            remaining: self.remaining,
            retry_after: self.retry_after_ns.map(Duration::from_nanos),
            reset_after: Duration::from_nanos(self.reset_after_ns),
            failure,
        }
    }
}
