//! One connection's TLS, without its socket: records in, plain bytes out, and the other way. Sans-IO.
//!
//! ```text
//!   socket -> [rest of a record ++ fresh bytes] -> decrypted there -> the session, a record at a time
//!   replies -> gathered to 16 KiB -> encrypted into a buffer of the worker -> socket, the rest -> unsent
//! ```
//! An idle connection holds no buffer. The first bytes of a record hold the memory of all of it, so that a record that
//! has begun to come can always be received.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Instant;

use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{Error, HandshakeKind, ServerConfig};

/// The most bytes of a record.
pub const RECORD_BYTES_MAX: usize = HEADER_BYTES + (16 << 10) + 2048;
/// The most bytes received and not processed: of one message of a handshake, in records, and the record behind them.
pub const INCOMING_BYTES_MAX: usize = (64 << 10) + 2 * RECORD_BYTES_MAX;
/// Plain bytes that are encrypted at a time.
pub const PIECE_BYTES: usize = 4 * PLAIN_BYTES_MAX;
/// The memory of a handshake that has begun, besides its records, as an upper bound.
pub const HANDSHAKE_BYTES: usize = 16 << 10;
/// The bytes of a client's certificates that do not count, as keys do not: the memory of every connection has room
/// for them.
const CERTIFICATE_BYTES: usize = 2 << 10;

/// Type, version and length.
const HEADER_BYTES: usize = 5;
/// The most plain bytes of one record that is sent.
const PLAIN_BYTES_MAX: usize = 16 << 10;
/// The bytes by which a record may be longer than its plain bytes.
const OVERHEAD_BYTES: usize = 64;
/// Room for a message of rustls's own before a record, as an answer to a change of keys.
const MESSAGE_BYTES: usize = 1 << 10;
/// The bytes of the buffer that a piece is encrypted into.
const CIPHER_BYTES: usize = PIECE_BYTES + PIECE_BYTES / PLAIN_BYTES_MAX * OVERHEAD_BYTES + MESSAGE_BYTES;

/// One connection's TLS.
pub struct TlsStream {
    connection: UnbufferedServerConnection,
    /// Received and not processed, because a record is not whole.
    incoming: Vec<u8>,
    /// Bytes of that record still to come.
    missing: usize,
    /// Records that the socket has not taken, from `sent` on.
    unsent: Vec<u8>,
    sent: usize,
    began: Instant,
    /// The peer has sent something.
    has_begun: bool,
    /// The peer has ended its stream.
    is_ended: bool,
    /// rustls has reported an error. It may not be called again: it has places in bytes that are gone.
    has_failed: bool,
    /// Bytes taken from the budget since [`take_claimed`](Self::take_claimed).
    claimed: usize,
}

impl TlsStream {
    /// Returns the TLS of a connection that begins; `None` if rustls refuses the configuration.
    pub fn new(config: Arc<ServerConfig>, now: Instant) -> Option<TlsStream> {
        Some(TlsStream {
            connection: UnbufferedServerConnection::new(config).ok()?,
            incoming: Vec::new(),
            missing: 0,
            unsent: Vec::new(),
            sent: 0,
            began: now,
            has_begun: false,
            is_ended: false,
            has_failed: false,
            claimed: 0,
        })
    }

    /// Returns whether the handshake has not ended.
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Returns whether the handshake made a session, rather than to resume one.
    pub fn is_new_session(&self) -> bool {
        self.connection.handshake_kind() != Some(HandshakeKind::Resumed)
    }

    /// Returns whether the peer has ended its stream, so that nothing more comes.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Returns the time when the connection began, or its peer's first bytes got their turn.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Returns whether the peer has sent something.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Notes that a turn of the handshake begins. The time before the first one is not the peer's.
    pub fn note_turn(&mut self, now: Instant) {
        if !self.has_begun {
            self.began = now;
        }
    }

    /// Returns the bytes of memory it holds, besides its keys: records, a handshake, a client's large certificates.
    pub fn memory_bytes(&self) -> usize {
        let kept = match self.is_handshaking() {
            true if self.has_begun => HANDSHAKE_BYTES,
            true => 0,
            false => {
                let chain = self.connection.peer_certificates().unwrap_or_default();
                chain.iter().map(|one| one.len()).sum::<usize>().saturating_sub(CERTIFICATE_BYTES)
            }
        };
        self.incoming.capacity() + self.unsent.capacity() + kept
    }

    /// Returns the bytes still to come of a record whose memory it holds already; 0 for none.
    pub fn missing(&self) -> usize {
        self.missing
    }

    /// Notes that `bytes` were taken from the budget for it.
    pub fn claim(&mut self, bytes: usize) {
        self.claimed += bytes;
    }

    /// Returns the bytes taken from the budget since the last call.
    pub fn take_claimed(&mut self) -> usize {
        std::mem::take(&mut self.claimed)
    }

