//! Leads the agents through a run, or looks them over without one.

use super::merge::{self, Part};
use super::message::{FromAgent, ToAgent};
use super::offset::{Offset, monotonic_ns};
use super::peers::{Peers, Trouble};
use super::{Fleet, share};
use crate::clock::Clock;
use crate::engine::certify;
use crate::engine::{Error, Observer, Phase, Plan};
use crate::latency::Latency;
use crate::result::{Check, Interval, Run, Verdict};
use crate::watch::Watcher;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Between the order to begin and the beginning; four times the longest way there and back come on top.
const LEAD_NS: i64 = 300_000_000;
/// How long the others may take to end when one is lost.
const PATIENCE: Duration = Duration::from_secs(8);

/// Runs the plan on all hosts together, and merges the results. `arguments` are those of
/// `run` that describe the same plan: every agent reads them for itself. Connections, rate and requests are
/// totals. `stop` ends the run early; the result holds the measurements until then.
///
/// # Errors
/// There is no result: the plan cannot be done, a host cannot be reached, or something failed before the
/// window began.
pub fn execute(
    fleet: &Fleet,
    plan: &Plan,
    arguments: &[String],
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Run, Error> {
    let of = fleet.hosts.len() as u32;
    for index in 0..of {
        share::of(plan, index, of).and_then(|share| share.check()).map_err(Error::Plan)?;
    }
    let mut peers = Peers::bring_up(fleet, stop).map_err(Error::Before)?;
    for index in 0..of {
        let arguments = arguments.to_vec();
        peers.tell(index as usize, &ToAgent::Prepare { arguments, index, of });
    }
    let trouble = |peers: &Peers<'_>, trouble| Error::Before(peers.in_words(&trouble));
    wait_until_ready(&mut peers, plan, observer).map_err(|t| trouble(&peers, t))?;
    let mut watcher = plan.watcher();
    let everybody: Vec<usize> = (0..peers.count()).collect();
    let before = peers.offsets(&everybody, false).map_err(|t| trouble(&peers, t))?;

    let farthest_ns = before.iter().map(|offset| offset.round_trip_ns).max().unwrap_or(0);
    let start_ns = monotonic_ns() + LEAD_NS + 4 * farthest_ns;
    for (host, offset) in before.iter().enumerate() {
        peers.tell(host, &ToAgent::Start { at_ns: offset.theirs(start_ns) });
    }
    let clock = Clock::start();
    let begin_ns = clock.now_ns() as i64 + start_ns - monotonic_ns() + plan.warmup.as_nanos() as i64;
    if plan.warmup.is_zero() {
        watcher.at_begin();
    }
    watcher.start(clock, begin_ns.max(0) as u64);
    observer.phase(if plan.warmup.is_zero() { Phase::Window } else { Phase::WarmUp });
    let ended = Follower::new(&mut peers, plan, observer, &mut watcher).follow();
    let watched = watcher.finish();

    let measured: Vec<usize> = everybody.into_iter().filter(|host| ended.done[*host].is_some()).collect();
    if measured.is_empty() {
        let message = ended.cut_short.unwrap_or_else(|| "no host has a result".to_string());
        return Err(Error::Before(message));
    }
    let there: Vec<usize> = measured.iter().copied().filter(|host| !peers.is_lost(*host)).collect();
    let after = peers.offsets(&there, true).unwrap_or_default();
    let parts = parts(&peers, ended.done, &before, &there, &after);
    let mut run = merge::merge(plan, start_ns, &parts);
    run.cut_short = ended.cut_short;
    run.started_unix_ms = clock.unix_ms(begin_ns.max(0) as u64);
    if !watched.server.is_empty() {
        run.server = watched.server;
    }
    run.watch = watched.watch;
    let of_fleet = std::mem::take(&mut run.checks);
    run.checks = certify::checks(plan, &run);
    run.checks.extend(of_fleet);
    run.checks.extend(missing(&peers, &measured, &ended.answered));
    Ok(run)
}

fn wait_until_ready(peers: &mut Peers<'_>, plan: &Plan, observer: &dyn Observer) -> Result<(), Trouble> {
    let mut ready = 0;
    let mut stored_by = vec![0; peers.count()];
    while ready < peers.count() {
        match peers.hear(false)? {
            Some((_, FromAgent::Ready, _)) => ready += 1,
            Some((host, FromAgent::Prefill { stored, .. }, _)) => {
                stored_by[host] = stored;
                observer.phase(Phase::Prefill { stored: stored_by.iter().sum(), keys: plan.workload.keys });
            }
            Some((host, FromAgent::Failed { message }, _)) => return Err(Trouble::Lost { host, message }),
            _ => {}
        }
    }
    Ok(())
}

/// The hosts that did not come to an end are named, with their answers until then.
fn missing(peers: &Peers<'_>, measured: &[usize], answered: &[u64]) -> Option<Check> {
    let lost: Vec<String> = (0..peers.count())
        .filter(|host| !measured.contains(host))
        .map(|host| format!("{} ({} answers)", peers.name(host), answered[host]))
        .collect();
    (!lost.is_empty()).then(|| Check {
        name: "hosts".to_string(),
        verdict: Verdict::Fail,
        message: format!(
            "{} of {} have a result; without one: {}",
            measured.len(),
            peers.count(),
            lost.join(", ")
        ),
    })
}

fn parts(
    peers: &Peers<'_>,
    done: Vec<Option<(Run, i64)>>,
    before: &[Offset],
    there: &[usize],
    after: &[Offset],
) -> Vec<Part> {
    let with_result = done.into_iter().enumerate().filter_map(|(host, done)| Some((host, done?)));
    with_result
        .map(|(host, (run, began_ns))| {
            let later = there.iter().position(|other| *other == host).and_then(|at| after.get(at));
            Part {
                name: peers.name(host).to_string(),
                run,
                began_ns,
                before: before[host],
                after: later.copied().unwrap_or(before[host]),
            }
        })
        .collect()
}

/// Hears the agents from the start to the end.
struct Follower<'a, 'b> {
    peers: &'a mut Peers<'b>,
    plan: &'a Plan,
    observer: &'a dyn Observer,
    watcher: &'a mut Watcher,
    ended: Ended,
    is_over: Vec<bool>,
    seconds: Vec<(Interval, usize)>,
    shown: usize,
    is_measured: bool,
    give_up: Option<Instant>,
}

/// The outcome.
struct Ended {
    /// Results, and when the load was to begin on the agent's clock.
    done: Vec<Option<(Run, i64)>>,
    /// Answers so far, of every host.
    answered: Vec<u64>,
    /// Why it ended early.
    cut_short: Option<String>,
}

impl<'a, 'b> Follower<'a, 'b> {
    fn new(
        peers: &'a mut Peers<'b>,
        plan: &'a Plan,
        observer: &'a dyn Observer,
        watcher: &'a mut Watcher,
    ) -> Self {
        let count = peers.count();
        let ended =
            Ended { done: (0..count).map(|_| None).collect(), answered: vec![0; count], cut_short: None };
        Self {
            peers,
            plan,
            observer,
            watcher,
            ended,
            is_over: vec![false; count],
            seconds: Vec::new(),
            shown: 0,
            is_measured: plan.warmup.is_zero(),
            give_up: None,
        }
    }

    fn follow(mut self) -> Ended {
        while self.is_over.iter().any(|is_over| !is_over) {
            if self.give_up.is_some_and(|until| Instant::now() > until) {
                break;
            }
            match self.peers.hear(self.ended.cut_short.is_some()) {
                Ok(Some((host, message, _))) => self.take(host, message),
                Ok(None) => {}
                Err(Trouble::Stopped) => self.cut_short("stopped from outside".to_string()),
                Err(Trouble::Lost { host, message }) => self.lose(host, &message),
            }
        }
        self.ended
    }

    fn lose(&mut self, host: usize, message: &str) {
        // A host that is lost after its last word has lost nothing.
        if !self.is_over[host] {
            self.is_over[host] = true;
            self.cut_short(format!("host {} was lost: {message}", self.peers.name(host)));
        }
    }

    /// Ends the run for the first reason; those that follow from it are ignored.
    fn cut_short(&mut self, why: String) {
        if self.ended.cut_short.is_none() {
            self.ended.cut_short = Some(why);
            self.give_up = Some(Instant::now() + PATIENCE);
            self.peers.tell_all(&ToAgent::Stop);
        }
    }

    fn take(&mut self, host: usize, message: FromAgent) {
        match message {
            FromAgent::Window if !self.is_measured => {
                self.is_measured = true;
                self.watcher.at_begin();
                self.observer.phase(Phase::Window);
            }
            FromAgent::Second { interval, left_ms } => self.take_second(host, &interval, left_ms),
            FromAgent::Done { run, began_ns } => {
                self.is_over[host] = true;
                if let Some(why) = &run.cut_short {
                    self.cut_short(format!("host {}: {why}", self.peers.name(host)));
                }
                self.ended.done[host] = Some((*run, began_ns));
            }
            FromAgent::Failed { message } => {
                self.is_over[host] = true;
                self.cut_short(format!("host {}: {message}", self.peers.name(host)));
            }
            _ => {}
        }
    }

    /// Shows a second when every host that is still at it has told of it.
    fn take_second(&mut self, host: usize, interval: &Interval, left_ms: Option<u64>) {
        self.ended.answered[host] += interval.count;
        let index = (interval.at_ms / 1000) as usize;
        // No window is longer than this, so a faulty agent cannot fill our memory.
        if interval.at_ms > self.plan.duration.as_millis() as u64 + 60_000 {
            return;
        }
        while self.seconds.len() <= index {
            let at_ms = self.seconds.len() as u64 * 1000;
            self.seconds.push((Interval { at_ms, ..Interval::default() }, 0));
        }
        let (sum, hosts) = &mut self.seconds[index];
        sum.add(interval);
        *hosts += 1;
        let open = self.is_over.iter().filter(|is_over| !**is_over).count().max(1);
        while self.shown < self.seconds.len() && self.seconds[self.shown].1 >= open {
            self.observer.second(&self.seconds[self.shown].0, left_ms.map(Duration::from_millis));
            self.shown += 1;
        }
    }
}

/// A host's properties, found without a run.
#[derive(Clone, Debug)]
pub struct Found {
    /// The host's name.
    pub name: String,
    /// CPUs that its agent may use.
    pub cores: u32,
    /// Its clock.
    pub clock: Offset,
    /// Latencies that it recorded; see [`super::proof`].
    pub latency: Latency,
}

/// Reaches every host, compares clocks, and has each record `count` made-up latencies, without any load on a
/// server.
///
/// # Errors
/// A host cannot be reached, or was lost.
pub fn examine(fleet: &Fleet, count: u64, stop: &AtomicBool) -> Result<Vec<Found>, Error> {
    let mut peers = Peers::bring_up(fleet, stop).map_err(Error::Before)?;
    examine_all(&mut peers, count).map_err(|trouble| Error::Before(peers.in_words(&trouble)))
}

fn examine_all(peers: &mut Peers<'_>, count: u64) -> Result<Vec<Found>, Trouble> {
    let everybody: Vec<usize> = (0..peers.count()).collect();
    let clocks = peers.offsets(&everybody, false)?;
    for host in &everybody {
        peers.tell(*host, &ToAgent::Record { index: *host as u32, count });
    }
    let mut latencies = vec![None; everybody.len()];
    while latencies.iter().any(Option::is_none) {
        if let Some((host, FromAgent::Recorded { latency }, _)) = peers.hear(false)? {
            latencies[host] = Some(latency);
        }
    }
    let all = everybody.into_iter().zip(clocks).zip(latencies);
    Ok(all
        .map(|((host, clock), latency)| Found {
            name: peers.name(host).to_string(),
            cores: peers.cores(host),
            clock,
            latency: latency.unwrap_or_default(),
        })
        .collect())
}
