//! The scheduler: one actor runs at a time, and at each step a choice decides what happens next.

use std::fmt::Write as _;
use std::io::Read;

use rustix::net::{RecvFlags, recv};
use socket2::Socket;

use super::history::{Allowed, Moment};
use super::memcached::{Announcement, Memcached, whole_request};
use super::path::Path;
use crate::l1::L1;

/// Decisions after which an execution is taken for endless.
const DECISIONS_MAX: u32 = 20_000;
/// How long a client waits for a reply.
pub const TIMEOUT_MS: u64 = 1000;
/// When an execution begins: behind a tick of the coarse clock, so that time may pass unnoticed.
const BEGIN_MS: u64 = 100_007;

/// What may happen besides the actors' own steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection breaks before its request takes effect.
    LoseRequest,
    /// A connection breaks after its request has taken effect.
    LoseReply,
    /// A client waits for too long; its request may take effect later, or never.
    TimeOut,
    /// So many milliseconds pass.
    Pass(u64),
    /// The server forgets an item.
    EvictAtServer,
    /// A host's cache forgets an entry.
    EvictAtHost,
    /// The server is restarted: connections break, items are gone, cas uniques begin again.
    Restart,
    /// A process is killed.
    Kill,
    /// A connection on which changes are announced breaks.
    LoseLine,
    /// The server says nothing more on such a connection, which stays.
    Hang,
}

/// How far executions are explored.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How often an actor that could go on is interrupted.
    pub preemptions: u32,
    /// How many events there are.
    pub events: u32,
    /// Whether actors are also interrupted and killed inside of changes of shared memory.
    pub at_stores: bool,
}

/// What an actor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Ready,
    /// It waits for the reply on a connection.
    Reply(usize),
    /// It waits to be woken.
    Waits {
        until_ms: u64,
        is_woken: bool,
    },
    Sleeps {
        until_ms: u64,
    },
    /// It waits for what is announced on a connection.
    Listens {
        connection: usize,
        until_ms: u64,
    },
    Ended,
}

/// Where an actor is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Step,
    Store,
}

#[derive(Debug)]
pub struct Actor {
    pub host: usize,
    pub process: u64,
    pub status: Status,
    pub is_killed: bool,
    /// Whether it only listens to announcements.
    pub is_listener: bool,
    /// When the last request of the present operation took effect.
    pub effect: Option<Moment>,
    /// Since when the present operation creates a value.
    pub creating: Option<Moment>,
    /// Of the present or last operation.
    pub begin: Moment,
    /// `NEVER` while the operation is under way.
    pub end: Moment,
    /// Whether a connection of its process has broken, or a request was not answered.
    pub has_broken: bool,
}

#[derive(Debug)]
struct Connection {
    fd: i32,
    process: u64,
    /// The server's end; `None` once it is closed.
    peer: Option<Socket>,
    /// The client's end.
    client: Socket,
    inbox: Vec<u8>,
    /// The actor whose request it is.
    actor: usize,
    is_answered: bool,
    has_timed_out: bool,
    /// The number of its subscription.
    subscription: Option<u64>,
    /// What is announced and not sent yet.
    pending: Vec<Announcement>,
    /// When the changes took effect that were sent and that the client has not heeded yet.
    sent: Vec<Moment>,
    /// Whether the client has something to read.
    is_unread: bool,
    is_hung: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    Run(usize),
    Serve(usize),
    /// Nothing can happen before time passes.
    Idle(u64),
    LoseRequest(usize),
    LoseReply(usize),
    TimeOut(usize),
    Pass(u64),
    EvictAtServer(usize),
    EvictAtHost(usize),
    Restart,
    Kill(u64),
    Announce(usize),
    LoseLine(usize),
    Hang(usize),
}

/// A change that an operation of a host made.
#[derive(Debug)]
struct OwnChange {
    host: usize,
    key: &'static [u8],
    effect: Moment,
    end: Moment,
}

