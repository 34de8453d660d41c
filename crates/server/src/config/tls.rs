//! The options of TLS: `-Z` and the `-o` words of memcached's that begin with `ssl_`. It reads no certificate.

use std::path::PathBuf;

use super::error::ConfigError;
use super::layer::{Layer, Setting};

/// The form of a private key's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFormat {
    /// Text, as certificates.
    Pem,
    /// PKCS#8, PKCS#1 or SEC1 in binary.
    Der,
}

/// What clients have to show of themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientCertificates {
    /// Nothing.
    Unwanted,
    /// A certificate, if they have one; it has to be valid then.
    Requested,
    /// A valid certificate.
    Required,
}

/// How to speak TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsOptions {
    /// The server's certificate, and those between it and its root, in PEM.
    pub chain_cert: PathBuf,
    /// The file of the private key; `None` if it stands behind the certificates.
    pub key: Option<PathBuf>,
    /// The form of `key`.
    pub key_format: KeyFormat,
    /// What clients have to show on listeners that do not say otherwise.
    pub clients: ClientCertificates,
    /// The certificates that clients' certificates have to lead to, in PEM.
    pub ca_cert: Option<PathBuf>,
    /// The names of the cipher suites, as OpenSSL's lists have them; `None` is every suite.
    pub ciphers: Option<String>,
    /// Whether sessions are kept for clients of TLS 1.2 that know no tickets, and new sessions are shown in `stats`.
    pub session_cache: bool,
    /// Whether TLS 1.2 is refused.
    pub only_tls13: bool,
}

/// Returns the options of TLS, if `is_enabled`.
///
/// # Errors
/// A value that is none, or an option that another one needs.
pub(super) fn options(
    raw: &Layer,
    is_enabled: bool,
    warnings: &mut Vec<String>,
) -> Result<Option<TlsOptions>, ConfigError> {
    let clients = choice(raw, "ssl_verify_mode", clients, "0 (none), 1 (request), 2 (require) or 3 (once)")?;
    let only_tls13 = choice(raw, "ssl_min_version", only_tls13, "0, 1 or 2 (TLS 1.2) or 3 (TLS 1.3)")?;
    let key_format = choice(raw, "ssl_keyformat", key_format, "PEM (1) or DER (2)")?;
    if !is_enabled {
        let given = raw.words().map(|(name, _)| name).find(|name| name.starts_with("ssl_"));
        if let Some(name) = given {
            warnings.push(format!("-o {name} has no effect without -Z: connections are not encrypted"));
        }
        return Ok(None);
    }
    let path = |name| Some(raw.word(name)).filter(|text| !text.is_empty()).map(PathBuf::from);
    let usage = |message: &str| Err(ConfigError::Usage(message.to_string()));
    let Some(chain_cert) = path("ssl_chain_cert") else {
        return usage("-Z: TLS needs a certificate; name its file, in PEM, with -o ssl_chain_cert=FILE");
    };
    let ca_cert = path("ssl_ca_cert");
    if clients != ClientCertificates::Unwanted && ca_cert.is_none() {
        return usage(
            "-o ssl_verify_mode: clients' certificates are checked against those of a file; name it with \
             -o ssl_ca_cert=FILE",
        );
    }
    if matches!(raw.word("ssl_min_version"), "0" | "1") {
        warnings.push("-o ssl_min_version: TLS 1.2 is the oldest that is spoken".to_string());
    }
    let ciphers = Some(raw.word("ssl_ciphers")).filter(|names| !names.is_empty()).map(str::to_string);
    let session_cache = raw.word("ssl_session_cache") == "yes";
    let key = path("ssl_key");
    if key.is_none() && key_format == KeyFormat::Der {
        return usage("-o ssl_keyformat: a key in DER is a file of its own; name it with -o ssl_key=FILE");
    }
    Ok(Some(TlsOptions { chain_cert, key, key_format, clients, ca_cert, ciphers, session_cache, only_tls13 }))
}

/// Returns the value of a word that has a few.
fn choice<T>(
    raw: &Layer,
    name: &'static str,
    parse: impl Fn(&str) -> Option<T>,
    all: &str,
) -> Result<T, ConfigError> {
    let text = raw.word(name);
    parse(text).ok_or_else(|| {
        let message = format!("must be {all}");
        match raw.last(Setting::Word(name)) {
            Some(given) => given.error(name, &message),
            None => ConfigError::Usage(format!("{name}={text}: {message}")),
        }
    })
}

fn clients(text: &str) -> Option<ClientCertificates> {
    match text {
        "0" => Some(ClientCertificates::Unwanted),
        // Once is to ask again in no renegotiation, of which there is none.
        "1" | "3" => Some(ClientCertificates::Requested),
        "2" => Some(ClientCertificates::Required),
        _ => None,
    }
}

fn only_tls13(text: &str) -> Option<bool> {
    match text {
        "0" | "1" | "2" => Some(false),
        "3" => Some(true),
        _ => None,
    }
}

fn key_format(text: &str) -> Option<KeyFormat> {
    match text {
        "1" => Some(KeyFormat::Pem),
        "2" => Some(KeyFormat::Der),
        _ if text.eq_ignore_ascii_case("pem") => Some(KeyFormat::Pem),
        _ if text.eq_ignore_ascii_case("der") => Some(KeyFormat::Der),
        _ => None,
    }
}
