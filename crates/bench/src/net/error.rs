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
    /// The server was reached, and refuses the login.
    Login {
        /// Where it is.
        address: String,
        /// The server's words.
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
                write!(f, "cannot connect to {address}: {source}; {}", advice(source))
            }
            Self::Tls { address, message } => write!(f, "no TLS with {address}: {message}"),
            Self::Login { address, message } => {
                write!(f, "{address} refuses the login of --auth-file: {message}")
            }
            Self::Host { what, source } => write!(f, "{what}: {source}"),
        }
    }
}

/// What to do about a connection that could not be made.
fn advice(error: &io::Error) -> &'static str {
    match rustix::io::Errno::from_io_error(error) {
        Some(rustix::io::Errno::MFILE) => "allow more (ulimit -n), or use fewer connections (-c)",
        Some(rustix::io::Errno::NFILE) => "this host has too many in all",
        Some(rustix::io::Errno::ADDRNOTAVAIL) => {
            "this host has no local port left: use fewer connections (-c), or wait a minute"
        }
        Some(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => "this user may not",
        Some(rustix::io::Errno::CONNRESET) => "does the server take so many connections (-c)?",
        _ => "is a server running there?",
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_open_files_say_what_to_do() {
        let of = |errno: rustix::io::Errno| {
            Error::Connect { address: "h:1".to_string(), source: errno.into() }.to_string()
        };
        assert!(of(rustix::io::Errno::MFILE).contains("ulimit -n"));
        assert!(of(rustix::io::Errno::CONNREFUSED).contains("is a server running"));
    }
}