    /// Copies the bytes that are not processed to the front of `buffer`, which has [`INCOMING_BYTES_MAX`] and more.
    /// Returns their number. The bytes that come next belong behind them.
    pub fn copy_incoming(&self, buffer: &mut [u8]) -> usize {
        buffer[..self.incoming.len()].copy_from_slice(&self.incoming);
        self.incoming.len()
    }

    /// Processes `bytes`, of which the first are those of [`copy_incoming`](Self::copy_incoming), and gives `take` the
    /// plain bytes of each record. Answers of its own are queued to be [sent](Self::unsent).
    ///
    /// # Errors
    /// The peer breaks the protocol, or the handshake fails; an alert is queued.
    pub fn receive(&mut self, bytes: &mut [u8], take: impl FnMut(&[u8])) -> Result<(), Error> {
        self.has_begun = true;
        let received = self.process(bytes, take);
        if received.is_err() {
            self.has_failed = true;
            (self.incoming, self.missing) = (Vec::new(), 0);
        }
        received
    }

    fn process(&mut self, bytes: &mut [u8], mut take: impl FnMut(&[u8])) -> Result<(), Error> {
        let mut at = 0;
        loop {
            let UnbufferedStatus { mut discard, state } =
                self.connection.process_tls_records(&mut bytes[at..]);
            let is_done = match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        take(record.payload);
                    }
                    false
                }
                Ok(ConnectionState::EncodeTlsData(mut message)) => {
                    queue(&mut self.unsent, |room| message.encode(room))?;
                    false
                }
                Ok(ConnectionState::TransmitTlsData(message)) => {
                    message.done();
                    false
                }
                Ok(ConnectionState::PeerClosed) => {
                    self.is_ended = true;
                    false
                }
                Ok(ConnectionState::ReadEarlyData(_)) => return Err(Error::HandshakeNotComplete),
                Ok(_) => true,
                Err(error) => {
                    self.queue_alert(&mut bytes[at + discard..]);
                    return Err(error);
                }
            };
            at += discard;
            if is_done {
                break;
            }
        }
        self.keep(&bytes[at..])
    }

    /// Keeps the bytes of a record that is not whole, in the memory of all of it.
    fn keep(&mut self, rest: &[u8]) -> Result<(), Error> {
        if rest.len() + RECORD_BYTES_MAX > INCOMING_BYTES_MAX {
            return Err(Error::General("a message of the handshake is too long".into()));
        }
        let whole = whole_bytes(rest);
        if self.incoming.capacity() < whole || self.incoming.capacity() > whole * 2 {
            self.incoming = Vec::with_capacity(whole);
        }
        self.incoming.clear();
        self.incoming.extend_from_slice(rest);
        self.missing = whole - rest.len();
        Ok(())
    }

    /// Queues the message that tells the peer why its connection fails. `rest` are the bytes that were not processed.
    fn queue_alert(&mut self, rest: &mut [u8]) {
        let unsent = &mut self.unsent;
        let status = self.connection.process_tls_records(rest);
        if let Ok(ConnectionState::EncodeTlsData(mut message)) = status.state {
            let _ = queue(unsent, |room| message.encode(room));
        }
    }

    /// Returns the records that are to be sent before any others.
    pub fn unsent(&self) -> &[u8] {
        &self.unsent[self.sent..]
    }

    /// Notes that the first `bytes` of [`unsent`](Self::unsent) were sent.
    pub fn note_sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent >= self.unsent.len() {
            (self.unsent, self.sent) = (Vec::new(), 0);
        }
    }

    /// Keeps records that the socket did not take. There are no others.
    pub fn keep_unsent(&mut self, records: &[u8]) {
        (self.unsent, self.sent) = (records.to_vec(), 0);
    }

    /// Queues the message that ends the stream, if the handshake is done and nothing else is to be sent.
    pub fn queue_close(&mut self) {
        if self.is_handshaking() || !self.unsent().is_empty() {
            return;
        }
        let mut room = [0; MESSAGE_BYTES];
        if let Ok(bytes) = self.write(&mut room, |traffic, room| traffic.queue_close_notify(room)) {
            self.keep_unsent(&room[..bytes]);
        }
    }

    /// Encrypts `plain` into `room`. Returns the number of bytes written.
    fn encrypt(&mut self, plain: &[u8], room: &mut [u8]) -> io::Result<usize> {
        self.write(room, |traffic, room| traffic.encrypt(plain, room))
    }

    /// Writes into `room` what `call` writes, behind messages of rustls's own.
    fn write(
        &mut self,
        room: &mut [u8],
        call: impl FnOnce(&mut WriteTraffic<'_>, &mut [u8]) -> Result<usize, EncryptError>,
    ) -> io::Result<usize> {
        let mut written = 0;
        loop {
            if self.has_failed {
                return Err(ErrorKind::NotConnected.into());
            }
            let UnbufferedStatus { discard, state } = self.connection.process_tls_records(&mut self.incoming);
            self.has_failed = state.is_err();
            match state.map_err(io::Error::other)? {
                ConnectionState::EncodeTlsData(mut message) => {
                    written += message.encode(&mut room[written..]).map_err(io::Error::other)?;
                }
                ConnectionState::TransmitTlsData(message) => message.done(),
                ConnectionState::PeerClosed => self.is_ended = true,
                ConnectionState::WriteTraffic(mut traffic) => {
                    written += call(&mut traffic, &mut room[written..]).map_err(io::Error::other)?;
                    self.incoming.drain(..discard);
                    return Ok(written);
                }
                _ => return Err(ErrorKind::NotConnected.into()),
            }
            self.incoming.drain(..discard);
        }
    }
}

