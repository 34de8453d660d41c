//! One thread's event loop: its connections, and when it waits for what.

use super::arrival::Schedule;
use super::connection::{Connection, Request};
use super::ledger::{Ledger, WriteMark};
use super::plan::{Load, Plan, WhenFull};
use super::replies::{Reader, Then};
use super::tally::{Tally, Window};
use super::{Arrival, DRAIN_NS};
use crate::clock::Clock;
use crate::net::Error;
use crate::random::{Random, mix};
use crate::result::Interval;
use crate::wire::{Encoder, Verb};
use crate::workload::{Asked, Draw, Record, Shared};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fd::OwnedFd;
use std::iter::Peekable;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long a thread sleeps at most before it looks at the stop flags.
const LOOK_NS: u64 = 20_000_000;
/// Requests that are sent in a row before replies are read.
const BATCH: usize = 1024;
const EVENTS: usize = 256;

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
    floors: Vec<u32>,
    dirty: Vec<usize>,
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
            let connection = Connection::open(plan, Draw::new(stream))?;
            let data = epoll::EventData::new_u64(connections.len() as u64);
            epoll::add(&epoll, connection.as_fd(), data, epoll::EventFlags::IN)
                .map_err(|e| Error::host("epoll", e))?;
            connections.push(connection);
        }
        let (number, all) = plan.thread_of_all(thread);
        let (encoder, ledger) = common;
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
            version: clock.unix_ms(0) << 22 ^ (number as u64) << 56,
            keys: Vec::new(),
            floors: Vec::new(),
            dirty: Vec::new(),
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
        for index in 0..self.connections.len() {
            let now_ns = self.clock.now_ns();
            self.late_ns.get_or_insert(now_ns - window.load_ns);
            self.top_up(index, pipeline, offer, now_ns);
            self.flush(index)?;
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
            let in_flight = connection.in_flight();
            let received = connection.receive().map_err(|e| broken(self.plan, &e, in_flight))?;
            if received == 0 {
                continue;
            }
            let now_ns = self.clock.now_ns();
            let answered = reader
                .read(index, connection, self.encoder, tally, now_ns)
                .map_err(|garbage| format!("{} answered {garbage}", self.plan.address))?;
            self.in_flight -= answered;
            let fills_due_ns = if matches!(self.plan.load, Load::Open { .. }) { now_ns } else { 0 };
            while let Some(Then::Store { key, size, expiry_s }) = reader.next_step() {
                let mut asked = self.connections[index].draw.set(&self.shared, key);
                // A trace's get knows how large its value is, and how long it is to live.
                if self.trace.is_some() {
                    asked.expiry_s = expiry_s;
                    asked.size = if size > 0 { size } else { asked.size };
                }
                self.ask(index, asked, false, fills_due_ns);
            }
            if let Load::Closed { pipeline } = self.plan.load
                && !is_draining
            {
                self.top_up(index, pipeline as usize, offer, now_ns);
            }
            if self.connections[index].has_output() && !self.connections[index].is_blocked {
                self.flush(index)?;
            }
        }
        Ok(())
    }

    /// Asks on a connection until this many requests are in flight there.
    fn top_up(&mut self, index: usize, pipeline: usize, offer: &mut Offer, now_ns: u64) {
        while self.connections[index].in_flight() < pipeline && offer.takes_one(now_ns) {
            if let Some(trace) = &mut self.trace {
                let Some(record) = trace.next() else {
                    offer.is_exhausted = true;
                    return;
                };
                self.ask(index, asked_by(&record), false, 0);
            } else {
                let asked = self.connections[index].draw.next(&mut self.shared);
                self.ask(index, asked, true, 0);
            }
        }
    }

    fn ask(&mut self, index: usize, asked: Asked, may_ask_several: bool, due_ns: u64) {
        let connection = &mut self.connections[index];
        self.keys.clear();
        let several = self.shared.workload().multi_get;
        if may_ask_several && several > 1 && asked.verb == Verb::Get {
            self.keys.push(asked.key);
            for _ in 1..several {
                self.keys.push(connection.draw.another_key(&mut self.shared));
            }
        }
        self.send(index, asked, due_ns);
    }

    /// Asks for a key that is stored before the load.
    pub fn ask_set(&mut self, index: usize, asked: Asked) {
        self.keys.clear();
        self.send(index, asked, 0);
    }

    /// Adds a request to a connection, of all `keys` if there are any; the ledger is asked before it is sent.
    fn send(&mut self, index: usize, asked: Asked, due_ns: u64) {
        self.floors.clear();
        let write = match asked.verb {
            Verb::Get => {
                let keys = if self.keys.is_empty() { std::slice::from_ref(&asked.key) } else { &self.keys };
                if self.ledger.is_on() {
                    self.floors.extend(keys.iter().map(|key| self.ledger.floor(*key)));
                } else {
                    self.floors.resize(keys.len(), 0);
                }
                None
            }
            Verb::Set | Verb::Delete => self.ledger.begin(asked.key, asked.verb == Verb::Delete),
            Verb::Incr | Verb::Touch => None,
        };
        self.version += 1;
        let (write, version) = write.unwrap_or((WriteMark::default(), self.version));
        let (keys, floors) = (&self.keys[..], &self.floors[..]);
        let request = Request { asked, keys, floors, due_ns, version, write };
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
            if self.in_flight >= max_in_flight as usize || self.connections[index].is_full() {
                if when_full == WhenFull::Wait {
                    wait = Wait::ForReplies;
                    break;
                }
                tally.dropped += u64::from(due_ns >= window.begin_ns);
                self.skip(offer);
                continue;
            }
            self.ask_due(offer, index, due_ns);
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
        let count = self.connections.len();
        if let Some(record) = self.trace.as_mut().and_then(Peekable::peek) {
            return (mix(record.key) >> 32) as usize % count;
        }
        offer.turn = if offer.turn + 1 >= count { 0 } else { offer.turn + 1 };
        offer.turn
    }

    fn skip(&mut self, offer: &mut Offer) {
        match &mut offer.schedule {
            Some(schedule) => schedule.advance(),
            None => drop(self.trace.as_mut().and_then(Iterator::next)),
        }
    }

    fn ask_due(&mut self, offer: &mut Offer, index: usize, due_ns: u64) {
        if let Some(schedule) = &mut offer.schedule {
            schedule.advance();
        }
        if due_ns >= offer.begin_ns {
            offer.left = offer.left.map(|left| left - 1);
        }
        match self.trace.as_mut().map(Iterator::next) {
            Some(Some(record)) => self.ask(index, asked_by(&record), false, due_ns),
            Some(None) => return,
            None => {
                let asked = self.connections[index].draw.next(&mut self.shared);
                self.ask(index, asked, true, due_ns);
            }
        }
        if !self.connections[index].is_dirty {
            self.connections[index].is_dirty = true;
            self.dirty.push(index);
        }
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
        let in_flight = connection.in_flight();
        let is_all = connection.flush(sent_ns).map_err(|e| broken(self.plan, &e, in_flight))?;
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

/// The requests that are still to be made.
struct Offer {
    /// Of an open loop that is no trace.
    schedule: Option<Schedule>,
    /// Requests that the window may still ask, when their number is bounded.
    left: Option<u64>,
    begin_ns: u64,
    turn: usize,
    is_exhausted: bool,
}

impl Offer {
    fn new(plan: &Plan, thread: usize, window: Window) -> Self {
        let threads = plan.threads;
        let share = |total: u64| total / threads as u64 + u64::from((thread as u64) < total % threads as u64);
        let schedule = match plan.load {
            Load::Open { arrival: Arrival::Trace, .. } | Load::Closed { .. } => None,
            Load::Open { rate, arrival, .. } => {
                let (number, all) = plan.thread_of_all(thread);
                let random = Random::new(mix(plan.workload.seed) ^ mix(number as u64));
                let (rate, offset) = (rate / threads as f64, number as f64 / all as f64);
                Some(Schedule::new(arrival, rate, window.load_ns, offset, random))
            }
        };
        let left = plan.requests.map(share);
        Self { schedule, left, begin_ns: window.begin_ns, turn: 0, is_exhausted: false }
    }

    /// Of a closed loop: whether one more may be asked.
    fn takes_one(&mut self, now_ns: u64) -> bool {
        match &mut self.left {
            Some(0) => self.is_exhausted = true,
            Some(left) if now_ns >= self.begin_ns => *left -= 1,
            Some(_) | None => {}
        }
        !self.is_exhausted
    }
}

fn asked_by(record: &Record) -> Asked {
    Asked { verb: record.verb, key: record.key, size: record.size, expiry_s: record.expiry_s }
}

/// A connection that broke, in words.
pub(super) fn broken(plan: &Plan, error: &std::io::Error, in_flight: usize) -> String {
    let address = &plan.address;
    if error.kind() == std::io::ErrorKind::UnexpectedEof {
        return format!("{address} closed a connection with {in_flight} requests in flight");
    }
    format!("the connection to {address} broke with {in_flight} requests in flight: {error}")
}
