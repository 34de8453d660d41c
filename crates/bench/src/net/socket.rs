//! A socket, TCP or Unix, below TLS.

use super::Address;
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
