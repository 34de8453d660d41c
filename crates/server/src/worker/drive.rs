//! Drives a connection: receives its input, executes it, sends replies as far as they go, and accounts for the
//! memory that stays.

use std::io;
use std::os::fd::AsRawFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::{Close, Worker};
use crate::budget::{Claim, OUTPUT_BYTES, RECEIVE_BYTES, drive_bytes_max};
use crate::session::{Ctx, Session, Wait};
use crate::tls::{HANDSHAKE_BYTES, RECORD_BYTES_MAX};

/// [`RECEIVE_BYTES`] where memory is short.
const RECEIVE_BYTES_TIGHT: usize = 4 << 10;
/// [`OUTPUT_BYTES`] where memory is short.
const OUTPUT_BYTES_TIGHT: usize = 64 << 10;
/// The most times that a connection continues after its replies were sent, before others get their turn.
const ROUNDS: u32 = 4;
/// The bytes that a connection may read in its turn; a larger read is made alone.
const READ_QUANTUM_BYTES: usize = 64 << 10;

/// The memory that a connection may use in one drive.
#[derive(Clone, Copy)]
pub(super) struct Grant {
    /// Bytes of the budget that were taken for it; 0 if there is so much room that none have to be taken.
    taken_bytes: usize,
    pub(super) receive_bytes: usize,
    pub(super) output_bytes: usize,
}

/// The outcome of receiving from a socket.
pub(super) enum Came {
    Bytes(usize),
    /// There is nothing to be received now.
    Nothing,
    /// The peer sends no more.
    End,
    /// The connection is gone.
    Broken,
}

/// The reads that a session may ask for.
#[derive(Clone, Copy)]
pub(super) struct ReadShare {
    pub(super) reads: usize,
    pub(super) bytes: usize,
}

impl Worker {
    /// Returns the memory that a drive of the connection may use, if there is so much. All memory that the
    /// connection holds afterwards is provided for here, before it is taken.
    fn grant(&mut self, token: u64) -> Option<Grant> {
        let claim = Claim::Output { light: self.connections.is_light(token) };
        let (value_bytes, tls_bytes) = (self.shared.store.large_bytes(), self.tls_bytes(token));
        let budget = &self.shared.budget;
        // If there is room for a drive of every worker, none has to take any first.
        let all = drive_bytes_max(RECEIVE_BYTES, OUTPUT_BYTES, value_bytes) + tls_bytes;
        let all = (all * self.inboxes.len()) as u64;
        if budget.has_room(all, claim) {
            let receive_bytes =
                if budget.has_room(all, Claim::Input) { RECEIVE_BYTES } else { RECEIVE_BYTES_TIGHT };
            return Some(Grant { taken_bytes: 0, receive_bytes, output_bytes: OUTPUT_BYTES });
        }
        let session_missing = self.connections.session(token).map_or(0, |session| session.input_missing());
        let missing = self.connections.get(token).map_or(0, |connection| connection.missing_bytes());
        let budget = &self.shared.budget;
        let tight = drive_bytes_max(RECEIVE_BYTES_TIGHT, OUTPUT_BYTES_TIGHT, value_bytes) + tls_bytes;
        let output_bytes = OUTPUT_BYTES_TIGHT;
        if budget.take(tight as u64, claim) {
            let receive_bytes = missing.clamp(RECEIVE_BYTES_TIGHT, RECEIVE_BYTES);
            return Some(Grant { taken_bytes: tight, receive_bytes, output_bytes });
        }
        // The rest of a request whose memory is taken already is always received: that makes room. If it comes in
        // records, it needs the memory of the next of them.
        let is_light = self.connections.is_light(token);
        let budget = &self.shared.budget;
        let needs_record = tls_bytes > 0 && missing == 0 && session_missing > 0;
        let (receive_bytes, taken_bytes) = match needs_record {
            true if budget.take(tls_bytes as u64, Claim::Finish { light: is_light }) => {
                (session_missing, tls_bytes)
            }
            _ => (missing, 0),
        };
        let receive_bytes = receive_bytes.min(RECEIVE_BYTES);
        (receive_bytes > 0).then_some(Grant { taken_bytes, receive_bytes, output_bytes })
    }

