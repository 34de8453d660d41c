//! A worker's connections: sockets with their sessions, and the queues in which they wait for turns, room, reads or
//! memory.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;

use super::fair_queue::{Account, Among, FairQueue, VirtualClock};
use super::handshakes::Handshakes;
use crate::process;
use crate::session::{Session, Wait};
use crate::tls::TlsStream;

pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    pub(super) session: Session,
    /// The client's address; None on a Unix socket.
    pub(super) peer: Option<SocketAddr>,
    /// The number of the listener that accepted it.
    pub(super) listener: usize,
    /// Its TLS, if it speaks any.
    pub(super) tls: Option<Box<TlsStream>>,
    /// There may be bytes to read: edge-triggered events report changes only.
    pub(super) readable: bool,
    /// The peer has ended its side, or both. After its last bytes the end is read, without another event.
    pub(super) ended: bool,
    pub(super) writable: bool,
    has_turn: bool,
    /// In a queue of connections that wait for room, or for a turn to read.
    waits: bool,
    /// In the queue of connections that wait for memory.
    parked: bool,
    pub(super) last_active: Instant,
    /// Bytes moved over the socket since `moved_since`, either way; together with those that the peer has
    /// acknowledged since the last look.
    pub(super) moved_bytes: u64,
    moved_since: Instant,
    /// Bytes in the system's buffer that the peer had not acknowledged at the last look.
    unacknowledged: usize,
    /// Bytes of the budget that this connection holds.
    pub(super) held_bytes: usize,
    /// Bytes that its handshake counts for, if one has begun.
    handshake_bytes: usize,
    account: Account,
    generation: u32,
}

impl Connection {
    /// Returns whether it can continue without an event: there is input to execute or to receive.
    pub(super) fn can_go_on(&self, output_bytes_max: usize) -> bool {
        let drains = self.session.wait() == Wait::Drain && !self.writable;
        !drains && self.session.can_resume(output_bytes_max) || self.readable && self.session.wants_input()
    }

    /// Returns whether it waits for memory.
    pub(super) fn is_parked(&self) -> bool {
        self.parked
    }

    /// Returns whether its handshake has not ended.
    pub(super) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|stream| stream.is_handshaking())
    }

    /// Returns whether records were made that are not sent.
    fn has_unsent_records(&self) -> bool {
        self.tls.as_ref().is_some_and(|stream| !stream.unsent().is_empty())
    }

    /// Returns the bytes still to come of a request or a record whose memory it holds already; 0 for none.
    pub(super) fn missing_bytes(&self) -> usize {
        match &self.tls {
            Some(stream) => stream.missing(),
            None => self.session.input_missing(),
        }
    }

    /// Returns whether there is something to send.
    pub(super) fn has_output(&self) -> bool {
        !self.session.out.is_empty() || self.has_unsent_records()
    }

    /// Returns whether there is no partial request and no waiting reply.
    pub(super) fn is_idle(&self) -> bool {
        self.session.is_idle() && !self.has_unsent_records()
    }

    /// Returns whether it is to be closed and all replies have been sent.
    pub(super) fn is_over(&self) -> bool {
        self.session.is_over() && !self.has_unsent_records()
    }

    /// Returns the bytes of memory that it holds.
    pub(super) fn memory_bytes(&self) -> usize {
        self.session.memory_bytes() + self.tls.as_ref().map_or(0, |stream| stream.memory_bytes())
    }

    /// Returns the bytes taken from the budget for it since the last call, to be held.
    pub(super) fn take_claimed(&mut self) -> usize {
        self.session.take_claimed() + self.tls.as_mut().map_or(0, |stream| stream.take_claimed())
    }

    /// Returns whether it is queued for a turn.
    pub(super) fn waits_for_turn(&self) -> bool {
        self.has_turn
    }

    /// Notes that `bytes` were sent to it.
    pub(super) fn note_sent(&mut self, bytes: usize, now: Instant) {
        if bytes > 0 {
            self.last_active = now;
            self.moved_bytes += bytes as u64;
        }
    }

    /// Notes that it moves.
    pub(super) fn note_move(&mut self, now: Instant) {
        (self.moved_since, self.moved_bytes) = (now, 0);
    }

    /// Returns the bytes that its peer has acknowledged since the last look. The system takes no more to send before
    /// a third of its buffer is free, which on a slow connection lasts seconds; by these bytes the peer moves all
    /// the same.
    pub(super) fn look(&mut self, now: Instant) -> u64 {
        let unacknowledged = process::unacknowledged_bytes(&self.socket);
        let acknowledged = self.unacknowledged.saturating_sub(unacknowledged) as u64;
        self.unacknowledged = unacknowledged;
        self.moved_bytes += acknowledged;
        if self.moved_bytes >= MOVED_BYTES_MIN {
            self.note_move(now);
        }
        acknowledged
    }

    /// Returns for how long it has moved next to nothing, as seen by the last [`look`](Self::look).
    pub(super) fn still_for(&self, now: Instant) -> Duration {
        now.duration_since(self.moved_since)
    }

    /// Returns whether it can continue only when its peer acts: replies are not taken, or a request is not
    /// complete.
    pub(super) fn awaits_peer(&self) -> bool {
        let unread = self.has_output() && !self.writable;
        unread || !self.readable && !self.parked && self.session.wants_input()
    }
}

