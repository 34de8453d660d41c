//! Connections that speak TLS: receives and sends their records, gives handshakes their turns, ends them with a
//! message.
//!
//! A handshake takes up to some milliseconds of computing, of which none is worth a turn of a request that is ready.
//! So handshakes wait in a queue of their own, and a little time of each round of the loop is theirs.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::accept::part;
use super::drive::{Came, Grant};
use super::logins::TIME_SHORT;
use super::{Close, TURNS_TIME, Worker};
use crate::budget::{Claim, RECEIVE_BYTES};
use crate::config::ListenTls;
use crate::session::Session;
use crate::tls::{INCOMING_BYTES_MAX, PIECE_BYTES, Piece, PieceBuffers, TlsStream};

/// The time that a peer may take for its handshake. The time that it waits for its turn does not count.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// The same while other handshakes wait for its memory: as long as a message takes around the world and back.
const HANDSHAKE_TIME_SHORT: Duration = Duration::from_millis(500);
/// Bytes of a handshake that one receive takes at most: as much as a hello has, usually.
const HANDSHAKE_RECEIVE_BYTES: usize = 4 << 10;
/// Pieces encrypted in one turn: less than half a millisecond.
const PIECES_AT_ONCE_MAX: u32 = 8;
/// Plain bytes that are encrypted at a time while there is memory, and up to which bound: four records, or one.
const PIECES: [(usize, Claim); 2] =
    [(PIECE_BYTES, Claim::Input), (PIECE_BYTES / 4, Claim::Output { light: false })];
/// The same where memory is short.
const PIECE_BYTES_TIGHT: usize = 4 << 10;
/// The bytes by which the records of a piece may be longer.
const PIECE_OVERHEAD_BYTES: usize = 2 << 10;

/// The memory that a piece takes where memory is short.
const TIGHT_BYTES: usize = PIECE_BYTES_TIGHT + PIECE_OVERHEAD_BYTES;

/// The memory of a worker that records are received and sent in.
pub(super) struct RecordBuffers {
    incoming: Vec<u8>,
    outgoing: PieceBuffers,
}

impl RecordBuffers {
    pub(super) fn new() -> RecordBuffers {
        RecordBuffers { incoming: vec![0; INCOMING_BYTES_MAX + RECEIVE_BYTES], outgoing: PieceBuffers::new() }
    }
}

impl Worker {
    /// Returns the TLS of a new connection to a listener, if it speaks any. An error means that it cannot.
    pub(super) fn begin_tls(&self, listener: ListenTls) -> Result<Option<Box<TlsStream>>, ()> {
        match &self.shared.tls {
            Some(tls) if listener != ListenTls::Off => {
                tls.begin(listener, self.instant).map(|stream| Some(Box::new(stream))).ok_or(())
            }
            _ => Ok(None),
        }
    }

    /// Continues handshakes for a while.
    pub(super) fn shake_hands(&mut self) {
        let began = Instant::now();
        for _ in 0..self.connections.handshakes() {
            let Some(token) = self.connections.take_handshake(self.instant) else { break };
            self.drive(token);
            if began.elapsed() >= TURNS_TIME {
                break;
            }
        }
    }

    /// Closes connections whose handshakes take too long.
    pub(super) fn end_late_handshakes(&mut self, places_are_short: bool) {
        let limit = if places_are_short { TIME_SHORT } else { HANDSHAKE_TIME };
        for token in self.connections.late_handshakes(self.instant, limit, HANDSHAKE_TIME_SHORT) {
            if self.shared.logs(1) {
                tracing::info!("closed a connection: its TLS handshake took too long");
            }
            self.end(token, Close::Error);
        }
    }

    /// Receives once, decrypts, and executes the input. Returns false when the connection is at its end.
    pub(super) fn receive_encrypted(&mut self, token: u64, grant: Grant) -> bool {
        let Some(connection) = self.connections.get(token) else { return false };
        let Some(mut stream) = connection.tls.take() else { return true };
        let Some(mut buffers) = self.records.take() else { return false };
        let stays = self.receive_records(token, &mut stream, &mut buffers.incoming, grant);
        self.records = Some(buffers);
        if let Some(connection) = self.connections.get(token) {
            connection.tls = Some(stream);
        }
        stays
    }

