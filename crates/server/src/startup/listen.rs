//! Listening sockets: bound when the daemon starts, listening once it can serve. The worker accepts connections.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

use socket2::{Domain, SockAddr, Socket, Type};

use crate::config::{Config, Listen, ListenTls, Personality, Protocol, TcpPort, UnixSocket};
use crate::listener::Listener;
use crate::service::Service;

use super::kept_sockets;

/// The addresses of a daemon that does not serve yet. A peer that connects to one is refused, so that a health
/// check does not pass before the store is open; at a socket that the service manager kept it waits.
pub struct Bound {
    tcp: Vec<BoundTcp>,
    /// A Unix socket that the service manager kept.
    unix: Option<Socket>,
}

/// A TCP socket that is bound.
struct BoundTcp {
    socket: Socket,
    address: SocketAddr,
    how: How,
    /// Whether the service manager passed it, and keeps it.
    is_kept: bool,
}

/// How the connections of an address speak.
#[derive(Clone, Copy)]
struct How {
    tls: ListenTls,
    protocol: Protocol,
}

impl How {
    fn of(entry: &Listen, config: &Config) -> How {
        let tls = if config.tls.is_some() { entry.tls } else { ListenTls::Off };
        How { tls, protocol: entry.protocol.unwrap_or(config.protocol) }
    }
}

/// Takes the TCP addresses of the configuration for this process, and finds out whether its Unix socket is free.
/// Sockets that the service manager passed are used.
///
/// # Errors
/// A text for the operator, with a remedy.
pub fn bind(config: &Config, service: &mut Service) -> Result<Bound, String> {
    let mut tcp: Vec<BoundTcp> = Vec::new();
    if let Some(unix) = &config.unix_socket {
        let kept = kept_sockets::take_unix(service, &unix.path)
            .map_err(|error| unix_problem(unix, &error.to_string()))?;
        if kept.is_none() {
            check_stale(&unix.path, "-s").map_err(|what| unix_problem(unix, &what))?;
        }
        return Ok(Bound { tcp, unix: kept });
    }
    let port = match config.tcp_port {
        TcpPort::Off => {
            return Err("there is nothing to listen on: give a port with -p or a Unix socket with -s".into());
        }
        TcpPort::Ephemeral => 0,
        TcpPort::Fixed(port) => port,
    };
    for entry in &config.listen {
        let (host, how) = (entry.host.as_deref().unwrap_or("*"), How::of(entry, config));
        let addresses = entry
            .resolve(port)
            .map_err(|error| format!("-l {host}: {error}; give an address of this host"))?;
        for address in addresses {
            let any_v6 = entry.host.is_none() && address.is_ipv6();
            // The kernel picks one port; both families use it.
            let picked =
                tcp.first().map(|bound| bound.address.port()).filter(|_| any_v6 && address.port() == 0);
            let address = SocketAddr::new(address.ip(), picked.unwrap_or(address.port()));
            check_exposure(config, address, how.tls)?;
            let kept = kept_sockets::take_tcp(service, address);
            let kept = kept.map_err(|error| tcp_problem(address, &error))?;
            if let Some((socket, address)) = kept {
                tcp.push(BoundTcp { socket, address, how, is_kept: true });
                continue;
            }
            match bind_tcp(address) {
                Ok((socket, address)) => tcp.push(BoundTcp { socket, address, how, is_kept: false }),
                Err(_) if any_v6 => {}
                Err(error) => return Err(tcp_problem(address, &error)),
            }
        }
    }
    Ok(Bound { tcp, unix: None })
}

/// Refuses an address at which other hosts could read and write all items, unless the operator allows it. Under
/// memcached's name it is allowed, as in memcached, and the greeting warns of it.
fn check_exposure(config: &Config, address: SocketAddr, tls: ListenTls) -> Result<(), String> {
    let is_meant = config.insecure_listen || config.personality == Personality::Memcached;
    if is_meant || config.auth_file.is_some() || tls != ListenTls::Off || is_loopback(address) {
        return Ok(());
    }
    Err(format!(
        "listening on {address} without authentication or TLS would let every host that reaches it read and \
         write all items: give users with -Y FILE, or TLS with -Z, or listen on 127.0.0.1 or a Unix socket \
         (-s), or give --insecure-listen where a firewall keeps others out"
    ))
}

