//! Several servers under load at the same time, each by a generator of its own, put together as one run.

use crate::engine::certify;
use crate::engine::{self, Error, Observer, Plan};
use crate::result::{Host, Interval, Run};
use crate::scenario::{Halt, Stage};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Between the last generator's readiness and the load.
const LEAD: Duration = Duration::from_millis(20);
/// One that never gets ready must not keep the others for ever.
const PATIENCE: Duration = Duration::from_secs(20);

/// A common start: every generator waits until all are ready, or one gave up.
struct Gate {
    all: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    ready: usize,
    is_broken: bool,
    start: Option<Instant>,
}

impl Gate {
    fn new(all: usize) -> Self {
        Self { all, state: Mutex::new(State::default()), changed: Condvar::new() }
    }

    fn give_up(&self) {
        let mut state = self.state.lock().expect("no generator panics with it");
        state.is_broken = true;
        self.changed.notify_all();
    }
}

impl Observer for Gate {
    fn start(&self) -> Option<Instant> {
        let mut state = self.state.lock().expect("no generator panics with it");
        state.ready += 1;
        if state.ready == self.all {
            state.start = Some(Instant::now() + LEAD);
            self.changed.notify_all();
        }
        let waits = |state: &mut State| state.start.is_none() && !state.is_broken;
        let (state, _) =
            self.changed.wait_timeout_while(state, PATIENCE, waits).expect("no generator panics with it");
        state.start
    }
}

/// Does all plans at the same time.
///
/// # Errors
/// It was asked to stop, or one of them measured nothing.
pub fn measure(stage: &mut Stage<'_>, plans: &[Plan]) -> Result<Run, Halt> {
    stage.go_on()?;
    let gate = Gate::new(plans.len());
    let stop = stage.stop;
    let runs: Vec<Result<Run, Error>> = thread::scope(|scope| {
        let running: Vec<_> = plans
            .iter()
            .map(|plan| {
                let gate = &gate;
                scope.spawn(move || {
                    let run = engine::execute(plan, gate, stop);
                    if run.is_err() {
                        gate.give_up();
                    }
                    run
                })
            })
            .collect();
        running.into_iter().map(|run| run.join().expect("a generator does not panic")).collect()
    });
    let mut whole = Vec::new();
    for run in runs {
        match run {
            Ok(run) => whole.push(run),
            Err(error) => return stage.ended(Err(error)),
        }
    }
    let rate: Option<f64> = plans.iter().map(offered).sum();
    let mut merged = merged(whole, rate);
    if let Some(first) = plans.first().filter(|_| plans.len() > 1) {
        merged.checks = certify::checks(&of_all(first, plans), &merged);
    }
    stage.ended(Ok(merged))
}

/// The plan that all are parts of.
fn of_all(first: &Plan, plans: &[Plan]) -> Plan {
    let mut all = first.clone();
    all.connections = plans.iter().map(|plan| plan.connections).sum();
    if let (engine::Load::Open { rate, .. }, Some(sum)) = (&mut all.load, plans.iter().map(offered).sum()) {
        *rate = sum;
    }
    all
}

fn offered(plan: &Plan) -> Option<f64> {
    match plan.load {
        engine::Load::Open { rate, .. } => Some(rate),
        engine::Load::Closed { .. } => None,
    }
}

/// One run of several that were made at the same time; each becomes a row among its hosts.
fn merged(runs: Vec<Run>, rate: Option<f64>) -> Run {
    let windows: Vec<(f64, f64)> = runs
        .iter()
        .map(|run| {
            let start = run.started_unix_ms as f64 / 1000.0;
            (start, start + run.seconds)
        })
        .collect();
    let count = runs.len();
    let mut runs = runs.into_iter().enumerate();
    let Some((_, mut all)) = runs.next() else { return Run::default() };
    if count == 1 {
        return all;
    }
    all.hosts = vec![row(0, &all, &windows)];
    for (at, run) in runs {
        all.hosts.push(row(at, &run, &windows));
        for verb in &run.verbs {
            let Some(sum) = all.verbs.iter_mut().find(|sum| sum.name == verb.name) else {
                all.verbs.push(verb.clone());
                continue;
            };
            sum.add(verb);
        }
        for (second, interval) in run.intervals.iter().enumerate() {
            if all.intervals.len() <= second {
                all.intervals.push(Interval { at_ms: interval.at_ms, ..Interval::default() });
            }
            all.intervals[second].add(interval);
        }
        all.slip.add(&run.slip);
        all.dropped += run.dropped;
        all.load.connections += run.load.connections;
        all.load.threads += run.load.threads;
        all.verified.checked += run.verified.checked;
        all.verified.wrong += run.verified.wrong;
        all.verified.examples.extend(run.verified.examples);
        all.errors_said.extend(run.errors_said);
        all.generator.cpu_user_us += run.generator.cpu_user_us;
        all.generator.cpu_system_us += run.generator.cpu_system_us;
        all.generator.busiest_thread = all.generator.busiest_thread.max(run.generator.busiest_thread);
        all.generator.most_waiting_thread =
            all.generator.most_waiting_thread.max(run.generator.most_waiting_thread);
        all.cut_short = all.cut_short.or(run.cut_short);
    }
    let first = windows.iter().map(|window| window.0).fold(f64::MAX, f64::min);
    let last = windows.iter().map(|window| window.1).fold(0.0, f64::max);
    all.seconds = last - first;
    all.load.rate = rate;
    all.address = format!("{} and {} more", all.address, count - 1);
    all.server = format!("{} x{count}", all.server);
    all
}

fn row(at: usize, run: &Run, windows: &[(f64, f64)]) -> Host {
    let (start, end) = windows[at];
    let first = windows.iter().map(|window| window.0).fold(f64::MAX, f64::min);
    let common = windows.iter().map(|window| window.1).fold(f64::MAX, f64::min)
        - windows.iter().map(|window| window.0).fold(0.0, f64::max);
    Host {
        connections: run.load.connections,
        name: format!("server {}", at + 1),
        count: run.count(),
        rate: run.rate(),
        response: run.response(),
        start_skew_us: (start - first) * 1e6,
        overlap: if end > start { (common / (end - start)).clamp(0.0, 1.0) } else { 0.0 },
        ..Host::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Verb;

    fn run(started_unix_ms: u64, count: u64) -> Run {
        let mut verb = Verb { name: "get".into(), count, ..Verb::default() };
        verb.response.record_n(1_000_000, count);
        Run { started_unix_ms, seconds: 10.0, verbs: vec![verb], ..Run::default() }
    }

    #[test]
    fn nothing_is_lost_and_overlap_is_told() {
        let all = merged(vec![run(1_000_000, 100), run(1_000_500, 300)], Some(40.0));
        assert_eq!((all.count(), all.response().count(), all.hosts.len()), (400, 400, 2));
        assert!((all.seconds - 10.5).abs() < 1e-6);
        assert!(
            all.hosts.iter().all(|host| (host.overlap - 0.95).abs() < 1e-6),
            "{:?}",
            all.hosts[0].overlap
        );
        assert_eq!(merged(vec![run(0, 7)], None).hosts.len(), 0);
    }

    #[test]
    fn all_begin_together_and_one_that_fails_keeps_no_other() {
        let gate = Gate::new(2);
        let (a, b) = thread::scope(|scope| {
            let a = scope.spawn(|| gate.start());
            let b = scope.spawn(|| gate.start());
            (a.join().expect("no panic"), b.join().expect("no panic"))
        });
        assert!(a.is_some() && a == b);
        let broken = Gate::new(2);
        broken.give_up();
        assert_eq!(broken.start(), None);
    }
}