/// All state of an execution.
#[derive(Debug)]
pub struct State {
    pub now: Moment,
    pub running: Option<usize>,
    pub is_setup: bool,
    pub actors: Vec<Actor>,
    pub server: Memcached,
    /// Host, byte and process.
    pub locks: Vec<(usize, u64, u64)>,
    pub path: Path,
    pub fault: Option<String>,
    pub trace: Option<String>,
    pub creations: usize,
    hosts: Vec<L1>,
    connections: Vec<Connection>,
    own_changes: Vec<OwnChange>,
    counts: Vec<u64>,
    events: Vec<Event>,
    limits: Limits,
    decisions: u32,
    has_disturbed: bool,
}

impl State {
    pub fn new(path: Path, limits: Limits, events: &[Event], hosts: Vec<L1>, actors: Vec<Actor>) -> State {
        State {
            now: Moment { seq: 1, ms: BEGIN_MS },
            running: None,
            is_setup: true,
            actors,
            server: Memcached::default(),
            locks: Vec::new(),
            path,
            fault: None,
            trace: None,
            creations: 0,
            hosts,
            connections: Vec::new(),
            own_changes: Vec::new(),
            counts: Vec::new(),
            events: events.to_vec(),
            limits,
            decisions: 0,
            has_disturbed: false,
        }
    }

    pub fn tell(&mut self, what: impl FnOnce() -> String) {
        let Moment { seq, ms } = self.now;
        if let Some(trace) = &mut self.trace {
            let _ = writeln!(trace, "{seq:5} {ms:7} ms  {}", what());
        }
    }

    pub fn fail(&mut self, fault: String) {
        self.tell(|| format!("WRONG: {fault}"));
        self.fault.get_or_insert(fault);
    }

    fn tick(&mut self) -> Moment {
        self.now.seq += 1;
        self.now
    }

    /// Returns the actor that runs next; `None` at the end. `me` is the one that is interrupted, or waits.
    pub fn decide(&mut self, me: Option<usize>, place: Place) -> Option<usize> {
        loop {
            self.tick();
            self.decisions += 1;
            if self.decisions == DECISIONS_MAX {
                self.abort("it never ends".into());
            }
            if let Some(killed) =
                self.actors.iter().position(|actor| actor.is_killed && actor.status != Status::Ended)
            {
                return Some(killed);
            }
            if self.actors.iter().all(|actor| actor.status == Status::Ended) {
                return None;
            }
            let moves = self.moves(me, place);
            if moves.is_empty() {
                self.abort("nothing can go on".into());
                continue;
            }
            let chosen = if self.is_setup { moves[0] } else { moves[self.path.choose(moves.len())] };
            if let Some(next) = self.play(chosen, me) {
                return Some(next);
            }
        }
    }

    /// Ends all actors.
    pub fn abort(&mut self, why: String) {
        self.fail(why);
        self.actors.iter_mut().for_each(|actor| actor.is_killed = true);
    }

    fn is_ready(&self, actor: &Actor) -> bool {
        match actor.status {
            Status::Ready => true,
            Status::Reply(connection) => {
                let Connection { peer, is_answered, has_timed_out, .. } = &self.connections[connection];
                *is_answered || *has_timed_out || peer.is_none()
            }
            Status::Waits { until_ms, is_woken } => is_woken || self.now.ms >= until_ms,
            Status::Sleeps { until_ms } => self.now.ms >= until_ms,
            Status::Listens { connection, until_ms } => {
                let Connection { peer, is_unread, .. } = &self.connections[connection];
                *is_unread || peer.is_none() || self.now.ms >= until_ms
            }
            Status::Ended => false,
        }
    }

