//! The HTTP interface of operators: metrics and figures, read only, by a thread of its own. No request of a client
//! waits for it. `startup::http` opens its socket.
//!
//! ```text
//!   server.rs          one thread, one poll: accepts, receives, sends, closes what is late
//!      |
//!   connection.rs      bytes in, bytes out, deadlines; sans-IO
//!      |         \
//!   request.rs   answer.rs ---> access.rs      who may have an answer: Host, method, token
//!   bytes to a        |    |--> api.rs         figures as JSON    findings.rs   what larder doctor finds
//!   request           |    |--> segments.rs    those of the tiers' segments
//!                     |    |--> metrics        the text for Prometheus
//!                     |    \--> page.rs -----> history.rs
//!                 response.rs    the page for people, and the last minutes that it draws
//!                 an answer to bytes
//! ```
//!
//! Everything that a peer can make grow has a bound: connections, bytes of a request, requests of a connection, and
//! the time for each.

mod access;
mod answer;
mod api;
mod connection;
mod findings;
mod history;
mod page;
mod request;
mod response;
mod segments;
mod server;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use crate::config::HttpOptions;
use crate::metrics::Scrapes;
use crate::shared::Shared;

use findings::Findings;
use history::History;

pub use access::read_token;
pub use connection::Connection;
pub use server::Server;

/// The state that answers are made of.
pub struct State {
    options: HttpOptions,
    /// Whether it is served at a Unix socket, which no page of a browser reaches.
    is_unix: bool,
    /// Set once the store is open.
    shared: OnceLock<Arc<Shared>>,
    scrapes: Scrapes,
    /// The last minutes. Only the thread that serves takes the lock.
    history: Mutex<History>,
    findings: Mutex<Findings>,
}

/// The paths that answer, but for the page itself and what belongs to it.
const PATHS: [&str; 12] = [
    "/metrics",
    "/healthz",
    "/readyz",
    "/version",
    "/api/v1/stats",
    "/api/v1/latency",
    "/api/v1/config",
    "/api/v1/doctor",
    "/api/v1/mrc",
    "/api/v1/segments",
    "/api/v1/top",
    "/api/v1/prefixes",
];

impl State {
    /// Returns the state of a daemon whose store is not open yet.
    pub fn new(options: HttpOptions) -> State {
        let is_unix = matches!(options.address, crate::config::HttpAddress::Unix(_));
        State {
            options,
            is_unix,
            shared: OnceLock::new(),
            scrapes: Scrapes::new(),
            history: Mutex::default(),
            findings: Mutex::default(),
        }
    }

    /// Gives it the state of a daemon that serves. Only the first call counts.
    pub fn serve(&self, shared: Arc<Shared>) {
        let _ = self.shared.set(shared);
    }

    /// Notes the figures for the page's charts, if that is due.
    pub fn note(&self, now: Instant) {
        let mut history = self.history();
        if let Some(shared) = self.shared.get().filter(|_| history.due().is_none_or(|due| due <= now)) {
            history.add(shared, now);
        }
    }

    /// Returns when they are to be noted next, or before the store is open, when to look again whether it is.
    fn note_due(&self, now: Instant) -> Instant {
        self.history().due().unwrap_or(now + history::INTERVAL)
    }

    fn findings(&self) -> MutexGuard<'_, Findings> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