/// A connection that moves fewer bytes stands still.
const MOVED_BYTES_MIN: u64 = 4 << 10;
/// Connections that hold less are not worth closing.
pub(super) const HELD_BYTES_MIN: usize = 2 << 10;
/// A connection that holds no more than this holds little.
const LIGHT_HELD_BYTES: usize = 64 << 10;

/// All connections of one worker. A token is a place and the generation of the connection in it.
pub(super) struct Connections {
    places: Vec<Option<Connection>>,
    generations: Vec<u32>,
    free: Vec<u32>,
    /// The clock of all their accounts.
    clock: VirtualClock,
    /// Connections that can continue without an event.
    turns: FairQueue,
    /// Connections whose handshakes can continue.
    handshakes: Handshakes,
    /// Connections that wait for room in RAM or on the SSD.
    room_waiters: VecDeque<u64>,
    /// Connections that wait for the memory of a long line, in the order in which they began to.
    line_waiters: VecDeque<u64>,
    /// Connections that wait for a turn to read.
    read_waiters: FairQueue,
    /// Connections that wait for memory.
    parked: FairQueue,
}

fn token_of(place: usize, generation: u32) -> u64 {
    u64::from(generation & 0x3FFF_FFFF) << 32 | place as u64
}

fn connection_of(places: &mut [Option<Connection>], token: u64) -> Option<&mut Connection> {
    let place = token as u32 as usize;
    let connection = places.get_mut(place)?.as_mut()?;
    (token_of(place, connection.generation) == token).then_some(connection)
}

impl Connections {
    /// Returns no connections, whose handshakes together may hold `handshake_bytes_max`.
    pub(super) fn new(handshake_bytes_max: usize) -> Self {
        Connections {
            places: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            clock: VirtualClock::default(),
            turns: FairQueue::default(),
            handshakes: Handshakes::new(handshake_bytes_max),
            room_waiters: VecDeque::new(),
            line_waiters: VecDeque::new(),
            read_waiters: FairQueue::default(),
            parked: FairQueue::default(),
        }
    }

    pub(super) fn add(
        &mut self,
        socket: OwnedFd,
        session: Session,
        tls: Option<Box<TlsStream>>,
        now: Instant,
    ) -> u64 {
        let place = self.free.pop().map_or(self.places.len(), |place| place as usize);
        if place == self.places.len() {
            self.places.push(None);
            self.generations.push(0);
        }
        self.generations[place] = self.generations[place].wrapping_add(1);
        let generation = self.generations[place];
        self.places[place] = Some(Connection {
            socket,
            session,
            peer: None,
            listener: 0,
            tls,
            readable: true,
            ended: false,
            writable: true,
            has_turn: false,
            waits: false,
            parked: false,
            last_active: now,
            moved_bytes: 0,
            moved_since: now,
            unacknowledged: 0,
            held_bytes: 0,
            handshake_bytes: 0,
            account: Account::default(),
            generation,
        });
        token_of(place, generation)
    }

    pub(super) fn get(&mut self, token: u64) -> Option<&mut Connection> {
        connection_of(&mut self.places, token)
    }

    pub(super) fn session(&mut self, token: u64) -> Option<&mut Session> {
        self.get(token).map(|connection| &mut connection.session)
    }

