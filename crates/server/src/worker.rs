//! One event loop: its sockets by epoll, its SSD reads and writes by one I/O queue whose completions wake the
//! same loop.
//!
//! ```text
//!   epoll_wait --> accept (first worker) --> hand connections out
//!              --> readable socket --> Session::advance --> replies, reads wanted
//!              --> I/O queue       --> Session::read_done --> replies
//!   then: submit reads, start a write if one may start, send replies, one flush of the queue
//! ```

mod accept;
mod connection;
mod drive;
mod encrypted;
mod fair_queue;
mod handshakes;
mod in_flight;
mod logins;
mod reclaim;
mod roster;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use larder_device::IoQueue;
use larder_store::{Seconds, SsdEvent};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

use crate::budget::{LINE_BYTES_MAX, RECEIVE_BYTES};
use crate::counters::Counters;
use crate::latency::Round;
use crate::listener::Listener;
use crate::session::{Session, Wait};
use crate::shared::Shared;
use crate::watchers::{WatchClasses, WatchEvent};

use accept::Acceptor;
use connection::Connections;
use encrypted::RecordBuffers;
use fair_queue::Among;
use in_flight::InFlight;
use logins::Shortage;
use reclaim::ReclaimState;

/// A connection that was accepted.
struct Accepted {
    socket: OwnedFd,
    /// The number of its listener.
    listener: usize,
    /// The client's address; None on a Unix socket.
    peer: Option<SocketAddr>,
}

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Close {
    /// The client has gone, or a command asked for it.
    Normal,
    /// The connection broke, or the daemon had to close it.
    Error,
    /// The client was silent for too long.
    Idle,
    /// The daemon stops.
    Shutdown,
}

impl Close {
    /// Returns memcached's word for it.
    fn word(self) -> &'static str {
        match self {
            Close::Normal => "normal",
            Close::Error => "error",
            Close::Idle => "idle_timeout",
            Close::Shutdown => "shutdown",
        }
    }
}

/// Connections on their way from the accepting worker to another.
pub struct Inbox {
    sockets: Mutex<Vec<Accepted>>,
    waker: OwnedFd,
}

impl Inbox {
    /// Returns an empty inbox.
    pub fn new() -> io::Result<Inbox> {
        Ok(Inbox {
            sockets: Mutex::new(Vec::new()),
            waker: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
        })
    }

    /// Returns a descriptor that wakes the inbox's worker when written to.
    pub fn waker(&self) -> io::Result<OwnedFd> {
        self.waker.try_clone()
    }

    fn put(&self, accepted: Accepted) {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).push(accepted);
        let _ = rustix::io::write(&self.waker, &1_u64.to_ne_bytes());
    }

    fn take(&self) -> Vec<Accepted> {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.waker, &mut count);
        std::mem::take(&mut *self.sockets.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

const WAKE: u64 = u64::MAX;
const IO: u64 = u64::MAX - 1;
const TIMER: u64 = u64::MAX - 2;
/// Tokens from here up to `TIMER` are listeners; below are connections.
const LISTENERS: u64 = u64::MAX - 1024;

/// The interval of the loop's upkeep when there is nothing to do. It has a timer of its own: with a limit to each
/// sleep, the kernel would set and clear a timer every time, which under a hypervisor costs as much as a small
/// request.
const TICK: Duration = Duration::from_millis(100);
/// The longest sleep of the loop while a connection waits for room.
const ROOM_TICK: Duration = Duration::from_millis(1);
/// After this many received bytes, finished reads are answered before more is received. Else large values from many
/// peers would delay peers that only read.
const RECEIVED_BYTES_MAX: usize = 64 << 10;
/// The time for which a worker gives turns before it looks at its sockets again: a light request waits this long
/// for others.
const TURNS_TIME: Duration = Duration::from_micros(500);
/// With more events than this at a time, connections wait for their turns instead of being served as they come.
const EVENTS_AT_ONCE_MAX: usize = 32;
/// The time that a stopping worker waits for its connections to finish.
const DRAIN: Duration = Duration::from_secs(3);

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
}

/// Returns a descriptor that becomes readable every [`TICK`].
fn ticking() -> io::Result<OwnedFd> {
    use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};
    let timer = rustix::time::timerfd_create(
        TimerfdClockId::Monotonic,
        TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
    )?;
    let every = Itimerspec { it_interval: timespec(TICK), it_value: timespec(TICK) };
    rustix::time::timerfd_settime(&timer, TimerfdTimerFlags::empty(), &every)?;
    Ok(timer)
}

