//! The address of the HTTP interface, and who may read it. It resolves names; it binds no socket.

use std::path::PathBuf;

use super::error::ConfigError;
use super::layer::Setting;
use super::listen::{Listen, ListenTls, listen_list};
use super::option::Id;
use super::typed::Values;

/// The port of an address without one: that of memcached_exporter, so that what scrapes it needs no change.
pub const HTTP_PORT: u16 = 9150;

/// The place where HTTP is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpAddress {
    /// A TCP address. Its port is [`HTTP_PORT`] unless it has one.
    Tcp(Listen),
    /// A Unix socket.
    Unix(PathBuf),
}

/// The HTTP interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpOptions {
    /// Where it is served.
    pub address: HttpAddress,
    /// The file of the token that requests have to carry.
    pub token_file: Option<PathBuf>,
    /// Whether other hosts may read it without a token.
    pub is_open: bool,
    /// Names of this host that requests may be for, in small letters; addresses and `localhost` always are.
    pub hosts: Vec<String>,
}

/// Returns the options of the HTTP interface, if there is one.
///
/// # Errors
/// An address that is none, or options that exclude each other.
pub(super) fn options(values: &Values<'_>) -> Result<Option<HttpOptions>, ConfigError> {
    let Some(address) = values.optional(Id::Http, address)? else { return Ok(None) };
    let (token_file, is_open) = (values.path(Id::HttpTokenFile), values.flag(Id::HttpOpen));
    let message = "it lets everybody read, so it excludes --http-token-file; drop one of them";
    values.require(Id::HttpOpen, !is_open || token_file.is_none(), message)?;
    let given = values.raw.all(Setting::Opt(Id::HttpHost)).iter();
    let mut hosts: Vec<String> =
        given.flat_map(|given| given.text.split(',')).map(|host| host.trim().to_ascii_lowercase()).collect();
    if let HttpAddress::Tcp(Listen { host: Some(host), .. }) = &address {
        hosts.push(host.to_ascii_lowercase());
    }
    Ok(Some(HttpOptions { address, token_file, is_open, hosts }))
}

/// Reads `HOST[:PORT]`, or `unix:PATH`.
///
/// # Errors
/// Another form.
fn address(text: &str) -> Result<HttpAddress, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return match path {
            "" => Err("\"unix:\" has no path; write unix:PATH".to_string()),
            path => Ok(HttpAddress::Unix(PathBuf::from(path))),
        };
    }
    match listen_list(text)?.as_slice() {
        [one @ Listen { tls: ListenTls::Default, protocol: None, .. }] => Ok(HttpAddress::Tcp(one.clone())),
        [_] => Err("HTTP has no TLS and no protocols of its own; write HOST[:PORT] or unix:PATH".to_string()),
        _ => Err("give one address, HOST[:PORT] or unix:PATH".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn options_of(args: &[&str]) -> Result<Option<HttpOptions>, ConfigError> {
        Config::from_args(["larder", "--ssd", "none"].iter().chain(args)).map(|config| config.http)
    }

    #[test]
    fn the_forms_of_an_address() {
        assert_eq!(options_of(&[]), Ok(None));
        let of = |text: &str| options_of(&["--http", text]).unwrap().unwrap().address;
        assert_eq!(of("unix:/run/larder/http"), HttpAddress::Unix("/run/larder/http".into()));
        let HttpAddress::Tcp(listen) = of("[::1]") else { panic!("it is TCP") };
        assert_eq!(listen.resolve(HTTP_PORT).unwrap(), ["[::1]:9150".parse().unwrap()]);
        for wrong in ["", "unix:", "a:b", "btls:127.0.0.1", "127.0.0.1,127.0.0.2"] {
            assert!(options_of(&["--http", wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_are_those_given_and_that_of_the_address() {
        let options = options_of(&["--http", "Cache.lan:80", "--http-host", "a.lan,B.lan"]).unwrap().unwrap();
        assert_eq!(options.hosts, ["a.lan", "b.lan", "cache.lan"]);
    }

    #[test]
    fn a_token_and_no_token_exclude_each_other() {
        let both = ["--http", "localhost", "--http-open", "--http-token-file", "/t"];
        assert!(options_of(&both).unwrap_err().to_string().contains("drop one of them"));
        assert!(options_of(&["--http-open"]).is_ok(), "without --http it is of no effect");
    }
}
