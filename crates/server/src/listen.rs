//! Listening sockets: bound, described, announced. Nobody is accepted here.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::config::{Config, TcpPort, UnixSocket};

/// A socket that listens.
pub struct Listener {
    /// The socket, non-blocking.
    pub socket: OwnedFd,
    /// Where: an address or a path.
    pub name: String,
    /// Its TCP port, if it has one.
    pub port: Option<u16>,
}

/// Opens every socket of the configuration.
///
/// # Errors
/// A text for the operator that says what to do.
pub fn open(config: &Config) -> Result<Vec<Listener>, String> {
    if let Some(unix) = &config.unix_socket {
        return Ok(vec![open_unix(unix, config.backlog)?]);
    }
    let port = match config.tcp_port {
        TcpPort::Off => {
            return Err("there is nothing to listen on: give a port with -p or a Unix socket with -s".into());
        }
        TcpPort::Ephemeral => 0,
        TcpPort::Fixed(port) => port,
    };
    let mut listeners: Vec<Listener> = Vec::new();
    for entry in &config.listen {
        let host = entry.host.as_deref().unwrap_or("*");
        let addresses = entry
            .resolve(port)
            .map_err(|error| format!("-l {host}: {error}; give an address of this host"))?;
        for address in addresses {
            let any_v6 = entry.host.is_none() && address.is_ipv6();
            // The kernel picks one port; both families use it.
            let picked =
                listeners.iter().find_map(|open| open.port).filter(|_| any_v6 && address.port() == 0);
            let address = SocketAddr::new(address.ip(), picked.unwrap_or(address.port()));
            match open_tcp(address, config.backlog) {
                Ok(listener) => listeners.push(listener),
                Err(_) if any_v6 => {}
                Err(error) => return Err(tcp_problem(address, &error)),
            }
        }
    }
    Ok(listeners)
}

fn open_tcp(address: SocketAddr, backlog: u32) -> io::Result<Listener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog.min(i32::MAX as u32) as i32)?;
    let bound = socket.local_addr()?.as_socket();
    let name = bound.map_or_else(|| address.to_string(), |bound| bound.to_string());
    Ok(Listener { socket: socket.into(), name, port: bound.map(|bound| bound.port()) })
}

fn tcp_problem(address: SocketAddr, error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; another process listens there: stop it, or choose another port with -p"
        }
        io::ErrorKind::PermissionDenied => "; ports below 1024 need root: choose another with -p",
        io::ErrorKind::AddrNotAvailable => "; this host does not have that address: choose another with -l",
        _ => "",
    };
    format!("cannot listen on {address}: {error}{advice}")
}

fn open_unix(unix: &UnixSocket, backlog: u32) -> Result<Listener, String> {
    let shown = unix.path.display();
    remove_stale(&unix.path).map_err(|what| format!("cannot listen on {shown}: {what}"))?;
    let open = || -> io::Result<Socket> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.bind(&SockAddr::unix(&unix.path)?)?;
        fs::set_permissions(&unix.path, fs::Permissions::from_mode(unix.mode))?;
        socket.listen(backlog.min(i32::MAX as u32) as i32)?;
        Ok(socket)
    };
    match open() {
        Ok(socket) => {
            Ok(Listener { socket: socket.into(), name: unix.path.display().to_string(), port: None })
        }
        Err(error) => Err(format!(
            "cannot listen on {shown}: {error}; choose another path with -s, in a directory you can write"
        )),
    }
}

/// Removes a socket that nobody listens on any more; anything else in the way stays.
fn remove_stale(path: &Path) -> Result<(), String> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(()) };
    if !metadata.file_type().is_socket() {
        return Err("there is a file that is no socket; remove it or choose another path with -s".into());
    }
    if UnixStream::connect(path).is_ok() {
        return Err("another process listens there; stop it, or choose another path with -s".into());
    }
    fs::remove_file(path).map_err(|error| format!("the stale socket cannot be removed: {error}"))
}

/// Writes the names of the sockets where `MEMCACHED_PORT_FILENAME` says, all at once.
pub fn announce(path: &Path, listeners: &[Listener]) -> io::Result<()> {
    let lines: String = listeners
        .iter()
        .map(|listener| match listener.port {
            Some(port) if listener.name.starts_with('[') => format!("TCP INET6: {port}\n"),
            Some(port) => format!("TCP INET: {port}\n"),
            None => format!("UNIX: {}\n", listener.name),
        })
        .collect();
    let mut partial = path.as_os_str().to_owned();
    partial.push(".lck");
    fs::write(&partial, lines)?;
    fs::rename(&partial, path)
}