/// One worker.
pub struct Worker {
    number: usize,
    shared: Arc<Shared>,
    inboxes: Arc<Vec<Inbox>>,
    listeners: Arc<Vec<Listener>>,
    epoll: OwnedFd,
    /// Wakes the loop every [`TICK`].
    timer: OwnedFd,
    connections: Connections,
    in_flight: InFlight,
    /// The buffer that a receive fills.
    input: Vec<u8>,
    /// The buffer that replies are encoded in.
    output: Vec<u8>,
    /// The buffers of records, if connections speak TLS.
    records: Option<Box<RecordBuffers>>,
    reclaim: ReclaimState,
    /// A connection that could read otherwise found no memory for its read.
    read_is_blocked: bool,
    /// Connections with replies from the SSD to send, while completions are taken.
    answered: Vec<u64>,
    /// Bytes received since completions were taken.
    received_bytes: usize,
    accepting: bool,
    acceptor: Acceptor,
    shortage: Shortage,
    next_inbox: usize,
    now: Seconds,
    instant: Instant,
    round: Round,
    /// The timer has ticked since the last upkeep.
    upkeep_is_due: bool,
    /// The last request for a list of its connections that it has answered.
    listed: u64,
}

impl Worker {
    /// Returns worker `number`; the first one also accepts. `queue` must have been opened on this thread.
    pub fn new(
        number: usize,
        shared: Arc<Shared>,
        inboxes: Arc<Vec<Inbox>>,
        listeners: Arc<Vec<Listener>>,
        queue: Option<Box<dyn IoQueue>>,
    ) -> io::Result<Worker> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let add = |fd, token, flags| epoll::add(&epoll, fd, EventData::new_u64(token), flags);
        add(inboxes[number].waker.as_fd(), WAKE, EventFlags::IN)?;
        if let Some(queue) = &queue {
            add(queue.wake_fd(), IO, EventFlags::IN | EventFlags::ET)?;
        }
        let timer = ticking()?;
        add(timer.as_fd(), TIMER, EventFlags::IN)?;
        let instant = Instant::now();
        let now = shared.clock.now();
        let mut worker = Worker {
            number,
            in_flight: InFlight::new(queue, &shared.config),
            input: vec![0; RECEIVE_BYTES],
            output: Vec::new(),
            records: shared.tls.is_some().then(|| Box::new(RecordBuffers::new())),
            reclaim: ReclaimState::default(),
            read_is_blocked: false,
            answered: Vec::new(),
            received_bytes: 0,
            connections: Connections::new(shared.budget.limit() as usize / 4 / inboxes.len()),
            shared,
            inboxes,
            listeners,
            epoll,
            timer,
            accepting: false,
            acceptor: Acceptor::new(),
            shortage: Shortage::default(),
            next_inbox: number,
            now,
            instant,
            round: Round::new(instant),
            upkeep_is_due: false,
            listed: 0,
        };
        worker.accept_on(number == 0)?;
        Ok(worker)
    }

    fn counters(&self) -> &Counters {
        &self.shared.counters[self.number]
    }

    /// Watches the listeners, or stops watching them.
    fn accept_on(&mut self, on: bool) -> io::Result<()> {
        if self.accepting == on {
            return Ok(());
        }
        for (i, listener) in self.listeners.iter().enumerate() {
            match on {
                true => epoll::add(
                    &self.epoll,
                    &listener.socket,
                    EventData::new_u64(LISTENERS + i as u64),
                    EventFlags::IN,
                )?,
                false => epoll::delete(&self.epoll, &listener.socket)?,
            }
        }
        self.accepting = on;
        Ok(())
    }

    /// Runs until the daemon stops.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(256);
        let mut stop_at = None;
        loop {
            let timeout = self.timeout();
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            self.instant = Instant::now();
            self.round.begin(self.instant);
            self.now = self.shared.clock.now();
            let is_crowded = events.len() > EVENTS_AT_ONCE_MAX;
            for event in &events {
                self.handle(event, is_crowded);
                if self.received_bytes > RECEIVED_BYTES_MAX {
                    self.complete_io()?;
                }
            }
            self.take_turns()?;
            self.shake_hands();
            self.complete_io()?;
            self.retry_waiting();
            self.start_writes();
            self.in_flight.flush()?;
            self.press();
            self.reclaim();
            self.keep_up();
            self.shared.show_departed(self.now);
            self.list_sockets();
            self.round.end(&self.shared.counters[self.number], &self.shared.latencies[self.number]);
            if self.shared.stopping.load(Relaxed) {
                let stop_at = *stop_at.get_or_insert(self.instant + DRAIN);
                if self.drain(stop_at)? {
                    return Ok(());
                }
            }
        }
    }

    /// Returns how long the loop may sleep; `None` is until an event.
    fn timeout(&mut self) -> Option<Timespec> {
        // A connection that began to wait for its turn to read after the last turn was given is woken by no event.
        let reads_wait = self.connections.read_waiters() > 0;
        let may_read = reads_wait && self.in_flight.is_empty() && !self.read_is_blocked;
        let has_work = may_read
            || self.connections.turns() + self.connections.handshakes() > 0
            || self.in_flight.has_deferred()
            || self.in_flight.is_ready();
        let waits = self.connections.room_waiters() > 0 || self.waits_for_memory();
        let sleep = match (has_work, waits) {
            (true, _) => Duration::ZERO,
            (false, true) => ROOM_TICK,
            (false, false) => return None,
        };
        Some(timespec(sleep))
    }

    fn handle(&mut self, event: &Event, is_crowded: bool) {
        let flags = event.flags;
        match event.data.u64() {
            WAKE => {
                for accepted in self.inboxes[self.number].take() {
                    self.adopt(accepted);
                }
                // Sending takes the announcements and the watched events along.
                self.shared.leases.take_mail(self.number).into_iter().for_each(|token| self.drive(token));
                self.shared.watchers.take_mail(self.number).into_iter().for_each(|token| self.drive(token));
            }
            // Completions are taken in every round of the loop.
            IO => {}
            TIMER => {
                // Reading the timer sets it again.
                let _ = rustix::io::read(&self.timer, &mut [0; 8]);
                self.upkeep_is_due = true;
            }
            token @ LISTENERS.. => self.accept((token - LISTENERS) as usize),
            token => {
                self.connections.note_event(token, flags);
                if self.connections.has_left_early(token) {
                    return self.end(token, Close::Error);
                }
                // Heavy requests wait until all light ones have been served.
                if self.connections.is_light(token) && !is_crowded && !self.connections.is_handshaking(token)
                {
                    self.connections.begin_turn(token);
                    self.drive(token);
                } else {
                    self.connections.wait_for_turn(token);
                }
            }
        }
    }

    /// Makes a connection to a listener this worker's own.
    fn adopt(&mut self, accepted: Accepted) {
        let Accepted { socket, listener: number, peer } = accepted;
        let listener = &self.listeners[number];
        let Ok(tls) = self.begin_tls(listener.tls) else {
            self.shared.connections.fetch_sub(1, Relaxed);
            return;
        };
        let session = Session::speaking(&self.shared.config, listener.protocol);
        let connection = socket.as_raw_fd();
        let token = self.connections.add(socket, session, tls, self.instant);
        if let Some(connection) = self.connections.get(token) {
            (connection.peer, connection.listener) = (peer, number);
        }
        self.show_connection(peer, connection, None);
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let watched = self
            .connections
            .socket(token)
            .map(|socket| epoll::add(&self.epoll, socket, EventData::new_u64(token), flags));
        if !matches!(watched, Some(Ok(()))) {
            self.end(token, Close::Error);
        }
    }

    /// Shows watchers a connection that begins, or ends for a reason.
    fn show_connection(&self, peer: Option<SocketAddr>, connection: i32, closed: Option<Close>) {
        if self.shared.watchers.watch(WatchClasses::CONNEVENTS) {
            let event = WatchEvent::Connection { peer, closed: closed.map(Close::word), connection };
            self.shared.show(WatchClasses::CONNEVENTS, &event);
        }
    }

    /// Closes a connection. Its reads under way end without effect.
    fn end(&mut self, token: u64, reason: Close) {
        if let Some(connection) = self.connections.get(token) {
            let (peer, descriptor) = (connection.peer, connection.socket.as_raw_fd());
            self.show_connection(peer, descriptor, Some(reason));
        }
        if let Some(session) = self.connections.session(token) {
            session.end_line(&self.shared.budget);
        }
        self.end_tls(token);
        if let Some(bytes) = self.connections.remove(token) {
            self.shared.budget.give(bytes as u64);
            self.shared.budget.note_progress(bytes as u64);
            self.shared.connections.fetch_sub(1, Relaxed);
        }
    }

    /// Gives connections that can continue another turn each, as far as the time allows.
    fn take_turns(&mut self) -> io::Result<()> {
        let began = Instant::now();
        for _ in 0..self.connections.turns() {
            let Some(token) = self.connections.take_turn() else { break };
            self.drive(token);
            if self.received_bytes > RECEIVED_BYTES_MAX {
                self.complete_io()?;
            }
            if began.elapsed() >= TURNS_TIME {
                break;
            }
        }
        Ok(())
    }

    /// Retries connections that wait for room or memory, and gives those that wait to read their turns.
    fn retry_waiting(&mut self) {
        let began = Instant::now();
        for _ in 0..self.connections.room_waiters() {
            let Some(token) = self.connections.take_room_waiter() else { break };
            self.wake(token);
            if began.elapsed() >= TURNS_TIME {
                break;
            }
        }
        let began = Instant::now();
        let mut among = Among::All;
        for _ in 0..=self.connections.parked() {
            let Some(token) = self.connections.first_parked(among) else { break };
            if began.elapsed() >= TURNS_TIME {
                break;
            }
            if self.has_memory(token) {
                self.connections.take_parked(among);
                self.wake(token);
            } else if among == Among::Light {
                break;
            } else {
                among = Among::Light;
            }
        }
        self.receive_lines();
        self.read_is_blocked = false;
        for _ in 0..self.connections.read_waiters() {
            let room = self.in_flight.room();
            if room == 0 {
                return;
            }
            let among = match self.in_flight.heavy_room_bytes() {
                0 => Among::Light,
                _ if self.read_is_blocked => Among::Light,
                _ => Among::All,
            };
            let Some(token) = self.connections.take_read_waiter(among) else { return };
            let is_light = self.connections.is_light(token);
            let has_memory = self.wake_to_read(token, room);
            if !has_memory && is_light {
                return;
            }
        }
    }

    /// Receives long lines for which there is memory now, in the order in which they began to wait.
    fn receive_lines(&mut self) {
        while self.connections.line_waiters() > 0 && self.shared.budget.take_line() {
            let waiter = self.connections.take_line_waiter();
            let session = waiter.and_then(|token| self.connections.session(token));
            match session.filter(|session| session.wait() == Wait::Line) {
                Some(session) => session.receive_line(),
                None => {
                    self.shared.budget.end_line();
                    self.shared.budget.give(LINE_BYTES_MAX as u64);
                    continue;
                }
            }
            waiter.into_iter().for_each(|token| self.drive(token));
        }
    }

    /// Returns whether a connection waits for memory.
    fn waits_for_memory(&self) -> bool {
        self.connections.parked() + self.connections.line_waiters() > 0 || self.read_is_blocked
    }

    /// Does the upkeep that is due: the store's, closing idle connections, accepting again.
    fn keep_up(&mut self) {
        if !std::mem::take(&mut self.upkeep_is_due) {
            return;
        }
        if self.number == 0 {
            self.shared.store.upkeep(self.now);
            while let Some(event) = self.shared.store.next_ssd_event() {
                report(&self.shared, event);
            }
            self.shared.store.note_departures(self.shared.watchers.watch(WatchClasses::EVICTIONS));
            self.accept_again();
        }
        let places_are_short = self.places_are_short();
        if self.shared.auth.is_some() {
            self.keep_up_logins(places_are_short);
        }
        if self.shared.tls.is_some() {
            self.end_late_handshakes(places_are_short);
        }
        if self.shared.leases.are_used() {
            self.connections
                .unheard_since(self.instant)
                .into_iter()
                .for_each(|token| self.end(token, Close::Idle));
        }
        if let Some(limit) = self.shared.config.idle_timeout {
            for token in self.connections.idle_since(self.instant, limit) {
                self.counters().idle_kicks.up();
                self.end(token, Close::Idle);
            }
        }
    }

    /// Closes idle connections and waits for the others until `stop_at`, then closes all. Returns whether the
    /// worker is done.
    fn drain(&mut self, stop_at: Instant) -> io::Result<bool> {
        let _ = self.accept_on(false);
        let late = self.instant >= stop_at;
        for token in self.connections.tokens() {
            if late || self.connections.get(token).is_some_and(|connection| connection.is_idle()) {
                self.end(token, Close::Shutdown);
            }
        }
        Ok(self.connections.is_empty() && (late || self.in_flight.is_empty()))
    }
}

/// Logs a change of the SSD tier, and shows it to watchers.
fn report(shared: &Shared, event: SsdEvent) {
    let text = match event {
        SsdEvent::TurnedOff(seconds) => {
            tracing::error!(
                next_try_s = seconds,
                "the SSD keeps failing: its items are gone, RAM serves alone"
            );
            format!("ssd_off next_try_s={seconds}")
        }
        SsdEvent::ProbeFailed(seconds) => {
            tracing::warn!(next_try_s = seconds, "the SSD still fails");
            format!("ssd_probe_failed next_try_s={seconds}")
        }
        SsdEvent::TurnedOn => {
            tracing::warn!("the SSD works again: its tier is on, and empty");
            "ssd_on".to_string()
        }
    };
    if shared.watchers.watch(WatchClasses::SYSEVENTS) {
        shared.show(WatchClasses::SYSEVENTS, &WatchEvent::System { text: &text });
    }
}
