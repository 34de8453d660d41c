//! A worker's connections: sockets with their sessions, who wants a turn, who waits. Driving a connection
//! means reading what is there, executing it, sending what can be sent.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::Worker;
use crate::config::Protocol;
use crate::session::{Ctx, Session};

/// One read takes at most this many bytes before others get their turn.
const READ_BYTES: usize = 64 << 10;
/// A connection whose buffers are below this is never closed for its memory.
const SMALL_BYTES: usize = 256 << 10;

struct Connection {
    socket: OwnedFd,
    session: Session,
    /// There may be something to read; edge-triggered events tell only of changes.
    readable: bool,
    /// The peer has ended its side, or both: after what it sent comes an end to be read, and no other event.
    ended: bool,
    writable: bool,
    has_turn: bool,
    waits: bool,
    last_active: Instant,
    /// Bytes counted for it in the daemon's total.
    counted_bytes: usize,
    generation: u32,
}

/// All connections of one worker. A token is a place and the generation of who sits there.
pub(super) struct Connections {
    places: Vec<Option<Connection>>,
    generations: Vec<u32>,
    free: Vec<u32>,
    turns: VecDeque<u64>,
    /// Who waits for room in RAM or on the SSD.
    room_waiters: Vec<u64>,
    /// Who waits for reads to finish, first come first served.
    read_waiters: VecDeque<u64>,
    input: Vec<u8>,
    output: Vec<u8>,
}

fn token_of(place: usize, generation: u32) -> u64 {
    u64::from(generation & 0x3FFF_FFFF) << 32 | place as u64
}

impl Connections {
    pub(super) fn new() -> Self {
        Connections {
            places: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            turns: VecDeque::new(),
            room_waiters: Vec::new(),
            read_waiters: VecDeque::new(),
            input: vec![0; READ_BYTES],
            output: Vec::with_capacity(READ_BYTES),
        }
    }

    pub(super) fn add(&mut self, socket: OwnedFd, protocol: Protocol, now: Instant) -> u64 {
        let place = self.free.pop().map_or(self.places.len(), |place| place as usize);
        if place == self.places.len() {
            self.places.push(None);
            self.generations.push(0);
        }
        self.generations[place] = self.generations[place].wrapping_add(1);
        let generation = self.generations[place];
        self.places[place] = Some(Connection {
            socket,
            session: Session::new(protocol),
            readable: true,
            ended: false,
            writable: true,
            has_turn: false,
            waits: false,
            last_active: now,
            counted_bytes: 0,
            generation,
        });
        token_of(place, generation)
    }

    fn get(&mut self, token: u64) -> Option<&mut Connection> {
        let connection = self.places.get_mut(token as u32 as usize)?.as_mut()?;
        (token_of(token as u32 as usize, connection.generation) == token).then_some(connection)
    }

    /// Whether at most one read of the connection is under way, so that its answer can be sent at once; then
    /// it is lent the buffer to encode in.
    pub(super) fn lend_output_for_last(&mut self, token: u64) -> bool {
        let mut output = std::mem::take(&mut self.output);
        let is_last = self.session(token).is_none_or(|session| {
            let is_last = session.gets_pending() <= 1;
            if is_last {
                session.out.lend(&mut output);
            }
            is_last
        });
        self.output = output;
        is_last
    }

    pub(super) fn session(&mut self, token: u64) -> Option<&mut Session> {
        self.get(token).map(|connection| &mut connection.session)
    }

