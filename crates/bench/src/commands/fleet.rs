//! `larder-bench fleet`: whether the hosts of a fleet can be used, without any load on a server.

use super::summary::wrap;
use super::{Exit, Failure, hosts, output};
use crate::fleet::{self, proof};
use crate::latency::Latency;
use crate::show;
use crate::workload::parse;

/// Look the hosts of a fleet over: reach, version, clocks, and that merged
/// histograms equal those of one process.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    hosts: hosts::Args,
    /// Made-up latencies that each host records
    #[arg(long, value_name = "N", default_value = "1m", value_parser = parse::count)]
    samples: u64,
}

/// Looks them over.
///
/// # Errors
/// A host cannot be reached, or was lost.
pub fn run(args: Args) -> Result<Exit, Failure> {
    let fleet =
        args.hosts.fleet()?.ok_or_else(|| Failure::usage("--hosts: which ones? As in `--hosts a,b`"))?;
    let stop = output::stop_on_signals();
    let found = fleet::examine(&fleet, args.samples, &stop)?;
    let mut merged = Latency::new();
    let width = output::width();
    let tell = |line: String| println!("{}", wrap(&line, width, "    "));
    for host in &found {
        println!("{}", host.name);
        tell(format!(
            "  {} cores, {} there and back, clock known to {}",
            host.cores,
            show::time(host.clock.round_trip_ns as f64),
            show::time(host.clock.error_ns as f64),
        ));
        merged.add(&host.latency);
    }
    let one = proof::of_one_process(found.len() as u32, args.samples);
    let p999 = |latency: &Latency| latency.quantile_ns(0.999);
    tell(format!("merged p99.9 of {} latencies: {} ns", show::count(merged.count()), p999(&merged)));
    tell(format!("one process that recorded them: {} ns", p999(&one)));
    if merged == one {
        println!("the histograms are identical");
        return Ok(Exit::Ok);
    }
    println!("the histograms differ");
    Ok(Exit::Wrong)
}
