//! The addresses to listen on: `-l` lists of hosts and ports. It resolves names; it binds no socket.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// One entry of `-l`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// A name or address; `None` is every interface (`*`, memcached's default).
    pub host: Option<String>,
    /// The port of this entry alone; `None` is the port of `-p`. `Some(0)` asks the kernel for a free one.
    pub port: Option<u16>,
}

impl Listen {
    /// Every interface, at the port of `-p`.
    pub const ANY: Listen = Listen { host: None, port: None };

    /// Returns the socket addresses of this entry. `default_port` is the port of `-p`, 0 for one the kernel picks.
    /// Every interface is two addresses, IPv4 and IPv6: bind the second with `IPV6_V6ONLY`, and continue without it
    /// where IPv6 is switched off.
    ///
    /// # Errors
    /// The name does not resolve.
    pub fn resolve(&self, default_port: u16) -> io::Result<Vec<SocketAddr>> {
        let port = self.port.unwrap_or(default_port);
        match &self.host {
            None => Ok(vec![
                SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port),
                SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port),
            ]),
            Some(host) => {
                let addresses: Vec<_> = (host.as_str(), port).to_socket_addrs()?.collect();
                if addresses.is_empty() {
                    return Err(io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address")));
                }
                Ok(addresses)
            }
        }
    }
}

/// Reads one `-l` value: entries separated by commas or semicolons, each `host`, `host:port`, `[v6]`,
/// `[v6]:port`, a bare IPv6 address, or `*`. memcached's prefixes `notls:` and `tag[..]:` are dropped, since
/// there is no TLS and a tag has no effect here.
///
/// # Errors
/// An entry of another form, a port that is none, or a prefix that asks for TLS or a protocol of its own.
pub fn listen_list(text: &str) -> Result<Vec<Listen>, String> {
    text.split([',', ';']).map(str::trim).filter(|entry| !entry.is_empty()).map(entry).collect()
}

fn entry(text: &str) -> Result<Listen, String> {
    let rest = without_prefixes(text)?;
    let (host, port) = if let Some(inner) = rest.strip_prefix('[') {
        let (host, tail) = inner.split_once(']').ok_or_else(|| format!("\"{text}\" lacks the closing ]"))?;
        match (tail.strip_prefix(':'), tail.is_empty()) {
            (Some(port), _) => (host, Some(port)),
            (None, true) => (host, None),
            (None, false) => return Err(format!("\"{text}\" has something other than :PORT after the ]")),
        }
    } else {
        match rest.split_once(':') {
            // More than one colon and no brackets can only be an IPv6 address without a port.
            Some((_, tail)) if tail.contains(':') => (rest, None),
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        }
    };
    if host.is_empty() {
        return Err(format!("\"{text}\" has no host; write *:PORT for every interface"));
    }
    let port = match port {
        None => None,
        Some(port) => Some(port.parse().map_err(|_| format!("\"{port}\" in \"{text}\" is not a port"))?),
    };
    Ok(Listen { host: (host != "*").then(|| host.to_string()), port })
}

fn without_prefixes(text: &str) -> Result<&str, String> {
    let mut rest = text;
    loop {
        if let Some(tail) = rest.strip_prefix("notls:") {
            rest = tail;
        } else if let Some((_, tail)) = rest.strip_prefix("tag[").and_then(|t| t.split_once("]:")) {
            rest = tail;
        } else if rest.starts_with("btls:") || rest.starts_with("mtls:") {
            return Err(format!("\"{text}\" asks for TLS, which is not built into this version"));
        } else if rest.starts_with("proto[") {
            return Err(format!("\"{text}\" asks for a protocol of its own; use -B for all listeners"));
        } else {
            return Ok(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> (Option<String>, Option<u16>) {
        let list = listen_list(text).unwrap();
        assert_eq!(list.len(), 1, "{text}");
        (list[0].host.clone(), list[0].port)
    }

    #[test]
    fn the_forms_of_an_entry() {
        let host = |h: &str| Some(h.to_string());
        assert_eq!(one("127.0.0.1"), (host("127.0.0.1"), None));
        assert_eq!(one("localhost:11212"), (host("localhost"), Some(11212)));
        assert_eq!(one("[::1]:5"), (host("::1"), Some(5)));
        assert_eq!(one("[::1]"), (host("::1"), None));
        assert_eq!(one("::1"), (host("::1"), None));
        assert_eq!(one("fe80::1:2"), (host("fe80::1:2"), None));
        assert_eq!(one("*"), (None, None));
        assert_eq!(one("*:99"), (None, Some(99)));
        assert_eq!(one("notls:10.0.0.1:6"), (host("10.0.0.1"), Some(6)));
        assert_eq!(one("tag[abc]:10.0.0.1:6"), (host("10.0.0.1"), Some(6)));
    }

    #[test]
    fn entries_are_separated_by_commas_or_semicolons() {
        assert_eq!(listen_list("a, b:2;[::1]:3").unwrap().len(), 3);
        assert_eq!(listen_list("").unwrap(), vec![]);
    }

    #[test]
    fn what_is_no_entry_is_told_why() {
        let texts = ["a:b", "a:70000", ":5", "[::1", "[::1]x", "btls:a", "proto[ascii]:a", "a:-1"];
        for text in texts {
            let error = listen_list(text).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn every_interface_is_both_families() {
        let addresses = Listen::ANY.resolve(7).unwrap();
        assert_eq!(addresses, ["0.0.0.0:7".parse().unwrap(), "[::]:7".parse().unwrap()]);
        let own = Listen { host: Some("127.0.0.1".to_string()), port: Some(8) };
        assert_eq!(own.resolve(7).unwrap(), ["127.0.0.1:8".parse().unwrap()]);
    }

    #[test]
    fn a_name_that_does_not_resolve_is_an_error() {
        assert!(Listen { host: Some("no such host".to_string()), port: None }.resolve(1).is_err());
    }
}