    pub(super) fn socket(&mut self, token: u64) -> Option<BorrowedFd<'_>> {
        self.get(token).map(|connection| connection.socket.as_fd())
    }

    /// Forgets a connection, which closes its socket; answers the bytes that were counted for it.
    pub(super) fn remove(&mut self, token: u64) -> Option<usize> {
        let bytes = self.get(token)?.counted_bytes;
        self.places[token as u32 as usize] = None;
        self.free.push(token as u32);
        Some(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    pub(super) fn tokens(&self) -> Vec<u64> {
        let tokens = self.places.iter().enumerate();
        tokens.filter_map(|(place, c)| c.as_ref().map(|c| token_of(place, c.generation))).collect()
    }

    pub(super) fn has_turns(&self) -> bool {
        !self.turns.is_empty()
    }

    pub(super) fn waits_for_room(&self) -> bool {
        !self.room_waiters.is_empty()
    }

    pub(super) fn read_waiters(&self) -> usize {
        self.read_waiters.len()
    }

    /// The connection wants to go on without anything having happened.
    pub(super) fn take_turn(&mut self, token: u64) {
        if let Some(connection) = self.get(token)
            && !std::mem::replace(&mut connection.has_turn, true)
        {
            self.turns.push_back(token);
        }
    }

    pub(super) fn take_turns(&mut self) -> Vec<u64> {
        let turns: Vec<u64> = self.turns.drain(..).collect();
        for &token in &turns {
            if let Some(connection) = self.get(token) {
                connection.has_turn = false;
            }
        }
        turns
    }

    /// The connection is to be tried again when there may be what it waits for: room, or room for reads.
    pub(super) fn wait_again(&mut self, token: u64, for_room: bool) {
        if let Some(connection) = self.get(token)
            && !std::mem::replace(&mut connection.waits, true)
        {
            match for_room {
                true => self.room_waiters.push(token),
                false => self.read_waiters.push_back(token),
            }
        }
    }

    pub(super) fn take_room_waiters(&mut self) -> Vec<u64> {
        let waiters = std::mem::take(&mut self.room_waiters);
        waiters.iter().for_each(|token| self.waits_no_more(*token));
        waiters
    }

    pub(super) fn take_read_waiter(&mut self) -> Option<u64> {
        let waiter = self.read_waiters.pop_front()?;
        self.waits_no_more(waiter);
        Some(waiter)
    }

    fn waits_no_more(&mut self, token: u64) {
        if let Some(connection) = self.get(token) {
            connection.waits = false;
        }
    }

    pub(super) fn idle_since(&self, now: Instant, limit: Duration) -> Vec<u64> {
        let idle = |c: &Connection| c.session.awaits_peer() && now.duration_since(c.last_active) >= limit;
        let all = self.places.iter().enumerate();
        all.filter_map(|(place, c)| c.as_ref().filter(|c| idle(c)).map(|c| token_of(place, c.generation)))
            .collect()
    }
}

impl Connections {
    /// Whether it can go on at once: there may be something to read, or there is input left.
    pub(super) fn can_go_on(&mut self, token: u64) -> bool {
        self.get(token).is_some_and(|c| c.session.wants_turn() || c.readable && c.session.wants_input())
    }

    /// Notes what epoll said.
    pub(super) fn note_event(&mut self, token: u64, flags: EventFlags) {
        let Some(connection) = self.get(token) else { return };
        let ended = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        connection.ended |= ended;
        connection.readable |= ended || flags.contains(EventFlags::IN);
        connection.writable |= flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR);
    }
}

