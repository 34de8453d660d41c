//! One thread's event loop: its connections, and when it waits for what.

mod several;

use super::DRAIN_NS;
use super::connection::{Connection, QuietSet, Request, SplitPart};
use super::ledger::{Known, Ledger, Write, WriteMark};
use super::offer::Offer;
use super::plan::{Load, Plan, WhenFull};
use super::replies::{Reader, Then};
use super::tally::{Tally, Window};
use crate::clock::Clock;
use crate::net::Error;
use crate::random::{Random, mix};
use crate::result::Interval;
use crate::wire::{Encoder, Verb};
use crate::workload::{Asked, Draw, Record, Shared};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fd::OwnedFd;
use std::iter::Peekable;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long a thread sleeps at most before it looks at the stop flags.
const LOOK_NS: u64 = 20_000_000;
/// Requests that are sent in a row before replies are read.
const BATCH: usize = 1024;
const EVENTS: usize = 256;
/// Connections that are passed over in search of one that can be asked now.
const PASSED_OVER_MAX: usize = 64;

/// How long to wait for the server.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    /// Not at all.
    No,
    /// Until a moment of the run's clock.
    Until(u64),
    /// Until there is something, and not much longer than it takes to be stopped.
    ForReplies,
}

/// One thread's event loop.
pub(super) struct Reactor<'a> {
    pub plan: &'a Plan,
    pub clock: Clock,
    pub encoder: &'a Encoder,
    pub ledger: &'a Ledger,
    pub connections: Vec<Connection>,
    pub shared: Shared,
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    /// Set to end the run now.
    pub stops: [&'a AtomicBool; 2],
    pub in_flight: usize,
    /// How much later than it was due the first request was sent; none before that.
    pub late_ns: Option<u64>,
    /// Time of the window that it spent asking the clock and the sockets in vain, under `--spin`.
    pub idle_ns: u64,
    thread: usize,
    version: u64,
    keys: Vec<u64>,
    name: Vec<u8>,
    sets: Vec<QuietSet>,
    known: Vec<Known>,
    dirty: Vec<usize>,
    /// The number of the last request that was split among servers.
    split: u32,
    /// The server of each client's next new connection, if every request is one.
    next_server: Vec<usize>,
    trace: Option<Peekable<Box<dyn Iterator<Item = Record> + Send + 'a>>>,
}