pub(super) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Binds and listens at once.
///
/// # Errors
/// A text for the operator, with a remedy.
pub fn open(config: &Config) -> Result<Vec<Listener>, String> {
    let mut service = Service::default();
    bind(config, &mut service)?.listen(config, &service)
}

pub(super) fn bind_tcp(address: SocketAddr) -> io::Result<(Socket, SocketAddr)> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(socket2::Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    let bound = socket.local_addr()?.as_socket().unwrap_or(address);
    Ok((socket, bound))
}

impl Bound {
    /// Begins to listen. With the memory in the service manager's hands, it is given the sockets too.
    ///
    /// # Errors
    /// A text for the operator, with a remedy.
    pub fn listen(self, config: &Config, service: &Service) -> Result<Vec<Listener>, String> {
        let backlog = config.backlog.min(i32::MAX as u32) as i32;
        let keeps = config.keeps_memory_in_service();
        let mut listeners = Vec::new();
        for BoundTcp { socket, address, how, is_kept } in self.tcp {
            socket.listen(backlog).map_err(|error| tcp_problem(address, &error))?;
            if keeps && !is_kept {
                kept_sockets::keep_tcp(service, address, &socket)?;
            }
            listeners.push(Listener {
                socket: socket.into(),
                name: address.to_string(),
                port: Some(address.port()),
                tls: how.tls,
                protocol: how.protocol,
                is_exposed: !is_loopback(address),
                file: None,
            });
        }
        if let Some(unix) = &config.unix_socket {
            let open = || match self.unix {
                Some(socket) => listen_again(unix, socket, config.protocol, backlog),
                None => listen_unix(unix, config.protocol, backlog, "-s"),
            };
            let mut listener = open().map_err(|what| unix_problem(unix, &what))?;
            if keeps && let Some((path, device, inode)) = &listener.file {
                kept_sockets::keep_unix(service, (path, *device, *inode), &listener.socket)?;
                // Its file leads to the socket that is kept.
                listener.file = None;
            }
            listeners.push(listener);
        }
        Ok(listeners)
    }
}

/// Goes on with a Unix socket that was kept. Its file stays when this daemon ends.
fn listen_again(
    unix: &UnixSocket,
    socket: Socket,
    protocol: Protocol,
    backlog: i32,
) -> Result<Listener, String> {
    let ready = fs::set_permissions(&unix.path, fs::Permissions::from_mode(unix.mode))
        .and_then(|()| socket.listen(backlog));
    ready.map_err(|error| format!("{error}; remove the file, and start again"))?;
    Ok(unix_listener(unix, socket, protocol, None))
}

fn unix_listener(
    unix: &UnixSocket,
    socket: Socket,
    protocol: Protocol,
    file: Option<fs::Metadata>,
) -> Listener {
    Listener {
        socket: socket.into(),
        name: unix.path.display().to_string(),
        port: None,
        // Nobody between the two ends of a Unix socket could listen in.
        tls: ListenTls::Off,
        protocol,
        is_exposed: false,
        file: file.map(|metadata| (unix.path.clone(), metadata.dev(), metadata.ino())),
    }
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

fn unix_problem(unix: &UnixSocket, what: &str) -> String {
    format!("cannot listen on {}: {what}", unix.path.display())
}

/// Listens on a Unix socket; `option` is the one that names it, for the operator.
pub(super) fn listen_unix(
    unix: &UnixSocket,
    protocol: Protocol,
    backlog: i32,
    option: &str,
) -> Result<Listener, String> {
    if check_stale(&unix.path, option)? {
        fs::remove_file(&unix.path)
            .map_err(|error| format!("the stale socket cannot be removed: {error}"))?;
    }
    let open = || -> io::Result<(Socket, fs::Metadata)> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.bind(&SockAddr::unix(&unix.path)?)?;
        let metadata = fs::symlink_metadata(&unix.path)?;
        fs::set_permissions(&unix.path, fs::Permissions::from_mode(unix.mode))?;
        socket.listen(backlog)?;
        Ok((socket, metadata))
    };
    let (socket, metadata) = open().map_err(|error| {
        format!("{error}; choose another path with {option}, in a directory you can write")
    })?;
    Ok(unix_listener(unix, socket, protocol, Some(metadata)))
}

