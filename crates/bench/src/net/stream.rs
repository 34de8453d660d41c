//! The bytes of one connection, whatever carries them: TCP or a Unix socket, plain or in TLS.

use super::socket::{CONNECT_TIMEOUT, Socket};
use super::tls::stream::TlsStream;
use super::{Address, Error, Tls};
use crate::wire::{Login, Protocol};
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

/// How long a login may take; servers wait some seconds before they answer a wrong one.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// A reply to a login is never longer.
const LOGIN_BYTES_MAX: usize = 4 << 10;

/// Checks that a server is reachable, that the login is taken and, with TLS, that both sides agree; returns the version
/// and cipher.
///
/// # Errors
/// The server is unreachable, refuses the login, or TLS is not agreed on.
pub fn reach(
    address: &Address,
    protocol: Protocol,
    tls: Option<&Tls>,
    login: Option<&Login>,
) -> Result<Option<String>, Error> {
    let login = login.map(|login| (login, protocol));
    let Some(tls) = tls else { return Stream::connect(address, None, login).map(|_| None) };
    let told = |stream: &Stream| stream.agreed().map(|agreed| tls.told(&agreed));
    if login.is_some() {
        return Stream::connect(address, Some(tls), login).map(|stream| told(&stream));
    }
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
        _ => Ok(told(&stream)),
    }
}

fn refused(address: &Address, tls: &Tls, source: &io::Error) -> Error {
    Error::Tls { address: address.to_string(), message: tls.in_words(source) }
}

impl Stream {
    /// Connects and logs in, if there is a login, and waits for that at most some seconds.
    ///
    /// # Errors
    /// The server is not there, does not agree on TLS, or refuses the login.
    pub fn connect(
        address: &Address,
        tls: Option<&Tls>,
        login: Option<(&Login, Protocol)>,
    ) -> Result<Self, Error> {
        let mut stream = Self::open(address, tls, CONNECT_TIMEOUT)?;
        let failed = |source| Error::Connect { address: address.to_string(), source };
        if let Some((login, protocol)) = login {
            stream.socket().set_timeout(LOGIN_TIMEOUT).map_err(failed)?;
            let refused = |message| Error::Login { address: address.to_string(), message };
            stream.log_in(login, protocol).map_err(refused)?;
        }
        stream.socket().set_nonblocking().map_err(failed)?;
        Ok(stream)
    }

    /// Begins another connection to the same server and ends this one. The new one is established, and has shaken hands
    /// if there is TLS, when what is written to it is sent.
    ///
    /// # Errors
    /// The system refuses.
    pub fn renew(&mut self, tls: Option<&Tls>) -> io::Result<()> {
        let socket = self.socket().begin_again()?;
        self.socket().forget()?;
        *self = match tls {
            None => Self::Plain(socket),
            Some(tls) => Self::Tls(Box::new(TlsStream::begin(tls, socket)?)),
        };
        Ok(())
    }

    /// Logs in over a connection whose calls wait.
    ///
    /// # Errors
    /// The server refuses it, in its words, or does not answer.
    pub fn log_in(&mut self, login: &Login, protocol: Protocol) -> Result<(), String> {
        let broken = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer".to_string(),
            _ => error.to_string(),
        };
        self.write_all(&login.request(protocol)).map_err(broken)?;
        let (mut reply, mut piece) = (Vec::new(), [0; 512]);
        while reply.len() < LOGIN_BYTES_MAX {
            match self.read(&mut piece).map_err(broken)? {
                0 => return Err("it closed the connection".to_string()),
                read => reply.extend_from_slice(&piece[..read]),
            }
            if let Some(said) = Login::reply(protocol, &reply) {
                return said;
            }
        }
        Err("its reply has no end".to_string())
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
