//! Errors that stop a run before it has a result.

use std::fmt;
use std::io;

/// An error that stopped a run, worded for one line.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The plan cannot be carried out.
    Plan(String),
    /// The server cannot be reached.
    Connect {
        /// Where it should be.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// The server was reached, and the two of us do not agree on TLS.
    Tls {
        /// Where it is.
        address: String,
        /// Why, and what to do.
        message: String,
    },
    /// The server was reached, and something failed before the measurement began.
    Before(String),
    /// Something of this host failed.
    Host {
        /// The operation.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// Something of this host failed.
    pub fn host(what: &str, source: impl Into<io::Error>) -> Self {
        Self::Host { what: what.to_string(), source: source.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(message) | Self::Before(message) => f.write_str(message),
            Self::Connect { address, source } => {
                write!(f, "cannot connect to {address}: {source}; is a server running there?")
            }
            Self::Tls { address, message } => write!(f, "no TLS with {address}: {message}"),
            Self::Host { what, source } => write!(f, "{what}: {source}"),
        }
    }
}

impl std::error::Error for Error {}
