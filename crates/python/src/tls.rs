//! The class `Tls`: how a client speaks TLS.

use std::path::PathBuf;

use larder_client::{TlsOptions, Trust};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// How a client speaks TLS: whose certificates it trusts, and its own. The files are in PEM and read once.
#[pyclass(frozen, module = "larder")]
pub struct Tls {
    inner: larder_client::Tls,
    options: TlsOptions,
}

#[pymethods]
impl Tls {
    /// `ca` is the file of the authorities that servers' certificates have to be of; without one it is those that the
    /// host trusts. `cert` and `key` are for servers that ask for a certificate; without `key` it is in the file
    /// `cert`. `server_name` is the name in the servers' certificates, if it is not the host of their addresses.
    /// `unverified` accepts any certificate, so that anyone can stand in the server's place.
    #[new]
    #[pyo3(signature = (ca=None, cert=None, key=None, *, server_name=None, unverified=false))]
    fn new(
        ca: Option<PathBuf>,
        cert: Option<PathBuf>,
        key: Option<PathBuf>,
        server_name: Option<String>,
        unverified: bool,
    ) -> PyResult<Self> {
        let trust = match (ca, unverified) {
            (Some(_), true) => return Err(PyValueError::new_err("give ca or unverified, not both")),
            (Some(path), false) => Trust::File(path),
            (None, true) => Trust::AnyUnverified,
            (None, false) => Trust::System,
        };
        let identity = match (cert, key) {
            (Some(cert), key) => Some((cert.clone(), key.unwrap_or(cert))),
            (None, Some(_)) => return Err(PyValueError::new_err("a key needs its certificate: give cert")),
            (None, None) => None,
        };
        let options = TlsOptions { trust, identity, server_name };
        let inner = larder_client::Tls::new(&options);
        let inner = inner.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Tls { inner, options })
    }

    /// Tells clients apart: two with the same text are made alike.
    fn __repr__(&self) -> String {
        let TlsOptions { trust, identity, server_name } = &self.options;
        format!("<larder.Tls {trust:?} {identity:?} {server_name:?}>")
    }
}

/// The argument `tls` of a client.
#[derive(FromPyObject)]
pub enum Spoken {
    /// Whether it is spoken with servers that the host trusts.
    Whether(bool),
    /// As this says.
    As(Py<Tls>),
}

impl Spoken {
    /// Returns the client's own; `None` if TLS is not spoken.
    ///
    /// # Errors
    /// When the host trusts no authority.
    pub fn tls(self) -> PyResult<Option<larder_client::Tls>> {
        Ok(match self {
            Spoken::Whether(false) => None,
            Spoken::Whether(true) => Some(Tls::new(None, None, None, None, false)?.inner),
            Spoken::As(tls) => Some(tls.get().inner.clone()),
        })
    }
}