impl Worker {
    /// Calls a session with the surroundings it needs, then submits the reads it wants. While others wait for
    /// reads it may ask for none: else who just had an answer would always be before them.
    pub(super) fn with_session(&mut self, token: u64, call: impl FnOnce(&mut Session, &mut Ctx<'_>)) {
        let read_room = if self.connections.read_waiters() > 0 { 0 } else { self.flights.room() };
        self.with_reads(token, read_room, call);
    }

    /// [`with_session`](Self::with_session), with so many reads that it may ask for.
    pub(super) fn with_reads(
        &mut self,
        token: u64,
        read_room: usize,
        call: impl FnOnce(&mut Session, &mut Ctx<'_>),
    ) {
        let Some(connection) = self.connections.get(token) else { return };
        let mut ctx = Ctx {
            shared: &self.shared,
            counters: &self.shared.counters[self.number],
            now: self.now,
            instant: self.instant,
            read_room,
            reads: self.flights.wanted(),
        };
        call(&mut connection.session, &mut ctx);
        self.flights.submit_wanted(token, &self.shared, self.now);
    }

    /// Reads, executes, sends, as far as that goes now.
    pub(super) fn drive(&mut self, token: u64) {
        let mut lent = std::mem::take(&mut self.connections.output);
        let mut alive = true;
        if let Some(session) = self.connections.session(token) {
            session.out.lend(&mut lent);
            if session.wants_turn() {
                self.with_session(token, |session, ctx| session.advance(ctx, &[]));
            }
        }
        alive &= self.send(token);
        if alive {
            alive = self.receive(token) && self.send(token);
        }
        if let Some(session) = self.connections.session(token) {
            session.out.give_back(&mut lent);
        }
        if lent.capacity() == 0 {
            lent = Vec::with_capacity(READ_BYTES);
        }
        self.connections.output = lent;
        let over = self.connections.session(token).is_none_or(|session| session.is_over());
        if !alive || over {
            return self.end(token);
        }
        self.count_memory(token);
        self.note_wait(token);
    }

    /// One read from the socket and what follows from it; false when the connection is at its end.
    fn receive(&mut self, token: u64) -> bool {
        let Some(connection) = self.connections.get(token) else { return false };
        if !connection.readable || !connection.session.wants_input() {
            return true;
        }
        connection.last_active = self.instant;
        let (into_value, wanted, result) = match connection.session.receive_into() {
            Some(spare) => {
                let wanted = spare.len();
                (true, wanted, recv(&connection.socket, spare, RecvFlags::empty()).map(|(len, _)| len))
            }
            None => {
                let mut input = std::mem::take(&mut self.connections.input);
                let Some(connection) = self.connections.get(token) else { return false };
                let result = recv(&connection.socket, &mut input[..], RecvFlags::empty()).map(|(len, _)| len);
                self.connections.input = input;
                (false, READ_BYTES, result)
            }
        };
        let len = match result {
            Ok(0) => {
                // What was asked before the end is still answered.
                self.with_session(token, |session, _| session.close());
                return true;
            }
            Ok(len) => len,
            Err(error) => {
                let error = io::Error::from(error);
                match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        if let Some(connection) = self.connections.get(token) {
                            connection.readable = false;
                        }
                        return true;
                    }
                    io::ErrorKind::Interrupted => {
                        self.connections.take_turn(token);
                        return true;
                    }
                    _ => return false,
                }
            }
        };
        self.counters().bytes_read.add(len as u64);
        self.received_bytes += len;
        if let Some(connection) = self.connections.get(token) {
            // A short read empties a stream socket; what comes later raises another edge, but for an end
            // already told of.
            connection.readable = len == wanted || connection.ended;
        }
        if into_value {
            self.with_session(token, |session, ctx| session.received(ctx, len));
        } else {
            let input = std::mem::take(&mut self.connections.input);
            self.with_session(token, |session, ctx| session.advance(ctx, &input[..len]));
            self.connections.input = input;
        }
        true
    }

    /// Sends what can be sent; false when the peer is gone.
    pub(super) fn send(&mut self, token: u64) -> bool {
        loop {
            let Some(connection) = self.connections.get(token) else { return false };
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
            match sent {
                Ok(bytes) => {
                    connection.last_active = self.instant;
                    self.shared.counters[self.number].bytes_written.add(bytes);
                    let drained = bytes > 0 && connection.session.wait() == crate::session::Wait::Drain;
                    if !drained {
                        return true;
                    }
                    self.with_session(token, |session, ctx| session.resume(ctx));
                    let still = self.connections.session(token).map(|session| session.wait());
                    if still == Some(crate::session::Wait::Drain) {
                        return true;
                    }
                }
                Err(_) => return false,
            }
        }
    }

    /// Keeps the total of all connections' buffers, and its bound: past it, who holds much is closed.
    fn count_memory(&mut self, token: u64) {
        let Some(connection) = self.connections.get(token) else { return };
        let bytes = connection.session.memory_bytes();
        let before = std::mem::replace(&mut connection.counted_bytes, bytes);
        let total = &self.shared.conn_bytes;
        let now = total.fetch_add((bytes as u64).wrapping_sub(before as u64), Relaxed);
        let now = now.wrapping_add((bytes as u64).wrapping_sub(before as u64));
        if now > self.shared.config.conn_memory_bytes / 4 * 3 && bytes > SMALL_BYTES {
            self.counters().memory_kicks.up();
            if self.shared.logs(1) {
                eprintln!(
                    "larder: closed a connection that held {bytes} bytes of buffers; see --conn-memory"
                );
            }
            self.end(token);
        }
    }
}
