//! Runs the threads of a plan from their connecting to their end, and merges their measurements.

use super::audit;
use super::cpu::{self, Used};
use super::ledger::Ledger;
use super::plan::{Load, Plan, Verify};
use super::prefill::{Stored, prefill};
use super::reactor::{Bound, Reactor};
use super::replies::Reader;
use super::tally::{Finished, Tally, Window};
use super::{Observer, Phase};
use crate::clock::Clock;
use crate::net::Error;
use crate::random::{Random, mix};
use crate::result::{self, Generator, Interval, Run, Verified};
use crate::watch;
use crate::wire::{Encoder, Verb};
use crate::workload::values::Pool;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Between the last thread's readiness and the load.
const LEAD_NS: u64 = 5_000_000;
/// A last piece of a second that is shorter is counted with the second before.
const PIECE_MS: u64 = 250;

/// A thread's messages.
enum News {
    /// It is connected, or done with the prefill.
    Ready,
    /// This many more keys are stored.
    Stored(u64),
    /// A second is over.
    Second(Interval),
    /// It is done.
    Done(Result<Box<Outcome>, Error>),
}

/// The next step that a thread may take.
#[derive(Clone, Copy)]
enum Go {
    Prefill,
    Load(Window),
}

/// A thread's measurements.
struct Outcome {
    finished: Finished,
    at_begin: Used,
    at_end: Used,
    /// How much later than planned it began.
    late_ns: u64,
    idle_ns: u64,
    /// Why it ended early.
    cut_short: Option<String>,
    said: Vec<String>,
    /// Keys that were read back after the load.
    read_back: u64,
}

/// Runs the plan. `stop` ends the run early; the result holds the measurements until then.
///
/// # Errors
/// There is no result: the plan cannot be done, or something failed before the window began.
pub fn execute(plan: &Plan, observer: &dyn Observer, stop: &AtomicBool) -> Result<Run, Error> {
    let mut plan = plan.clone();
    if let Some(trace) = &plan.trace {
        plan.workload.keys = trace.keys();
    }
    plan.check().map_err(Error::Plan)?;
    let plan = &plan;
    // A server that is not there shows when the threads connect; one that refuses TLS or a login is reported once.
    let tls = if plan.tls.is_some() || plan.login.is_some() { super::reach(plan)? } else { None };
    let (items, counters) = plan.workload.names().map_err(Error::Plan)?;
    let encoder = Encoder { protocol: plan.protocol, items, counters, pool: Pool::new() };
    let clock = Clock::start();
    let ledger = ledger_of(plan, clock);
    let abort = AtomicBool::new(false);
    let loaded = AtomicUsize::new(0);
    let first = plan.part.first_connection;
    let mut streams = Random::streams(plan.workload.seed, first + plan.connections).into_iter().skip(first);
    thread::scope(|scope| {
        let (tell, news) = channel();
        let mut go = Vec::new();
        for index in 0..plan.threads {
            let more = usize::from(index < plan.connections % plan.threads);
            let streams: Vec<_> = streams.by_ref().take(plan.connections / plan.threads + more).collect();
            let (send, wait) = channel();
            go.push(send);
            let (tell, encoder, ledger, stops) = (tell.clone(), &encoder, &ledger, [stop, &abort]);
            let loaded = &loaded;
            let body = move || {
                let lane = Lane { plan, clock, encoder, ledger, index, tell: &tell, wait: &wait, loaded };
                let outcome = lane.run(streams, stops);
                // The run is over when one of its threads is over before its time.
                if !matches!(&outcome, Ok(outcome) if outcome.cut_short.is_none()) {
                    stops[1].store(true, Ordering::Relaxed);
                }
                let _ = tell.send(News::Done(outcome.map(Box::new)));
            };
            thread::Builder::new()
                .name(format!("load-{index}"))
                .spawn_scoped(scope, body)
                .map_err(|e| Error::host("starting a thread", e))?;
        }
        drop(tell);
        let run = Conductor { plan, clock, news, go, observer, stop }.conduct()?;
        Ok(Run { tls, ..run })
    })
}

/// The ledger of a plan: none where values are not verified, or where other processes write the same keys.
fn ledger_of(plan: &Plan, clock: Clock) -> Ledger {
    if plan.verify == Verify::Off || plan.part.of > 1 {
        return Ledger::off();
    }
    let is_lasting = plan.workload.expiry_s.1 == 0 && plan.trace.is_none();
    let has_changes = plan.workload.mix.has(Verb::is_change);
    Ledger::new(mix(clock.unix_ms(0)) as u32, plan.workload.keys, is_lasting, has_changes)
}

