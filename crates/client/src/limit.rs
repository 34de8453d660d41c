//! Rate limits that all clients of a cache share, on any memcached: exact under concurrency, and with a choice of what
//! happens while the cache fails.

mod denials;
mod local;
mod shared;

use std::sync::Arc;
use std::time::Duration;

use crate::client::Client;
use crate::clock::{Clock, UnixClock};
use crate::error::{Error, Result};
use crate::l1::L1;
use denials::Denials;
use larder_rate::Verdict;
pub use larder_rate::{Algorithm, Limit};
use local::Local;

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
/// Larder decides by itself, by its own clock and in one round trip. On memcached the time is the clients': while their
/// clocks differ by `d`, what the rate lets pass in `d` may pass in addition. The count of a key that a server evicts
/// begins again.
#[derive(Clone, Debug)]
pub struct Limiter {
    client: Client,
    on_failure: OnFailure,
    clock: Arc<dyn Clock>,
    asks_servers: bool,
    denials: Option<Denials>,
    local: Arc<Local>,
}

impl Limiter {
    /// Makes a limiter whose counts are in the servers of `client`.
    pub fn new(client: Client, on_failure: OnFailure) -> Self {
        let asks_servers = true;
        Limiter { asks_servers, ..Limiter::with_clock(client, on_failure, Arc::new(UnixClock)) }
    }

    /// Makes a limiter that decides by this clock on all servers, Larder included. The clock must be the same for all
    /// that share a key.
    pub fn with_clock(client: Client, on_failure: OnFailure, clock: Arc<dyn Clock>) -> Self {
        Limiter { client, on_failure, clock, asks_servers: false, denials: None, local: Arc::default() }
    }

    /// Keeps denials in a cache that the processes of this host share: a limit that denied a cost asks no server about
    /// the same cost until it could pass, and for `max` at most. So a count that was reset at its server is seen
    /// within `max`. A limit that is changed is asked for at once. The keys there begin with the byte 0xff and
    /// `denied:`; keys of more than 242 bytes are not kept.
    #[must_use]
    pub fn with_denials_in(self, l1: L1, max: Duration) -> Self {
        Limiter { denials: Some(Denials::new(l1, max)), ..self }
    }

    /// Asks whether `cost` of a limit may pass for a key, and counts it if so. With a cost of 0 nothing is counted, and
    /// [`Decision::remaining`] tells how much could pass. A key belongs to one limit. On memcached a fixed window adds
    /// some 20 bytes to it, and counts denied requests, too.
    ///
    /// # Errors
    /// When the key cannot be used. A cache that fails is no error: see [`OnFailure`].
    pub fn check(&self, key: &[u8], limit: &Limit, cost: u64) -> Result<Decision> {
        let now_ns = self.clock.now_ms().saturating_mul(1_000_000);
        if cost > limit.cost_max() || limit.cost_max() == 0 {
            return Ok(decision(limit.decide(None, now_ns, cost).0, None));
        }
        let Some(denials) = self.denials.as_ref().filter(|_| cost > 0) else {
            let (verdict, failure) = self.ask(key, limit, now_ns, cost)?;
            return Ok(decision(verdict, failure));
        };
        if let Some(denied) = denials.get(key, limit, cost) {
            return Ok(decision(denied, None));
        }
        let asked_ms = denials.now_ms();
        let (verdict, failure) = self.ask(key, limit, now_ns, cost)?;
        if !verdict.is_allowed && failure.is_none() {
            denials.keep(key, limit, cost, &verdict, asked_ms);
        }
        Ok(decision(verdict, failure))
    }

    /// Returns the verdict of the servers, or that of [`OnFailure`] and why.
    fn ask(&self, key: &[u8], limit: &Limit, now_ns: u64, cost: u64) -> Result<(Verdict, Option<Error>)> {
        match self.ask_servers(key, limit, now_ns, cost) {
            Ok(verdict) => Ok((verdict, None)),
            Err(error @ Error::Key(_)) => Err(error),
            Err(error) => Ok((self.without_cache(key, limit, now_ns, cost), Some(error))),
        }
    }

    fn ask_servers(&self, key: &[u8], limit: &Limit, now_ns: u64, cost: u64) -> Result<Verdict> {
        if self.asks_servers
            && let Some(verdict) = self.client.check_limit(key, limit, cost)?
        {
            return Ok(verdict);
        }
        match limit.algorithm {
            Algorithm::FixedWindow => shared::count(&self.client, key, limit, now_ns, cost),
            _ => shared::compare_and_swap(&self.client, key, limit, now_ns, cost),
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

fn decision(verdict: Verdict, failure: Option<Error>) -> Decision {
    Decision {
        is_allowed: verdict.is_allowed,
        remaining: verdict.remaining,
        retry_after: verdict.retry_after_ns.map(Duration::from_nanos),
        reset_after: Duration::from_nanos(verdict.reset_after_ns),
        failure,
    }
}
