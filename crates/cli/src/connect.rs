//! The way to a server: its address, login and certificates from the command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use larder_client::{Client, Login, Options, Server, Tls, TlsOptions, Trust};

use crate::exit::{Failure, Outcome};
use crate::units;

const SERVER_DEFAULT: &str = "127.0.0.1:11211";
/// The largest value that a server can be told to accept.
pub const VALUE_BYTES_MAX: usize = 1 << 30;
/// What one batch may bring: one largest value, and the small ones around it.
const BATCH_BYTES_MAX: usize = VALUE_BYTES_MAX + (64 << 20);
/// The longest that one batch may take, and the longest silence of a list of keys.
const CALL_TIMEOUT: Duration = Duration::from_secs(300);

/// How servers are reached: the same for both ends of a copy.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Connection")]
pub struct Reach {
    /// Verify certificates of servers with TLS by the authorities in this file, not by this host's
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// Accept any certificate; for tests
    #[arg(long, conflicts_with = "tls_ca")]
    pub tls_unverified: bool,
    /// Present the certificate in this file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of that certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// The name that servers' certificates must have; by default the host of the address
    #[arg(long, value_name = "NAME")]
    pub tls_name: Option<String>,
    /// The longest silence of a server
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::duration)]
    pub timeout: Duration,
}

/// One server.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Connection")]
pub struct One {
    /// The server: HOST[:PORT] or the path of a unix socket; tls: in front speaks TLS [default: 127.0.0.1:11211]
    #[arg(long, short, value_name = "ADDRESS")]
    pub server: Option<String>,
    /// Log in with the first line of this file, USER:PASSWORD
    #[arg(long, value_name = "FILE")]
    pub login: Option<PathBuf>,
    #[command(flatten)]
    pub reach: Reach,
}

impl One {
    /// Returns its address.
    pub fn address(&self) -> &str {
        self.server.as_deref().unwrap_or(SERVER_DEFAULT)
    }

    /// Returns a client of the server. It connects when it is used.
    ///
    /// # Errors
    /// The address, login or certificates cannot be used.
    pub fn client(&self) -> Outcome<Client> {
        self.reach.client(self.address(), self.login.as_deref())
    }
}

impl Reach {
    /// Returns a client of one server. It connects when it is used.
    ///
    /// # Errors
    /// The address, login or certificates cannot be used.
    pub fn client(&self, address: &str, login: Option<&Path>) -> Outcome<Client> {
        let plain = address.strip_prefix("tls:");
        let server: Server = plain
            .unwrap_or(address)
            .parse()
            .map_err(|bad| Failure::Usage(format!("{bad}; tls: may go in front")))?;
        let tls = plain.map(|_| self.tls()).transpose()?;
        let login = login.map(read_login).transpose()?;
        let options = Options {
            login,
            tls,
            connect_timeout: self.timeout,
            timeout: self.timeout,
            call_timeout: CALL_TIMEOUT.max(self.timeout),
            value_bytes_max: VALUE_BYTES_MAX,
            batch_bytes_max: BATCH_BYTES_MAX,
            ..Options::default()
        };
        Ok(Client::new([server], options)?)
    }

    fn tls(&self) -> Outcome<Tls> {
        let trust = match (&self.tls_ca, self.tls_unverified) {
            (Some(file), _) => Trust::File(file.clone()),
            (None, true) => Trust::AnyUnverified,
            (None, false) => Trust::System,
        };
        let identity = self.tls_cert.clone().zip(self.tls_key.clone());
        let options = TlsOptions { trust, identity, server_name: self.tls_name.clone() };
        Tls::new(&options).map_err(Failure::of)
    }
}

/// Returns whether an address can only be of this host.
pub fn is_local(address: &str) -> bool {
    let address = address.strip_prefix("tls:").unwrap_or(address);
    let is_socket = address.starts_with('/') || address.starts_with("unix:");
    is_socket || ["127.", "localhost", "[::1]"].iter().any(|local| address.starts_with(local))
}

/// Reads `USER:PASSWORD` from the first line of a file that is no section of a file of users.
fn read_login(path: &Path) -> Outcome<Login> {
    let failed = |problem: String| Failure::Failed(format!("{}: {problem}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let is_login = |line: &&str| !line.is_empty() && !line.starts_with(['[', '#']);
    let login = text.lines().find(is_login).and_then(|line| line.split_once(':'));
    let (user, password) = login.ok_or_else(|| failed("holds no line USER:PASSWORD".to_string()))?;
    Login::new(user, password.as_bytes()).map_err(|bad| failed(bad.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach() -> Reach {
        Reach {
            tls_ca: None,
            tls_unverified: true,
            tls_cert: None,
            tls_key: None,
            tls_name: None,
            timeout: Duration::from_secs(1),
        }
    }

    #[test]
    fn tls_follows_from_the_address() {
        let client = |address| reach().client(address, None).expect("an address");
        assert!(client("cache:1").options().tls.is_none());
        assert!(client("tls:cache:1").options().tls.is_some());
        assert!(matches!(reach().client("tls:", None), Err(Failure::Usage(_))));
    }

    #[test]
    fn a_login_is_the_first_line_that_is_one() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        for (text, user) in
            [("shop:a:b", Some("shop")), ("[read]\n\n# x\nme:p\n", Some("me")), ("none\n", None)]
        {
            std::fs::write(file.path(), text).expect("it is written");
            let login = read_login(file.path()).ok();
            assert_eq!(login.as_ref().map(Login::user), user, "{text}");
        }
        assert!(read_login(Path::new("/nonexistent")).is_err());
    }
}
