//! The TLS sessions of one process with one server: the server's tickets, so that the next connection resumes.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;

use crate::tls::Tls;

/// Servers of one name, each with some tickets.
const SERVERS: usize = 1;

/// TLS with one server.
#[derive(Clone, Debug)]
pub struct Secured {
    /// Whom to trust.
    pub tls: Tls,
    /// The name that the server's certificate must have.
    pub name: ServerName<'static>,
}

/// The sessions of one process. A child process has its own: it would wait for ever for a lock that its parent held.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    resuming: OnceLock<Arc<ClientConfig>>,
    full: OnceLock<Arc<ClientConfig>>,
    /// A handshake has succeeded, so there may be tickets.
    has_met: AtomicBool,
    /// The server ended a handshake that would have resumed a session, and agreed to a full one.
    refuses: AtomicBool,
}

impl Sessions {
    /// Returns the settings for the next handshake, which resumes a session if there is one.
    pub(super) fn next(&self, tls: &Tls) -> Arc<ClientConfig> {
        if self.refuses.load(Relaxed) {
            return self.without(tls);
        }
        let resumption = || Resumption::in_memory_sessions(SERVERS);
        self.resuming.get_or_init(|| config(tls, resumption())).clone()
    }

    /// Returns the settings for a handshake that resumes no session.
    pub(super) fn without(&self, tls: &Tls) -> Arc<ClientConfig> {
        self.full.get_or_init(|| config(tls, Resumption::disabled())).clone()
    }

    /// Returns whether the next handshake may resume a session.
    pub(super) fn may_resume(&self) -> bool {
        self.has_met.load(Relaxed) && !self.refuses.load(Relaxed)
    }

    /// Notes that a handshake has succeeded.
    pub(super) fn met(&self) {
        self.has_met.store(true, Relaxed);
    }

    /// Notes that the server agrees to full handshakes only.
    pub(super) fn refused(&self) {
        self.refuses.store(true, Relaxed);
    }
}

fn config(tls: &Tls, resumption: Resumption) -> Arc<ClientConfig> {
    let mut config = tls.config().clone();
    config.resumption = resumption;
    Arc::new(config)
}