    fn receive_records(
        &mut self,
        token: u64,
        stream: &mut TlsStream,
        buffer: &mut [u8],
        grant: Grant,
    ) -> bool {
        let Some(connection) = self.connections.get(token) else { return false };
        if stream.is_ended() {
            self.close_session(token, grant);
            return true;
        }
        let kept = stream.copy_incoming(buffer);
        // A message that is long comes over several turns, each of which looks whether there is memory for more of it.
        let wanted = match stream.is_handshaking() {
            true => grant.receive_bytes.min(HANDSHAKE_RECEIVE_BYTES),
            false => grant.receive_bytes,
        };
        let fresh = &mut buffer[kept..kept + wanted];
        let result = recv(&connection.socket, fresh, RecvFlags::empty()).map(|(len, _)| len);
        let len = match self.note_received(token, result, wanted) {
            Came::Bytes(len) => len,
            Came::Nothing => return true,
            Came::Broken => return false,
            Came::End if stream.is_handshaking() => return false,
            Came::End => {
                self.close_session(token, grant);
                return true;
            }
        };
        let was_handshaking = stream.is_handshaking();
        let mut plain_bytes = 0;
        let received = stream.receive(&mut buffer[..kept + len], |plain| {
            plain_bytes += plain.len();
            let share = self.unasked_share();
            self.with_session(token, share, grant.output_bytes, |session, ctx| session.take_in(ctx, plain));
        });
        let counters = &self.shared.counters[self.number];
        counters.bytes_read.add(plain_bytes as u64);
        match received {
            Err(error) => {
                if !was_handshaking {
                    counters.ssl_proto_errors.up();
                }
                if self.shared.logs(1) {
                    tracing::info!(%error, "closed a connection: TLS failed");
                }
                self.send_last(token, stream);
                false
            }
            Ok(()) => {
                let is_done = was_handshaking && !stream.is_handshaking();
                if is_done && stream.is_new_session() {
                    counters.ssl_new_sessions.up();
                }
                if stream.is_handshaking()
                    && self.connections.is_too_much_for_handshake(stream.memory_bytes())
                {
                    return false;
                }
                if let Some(connection) = self.connections.get(token).filter(|_| stream.is_ended()) {
                    // The end is for the next receive, behind all requests before it.
                    (connection.ended, connection.readable) = (true, true);
                }
                true
            }
        }
    }

    /// Ends the input of a session. Requests before the end are still answered.
    fn close_session(&mut self, token: u64, grant: Grant) {
        let share = self.unasked_share();
        self.with_session(token, share, grant.output_bytes, |session, _| Session::close(session));
    }

    /// Encrypts and sends as much as possible now. Returns false when the peer is gone.
    pub(super) fn send_encrypted(&mut self, token: u64) -> bool {
        let Some(connection) = self.connections.get(token) else { return false };
        let Some(mut stream) = connection.tls.take() else { return true };
        let Some(mut buffers) = self.records.take() else { return false };
        let stays = self.send_records(token, &mut stream, &mut buffers.outgoing);
        self.records = Some(buffers);
        if let Some(connection) = self.connections.get(token) {
            connection.tls = Some(stream);
        }
        stays
    }

