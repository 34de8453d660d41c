//! `larder-bench sweep`: latency against throughput, over rates or connections; the knee, and the capacity
//! within a service level with its interval.

mod fleet_sweep;

use super::live::Live;
use super::{Exit, Failure, hosts, load, output, summary};
use crate::engine::{self, Load, Plan};
use crate::random::mix;
use crate::result::{Curve, Document, Estimate, Run, Slo};
use crate::stats::search::{self, Found, Outcome, Search, Step};
use crate::sweep::{self, Values};
use crate::{calibrate, report, show};
use fleet_sweep::FleetSweep;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What follows the options in the help.
const AFTER_HELP: &str = "\
Every point is measured --repeat times for --duration, in an order that is
shuffled anew each time, and asks for keys in an order of its own. With
--search, rates are chosen as the results come in, until the highest rate
within --slo is known to 3 %. With --hosts, each point is a run on all of them.";

/// Measure latency against throughput: at several rates, or with several numbers of connections
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    #[command(flatten)]
    load: load::Args,
    #[command(flatten)]
    hosts: hosts::Args,
    /// Rates to offer: 10k,20k or 10k:100k:10k or 10k:160k:x2
    #[arg(long, value_name = "RATES", help_heading = "Sweep")]
    #[arg(required_unless_present_any = ["scan_connections", "search"], conflicts_with = "scan_connections")]
    rates: Option<Values>,
    /// Totals of connections to try in a closed loop, likewise
    #[arg(long, value_name = "NUMBERS", conflicts_with = "rate", help_heading = "Sweep")]
    scan_connections: Option<Values>,
    /// A service level, such as p99<1ms or mean<1ms
    #[arg(long, value_name = "LEVEL", value_parser = sweep::slo, help_heading = "Sweep")]
    slo: Option<Slo>,
    /// Search for the highest rate within --slo, within --budget
    #[arg(long, requires = "slo", conflicts_with_all = ["rates", "scan_connections", "rate"])]
    #[arg(help_heading = "Sweep")]
    search: bool,
    /// Exit with status 3 if the capacity may be below this rate
    #[arg(long, value_name = "RATE", value_parser = crate::workload::parse::count, requires = "slo")]
    #[arg(help_heading = "Sweep")]
    need: Option<u64>,
    /// The time that a search may take
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = crate::workload::parse::duration)]
    #[arg(help_heading = "Sweep")]
    budget: Duration,
    /// How often each point is measured
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = "Sweep")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Write the result to a file
    #[arg(long, visible_alias = "json-out-file", value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Write the report and its data to a folder
    #[arg(short, long, value_name = "FOLDER", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Say nothing but errors while it runs
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

/// What was measured so far: runs with what was set for each.
struct Sweep<'a> {
    args: &'a Args,
    stop: &'a AtomicBool,
    runs: Vec<(f64, Run)>,
    ended: Option<String>,
    /// The hosts that run each point, when there are several.
    fleet: Option<FleetSweep>,
}

