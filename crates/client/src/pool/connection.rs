//! One connection: a socket, the bytes that came and were not used, and what the server still owes.

use std::io::{self, IoSlice};
use std::net::{Shutdown, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::{Domain, SockAddr, Socket, Type};

use super::encryption::Encryption;
use crate::address::Address;
use crate::clock::{Clock, HostClock};
use crate::simulation;
use crate::wire::Outbox;

/// How much is read at a time.
const READ_BYTES: usize = 64 << 10;
/// An idle connection keeps at most this much buffer.
const KEPT_BYTES_MAX: usize = 64 << 10;
/// Parts of a batch that are sent with one call.
const SLICES: usize = 32;
/// Quiet batches whose fences may be unread at a time; then they are read first.
pub const FENCES_MAX: u32 = 64;

/// A connection to a server.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    /// There is none if the bytes are sent as they are.
    encryption: Option<Box<Encryption>>,
    /// Plain bytes that came.
    inbox: Vec<u8>,
    /// How much of the inbox is used up.
    used: usize,
    /// `MN`s to come for quiet batches, before the reply to anything else.
    fences_owed: u32,
    next_opaque: u32,
    /// Whether nothing is under way, so that another caller may have it.
    is_clean: bool,
    /// When it was made, by the host's clock.
    connected_ms: u64,
}