    /// Returns the most bytes that a drive adds to the memory of the connection's TLS: a record and a handshake.
    fn tls_bytes(&mut self, token: u64) -> usize {
        if self.records.is_none() {
            return 0;
        }
        match self.connections.get(token).and_then(|connection| connection.tls.as_ref()) {
            Some(stream) if stream.is_handshaking() => RECORD_BYTES_MAX + HANDSHAKE_BYTES,
            Some(_) => RECORD_BYTES_MAX,
            None => 0,
        }
    }

    /// Returns whether there is memory to drive the connection.
    pub(super) fn has_memory(&mut self, token: u64) -> bool {
        let tls_bytes = self.tls_bytes(token);
        let light = self.connections.is_light(token);
        if tls_bytes > 0 && self.connections.get(token).is_some_and(|connection| connection.has_output()) {
            return self.has_piece(light);
        }
        let claim = Claim::Output { light };
        let value_bytes = self.shared.store.large_bytes();
        let tight = drive_bytes_max(RECEIVE_BYTES_TIGHT, OUTPUT_BYTES_TIGHT, value_bytes) + tls_bytes;
        self.shared.budget.has_room(tight as u64, claim)
    }

    /// Brings the budget in line with the memory that the connection holds now, after `taken_bytes` were taken for
    /// it. A connection that has ended holds none.
    pub(super) fn settle(&mut self, token: u64, taken_bytes: usize) {
        let (mut before, mut after) = (taken_bytes, 0);
        if let Some(connection) = self.connections.get(token) {
            after = connection.memory_bytes();
            let held = std::mem::replace(&mut connection.held_bytes, after);
            self.shared.budget.note_progress(held.saturating_sub(after) as u64);
            before += held + connection.take_claimed();
        }
        if self.records.is_some() {
            self.connections.count_handshake(token);
        }
        self.shared.budget.exchange(before as u64, after as u64);
    }

    /// Returns the reads that a session may ask for without waiting for its turn: none while others wait.
    pub(super) fn unasked_share(&self) -> ReadShare {
        let reads = if self.connections.read_waiters() > 0 { 0 } else { self.in_flight.room() };
        ReadShare { reads, bytes: usize::MAX }
    }

