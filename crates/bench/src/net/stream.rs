//! The bytes of one connection, whatever carries them: TCP or a Unix socket, plain or in TLS.

use super::socket::{CONNECT_TIMEOUT, Socket};
use super::tls::stream::TlsStream;
use super::{Address, Error, Tls};
use crate::wire::Protocol;
use rustix::fd::{AsFd, BorrowedFd};
use std::io::{self, Read, Write};
use std::time::Duration;

/// How long a server that speaks TLS may take to show that it takes our certificate.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// The bytes of one connection; reads and writes do not wait.
#[derive(Debug)]
pub enum Stream {
    /// As they are.
    Plain(Socket),
    /// Encrypted.
    Tls(Box<TlsStream>),
}

/// Checks that a server is reachable and, with TLS, that both sides agree; returns the version and cipher.
///
/// # Errors
/// The server is unreachable, or TLS is not agreed on.
pub fn reach(address: &Address, protocol: Protocol, tls: Option<&Tls>) -> Result<Option<String>, Error> {
    let Some(tls) = tls else { return Stream::connect(address, None).map(|_| None) };
    let in_words = |source: &io::Error| refused(address, tls, source);
    let mut stream = Stream::open(address, Some(tls), CONNECT_TIMEOUT)?;
    // With TLS 1.3 a refusal of our certificate shows in the first reply only. memcached and its relatives
    // reply in text on any connection; a server that does not is reachable nevertheless.
    stream.socket().set_timeout(PROBE_TIMEOUT).map_err(|e| in_words(&e))?;
    let ask: &[u8] = if protocol == Protocol::Resp2 { b"*1\r\n$4\r\nPING\r\n" } else { b"version\r\n" };
    let answered = stream.write(ask).and_then(|_| stream.read(&mut [0; 256]));
    match answered.map_err(|error| (error.kind(), error)) {
        Err((io::ErrorKind::InvalidData, error)) => Err(in_words(&error)),
        Err((io::ErrorKind::ConnectionReset, _)) => {
            let message = "it broke the connection after the handshake: it may want a certificate of ours";
            Err(Error::Tls { address: address.to_string(), message: message.to_string() })
        }
        _ => Ok(stream.agreed()),
    }
}

fn refused(address: &Address, tls: &Tls, source: &io::Error) -> Error {
    Error::Tls { address: address.to_string(), message: tls.in_words(source) }
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

    /// Returns the descriptor to wait on.
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

    /// Sends the bytes that were written and not sent yet; returns whether all were sent.
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
