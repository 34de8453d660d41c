//! A worker's connections: sockets with their sessions, which of them want a turn, which of them wait for what.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;

use crate::config::Protocol;
use crate::session::{Session, Wait};

pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    pub(super) session: Session,
    /// There may be something to read; edge-triggered events tell only of changes.
    pub(super) readable: bool,
    /// The peer has ended its side, or both: after what it sent comes an end to be read, and no other event.
    pub(super) ended: bool,
    pub(super) writable: bool,
    has_turn: bool,
    /// In the queue of those that wait for room, or for a turn to read.
    waits: bool,
    /// In the queue of those that wait for memory.
    parked: bool,
    pub(super) last_active: Instant,
    /// Bytes moved over the socket since `moved_since`, either way.
    pub(super) moved_bytes: u64,
    pub(super) moved_since: Instant,
    /// Bytes of the budget that this connection holds.
    pub(super) held_bytes: usize,
    /// The virtual time at which its last read is paid for (see [`Connections::wait_for_read`]).
    read_paid: u64,
    /// Bytes it read in its last turn, which the next one is expected to be like.
    read_bytes: u64,
    generation: u32,
}

impl Connection {
    /// Whether there is something to do that needs no event: input to execute or to receive.
    pub(super) fn can_go_on(&self, output_bytes_max: usize) -> bool {
        let drains = self.session.wait() == Wait::Drain && !self.writable;
        !drains && self.session.can_resume(output_bytes_max) || self.readable && self.session.wants_input()
    }

    /// Whether it waits for memory.
    pub(super) fn is_parked(&self) -> bool {
        self.parked
    }

    /// Whether nothing but its peer can bring it on: replies that are not taken, a request that is not ended.
    pub(super) fn awaits_peer(&self) -> bool {
        let unread = !self.session.out.is_empty() && !self.writable;
        unread || !self.readable && !self.parked && self.session.wants_input()
    }
}

