//! What can go wrong with a request: what failed, at which server, and what to do.

use std::io;
use std::sync::Arc;

use thiserror::Error;

use crate::key::BadKey;
use crate::wire::Malformed;

/// The result of a request.
pub type Result<T> = std::result::Result<T, Error>;

/// What a request was doing when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Making the connection.
    Connecting,
    /// Shaking hands for TLS.
    Encrypting,
    /// Sending the request.
    Sending,
    /// Waiting for the reply.
    Receiving,
}

impl std::fmt::Display for Doing {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Doing::Connecting => "connecting",
            Doing::Encrypting => "shaking hands for TLS",
            Doing::Sending => "sending",
            Doing::Receiving => "waiting for the reply",
        })
    }
}

/// Why a request failed. It can be cloned, since one broken connection fails many keys of a batch.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The key cannot be sent to any server.
    #[error(transparent)]
    Key(#[from] BadKey),
    /// The value is larger than this client sends.
    #[error("a value of {bytes} bytes is more than the {max} that this client sends; raise value_bytes_max")]
    ValueTooLarge {
        /// The value's length.
        bytes: usize,
        /// [`Options::value_bytes_max`](crate::Options::value_bytes_max).
        max: usize,
    },
    /// An argument of `stats` that would break the line.
    #[error("an argument of stats may hold letters, digits and blanks, up to 200 bytes; it was {0:?}")]
    Argument(String),
    /// The client was made without a server.
    #[error("there is no server; name at least one when the client is made")]
    NoServers,
    /// No connection could be made.
    #[error("{server}: cannot connect: {source}; see that the server runs and that its address is right")]
    Connect {
        /// The server's name.
        server: Arc<str>,
        /// What the system reported.
        source: Arc<io::Error>,
    },
    /// Nothing moved for too long. The connection is closed, since a reply might still come.
    #[error("{server}: {doing} took longer than {limit_ms} ms; look at its load, or raise the time limit")]
    Timeout {
        /// The server's name.
        server: Arc<str>,
        /// At what.
        doing: Doing,
        /// The limit that was passed, in milliseconds.
        limit_ms: u64,
    },
    /// The connection broke. Whether the request took effect is unknown.
    #[error(
        "{server}: lost the connection while {doing}: {source}; whether the request took effect is unknown"
    )]
    Lost {
        /// The server's name.
        server: Arc<str>,
        /// While doing what.
        doing: Doing,
        /// What the system reported.
        source: Arc<io::Error>,
    },
    /// The server sent what no memcached server sends, or more than is accepted. The connection is closed.
    #[error("{server}: {source}; see that a memcached server, 1.6 or later, listens there")]
    Protocol {
        /// The server's name.
        server: Arc<str>,
        /// The fault.
        source: Malformed,
    },
    /// The server refused the request with an error line.
    #[error("{server} refused: {line}")]
    Refused {
        /// The server's name.
        server: Arc<str>,
        /// The whole line.
        line: String,
    },
    /// The server refused the user or the password.
    #[error("{server} refused the login: {line}; see that the user and password are those of its file")]
    Login {
        /// The server's name.
        server: Arc<str>,
        /// The whole line.
        line: String,
    },
    /// There is no TLS with the server: one side refuses the other's certificate, or does not speak TLS. Nothing was
    /// sent.
    #[error("{server}: no TLS: {reason}")]
    Tls {
        /// The server's name.
        server: Arc<str>,
        /// Why, and what to do.
        reason: String,
    },
    /// The server failed several times in a row and is left alone for a while.
    #[error("{server} is down; it is asked again in {retry_in_ms} ms")]
    Down {
        /// The server's name.
        server: Arc<str>,
        /// When it is worth trying again, in milliseconds.
        retry_in_ms: u64,
    },
    /// All connections to the server are in use by other threads.
    #[error("{server}: all {max} connections are in use; raise connections_max, or ask from fewer threads")]
    Busy {
        /// The server's name.
        server: Arc<str>,
        /// [`Options::connections_max`](crate::Options::connections_max).
        max: usize,
    },
}

impl Error {
    /// Returns the name of the server at which the request failed, if it got that far.
    pub fn server(&self) -> Option<&str> {
        match self {
            Error::Key(_) | Error::ValueTooLarge { .. } | Error::Argument(_) | Error::NoServers => None,
            Error::Connect { server, .. }
            | Error::Timeout { server, .. }
            | Error::Lost { server, .. }
            | Error::Protocol { server, .. }
            | Error::Refused { server, .. }
            | Error::Login { server, .. }
            | Error::Tls { server, .. }
            | Error::Down { server, .. }
            | Error::Busy { server, .. } => Some(server),
        }
    }

    /// Returns whether the server is to blame, rather than the request or this client.
    pub(crate) fn counts_against_server(&self) -> bool {
        matches!(
            self,
            Error::Connect { .. } | Error::Timeout { .. } | Error::Lost { .. } | Error::Protocol { .. }
        )
    }
}