    fn moves(&self, me: Option<usize>, place: Place) -> Vec<Move> {
        let mut moves = Vec::new();
        let ready = |at: &usize| self.is_ready(&self.actors[*at]);
        let others = || (0..self.actors.len()).filter(|at| Some(*at) != me && !self.is_setup).filter(ready);
        let may_interrupt = place == Place::Step || self.limits.at_stores;
        match me.filter(ready) {
            Some(me) => {
                moves.push(Move::Run(me));
                if may_interrupt && self.limits.preemptions > 0 {
                    moves.extend(others().map(Move::Run));
                }
            }
            None => {
                moves.extend(others().map(Move::Run));
                let asks = |at: &usize| {
                    let Connection { inbox, is_hung, .. } = &self.connections[*at];
                    !is_hung && whole_request(inbox).is_some()
                };
                moves.extend((0..self.connections.len()).filter(asks).map(Move::Serve));
                let lines = self.lines().filter(|at| !self.connections[*at].pending.is_empty());
                moves.extend(lines.map(Move::Announce));
                if !moves.iter().any(|next| self.is_awaited(*next)) {
                    moves.extend(self.first_deadline().map(Move::Idle));
                }
            }
        }
        if self.limits.events > 0 && may_interrupt && !self.is_setup && !moves.is_empty() {
            self.events.iter().for_each(|event| self.add_moves(*event, &mut moves));
        }
        moves
    }

    fn is_awaited(&self, next: Move) -> bool {
        match next {
            Move::Run(_) => true,
            Move::Serve(at) => match self.actors[self.connections[at].actor].status {
                Status::Reply(awaited) | Status::Listens { connection: awaited, .. } => awaited == at,
                _ => false,
            },
            _ => false,
        }
    }

    /// Returns the connections on which changes are announced, but for those that hang.
    fn lines(&self) -> impl Iterator<Item = usize> {
        let is_line = |at: &usize| {
            let Connection { peer, subscription, is_hung, .. } = &self.connections[*at];
            peer.is_some() && subscription.is_some() && !is_hung
        };
        (0..self.connections.len()).filter(is_line)
    }

    fn first_deadline(&self) -> Option<u64> {
        let deadline = |actor: &Actor| match actor.status {
            Status::Waits { until_ms, .. }
            | Status::Sleeps { until_ms }
            | Status::Listens { until_ms, .. } => Some(until_ms),
            _ => None,
        };
        self.actors.iter().filter_map(deadline).min()
    }

    fn add_moves(&self, event: Event, moves: &mut Vec<Move>) {
        let waiting = self.actors.iter().filter_map(|actor| match actor.status {
            Status::Reply(at) if !self.is_ready(actor) => Some(at),
            _ => None,
        });
        match event {
            Event::LoseRequest => moves.extend(waiting.map(Move::LoseRequest)),
            Event::LoseReply => moves.extend(waiting.map(Move::LoseReply)),
            Event::TimeOut => moves.extend(waiting.map(Move::TimeOut)),
            Event::Pass(ms) => moves.push(Move::Pass(ms)),
            Event::EvictAtServer => moves.extend((0..self.server.keys().len()).map(Move::EvictAtServer)),
            Event::EvictAtHost => {
                let holds = |at: &usize| !self.hosts[*at].is_empty();
                moves.extend((0..self.hosts.len()).filter(holds).map(Move::EvictAtHost));
            }
            Event::LoseLine => moves.extend(self.lines().map(Move::LoseLine)),
            Event::Hang => moves.extend(self.lines().map(Move::Hang)),
            Event::Restart => moves.push(Move::Restart),
            Event::Kill => {
                let alive = self.actors.iter().filter(|actor| actor.status != Status::Ended);
                let mut processes: Vec<u64> = alive.map(|actor| actor.process).collect();
                processes.dedup();
                moves.extend(processes.into_iter().map(Move::Kill));
            }
        }
    }