/// Runs it.
///
/// # Errors
/// There is no result at all, or it could not be written.
pub fn run(args: Args) -> Result<Exit, Failure> {
    let mut plan = args.load.plan()?;
    let width = output::width();
    let stop = output::stop_on_signals();
    let fleet = FleetSweep::new(&args, std::env::args().skip(1))?;
    let hosts = fleet.as_ref().map_or(1, FleetSweep::hosts);
    if fleet.is_none() {
        // Nobody waits for a calibration of a server that is not there.
        engine::reach(&plan)?;
    }
    if args.scan_connections.is_none() {
        plan.load = Load::Closed { pipeline: 1 };
        // Of a fleet it only bounds a search; its runs go by the hosts' own.
        if fleet.is_none() || args.search {
            plan.ceiling = Some(calibrate::ceiling(&plan, &stop)?.run.rate() * hosts as f64);
        }
    }
    if let Some(few) =
        args.scan_connections.as_ref().and_then(|all| all.0.iter().find(|n| **n < hosts as u64))
    {
        return Err(Failure::usage(format!("--scan-connections {few}: {hosts} hosts need as many at least")));
    }
    args.hosts.watch(&mut plan)?;
    if !args.quiet {
        let load = match args.scan_connections {
            Some(_) => Load::Closed { pipeline: args.load.pipeline }.to_string(),
            None => format!("open loop, {}, {}", args.load.arrival, summary::connections(&plan)),
        };
        println!("{}", summary::heading_of(&plan, &load, width));
        if fleet.is_some() {
            println!("{hosts} hosts, {} threads each", plan.threads);
        }
        println!("{}", head(width));
    }
    let mut sweep = Sweep { args: &args, stop: &stop, runs: Vec::new(), ended: None, fleet };
    let found = match (&args.rates, &args.scan_connections, args.slo) {
        (Some(rates), ..) => {
            sweep.visit(&plan, &rates.0, |plan, rate| {
                plan.load = args.load.open(rate as f64, args.load.arrival)
            })?;
            None
        }
        (_, Some(connections), _) => {
            sweep.visit(&plan, &connections.0, |plan, connections| {
                plan.connections = connections as usize;
                plan.threads = plan.threads.min(plan.connections / hosts);
                plan.load = Load::Closed { pipeline: args.load.pipeline };
            })?;
            None
        }
        (_, _, Some(slo)) => Some(sweep.search(&plan, slo)?),
        (None, None, None) => {
            return Err(Failure::usage("sweep needs --rates, --scan-connections or --search"));
        }
    };
    let varied = if args.scan_connections.is_some() { "connections" } else { "rate" };
    let runs: Vec<(f64, &Run)> = sweep.runs.iter().map(|(at, run)| (*at, run)).collect();
    let label = runs.first().map_or_else(|| plan.address.to_string(), |(_, run)| run.server.clone());
    let mut curve = sweep::curve(&label, varied, &runs, args.slo);
    if let Some(Found::At { capacity, .. }) = found {
        curve.slo_capacity = Some(capacity);
    }
    print!("{}", conclusions(&curve, found));
    let exit = sweep.exit(&curve, found);
    let Sweep { runs, ended, .. } = sweep;
    let document = Document {
        title: format!("{label}: latency against throughput"),
        runs: runs.into_iter().map(|(_, run)| run).collect(),
        curves: vec![curve],
        notes: ended.into_iter().collect(),
        ..output::document()
    };
    if let Some(path) = &args.json {
        output::write_json(path, &document)?;
    }
    if let Some(folder) = &args.output {
        report::write_bundle(folder, &document).map_err(|e| {
            Failure::error(format!("the report could not be written to {}: {e}", folder.display()))
        })?;
    }
    Ok(exit)
}

impl Sweep<'_> {
    /// Measures every value as often as asked for.
    fn visit(&mut self, plan: &Plan, values: &[u64], set: impl Fn(&mut Plan, u64)) -> Result<(), Failure> {
        let order = sweep::shuffled(values, self.args.repeat, plan.workload.seed);
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
    fn search(&mut self, plan: &Plan, slo: Slo) -> Result<Found, Failure> {
        let highest = plan.ceiling.map_or(1e6, |ceiling| ceiling * crate::engine::certify::CEILING_MAX);
        let start = (highest / 50.0).max(1.0);
        let mut search = Search::new(search::Plan {
            budget_seconds: self.args.budget.as_secs_f64(),
            settle_seconds: plan.warmup.as_secs_f64(),
            ..search::Plan::new(slo.bound_ns, start, highest)
        });
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
            let of = |latency: &crate::latency::Latency| match slo.quantile {
                0.0 => latency.mean_ns() as u64,
                quantile => latency.quantile_ns(quantile),
            };
            search.tell(&Outcome {
                rate,
                // By time and not by number: how many become due in two seconds is chance.
                passed: run.seconds * KEPT_MIN <= f64::from(seconds) && run.dropped == 0,
                p99s_ns: run.intervals.iter().map(|second| of(&second.response)).collect(),
                elapsed_seconds: if is_first { 0.0 } else { begun.elapsed().as_secs_f64() },
            });
        }
    }

    /// The plan of the next point, named after what is set for it.
    fn next_point(&self, plan: &Plan, at: impl std::fmt::Display) -> Plan {
        let number = self.runs.len();
        let mut plan = Plan { label: format!("{at} #{}", number + 1), ..plan.clone() };
        plan.prefill &= number == 0;
        // Keys in the order of the point before would be found where that one left them: in RAM, be the data
        // ever so large.
        plan.workload.seed = mix(self.args.load.seed ^ number as u64);
        plan
    }

    fn measure(&mut self, plan: &Plan, at: f64) -> Result<(), Failure> {
        let live = Live::new(plan, self.args.quiet, output::width());
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
            println!("{}", row(at, &run, output::width()));
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

    fn exit(&self, curve: &Curve, found: Option<Found>) -> Exit {
        if self.runs.iter().any(|(_, run)| run.verified.wrong > 0) {
            return Exit::Wrong;
        }
        if let Some(why) = &self.ended {
            eprintln!("larder-bench: {why}");
            return Exit::Error;
        }
        let is_kept = match (self.args.need, curve.slo_capacity, found) {
            (None, ..) => true,
            (Some(need), Some(capacity), _) => capacity.least >= need as f64,
            (Some(need), None, Some(Found::Above(rate))) => rate >= need as f64,
            (Some(need), None, _) => curve.slo.is_some_and(|slo| is_within(curve, slo, need as f64)),
        };
        match is_kept {
            false => Exit::Missed,
            // A point beyond the server's capacity is what a sweep looks for; one that the generator spoiled
            // is not.
            true if self.runs.iter().any(|(_, run)| is_spoiled(run)) => Exit::NotCertified,
            true => Exit::Ok,
        }
    }
}