impl Connection {
    /// Connects: to each address of a host in turn, within `connect_timeout` altogether (looking the name up is the
    /// system's, and has the system's limits). `timeout` is the longest that a read waits.
    ///
    /// # Errors
    /// When no address accepts, with the last one's error.
    pub fn new(address: &Address, connect_timeout: Duration, timeout: Duration) -> io::Result<Self> {
        let socket = match (simulation::connect(), address) {
            (Some(socket), _) => socket?,
            (None, Address::Unix(path)) => {
                let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
                socket.connect_timeout(&SockAddr::unix(path)?, connect_timeout)?;
                socket
            }
            (None, Address::Tcp { host, port }) => connect_tcp(host, *port, connect_timeout)?,
        };
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(timeout.max(Duration::from_millis(1))))?;
        let inbox = Vec::new();
        let connected_ms = HostClock.now_ms();
        Ok(Connection {
            socket,
            encryption: None,
            inbox,
            used: 0,
            fences_owed: 0,
            next_opaque: 0,
            is_clean: true,
            connected_ms,
        })
    }

    /// Shakes hands for TLS, until a time at the latest. To be called before anything is sent.
    ///
    /// # Errors
    /// When the sides do not agree, with what rustls reports in it, or when the connection breaks or is too slow.
    pub fn encrypt(
        &mut self,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        until: Instant,
    ) -> io::Result<()> {
        let Connection { socket, inbox, .. } = self;
        let take = |plain: &[u8]| inbox.extend_from_slice(plain);
        let encryption = Encryption::shake_hands(config, name, (socket, until), take)?;
        self.encryption = Some(Box::new(encryption));
        Ok(())
    }

    /// Returns whether the socket has taken the whole batch.
    pub fn has_sent(&self, out: &Outbox<'_>) -> bool {
        out.is_sent() && self.encryption.as_ref().is_none_or(|encryption| !encryption.has_unsent())
    }

    /// Returns when it was made, by the [host's clock](HostClock).
    pub fn connected_ms(&self) -> u64 {
        self.connected_ms
    }

    /// Returns the socket, to wait for.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Ends the connection also for children that were forked while it was open.
    pub fn shut_down(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Returns whether the connection may go to another caller.
    pub fn is_clean(&self) -> bool {
        self.is_clean
    }

    /// Says whether the connection is between requests. It is not clean until all replies have come.
    pub fn set_clean(&mut self, is_clean: bool) {
        self.is_clean = is_clean && (self.unused().is_empty() || self.fences_owed > 0);
        if self.is_clean && self.unused().is_empty() && self.inbox.capacity() > KEPT_BYTES_MAX {
            self.inbox = Vec::new();
        }
    }

    /// Returns whether an idle connection is still good: the server has not closed it, and has sent nothing that
    /// nobody asked for.
    pub fn is_usable(&self) -> bool {
        let mut byte = [0u8; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match recv(&self.socket, &mut byte, flags) {
            Ok((_, 0)) => false,
            Ok(_) => self.fences_owed > 0,
            Err(error) => error == rustix::io::Errno::AGAIN,
        }
    }

    /// How many fences of quiet batches are unread.
    pub fn fences_owed(&self) -> u32 {
        self.fences_owed
    }

    /// Counts the fence of a quiet batch.
    pub fn owe_fence(&mut self) {
        self.fences_owed += 1;
    }

    /// A fence was read.
    pub fn fence_read(&mut self) {
        self.fences_owed = self.fences_owed.saturating_sub(1);
    }

    /// Takes `count` numbers for requests, and returns the first. They wrap around.
    pub fn take_opaques(&mut self, count: usize) -> u32 {
        let first = self.next_opaque;
        // Only the difference between two matters.
        self.next_opaque = first.wrapping_add(count as u32);
        first
    }

    /// Sends what the socket takes without waiting. Returns how many bytes that was, with
    /// [`io::ErrorKind::WouldBlock`] if none. More calls are needed until all [is sent](Self::has_sent).
    ///
    /// # Errors
    /// When the socket is full or broken.
    pub fn send(&mut self, out: &mut Outbox<'_>) -> io::Result<usize> {
        if let Some(encryption) = &mut self.encryption {
            return encryption.send(&self.socket, out);
        }
        let mut slices = [IoSlice::new(&[]); SLICES];
        let used = out.next(&mut slices);
        let slices = slices.get(..used).unwrap_or_default();
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let sent = sendmsg(&self.socket, slices, &mut SendAncillaryBuffer::default(), flags)?;
        out.advance(sent);
        Ok(sent)
    }

    /// Returns the bytes that came and were not used.
    pub fn unused(&self) -> &[u8] {
        self.inbox.get(self.used..).unwrap_or_default()
    }

    /// Uses up the first `bytes` of them.
    pub fn consume(&mut self, bytes: usize) {
        self.used = self.inbox.len().min(self.used + bytes);
        if self.used == self.inbox.len() {
            self.inbox.clear();
            self.used = 0;
        }
    }

    /// Reads up to 64 KiB; with `waits`, waits for it as long as a read may. Returns how many bytes
    /// came over the socket: 0 at the end of the stream. Those of half a TLS record are no plain bytes yet.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if nothing came, or the system's error.
    pub fn receive(&mut self, waits: bool) -> io::Result<usize> {
        if self.used > 0 && self.inbox.capacity() - self.inbox.len() < READ_BYTES {
            self.inbox.drain(..self.used);
            self.used = 0;
        }
        let flags = if waits { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        if let Some(encryption) = &mut self.encryption {
            return encryption.receive(&self.socket, flags, |plain| self.inbox.extend_from_slice(plain));
        }
        self.inbox.reserve(READ_BYTES);
        let (_, came) = recv(&self.socket, spare_capacity(&mut self.inbox), flags)?;
        Ok(came)
    }

    /// Reads like [`receive`](Self::receive), but straight into a value, which is to have `wanted` bytes in the end and
    /// has room for them. Nothing may be unused in the connection.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn receive_into(&mut self, value: &mut Vec<u8>, wanted: usize, waits: bool) -> io::Result<usize> {
        let flags = if waits { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        if let Some(encryption) = &mut self.encryption {
            return encryption.receive(&self.socket, flags, |plain| {
                let missing = wanted.saturating_sub(value.len());
                let (own, surplus) = plain.split_at(missing.min(plain.len()));
                value.extend_from_slice(own);
                self.inbox.extend_from_slice(surplus);
            });
        }
        let (_, came) = recv(&self.socket, spare_capacity(value), flags)?;
        // An allocator may give more room than was asked for.
        if let Some(surplus) = value.get(wanted..).filter(|surplus| !surplus.is_empty()) {
            self.inbox.extend_from_slice(surplus);
            value.truncate(wanted);
        }
        Ok(came)
    }
}

fn connect_tcp(host: &str, port: u16, limit: Duration) -> io::Result<Socket> {
    let began = Instant::now();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        let left = limit.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        match socket.connect_timeout(&address.into(), left) {
            Ok(()) => {
                socket.set_tcp_nodelay(true)?;
                socket.set_keepalive(true)?;
                return Ok(socket);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
