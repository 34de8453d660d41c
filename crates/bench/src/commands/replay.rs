//! `larder-bench replay`: the requests of a recorded or made-up trace, at their own times or as fast as they
//! go.

use super::live::Live;
use super::run::conclude;
use super::{Exit, Failure, load, output, summary};
use crate::engine::{self, Arrival};
use crate::trace;
use crate::workload::parse;
use crate::workload::trace::{Record, Records};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The text after the options in the help.
const AFTER_HELP: &str = "\
Reads Twitter's cache-trace CSV, CacheLib's kvcache CSV, oracleGeneral, and what
`larder-bench workload` writes. Each request of the trace keeps its own time,
key, size, expiry and verb; options that draw those have no effect. What the
format does not know is made up: times within a second are spread at random.
Use --look-aside to store what a get missed, as an application does, with
the size that the get tells.";

/// Replay a trace of requests against a server
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The trace
    #[arg(value_name = "FILE")]
    trace: PathBuf,
    /// How fast: 1x as recorded, 10x ten times as fast, or max in a closed loop
    #[arg(long, default_value = "1x", value_parser = speed)]
    speed: Speed,
    /// Only this many requests from the trace's beginning
    #[arg(long, value_name = "N", value_parser = parse::count)]
    first: Option<u64>,
    #[command(flatten)]
    load: load::Args,
    /// Write the result to a file
    #[arg(long, visible_alias = "json-out-file", value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Say nothing but errors while it runs
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

/// How fast a trace is replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Speed {
    /// This many times as fast as recorded.
    Times(f64),
    /// In a closed loop.
    Max,
}

fn speed(text: &str) -> Result<Speed, String> {
    let form = || "is such as 1x, 10x, 0.5x or max".to_string();
    match text.strip_suffix('x') {
        _ if text == "max" => Ok(Speed::Max),
        Some(factor) => match factor.parse() {
            Ok(factor) if (1e-3..=1e6).contains(&factor) => Ok(Speed::Times(factor)),
            _ => Err(form()),
        },
        None => Err(form()),
    }
}

/// Runs it.
///
/// # Errors
/// The trace cannot be read, there is no result at all, or it could not be written.
pub fn run(args: Args) -> Result<Exit, Failure> {
    if args.load.rate.is_some() || args.load.prefill {
        return Err(Failure::usage("a trace has its own rate and keys: leave --rate and --prefill out"));
    }
    let mut plan = args.load.plan()?;
    let shown = args.trace.display();
    let failed = |error: std::io::Error| Failure::error(format!("{shown}: {error}"));
    let first = args.first.unwrap_or(u64::MAX).min(usize::MAX as u64) as usize;
    let faster = match args.speed {
        Speed::Times(factor) => factor,
        Speed::Max => 1.0,
    };
    let records = trace::open(&args.trace, args.load.seed).map_err(failed)?;
    let records = records.take(first).map(|record| {
        record.map(|record| {
            let record = Record::from(record);
            Record { at_ns: (record.at_ns as f64 / faster) as u64, ..record }
        })
    });
    let records = records.collect::<std::io::Result<Arc<[Record]>>>().map_err(failed)?;
    if records.is_empty() {
        return Err(Failure::error(format!("{shown} holds no request")));
    }
    let name = args.trace.file_name().unwrap_or_default().to_string_lossy().into_owned();
    plan.trace = Some(Arc::new(Records::new(Arc::clone(&records), format!("trace {name}"))));
    plan.warmup = Duration::ZERO;
    // A trace ends by itself.
    plan.duration = args.load.duration.unwrap_or(load::LONGEST);
    plan.label = format!("{} {name}", plan.address);
    if let Speed::Times(_) = args.speed {
        plan.load = args.load.open(1.0, Arrival::Trace);
    }
    plan.check().map_err(Failure::usage)?;
    let width = output::width();
    if !args.quiet {
        println!("{}", summary::heading(&plan, width));
    }
    let stop = output::stop_on_signals();
    let live = Live::new(&plan, args.quiet, width);
    let run = engine::execute(&plan, &live, &stop);
    live.clear();
    conclude(&plan, run?, args.json.as_deref(), width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_factor_or_max() {
        assert_eq!(speed("1x"), Ok(Speed::Times(1.0)));
        assert_eq!(speed("0.5x"), Ok(Speed::Times(0.5)));
        assert_eq!(speed("max"), Ok(Speed::Max));
        for wrong in ["", "x", "0x", "-1x", "2", "maxx", "1e9x"] {
            assert!(speed(wrong).is_err(), "{wrong}");
        }
    }
}