    /// Calls a session with its surroundings, then submits the reads it asks for.
    pub(super) fn with_session(
        &mut self,
        token: u64,
        share: ReadShare,
        output_bytes_max: usize,
        call: impl FnOnce(&mut Session, &mut Ctx<'_>),
    ) {
        let is_light = self.connections.is_light(token);
        let Some(connection) = self.connections.get(token) else { return };
        let mut ctx = Ctx {
            shared: &self.shared,
            connection: connection.socket.as_raw_fd(),
            place: (self.number, token),
            counters: &self.shared.counters[self.number],
            latencies: &self.shared.latencies[self.number],
            now: self.now,
            instant: self.instant,
            read_room: share.reads,
            read_bytes: share.bytes,
            heavy_read_bytes: self.in_flight.heavy_room_bytes(),
            memory_is_short: false,
            is_light,
            output_bytes_max,
            reads: self.in_flight.wanted(),
        };
        let before = connection.session.out.bytes();
        call(&mut connection.session, &mut ctx);
        self.read_is_blocked |= ctx.memory_is_short;
        let encoded = connection.session.out.bytes().saturating_sub(before) + connection.session.take_cost();
        let asked = self.in_flight.wanted_bytes();
        if asked + encoded > 0 {
            if !is_light {
                // Replies that are sent within one drive are never given back: it holds as much as before.
                self.shared.budget.note_progress((asked + encoded) as u64);
            }
            self.connections.charge(token, (asked + encoded) as u64);
        }
        if asked > 0 {
            self.in_flight.submit_wanted(token, &self.shared, self.now);
        }
    }

    /// Calls a session whose read is done. Its memory has been taken with the read.
    pub(super) fn with_finished_read(&mut self, token: u64, call: impl FnOnce(&mut Session, &mut Ctx<'_>)) {
        let share = self.unasked_share();
        self.with_session(token, share, OUTPUT_BYTES_TIGHT, call);
    }

    /// Receives, executes and sends, as far as possible now.
    pub(super) fn drive(&mut self, token: u64) {
        self.drive_on(token, None);
    }

    /// Returns whether at most one read of the connection is under way, so that its reply can be sent at once. If
    /// so, lends its session the buffer to encode in.
    pub(super) fn lend_output_for_last(&mut self, token: u64) -> bool {
        let output = &mut self.output;
        self.connections.session(token).is_none_or(|session| {
            let is_last = session.gets_pending() <= 1;
            if is_last {
                session.out.lend(output);
            }
            is_last
        })
    }

    /// Drives a connection that has waited for room or memory, or for its turn to read.
    pub(super) fn drive_on(&mut self, token: u64, woken: Option<ReadShare>) {
        let alive = self.send(token) && (self.is_waiting_for_memory(token) || self.execute(token, woken));
        if let Some(session) = self.connections.session(token) {
            session.out.give_back(&mut self.output);
        }
        if self.output.capacity() == 0 {
            self.output = Vec::with_capacity(OUTPUT_BYTES_TIGHT);
        }
        let over = self.connections.get(token).is_none_or(|connection| connection.is_over());
        if !alive || over {
            return self.end(token, if alive { Close::Normal } else { Close::Error });
        }
        self.settle(token, 0);
        self.note_wait(token);
    }

    /// Gives a connection that waited for room or memory another try.
    pub(super) fn wake(&mut self, token: u64) {
        let share = self.unasked_share();
        self.drive_on(token, Some(share));
    }

    /// Gives a connection that waited for it its turn to read. Returns whether there was memory for it.
    pub(super) fn wake_to_read(&mut self, token: u64, reads: usize) -> bool {
        let was_blocked = std::mem::take(&mut self.read_is_blocked);
        self.drive_on(token, Some(ReadShare { reads, bytes: READ_QUANTUM_BYTES }));
        let is_blocked = self.read_is_blocked || self.is_waiting_for_memory(token);
        self.read_is_blocked = was_blocked || is_blocked;
        !is_blocked
    }

    fn is_waiting_for_memory(&mut self, token: u64) -> bool {
        self.connections.get(token).is_some_and(|connection| connection.is_parked())
    }

    /// Executes and receives, if there is memory for it. Returns whether the connection stays open.
    fn execute(&mut self, token: u64, woken: Option<ReadShare>) -> bool {
        let Some(connection) = self.connections.get(token) else { return false };
        if woken.is_none() && !connection.can_go_on(OUTPUT_BYTES) {
            return true;
        }
        let Some(grant) = self.grant(token) else {
            self.connections.park(token);
            return true;
        };
        if let Some(session) = self.connections.session(token) {
            session.out.lend(&mut self.output);
        }
        let alive = self.execute_with(token, grant, woken);
        if let Some(session) = self.connections.session(token) {
            session.out.give_back(&mut self.output);
        }
        self.settle(token, grant.taken_bytes);
        alive
    }

    fn execute_with(&mut self, token: u64, grant: Grant, woken: Option<ReadShare>) -> bool {
        let output_bytes = grant.output_bytes;
        if let Some(share) = woken {
            self.with_session(token, share, output_bytes, Session::resume);
        } else if self.can_resume(token, output_bytes) {
            let share = self.unasked_share();
            self.with_session(token, share, output_bytes, Session::resume);
        }
        if !self.send(token) || !self.receive(token, grant) || !self.send(token) {
            return false;
        }
        for _ in 0..ROUNDS {
            if !self.can_resume(token, output_bytes) {
                break;
            }
            let share = self.unasked_share();
            self.with_session(token, share, output_bytes, Session::resume);
            if !self.send(token) {
                return false;
            }
        }
        true
    }

    /// Returns whether the session can continue, and its replies can be sent then.
    fn can_resume(&mut self, token: u64, output_bytes: usize) -> bool {
        let drains = |session: &Session| session.wait() == Wait::Drain;
        self.connections.get(token).is_some_and(|connection| {
            let session = &connection.session;
            session.can_resume(output_bytes) && (connection.writable || !drains(session))
        })
    }

    /// Receives once, and executes the input. Returns false when the connection is at its end.
    fn receive(&mut self, token: u64, grant: Grant) -> bool {
        let share = self.unasked_share();
        let Some(connection) = self.connections.get(token) else { return false };
        if !connection.readable || !connection.session.wants_input() {
            return true;
        }
        connection.last_active = self.instant;
        if connection.session.is_idle() {
            connection.note_move(self.instant);
        }
        if connection.tls.is_some() {
            return self.receive_encrypted(token, grant);
        }
        let (into_value, wanted, result) = match connection.session.receive_into() {
            Some(spare) => {
                let wanted = spare.len();
                (true, wanted, recv(&connection.socket, spare, RecvFlags::empty()).map(|(len, _)| len))
            }
            None => {
                let input = &mut self.input[..grant.receive_bytes];
                let wanted = input.len();
                (false, wanted, recv(&connection.socket, input, RecvFlags::empty()).map(|(len, _)| len))
            }
        };
        let len = match self.note_received(token, result, wanted) {
            Came::Bytes(len) => len,
            Came::Nothing => return true,
            Came::Broken => return false,
            Came::End => {
                // Requests before the end are still answered.
                self.with_session(token, share, grant.output_bytes, |session, _| session.close());
                return true;
            }
        };
        self.counters().bytes_read.add(len as u64);
        if into_value {
            self.with_session(token, share, grant.output_bytes, |session, ctx| session.received(ctx, len));
        } else {
            let input = std::mem::take(&mut self.input);
            self.with_session(token, share, grant.output_bytes, |session, ctx| {
                session.advance(ctx, &input[..len]);
            });
            self.input = input;
        }
        true
    }

    /// Notes the outcome of receiving up to `wanted` bytes from the connection's socket.
    pub(super) fn note_received(
        &mut self,
        token: u64,
        result: rustix::io::Result<usize>,
        wanted: usize,
    ) -> Came {
        let Some(connection) = self.connections.get(token) else { return Came::Broken };
        let len = match result {
            Ok(0) => return Came::End,
            Ok(len) => len,
            Err(Errno::AGAIN) => {
                connection.readable = false;
                return Came::Nothing;
            }
            Err(Errno::INTR) => {
                self.connections.wait_for_turn(token);
                return Came::Nothing;
            }
            Err(_) => return Came::Broken,
        };
        // A short read empties a stream socket. Later bytes raise another edge, but an end that was reported
        // already does not.
        connection.readable = len == wanted || connection.ended;
        connection.moved_bytes += len as u64;
        if connection.session.has_line() {
            self.shared.budget.note_progress(len as u64);
        }
        self.received_bytes += len;
        Came::Bytes(len)
    }

    /// Sends as much as possible now, announcements too. Returns false when the peer is gone.
    pub(super) fn send(&mut self, token: u64) -> bool {
        let Some(connection) = self.connections.get(token) else { return false };
        if connection.tls.is_some() {
            connection.session.announce();
            return !connection.writable || !connection.has_output() || self.send_encrypted(token);
        }
        loop {
            // As many at a time as a connection may hold.
            connection.session.announce();
            if !connection.writable || connection.session.out.is_empty() {
                return true;
            }
            let (socket, writable) = (&connection.socket, &mut connection.writable);
            let sent = connection.session.out.flush(|bytes, more| {
                let flags = if more { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL };
                let sent = send(socket, bytes, flags).map_err(io::Error::from);
                if matches!(&sent, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
                    *writable = false;
                }
                sent
            });
            let Ok(bytes) = sent else { return false };
            if bytes > 0 {
                connection.note_sent(bytes as usize, self.instant);
                self.shared.counters[self.number].bytes_written.add(bytes);
            }
            if bytes == 0 || !connection.session.out.is_empty() {
                return true;
            }
        }
    }

    /// Queues the connection for whatever it waits for, so that it continues when that comes.
    fn note_wait(&mut self, token: u64) {
        let Some(connection) = self.connections.get(token) else { return };
        match connection.session.wait() {
            _ if connection.is_parked() => {}
            Wait::Room => self.connections.wait_for_room(token),
            Wait::Reads => self.connections.wait_for_read(token),
            Wait::Line => self.connections.wait_for_line(token),
            _ if connection.can_go_on(OUTPUT_BYTES) => self.connections.wait_for_turn(token),
            Wait::None if connection.session.gets_pending() == 0 => self.connections.rest(token),
            Wait::Drain => self.connections.pause(token),
            _ => {}
        }
    }
}
