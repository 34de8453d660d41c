//! How a client speaks TLS: which servers it trusts, its own certificate, and errors that say what to do.

mod unverified;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore};
use thiserror::Error;

use crate::address::Address;

/// Which certificates of servers are accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Those of the authorities that this host trusts.
    #[default]
    System,
    /// Those of the authorities in this file, in PEM, and no others.
    File(PathBuf),
    /// All of them, whoever made them: others can neither read nor change what is sent in passing, but anyone can
    /// stand in the server's place. For tests.
    AnyUnverified,
}

/// The settings of TLS. The default verifies servers by this host's authorities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Which certificates of servers are accepted.
    pub trust: Trust,
    /// The files, in PEM, of the client's own certificate with those between it and its authority, and of its private
    /// key; for servers that ask for one.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name that the certificates of all servers must have. By default the host of each server's address;
    /// `localhost` for a unix socket.
    pub server_name: Option<String>,
}

/// Why TLS cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BadTls {
    /// A file that is missing, or holds something else.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// This host has no authorities.
    #[error("this host trusts no authority; name the file of the server's")]
    NoRoots,
    /// A name that no certificate can have.
    #[error("{0:?} is no name that a certificate could have; set server_name")]
    Name(String),
    /// The library refused.
    #[error("{0}")]
    Library(String),
}

/// TLS as the connections of a client speak it, versions 1.2 and 1.3. Its files were read when it was made.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    server_name: Option<ServerName<'static>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tls").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files that the options name.
    ///
    /// # Errors
    /// When a file cannot be used, or a name cannot be one.
    pub fn new(options: &TlsOptions) -> Result<Tls, BadTls> {
        let library = |error: rustls::Error| BadTls::Library(error.to_string());
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone());
        let builder = builder.with_safe_default_protocol_versions().map_err(library)?;
        let builder = match &options.trust {
            Trust::System => builder.with_root_certificates(system_roots()?),
            Trust::File(path) => builder.with_root_certificates(roots_of(path)?),
            Trust::AnyUnverified => {
                let any = Arc::new(unverified::AnyServer::new(&provider));
                builder.dangerous().with_custom_certificate_verifier(any)
            }
        };
        let config = match &options.identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let own = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, error))?;
                builder
                    .with_client_auth_cert(certificates(chain)?, own)
                    .map_err(|error| bad_file(key, error.to_string()))?
            }
        };
        let server_name = options.server_name.as_deref().map(parse_name).transpose()?;
        Ok(Tls { config: Arc::new(config), server_name })
    }

    /// Returns the name that the certificate of the server at `address` must have.
    ///
    /// # Errors
    /// When no certificate can have it.
    pub(crate) fn name_at(&self, address: &Address) -> Result<ServerName<'static>, BadTls> {
        match (&self.server_name, address) {
            (Some(name), _) => Ok(name.clone()),
            (None, Address::Tcp { host, .. }) => parse_name(host),
            (None, Address::Unix(_)) => parse_name("localhost"),
        }
    }

    pub(crate) fn config(&self) -> &ClientConfig {
        &self.config
    }
}

fn parse_name(name: &str) -> Result<ServerName<'static>, BadTls> {
    ServerName::try_from(name.to_string()).map_err(|_| BadTls::Name(name.to_string()))
}

fn system_roots() -> Result<RootCertStore, BadTls> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(BadTls::NoRoots) } else { Ok(roots) }
}

fn roots_of(path: &Path) -> Result<RootCertStore, BadTls> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| bad_file(path, error.to_string()))?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, BadTls> {
    let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match found {
        Ok(found) if found.is_empty() => Err(bad_file(path, "holds no certificate in PEM".into())),
        found => found.map_err(|error| unreadable(path, error)),
    }
}

fn unreadable(path: &Path, error: pem::Error) -> BadTls {
    bad_file(
        path,
        match error {
            pem::Error::Io(error) => error.to_string(),
            pem::Error::NoItemsFound => "holds no private key in PEM".to_string(),
            other => other.to_string(),
        },
    )
}

fn bad_file(path: &Path, reason: String) -> BadTls {
    BadTls::File { path: path.to_path_buf(), reason }
}