/// Returns whether there is a socket that no process listens on any more. It is an error if anything else is in the
/// way.
fn check_stale(path: &Path, option: &str) -> Result<bool, String> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(false) };
    if !metadata.file_type().is_socket() {
        return Err(format!(
            "there is a file that is no socket; remove it or choose another path with {option}"
        ));
    }
    let connect = || -> io::Result<()> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.connect(&SockAddr::unix(path)?)
    };
    match connect() {
        // Only this error shows that there is no listener. A full queue or a lack of rights does not.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(true),
        _ => Err(format!("another process listens there; stop it, or choose another path with {option}")),
    }
}

/// Returns the lines of the file that `MEMCACHED_PORT_FILENAME` names.
pub fn announcement(listeners: &[Listener]) -> String {
    let line = |listener: &Listener| match listener.port {
        Some(port) if listener.name.starts_with('[') => format!("TCP INET6: {port}\n"),
        Some(port) => format!("TCP INET: {port}\n"),
        None => format!("UNIX: {}\n", listener.name),
    };
    listeners.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn an_address_is_taken_at_once_and_served_later() {
        let args = ["memcached", "-p", "-1", "-l", "127.0.0.1"];
        let config = Config::from_args(args).expect("valid options");
        let mut service = Service::default();
        let bound = bind(&config, &mut service).expect("a port is free");
        let port = bound.tcp[0].address.port();
        let refused = TcpStream::connect(("127.0.0.1", port)).expect_err("nothing listens yet");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let listeners = bound.listen(&config, &service).expect("it is this process's");
        assert_eq!(listeners[0].port, Some(port));
        TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        let args = ["memcached", "-p", &port.to_string(), "-l", "127.0.0.1"];
        let config = Config::from_args(args).expect("valid options");
        let said = bind(&config, &mut service).map(|_| ()).expect_err("in use");
        assert!(said.contains("another process listens there"), "{said}");
    }

    #[test]
    fn only_a_socket_without_a_listener_is_replaced_and_only_an_own_one_removed() {
        let folder = std::env::temp_dir().join(format!("larder-listen-{}", std::process::id()));
        fs::create_dir(&folder).expect("the temporary directory can be written");
        let path = folder.join("socket");
        let shown = path.display().to_string();
        let config = Config::from_args(["memcached", "-s", &shown]).expect("valid options");
        // A listener whose queue is full.
        let full = Socket::new(Domain::UNIX, Type::STREAM, None).expect("a socket");
        full.bind(&SockAddr::unix(&path).expect("a path")).and_then(|()| full.listen(0)).expect("it listens");
        let peers: Vec<Socket> = std::iter::from_fn(|| {
            let peer = Socket::new(Domain::UNIX, Type::STREAM, None).expect("a socket");
            peer.set_nonblocking(true).expect("an option");
            peer.connect(&SockAddr::unix(&path).expect("a path")).is_ok().then_some(peer)
        })
        .take(100)
        .collect();
        assert!(peers.len() < 100);
        assert!(open(&config).map(|_| ()).expect_err("in use").contains("another process listens there"));
        assert!(path.exists());
        drop((full, peers));
        let listeners = open(&config).expect("a stale socket");
        fs::remove_file(&path).expect("it is there");
        fs::write(&path, "somebody's").expect("room");
        drop(listeners);
        assert!(path.exists(), "it is another file by now");
        assert!(open(&config).map(|_| ()).expect_err("a file").contains("no socket"));
        let _ = fs::remove_dir_all(&folder);
    }
}