/// All connections of one worker. A token is a place and the generation of the connection in it.
pub(super) struct Connections {
    places: Vec<Option<Connection>>,
    generations: Vec<u32>,
    free: Vec<u32>,
    turns: VecDeque<u64>,
    /// Connections that wait for room in RAM or on the SSD.
    room_waiters: Vec<u64>,
    /// Connections that wait for a turn to read, by virtual time and then by arrival.
    read_waiters: BTreeMap<(u64, u64), u64>,
    read_arrivals: u64,
    /// The virtual time: bytes read, divided by the connections that waited for their turn meanwhile.
    read_now: u64,
    /// Connections that wait for memory, first come first served.
    parked: VecDeque<u64>,
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
            read_waiters: BTreeMap::new(),
            read_arrivals: 0,
            read_now: 0,
            parked: VecDeque::new(),
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
            parked: false,
            last_active: now,
            moved_bytes: 0,
            moved_since: now,
            held_bytes: 0,
            read_paid: 0,
            read_bytes: 0,
            generation,
        });
        token_of(place, generation)
    }

    pub(super) fn get(&mut self, token: u64) -> Option<&mut Connection> {
        let connection = self.places.get_mut(token as u32 as usize)?.as_mut()?;
        (token_of(token as u32 as usize, connection.generation) == token).then_some(connection)
    }

    pub(super) fn session(&mut self, token: u64) -> Option<&mut Session> {
        self.get(token).map(|connection| &mut connection.session)
    }

    pub(super) fn socket(&mut self, token: u64) -> Option<BorrowedFd<'_>> {
        self.get(token).map(|connection| connection.socket.as_fd())
    }

    /// Forgets a connection, which closes its socket. Returns the bytes of the budget that it held.
    pub(super) fn remove(&mut self, token: u64) -> Option<usize> {
        let bytes = self.get(token)?.held_bytes;
        self.places[token as u32 as usize] = None;
        self.free.push(token as u32);
        Some(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    /// All connections with their tokens.
    pub(super) fn all(&mut self) -> impl Iterator<Item = (u64, &mut Connection)> {
        let places = self.places.iter_mut().enumerate();
        places.filter_map(|(place, c)| c.as_mut().map(|c| (token_of(place, c.generation), c)))
    }

    pub(super) fn tokens(&mut self) -> Vec<u64> {
        self.all().map(|(token, _)| token).collect()
    }

    pub(super) fn idle_since(&mut self, now: Instant, limit: Duration) -> Vec<u64> {
        let idle = |c: &Connection| c.session.awaits_peer() && now.duration_since(c.last_active) >= limit;
        self.all().filter_map(|(token, c)| idle(c).then_some(token)).collect()
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

/// The queues.
impl Connections {
    pub(super) fn has_turns(&self) -> bool {
        !self.turns.is_empty()
    }

    pub(super) fn waits_for_room(&self) -> bool {
        !self.room_waiters.is_empty()
    }

    pub(super) fn read_waiters(&self) -> usize {
        self.read_waiters.len()
    }

    pub(super) fn parked(&self) -> usize {
        self.parked.len()
    }

    /// The connection wants to go on without an event.
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

    /// The connection is to be tried again when there may be room.
    pub(super) fn wait_for_room(&mut self, token: u64) {
        if let Some(connection) = self.get(token)
            && !std::mem::replace(&mut connection.waits, true)
        {
            self.room_waiters.push(token);
        }
    }

    /// The connection gets its turn to read.
    ///
    /// Turns are given by weighted fair queueing (Demers, Keshav and Shenker, 1989), all connections alike: next
    /// is the connection whose read would end first if all that wait were served at once, a byte each in turn.
    /// So a connection that reads little hardly waits for what others have queued, whatever the sizes of their
    /// reads.
    pub(super) fn wait_for_read(&mut self, token: u64) {
        let now = self.read_now;
        let arrival = self.read_arrivals;
        if let Some(connection) = self.get(token)
            && !std::mem::replace(&mut connection.waits, true)
        {
            let end = connection.read_paid.max(now) + connection.read_bytes;
            self.read_waiters.insert((end, arrival), token);
            self.read_arrivals += 1;
        }
    }

    /// Notes that the connection was let through to read `bytes`.
    pub(super) fn charge_read(&mut self, token: u64, bytes: usize) {
        let (now, bytes) = (self.read_now, bytes as u64);
        if let Some(connection) = self.get(token) {
            connection.read_paid = connection.read_paid.max(now) + bytes;
            connection.read_bytes = bytes;
        }
        self.read_now += bytes / (self.read_waiters.len() as u64 + 1);
    }

    /// The connection waits for memory, behind those that wait already.
    pub(super) fn park(&mut self, token: u64) {
        if let Some(connection) = self.get(token)
            && !std::mem::replace(&mut connection.parked, true)
        {
            self.parked.push_back(token);
        }
    }

    pub(super) fn take_room_waiters(&mut self) -> Vec<u64> {
        let waiters = std::mem::take(&mut self.room_waiters);
        waiters.iter().for_each(|token| self.waits_no_more(*token));
        waiters
    }

    pub(super) fn take_read_waiter(&mut self) -> Option<u64> {
        let (_, waiter) = self.read_waiters.pop_first()?;
        self.waits_no_more(waiter);
        Some(waiter)
    }

    pub(super) fn take_parked(&mut self) -> Option<u64> {
        let token = self.parked.pop_front()?;
        if let Some(connection) = self.get(token) {
            connection.parked = false;
        }
        Some(token)
    }

    fn waits_no_more(&mut self, token: u64) {
        if let Some(connection) = self.get(token) {
            connection.waits = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn connections(count: usize) -> (Connections, Vec<u64>) {
        let mut all = Connections::new();
        let tokens = (0..count)
            .map(|_| {
                let (socket, _) = UnixStream::pair().expect("a descriptor");
                all.add(socket.into(), Protocol::Auto, Instant::now())
            })
            .collect();
        (all, tokens)
    }

    #[test]
    fn a_connection_that_reads_little_is_next_whatever_others_have_queued() {
        let (mut all, tokens) = connections(101);
        let (modest, greedy) = tokens.split_last().expect("some");
        for _ in 0..3 {
            for token in greedy {
                all.wait_for_read(*token);
                let first = all.take_read_waiter().expect("one waits");
                all.charge_read(first, 1 << 20);
            }
        }
        greedy.iter().for_each(|token| all.wait_for_read(*token));
        for _ in 0..500 {
            all.wait_for_read(*modest);
            let mut ahead = 0;
            while let Some(other) = all.take_read_waiter().filter(|next| next != modest) {
                all.charge_read(other, 1 << 20);
                all.wait_for_read(other);
                ahead += 1;
            }
            assert!(ahead <= 2, "{ahead} of a hundred are ahead");
            all.charge_read(*modest, 4096);
            let other = all.take_read_waiter().expect("a hundred wait");
            all.charge_read(other, 1 << 20);
            all.wait_for_read(other);
        }
    }

    #[test]
    fn connections_that_read_alike_take_turns() {
        let (mut all, tokens) = connections(5);
        let mut counts = [0; 5];
        tokens.iter().for_each(|token| all.wait_for_read(*token));
        for _ in 0..100 {
            let next = all.take_read_waiter().expect("all wait");
            counts[tokens.iter().position(|token| *token == next).expect("known")] += 1;
            all.charge_read(next, 4096);
            all.wait_for_read(next);
        }
        assert_eq!(counts, [20; 5]);
    }
}
