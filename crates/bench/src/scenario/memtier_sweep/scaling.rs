//! How a server scales: more of its threads, and more processes of one thread each that share the keys, under one
//! number of connections.

use super::hosts::Hosts;
use super::point::{self, Aim};
use super::{AROUND_S, WINDOW_S, hit_percent, seed, series};
use crate::checks::figure;
use crate::result::Run;
use crate::scenario::part::{marked, row};
use crate::scenario::server::{Make, Setup};
use crate::scenario::{Halt, Stage};
use std::time::Duration;

/// Without a choice of the user's, both are measured if the scenario has this long, and take this share of it.
const LEAST_S: f64 = 120.0;
const SHARE: f64 = 0.2;
const USUAL: [usize; 3] = [1, 2, 4];

/// What there is more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    /// Threads of one server.
    Threads,
    /// Processes of one thread.
    Processes,
}

impl Axis {
    fn name(self) -> &'static str {
        if self == Self::Threads { "threads" } else { "processes" }
    }
}

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scaling {
    axes: Vec<(Axis, Vec<usize>)>,
    n: usize,
    time: Duration,
}

/// One measurement.
struct Measured {
    axis: Axis,
    make: Make,
    count: usize,
    run: Run,
}

impl Scaling {
    /// What the user chose, or the usual where there is time for it. None is noted.
    pub fn of(stage: &mut Stage<'_>, hosts: &Hosts) -> Option<Self> {
        let wanted = &stage.options.wanted;
        let n = wanted.per_thread.last().copied().unwrap_or(seed::RECOMMENDED);
        let chosen =
            [(Axis::Threads, wanted.server_threads.clone()), (Axis::Processes, wanted.processes.clone())];
        let axes: Vec<_> = chosen.into_iter().filter(|(_, counts)| !counts.is_empty()).collect();
        let time = stage.left().mul_f64(SHARE);
        if hosts.fleet().is_none() {
            stage.part.note("threads and processes skipped: one process stands for all hosts (--as-seed)");
            return None;
        }
        if !axes.is_empty() {
            return Some(Self { axes, n, time });
        }
        if stage.left().as_secs_f64() < LEAST_S {
            stage.part.note(format!(
                "threads and processes skipped: they need a budget of {LEAST_S} s for this scenario, or \
                 --server-threads and --processes"
            ));
            return None;
        }
        let axes = [Axis::Threads, Axis::Processes].map(|axis| (axis, USUAL.to_vec())).into();
        Some(Self { axes, n, time })
    }

    /// The share of the scenario's time that it takes.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// Measures, and adds tables and runs to the scenario's part, as far as it went.
    ///
    /// # Errors
    /// It was asked to stop, or Larder does not start.
    pub fn play(&self, stage: &mut Stage<'_>, hosts: &Hosts, makes: &[Make]) -> Result<(), Halt> {
        let mut found = Vec::new();
        let played = self.measure(stage, hosts, makes, &mut found);
        self.report(stage, hosts, found);
        played
    }

    fn measure(
        &self,
        stage: &mut Stage<'_>,
        hosts: &Hosts,
        makes: &[Make],
        found: &mut Vec<Measured>,
    ) -> Result<(), Halt> {
        // redis has one thread for commands, and its clients share keys in ways of their own.
        let makes: Vec<Make> = makes.iter().copied().filter(|make| *make != Make::Redis).collect();
        let points = self.axes.iter().map(|(_, counts)| counts.len()).sum::<usize>() * makes.len();
        let window_s =
            (self.time.as_secs_f64() / points.max(1) as f64 - AROUND_S).clamp(WINDOW_S.0, WINDOW_S.1);
        let mut at = 0;
        for (axis, counts) in &self.axes {
            for make in &makes {
                for count in counts {
                    at += 1;
                    stage.step(at, points, &format!("{}, {count} {}", make.name(), axis.name()));
                    let Some(aim) = self.aim(stage, hosts, *axis, *make, *count)? else { continue };
                    let window = Duration::from_secs_f64(window_s);
                    match point::measure(stage, hosts, &aim, self.n, window) {
                        Ok(run) => found.push(Measured { axis: *axis, make: *make, count: *count, run }),
                        Err(Halt::Failed(why)) if *make != Make::Larder => stage.part.note(format!(
                            "{}, {count} {} skipped: {why}",
                            make.name(),
                            axis.name()
                        )),
                        Err(halt) => return Err(halt),
                    }
                }
            }
        }
        Ok(())
    }