/// Whether all points of the curve, up to at least `rate`, are within the service level.
fn is_within(curve: &Curve, slo: Slo, rate: f64) -> bool {
    // A point holds some quantiles only: the next one above stands for the rest.
    let value = |point: &crate::result::Point| match slo.quantile {
        0.0 => point.mean_ns,
        quantile if quantile <= 0.5 => point.p50_ns as f64,
        quantile if quantile <= 0.99 => point.p99_ns as f64,
        _ => point.p999_ns as f64,
    };
    curve.points.iter().any(|point| point.rate >= rate)
        && curve.points.iter().all(|point| value(point) <= slo.bound_ns as f64)
}

/// Whether the generator, not the server, set the figures.
fn is_spoiled(run: &Run) -> bool {
    run.checks.iter().any(|check| check.name == "generator" && check.verdict == crate::result::Verdict::Fail)
}

/// The share of a rate that has to be answered as it comes in.
const KEPT_MIN: f64 = 0.98;
/// Below this many columns only what matters most is shown.
const WIDE: usize = 76;

fn head(width: usize) -> String {
    match width >= WIDE {
        true => format!(
            "{:>10}{:>12}{:>10}{:>10}{:>10}{:>10}{:>11}",
            "at", "rate", "mean", "p50", "p99", "p99.9", "us CPU/op"
        ),
        false => format!("{:>9}{:>12}{:>10}", "at", "rate", "p99"),
    }
}

fn row(at: f64, run: &Run, width: usize) -> String {
    let point = sweep::point(at, run);
    let time = |ns: f64| show::time(ns).replace(' ', "");
    if width < WIDE {
        return format!(
            "{:>9}{:>12}{:>10}",
            show::count(at as u64),
            show::rate(point.rate),
            time(point.p99_ns as f64)
        );
    }
    let cpu = point.server_cpu_us.map_or_else(|| "-".to_string(), |us| format!("{us:.2}"));
    let mark = if is_spoiled(run) { " !" } else { "" };
    format!(
        "{:>10}{:>12}{:>10}{:>10}{:>10}{:>10}{cpu:>11}{mark}",
        show::count(at as u64),
        show::rate(point.rate),
        time(point.mean_ns),
        time(point.p50_ns as f64),
        time(point.p99_ns as f64),
        time(point.p999_ns as f64),
    )
}

fn conclusions(curve: &Curve, found: Option<Found>) -> String {
    let estimate =
        |e: Estimate| format!("{} [{}, {}]", show::rate(e.estimate), show::rate(e.least), show::rate(e.most));
    let mut text = String::new();
    let mut tell = |name: &str, message: String| text += &format!("{name:<9} {message}\n");
    if let Some(slo) = curve.slo {
        let message = match (curve.slo_capacity, found) {
            (Some(capacity), _) => estimate(capacity),
            (None, Some(Found::Above(rate))) => format!("above {}, the highest rate tried", show::rate(rate)),
            (None, Some(Found::Below(rate))) => format!("below {}", show::rate(rate)),
            (None, Some(Found::Between(a, b))) => {
                format!("between {} and {}: --budget was too short", show::rate(a), show::rate(b))
            }
            (None, _) => "not crossed by these points".to_string(),
        };
        tell("capacity", format!("{message} within {}", sweep::slo_words(slo)));
    }
    if let Some(rate) = curve.max_rate {
        tell("highest", estimate(rate));
    }
    if let Some(knee) = curve.knee {
        tell("knee", format!("{} (rate over mean latency is highest)", estimate(knee)));
    }
    text
}
