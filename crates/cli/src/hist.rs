//! `larder hist`: how large the items of a server are, how long they have to live, and how long they were not used.

use std::collections::BTreeMap;
use std::io::stdout;
use std::sync::atomic::Ordering::Relaxed;

use clap::Args;
use larder_client::ListedKey;
use serde::{Deserialize, Serialize};

use crate::connect::One;
use crate::exit::{Failure, Outcome, Verdict, print, print_json};
use crate::http::HttpSource;
use crate::screen::{Progress, stop_on_signals, width};
use crate::server_clock::now_unix_ms;
use crate::spool::list;
use crate::units::{show_bytes, show_count, show_seconds, show_whole};

/// Shows the sizes, times to live and ages of a server's items, or the times of its requests
///
/// Items are counted from the list of keys. A size includes the key and what the server needs for an item; an age is
/// the time since an item was read or stored. With --http it shows how long requests and the SSD's operations took
/// since the daemon's start.
#[derive(Debug, Args)]
pub struct HistArguments {
    /// End after so many keys; the server lists them in no order of its own choice, so they are no fair sample
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "http")]
    limit: Option<u64>,
    /// Print the numbers as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    http: HttpSource,
    #[command(flatten)]
    one: One,
}

/// The times of one kind of requests or operations, as a daemon tells them over HTTP. Quantiles are the bounds of
/// their buckets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Times {
    count: u64,
    mean_us: f64,
    p50_us: u64,
    p90_us: u64,
    p99_us: u64,
    p999_us: u64,
}

/// Counts by powers of two: those up to the bound, and beyond the bound before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Histogram {
    /// The number of values 0, of values 1, up to 2, up to 4, and so on.
    counts: Vec<u64>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Histograms {
    items: u64,
    bytes: u64,
    never_expire: u64,
    read_since_stored: u64,
    sizes_bytes: Histogram,
    left_s: Histogram,
    ages_s: Histogram,
}

/// Runs the verb.
///
/// # Errors
/// The server does not list its keys, or Ctrl-C ended it.
pub fn run(arguments: &HistArguments) -> Outcome<Verdict> {
    if let Some(http) = arguments.http.alone(&arguments.one)? {
        let times: BTreeMap<String, Times> = http.json("/api/v1/latency")?;
        if arguments.json {
            print_json(&times)?
        } else {
            print(&table(&times, width(&stdout())))?
        }
        return Ok(Verdict::Fine);
    }
    let client = arguments.one.client()?;
    let stop = stop_on_signals();
    let mut progress = Progress::new(false);
    let now_unix_s = now_unix_ms() / 1000;
    let mut all = Histograms::default();
    for listed in list(&client, &stop)? {
        all.count(&listed?, now_unix_s);
        if stop.load(Relaxed) {
            return Err(Failure::Interrupted);
        }
        progress.show(|| vec![format!("listed {} keys", show_whole(all.items))]);
        if arguments.limit.is_some_and(|limit| all.items >= limit) {
            break;
        }
    }
    progress.end();
    if arguments.json {
        print_json(&all)?
    } else {
        print(&all.text(width(&stdout())))?
    }
    Ok(Verdict::Fine)
}

/// Returns a line for each kind, with as many columns as there is room for.
fn table(times: &BTreeMap<String, Times>, columns: usize) -> String {
    // Kinds in the order in which a request meets them, and what each is.
    let kinds = [
        ("ram", "hits in RAM"),
        ("ssd", "hits on the SSD"),
        ("store", "stores"),
        ("mutate_ssd", "changes on the SSD"),
        ("ssd_queue", "waits for the SSD"),
        ("ssd_read", "reads of the SSD"),
        ("ssd_write", "writes of the SSD"),
        ("loop", "rounds of a worker"),
    ];
    let show_us = |us: f64| match us {
        us if us >= 10_000.0 => format!("{:.1}ms", us / 1000.0),
        us => format!("{us:.0}us"),
    };
    // Of the columns that there is no room for, the last of these goes first.
    let room = columns.saturating_sub(25) / 8;
    let stays =
        |title: &str| ["p99", "p50", "p99.9", "p90", "mean"].iter().take(room).any(|known| *known == title);
    let titles = ["p50", "p90", "p99", "p99.9", "mean"];
    let row = |kind: &str, count: &str, cells: [String; 5]| {
        let cells = cells.iter().zip(titles).filter(|(_, title)| stays(title));
        let cells: String = cells.map(|(cell, _)| format!(" {cell:>7}")).collect();
        format!("{kind:<18} {count:>6}{cells}\n")
    };
    let mut text = row("", "count", titles.map(str::to_string));
    for (name, about) in kinds {
        let Some(of) = times.get(name) else { continue };
        let quantiles = [of.p50_us, of.p90_us, of.p99_us, of.p999_us].map(|us| us as f64);
        let [p50, p90, p99, p999] = quantiles.map(show_us);
        let cells = [p50, p90, p99, p999, show_us(of.mean_us)];
        let cells = if of.count == 0 { titles.map(|_| "-".to_string()) } else { cells };
        text.push_str(&row(about, &show_count(of.count), cells));
    }
    text
}

