//! An authority, and certificates for a server and a client, made for one test.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, SupportedProtocolVersion};

/// A folder of files in PEM. It is removed at the end.
pub struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    pub fn new() -> Certificates {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("larder-client-tls-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).expect("the temporary directory can be written");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, format!("authority of {}", folder.display()));
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let made = Certificates { folder };
        made.write("ca.pem", &authority.pem());
        for name in ["server", "client"] {
            let key = KeyPair::generate().expect("a key");
            let names = ["127.0.0.1", "cache.test"].map(String::from);
            let mut params = CertificateParams::new(names).expect("names");
            params.distinguished_name.push(DnType::CommonName, name);
            let certificate = params.signed_by(&key, &authority).expect("a certificate");
            made.write(&format!("{name}.pem"), &certificate.pem());
            made.write(&format!("{name}.key"), &key.serialize_pem());
        }
        made
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("room");
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file of users, and returns its path.
    pub fn users(&self, text: &str) -> String {
        self.write("users", text);
        fs::set_permissions(self.path("users"), fs::Permissions::from_mode(0o600)).expect("it is ours");
        self.path("users").display().to_string()
    }

    /// Returns the words for `-o` that name a server's files, with `more` behind them.
    pub fn words(&self, more: &str) -> String {
        let [chain, key, ca] = ["server.pem", "server.key", "ca.pem"].map(|name| self.path(name));
        let (chain, key, ca) = (chain.display(), key.display(), ca.display());
        format!("ssl_chain_cert={chain},ssl_key={key},ssl_ca_cert={ca}{more}")
    }

    /// Returns how a server of a test speaks one version.
    pub fn server(&self, version: &'static SupportedProtocolVersion) -> Arc<ServerConfig> {
        let chain = CertificateDer::from_pem_file(self.path("server.pem")).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(self.path("server.key")).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[version])
            .expect("a version")
            .with_no_client_auth()
            .with_single_cert(vec![chain], key);
        Arc::new(config.expect("they match"))
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
