//! `larder-bench sweep`: latency against throughput, over rates or connections; the knee, and the capacity
//! within a service level with its interval.

mod fleet_sweep;
mod points;
mod print;
mod verdict;

use super::{Exit, Failure, hosts, load, output, summary};
use crate::engine::{self, Ceiling, Load, Plan};
use crate::result::{Document, Run, Slo};
use crate::stats::search::Found;
use crate::sweep::{self, Values};
use crate::{calibrate, report, show};
use fleet_sweep::FleetSweep;
use points::Sweep;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The share of a service level that this host may take up without a load, for a search within it.
const IDLE_MAX: f64 = 0.5;

/// The text after the options in the help.
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

/// Measures the points, prints them with the conclusions, and writes the result.
///
/// # Errors
/// There is no result at all, or it could not be written.
pub fn run(args: Args) -> Result<Exit, Failure> {
    let stop = output::stop_on_signals();
    let fleet = FleetSweep::new(&args, std::env::args().skip(1))?;
    let hosts = fleet.as_ref().map_or(1, FleetSweep::hosts);
    let plan = args.plan(fleet.as_ref(), hosts, &stop)?;
    if !args.quiet {
        args.announce(&plan, fleet.is_some(), hosts);
    }
    let mut sweep = Sweep {
        args: &args,
        stop: &stop,
        runs: Vec::new(),
        total: None,
        began: Instant::now(),
        ended: None,
        fleet,
    };
    if let Some(slo) = args.slo.filter(|_| args.search) {
        args.check_host(&plan, slo, &stop)?;
    }
    let found = args.measure(&mut sweep, &plan, hosts)?;
    let Sweep { runs, ended, .. } = sweep;
    args.conclude(&plan, runs, ended, found)
}

impl Args {
    /// Returns the plan of which every point is a variation, with the generator's ceiling where that is
    /// needed.
    fn plan(&self, fleet: Option<&FleetSweep>, hosts: usize, stop: &AtomicBool) -> Result<Plan, Failure> {
        let mut plan = self.load.plan()?;
        if fleet.is_none() {
            // An absent server is reported before a calibration, not after it.
            engine::reach(&plan)?;
        }
        if self.scan_connections.is_none() {
            plan.load = Load::Closed { pipeline: 1 };
            // With a fleet the ceiling only bounds a search; each run finds its hosts' own.
            if fleet.is_none() || self.search {
                let one = calibrate::ceiling(&plan, stop)?;
                plan.ceiling = Some(Ceiling { rate: one.rate * hosts as f64, ..one });
            }
        }
        let connections = self.scan_connections.iter().flat_map(|all| &all.0);
        if let Some(few) = connections.into_iter().find(|n| **n < hosts as u64) {
            let message = format!("--scan-connections {few}: {hosts} hosts need as many at least");
            return Err(Failure::usage(message));
        }
        self.hosts.watch(&mut plan)?;
        Ok(plan)
    }

    /// Refuses a search for a level that this host does not keep even without a load.
    fn check_host(&self, plan: &Plan, slo: Slo, stop: &AtomicBool) -> Result<(), Failure> {
        let idle = sweep::measured(&calibrate::idle(plan, stop)?, slo) as f64;
        match idle > IDLE_MAX * slo.bound_ns as f64 {
            false => Ok(()),
            true => Err(Failure {
                message: format!(
                    "this host cannot measure {}: without a load its {} is {} already. Keep others off it, \
                     wait busily (--spin), or ask for a level of {} or more",
                    sweep::slo_words(slo),
                    sweep::measure_words(slo),
                    show::time(idle),
                    show::time(idle / IDLE_MAX)
                ),
                exit: Exit::NotCertified,
            }),
        }
    }

    fn announce(&self, plan: &Plan, is_fleet: bool, hosts: usize) {
        let width = output::width();
        let load = match self.scan_connections {
            Some(_) => Load::Closed { pipeline: self.load.pipeline }.to_string(),
            None => format!("open loop, {}, {}", self.load.arrival, summary::connections(plan)),
        };
        println!("{}", summary::heading_of(plan, &load, width));
        if is_fleet {
            println!("{hosts} hosts, {} threads each", plan.threads);
        }
        println!("{}", print::head(width));
    }

    /// Measures every point. Returns the capacity when it was searched for.
    fn measure(&self, sweep: &mut Sweep<'_>, plan: &Plan, hosts: usize) -> Result<Option<Found>, Failure> {
        match (&self.rates, &self.scan_connections, self.slo) {
            (Some(rates), ..) => sweep.visit(plan, &rates.0, |plan, rate| {
                plan.load = self.load.open(rate as f64, self.load.arrival);
            })?,
            (_, Some(connections), _) => sweep.visit(plan, &connections.0, |plan, connections| {
                plan.connections = connections as usize;
                plan.threads = plan.threads.min(plan.connections / hosts);
                plan.load = Load::Closed { pipeline: self.load.pipeline };
            })?,
            (_, _, Some(slo)) => return sweep.search(plan, slo).map(Some),
            (None, None, None) => {
                return Err(Failure::usage("sweep needs --rates, --scan-connections or --search"));
            }
        }
        Ok(None)
    }

    /// Prints the conclusions, writes the result, and returns the exit status.
    fn conclude(
        &self,
        plan: &Plan,
        runs: Vec<(f64, Run)>,
        ended: Option<String>,
        found: Option<Found>,
    ) -> Result<Exit, Failure> {
        let varied = if self.scan_connections.is_some() { "connections" } else { "rate" };
        let label = runs.first().map_or_else(|| plan.address.to_string(), |(_, run)| run.server.clone());
        let borrowed: Vec<(f64, &Run)> = runs.iter().map(|(at, run)| (*at, run)).collect();
        let mut curve = sweep::curve(&label, varied, &borrowed, self.slo);
        if let Some(Found::At { capacity, .. }) = found {
            curve.slo_capacity = Some(capacity);
        }
        print!("{}", print::conclusions(&curve, found, output::width()));
        print!("{}", print::legend(&borrowed, output::width()));
        let exit = verdict::exit(&runs, ended.as_deref(), self.need, &curve, found);
        if let (Exit::Error, Some(why)) = (exit, &ended) {
            eprintln!("larder-bench: {why}");
        }
        let document = Document {
            title: format!("{label}: latency against throughput"),
            runs: runs.into_iter().map(|(_, run)| run).collect(),
            curves: vec![curve],
            notes: ended.into_iter().collect(),
            ..output::document()
        };
        if let Some(path) = &self.json {
            output::write_json(path, &document)?;
        }
        if let Some(folder) = &self.output {
            report::write_bundle(folder, &document).map_err(|e| {
                Failure::error(format!("the report could not be written to {}: {e}", folder.display()))
            })?;
        }
        Ok(exit)
    }
}
