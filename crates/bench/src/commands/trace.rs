//! `larder-bench trace`: the misses of caches of several sizes on a trace, without any server.

use super::{Exit, Failure, output};
use crate::show;
use crate::trace;
use crate::trace::access::Accesses;
use crate::trace::belady::{self, Intervals};
use crate::trace::shards::Curve;
use crate::workload::parse;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

/// Sizes when none are given: the bytes of all items, and so often half of it.
const HALVINGS: u32 = 8;

const AFTER_HELP: &str = "\
For each size: the share of reads (get, incr) that miss in an LRU, in a cache that
gives up what is needed last (Belady), and in any cache at least. Belady is the
best there can be where all items have one length; where they differ, only the
last column is a bound. A missed item is stored. Bytes are those of keys and
values; expiry is left out. The LRU comes from a sample of the items (SHARDS).";

/// Say what LRU and a cache that knows the future would miss of a trace
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The trace, in any form that `replay` reads
    #[arg(value_name = "FILE")]
    trace: PathBuf,
    /// Sizes of the cache, such as 64m,1g [default: the bytes of all items, and halves of it]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = parse::capacity)]
    sizes: Vec<u64>,
    /// The share of the items from which LRU's misses are worked out; 1 is exact and slow
    #[arg(long, value_name = "SHARE", default_value = "0.1", value_parser = share)]
    sample: f64,
    /// Only this many requests from the trace's beginning
    #[arg(long, value_name = "N", value_parser = parse::count)]
    first: Option<u64>,
    /// Where made-up times within a second begin, as in `replay`
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the figures to a file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "is a share such as 0.01, at most 1".to_string())
}

/// The figures of one size.
#[derive(Clone, Copy, Debug, serde::Serialize)]
struct Row {
    bytes: u64,
    /// Shares of the reads; LRU's is not known when nothing was sampled.
    lru: Option<f64>,
    belady: f64,
    bound: f64,
}

/// Reads the trace and prints the table.
///
/// # Errors
/// The trace cannot be read or holds no reads, or the figures cannot be written.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    let shown = args.trace.display();
    let failed = |error: std::io::Error| Failure::error(format!("{shown}: {error}"));
    let first = args.first.unwrap_or(u64::MAX).min(usize::MAX as u64) as usize;
    let records = trace::open(&args.trace, args.seed).map_err(failed)?;
    let accesses = Accesses::read(records.take(first)).map_err(failed)?;
    let reads = accesses.reads();
    if reads == 0 {
        return Err(Failure::error(format!("{shown} reads nothing")));
    }
    let mut sizes = args.sizes.clone();
    if sizes.is_empty() {
        sizes = (0..=HALVINGS).map(|halvings| accesses.footprint_bytes >> halvings).collect();
    }
    sizes.sort_unstable();
    sizes.dedup();
    let next = belady::next_reads(&accesses.all);
    let intervals = Intervals::of(&accesses.all, &next);
    let curve = Curve::of(&accesses.all, args.sample);
    let row = |bytes: u64| Row {
        bytes,
        lru: curve.miss_ratio(bytes),
        belady: belady::farthest(&accesses.all, &next, bytes) as f64 / reads as f64,
        bound: intervals.fewest(bytes) as f64 / reads as f64,
    };
    let rows: Vec<Row> = sizes.into_iter().map(row).collect();
    if let Some(path) = &args.json {
        let figures = serde_json::json!({
            "requests": accesses.all.len(), "reads": reads, "items": accesses.items,
            "footprint_bytes": accesses.footprint_bytes,
            "lru_sample": args.sample, "lru_sampled_reads": curve.sampled, "rows": rows,
        });
        let failed = |error: std::io::Error| Failure::error(format!("{}: {error}", path.display()));
        std::fs::write(path, format!("{figures:#}\n")).map_err(failed)?;
    }
    let text = table(&accesses, reads, &curve, &rows);
    let written = std::io::stdout().write_all(text.as_bytes());
    written.map(|()| Exit::Ok).map_err(|e| Failure::error(format!("not written: {e}")))
}

fn table(accesses: &Accesses, reads: u64, curve: &Curve, rows: &[Row]) -> String {
    let about = format!(
        "{} requests, {} reads of {} items, {}; LRU from {} reads",
        show::count(accesses.all.len() as u64),
        show::count(reads),
        show::count(accesses.items),
        show::bytes(accesses.footprint_bytes as f64),
        show::count(curve.sampled),
    );
    let mut text = super::summary::wrap(&about, output::width(), "");
    let _ = writeln!(text, "\n{:>10}{:>9}{:>9}{:>10}", "cache", "LRU", "Belady", "at least");
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    for row in rows {
        let lru = row.lru.map_or_else(|| "-".to_string(), percent);
        let (belady, bound) = (percent(row.belady), percent(row.bound));
        let _ = writeln!(text, "{:>10}{lru:>9}{belady:>9}{bound:>10}", show::bytes(row.bytes as f64));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_more_than_nothing_and_at_most_all() {
        assert_eq!((share("0.5"), share("1")), (Ok(0.5), Ok(1.0)));
        for wrong in ["0", "-1", "1.1", "x", "nan"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
