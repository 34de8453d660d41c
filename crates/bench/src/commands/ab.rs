//! `larder-bench ab`: two servers under one load, in turns, compared pair by pair.

use super::live::Live;
use super::{Exit, Failure, load, output, pairs, repeats, run, summary};
use crate::calibrate;
use crate::engine::{self, Ceiling, Plan};
use crate::result::{Document, Run};
use crate::show;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Which servers to compare, and how.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER_HELP)]
#[command(mut_arg("server", |server| server.hide(true).conflicts_with("before")))]
pub struct Args {
    /// The server A, as for --server
    #[arg(value_name = "A")]
    before: String,
    /// The server B
    #[arg(value_name = "B")]
    after: String,
    /// How many pairs of runs
    #[arg(long, value_name = "N", default_value_t = 7, help_heading = "Comparison")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pairs: u32,
    #[command(flatten)]
    rules: pairs::Args,
    #[command(flatten)]
    load: load::Args,
    /// Leave out the second that finds the generator's ceiling
    #[arg(long, help_heading = "Checks")]
    no_calibrate: bool,
    /// Write the result to a file
    #[arg(long, visible_alias = "json-out-file", value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Say nothing but the comparison
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

const AFTER_HELP: &str = "The runs are made in the order A B B A A B ..., so that a drift of the host is \
in both. The figures in brackets are the change from A to B with its 95 % interval: least, estimate, most.";

/// Measures both in turns, prints the comparison, and writes the runs.
///
/// # Errors
/// There is no pair at all, or the result could not be written.
pub fn run(args: Args) -> Result<Exit, Failure> {
    let stop = output::stop_on_signals();
    let plans = args.plans(&stop)?;
    let width = output::width();
    if !args.quiet {
        let head = format!("A {}, B {}", plans[0].address, plans[1].address);
        println!("{}", summary::wrap(&head, width, ""));
        let words = format!("{}; {}", plans[0].load, plans[0].words());
        println!("{}", summary::wrap(&words, width, ""));
    }
    let sides = measure(&args, &plans, &stop)?;
    if !args.quiet {
        reasons(&sides).for_each(|reason| println!("{}", summary::wrap(&reason, width, "   ")));
    }
    let exit = sides.iter().flatten().fold(Exit::Ok, |exit, one| repeats::worse(exit, run::exit_of(one)));
    let found = match exit {
        Exit::Wrong | Exit::Error => Ok(exit),
        _ => args.rules.conclude(&[(String::new(), sides[0].iter().zip(&sides[1]).collect())]),
    };
    if let Some(path) = &args.json {
        let title = format!("{} against {}", plans[0].address, plans[1].address);
        let runs = sides.into_iter().flatten().collect();
        output::write_json(path, &Document { title, runs, ..output::document() })?;
    }
    found
}

/// Measures all pairs; a run that is cut short is the last.
fn measure(args: &Args, plans: &[Plan; 2], stop: &AtomicBool) -> Result<[Vec<Run>; 2], Failure> {
    let mut sides = [Vec::new(), Vec::new()];
    for number in 1..=args.pairs {
        let order = if number % 2 == 1 { [0, 1] } else { [1, 0] };
        for side in order {
            let name = ["A", "B"][side];
            let plan = repeats::plan_of(&plans[side], name, number);
            let progress = format!("pair {number} of {}: {name}", args.pairs);
            let live = Live::of_several(&plan, args.quiet, output::width(), progress.clone());
            let run = engine::execute(&plan, &live, stop);
            live.clear();
            let run = run?;
            if !args.quiet {
                println!("{}", summary::wrap(&format!("{progress} {}", row(&run)), output::width(), "   "));
            }
            let is_cut_short = run.cut_short.is_some();
            if let Some(why) = &run.cut_short {
                eprintln!("larder-bench: {name} was cut short: {why}");
            }
            sides[side].push(run);
            if is_cut_short {
                return Ok(sides);
            }
        }
    }
    Ok(sides)
}

/// `45.1 K/s p99 212 us`, and the names of the checks that failed.
fn row(run: &Run) -> String {
    let figures =
        format!("{} p99 {}", show::rate(run.rate()), show::time(run.response().quantile_ns(0.99) as f64));
    let failed: Vec<&str> = run.failed().map(|check| check.name.as_str()).collect();
    match failed.as_slice() {
        [] => figures,
        failed => format!("{figures} NOT CERTIFIED: {}", failed.join(", ")),
    }
}

/// Returns the first message of each check that failed in a run of either side.
fn reasons(sides: &[Vec<Run>; 2]) -> impl Iterator<Item = String> + '_ {
    let mut first = BTreeMap::new();
    for check in sides.iter().flatten().flat_map(Run::failed) {
        first.entry(check.name.as_str()).or_insert(check.message.as_str());
    }
    first.into_iter().map(|(name, message)| format!("{name}: {message}"))
}

impl Args {
    /// Returns the plans of both servers, each with the generator's ceiling for its protocol.
    fn plans(&self, stop: &AtomicBool) -> Result<[Plan; 2], Failure> {
        let of = |server: &String| load::Args { server: vec![server.clone()], ..self.load.clone() }.plan();
        let mut plans = [of(&self.before)?, of(&self.after)?];
        // An absent server is reported before a calibration, not after it.
        plans.iter().try_for_each(|plan| engine::reach(plan).map(drop))?;
        let mut known: Option<Ceiling> = None;
        let is_one_protocol = plans[0].protocol == plans[1].protocol;
        for plan in plans.iter_mut().filter(|_| !self.no_calibrate) {
            let ceiling = match known.filter(|_| is_one_protocol) {
                Some(ceiling) => ceiling,
                None => calibrate::ceiling(plan, stop)?,
            };
            known = Some(ceiling);
            plan.ceiling = known;
        }
        Ok(plans)
    }
}
