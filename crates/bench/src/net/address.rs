//! Where a server is: a host and port, or a Unix socket.

use crate::wire::Protocol;
use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host's name or number, and a port.
    Tcp {
        /// The name, without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl Address {
    /// `HOST[:PORT]`, `[IPV6]:PORT`, `unix:PATH`, `memcached://...`, `redis://...`; the last also tells the
    /// protocol.
    ///
    /// # Errors
    /// It is none of these.
    pub fn parse(text: &str, port: Option<u16>, protocol: Protocol) -> Result<(Self, Protocol), String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok((Self::Unix(PathBuf::from(path.trim_start_matches("//"))), protocol));
        }
        if text.starts_with('/') {
            return Ok((Self::Unix(PathBuf::from(text)), protocol));
        }
        let (rest, protocol) = match text.split_once("://") {
            None => (text, protocol),
            Some(("redis", rest)) => (rest, Protocol::Resp2),
            Some(("memcached" | "memcache" | "tcp", rest)) => (rest, protocol),
            Some((scheme, _)) => return Err(format!("`{scheme}://` is not a server that `run` measures")),
        };
        let rest = rest.trim_end_matches('/');
        if rest.contains('@') {
            return Err(
                "a name and a password do not belong on a command line, where others can read them: leave \
                 them out, and name a file with USER:PASSWORD by --auth-file"
                    .to_string(),
            );
        }
        let number = |digits: &str| digits.parse().map_err(|_| format!("`{digits}` is no port"));
        let (host, given) = if let Some(inner) = rest.strip_prefix('[') {
            let (host, after) = inner.split_once(']').ok_or("an IPv6 address ends with ]")?;
            (host, after.strip_prefix(':').map(number).transpose()?)
        } else {
            match rest.rsplit_once(':') {
                // More than one colon: a bare IPv6 address.
                Some((host, _)) if host.contains(':') => (rest, None),
                Some((host, digits)) => (host, Some(number(digits)?)),
                None => (rest, None),
            }
        };
        if host.is_empty() {
            return Err("a server's address is HOST[:PORT] or unix:PATH".to_string());
        }
        let port = given.or(port).unwrap_or(protocol.default_port());
        Ok((Self::Tcp { host: host.to_string(), port }, protocol))
    }

    /// Whether only this host reaches it: loopback, or a Unix socket.
    pub fn is_of_this_host(&self) -> bool {
        match self {
            Self::Tcp { host, .. } if host == "localhost" => true,
            Self::Tcp { host, .. } => host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
            Self::Unix(_) => true,
        }
    }

    /// The numbers behind a host's name; none for a Unix socket.
    ///
    /// # Errors
    /// The name is not known.
    pub fn resolve(&self) -> std::io::Result<Vec<SocketAddr>> {
        match self {
            Self::Tcp { host, port } => Ok((host.as_str(), *port).to_socket_addrs()?.collect()),
            Self::Unix(_) => Ok(Vec::new()),
        }
    }
}

/// A text without what stands between `://` and `@` in it, wherever that is: a name and a password.
pub fn without_secret(text: &str) -> String {
    let (mut shown, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("://") {
        let (scheme, more) = rest.split_at(at + "://".len());
        shown.push_str(scheme);
        let end = more.find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(more.len());
        rest = match more[..end].rfind('@') {
            Some(at) => {
                shown.push_str("...");
                &more[at..]
            }
            None => more,
        };
    }
    shown + rest
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_left_out() {
        for (text, want) in [
            ("mysql://root:word@h:3306/db", "mysql://...@h:3306/db"),
            ("redis://:wo@rd@h", "redis://...@h"),
            ("redis://h/a@b", "redis://h/a@b"),
            ("--server=redis://:word@h", "--server=redis://...@h"),
            ("name@host", "name@host"),
            ("redis://u:word@a,redis://u:word@b", "redis://...@a,redis://...@b"),
            ("value 'a=redis://u:word@h' for 'x@y'", "value 'a=redis://...@h' for 'x@y'"),
        ] {
            assert_eq!(without_secret(text), want);
        }
    }

    #[test]
    fn addresses_are_understood() {
        let shown = |text: &str, port| {
            Address::parse(text, port, Protocol::Text)
                .map(|(address, protocol)| (address.to_string(), protocol))
        };
        let text = |address: &str| Ok((address.to_string(), Protocol::Text));
        assert_eq!(shown("localhost", None), text("localhost:11211"));
        assert_eq!(shown("localhost", Some(7)), text("localhost:7"));
        assert_eq!(shown("10.0.0.1:99", Some(7)), text("10.0.0.1:99"));
        assert_eq!(shown("[::1]:99", None), text("[::1]:99"));
        assert_eq!(shown("::1", None), text("[::1]:11211"));
        assert_eq!(shown("unix:/a/b", None), text("unix:/a/b"));
        assert_eq!(shown("redis://h", None), Ok(("h:6379".to_string(), Protocol::Resp2)));
        assert!(shown("redis://name:geheim@h", None).is_err_and(|message| !message.contains("geheim")));
        assert!(shown("h:x", None).is_err() && shown("mysql://h", None).is_err() && shown("", None).is_err());
    }
}
