//! Reads certificates and private keys from files, within bounds.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::{KeyFormat, TlsOptions};

/// The most bytes of a file. The certificates of all public roots together take a quarter of it.
const BYTES_MAX: u64 = 1 << 20;

/// The content of all files.
pub(super) struct Files {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    /// Those that clients' certificates have to lead to.
    pub(super) roots: Vec<CertificateDer<'static>>,
}

/// Reads all files that the options name.
///
/// # Errors
/// The option, the file, the problem, and its remedy.
pub(super) fn read(options: &TlsOptions) -> Result<Files, String> {
    let chain_bytes = bytes("ssl_chain_cert", &options.chain_cert)?;
    let chain = certificates("ssl_chain_cert", &options.chain_cert, &chain_bytes)?;
    let key = match &options.key {
        Some(path) => {
            let key_bytes = bytes("ssl_key", path)?;
            private_key("ssl_key", path, &key_bytes, options.key_format)?
        }
        None => private_key("ssl_chain_cert", &options.chain_cert, &chain_bytes, KeyFormat::Pem)?,
    };
    let roots = match &options.ca_cert {
        Some(path) => certificates("ssl_ca_cert", path, &bytes("ssl_ca_cert", path)?)?,
        None => Vec::new(),
    };
    Ok(Files { chain, key, roots })
}

/// Returns the text of a problem with a file.
pub(super) fn problem(option: &str, path: &Path, what: &str) -> String {
    format!("-o {option}={}: {what}", path.display())
}

fn bytes(option: &str, path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| {
        problem(option, path, &format!("cannot be read: {error}; give a file that this user can read"))
    };
    // A pipe without a writer would stop the daemon here.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(nonblocking).open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(problem(option, path, "is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(problem(option, path, "is larger than 1 MiB, which no certificates need"));
    }
    Ok(bytes)
}

fn certificates(option: &str, path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    match CertificateDer::pem_slice_iter(bytes).collect::<Result<Vec<_>, _>>() {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(problem(option, path, "holds no certificate in PEM (-----BEGIN CERTIFICATE-----)")),
        Err(error) => Err(problem(option, path, &format!("is not well-formed PEM: {error}"))),
    }
}

fn private_key(
    option: &str,
    path: &Path,
    bytes: &[u8],
    format: KeyFormat,
) -> Result<PrivateKeyDer<'static>, String> {
    if format == KeyFormat::Der {
        return PrivateKeyDer::try_from(bytes.to_vec())
            .map_err(|_| problem(option, path, "is no private key in DER; see -o ssl_keyformat"));
    }
    PrivateKeyDer::from_pem_slice(bytes).map_err(|_| {
        let is_encrypted = bytes.windows(9).any(|word| word == b"ENCRYPTED");
        let what = match (is_encrypted, option) {
            (true, _) => {
                "the private key is encrypted, and nobody is there to type its passphrase: decrypt it with \
                 openssl pkey -in FILE -out FILE2, readable by this user alone"
            }
            (false, "ssl_key") => "holds no private key in PEM; for DER give -o ssl_keyformat=DER",
            (false, _) => "holds no private key: name its file with -o ssl_key=FILE",
        };
        problem(option, path, what)
    })
}
