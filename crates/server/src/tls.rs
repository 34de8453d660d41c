//! TLS: the certificates that all connections share, and each connection's records.
//!
//! ```text
//!   files (PEM, DER) --> server_config (rustls) --> Tls, read again on demand
//!                                                    \-> TlsStream, one a connection: records in, plain bytes out
//! ```
//!
//! It reads files at the start and at each refresh. It reads no socket.

mod ciphers;
mod files;
mod server_config;
mod stream;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::ServerConfig;

use crate::config::{ClientCertificates, ListenTls, TlsOptions};

pub use stream::{HANDSHAKE_BYTES, INCOMING_BYTES_MAX, RECORD_BYTES_MAX, TlsStream};
pub use stream::{PIECE_BYTES, Piece, PieceBuffers};

/// The certificates and the rest that connections begin with.
pub struct Tls {
    options: TlsOptions,
    current: Mutex<Current>,
}

/// What new connections get. No two of these share the keys of tickets: a session that began without a certificate
/// must not be resumed where one is required, or after the certificates were read again.
struct Current {
    default: Arc<ServerConfig>,
    basic: Arc<ServerConfig>,
    /// There is one if there are certificates to check clients' against.
    mutual: Option<Arc<ServerConfig>>,
    read_at: Instant,
}

impl Current {
    fn read(options: &TlsOptions) -> Result<Current, String> {
        let files = files::read(options)?;
        let build = |clients| server_config::build(options, &files, clients).map(Arc::new);
        Ok(Current {
            default: build(options.clients)?,
            basic: build(ClientCertificates::Unwanted)?,
            mutual: options.ca_cert.as_ref().map(|_| build(ClientCertificates::Required)).transpose()?,
            read_at: Instant::now(),
        })
    }
}

impl Tls {
    /// Reads the files that the options name.
    ///
    /// # Errors
    /// A text for the operator: the option, the file, the problem, and its remedy.
    pub fn open(options: &TlsOptions) -> Result<Tls, String> {
        Ok(Tls { options: options.clone(), current: Mutex::new(Current::read(options)?) })
    }

    /// Reads the files again. Connections that are open keep what they began with.
    ///
    /// # Errors
    /// As [`Tls::open`]. New connections get what they got before then.
    pub fn refresh(&self) -> Result<(), String> {
        let fresh = Current::read(&self.options)?;
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    /// Returns the time since the files were read.
    pub fn age(&self) -> Duration {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).read_at.elapsed()
    }

    /// Returns the TLS of a new connection to a listener, begun at `now`; `None` if it is none that speaks TLS.
    pub fn begin(&self, listener: ListenTls, now: Instant) -> Option<TlsStream> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let config = match listener {
            ListenTls::Off => return None,
            ListenTls::Default => &current.default,
            ListenTls::Basic => &current.basic,
            ListenTls::Mutual => current.mutual.as_ref()?,
        };
        TlsStream::new(config.clone(), now)
    }
}
