//! `larder-bench workload`: names the published workloads, and writes streams made up from their figures.

use super::{Exit, Failure, output};
use crate::report::text::{bytes, count, percent};
use crate::trace::synth::Stream;
use crate::trace::{Op, Record, binary, clusters, meta};
use crate::workload::parse;
use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

/// Columns that the list with operations needs.
const WIDE: usize = 78;

/// Which workload, how much of it, and where to.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// `list`, or one of its names: twitter-1 to twitter-54, meta-kvcache, meta-graph
    #[arg(value_name = "NAME")]
    name: String,
    /// How many requests, such as 500k or 1m
    #[arg(short = 'n', long, default_value = "1m", value_parser = parse::count)]
    requests: u64,
    /// Share of the cluster's rate (Twitter) or keys (Meta); the live data scales with it
    #[arg(long, default_value_t = 0.01)]
    scale: f64,
    /// Divide times and expiries by this, so that a day of the cluster passes in minutes; expiries stay
    /// whole seconds, and one at least
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    faster: f64,
    /// Decides the stream: the same seed makes the same requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the trace to this file, in the form that replay reads fastest
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Lists the workloads, or writes one.
///
/// # Errors
/// The name is unknown, no file is named, or it cannot be written.
pub fn run(args: Args) -> Result<Exit, Failure> {
    if args.name == "list" {
        let written = std::io::stdout().write_all(list(output::width()).as_bytes());
        return written.map(|()| Exit::Ok).map_err(|e| Failure::error(format!("not written: {e}")));
    }
    let stream = Stream::named(&args.name, args.requests, args.scale, args.seed).map_err(Failure::usage)?;
    let path = args.output.ok_or_else(|| Failure::usage("name a file to write with -o FILE"))?;
    let failed = |e: std::io::Error| Failure::error(format!("{} not written: {e}", path.display()));
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let mut last_ns = 0;
    let records = stream.map(|record| {
        let record = hasten(record, args.faster);
        last_ns = record.time_ns;
        Ok(record)
    });
    let written = std::fs::File::create(&partial)
        .and_then(|file| binary::write(BufWriter::with_capacity(1 << 20, file), records))
        .and_then(|written| std::fs::rename(&partial, &path).map(|()| written));
    if written.is_err() {
        // Half of a trace is of no use; the error is told below.
        let _ = std::fs::remove_file(&partial);
    }
    let written = written.map_err(failed)?;
    println!("{written} requests over {:.1} s in {}", last_ns as f64 / 1e9, path.display());
    Ok(Exit::Ok)
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| (1e-3..=1e6).contains(factor));
    factor.ok_or_else(|| "is a factor such as 60, from 0.001 to 1000000".to_string())
}

/// The same request in a time that passes `factor` times as fast.
fn hasten(record: Record, factor: f64) -> Record {
    let ttl_s = match record.ttl_s {
        0 => 0,
        ttl => (f64::from(ttl) / factor).round().max(1.0) as u32,
    };
    Record { time_ns: (record.time_ns as f64 / factor) as u64, ttl_s, ..record }
}

/// The workloads, in lines of at most `width` columns, but not below 40.
fn list(width: usize) -> String {
    let is_wide = width >= WIDE;
    let mut out = String::from("name       rate/s key B value B once");
    out.push_str(if is_wide { " zipf operations\n" } else { "\n" });
    for row in clusters::all() {
        let name = format!("twitter-{}", row.number);
        let once = format!("{:.0}%", row.one_hit_wonders * 100.0);
        let rate = count(row.rate);
        let _ = write!(out, "{name:<10} {rate:>6} {:>5} {:>7} {once:>4}", row.key_bytes, row.value_bytes);
        if is_wide {
            let share = |(op, share): &(Op, f64)| format!(" {} {:.0}%", op.name(), share * 100.0);
            let _ = write!(out, " {:>4.2}", row.zipf_alpha);
            out.extend(row.operations.iter().map(share));
        }
        out.push('\n');
    }
    for (name, shape) in [("meta-kvcache", meta::kvcache()), ("meta-graph", meta::graph())] {
        let keys = count(shape.buckets.iter().sum::<u64>() as f64);
        let size = bytes(shape.mean_value_bytes());
        let _ = writeln!(out, "{name}: look-aside, {keys} keys,");
        let _ = writeln!(out, "  values of {size}, {} asked for once", percent(shape.one_hits));
    }
    out.push_str("twitter-5 has no published figures.\nonce: share of keys asked for only once\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faster_time_takes_expiries_along() {
        let record = |time_ns, ttl_s| Record { time_ns, ttl_s, ..Record::default() };
        assert_eq!(hasten(record(9_000_000_000, 300), 60.0), record(150_000_000, 5));
        assert_eq!(hasten(record(60, 20), 60.0), record(1, 1));
        assert_eq!(hasten(record(60, 0), 60.0), record(1, 0));
        assert_eq!((factor("60"), factor("0").is_err(), factor("x").is_err()), (Ok(60.0), true, true));
    }

    #[test]
    fn the_list_names_all_and_fits() {
        for (width, most) in [(80, 80), (40, 40), (20, 40)] {
            let list = list(width);
            assert_eq!(list.lines().count(), 1 + 53 + 4 + 2);
            assert!(list.lines().all(|line| line.len() <= most), "{list}");
        }
    }
}
