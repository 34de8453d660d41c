//! The options of TLS, for every command that makes a load.

use super::Failure;
use crate::engine::Address;
use crate::net::tls::{Options, Tls};
use std::path::PathBuf;

/// The options of TLS.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Speak TLS with the server
    #[arg(long, help_heading = "TLS")]
    pub tls: bool,
    /// Trust these certificates (PEM) [default: those that this host trusts]
    #[arg(long, visible_alias = "cacert", value_name = "FILE", help_heading = "TLS", requires = "tls")]
    pub tls_ca: Option<PathBuf>,
    /// Our own certificate (PEM), for a server that asks for one
    #[arg(long, visible_alias = "cert", value_name = "FILE", help_heading = "TLS")]
    #[arg(requires_all = ["tls", "tls_key"])]
    pub tls_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, visible_alias = "key", value_name = "FILE", help_heading = "TLS")]
    #[arg(requires_all = ["tls", "tls_cert"])]
    pub tls_key: Option<PathBuf>,
    /// Take any certificate of the server; the result says so
    #[arg(
        long,
        visible_alias = "insecure",
        help_heading = "TLS",
        requires = "tls",
        conflicts_with = "tls_ca"
    )]
    pub tls_skip_verify: bool,
    /// The name that the server's certificate is for [default: the address's]
    #[arg(long, visible_alias = "sni", value_name = "NAME", help_heading = "TLS", requires = "tls")]
    pub tls_server_name: Option<String>,
}

impl Args {
    /// How to speak TLS with a server, if the options ask for it. The files are read here and now.
    ///
    /// # Errors
    /// A file is missing or malformed, or a name is invalid.
    pub fn tls(&self, address: &Address) -> Result<Option<Tls>, Failure> {
        if !self.tls {
            return Ok(None);
        }
        let options = Options {
            ca: self.tls_ca.clone(),
            identity: self.tls_cert.clone().zip(self.tls_key.clone()),
            skip_verify: self.tls_skip_verify,
            server_name: self.tls_server_name.clone(),
        };
        Ok(Some(Tls::new(&options, address)?))
    }
}