/// One thread's way through a run.
struct Lane<'a> {
    plan: &'a Plan,
    clock: Clock,
    encoder: &'a Encoder,
    ledger: &'a Ledger,
    index: usize,
    tell: &'a Sender<News>,
    wait: &'a Receiver<Go>,
    /// Threads that are done with the load.
    loaded: &'a AtomicUsize,
}

impl Lane<'_> {
    fn run(&self, streams: Vec<Random>, stops: [&AtomicBool; 2]) -> Result<Outcome, Error> {
        let plan = self.plan;
        if !plan.cpus.is_empty() {
            cpu::pin(plan.cpus[self.index % plan.cpus.len()])?;
        }
        // Sleeps are to end when asked, not up to 50 us later as the kernel otherwise takes the liberty to.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut reactor =
            Reactor::connect(plan, self.clock, (self.encoder, self.ledger), self.index, streams, stops)?;
        let _ = self.tell.send(News::Ready);
        let mut go = self.go()?;
        if let Go::Prefill = go {
            self.prefill(&mut reactor)?;
            let _ = self.tell.send(News::Ready);
            go = self.go()?;
        }
        let Go::Load(window) = go else { return Err(Error::Before("the run did not begin".to_string())) };
        Ok(self.load(&mut reactor, window))
    }

    fn go(&self) -> Result<Go, Error> {
        self.wait.recv().map_err(|_| Error::Before("the run was stopped before it began".to_string()))
    }

    /// This thread's part of the keys.
    fn keys(&self) -> Range<u64> {
        let keys = u128::from(self.plan.workload.keys);
        let (index, threads) = self.plan.thread_of_all(self.index);
        let part = |index: usize| (keys * index as u128 / threads as u128) as u64;
        part(index)..part(index + 1)
    }

    /// Reads back what was written, once all threads are done with the load.
    fn audit(
        &self,
        reactor: &mut Reactor<'_>,
        reader: &mut Reader<'_>,
        tally: &mut Tally,
    ) -> Result<u64, String> {
        if !audit::is_due(self.plan) {
            return Ok(0);
        }
        while self.loaded.load(Ordering::Relaxed) < self.plan.threads {
            if reactor.is_stopped() {
                return Err(String::new());
            }
            thread::sleep(Duration::from_millis(1));
        }
        audit::read_back(reactor, self.keys(), reader, tally)
    }

    fn prefill(&self, reactor: &mut Reactor<'_>) -> Result<(), Error> {
        let Stored { stored, refused, said } = prefill(reactor, self.keys(), |stored| {
            let _ = self.tell.send(News::Stored(stored));
        })
        .map_err(|why| {
            if why.is_empty() { stopped_in_prefill() } else { Error::Before(format!("prefill: {why}")) }
        })?;
        if refused > 0 {
            let (address, keys) = (&self.plan.address, stored + refused);
            let said = said.unwrap_or_default();
            return Err(Error::Before(format!(
                "prefill: {address} refused {refused} of {keys} sets: {said}"
            )));
        }
        Ok(())
    }

    fn load(&self, reactor: &mut Reactor<'_>, window: Window) -> Outcome {
        let is_open = matches!(self.plan.load, Load::Open { .. });
        let mut tally = Tally::new(window, is_open, self.plan.verify);
        let mut reader = Reader::new(&self.plan.workload, self.ledger, reactor.connections.len());
        let on_second = |second| drop(self.tell.send(News::Second(second)));
        let (mut at_begin, mut at_end) = (None, None);
        let at_bounds = |bound| match bound {
            Bound::Begin => at_begin = Some(Used::now()),
            Bound::End => at_end = Some(Used::now()),
        };
        let ended = reactor.run(window, &mut tally, &mut reader, on_second, at_bounds);
        self.loaded.fetch_add(1, Ordering::Relaxed);
        let audited = ended.and_then(|()| self.audit(reactor, &mut reader, &mut tally));
        let read_back = *audited.as_ref().unwrap_or(&0);
        let cut_short = audited.err().map(|why| (why, self.clock.now_ns()));
        if let Some((_, now_ns)) = &cut_short {
            tally.last_ns = (*now_ns).max(window.begin_ns);
        }
        let (last, finished) = tally.finish();
        if let Some(second) = last {
            on_second(second);
        }
        let at_end = at_end.unwrap_or_else(Used::now);
        let at_begin = at_begin.unwrap_or(at_end);
        let late_ns = reactor.late_ns.unwrap_or(0);
        let cut_short = cut_short.map(|(why, _)| why);
        let idle_ns = reactor.idle_ns;
        Outcome { finished, at_begin, at_end, late_ns, idle_ns, cut_short, said: reader.said, read_back }
    }
}

