//! Listening sockets that the service manager keeps while no daemon runs: a client that connects then waits for the
//! next daemon instead of being refused.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::net::SocketType;
use rustix::net::sockopt::{socket_acceptconn, socket_type};
use socket2::{SockRef, Socket};

use crate::service::{OWN_PREFIX, Service};

/// Returns the passed socket that listens at an address, and its own address; a wanted port of 0 is any.
///
/// # Errors
/// The error that the system reports.
pub fn take_tcp(service: &mut Service, wanted: SocketAddr) -> io::Result<Option<(Socket, SocketAddr)>> {
    let is_wanted = |address: SocketAddr| {
        address.ip() == wanted.ip() && (wanted.port() == 0 || address.port() == wanted.port())
    };
    let taken = service.take(|passed| tcp_address(&passed.descriptor).is_some_and(is_wanted));
    let Some(socket) = taken else { return Ok(None) };
    let address = tcp_address(&socket).unwrap_or(wanted);
    let socket = Socket::from(socket);
    socket.set_nonblocking(true)?;
    Ok(Some((socket, address)))
}

/// Returns the passed socket that listens at a path, if the path still leads to it.
///
/// # Errors
/// The error that the system reports.
pub fn take_unix(service: &mut Service, path: &Path) -> io::Result<Option<Socket>> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(None) };
    let name = unix_name(metadata.dev(), metadata.ino());
    let taken = service.take(|passed| passed.name == name && listens(&passed.descriptor));
    let socket = taken.map(Socket::from);
    socket.as_ref().map_or(Ok(()), |socket| socket.set_nonblocking(true))?;
    Ok(socket)
}

/// Gives the service manager a TCP socket to keep.
///
/// # Errors
/// A text for the operator.
pub fn keep_tcp(service: &Service, address: SocketAddr, socket: &Socket) -> Result<(), String> {
    // A name has no colon.
    let name = format!("{OWN_PREFIX}tcp-{}", address.to_string().replace(':', "_"));
    service.keep(&name, socket.as_fd()).map_err(|error| cannot_keep(&address.to_string(), &error))
}

/// Gives the service manager a Unix socket to keep, by the device and inode of its file.
///
/// # Errors
/// A text for the operator.
pub fn keep_unix(service: &Service, file: (&Path, u64, u64), socket: &OwnedFd) -> Result<(), String> {
    let (path, device, inode) = file;
    let kept = service.keep(&unix_name(device, inode), socket.as_fd());
    kept.map_err(|error| cannot_keep(&path.display().to_string(), &error))
}

fn cannot_keep(shown: &str, error: &io::Error) -> String {
    format!(
        "the service manager cannot be given the socket of {shown}: {error}; check NOTIFY_SOCKET, or give \
         --memory-file a path"
    )
}

fn unix_name(device: u64, inode: u64) -> String {
    format!("{OWN_PREFIX}unix-{device}-{inode}")
}

fn listens(socket: &OwnedFd) -> bool {
    socket_type(socket) == Ok(SocketType::STREAM) && socket_acceptconn(socket) == Ok(true)
}

fn tcp_address(socket: &OwnedFd) -> Option<SocketAddr> {
    let is_listening = listens(socket);
    is_listening.then(|| SockRef::from(socket).local_addr().ok()?.as_socket()).flatten()
}
