//! TLS as a plan asks for it: trusted certificates, our own, and errors in words. The bytes are in
//! [`stream`].

pub mod stream;
mod trust;

use super::{Address, Error};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore};
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The options of TLS on the command line. Files are in PEM.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The certificates that the server's has to lead to; none takes this host's own.
    pub ca: Option<PathBuf>,
    /// Our own certificate, with those between it and its root, and its private key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Takes any certificate.
    pub skip_verify: bool,
    /// The name that the server's certificate has to have; none takes the address's.
    pub server_name: Option<String>,
}

/// How to speak TLS with one server; a copy shares the certificates.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    is_verified: bool,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tls({})", self.name.to_str())
    }
}

impl Tls {
    /// Reads the files, and finds the server's name.
    ///
    /// # Errors
    /// [`Error::Plan`] if the name is none, [`Error::Before`] if a file is missing or malformed
    /// be.
    pub fn new(options: &Options, address: &Address) -> Result<Self, Error> {
        let name = match (&options.server_name, address) {
            (Some(name), _) => name.as_str(),
            (None, Address::Tcp { host, .. }) => host.as_str(),
            (None, Address::Unix(_)) => "localhost",
        };
        let name = ServerName::try_from(name.to_string())
            .map_err(|_| Error::Plan(format!("`{name}` is no name for TLS: see --tls-server-name")))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Before(format!("TLS: {error}")))?;
        let builder = if options.skip_verify {
            let anyone = Arc::new(trust::Anyone::new(&provider));
            builder.dangerous().with_custom_certificate_verifier(anyone)
        } else {
            builder.with_root_certificates(roots(options.ca.as_deref())?)
        };
        let mut config = match &options.identity {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => {
                let chain = certificates("--tls-cert", cert)?;
                let own = PrivateKeyDer::from_pem_slice(&read("--tls-key", key)?)
                    .map_err(|_| wrong("--tls-key", key, "holds no private key in PEM"))?;
                builder.with_client_auth_cert(chain, own).map_err(|error| wrong("--tls-key", key, error))?
            }
        };
        // memcached that asks for certificates refuses a session that it has met before.
        config.resumption = Resumption::disabled();
        Ok(Self { config: Arc::new(config), name, is_verified: !options.skip_verify })
    }

    /// What both sides agreed on, and whether the server's certificate was looked at: a result tells it.
    pub(super) fn told(&self, agreed: &str) -> String {
        if self.is_verified { agreed.to_string() } else { format!("{agreed}, certificate not verified") }
    }

    /// Why speaking TLS failed, in words that say what to do.
    pub fn in_words(&self, error: &io::Error) -> String {
        let name = self.name.to_str();
        if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return match error {
                rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
                    "its certificate is not signed by a CA we trust: name its CA with --tls-ca".to_string()
                }
                rustls::Error::InvalidCertificate(
                    CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                ) => {
                    format!("its certificate is not for `{name}`: name whom it is for with --tls-server-name")
                }
                rustls::Error::InvalidMessage(_) => {
                    "what it answers is not TLS: leave --tls out, or name its TLS port".to_string()
                }
                rustls::Error::AlertReceived(
                    AlertDescription::CertificateRequired
                    | AlertDescription::HandshakeFailure
                    | AlertDescription::BadCertificate
                    | AlertDescription::UnknownCA,
                ) => format!("{error}: it may want another certificate of ours (--tls-cert, --tls-key)"),
                error => error.to_string(),
            };
        }
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                "it does not answer the handshake: does it speak TLS there?".to_string()
            }
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                "it closed the connection in the handshake: does it speak TLS there?".to_string()
            }
            _ => error.to_string(),
        }
    }
}

/// Returns the certificates to trust: a file's, or those that this host trusts.
fn roots(ca: Option<&Path>) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            for certificate in certificates("--tls-ca", path)? {
                roots.add(certificate).map_err(|error| wrong("--tls-ca", path, error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        let message = "this host trusts no CA: name the server's with --tls-ca, or see --tls-skip-verify";
        return Err(Error::Before(message.to_string()));
    }
    Ok(roots)
}

fn certificates(option: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let bytes = read(option, path)?;
    match CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>() {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(wrong(option, path, "holds no certificate in PEM")),
        Err(error) => Err(wrong(option, path, error)),
    }
}

fn read(option: &str, path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| wrong(option, path, error))
}

fn wrong(option: &str, path: &Path, message: impl fmt::Display) -> Error {
    Error::Before(format!("{option} {}: {message}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> Address {
        Address::Tcp { host: "cache.example".to_string(), port: 11211 }
    }

    fn refused(options: &Options) -> String {
        Tls::new(options, &address()).expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_missing_or_wrong_file_is_named_with_its_option() {
        let nowhere = PathBuf::from("/nonexistent/ca.pem");
        let message = refused(&Options { ca: Some(nowhere.clone()), ..Options::default() });
        assert_eq!(message, "--tls-ca /nonexistent/ca.pem: No such file or directory (os error 2)");
        let no_pem = PathBuf::from("Cargo.toml");
        let message = refused(&Options { ca: Some(no_pem.clone()), ..Options::default() });
        assert_eq!(message, "--tls-ca Cargo.toml: holds no certificate in PEM");
        let identity = Some((no_pem, nowhere));
        let message = refused(&Options { skip_verify: true, identity, ..Options::default() });
        assert_eq!(message, "--tls-cert Cargo.toml: holds no certificate in PEM");
    }

    #[test]
    fn certificates_are_verified_unless_it_is_said_otherwise() {
        assert!(!Options::default().skip_verify);
        let options = Options { skip_verify: true, ..Options::default() };
        let anyone = Tls::new(&options, &address()).expect("nothing is wrong");
        assert_eq!(anyone.told("TLS 1.3"), "TLS 1.3, certificate not verified");
        assert_eq!(Tls { is_verified: true, ..anyone }.told("TLS 1.3"), "TLS 1.3");
    }

    #[test]
    fn a_name_that_is_none_is_a_wrong_plan() {
        let options =
            Options { skip_verify: true, server_name: Some("a b".to_string()), ..Options::default() };
        assert!(matches!(Tls::new(&options, &address()), Err(Error::Plan(_))));
    }

    #[test]
    fn the_name_is_the_addresss_own_unless_another_is_given() {
        let name = |options: &Options, address: &Address| {
            Tls::new(options, address).expect("nothing is wrong").name.to_str().into_owned()
        };
        let anyone = Options { skip_verify: true, ..Options::default() };
        assert_eq!(name(&anyone, &address()), "cache.example");
        assert_eq!(name(&anyone, &Address::Unix(PathBuf::from("/s"))), "localhost");
        let other = Options { server_name: Some("10.0.0.1".to_string()), ..anyone };
        assert_eq!(name(&other, &address()), "10.0.0.1");
    }

    #[test]
    fn what_went_wrong_says_what_to_do() {
        let options = Options { skip_verify: true, ..Options::default() };
        let tls = Tls::new(&options, &address()).expect("nothing is wrong");
        let message = |error: rustls::Error| tls.in_words(&io::Error::new(ErrorKind::InvalidData, error));
        assert!(message(CertificateError::UnknownIssuer.into()).contains("--tls-ca"));
        assert!(message(CertificateError::NotValidForName.into()).contains("`cache.example`"));
        let alert = rustls::Error::AlertReceived(AlertDescription::CertificateRequired);
        assert!(message(alert).contains("--tls-cert"));
        assert!(tls.in_words(&ErrorKind::UnexpectedEof.into()).contains("does it speak TLS"));
    }
}