    pub(super) fn socket(&mut self, token: u64) -> Option<BorrowedFd<'_>> {
        self.get(token).map(|connection| connection.socket.as_fd())
    }

    /// Forgets a connection, which closes its socket. Returns the bytes of the budget that it held.
    pub(super) fn remove(&mut self, token: u64) -> Option<usize> {
        self.rest(token);
        let connection = self.get(token)?;
        let (bytes, counted) = (connection.held_bytes, connection.handshake_bytes);
        self.handshakes.count(counted, None);
        self.places[token as u32 as usize] = None;
        self.free.push(token as u32);
        Some(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    /// Returns all connections with their tokens.
    pub(super) fn all(&mut self) -> impl Iterator<Item = (u64, &mut Connection)> {
        let places = self.places.iter_mut().enumerate();
        places.filter_map(|(place, c)| c.as_mut().map(|c| (token_of(place, c.generation), c)))
    }

    pub(super) fn tokens(&mut self) -> Vec<u64> {
        self.all().map(|(token, _)| token).collect()
    }

    pub(super) fn idle_since(&mut self, now: Instant, limit: Duration) -> Vec<u64> {
        let idle = |c: &Connection| {
            c.session.awaits_peer() && !c.has_unsent_records() && now.duration_since(c.last_active) >= limit
        };
        self.all().filter_map(|(token, c)| idle(c).then_some(token)).collect()
    }

    /// Returns the connections whose logins wait to be answered.
    pub(super) fn logins(&mut self) -> Vec<u64> {
        self.all().filter_map(|(token, c)| (c.session.wait() == Wait::Login).then_some(token)).collect()
    }

    /// Returns the connections whose peers have taken `limit` or longer to log in, after their handshakes.
    pub(super) fn late_logins(&mut self, now: Instant, limit: Duration) -> Vec<u64> {
        let is_late = |c: &mut Connection| !c.is_handshaking() && c.session.is_late(now, limit);
        self.all().filter_map(|(token, c)| is_late(c).then_some(token)).collect()
    }

    /// Returns the connections whose peers have taken `limit` or longer for their handshakes; or `limit_short`, if
    /// other handshakes wait for the memory that these hold.
    pub(super) fn late_handshakes(
        &mut self,
        now: Instant,
        limit: Duration,
        limit_short: Duration,
    ) -> Vec<u64> {
        let are_short = self.handshakes.are_short();
        let is_late = |c: &Connection| {
            let Some(stream) = c.tls.as_ref().filter(|stream| stream.is_handshaking()) else { return false };
            let lasts = now.duration_since(stream.began());
            !c.has_turn && (lasts >= limit || are_short && stream.has_begun() && lasts >= limit_short)
        };
        self.all().filter_map(|(token, c)| is_late(c).then_some(token)).collect()
    }

    /// Returns the subscribed connections from which nothing was heard for too long.
    pub(super) fn unheard_since(&mut self, now: Instant) -> Vec<u64> {
        self.all().filter_map(|(token, c)| c.session.is_unheard(now).then_some(token)).collect()
    }

    /// Notes the events that epoll reported.
    pub(super) fn note_event(&mut self, token: u64, flags: EventFlags) {
        let Some(connection) = self.get(token) else { return };
        let ended = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        connection.ended |= ended;
        connection.readable |= ended || flags.contains(EventFlags::IN);
        connection.writable |= flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR);
    }
}

/// The queues.
impl Connections {
    pub(super) fn turns(&self) -> usize {
        self.turns.len()
    }

    /// Returns how many handshakes can have a turn now.
    pub(super) fn handshakes(&self) -> usize {
        self.handshakes.ready()
    }

    /// Returns whether a handshake that holds `bytes` holds too much.
    pub(super) fn is_too_much_for_handshake(&self, bytes: usize) -> bool {
        self.handshakes.is_too_much(bytes)
    }

    /// Counts the memory of the connection's handshake, after it has changed.
    pub(super) fn count_handshake(&mut self, token: u64) {
        let Some(connection) = connection_of(&mut self.places, token) else { return };
        let Some(stream) = &connection.tls else { return };
        // One that waits for memory for its first bytes will hold some, whoever wakes it.
        let has_begun = stream.is_handshaking() && (stream.has_begun() || connection.parked);
        let holds = has_begun.then_some(connection.held_bytes);
        connection.handshake_bytes = self.handshakes.count(connection.handshake_bytes, holds);
    }

    /// Returns whether its peer has gone before its handshake has begun. What it sent is the beginning at most.
    pub(super) fn has_left_early(&mut self, token: u64) -> bool {
        let left = |c: &mut Connection| c.ended && c.tls.as_ref().is_some_and(|stream| !stream.has_begun());
        self.get(token).is_some_and(left)
    }

    pub(super) fn is_handshaking(&mut self, token: u64) -> bool {
        self.get(token).is_some_and(|connection| connection.is_handshaking())
    }

    /// Returns the next handshake to have its turn.
    pub(super) fn take_handshake(&mut self, now: Instant) -> Option<u64> {
        let places = &mut self.places;
        let has_begun = |token| connection_of(places, token).is_none_or(|c| c.handshake_bytes > 0);
        let token = self.handshakes.pop(has_begun)?;
        if let Some(connection) = self.get(token) {
            connection.has_turn = false;
            connection.tls.iter_mut().for_each(|stream| stream.note_turn(now));
        }
        self.begin_turn(token);
        Some(token)
    }

    pub(super) fn room_waiters(&self) -> usize {
        self.room_waiters.len()
    }

    pub(super) fn line_waiters(&self) -> usize {
        self.line_waiters.len()
    }

    pub(super) fn read_waiters(&self) -> usize {
        self.read_waiters.len()
    }