impl<'a> Reactor<'a> {
    /// Connects thread `thread`'s share of the connections, each with one of the random `streams`.
    pub fn connect(
        plan: &'a Plan,
        clock: Clock,
        common: (&'a Encoder, &'a Ledger),
        thread: usize,
        streams: Vec<Random>,
        stops: [&'a AtomicBool; 2],
    ) -> Result<Self, Error> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|e| Error::host("epoll", e))?;
        let mut connections = Vec::with_capacity(streams.len());
        for stream in streams {
            for server in 0..plan.server_count() {
                let connection = Connection::open(plan, server, Draw::new(stream.clone()))?;
                let data = epoll::EventData::new_u64(connections.len() as u64);
                epoll::add(&epoll, connection.as_fd(), data, epoll::EventFlags::IN)
                    .map_err(|e| Error::host("epoll", e))?;
                connections.push(connection);
            }
        }
        let (number, all) = plan.thread_of_all(thread);
        let (encoder, ledger) = common;
        let servers = plan.server_count();
        let next_server = (0..connections.len() / servers).map(|client| client % servers).collect();
        Ok(Self {
            plan,
            clock,
            encoder,
            ledger,
            connections,
            shared: Shared::new(&plan.workload, number, all),
            epoll,
            // A spinning thread reads the clock between any two replies.
            events: Vec::with_capacity(if plan.spin { 1 } else { EVENTS }),
            stops,
            in_flight: 0,
            late_ns: None,
            idle_ns: 0,
            thread,
            // Later runs have later versions, and threads of a run their own.
            // Those of the ledger have a kind where these have zeros.
            version: (clock.unix_ms(0) << 22 ^ (number as u64) << 56) & !(3 << 32),
            keys: Vec::new(),
            name: Vec::new(),
            sets: Vec::new(),
            known: Vec::new(),
            dirty: Vec::new(),
            split: 0,
            next_server,
            trace: plan.trace.as_ref().map(|trace| trace.part(number, all).peekable()),
        })
    }

    /// Whether the run is to end now.
    pub fn is_stopped(&self) -> bool {
        self.stops.iter().any(|stop| stop.load(Ordering::Relaxed))
    }

    /// The load, from its beginning to the last reply. The first `Err` is why it ended early.
    pub fn run(
        &mut self,
        window: Window,
        tally: &mut Tally,
        reader: &mut Reader,
        mut on_second: impl FnMut(Interval),
        mut at_bounds: impl FnMut(Bound),
    ) -> Result<(), String> {
        let mut offer = Offer::new(self.plan, self.thread, window);
        let mut is_measured = false;
        let mut drain_until_ns = None;
        let mut idle_since_ns = None;
        self.connections.iter_mut().for_each(|connection| connection.asked = 0);
        if let Load::Closed { pipeline } = self.plan.load {
            self.begin_closed(window, pipeline as usize, &mut offer)?;
        }
        loop {
            let now_ns = self.clock.now_ns();
            while let Some(second) = tally.roll(now_ns) {
                on_second(second);
            }
            if !is_measured && now_ns >= window.begin_ns {
                is_measured = true;
                at_bounds(Bound::Begin);
            }
            if self.is_stopped() {
                return Err(String::new());
            }
            let is_over = now_ns >= window.end_ns || offer.is_exhausted;
            if is_over && drain_until_ns.is_none() {
                drain_until_ns = Some(now_ns + DRAIN_NS);
                at_bounds(Bound::End);
            }
            if let Some(since_ns) = idle_since_ns.take().filter(|since_ns| *since_ns >= window.begin_ns) {
                self.idle_ns += now_ns - since_ns;
            }
            let mut wait = Wait::ForReplies;
            let in_flight = self.in_flight;
            if let Load::Open { .. } = self.plan.load {
                wait = self.offer_due(&mut offer, tally, window, now_ns)?;
            }
            if let Some(until_ns) = drain_until_ns {
                let is_all_sent = !matches!(self.plan.load, Load::Open { .. }) || offer.is_exhausted;
                if is_all_sent && self.in_flight == 0 {
                    return Ok(());
                }
                if now_ns >= until_ns {
                    return self.give_up(&mut offer, tally, window);
                }
            }
            self.wait(wait)?;
            if self.plan.spin && self.events.is_empty() && self.in_flight == in_flight {
                idle_since_ns = (drain_until_ns.is_none()).then_some(now_ns);
            }
            self.receive(tally, reader, &mut offer, drain_until_ns.is_some())?;
        }
    }

    /// Waits for the begin of the load, and fills the pipeline of every connection.
    fn begin_closed(&mut self, window: Window, pipeline: usize, offer: &mut Offer) -> Result<(), String> {
        self.wait(Wait::Until(window.load_ns))?;
        while self.clock.now_ns() < window.load_ns {
            self.wait(Wait::Until(window.load_ns))?;
        }
        for index in (0..self.connections.len()).step_by(self.plan.server_count()) {
            let now_ns = self.clock.now_ns();
            self.late_ns.get_or_insert(now_ns - window.load_ns);
            self.top_up(index, pipeline, offer, now_ns)?;
            self.flush_client(index)?;
        }
        Ok(())
    }

    /// Reads every connection that has something, and in a closed loop asks the next.
    fn receive(
        &mut self,
        tally: &mut Tally,
        reader: &mut Reader,
        offer: &mut Offer,
        is_draining: bool,
    ) -> Result<(), String> {
        for at in 0..self.events.len() {
            let (event, flags) = (self.events[at], self.events[at].flags);
            let index = event.data.u64() as usize;
            if flags.contains(epoll::EventFlags::OUT) {
                self.flush(index)?;
            }
            let others = epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
            if !flags.intersects(others) {
                continue;
            }
            let connection = &mut self.connections[index];
            let received = connection.receive().map_err(|e| broken(self.plan, &e, connection))?;
            if received == 0 {
                continue;
            }
            let now_ns = self.clock.now_ns();
            let answered =
                reader.read(index, connection, self.encoder, tally, now_ns).map_err(|garbage| {
                    format!("{} answered {garbage}", self.plan.address_of(connection.server))
                })?;
            self.in_flight -= answered;
            let fills_due_ns = if matches!(self.plan.load, Load::Open { .. }) { now_ns } else { 0 };
            while let Some(then) = reader.next_step() {
                self.follow(index, then, fills_due_ns);
            }
            if let Load::Closed { pipeline } = self.plan.load
                && !is_draining
            {
                self.top_up(index, pipeline as usize, offer, now_ns)?;
            }
            self.flush_client(index)?;
        }
        Ok(())
    }

    /// Asks what follows a reply.
    fn follow(&mut self, index: usize, then: Then, due_ns: u64) {
        match then {
            Then::Store { key, size, expiry_s } => {
                let client = self.client(index);
                let mut asked = self.connections[client].draw.set(&self.shared, key);
                // A trace's get knows how large its value is, and how long it is to live.
                if self.trace.is_some() {
                    asked.expiry_s = expiry_s;
                    asked.size = if size > 0 { size } else { asked.size };
                }
                self.ask(index, asked, false, due_ns);
            }
            Then::Cas { key, size, expiry_s, unique, basis } => {
                self.keys.clear();
                let asked = Asked { verb: Verb::Cas, key, size, expiry_s };
                self.send(index, asked, Some(Write::Cas(basis)), unique, due_ns);
            }
        }
    }

    /// Asks on a connection until this many requests are in flight there.
    fn top_up(
        &mut self,
        index: usize,
        pipeline: usize,
        offer: &mut Offer,
        now_ns: u64,
    ) -> Result<(), String> {
        let index = self.client(index);
        while self.in_flight_of(index) < pipeline {
            if let Some(used_up) = self.used_up(index) {
                if self.connections[used_up].in_flight() > 0 || offer.is_exhausted {
                    break;
                }
                if self.plan.connects_only() && !offer.takes_one(now_ns) {
                    break;
                }
                self.renew(used_up, 0)?;
                continue;
            }
            if !offer.takes_one(now_ns) {
                break;
            }
            if let Some(trace) = &mut self.trace {
                let Some(record) = trace.next() else {
                    offer.is_exhausted = true;
                    break;
                };
                self.ask(index, asked_by(&record), false, 0);
            } else {
                let asked = self.connections[index].draw.next(&mut self.shared);
                self.ask(index, asked, true, 0);
            }
        }
        Ok(())
    }

    /// The connection of a connection's client that has to be replaced by a new one before the client's next request.
    /// If every request is a new connection, the servers have their turns.
    fn used_up(&self, index: usize) -> Option<usize> {
        let client = self.client(index);
        if self.plan.connects_only() {
            let servers = self.plan.server_count();
            return Some(client + self.next_server[client / servers]);
        }
        let most = self.plan.reconnect?;
        self.connections_of(client).find(|at| self.connections[*at].asked >= most)
    }

    /// Replaces a connection by a new one.
    fn renew(&mut self, index: usize, due_ns: u64) -> Result<(), String> {
        let now_ns = self.clock.now_ns();
        let servers = self.plan.server_count();
        self.next_server[index / servers] = (index % servers + 1) % servers;
        let connection = &mut self.connections[index];
        let renewed = connection.renew(self.plan.tls.as_ref(), self.encoder, due_ns, now_ns);
        renewed.map_err(|source| {
            let address = self.plan.address_of(index % servers).to_string();
            Error::Connect { address, source }.to_string()
        })?;
        let data = epoll::EventData::new_u64(index as u64);
        epoll::add(&self.epoll, connection.as_fd(), data, epoll::EventFlags::IN | epoll::EventFlags::OUT)
            .map_err(|e| format!("epoll: {e}"))?;
        self.in_flight += 1;
        Ok(())
    }

    /// Asks on one of a client's connections; returns on which.
    fn ask(&mut self, index: usize, asked: Asked, may_ask_several: bool, due_ns: u64) -> usize {
        let index = self.home(index, asked.key, asked.verb);
        let connection = &mut self.connections[index];
        self.keys.clear();
        let several = self.shared.workload().multi_get;
        if may_ask_several && several > 1 && asked.verb == Verb::Get {
            self.keys.push(asked.key);
            for _ in 1..several {
                self.keys.push(connection.draw.another_key(&mut self.shared, false));
            }
            if self.plan.servers.is_some() {
                self.ask_split_get(index, asked, due_ns);
                return index;
            }
        }
        if may_ask_several && asked.verb == Verb::Set && self.shared.workload().quiet_sets > 1 {
            self.ask_quiet_sets(index, asked, due_ns);
        } else {
            self.send(index, asked, write_of(asked.verb), 0, due_ns);
        }
        index
    }

    /// The connection of the same client to the server of a key.
    pub fn home(&mut self, index: usize, key: u64, verb: Verb) -> usize {
        let Some(servers) = &self.plan.servers else { return index };
        let names = if verb == Verb::Incr { &self.encoder.counters } else { &self.encoder.items };
        self.name.clear();
        names.write(&mut self.name, key);
        self.client(index) + servers.pick(&self.name)
    }

    /// The first of the connections of a connection's client, which has one to each server.
    fn client(&self, index: usize) -> usize {
        index - index % self.plan.server_count()
    }

    fn connections_of(&self, index: usize) -> Range<usize> {
        self.client(index)..self.client(index) + self.plan.server_count()
    }

    /// Requests in flight on all connections of a connection's client.
    pub fn in_flight_of(&self, index: usize) -> usize {
        self.connections_of(index).map(|at| self.connections[at].in_flight()).sum()
    }

    /// Sends the output of all connections of a connection's client that can be written to.
    pub fn flush_client(&mut self, index: usize) -> Result<(), String> {
        for at in self.connections_of(index) {
            if self.connections[at].has_output() && !self.connections[at].is_blocked {
                self.flush(at)?;
            }
        }
        Ok(())
    }

    /// Begins a write in the ledger, if it is one; returns the version that its value is to carry.
    fn begin(&mut self, key: u64, write: Option<Write>) -> (WriteMark, u64) {
        self.version += 1;
        let begun = write.and_then(|write| self.ledger.begin(key, write));
        begun.unwrap_or((WriteMark::default(), self.version))
    }

    /// Asks for a key that was written, after the load: it takes no part in any figure but those of verification.
    pub fn ask_back(&mut self, index: usize, key: u64) {
        self.keys.clear();
        let index = self.home(index, key, Verb::Get);
        let asked = Asked { verb: Verb::Get, key, size: 0, expiry_s: 0 };
        self.send(index, asked, None, 0, u64::MAX);
    }

    /// Asks for a key that is stored before the load.
    pub fn ask_set(&mut self, index: usize, asked: Asked) {
        self.keys.clear();
        self.send(index, asked, write_of(asked.verb), 0, 0);
    }

    /// Adds a request to a connection, of all `keys` if there are any; the ledger is asked before it is sent.
    fn send(&mut self, index: usize, asked: Asked, write: Option<Write>, unique: u64, due_ns: u64) {
        self.send_part(index, asked, write, unique, due_ns, SplitPart::default());
    }

    /// The same of a part of a request.
    fn send_part(
        &mut self,
        index: usize,
        asked: Asked,
        write: Option<Write>,
        unique: u64,
        due_ns: u64,
        part: SplitPart,
    ) {
        self.known.clear();
        if asked.verb.is_read() || asked.verb.is_change() {
            let keys = if self.keys.is_empty() { std::slice::from_ref(&asked.key) } else { &self.keys };
            if self.ledger.is_on() {
                self.known.extend(keys.iter().map(|key| self.ledger.known(*key)));
            } else {
                self.known.resize(keys.len(), Known::default());
            }
        }
        let (write, version) = self.begin(asked.key, write);
        let (keys, known) = (&self.keys[..], &self.known[..]);
        let request = Request { asked, keys, sets: &[], known, unique, due_ns, version, write, part };
        self.connections[index].ask(self.encoder, request);
        self.in_flight += 1;
    }

    /// Sends the requests that are due, and returns how long to wait for more.
    fn offer_due(
        &mut self,
        offer: &mut Offer,
        tally: &mut Tally,
        window: Window,
        now_ns: u64,
    ) -> Result<Wait, String> {
        let Load::Open { max_in_flight, when_full, .. } = self.plan.load else {
            return Ok(Wait::ForReplies);
        };
        let mut batch = 0;
        let mut wait = Wait::No;
        while batch < BATCH {
            let Some(due_ns) = self.due_ns(offer, window) else {
                offer.is_exhausted = true;
                wait = Wait::ForReplies;
                break;
            };
            if due_ns > now_ns {
                wait = Wait::Until(due_ns.min(now_ns + LOOK_NS));
                break;
            }
            self.late_ns.get_or_insert(now_ns - due_ns);
            let index = self.turn(offer);
            let waits = self.used_up(index).is_some_and(|at| self.connections[at].in_flight() > 0);
            let is_full = self.connections_of(index).any(|at| self.connections[at].is_full());
            if self.in_flight >= max_in_flight as usize || is_full || waits {
                if when_full == WhenFull::Wait {
                    wait = Wait::ForReplies;
                    break;
                }
                tally.dropped += u64::from(due_ns >= window.begin_ns);
                self.skip(offer);
                continue;
            }
            self.ask_due(offer, index, due_ns)?;
            batch += 1;
        }
        // A connection that is blocked is flushed when it can be written again.
        let sent_ns = self.clock.now_ns();
        while let Some(index) = self.dirty.pop() {
            if self.connections[index].is_blocked {
                self.connections[index].is_dirty = false;
            } else {
                self.flush_at(index, sent_ns)?;
            }
        }
        Ok(wait)
    }

    fn due_ns(&mut self, offer: &Offer, window: Window) -> Option<u64> {
        let due_ns = match (&mut self.trace, &offer.schedule) {
            (Some(trace), None) => window.load_ns + trace.peek()?.at_ns,
            (_, Some(schedule)) => schedule.due_ns(),
            (None, None) => return None,
        };
        (due_ns < window.end_ns && offer.left != Some(0)).then_some(due_ns)
    }

    /// The connection that the next request goes out on: one after the other, or of a trace always the same
    /// for a key.
    fn turn(&mut self, offer: &mut Offer) -> usize {
        let servers = self.plan.server_count();
        let count = self.connections.len() / servers;
        if let Some(record) = self.trace.as_mut().and_then(Peekable::peek) {
            return (mix(record.key) >> 32) as usize % count * servers;
        }
        // One that waits to be replaced is passed over, if there is another.
        for _ in 0..count.min(PASSED_OVER_MAX) {
            offer.turn = if offer.turn + 1 >= count { 0 } else { offer.turn + 1 };
            let at = offer.turn * servers;
            if self.used_up(at).is_none_or(|at| self.connections[at].in_flight() == 0) {
                break;
            }
        }
        offer.turn * servers
    }

    fn skip(&mut self, offer: &mut Offer) {
        match &mut offer.schedule {
            Some(schedule) => schedule.advance(),
            None => drop(self.trace.as_mut().and_then(Iterator::next)),
        }
    }

    fn ask_due(&mut self, offer: &mut Offer, index: usize, due_ns: u64) -> Result<(), String> {
        if let Some(schedule) = &mut offer.schedule {
            schedule.advance();
        }
        if due_ns >= offer.begin_ns {
            offer.left = offer.left.map(|left| left - 1);
        }
        if let Some(used_up) = self.used_up(index) {
            self.renew(used_up, due_ns)?;
            if self.plan.connects_only() {
                return Ok(());
            }
        }
        let at = match self.trace.as_mut().map(Iterator::next) {
            Some(Some(record)) => self.ask(index, asked_by(&record), false, due_ns),
            Some(None) => return Ok(()),
            None => {
                let asked = self.connections[index].draw.next(&mut self.shared);
                self.ask(index, asked, true, due_ns)
            }
        };
        for at in self.connections_of(at) {
            if self.connections[at].has_output() && !self.connections[at].is_dirty {
                self.connections[at].is_dirty = true;
                self.dirty.push(at);
            }
        }
        Ok(())
    }

    /// Requests that are unanswered so long after the window are given up and reported.
    fn give_up(&mut self, offer: &mut Offer, tally: &mut Tally, window: Window) -> Result<(), String> {
        let mut never_sent = 0;
        while !offer.is_exhausted && self.due_ns(offer, window).is_some() {
            never_sent += 1;
            self.skip(offer);
        }
        tally.dropped += never_sent;
        if self.in_flight > 0 && never_sent == 0 {
            let seconds = DRAIN_NS / 1_000_000_000;
            let count = self.in_flight;
            return Err(format!("{count} requests were not answered within {seconds} s after the end"));
        }
        Ok(())
    }

    /// Waits for the server; its readiness is in `events` then.
    pub fn wait(&mut self, wait: Wait) -> Result<(), String> {
        let failed = |error: rustix::io::Errno| format!("epoll: {error}");
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let look = Timespec { tv_sec: 0, tv_nsec: LOOK_NS as i64 };
        let is_patient = matches!(wait, Wait::ForReplies) && !self.plan.spin;
        self.poll(if is_patient { &look } else { &zero }).map_err(failed)?;
        let Wait::Until(until_ns) = wait else { return Ok(()) };
        if self.plan.spin {
            return Ok(());
        }
        if self.events.is_empty() {
            let left_ns = until_ns.saturating_sub(self.clock.now_ns());
            if left_ns > 0 {
                // poll keeps to nanoseconds where epoll's own wait rounds up to milliseconds.
                let left = Timespec {
                    tv_sec: (left_ns / 1_000_000_000) as i64,
                    tv_nsec: (left_ns % 1_000_000_000) as i64,
                };
                match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&left)) {
                    Ok(0) | Err(rustix::io::Errno::INTR) => {}
                    Ok(_) => self.poll(&zero).map_err(failed)?,
                    Err(error) => return Err(failed(error)),
                }
            }
        }
        Ok(())
    }

    fn poll(&mut self, timeout: &Timespec) -> rustix::io::Result<()> {
        self.events.clear();
        let spare = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, spare, Some(timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The connections that have something to say, or can be written again.
    pub fn ready(&self) -> impl Iterator<Item = (usize, bool)> + use<> {
        let is_writable = |event: &epoll::Event| {
            let flags = event.flags;
            flags.contains(epoll::EventFlags::OUT)
        };
        let ready: Vec<_> =
            self.events.iter().map(|event| (event.data.u64() as usize, is_writable(event))).collect();
        ready.into_iter()
    }

    /// Sends a connection's output.
    pub fn flush(&mut self, index: usize) -> Result<(), String> {
        let sent_ns = self.clock.now_ns();
        self.flush_at(index, sent_ns)
    }

    fn flush_at(&mut self, index: usize, sent_ns: u64) -> Result<(), String> {
        let connection = &mut self.connections[index];
        let is_all = connection.flush(sent_ns).map_err(|e| broken(self.plan, &e, connection))?;
        if is_all == connection.is_blocked {
            connection.is_blocked = !is_all;
            let mut flags = epoll::EventFlags::IN;
            flags.set(epoll::EventFlags::OUT, !is_all);
            let data = epoll::EventData::new_u64(index as u64);
            epoll::modify(&self.epoll, connection.as_fd(), data, flags).map_err(|e| format!("epoll: {e}"))?;
        }
        Ok(())
    }
}

/// A bound of the window that was passed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    /// From here on it counts.
    Begin,
    /// Nothing more becomes due.
    End,
}

