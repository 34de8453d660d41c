//! Opens the socket of the HTTP interface, if nobody but the operator is meant to be able to read it.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;

use super::listen::{bind_tcp, is_loopback, listen_unix};
use crate::config::{Config, HTTP_PORT, HttpAddress, HttpOptions, Listen, ListenTls, Protocol, UnixSocket};
use crate::http;
use crate::listener::Listener;
use crate::small_file::exposure;

/// The kernel's queue of connections to be accepted.
const BACKLOG: i32 = 128;

/// Listens at the address of `--http`, if there is one.
///
/// # Errors
/// A text for the operator, with a remedy.
pub fn listen(config: &Config) -> Result<Option<Listener>, String> {
    let Some(options) = &config.http else { return Ok(None) };
    if let Some(path) = &options.token_file {
        let shown = format!("--http-token-file {}", path.display());
        http::read_token(path).map_err(|what| format!("{shown}: {what}"))?;
        if let Some(warning) = std::fs::metadata(path).ok().and_then(|file| exposure(file.mode())) {
            tracing::warn!("{shown}: {warning}");
        }
    }
    match &options.address {
        HttpAddress::Tcp(listen) => listen_tcp(options, listen),
        HttpAddress::Unix(path) => {
            let unix = UnixSocket { path: path.clone(), mode: config.unix_mask };
            listen_unix(&unix, Protocol::Auto, BACKLOG, "--http")
                .map_err(|what| format!("--http unix:{}: {what}", path.display()))
        }
    }
    .map(Some)
}

fn listen_tcp(options: &HttpOptions, listen: &Listen) -> Result<Listener, String> {
    let host = listen.host.as_deref().unwrap_or("*");
    let unresolved = |error| format!("--http {host}: {error}; give an address of this host");
    let addresses = listen.resolve(HTTP_PORT).map_err(unresolved)?;
    let address = addresses.first().copied().ok_or_else(|| format!("--http {host}: there is no address"))?;
    check_exposure(options, address)?;
    let failed = |error| format!("--http {address}: {error}; choose another address");
    let (socket, bound) = bind_tcp(address).map_err(failed)?;
    socket.listen(BACKLOG).map_err(failed)?;
    Ok(Listener {
        socket: socket.into(),
        name: bound.to_string(),
        port: Some(bound.port()),
        tls: ListenTls::Off,
        protocol: Protocol::Auto,
        is_exposed: !is_loopback(bound),
        file: None,
    })
}

/// Refuses an address at which other hosts could read the figures, unless they need a token or are meant to.
fn check_exposure(options: &HttpOptions, address: SocketAddr) -> Result<(), String> {
    if is_loopback(address) || options.is_open || options.token_file.is_some() {
        return Ok(());
    }
    Err(format!(
        "--http {address} would let every host that reaches it read this daemon's figures: give a token with \
         --http-token-file FILE, or an address of loopback or unix:PATH, or --http-open where a firewall \
         keeps others out"
    ))
}
