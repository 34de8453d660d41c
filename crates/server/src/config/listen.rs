//! The addresses to listen on: `-l` lists of hosts and ports. It resolves names; it binds no socket.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// The protocol that connections speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// The first byte of a connection decides.
    Auto,
    /// Text and meta commands only.
    Ascii,
    /// Binary only.
    Binary,
}

/// Whether the connections of an entry of `-l` speak TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenTls {
    /// As `-Z` and `-o ssl_verify_mode` say.
    Default,
    /// They do not (`notls:`).
    Off,
    /// They do, and clients need no certificate (`btls:`).
    Basic,
    /// They do, and clients need a certificate (`mtls:`).
    Mutual,
}

/// One entry of `-l`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// A name or address; `None` is every interface (`*`, memcached's default).
    pub host: Option<String>,
    /// The port of this entry alone; `None` is the port of `-p`. `Some(0)` asks the kernel for a free one.
    pub port: Option<u16>,
    /// Whether its connections speak TLS.
    pub tls: ListenTls,
    /// The protocol of its connections; `None` is that of all.
    pub protocol: Option<Protocol>,
}

impl Listen {
    /// Every interface, at the port of `-p`.
    pub const ANY: Listen = Listen { host: None, port: None, tls: ListenTls::Default, protocol: None };

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
/// `[v6]:port`, a bare IPv6 address, or `*`. In front of it may be memcached's prefixes `notls:`, `btls:`,
/// `mtls:`, `proto[..]:` and `tag[..]:`. A tag has no effect here.
///
/// # Errors
/// An entry of another form, a port that is none, or a protocol that is none.
pub fn listen_list(text: &str) -> Result<Vec<Listen>, String> {
    text.split([',', ';']).map(str::trim).filter(|entry| !entry.is_empty()).map(entry).collect()
}

fn entry(text: &str) -> Result<Listen, String> {
    let (rest, tls, protocol) = without_prefixes(text)?;
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
    Ok(Listen { host: (host != "*").then(|| host.to_string()), port, tls, protocol })
}

/// Returns an entry without its prefixes, and what these ask for.
fn without_prefixes(text: &str) -> Result<(&str, ListenTls, Option<Protocol>), String> {
    let (mut rest, mut tls, mut protocol) = (text, ListenTls::Default, None);
    loop {
        let Some((prefix, tail)) = rest.split_once(':') else { return Ok((rest, tls, protocol)) };
        let bracketed = |name: &str| prefix.strip_prefix(name)?.strip_suffix(']');
        match prefix {
            "notls" => tls = ListenTls::Off,
            "btls" => tls = ListenTls::Basic,
            "mtls" => tls = ListenTls::Mutual,
            _ if bracketed("tag[").is_some() => {}
            _ => match bracketed("proto[") {
                Some(name) => protocol = Some(named(name).map_err(|why| format!("\"{text}\": {why}"))?),
                None => return Ok((rest, tls, protocol)),
            },
        }
        rest = tail;
    }
}

fn named(protocol: &str) -> Result<Protocol, String> {
    match protocol {
        "ascii" => Ok(Protocol::Ascii),
        "binary" => Ok(Protocol::Binary),
        "negotiating" | "auto" => Ok(Protocol::Auto),
        "proxy" => Err(super::words::NO_PROXY.to_string()),
        _ => Err(format!("\"{protocol}\" is no protocol; it is ascii, binary or negotiating")),
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
        assert_eq!(one("mtls:[::1]:6"), (host("::1"), Some(6)));
    }

    #[test]
    fn prefixes_say_how_connections_speak() {
        let asked = |text: &str| {
            let list = listen_list(text).unwrap();
            (list[0].tls, list[0].protocol)
        };
        assert_eq!(asked("a:1"), (ListenTls::Default, None));
        assert_eq!(asked("notls:a:1"), (ListenTls::Off, None));
        assert_eq!(asked("btls:proto[ascii]:a:1"), (ListenTls::Basic, Some(Protocol::Ascii)));
        assert_eq!(asked("proto[binary]:tag[x]:mtls:a:1"), (ListenTls::Mutual, Some(Protocol::Binary)));
        assert_eq!(asked("proto[negotiating]:[::1]:1"), (ListenTls::Default, Some(Protocol::Auto)));
    }

    #[test]
    fn entries_are_separated_by_commas_or_semicolons() {
        assert_eq!(listen_list("a, b:2;[::1]:3").unwrap().len(), 3);
        assert_eq!(listen_list("").unwrap(), vec![]);
    }

    #[test]
    fn what_is_no_entry_is_told_why() {
        let texts = ["a:b", "a:70000", ":5", "[::1", "[::1]x", "proto[gopher]:a", "proto[proxy]:a", "a:-1"];
        for text in texts {
            let error = listen_list(text).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn every_interface_is_both_families() {
        let addresses = Listen::ANY.resolve(7).unwrap();
        assert_eq!(addresses, ["0.0.0.0:7".parse().unwrap(), "[::]:7".parse().unwrap()]);
        let own = Listen { host: Some("127.0.0.1".to_string()), port: Some(8), ..Listen::ANY };
        assert_eq!(own.resolve(7).unwrap(), ["127.0.0.1:8".parse().unwrap()]);
    }

    #[test]
    fn a_name_that_does_not_resolve_is_an_error() {
        assert!(Listen { host: Some("no such host".to_string()), ..Listen::ANY }.resolve(1).is_err());
    }
}
