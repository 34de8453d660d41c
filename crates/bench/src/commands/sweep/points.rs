//! The points of a sweep: those of a list, or those that a search asks for.

use super::{Args, FleetSweep, print};
use crate::commands::{Failure, live::Live, output};
use crate::engine::certify::{CEILING_MAX, is_limited};
use crate::engine::{self, Plan};
use crate::latency::Latency;
use crate::random::mix;
use crate::result::{Run, Slo};
use crate::stats::search::{self, Found, Outcome, Search, Second, Step};
use crate::sweep;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The share of a rate that has to be answered as it comes in.
const KEPT_MIN: f64 = 0.98;
/// Points in a row that the generator may spoil before a search gives up.
const SPOILED_MAX: u32 = 3;

/// The points that were measured so far.
pub(super) struct Sweep<'a> {
    pub args: &'a Args,
    pub stop: &'a AtomicBool,
    /// The runs, each with the rate or the number of connections that was set for it.
    pub runs: Vec<(f64, Run)>,
    /// How many points there will be, when that is known.
    pub total: Option<usize>,
    /// When the first one began.
    pub began: Instant,
    /// Why it ended early, if it did.
    pub ended: Option<String>,
    /// The hosts that run each point, when there are several.
    pub fleet: Option<FleetSweep>,
}

impl Sweep<'_> {
    /// Measures every value as often as asked for.
    pub fn visit(
        &mut self,
        plan: &Plan,
        values: &[u64],
        set: impl Fn(&mut Plan, u64),
    ) -> Result<(), Failure> {
        let order = sweep::shuffled(values, self.args.repeat, plan.workload.seed);
        self.total = Some(order.len());
        for value in order {
            let mut plan = self.next_point(plan, value);
            set(&mut plan, value);
            self.measure(&plan, value as f64)?;
            if self.ended.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Looks for the capacity within a service level.
    pub fn search(&mut self, plan: &Plan, slo: Slo) -> Result<Found, Failure> {
        let highest = plan.ceiling.map_or(1e6, |ceiling| ceiling.rate * CEILING_MAX);
        let start = (highest / 50.0).max(1.0);
        let mut search = Search::new(search::Plan {
            budget_seconds: self.args.budget.as_secs_f64(),
            settle_seconds: plan.warmup.as_secs_f64(),
            quantile: slo.quantile,
            ..search::Plan::new(slo.bound_ns, start, highest)
        });
        let mut spoiled = 0;
        loop {
            let (rate, seconds) = match search.step() {
                Step::Done(found) => return Ok(found),
                Step::Probe { rate, seconds } => (rate, seconds),
            };
            let is_first = self.runs.is_empty();
            let mut plan = self.next_point(plan, format_args!("{rate:.0}"));
            plan.load = self.args.load.open(rate, self.args.load.arrival);
            plan.duration = Duration::from_secs(u64::from(seconds));
            let begun = Instant::now();
            self.measure(&plan, rate)?;
            let Some((_, run)) = self.runs.last().filter(|_| self.ended.is_none()) else {
                return Ok(Found::Between(0.0, rate));
            };
            let elapsed = begun.elapsed().as_secs_f64();
            let elapsed_seconds = if is_first { 0.0 } else { elapsed };
            if is_limited(&plan, run, slo.bound_ns) {
                spoiled += 1;
                if spoiled == SPOILED_MAX {
                    return Ok(Found::Spoiled(search.passed().unwrap_or(0.0), rate));
                }
                search.lose(elapsed);
                continue;
            }
            spoiled = 0;
            search.tell(&Outcome {
                rate,
                // By time and not by number: how many become due in two seconds is chance.
                passed: run.seconds * KEPT_MIN <= f64::from(seconds) && run.dropped == 0 && is_answered(run),
                seconds: run.intervals.iter().map(|interval| second(&interval.response, slo)).collect(),
                elapsed_seconds,
            });
        }
    }

    /// The plan of the next point, named after its rate or number of connections.
    fn next_point(&self, plan: &Plan, at: impl std::fmt::Display) -> Plan {
        let number = self.runs.len();
        let mut plan = Plan { label: format!("{at} #{}", number + 1), ..plan.clone() };
        plan.prefill &= number == 0;
        // Keys in the order of the point before would be found where that one left them: in RAM, be the data
        // ever so large.
        plan.workload.seed = mix(self.args.load.seed ^ number as u64);
        plan
    }

    /// Which point comes next, and how much time is left at most.
    fn progress(&self, plan: &Plan) -> String {
        let number = self.runs.len() + 1;
        let (of, left) = match self.total {
            Some(total) => {
                let each = plan.warmup + plan.duration;
                (format!(" of {total}"), each * (total + 1).saturating_sub(number) as u32)
            }
            None => (String::new(), self.args.budget.saturating_sub(self.began.elapsed())),
        };
        format!("point {number}{of}, {} s left", left.as_secs())
    }

    fn measure(&mut self, plan: &Plan, at: f64) -> Result<(), Failure> {
        let live = Live::of_several(plan, self.args.quiet, output::width(), self.progress(plan));
        let run = match &mut self.fleet {
            None => engine::execute(plan, &live, self.stop),
            Some(fleet) => fleet.execute(plan, &live, self.stop),
        };
        live.clear();
        let run = match run {
            Ok(run) => run,
            // Results so far are results.
            Err(error) if !self.runs.is_empty() => {
                self.ended = Some(format!("cut short: {error}"));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        if !self.args.quiet {
            println!("{}", print::row(at, &run, output::width()));
        }
        if let Some(why) = &run.cut_short {
            self.ended = Some(format!("cut short: {why}"));
        }
        self.runs.push((at, run));
        if self.stop.load(Relaxed) && self.ended.is_none() {
            self.ended = Some("cut short: interrupted".to_string());
        }
        Ok(())
    }
}

/// What a search goes by of one second's latencies.
fn second(latency: &Latency, slo: Slo) -> Second {
    let over = match slo.quantile {
        0.0 => latency.mean_ns() * latency.count() as f64 / slo.bound_ns as f64,
        _ => latency.count_above(slo.bound_ns) as f64,
    };
    Second { figure_ns: sweep::measured(latency, slo), requests: latency.count(), over }
}

/// Whether nothing failed but what a search judges for itself: the rate and the generator.
fn is_answered(run: &Run) -> bool {
    run.failed().all(|check| matches!(check.name.as_str(), "rate" | "generator"))
}