    fn send_records(&mut self, token: u64, stream: &mut TlsStream, buffers: &mut PieceBuffers) -> bool {
        if self.connections.get(token).is_some_and(|connection| connection.waits_for_turn()) {
            return true;
        }
        for _ in 0..PIECES_AT_ONCE_MAX {
            let Some(connection) = self.connections.get(token) else { return false };
            while connection.writable && !stream.unsent().is_empty() {
                match send_now(&connection.socket, stream.unsent(), &mut connection.writable) {
                    Ok(bytes) => {
                        stream.note_sent(bytes);
                        connection.note_sent(bytes, self.instant);
                    }
                    Err(_) => return false,
                }
            }
            connection.session.announce();
            if !connection.writable || stream.is_handshaking() || connection.session.out.is_empty() {
                return true;
            }
            let Some(piece_bytes) = self.piece_bytes(token, stream) else {
                self.connections.park(token);
                return true;
            };
            match self.send_piece(token, stream, buffers, piece_bytes) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
        // The socket takes all as fast as it is encrypted: others have their turns meanwhile.
        self.connections.wait_for_turn(token);
        true
    }

    /// Encrypts replies of up to `piece_bytes`, and sends what the socket takes of that. Returns the bytes of replies.
    fn send_piece(
        &mut self,
        token: u64,
        stream: &mut TlsStream,
        buffers: &mut PieceBuffers,
        piece_bytes: usize,
    ) -> io::Result<u64> {
        let Some(connection) = self.connections.get(token) else { return Ok(0) };
        let mut piece = Piece::new(stream, buffers, piece_bytes);
        let plain_bytes = connection.session.out.flush(|bytes, _| piece.take(bytes))?;
        let bytes = piece.finish()?;
        let records = buffers.records(bytes);
        let mut sent = 0;
        while connection.writable && sent < bytes {
            sent += send_now(&connection.socket, &records[sent..], &mut connection.writable)?;
        }
        connection.note_sent(sent, self.instant);
        if sent < bytes {
            stream.keep_unsent(&records[sent..]);
        }
        self.shared.counters[self.number].bytes_written.add(plain_bytes);
        Ok(plain_bytes)
    }

    /// Returns the bytes that may be encrypted now: the peer may not take them, and they are memory then.
    fn piece_bytes(&mut self, token: u64, stream: &mut TlsStream) -> Option<usize> {
        let claim = Claim::Finish { light: self.connections.is_light(token) };
        let (budget, workers) = (&self.shared.budget, self.inboxes.len());
        // The records of slow readers leave room for the requests of others.
        for (bytes, claim) in PIECES {
            if budget.has_room(((bytes + PIECE_OVERHEAD_BYTES) * workers) as u64, claim) {
                return Some(bytes);
            }
        }
        let is_taken = budget.take(TIGHT_BYTES as u64, claim);
        is_taken.then(|| {
            stream.claim(TIGHT_BYTES);
            PIECE_BYTES_TIGHT
        })
    }

    /// Returns whether there is memory to encrypt replies of a connection.
    pub(super) fn has_piece(&self, light: bool) -> bool {
        self.shared.budget.has_room(TIGHT_BYTES as u64, Claim::Finish { light })
    }

    /// Sends the last records of a connection that fails, so that the peer learns why.
    fn send_last(&mut self, token: u64, stream: &mut TlsStream) {
        if let Some(socket) = self.connections.socket(token) {
            send_last(socket, stream);
            part(socket);
        }
    }

    /// Ends the TLS of a connection that is closed.
    pub(super) fn end_tls(&mut self, token: u64) {
        let Some(connection) = self.connections.get(token) else { return };
        let Some(mut stream) = connection.tls.take() else { return };
        self.shared.budget.give(stream.take_claimed() as u64);
        if stream.is_handshaking() {
            self.counters().ssl_handshake_errors.up();
        } else if let Some(socket) = self.connections.socket(token) {
            stream.queue_close();
            send_last(socket, &mut stream);
        }
    }
}

/// Sends what the socket takes at once, and leaves the rest.
fn send_last(socket: BorrowedFd<'_>, stream: &mut TlsStream) {
    if let Ok(bytes) = send(socket, stream.unsent(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        stream.note_sent(bytes);
    }
}

/// Sends, and notes if the socket takes no more.
fn send_now(socket: &OwnedFd, bytes: &[u8], writable: &mut bool) -> io::Result<usize> {
    match send(socket, bytes, SendFlags::NOSIGNAL) {
        Ok(sent) => Ok(sent),
        Err(Errno::INTR) => Ok(0),
        Err(Errno::AGAIN) => {
            *writable = false;
            Ok(0)
        }
        Err(error) => Err(error.into()),
    }
}