fn stopped_in_prefill() -> Error {
    Error::Before("stopped during the prefill; nothing was measured".to_string())
}

/// Leads the threads, and merges their messages.
struct Conductor<'a> {
    plan: &'a Plan,
    clock: Clock,
    news: Receiver<News>,
    go: Vec<Sender<Go>>,
    observer: &'a dyn Observer,
    stop: &'a AtomicBool,
}

impl Conductor<'_> {
    fn conduct(mut self) -> Result<Run, Error> {
        self.wait_for_all()?;
        let mut watcher = self.plan.watcher();
        if self.plan.prefill {
            self.tell_all(Go::Prefill);
            self.wait_for_all()?;
        }
        if self.plan.warmup.is_zero() {
            watcher.at_begin();
        }
        let start = self.observer.start().map(|instant| self.clock.at_ns(instant));
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Before("stopped before the run began; nothing was measured".to_string()));
        }
        let load_ns = start.unwrap_or_else(|| self.clock.now_ns() + LEAD_NS);
        let begin_ns = load_ns + self.plan.warmup.as_nanos() as u64;
        let window = Window { load_ns, begin_ns, end_ns: begin_ns + self.plan.duration.as_nanos() as u64 };
        self.tell_all(Go::Load(window));
        let warmup = if self.plan.warmup.is_zero() { Phase::Window } else { Phase::WarmUp };
        self.observer.phase(warmup);
        watcher.start(self.clock, window.begin_ns);
        let (outcomes, mut seconds) = self.follow(window, &mut watcher)?;
        let watched = watcher.finish();
        let mut run = self.sum_up(window, outcomes);
        join_piece(&mut seconds, run.seconds);
        run.intervals = seconds;
        run.server = watched.server;
        run.watch = watched.watch;
        run.verified.evicted = watched.evicted;
        run.checks = super::certify::checks(self.plan, &run);
        Ok(run)
    }

    fn tell_all(&self, go: Go) {
        for thread in &self.go {
            // One that is gone has reported why.
            let _ = thread.send(go);
        }
    }

    /// Waits until every thread is ready for the next step.
    fn wait_for_all(&mut self) -> Result<(), Error> {
        let (mut ready, mut stored) = (0, 0);
        while ready < self.plan.threads {
            match self.news.recv() {
                Ok(News::Ready) => ready += 1,
                Ok(News::Stored(more)) => {
                    stored += more;
                    self.observer.phase(Phase::Prefill { stored, keys: self.plan.workload.keys });
                }
                Ok(News::Done(Err(error))) => return Err(error),
                Ok(News::Second(_) | News::Done(Ok(_))) => {}
                Err(_) => return Err(Error::Before("the threads ended before the run began".to_string())),
            }
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Before("stopped before the run began; nothing was measured".to_string()));
        }
        Ok(())
    }

    /// Listens to the threads until all are done; returns their outcomes and the seconds of all together.
    fn follow(
        &self,
        window: Window,
        watcher: &mut watch::Watcher,
    ) -> Result<(Vec<Outcome>, Vec<Interval>), Error> {
        let mut outcomes = Vec::new();
        let mut seconds: Vec<(Interval, usize)> = Vec::new();
        let mut shown = 0;
        let mut is_warm = self.plan.warmup.is_zero();
        while outcomes.len() < self.plan.threads {
            if !is_warm && self.clock.now_ns() >= window.begin_ns {
                is_warm = true;
                watcher.at_begin();
                self.observer.phase(Phase::Window);
            }
            match self.news.recv_timeout(Duration::from_millis(100)) {
                Ok(News::Second(second)) => add_second(&mut seconds, second),
                Ok(News::Done(outcome)) => outcomes.push(*outcome?),
                Ok(News::Ready | News::Stored(_)) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::Before("a thread ended without a word".to_string()));
                }
            }
            let open = self.plan.threads - outcomes.len();
            while shown < seconds.len() && seconds[shown].1 >= open.max(1) {
                let left_ns = window.end_ns.saturating_sub(self.clock.now_ns());
                let left = self.plan.requests.is_none().then(|| Duration::from_nanos(left_ns));
                self.observer.second(&seconds[shown].0, left);
                shown += 1;
            }
        }
        Ok((outcomes, seconds.into_iter().map(|(second, _)| second).collect()))
    }

    fn sum_up(&self, window: Window, outcomes: Vec<Outcome>) -> Run {
        let plan = self.plan;
        let last_ns =
            outcomes.iter().map(|outcome| outcome.finished.last_ns).max().unwrap_or(window.begin_ns);
        let cut_short = cut_short(&outcomes);
        let ends_early = cut_short.is_some() || plan.requests.is_some() || plan.trace.is_some();
        let end_ns = if ends_early { last_ns } else { last_ns.max(window.end_ns) };
        let seconds = end_ns.saturating_sub(window.begin_ns) as f64 / 1e9;
        let mut run = Run {
            label: plan.label.clone(),
            address: plan.place(),
            protocol: plan.protocol.name().to_string(),
            workload: plan.words(),
            load: load_of(plan),
            started_unix_ms: self.clock.unix_ms(window.begin_ns),
            seconds,
            verified: Verified { mode: plan.verify.name().to_string(), ..Verified::default() },
            generator: Generator {
                ceiling: plan.ceiling.map(|ceiling| ceiling.rate),
                ceiling_spread: plan.ceiling.map_or(0.0, |ceiling| ceiling.spread),
                ..Generator::default()
            },
            cut_short,
            ..Run::default()
        };
        for outcome in outcomes {
            add_outcome(&mut run, outcome, seconds);
        }
        run.verbs.retain(|row| row.count > 0);
        run
    }
}