fn failure(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// Returns why a handshake failed and what to do, if it was TLS that failed and not the connection.
pub(crate) fn handshake_failure(error: &io::Error, name: &ServerName<'_>) -> Option<String> {
    use rustls::Error as Tls;
    let name = name.to_str();
    Some(match failure(error)? {
        // The second is of an authority that has only the name of a trusted one.
        Tls::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            "the server's certificate is of no trusted authority; trust the file of its own".into()
        }
        Tls::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => format!("the server's certificate is not for {name}; set server_name to the name that it has"),
        Tls::InvalidMessage(_) => "the server sends something else; see that its port speaks TLS".into(),
        error => describe(error),
    })
}

/// Returns why the server refused this client's certificate, or that it has none; `None` for any other failure.
pub(crate) fn refusal(error: &io::Error) -> Option<String> {
    failure(error).filter(|error| is_about_certificates(error)).map(describe)
}

/// Returns whether the peer ended a handshake, as a server may that cannot resume a session.
pub(crate) fn is_ended_by_peer(error: &io::Error) -> bool {
    matches!(failure(error), Some(rustls::Error::AlertReceived(_)))
        || matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
}

fn is_about_certificates(error: &rustls::Error) -> bool {
    use AlertDescription as Alert;
    let rustls::Error::AlertReceived(alert) = error else { return false };
    matches!(
        alert,
        Alert::CertificateRequired
            | Alert::NoCertificate
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
            | Alert::DecryptError
            | Alert::HandshakeFailure
    )
}

fn describe(error: &rustls::Error) -> String {
    match is_about_certificates(error) {
        true => format!("{error}; the server may want another certificate of this client: set identity"),
        false => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> ServerName<'static> {
        parse_name("cache.example").expect("a name")
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let message = |options: &TlsOptions| Tls::new(options).expect_err("it is wrong").to_string();
        let (nowhere, no_pem) = (PathBuf::from("/nonexistent/ca.pem"), PathBuf::from("Cargo.toml"));
        let trust = |path: &PathBuf| TlsOptions { trust: Trust::File(path.clone()), ..TlsOptions::default() };
        let missing = "/nonexistent/ca.pem: No such file or directory (os error 2)";
        assert_eq!(message(&trust(&nowhere)), missing);
        assert_eq!(message(&trust(&no_pem)), "Cargo.toml: holds no certificate in PEM");
        let identity = |chain: &PathBuf, key: &PathBuf| TlsOptions {
            trust: Trust::AnyUnverified,
            identity: Some((chain.clone(), key.clone())),
            ..TlsOptions::default()
        };
        assert_eq!(message(&identity(&no_pem, &nowhere)), missing);
        assert_eq!(message(&identity(&nowhere, &no_pem)), "Cargo.toml: holds no private key in PEM");
    }

    #[test]
    fn a_certificate_must_have_the_hosts_name_unless_another_is_set() {
        let tcp = Address::Tcp { host: "cache.example".into(), port: 1 };
        let unverified = TlsOptions { trust: Trust::AnyUnverified, ..TlsOptions::default() };
        let name = |options: &TlsOptions, address: &Address| {
            let tls = Tls::new(options).expect("it is good");
            tls.name_at(address).expect("a name").to_str().into_owned()
        };
        assert_eq!(name(&unverified, &tcp), "cache.example");
        assert_eq!(name(&unverified, &Address::Unix("/s".into())), "localhost");
        let other = TlsOptions { server_name: Some("10.0.0.1".into()), ..unverified.clone() };
        assert_eq!(name(&other, &tcp), "10.0.0.1");
        let bad = TlsOptions { server_name: Some("a b".into()), ..unverified };
        assert_eq!(Tls::new(&bad).expect_err("no name"), BadTls::Name("a b".into()));
    }

    #[test]
    fn a_failure_says_what_to_do() {
        let of = |error: rustls::Error| io::Error::new(io::ErrorKind::InvalidData, error);
        let reason = |error| handshake_failure(&of(error), &name()).expect("a reason");
        assert!(reason(CertificateError::UnknownIssuer.into()).contains("trust the file"));
        assert!(reason(CertificateError::NotValidForName.into()).contains("cache.example"));
        let alert = rustls::Error::AlertReceived(AlertDescription::CertificateRequired);
        assert!(reason(alert.clone()).contains("set identity"));
        assert!(refusal(&of(alert)).is_some());
        assert_eq!(refusal(&of(rustls::Error::DecryptError)), None);
        assert_eq!(handshake_failure(&io::ErrorKind::TimedOut.into(), &name()), None);
    }
}