impl Histograms {
    fn count(&mut self, listed: &ListedKey, now_unix_s: u64) {
        self.items += 1;
        self.bytes += listed.bytes;
        self.read_since_stored += u64::from(listed.was_read);
        self.sizes_bytes.count(listed.bytes);
        self.ages_s.count(now_unix_s.saturating_sub(listed.accessed_unix_s));
        match listed.expires_unix_s {
            Some(expires) => self.left_s.count(expires.saturating_sub(now_unix_s)),
            None => self.never_expire += 1,
        }
    }

    fn text(&self, columns: usize) -> String {
        let share = |part: u64| format!("{:.0} %", part as f64 / self.items.max(1) as f64 * 100.0);
        let read = share(self.read_since_stored);
        let mut text =
            format!("{} items, {}, {read} of them read\n", show_whole(self.items), show_bytes(self.bytes));
        for (title, histogram, show) in [
            ("size", &self.sizes_bytes, show_bytes as fn(u64) -> String),
            ("to live", &self.left_s, show_seconds),
            ("age", &self.ages_s, show_seconds),
        ] {
            text.push_str(&format!("\n{title}\n"));
            text.push_str(&histogram.bars(show, columns));
            if title == "to live" && self.never_expire > 0 {
                let (count, share) = (show_whole(self.never_expire), share(self.never_expire));
                text.push_str(&format!("{:>9} {count:>13}  {share}\n", "never"));
            }
        }
        text
    }
}

impl Histogram {
    fn count(&mut self, value: u64) {
        // 0, 1, 2, 3 to 4, 5 to 8 ... have the numbers 0, 1, 2, 3, 4 ...
        let at = match value {
            0 => 0,
            value => 1 + value.next_power_of_two().trailing_zeros() as usize,
        };
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
    }

    /// Returns a line for each bound from the first to the last one with values, its bar as long as there is room.
    fn bars(&self, show: fn(u64) -> String, columns: usize) -> String {
        let most = self.counts.iter().max().copied().unwrap_or(0).max(1);
        // Bound, count and the blanks around them.
        let room = columns.saturating_sub(9 + 13 + 3).max(1);
        let first = self.counts.iter().position(|count| *count > 0).unwrap_or(0);
        let mut text = String::new();
        for (at, count) in self.counts.iter().enumerate().skip(first) {
            let bound = if at == 0 { 0 } else { 1u64 << (at - 1).min(63) };
            let length = (*count as f64 / most as f64 * room as f64).ceil() as usize;
            let bar = "#".repeat(length);
            text.push_str(&format!("{:>9} {:>13}  {bar}\n", show(bound), show_whole(*count)));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_counted_up_to_the_next_power_of_two() {
        let mut histogram = Histogram::default();
        for value in [0, 1, 2, 3, 4, 5, 8, 9, u64::MAX / 4] {
            histogram.count(value);
        }
        assert_eq!(histogram.counts.get(..6), Some(&[1, 1, 1, 2, 2, 1][..]));
        assert_eq!(histogram.counts.iter().sum::<u64>(), 9);
    }

    #[test]
    fn times_fit_the_terminal_and_the_99th_percentile_stays() {
        let times =
            Times { count: 12_345_678, mean_us: 3.4, p50_us: 2, p90_us: 4, p99_us: 16, p999_us: 65_536 };
        let none = Times { count: 0, mean_us: 0.0, p50_us: 0, p90_us: 0, p99_us: 0, p999_us: 0 };
        let all = BTreeMap::from([("ram".to_string(), times), ("ssd".to_string(), none)]);
        for columns in [34, 40, 80, 200] {
            let shown = table(&all, columns);
            assert!(shown.lines().all(|line| line.len() <= columns), "{shown}");
            assert!(shown.contains(" p99") && shown.contains("16us"), "{shown}");
        }
        assert!(table(&all, 80).contains("65.5ms"));
    }

    #[test]
    fn bars_fit_the_terminal() {
        let mut histogram = Histogram::default();
        (0..100).for_each(|_| histogram.count(1000));
        histogram.count(5000);
        for columns in [40, 80, 200] {
            let bars = histogram.bars(show_bytes, columns);
            assert!(bars.lines().all(|line| line.len() <= columns), "{bars}");
            assert_eq!(bars.lines().count(), 4);
        }
        assert_eq!(Histogram::default().bars(show_bytes, 80), "");
    }
}