    fn aim(
        &self,
        stage: &mut Stage<'_>,
        hosts: &Hosts,
        axis: Axis,
        make: Make,
        count: usize,
    ) -> Result<Option<Aim>, Halt> {
        let started = match axis {
            Axis::Threads => {
                let setup = Setup { threads: count, ..series::setup(make, hosts, self.n) };
                stage.server(setup)?.map(|server| vec![server])
            }
            Axis::Processes => series::several(stage, hosts, make, self.n, count)?,
        };
        let label = format!("{} {} {}={count} n={}", stage.part.name, make.name(), axis.name(), self.n);
        Ok(started.map(|started| Aim {
            label,
            protocol: series::usual(make),
            addresses: started.iter().map(|server| server.address.clone()).collect(),
            prefix: "memtier-".to_string(),
            started,
        }))
    }

    fn report(&self, stage: &mut Stage<'_>, hosts: &Hosts, found: Vec<Measured>) {
        for (axis, _) in &self.axes {
            let of_axis: Vec<&Measured> = found.iter().filter(|one| one.axis == *axis).collect();
            if of_axis.is_empty() {
                continue;
            }
            let columns = ["", axis.name(), "op/s", "times", "mean ms", "p99 ms", "hit %"];
            let what = match axis {
                Axis::Threads => "threads of one server",
                Axis::Processes => "processes of one thread that share the keys",
            };
            let connections = hosts.connections(self.n);
            let title = format!("{what}, n = {} ({connections} connections)", self.n);
            stage.part.table(&title, &columns, of_axis.iter().map(|one| line(one, &of_axis)).collect());
        }
        if found.iter().any(|one| one.axis == Axis::Processes) {
            stage.part.note(
                "processes share the keys by ketama; each connection of the load is one to every process, \
                 with one request in flight",
            );
        }
        stage.part.runs.extend(found.into_iter().map(|one| one.run));
    }
}

/// A row: its rate in times of the same server's first row.
fn line(one: &Measured, all: &[&Measured]) -> Vec<String> {
    let first = all.iter().find(|other| other.make == one.make).map_or(0.0, |first| first.run.rate());
    let times = if first > 0.0 { format!("{:.2}", one.run.rate() / first) } else { "-".to_string() };
    let response = one.run.response();
    row([
        &one.make.name(),
        &one.count,
        &marked(figure(one.run.rate().round()), one.run.is_certified()),
        &times,
        &figure(response.mean_ns() / 1e6),
        &figure(response.quantile_ns(0.99) as f64 / 1e6),
        &figure(hit_percent(&one.run)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Check, Verb, Verdict};

    #[test]
    fn a_row_tells_times_of_the_same_servers_first() {
        let measured = |make, count, answered| {
            let verb = Verb { name: "get".into(), count: answered, hits: answered, ..Verb::default() };
            let run = Run { seconds: 1.0, verbs: vec![verb], ..Run::default() };
            Measured { axis: Axis::Threads, make, count, run }
        };
        let mut all =
            [measured(Make::Larder, 1, 100), measured(Make::Larder, 4, 250), measured(Make::Memcached, 4, 7)];
        all[1].run.checks = vec![Check { verdict: Verdict::Fail, ..Check::default() }];
        let all: Vec<&Measured> = all.iter().collect();
        let of = |at: usize| line(all[at], &all)[..4].join(" ");
        assert_eq!(of(0), "larder 1 100 1.00");
        assert_eq!(of(1), "larder 4 250 ! 2.50", "what is not certified is marked");
        assert_eq!(of(2), "memcached 4 7 1.00");
    }
}