    pub(super) fn parked(&self) -> usize {
        self.parked.len()
    }

    /// Queues a connection that can continue without an event.
    pub(super) fn wait_for_turn(&mut self, token: u64) {
        if let Some(connection) = connection_of(&mut self.places, token)
            && !std::mem::replace(&mut connection.has_turn, true)
        {
            if connection.is_handshaking() {
                return self.handshakes.push(token);
            }
            self.turns.push(&mut self.clock, token, &mut connection.account);
        }
    }

    /// Notes that a turn of the connection begins.
    pub(super) fn begin_turn(&mut self, token: u64) {
        if let Some(connection) = connection_of(&mut self.places, token) {
            self.clock.begin_turn(&mut connection.account);
        }
    }

    /// Notes that the connection can do nothing until its peer takes its replies.
    pub(super) fn pause(&mut self, token: u64) {
        if let Some(connection) = connection_of(&mut self.places, token) {
            self.clock.pause(&mut connection.account);
        }
    }

    /// Notes that the connection has nothing to do until its peer asks for more.
    pub(super) fn rest(&mut self, token: u64) {
        if let Some(connection) = connection_of(&mut self.places, token) {
            self.clock.rest(&mut connection.account);
        }
    }

    pub(super) fn take_turn(&mut self) -> Option<u64> {
        let token = self.turns.pop(&self.clock, Among::All)?;
        if let Some(connection) = self.get(token) {
            connection.has_turn = false;
        }
        self.begin_turn(token);
        Some(token)
    }

    /// Queues a connection to be tried again when there may be room.
    pub(super) fn wait_for_room(&mut self, token: u64) {
        if let Some(connection) = self.get(token)
            && !std::mem::replace(&mut connection.waits, true)
        {
            self.room_waiters.push_back(token);
        }
    }

    /// Queues a connection that waits for the memory of a long line.
    pub(super) fn wait_for_line(&mut self, token: u64) {
        if let Some(connection) = self.get(token)
            && !std::mem::replace(&mut connection.waits, true)
        {
            self.line_waiters.push_back(token);
        }
    }

    /// Notes that one turn of the connection took `bytes`: read for it, or to be sent to it.
    pub(super) fn charge(&mut self, token: u64, bytes: u64) {
        let Some(connection) = connection_of(&mut self.places, token) else { return };
        let others_wait = self.turns.len() + self.read_waiters.len() + self.parked.len() > 0;
        self.clock.charge(&mut connection.account, bytes, others_wait);
    }

    /// Returns whether the connection's turns are light and it holds little memory.
    pub(super) fn is_light(&mut self, token: u64) -> bool {
        self.get(token).is_some_and(|c| c.account.is_light() && c.held_bytes <= LIGHT_HELD_BYTES)
    }

    /// Queues a connection that waits for its turn to read.
    pub(super) fn wait_for_read(&mut self, token: u64) {
        if let Some(connection) = connection_of(&mut self.places, token)
            && !std::mem::replace(&mut connection.waits, true)
        {
            connection.account.expect(connection.session.wanted_bytes() as u64);
            self.read_waiters.push(&mut self.clock, token, &mut connection.account);
        }
    }

    /// Queues a connection that waits for memory.
    pub(super) fn park(&mut self, token: u64) {
        if let Some(connection) = connection_of(&mut self.places, token)
            && !std::mem::replace(&mut connection.parked, true)
        {
            self.parked.push(&mut self.clock, token, &mut connection.account);
        }
    }

    /// Returns the next connection that waits for memory.
    pub(super) fn first_parked(&self, among: Among) -> Option<u64> {
        self.parked.first(&self.clock, among)
    }

    pub(super) fn take_room_waiter(&mut self) -> Option<u64> {
        let waiter = self.room_waiters.pop_front()?;
        self.waits_no_more(waiter);
        Some(waiter)
    }

    pub(super) fn take_line_waiter(&mut self) -> Option<u64> {
        let waiter = self.line_waiters.pop_front()?;
        self.waits_no_more(waiter);
        Some(waiter)
    }

    pub(super) fn take_read_waiter(&mut self, among: Among) -> Option<u64> {
        let waiter = self.read_waiters.pop(&self.clock, among)?;
        self.waits_no_more(waiter);
        self.begin_turn(waiter);
        Some(waiter)
    }

    pub(super) fn take_parked(&mut self, among: Among) -> Option<u64> {
        let token = self.parked.pop(&self.clock, among)?;
        if let Some(connection) = self.get(token) {
            connection.parked = false;
        }
        self.begin_turn(token);
        Some(token)
    }

    fn waits_no_more(&mut self, token: u64) {
        if let Some(connection) = self.get(token) {
            connection.waits = false;
        }
    }
}
