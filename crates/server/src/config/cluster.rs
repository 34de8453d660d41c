//! Where the servers that share the keys come from: a file, or DNS. It reads no file and asks no server.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use super::error::ConfigError;
use super::option::Id;
use super::typed::Values;

/// The port of a DNS server without one.
const DNS_PORT: u16 = 53;
/// The most bytes of a name in DNS, as text.
const NAME_BYTES_MAX: usize = 253;
/// The most bytes between two dots.
const LABEL_BYTES_MAX: usize = 63;

/// Where the servers that share the keys come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterOptions {
    /// A file that lists them.
    File(PathBuf),
    /// SRV records.
    Srv {
        /// The name that has the records; with a dot at its end it is taken as it is, else the host's search
        /// domains are tried after it.
        name: String,
        /// The DNS server to ask; `None`: those of `/etc/resolv.conf`.
        server: Option<SocketAddr>,
    },
}

/// Returns where the servers come from, if clients are told of any.
///
/// # Errors
/// A name or an address that is none, or options that exclude each other.
pub(super) fn options(values: &Values<'_>) -> Result<Option<ClusterOptions>, ConfigError> {
    let file = values.path(Id::ClusterNodes);
    let name = values.optional(Id::ClusterSrv, name)?;
    let server = values.optional(Id::ClusterDns, server)?;
    let message = "the servers come from DNS or from --cluster-nodes; drop one of them";
    values.require(Id::ClusterSrv, name.is_none() || file.is_none(), message)?;
    Ok(match (file, name) {
        (Some(path), _) => Some(ClusterOptions::File(path)),
        (None, Some(name)) => Some(ClusterOptions::Srv { name, server }),
        (None, None) => None,
    })
}

/// Reads a name of DNS.
fn name(text: &str) -> Result<String, String> {
    let bare = text.strip_suffix('.').unwrap_or(text);
    let fits = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if bare.len() > NAME_BYTES_MAX || !bare.split('.').all(fits) {
        return Err("is no name of DNS; give one such as _memcache._tcp.larder.example".into());
    }
    Ok(text.to_string())
}

/// Reads `ADDRESS` or `ADDRESS:PORT`.
fn server(text: &str) -> Result<SocketAddr, String> {
    let with_port = text.parse::<SocketAddr>().ok().filter(|server| server.port() != 0);
    let bare = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    with_port
        .or_else(|| bare.ok().map(|address| SocketAddr::new(address, DNS_PORT)))
        .ok_or_else(|| "is no ADDRESS or ADDRESS:PORT; give numbers such as 127.0.0.1:8600".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_dns() {
        for good in ["_memcache._tcp.larder.ns.svc", "larder.", "a-b.c"] {
            assert_eq!(name(good).as_deref(), Ok(good));
        }
        let long = format!("{}.example", "x".repeat(64));
        let longer = "x.".repeat(127);
        for bad in ["", ".", "a..b", "a b", "a|b", "a\n", "\u{e9}", &long, &format!("{longer}xx")] {
            assert!(name(bad).is_err_and(|why| why.contains("DNS")), "{bad:?}");
        }
    }

    #[test]
    fn a_dns_server_is_an_address_with_or_without_a_port() {
        let shown = |text| server(text).map(|server| server.to_string());
        assert_eq!(shown("127.0.0.1:8600").as_deref(), Ok("127.0.0.1:8600"));
        assert_eq!(shown("10.0.0.1").as_deref(), Ok("10.0.0.1:53"));
        assert_eq!(shown("::1").as_deref(), Ok("[::1]:53"));
        assert_eq!(shown("[::1]:54").as_deref(), Ok("[::1]:54"));
        for bad in ["", "dns.example", "10.0.0.1:0", "10.0.0.1:65536"] {
            assert!(server(bad).is_err(), "{bad:?}");
        }
    }
}
