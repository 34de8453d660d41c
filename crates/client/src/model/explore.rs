//! Runs a program again and again, each time with other choices, until one is wrong or all were made.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

use super::history::Moment;
use super::path::Path;
use super::schedule::{self, Event, Limits, State, Status};
use super::stage::{Actor, Killed, Stage};
use crate::client::{Client, Count, Put};
use crate::clock::sleep;
use crate::l1::{L1, L1Options};
use crate::options::Options;
use crate::simulation::{self, Fault};
use crate::tiered::{Cached, Source, Tiered, TieredOptions};
use crate::{Address, Server};

/// The key of all operations, so that they meet.
const KEY: &[u8] = b"k";
/// The key of counters.
const COUNTER: &[u8] = b"n";

/// One call of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Get,
    Set,
    /// Sets a value that lives for a second.
    SetForASecond,
    Delete,
    GetOrCreate,
    /// Creates no value where there is none.
    FailToCreate,
    /// Marks the item stale at the server, past the host's cache.
    Invalidate,
    Count,
    /// Listens to what is announced, until nothing else is left.
    Listen,
    /// Does nothing for so many milliseconds.
    Pause(u64),
}

/// A thread: its host, its process, and what it does.
pub struct Thread {
    pub host: usize,
    pub process: u64,
    pub ops: &'static [Op],
}

/// A program, and how far it is explored.
pub struct Program {
    pub name: &'static str,
    pub options: TieredOptions,
    /// What the threads do before choices begin, by their numbers.
    pub setup: &'static [(usize, Op)],
    /// The time that passes between that and the beginning.
    pub pause_ms: u64,
    pub threads: &'static [Thread],
    pub events: &'static [Event],
    pub limits: Limits,
    /// The most values that may be created.
    pub creations_max: usize,
}

/// In which order executions are chosen.
#[derive(Clone, Copy, Debug)]
pub enum Search {
    /// All, one after the other.
    DepthFirst,
    /// Any, from a seed; one may come twice.
    Random(u64),
}

/// What became of an exploration.
#[derive(Debug)]
pub struct Explored {
    pub executions: usize,
    /// Whether all choices within the limits were made.
    pub is_complete: bool,
    /// What was wrong, and how that came.
    pub wrong: Option<String>,
}

/// The caches of a program's hosts: for each process one mapping of its host's memory, and what is in a new one.
struct Hosts {
    /// By the thread's number.
    l1s: Vec<L1>,
    /// By the host's number: one of its mappings.
    hosts: Vec<L1>,
    new: Vec<Vec<u64>>,
}

impl Hosts {
    fn new(program: &Program) -> Hosts {
        let count = program.threads.iter().map(|thread| thread.host + 1).max().unwrap_or(0);
        let hosts: Vec<L1> = (0..count)
            .map(|_| L1Options::new().bytes(512 << 10).simulated().expect("there is memory"))
            .collect();
        let mut l1s: Vec<L1> = Vec::new();
        for (at, thread) in program.threads.iter().enumerate() {
            let before = program.threads[..at].iter().position(|one| one.process == thread.process);
            l1s.push(before.map_or_else(|| hosts[thread.host].mapped_again(), |before| l1s[before].clone()));
        }
        let new = hosts.iter().map(L1::all_words).collect();
        Hosts { l1s, hosts, new }
    }

    fn renew(&self) {
        for (l1, words) in self.hosts.iter().zip(&self.new) {
            l1.put_all_words(words);
        }
    }

    fn tiered(&self, program: &Program) -> Vec<Tiered> {
        let mut found: Vec<Tiered> = Vec::new();
        for (at, thread) in program.threads.iter().enumerate() {
            let before = program.threads[..at].iter().position(|one| one.process == thread.process);
            let new = || {
                let server = Server::new(Address::Unix("simulated".into()));
                let client = Client::new([server], Options::default()).expect("there is a server");
                Tiered::new(self.l1s[at].clone(), client, program.options)
            };
            found.push(before.map_or_else(new, |before| found[before].clone()));
        }
        found
    }
}

/// Keeps this thread and those that it starts on one processor: they take turns, and waking another processor takes
/// longer than a turn.
pub fn stay_on_one_cpu() {
    let mut set = CpuSet::new();
    set.set(sched_getcpu());
    let _ = sched_setaffinity(None, &set);
}

/// Explores a program, with one rule broken if there is a fault.
pub fn explore(program: &Program, fault: Option<Fault>, search: Search, executions_max: usize) -> Explored {
    let hosts = Hosts::new(program);
    let mut path = match search {
        Search::DepthFirst => Path::default(),
        Search::Random(seed) => Path::random(seed),
    };
    let mut executions = 0;
    loop {
        let state = execute(program, &hosts, path, fault, false);
        executions += 1;
        path = state.path;
        if state.fault.is_some() {
            path.rewind();
            let again = execute(program, &hosts, path, fault, true);
            let told = again.trace.unwrap_or_default();
            let wrong = format!("{}, execution {executions}\n{told}", program.name);
            return Explored { executions, is_complete: false, wrong: Some(wrong) };
        }
        let has_next = path.next();
        if !has_next || executions >= executions_max {
            return Explored { executions, is_complete: !has_next, wrong: None };
        }
    }
}