type WriteTraffic<'c> = rustls::unbuffered::WriteTraffic<'c, rustls::server::ServerConnectionData>;

/// Appends a message to `unsent`: its length is known only from the refusal of a buffer that is too small.
fn queue(
    unsent: &mut Vec<u8>,
    mut encode: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
) -> Result<(), Error> {
    let at = unsent.len();
    let bytes = match encode(&mut []) {
        Err(EncodeError::InsufficientSize(needed)) => needed.required_size,
        Err(EncodeError::AlreadyEncoded) | Ok(_) => return Ok(()),
    };
    unsent.reserve_exact(bytes);
    unsent.resize(at + bytes, 0);
    encode(&mut unsent[at..]).map(drop).map_err(|error| Error::General(error.to_string()))
}

/// Returns the length of whole records of which `bytes` are the beginning.
fn whole_bytes(bytes: &[u8]) -> usize {
    let mut whole = 0;
    while whole < bytes.len() {
        let length = match bytes[whole..] {
            [_, _, _, high, low, ..] => usize::from(u16::from_be_bytes([high, low])),
            _ => 0,
        };
        whole += (HEADER_BYTES + length).min(RECORD_BYTES_MAX);
    }
    whole
}

/// Gathers the plain bytes of a piece into full records and encrypts them.
pub struct Piece<'a> {
    stream: &'a mut TlsStream,
    buffers: &'a mut PieceBuffers,
    /// Plain bytes that may still be taken.
    left: usize,
    /// Bytes of records written.
    written: usize,
}

/// The memory of a worker that pieces are made in.
pub struct PieceBuffers {
    gathered: Vec<u8>,
    cipher: Vec<u8>,
}

impl PieceBuffers {
    /// Returns empty buffers.
    #[expect(clippy::new_without_default, reason = "it takes 80 KiB")]
    pub fn new() -> PieceBuffers {
        PieceBuffers { gathered: Vec::with_capacity(PLAIN_BYTES_MAX), cipher: vec![0; CIPHER_BYTES] }
    }

    /// Returns the first `bytes` of the records of the last piece.
    pub fn records(&self, bytes: usize) -> &[u8] {
        &self.cipher[..bytes]
    }
}

impl<'a> Piece<'a> {
    /// Begins a piece of up to `plain_bytes`, which are at most [`PIECE_BYTES`].
    pub fn new(stream: &'a mut TlsStream, buffers: &'a mut PieceBuffers, plain_bytes: usize) -> Piece<'a> {
        buffers.gathered.clear();
        Piece { stream, buffers, left: plain_bytes.min(PIECE_BYTES), written: 0 }
    }

    /// Takes bytes from the front of `bytes`. Returns their number.
    ///
    /// # Errors
    /// `WouldBlock` if the piece is full; any other if the connection can send no more.
    pub fn take(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let whole_records = bytes.len().min(self.left) / PLAIN_BYTES_MAX * PLAIN_BYTES_MAX;
        if self.buffers.gathered.is_empty() && whole_records > 0 {
            self.left -= whole_records;
            let room = &mut self.buffers.cipher[self.written..];
            self.written += self.stream.encrypt(&bytes[..whole_records], room)?;
            return Ok(whole_records);
        }
        let taken = bytes.len().min(self.left).min(PLAIN_BYTES_MAX - self.buffers.gathered.len());
        self.left -= taken;
        self.buffers.gathered.extend_from_slice(&bytes[..taken]);
        if self.buffers.gathered.len() == PLAIN_BYTES_MAX {
            self.encrypt_gathered()?;
        }
        Ok(taken)
    }

    /// Encrypts the rest. Returns the bytes of all records.
    ///
    /// # Errors
    /// The connection can send no more.
    pub fn finish(mut self) -> io::Result<usize> {
        self.encrypt_gathered()?;
        Ok(self.written)
    }

    fn encrypt_gathered(&mut self) -> io::Result<()> {
        let PieceBuffers { gathered, cipher } = self.buffers;
        if !gathered.is_empty() {
            self.written += self.stream.encrypt(gathered, &mut cipher[self.written..])?;
            gathered.clear();
        }
        Ok(())
    }
}
