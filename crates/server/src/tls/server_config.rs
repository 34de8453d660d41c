//! Builds what rustls needs of the options and the files.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::{Error, InconsistentKeys, RootCertStore, ServerConfig, SupportedProtocolVersion, version};

use super::files::{Files, problem};
use super::{ciphers, files};
use crate::config::{ClientCertificates, TlsOptions};

/// Sessions kept for clients of TLS 1.2 that know no tickets. Each takes some hundred bytes.
const SESSIONS_MAX: usize = 1024;
/// Tickets sent with a handshake: each lets one connection of the client begin without certificates.
const TICKETS: usize = 1;

/// Returns the configuration of connections whose clients have to show `clients`.
///
/// # Errors
/// The option, the file, the problem, and its remedy.
pub(super) fn build(
    options: &TlsOptions,
    files: &Files,
    clients: ClientCertificates,
) -> Result<ServerConfig, String> {
    let suites =
        ciphers::parse(options.ciphers.as_deref()).map_err(|why| format!("-o ssl_ciphers: {why}"))?;
    let both: [&'static SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
    let with_a_suite = |version: &&&'static SupportedProtocolVersion| {
        suites.iter().any(|suite| ciphers::is_of(version, suite))
    };
    let allowed = if options.only_tls13 { &both[..1] } else { &both[..] };
    let versions: Vec<_> = allowed.iter().filter(with_a_suite).copied().collect();
    let provider = Arc::new(CryptoProvider { cipher_suites: suites, ..ring::default_provider() });
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions)
        .map_err(|error| format!("-o ssl_ciphers: {error}"))?;
    let builder = match clients {
        ClientCertificates::Unwanted => builder.with_no_client_auth(),
        asked => builder.with_client_cert_verifier(verifier(options, files, asked, provider)?),
    };
    let mut config = builder
        .with_single_cert(files.chain.clone(), files.key.clone_key())
        .map_err(|error| unusable(options, &error))?;
    config.ticketer = ring::Ticketer::new().map_err(|error| format!("-Z: no keys for tickets: {error}"))?;
    config.session_storage = match options.session_cache {
        true => ServerSessionMemoryCache::new(SESSIONS_MAX),
        false => Arc::new(NoServerSessionStorage {}),
    };
    config.send_tls13_tickets = TICKETS;
    Ok(config)
}

fn verifier(
    options: &TlsOptions,
    files: &Files,
    clients: ClientCertificates,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let path = options.ca_cert.clone().unwrap_or_default();
    let wrong = |what: String| files::problem("ssl_ca_cert", &path, &what);
    let mut roots = RootCertStore::empty();
    for root in &files.roots {
        roots
            .add(root.clone())
            .map_err(|error| wrong(format!("holds a certificate that is none: {error}")))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = match clients {
        ClientCertificates::Required => builder,
        ClientCertificates::Requested | ClientCertificates::Unwanted => builder.allow_unauthenticated(),
    };
    builder.build().map_err(|error| wrong(error.to_string()))
}

fn unusable(options: &TlsOptions, error: &Error) -> String {
    let key = options.key.as_ref().unwrap_or(&options.chain_cert);
    match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => problem(
            "ssl_key",
            key,
            "the private key is not that of the certificate, which has to be the first of ssl_chain_cert",
        ),
        Error::InvalidCertificate(_) => {
            problem("ssl_chain_cert", &options.chain_cert, &format!("the certificate is unusable: {error}"))
        }
        _ => problem("ssl_key", key, &format!("the private key is unusable: {error}")),
    }
}