/// The write that a verb is by itself.
fn write_of(verb: Verb) -> Option<Write> {
    match verb {
        Verb::Set => Some(Write::Set),
        Verb::Delete => Some(Write::Delete),
        Verb::Append => Some(Write::Append),
        Verb::Prepend => Some(Write::Prepend),
        Verb::Get | Verb::Gets | Verb::Gat | Verb::Cas | Verb::Incr | Verb::Touch | Verb::Connect => None,
    }
}

fn asked_by(record: &Record) -> Asked {
    Asked { verb: record.verb, key: record.key, size: record.size, expiry_s: record.expiry_s }
}

/// A connection that broke, in words.
pub(super) fn broken(plan: &Plan, error: &std::io::Error, connection: &Connection) -> String {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    let (address, in_flight) = (plan.address_of(connection.server), connection.in_flight());
    let is_closed = matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe);
    if is_closed && !connection.is_answered() {
        return format!(
            "{address} closed a connection before its first answer: it may take fewer connections than \
             -c {}, or not speak -P {}",
            plan.connections,
            plan.protocol.name()
        );
    }
    if error.kind() == UnexpectedEof {
        return format!("{address} closed a connection with {in_flight} requests in flight");
    }
    format!("the connection to {address} broke with {in_flight} requests in flight: {error}")
}
