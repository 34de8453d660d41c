//! `larder-bench run`: one workload against one server.

use super::live::Live;
use super::{Exit, Failure, hosts, load, output, summary};
use crate::calibrate;
use crate::engine::{self, Ceiling, Plan};
use crate::fleet;
use crate::result::{Document, Run};
use clap::Parser;
use std::path::{Path, PathBuf};

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
    let mut plan = args.load.plan()?;
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
    let document = Document { title: plan.label.clone(), runs: vec![run], ..output::document() };
    if let Some(path) = json {
        output::write_json(path, &document)?;
    }
    Ok(exit)
}

impl Args {
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
    Ok((alone.args.load.plan()?, alone.args.is_to_calibrate()))
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