fn execute(program: &Program, hosts: &Hosts, path: Path, fault: Option<Fault>, tells: bool) -> State {
    hosts.renew();
    let actor = |thread: &Thread| schedule::Actor {
        host: thread.host,
        process: thread.process,
        status: Status::Ready,
        is_killed: false,
        is_listener: thread.ops.contains(&Op::Listen),
        effect: None,
        creating: None,
        begin: Moment::FIRST,
        end: Moment::FIRST,
        has_broken: false,
    };
    let actors = program.threads.iter().map(actor).collect();
    let mut state = State::new(path, program.limits, program.events, hosts.hosts.clone(), actors);
    state.trace = tells.then(String::new);
    state.server.fault = fault;
    let stage = Arc::new(Stage::new(state, fault));
    let tiered = hosts.tiered(program);
    for (nth, (at, op)) in program.setup.iter().enumerate() {
        simulation::enter(Some(Rc::new(Actor::new(&stage, *at))));
        call(&stage, *at, program, &tiered[*at], *op, &format!("setup.{nth}"));
        simulation::enter(None);
    }
    stage.state().start(program.pause_ms);
    std::thread::scope(|threads| {
        for (at, (thread, tiered)) in program.threads.iter().zip(tiered).enumerate() {
            let stage = &stage;
            threads.spawn(move || act(stage, at, program, thread.ops, &tiered));
        }
        stage.run();
    });
    let mut state = Arc::into_inner(stage).expect("all actors have ended").into_state();
    if state.creations > program.creations_max {
        state.fail(format!("{} values were created", state.creations));
    }
    state
}

fn act(stage: &Arc<Stage>, at: usize, program: &Program, ops: &[Op], tiered: &Tiered) {
    if stage.enter(at) {
        simulation::enter(Some(Rc::new(Actor::new(stage, at))));
        let acted = catch_unwind(AssertUnwindSafe(|| {
            for (nth, op) in ops.iter().enumerate() {
                simulation::step();
                call(stage, at, program, tiered, *op, &format!("{at}.{nth}"));
            }
        }));
        simulation::enter(None);
        if acted.is_err_and(|payload| !payload.is::<Killed>()) {
            stage.state().abort(format!("actor {at} panicked"));
        }
    }
    stage.leave(at);
}

/// Makes one call, and judges what it returns.
fn call(stage: &Stage, at: usize, program: &Program, tiered: &Tiered, op: Op, value: &str) {
    match op {
        Op::Listen => return tiered.listen(),
        Op::Pause(ms) => return sleep(Duration::from_millis(ms)),
        _ => {}
    }
    stage.state().begin(at, || format!("{op:?} {value}"));
    match op {
        Op::Get => judge_read(stage, at, program, tiered.get(KEY)),
        Op::Set | Op::SetForASecond => {
            let put = if op == Op::Set { Put::default() } else { Put::for_seconds(1) };
            judge_change(stage, at, tiered.set(KEY, value.as_bytes(), put));
        }
        Op::Delete => judge_change(stage, at, tiered.delete(KEY)),
        Op::GetOrCreate => {
            let created = tiered.get_or_create(KEY, Put::default(), || {
                stage.state().create(at);
                simulation::step();
                Ok::<_, std::convert::Infallible>(value.into())
            });
            let Ok(cached) = created;
            if cached.source == Source::Created {
                judge_change(stage, at, Ok::<_, crate::Error>(cached.source));
            } else {
                judge_read(stage, at, program, Ok(Some(cached)));
            }
        }
        Op::FailToCreate => match tiered.get_or_create(KEY, Put::default(), || {
            stage.state().create(at);
            simulation::step();
            Err(())
        }) {
            Ok(cached) => judge_read(stage, at, program, Ok(Some(cached))),
            Err(()) => stage.state().end(at, || "created nothing".into()),
        },
        Op::Invalidate => {
            let done = tiered.client().invalidate(KEY, 60);
            let mut state = stage.state();
            state.end(at, || format!("{done:?}"));
        }
        Op::Count => {
            let count = Count { initial: Some((1, 60)), ..Count::default() };
            let counted = tiered.client().count(COUNTER, count);
            let mut state = stage.state();
            state.end(at, || format!("{counted:?}"));
            match counted {
                Ok(counter) => state.judge_count(at, counter.map(|counter| counter.value)),
                Err(error) => state.judge_error(at, &error.to_string()),
            }
        }
        Op::Listen | Op::Pause(_) => {}
    }
}

fn judge_change<T: std::fmt::Debug>(stage: &Stage, at: usize, result: crate::Result<T>) {
    let mut state = stage.state();
    state.end(at, || format!("{result:?}"));
    match result {
        Ok(_) => state.own_change(at, KEY),
        Err(error) => state.judge_error(at, &error.to_string()),
    }
}

fn judge_read(stage: &Stage, at: usize, program: &Program, read: crate::Result<Option<Cached>>) {
    let mut state = stage.state();
    let shown = |cached: &Cached| (String::from_utf8_lossy(&cached.value).into_owned(), cached.source);
    state.end(at, || format!("{:?}", read.as_ref().map(|read| read.as_ref().map(shown))));
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let options = &program.options;
    match &read {
        Ok(None) => state.judge(at, KEY, None, ms(options.negative), true),
        Ok(Some(cached)) => {
            let exact = options.push.and_then(|push| push.exact_within);
            let unseen = exact.or(options.push.map(|push| push.silence)).unwrap_or_default();
            let keep = options.push.map_or(Duration::ZERO, |push| push.keep);
            let age = match cached.source {
                Source::L1 => options.fresh.max(unseen),
                Source::Stale if exact.is_some() && !state.has_disturbed() => unseen,
                Source::Stale => options.fresh.max(keep) + options.stale,
                Source::Server | Source::Created => Duration::ZERO,
            };
            state.judge(at, KEY, Some(&cached.value), ms(age), cached.source != Source::Stale);
        }
        Err(error) => state.judge_error(at, &error.to_string()),
    }
}
