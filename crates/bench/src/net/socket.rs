//! A socket, TCP or Unix, below TLS.

use super::Address;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long a connection to one address may take.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connected socket.
#[derive(Debug)]
pub enum Socket {
    /// TCP, without delay of small pieces.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
}

impl Socket {
    /// Connects, within [`CONNECT_TIMEOUT`] for each of the address's numbers.
    ///
    /// # Errors
    /// The server is unreachable.
    pub(super) fn open(address: &Address) -> io::Result<Self> {
        match address {
            Address::Unix(path) => UnixStream::connect(path).map(Self::Unix),
            Address::Tcp { .. } => {
                let stream = connect_any(&address.resolve()?)?;
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
        }
    }

    /// Begins to connect to where a socket is connected to, without waiting for it; a Unix socket is connected at once.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn begin_again(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(tcp) => begin(tcp.peer_addr()?).map(Self::Tcp),
            Self::Unix(unix) => {
                let path = unix.peer_addr()?.as_pathname().map(std::path::Path::to_path_buf);
                let socket = UnixStream::connect(path.ok_or(io::ErrorKind::NotFound)?)?;
                socket.set_nonblocking(true)?;
                Ok(Self::Unix(socket))
            }
        }
    }

    /// Has the socket closed at once and without a trace: thousands of closed connections that linger would use up this
    /// host's ports.
    pub(super) fn forget(&self) -> io::Result<()> {
        match self {
            Self::Tcp(tcp) => Ok(sockopt::set_socket_linger(tcp, Some(Duration::ZERO))?),
            Self::Unix(_) => Ok(()),
        }
    }

    pub(super) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Tcp(tcp) => tcp.set_nonblocking(true),
            Self::Unix(unix) => unix.set_nonblocking(true),
        }
    }

    pub(super) fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(tcp) => {
                tcp.set_read_timeout(Some(timeout))?;
                tcp.set_write_timeout(Some(timeout))
            }
            Self::Unix(unix) => {
                unix.set_read_timeout(Some(timeout))?;
                unix.set_write_timeout(Some(timeout))
            }
        }
    }
}

/// Begins a connection that is established when it can be written to.
fn begin(peer: SocketAddr) -> io::Result<TcpStream> {
    let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, &peer) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn connect_any(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        match TcpStream::connect_timeout(address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(tcp) => tcp.read(buffer),
            Self::Unix(unix) => unix.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(tcp) => tcp.write(bytes),
            Self::Unix(unix) => unix.write(bytes),
        }
    }

    fn write_vectored(&mut self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(tcp) => tcp.write_vectored(pieces),
            Self::Unix(unix) => unix.write_vectored(pieces),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
