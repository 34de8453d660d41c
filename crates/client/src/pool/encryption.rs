//! The TLS of one connection.
//!
//! ```text
//!   receive   socket -> 64 KiB -> rustls -> plain bytes, all of them at once
//!   send      batch -> rustls, up to 64 KiB -> socket; what it does not take stays in rustls until the next call
//! ```

use std::io::{self, BufRead, IoSlice, Write};
use std::sync::Arc;
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use socket2::Socket;

use crate::wire::Outbox;

/// How much is read at a time.
const READ_BYTES: usize = 64 << 10;
/// How much is encrypted at a time.
const SEND_BYTES_MAX: usize = 64 << 10;
/// Parts of a batch that are encrypted with one call.
const SLICES: usize = 32;

/// What encrypts and decrypts the bytes of a connection. Between two calls it holds no plain bytes.
#[derive(Debug)]
pub(super) struct Encryption {
    session: ClientConnection,
    /// The server has said that it sends no more.
    is_ended: bool,
}

impl Encryption {
    /// Shakes hands over a socket, until a time at the latest. Gives `take` what the server sends behind that.
    ///
    /// # Errors
    /// When the sides do not agree, with what rustls reports in it, or when the connection breaks or is too slow.
    pub(super) fn shake_hands(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        (socket, until): (&Socket, Instant),
        mut take: impl FnMut(&[u8]),
    ) -> io::Result<Encryption> {
        let session = ClientConnection::new(config, name).map_err(failed)?;
        let mut own = Encryption { session, is_ended: false };
        own.session.set_buffer_limit(Some(2 * SEND_BYTES_MAX));
        while own.session.is_handshaking() || own.has_unsent() {
            let is_over = !own.session.is_handshaking();
            let wanted = match own.flush(socket) {
                Ok(()) if is_over => break,
                Ok(()) => PollFlags::IN,
                Err(error) if is_full(&error) => PollFlags::IN | PollFlags::OUT,
                Err(error) if is_over => return Err(error),
                // What the server has said before it closed comes first.
                Err(_) => PollFlags::IN,
            };
            wait(socket, wanted, until)?;
            match own.receive(socket, RecvFlags::DONTWAIT, &mut take) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if !is_full(&error) => return Err(error),
                _ => {}
            }
        }
        Ok(own)
    }

    /// Returns whether bytes are encrypted that the socket has not taken.
    pub(super) fn has_unsent(&self) -> bool {
        self.session.wants_write()
    }

    /// Sends what the socket takes without waiting. Returns how many bytes that was.
    ///
    /// # Errors
    /// When the socket is full or broken.
    pub(super) fn send(&mut self, socket: &Socket, out: &mut Outbox<'_>) -> io::Result<usize> {
        if !self.has_unsent() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let used = out.next(&mut slices);
            let mut all = 0;
            for part in slices.get(..used).unwrap_or_default() {
                // Each part has records of its own. One that begins is taken whole, if it is not a large value.
                if all > 0 && all + part.len() > SEND_BYTES_MAX {
                    break;
                }
                let taken = self.session.writer().write(part)?;
                all += taken;
                if taken < part.len() {
                    break;
                }
            }
            out.advance(all);
        }
        self.push(socket)
    }

    fn push(&mut self, socket: &Socket) -> io::Result<usize> {
        self.session.write_tls(&mut WithoutWaiting(socket))
    }

    /// Sends all that is encrypted.
    fn flush(&mut self, socket: &Socket) -> io::Result<()> {
        while self.has_unsent() {
            self.push(socket)?;
        }
        Ok(())
    }

    /// Reads from the socket once, and gives `take` the plain bytes that this completes. Returns how many bytes came
    /// over the socket; 0 at the end of the stream.
    ///
    /// # Errors
    /// The system's, or what rustls reports of bytes that are no TLS, or of the server's refusal.
    pub(super) fn receive(
        &mut self,
        socket: &Socket,
        flags: RecvFlags,
        mut take: impl FnMut(&[u8]),
    ) -> io::Result<usize> {
        let mut raw = Vec::with_capacity(READ_BYTES);
        let mut has_plain = false;
        if !self.is_ended {
            recv(socket, spare_capacity(&mut raw), flags)?;
        }
        let mut left = raw.as_slice();
        while !left.is_empty() && !self.is_ended {
            self.session.read_tls(&mut left)?;
            let processed = self.session.process_new_packets();
            if processed.is_err() {
                // The alert that tells the server why. The connection ends, whether or not the socket takes it.
                let _ = self.push(socket);
            }
            let state = processed.map_err(failed)?;
            let mut plain_bytes = state.plaintext_bytes_to_read();
            has_plain |= plain_bytes > 0;
            while plain_bytes > 0 {
                let mut reader = self.session.reader();
                let plain = reader.fill_buf()?;
                let bytes = plain.len();
                take(plain);
                reader.consume(bytes);
                plain_bytes = plain_bytes.saturating_sub(bytes.max(1));
            }
            self.is_ended = state.peer_has_closed();
        }
        Ok(if self.is_ended && !has_plain { 0 } else { raw.len() })
    }
}

fn failed(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Waits until a socket is ready.
fn wait(socket: &Socket, wanted: PollFlags, until: Instant) -> io::Result<()> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
    match poll(&mut [PollFd::new(socket, wanted)], Some(&left)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Writes to a socket without waiting, and without a signal if it is closed.
struct WithoutWaiting<'s>(&'s Socket);

impl Write for WithoutWaiting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        Ok(sendmsg(self.0, slices, &mut SendAncillaryBuffer::default(), flags)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