    /// Does what was chosen. Returns the actor that runs then, if one does.
    fn play(&mut self, chosen: Move, me: Option<usize>) -> Option<usize> {
        let is_own = |chosen: Move| Some(chosen) == me.map(Move::Run);
        if !is_own(chosen) {
            self.tell(|| format!("{chosen:?}"));
        }
        match chosen {
            Move::Run(next) => {
                let interrupts = me.is_some_and(|me| me != next && self.is_ready(&self.actors[me]));
                self.limits.preemptions -= u32::from(interrupts);
                return Some(next);
            }
            Move::Serve(at) => self.serve(at, true),
            Move::Announce(at) => self.announce(at),
            Move::Idle(until_ms) => self.now.ms = self.now.ms.max(until_ms),
            disturbance => {
                self.limits.events -= 1;
                self.disturb(disturbance);
            }
        }
        let now = self.now;
        self.server.expire(now);
        None
    }

    fn disturb(&mut self, disturbance: Move) {
        let now = self.now;
        self.has_disturbed |= !matches!(disturbance, Move::Pass(_) | Move::EvictAtHost(_));
        match disturbance {
            Move::LoseRequest(at) | Move::LoseLine(at) => self.close(at),
            Move::Hang(at) => self.connections[at].is_hung = true,
            Move::LoseReply(at) => {
                self.serve(at, false);
                self.close(at);
            }
            Move::TimeOut(at) => {
                self.now.ms += TIMEOUT_MS;
                let connection = &mut self.connections[at];
                connection.has_timed_out = true;
                connection.client.set_nonblocking(true).expect("a socket");
                self.actors[connection.actor].has_broken = true;
            }
            Move::Pass(ms) => self.now.ms += ms,
            Move::EvictAtServer(nth) => {
                let key = self.server.keys().swap_remove(nth);
                self.server.evict(&key, now);
            }
            Move::EvictAtHost(host) => self.hosts[host].evict_all(),
            Move::Restart => {
                (0..self.connections.len()).for_each(|at| self.close(at));
                self.server.restart(now);
            }
            Move::Kill(process) => {
                let threads = self.actors.iter_mut().filter(|actor| actor.process == process);
                threads.for_each(|actor| actor.is_killed = true);
            }
            Move::Run(_) | Move::Serve(_) | Move::Announce(_) | Move::Idle(_) => {}
        }
    }

    fn serve(&mut self, at: usize, replies: bool) {
        let now = self.tick();
        let connection = &mut self.connections[at];
        let Some((len, line)) = whole_request(&connection.inbox) else { return };
        let request: Vec<u8> = connection.inbox.drain(..len).collect();
        if matches!(&request[..], b"mi\r\n" | b"mn\r\n") {
            return self.serve_line(at, &request);
        }
        let newest = self.server.history.stored(b"k");
        let (reply, is_change) = self.server.take(&request, line, now);
        self.hand_out();
        let connection = &mut self.connections[at];
        let actor = &mut self.actors[connection.actor];
        let is_awaited = actor.status == Status::Reply(at) && !connection.has_timed_out;
        // A late request belongs to an earlier operation.
        let creating = actor.creating.filter(|_| is_awaited);
        if is_awaited && is_change {
            actor.effect = Some(now);
        }
        if let (true, true, Some(peer)) = (replies, is_awaited, &connection.peer) {
            peer.send(&reply).expect("the client reads");
            connection.is_answered = true;
        }
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().replace("\r\n", " / ");
        self.tell(|| format!("    {} -> {}", shown(&request), shown(&reply)));
        if let (Some(creating), Some(newest)) = (creating, newest)
            && newest > creating
            && is_change
        {
            self.fail("a creation has replaced a value that was stored meanwhile".into());
        }
    }

    /// Serves a request of a connection on which changes are announced: those that were made before come first.
    fn serve_line(&mut self, at: usize, request: &[u8]) {
        self.announce(at);
        let reply = match request {
            b"mi\r\n" => {
                let number = self.server.subscribe();
                self.connections[at].subscription = Some(number);
                format!("MI {number}\r\n")
            }
            _ => "MN\r\n".to_string(),
        };
        self.say(at, &reply);
    }