fn cut_short(outcomes: &[Outcome]) -> Option<String> {
    let reasons: Vec<&String> = outcomes.iter().filter_map(|outcome| outcome.cut_short.as_ref()).collect();
    let stopped = "stopped from outside".to_string();
    reasons.iter().find(|why| !why.is_empty()).or(reasons.first()).map(|why| match why.as_str() {
        "" => stopped,
        why => why.to_string(),
    })
}

fn add_outcome(run: &mut Run, outcome: Outcome, seconds: f64) {
    let Outcome { finished, at_begin, at_end, late_ns, idle_ns, said, read_back, .. } = outcome;
    run.generator.start_late_us = run.generator.start_late_us.max(late_ns as f64 / 1000.0);
    if run.verbs.is_empty() {
        run.verbs = finished.rows;
    } else {
        for (sum, row) in run.verbs.iter_mut().zip(&finished.rows) {
            sum.add(row);
        }
    }
    if finished.slip.count() > 0 {
        run.slip.add(&finished.slip);
    }
    run.dropped += finished.dropped;
    run.verified.read_back += read_back;
    run.verified.checked += finished.verified.checked;
    run.verified.wrong += finished.verified.wrong;
    run.verified.stale += finished.verified.stale;
    run.verified.lost += finished.verified.lost;
    run.verified.cold += finished.verified.cold;
    run.verified.examples.extend(finished.verified.examples);
    run.verified.examples.truncate(10);
    run.errors_said.extend(said);
    run.errors_said.truncate(5);
    cpu::add_thread(&mut run.generator, (at_begin, at_end), idle_ns, seconds);
}

fn load_of(plan: &Plan) -> result::Load {
    let (rate, arrival, pipeline) = match plan.load {
        Load::Closed { pipeline } => (None, "closed".to_string(), pipeline),
        Load::Open { rate, arrival, max_in_flight, .. } => {
            let rate = (arrival != super::Arrival::Trace).then_some(rate);
            (rate, arrival.to_string(), max_in_flight)
        }
    };
    result::Load {
        rate,
        arrival,
        threads: plan.threads as u32,
        connections: plan.connections as u32,
        pipeline,
        multi_get: plan.workload.multi_get,
        quiet_sets: plan.workload.quiet_sets,
    }
}

fn add_second(seconds: &mut Vec<(Interval, usize)>, second: Interval) {
    let index = (second.at_ms / 1000) as usize;
    while seconds.len() <= index {
        let at_ms = seconds.len() as u64 * 1000;
        seconds.push((Interval { at_ms, ..Interval::default() }, 0));
    }
    let (sum, threads) = &mut seconds[index];
    sum.add(&second);
    *threads += 1;
}

/// Replies just after the last whole second belong to it: a second of its own would look like a stall.
fn join_piece(seconds: &mut Vec<Interval>, length_s: f64) {
    let length_ms = (length_s * 1000.0) as u64;
    if seconds.len() < 2 {
        return;
    }
    if let Some(last) = seconds.pop_if(|last| length_ms.saturating_sub(last.at_ms) < PIECE_MS)
        && let Some(before) = seconds.last_mut()
    {
        before.add(&last);
    }
}
