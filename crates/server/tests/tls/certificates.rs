//! Certificates made for one test, and clients that trust them.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use larder_server::config::{Config, TlsOptions};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion, version};

/// A folder with an authority, and certificates for a server and a client. It is removed at the end.
pub struct Certificates {
    folder: PathBuf,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    pub fn new() -> Certificates {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("larder-tls-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).expect("the temporary directory can be written");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let made = Certificates { folder, authority };
        made.write("ca.pem", &made.authority.pem());
        made.issue("server");
        made.issue("client");
        made
    }

    /// Makes a certificate and its key.
    pub fn issue(&self, name: &str) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["localhost".to_string()]).expect("a name");
        let certificate = params.signed_by(&key, &self.authority).expect("a certificate");
        self.write(&format!("{name}.pem"), &certificate.pem());
        self.write(&format!("{name}.key"), &key.serialize_pem());
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).expect("room");
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Returns the words for `-o` that name the server's files, with `more` behind them.
    pub fn words(&self, more: &str) -> String {
        let (chain, key) = (self.path("server.pem"), self.path("server.key"));
        format!("ssl_chain_cert={chain},ssl_key={key},ssl_ca_cert={}{more}", self.path("ca.pem"))
    }

    pub fn options(&self, more: &str) -> TlsOptions {
        let config = Config::from_args(["memcached", "-Z", "-o", &self.words(more)]);
        config.expect("valid options").tls.expect("TLS is on")
    }

    /// Returns how a client connects, with or without a certificate of its own.
    pub fn client(&self, version: &'static SupportedProtocolVersion, has_own: bool) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).expect("an authority");
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[version])
            .expect("a version")
            .with_root_certificates(roots);
        Arc::new(match has_own {
            false => builder.with_no_client_auth(),
            true => {
                let chain = CertificateDer::from_pem_file(self.path("client.pem")).expect("a certificate");
                let key = PrivateKeyDer::from_pem_file(self.path("client.key")).expect("a key");
                builder.with_client_auth_cert(vec![chain], key).expect("they match")
            }
        })
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub const VERSIONS: [&SupportedProtocolVersion; 2] = [&version::TLS12, &version::TLS13];

pub fn connection(config: &Arc<ClientConfig>) -> ClientConnection {
    let name = ServerName::try_from("localhost").expect("a name");
    ClientConnection::new(config.clone(), name).expect("a client")
}
