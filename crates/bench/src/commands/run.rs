//! `larder-bench run`: one workload against one server.

use super::live::Live;
use super::{Exit, Failure, hosts, load, output, repeats, summary};
use crate::calibrate;
use crate::engine::{self, Ceiling, Plan};
use crate::fleet;
use crate::result::{Document, Run};
use clap::Parser;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Measure one workload against one server.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
pub struct Args {
    #[command(flatten)]
    load: load::Args,
    #[command(flatten)]
    hosts: hosts::Args,
    /// The generator's ceiling in requests a second, when it is known already
    #[arg(long, value_name = "RATE", value_parser = crate::workload::parse::count, help_heading = "Checks")]
    ceiling: Option<u64>,
    /// Leave out the second that finds the generator's ceiling
    #[arg(long, conflicts_with = "ceiling", help_heading = "Checks")]
    no_calibrate: bool,
    /// Measure so many times; each keeps a result of its own, `LABEL #1`, `LABEL #2`
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Output")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    #[arg(conflicts_with_all = ["hosts", "hosts_file"])]
    repeat: u32,
    /// The name of the run in results, by which `compare` finds its partner [default: the server and the load]
    #[arg(long, value_name = "TEXT", help_heading = "Output")]
    label: Option<String>,
    /// Write the result to a file
    #[arg(long, visible_alias = "json-out-file", value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Say nothing but errors while it runs
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

/// Runs it.
///
/// # Errors
/// There is no result at all, or it could not be written.
pub fn run(args: Args) -> Result<Exit, Failure> {
    let mut plan = args.plan()?;
    let fleet = args.hosts.fleet()?;
    let width = output::width();
    if !args.quiet {
        println!("{}", summary::heading(&plan, width));
        if let Some(fleet) = &fleet {
            println!("{} hosts, {} threads each", fleet.hosts.len(), plan.threads);
        }
    }
    let stop = output::stop_on_signals();
    plan.ceiling = args.ceiling.map(|ceiling| Ceiling::known(ceiling as f64));
    // The hosts of a fleet find out each for itself.
    if fleet.is_none() && args.is_to_calibrate() {
        // An absent server is reported before a calibration, not after it.
        engine::reach(&plan)?;
        plan.ceiling = Some(calibrate::ceiling(&plan, &stop)?);
    }
    args.hosts.watch(&mut plan)?;
    if args.repeat > 1 {
        return args.repeats(&plan, &stop, width);
    }
    let live = Live::new(&plan, args.quiet, width);
    let run = match &fleet {
        None => engine::execute(&plan, &live, &stop),
        Some(fleet) => {
            // Everything behind the name of the command; every agent reads it for itself.
            let arguments: Vec<String> = std::env::args().skip(2).collect();
            fleet::execute(fleet, &plan, &arguments, &live, &stop)
        }
    };
    live.clear();
    conclude(&plan, run?, args.json.as_deref(), width)
}

/// Prints a run's figures and writes them to `json`.
///
/// # Errors
/// It could not be written.
pub fn conclude(plan: &Plan, run: Run, json: Option<&Path>, width: usize) -> Result<Exit, Failure> {
    print!("{}", summary::of(&run, width));
    let exit = exit_of(&run);
    write(json, &plan.label, vec![run])?;
    Ok(exit)
}

/// Writes runs to `json`, if there is one.
fn write(json: Option<&Path>, title: &str, runs: Vec<Run>) -> Result<(), Failure> {
    let Some(path) = json else { return Ok(()) };
    output::write_json(path, &Document { title: title.to_string(), runs, ..output::document() })
}

impl Args {
    fn plan(&self) -> Result<Plan, Failure> {
        let plan = self.load.plan()?;
        let label = self.label.clone().unwrap_or(plan.label);
        Ok(Plan { label, ..plan })
    }

    /// Measures several times, prints each, and writes all to the result. One that is cut short is the last.
    fn repeats(&self, plan: &Plan, stop: &AtomicBool, width: usize) -> Result<Exit, Failure> {
        let (mut runs, mut exit) = (Vec::new(), Exit::Ok);
        for number in 1..=self.repeat {
            let plan = repeats::plan_of(plan, &plan.label, number);
            let progress = format!("run {number} of {}", self.repeat);
            if !self.quiet {
                println!("{progress}");
            }
            let live = Live::of_several(&plan, self.quiet, width, progress);
            let run = engine::execute(&plan, &live, stop);
            live.clear();
            let run = run?;
            print!("{}", summary::of(&run, width));
            exit = repeats::worse(exit, exit_of(&run));
            let is_last = run.cut_short.is_some();
            runs.push(run);
            if is_last {
                break;
            }
        }
        write(self.json.as_deref(), &plan.label, runs)?;
        Ok(exit)
    }

    fn is_to_calibrate(&self) -> bool {
        self.ceiling.is_none() && !self.no_calibrate
    }
}

/// The plan that arguments of `run` describe, those behind the command's name; and whether the generator's
/// ceiling is to be found.
///
/// # Errors
/// They are not understood, or contradict each other.
pub fn plan_of(arguments: &[String]) -> Result<(Plan, bool), Failure> {
    #[derive(Parser)]
    #[command(name = "run", no_binary_name = true)]
    struct Alone {
        #[command(flatten)]
        args: Args,
    }
    let first_line = |error: clap::Error| error.to_string().lines().next().unwrap_or_default().to_string();
    let alone = Alone::try_parse_from(arguments).map_err(|error| Failure::usage(first_line(error)))?;
    Ok((alone.args.plan()?, alone.args.is_to_calibrate()))
}

/// The exit status that a run leads to.
pub fn exit_of(run: &Run) -> Exit {
    if run.verified.wrong > 0 {
        return Exit::Wrong;
    }
    match &run.cut_short {
        Some(_) => Exit::Error,
        None if !run.is_certified() => Exit::NotCertified,
        None => Exit::Ok,
    }
}
