//! The bytes of one connection, whatever carries them: TCP or a Unix socket, plain or in TLS.

use super::tls::stream::TlsStream;
use super::{Address, Error, Plan, Tls};
use crate::wire::Protocol;
use rustix::fd::{AsFd, BorrowedFd};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server that speaks TLS may take to show that it takes our certificate.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// What carries a connection.
#[derive(Debug)]
pub enum Socket {
    /// TCP, without delay of small pieces.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
}

/// The bytes of one connection; reads and writes do not wait.
#[derive(Debug)]
pub enum Stream {
    /// As they are.
    Plain(Socket),
    /// Encrypted.
    Tls(Box<TlsStream>),
}

/// Makes sure that the plan's server is there, and with TLS that both sides agree; then says on what.
///
/// # Errors
/// It is not there, or there is no agreement.
pub fn reach(plan: &Plan) -> Result<Option<String>, Error> {
    let Some(tls) = &plan.tls else { return Stream::connect(&plan.address, None).map(|_| None) };
    let in_words = |source: &io::Error| refused(&plan.address, tls, source);
    let mut stream = Stream::open(&plan.address, Some(tls), CONNECT_TIMEOUT)?;
    // Whether our certificate is liked shows with TLS 1.3 in the first answer only. memcached's relatives
    // answer text on any connection; whoever does not is reached nevertheless.
    stream.socket().set_timeout(PROBE_TIMEOUT).map_err(|e| in_words(&e))?;
    let ask: &[u8] = if plan.protocol == Protocol::Resp2 { b"*1\r\n$4\r\nPING\r\n" } else { b"version\r\n" };
    let answered = stream.write(ask).and_then(|_| stream.read(&mut [0; 256]));
    match answered.map_err(|error| (error.kind(), error)) {
        Err((io::ErrorKind::InvalidData, error)) => Err(in_words(&error)),
        Err((io::ErrorKind::ConnectionReset, _)) => {
            let says = "it broke the connection after the handshake: it may want a certificate of ours";
            Err(Error::Tls { address: plan.address.to_string(), says: says.to_string() })
        }
        _ => Ok(stream.agreed()),
    }
}

fn refused(address: &Address, tls: &Tls, source: &io::Error) -> Error {
    Error::Tls { address: address.to_string(), says: tls.in_words(source) }
}

impl Stream {
    /// Connects, and waits for that at most a few seconds.
    ///
    /// # Errors
    /// The server is not there, or does not agree on TLS.
    pub fn connect(address: &Address, tls: Option<&Tls>) -> Result<Self, Error> {
        let stream = Self::open(address, tls, CONNECT_TIMEOUT)?;
        let failed = |source| Error::Connect { address: address.to_string(), source };
        stream.socket().set_nonblocking().map_err(failed)?;
        Ok(stream)
    }

    /// Connects for plain calls that wait, at most `timeout` each.
    ///
    /// # Errors
    /// The server is not there, or does not agree on TLS.
    pub fn connect_waiting(address: &Address, tls: Option<&Tls>, timeout: Duration) -> Result<Self, Error> {
        let stream = Self::open(address, tls, timeout)?;
        let failed = |source| Error::Connect { address: address.to_string(), source };
        stream.socket().set_timeout(timeout).map_err(failed)?;
        Ok(stream)
    }

    /// Opens one whose calls wait; in a handshake at most `timeout` each.
    fn open(address: &Address, tls: Option<&Tls>, timeout: Duration) -> Result<Self, Error> {
        let failed = |source| Error::Connect { address: address.to_string(), source };
        let socket = Socket::open(address).map_err(failed)?;
        let Some(tls) = tls else { return Ok(Self::Plain(socket)) };
        socket.set_timeout(timeout).map_err(failed)?;
        let stream = TlsStream::handshake(tls, socket).map_err(|source| refused(address, tls, &source))?;
        Ok(Self::Tls(Box::new(stream)))
    }

    fn socket(&self) -> &Socket {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => &tls.socket,
        }
    }

    /// The version and the cipher of TLS, where there is one.
    pub fn agreed(&self) -> Option<String> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(tls) => Some(tls.agreed()),
        }
    }

    /// What to wait on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        match self.socket() {
            Socket::Tcp(tcp) => tcp.as_fd(),
            Socket::Unix(unix) => unix.as_fd(),
        }
    }

    /// Whether there may be something to read although there is nothing to wait for.
    pub fn has_more(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(tls) => tls.has_more(),
        }
    }

    /// Hands over what was written and did not go yet; says whether all of it went.
    ///
    /// # Errors
    /// The connection broke.
    pub fn push(&mut self) -> io::Result<bool> {
        match self {
            Self::Plain(_) => Ok(true),
            Self::Tls(tls) => tls.push(),
        }
    }
}

impl Socket {
    fn open(address: &Address) -> io::Result<Self> {
        match address {
            Address::Unix(path) => UnixStream::connect(path).map(Self::Unix),
            Address::Tcp { .. } => {
                let stream = connect_any(&address.resolve()?)?;
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
        }
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Tcp(tcp) => tcp.set_nonblocking(true),
            Self::Unix(unix) => unix.set_nonblocking(true),
        }
    }

    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
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

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(tls) => tls.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