    /// Sends what is announced on a connection.
    fn announce(&mut self, at: usize) {
        let pending = std::mem::take(&mut self.connections[at].pending);
        if !pending.is_empty() {
            let tokens: String = pending.iter().map(|one| format!(" {}", one.token)).collect();
            self.connections[at].sent.extend(pending.iter().map(|one| one.changed));
            self.say(at, &format!("IN{tokens}\r\n"));
        }
    }

    fn say(&mut self, at: usize, line: &str) {
        self.tell(|| format!("    connection {at} is told {}", line.trim_end()));
        let connection = &mut self.connections[at];
        let Some(peer) = &connection.peer else { return };
        // The client may have closed its end.
        match peer.send(line.as_bytes()) {
            Ok(_) => connection.is_unread = true,
            Err(_) => self.close(at),
        }
    }

    /// Hands the server's announcements to the connections that they are for.
    fn hand_out(&mut self) {
        for announcement in std::mem::take(&mut self.server.announcements) {
            let is_its = |one: &&mut Connection| one.subscription == Some(announcement.subscription);
            if let Some(connection) = self.connections.iter_mut().find(is_its) {
                connection.pending.push(announcement);
            }
        }
    }

    /// Takes what an actor has sent that listens. If it has read all that it was told, it has heeded that: from now on
    /// its host reads nothing older. Returns its new status.
    pub fn listen(&mut self, actor: usize, fd: i32, until_ms: u64) -> Status {
        let now = self.tick();
        let Some(connection) = self.receive(actor, fd) else { return Status::Ready };
        let line = &mut self.connections[connection];
        let peeked = recv(&line.client, &mut [0u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        line.is_unread = peeked.is_ok_and(|(_, bytes)| bytes > 0);
        let host = self.actors[actor].host;
        let heeded = if line.is_unread { Vec::new() } else { std::mem::take(&mut line.sent) };
        let own = heeded.into_iter().map(|effect| OwnChange { host, key: b"k", effect, end: now });
        self.own_changes.extend(own);
        Status::Listens { connection, until_ms }
    }

    fn close(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        if let Some(subscription) = connection.subscription {
            self.server.unsubscribe(subscription);
        }
        if connection.peer.take().is_some() {
            connection.inbox.clear();
            let threads = self.actors.iter_mut().filter(|actor| actor.process == connection.process);
            threads.for_each(|actor| actor.has_broken = true);
        }
    }

    /// Takes the server's end of a connection.
    pub fn accept(&mut self, actor: usize, peer: Socket, client: Socket, fd: i32) {
        let process = self.actors[actor].process;
        self.tell(|| format!("actor {actor} connects"));
        self.connections.push(Connection {
            fd,
            process,
            peer: Some(peer),
            client,
            inbox: Vec::new(),
            actor,
            is_answered: false,
            has_timed_out: false,
            subscription: None,
            pending: Vec::new(),
            sent: Vec::new(),
            is_unread: false,
            is_hung: false,
        });
    }

    /// Takes what an actor has sent. Returns the connection; `None` if that is closed.
    pub fn receive(&mut self, actor: usize, fd: i32) -> Option<usize> {
        let process = self.actors[actor].process;
        let found = self.connections.iter().rposition(|one| one.fd == fd && one.process == process);
        let at = found.expect("a simulated connection");
        let connection = &mut self.connections[at];
        (connection.actor, connection.is_answered) = (actor, false);
        let mut peer = connection.peer.as_ref()?;
        let mut bytes = [0; 4096];
        while let Ok(len @ 1..) = peer.read(&mut bytes) {
            connection.inbox.extend_from_slice(&bytes[..len]);
        }
        Some(at)
    }

    /// Notes that an operation begins.
    pub fn begin(&mut self, at: usize, what: impl FnOnce() -> String) {
        let now = self.tick();
        self.tell(|| format!("actor {at} begins {}", what()));
        let actor = &mut self.actors[at];
        (actor.begin, actor.end, actor.effect, actor.creating) = (now, Moment::NEVER, None, None);
    }

    /// Notes that an actor creates a value.
    pub fn create(&mut self, at: usize) {
        self.actors[at].creating = Some(self.tick());
        self.creations += 1;
    }

    /// Notes that an operation has ended, with what it returned.
    pub fn end(&mut self, at: usize, what: impl FnOnce() -> String) {
        let now = self.tick();
        self.tell(|| format!("actor {at} ends: {}", what()));
        self.actors[at].end = now;
    }

    /// Notes that the operation that has just ended changed the server.
    pub fn own_change(&mut self, at: usize, key: &'static [u8]) {
        let Actor { host, effect, end, .. } = self.actors[at];
        if let Some(effect) = effect {
            self.own_changes.push(OwnChange { host, key, effect, end });
        }
    }

    /// Judges what a read returned that has just ended.
    pub fn judge(&mut self, at: usize, key: &'static [u8], value: Option<&[u8]>, age_ms: u64, fresh: bool) {
        let Actor { host, begin, end, .. } = self.actors[at];
        let own = self.own_changes.iter().filter(|own| own.host == host && own.key == key && own.end < begin);
        let newest_own = own.map(|own| own.effect).max().unwrap_or(Moment::FIRST);
        let allowed = Allowed { begin, end, age_ms, newest_own };
        if let Some(fault) = self.server.history.fault_of(key, value, allowed) {
            let shown = value.map(String::from_utf8_lossy);
            self.fail(format!("actor {at} has read {shown:?}: {fault}"));
        }
        if !fresh && !self.actors[at].has_broken && !self.is_renewed_beside(at) {
            self.fail(format!("actor {at} was given a stale value that nothing renews"));
        }
    }

    /// Returns whether another actor of the host was at work during the actor's last operation.
    fn is_renewed_beside(&self, at: usize) -> bool {
        let Actor { host, begin, .. } = self.actors[at];
        let others = self.actors.iter().enumerate().filter(|(other, _)| *other != at);
        others.filter(|(_, other)| other.host == host).any(|(_, other)| other.end > begin)
    }

    /// Returns whether anything happened but time and evictions.
    pub fn has_disturbed(&self) -> bool {
        self.has_disturbed
    }

    /// Judges an error that an operation returned.
    pub fn judge_error(&mut self, at: usize, error: &str) {
        if !self.has_disturbed {
            self.fail(format!("actor {at} was given an error for nothing: {error}"));
        }
    }

    /// Judges what a counter returned: no two calls return the same.
    pub fn judge_count(&mut self, at: usize, count: Option<u64>) {
        if count.is_none_or(|count| self.counts.contains(&count)) && !self.has_disturbed {
            self.fail(format!("actor {at} was given the count {count:?}, and the others {:?}", self.counts));
        }
        self.counts.extend(count);
    }

    /// Notes that an actor has ended.
    pub fn leave(&mut self, at: usize) {
        let now = self.tick();
        let actor = &mut self.actors[at];
        actor.status = Status::Ended;
        actor.end = actor.end.min(now);
        let (host, process, is_killed) = (actor.host, actor.process, actor.is_killed);
        let is_last = !self.actors.iter().any(|one| one.process == process && one.status != Status::Ended);
        if is_last && is_killed {
            self.locks.retain(|(_, _, locked_by)| *locked_by != process);
        }
        if is_killed {
            self.wake(host);
        }
    }

    pub fn wake(&mut self, host: usize) {
        for actor in self.actors.iter_mut().filter(|actor| actor.host == host) {
            if let Status::Waits { is_woken, .. } = &mut actor.status {
                *is_woken = true;
            }
        }
    }

    /// Ends the simulated beginning: choices are made from now on.
    pub fn start(&mut self, pause_ms: u64) {
        self.now.ms += pause_ms;
        let now = self.now;
        self.server.expire(now);
        self.is_setup = false;
        self.creations = 0;
        self.actors.iter_mut().for_each(|actor| actor.status = Status::Ready);
    }
}
