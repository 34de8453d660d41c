//! Where a server is, what it is called, and its share of the keys.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

/// memcached's port.
pub const PORT_DEFAULT: u16 = 11211;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host's name or address, and a port.
    Tcp {
        /// The host; an IPv6 address without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// The path of a unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port } => write!(out, "{host}:{port}"),
            Address::Unix(path) => write!(out, "{}", path.display()),
        }
    }
}

/// One server of a client. It parses from `host`, `host:port`, `[::1]:port`, `/path/of/a/socket` or `unix:/path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Where it listens.
    pub address: Address,
    /// What placement hashes instead of the address, so that keys stay when the address changes.
    pub name: Option<String>,
    /// Its share of the keys relative to the others', at least 1. Only ketama heeds it.
    pub weight: u32,
}

impl Server {
    /// A server at an address, of weight 1.
    pub fn new(address: Address) -> Self {
        Server { address, name: None, weight: 1 }
    }

    /// Names the server for placement.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Server { name: Some(name.into()), ..self }
    }

    /// Returns what errors and [`Options::breaker_word`](crate::Options::breaker_word) call it: its name, or else its
    /// address.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.address.to_string())
    }

    /// Sets the server's weight.
    #[must_use]
    pub fn weighing(self, weight: u32) -> Self {
        Server { weight, ..self }
    }
}

/// A server's address that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no server; write host, host:port, [ipv6]:port, or the path of a unix socket")]
pub struct BadServer(String);

impl FromStr for Server {
    type Err = BadServer;

    fn from_str(text: &str) -> Result<Self, BadServer> {
        let bad = || BadServer(text.to_string());
        let path = text.strip_prefix("unix:").or_else(|| text.starts_with('/').then_some(text));
        if let Some(path) = path {
            return if path.is_empty() { Err(bad()) } else { Ok(Server::new(Address::Unix(path.into()))) };
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or_else(bad)?;
                let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or_else(bad)?) };
                (host, port)
            }
            // Several colons without brackets are an IPv6 address without a port.
            None if text.matches(':').count() > 1 => (text, None),
            None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
        };
        let port = port.map_or(Ok(PORT_DEFAULT), str::parse).map_err(|_| bad())?;
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(bad());
        }
        Ok(Server::new(Address::Tcp { host: host.to_string(), port }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_every_form() {
        for (text, shown) in [
            ("cache1", "cache1:11211"),
            ("cache1:7", "cache1:7"),
            ("10.0.0.1:11212", "10.0.0.1:11212"),
            ("[::1]:12", "::1:12"),
            ("[::1]", "::1:11211"),
            ("fe80::1", "fe80::1:11211"),
            ("/run/larder.sock", "/run/larder.sock"),
            ("unix:relative.sock", "relative.sock"),
        ] {
            let server: Server = text.parse().expect("it is a server");
            assert_eq!(server.address.to_string(), shown);
        }
        for bad in ["", ":1", "a:", "a:b", "a:70000", "[::1", "[::1]x", "a b", "unix:"] {
            assert!(bad.parse::<Server>().is_err(), "{bad}");
        }
    }
}
