//! The load generator: connections over threads, one event loop each, and their measurements.
//!
//! ```text
//!   Plan -> execute -> a thread: prefill -> warm-up -> window -> drain -> Tally --+
//!                      a thread: ...  one Interval a second ----> Observer        +--> result::Run
//! ```
//!
//! **Closed loop.** Every connection keeps `pipeline` requests in flight; a request's time runs from its
//! send. **Open loop.** Requests are due at times of a schedule, whatever the server does. A request that is
//! due goes out on the next connection in turn, even when that has others in flight. *Response* time runs
//! from the time it was due, *service* time from the send that carried it, *slip* is the difference.
//!
//! A request belongs to the window when it was due in it (closed: sent in it). After the window nothing new
//! becomes due, and outstanding replies are waited for, at most [`DRAIN_NS`]; when that takes longer than the
//! window, the time counts: rate is answers by time in every case.

pub mod arrival;
mod audit;
pub mod certify;
pub mod connection;
pub mod cpu;
pub mod ledger;
mod offer;
pub mod plan;
mod prefill;
mod reactor;
mod replies;
pub mod servers;
mod split;
mod tally;
mod threads;

pub use arrival::Arrival;
pub use plan::{Ceiling, Load, Part, Plan, Verify, WhenFull};
pub use servers::Servers;
pub use threads::execute;

pub use crate::net::{Address, Error, Tls};

use crate::result::Interval;
use std::time::{Duration, Instant};

/// Checks that the plan's server is reachable; see [`crate::net::reach`].
///
/// # Errors
/// The server is unreachable, refuses the login, or TLS is not agreed on.
pub fn reach(plan: &Plan) -> Result<Option<String>, Error> {
    let mut agreed = None;
    for server in 0..plan.server_count() {
        let address = plan.address_of(server);
        agreed = crate::net::reach(address, plan.protocol, plan.tls.as_ref(), plan.login.as_ref())?;
    }
    Ok(agreed)
}

/// How long outstanding replies are waited for after the window.
pub const DRAIN_NS: u64 = 2_000_000_000;

/// The phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Storing every key once.
    Prefill {
        /// How many are stored.
        stored: u64,
        /// Of how many.
        keys: u64,
    },
    /// Under load, but not measured yet.
    WarmUp,
    /// Measured.
    Window,
}

/// Watches a run; the calls come from one thread.
pub trait Observer: Send + Sync {
    /// Called when the run enters a phase.
    fn phase(&self, phase: Phase) {
        let _ = phase;
    }

    /// Everything is connected and stored. The load begins at the returned time, after a wait of any length;
    /// at once without.
    fn start(&self) -> Option<Instant> {
        None
    }

    /// One more second was measured; `left` of the window remain, when that is known.
    fn second(&self, interval: &Interval, left: Option<Duration>) {
        let _ = (interval, left);
    }
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug)]
pub struct Unseen;

impl Observer for Unseen {}
