//! The columns of `larder stat`: what each is computed from, and which of them fit.

use serde_json::{Map, Number, Value};

use crate::figures::Figures;
use crate::latencies::Latencies;
use crate::units::{show_bytes, show_count};

/// Two times between which something is shown; the first one may be the server's start.
#[derive(Debug)]
pub struct Step<'a> {
    /// The figures at the beginning.
    pub before: Option<&'a Figures>,
    /// The figures at the end.
    pub now: &'a Figures,
    /// The times of the requests between.
    pub latencies: Option<Latencies>,
}

/// How a value is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Counts, or counts a second.
    Count,
    /// Bytes a second.
    Bytes,
    /// Hundredths.
    Percent,
    /// Microseconds.
    Micros,
}

/// A column: its name, its title, its width, and what it shows.
struct Column {
    name: &'static str,
    title: &'static str,
    width: usize,
    unit: Unit,
    /// The rank with which it stays when there is little room; 1 is the last to go.
    rank: u8,
    value: fn(&Step<'_>) -> Option<f64>,
}

const REQUESTS: [&str; 10] = [
    "cmd_get",
    "cmd_set",
    "cmd_touch",
    "cmd_flush",
    "delete_hits",
    "delete_misses",
    "incr_hits",
    "incr_misses",
    "decr_hits",
    "decr_misses",
];

#[rustfmt::skip]
const COLUMNS: &[Column] = &[
    column("requests_per_second", "req/s", 6, Unit::Count, 1, |step| Some(step.rate(&REQUESTS))),
    column("hit_percent", "hit%", 5, Unit::Percent, 1, |step| step.share(&["get_hits"])),
    column("hit_ram_percent", "ram%", 5, Unit::Percent, 3, |step| step.larder_share("get_hits_ram")),
    column("hit_ssd_percent", "ssd%", 5, Unit::Percent, 2, |step| step.larder_share("get_hits_ssd")),
    column("sets_per_second", "set/s", 6, Unit::Count, 3, |step| Some(step.rate(&["cmd_set"]))),
    column("evictions_per_second", "evict/s", 7, Unit::Count, 4, |step| Some(step.rate(&["evictions"]))),
    column("ssd_read_bytes_per_second", "read/s", 7, Unit::Bytes, 2, |step| step.read()),
    column("ssd_written_bytes_per_second", "write/s", 7, Unit::Bytes, 2, |step| step.written()),
    column("memory_percent", "mem%", 5, Unit::Percent, 2, |step| step.memory()),
    column("ssd_percent", "used%", 5, Unit::Percent, 3, |step| step.ssd()),
    column("items", "items", 6, Unit::Count, 4, |step| step.gauge("curr_items")),
    column("connections", "conns", 5, Unit::Count, 4, |step| step.gauge("curr_connections")),
    column("ram_p99_us", "p99ram", 7, Unit::Micros, 1, |step| step.latencies.as_ref()?.p99_us("ram")),
    column("ssd_p99_us", "p99ssd", 7, Unit::Micros, 1, |step| step.latencies.as_ref()?.p99_us("ssd")),
];

const fn column(
    name: &'static str,
    title: &'static str,
    width: usize,
    unit: Unit,
    rank: u8,
    value: fn(&Step<'_>) -> Option<f64>,
) -> Column {
    Column { name, title, width, unit, rank, value }
}

impl Step<'_> {
    fn seconds(&self) -> f64 {
        let uptime = || self.now.get("uptime").unwrap_or(0) as f64;
        let seconds = self.before.map_or_else(uptime, |before| (self.now.at - before.at).as_secs_f64());
        seconds.max(0.001)
    }

    /// Returns how much the sum of some counters has grown. A server that was started again counts from 0.
    fn grown(&self, names: &[&str]) -> u64 {
        let now = self.now.sum(names);
        let before = self.before.map_or(0, |before| before.sum(names));
        if now < before { now } else { now - before }
    }

    fn rate(&self, names: &[&str]) -> f64 {
        self.grown(names) as f64 / self.seconds()
    }

    fn optional(&self, name: &str) -> Option<f64> {
        self.now.get(name).map(|_| self.rate(&[name]))
    }

    /// Returns the percentage of reads that some counters have; none without reads.
    fn share(&self, names: &[&str]) -> Option<f64> {
        let reads = self.grown(&["get_hits", "get_misses"]);
        (reads > 0).then(|| self.grown(names) as f64 / reads as f64 * 100.0)
    }

    fn larder_share(&self, name: &str) -> Option<f64> {
        self.now.get(name).and_then(|_| self.share(&[name]))
    }

    fn read(&self) -> Option<f64> {
        self.optional("ssd_bytes_read")
    }

    fn written(&self) -> Option<f64> {
        self.optional("ssd_bytes_written")
    }

    /// Returns the share of the SSD that was filled at least once.
    fn ssd(&self) -> Option<f64> {
        self.now.ratio("ssd_segments_used", "ssd_segments")
    }

    fn gauge(&self, name: &str) -> Option<f64> {
        self.now.get(name).map(|value| value as f64)
    }

    /// Returns the share of the room for items in RAM that is used.
    fn memory(&self) -> Option<f64> {
        let Some(free) = self.now.get("ram_segments_free") else {
            return self.now.ratio("bytes", "limit_maxbytes");
        };
        let segments = self.now.get("ram_segments").filter(|segments| *segments > 0)?;
        Some(segments.saturating_sub(free) as f64 / segments as f64 * 100.0)
    }
}

impl Figures {
    /// Returns one figure in hundredths of another.
    fn ratio(&self, part: &str, whole: &str) -> Option<f64> {
        let whole = self.get(whole).filter(|whole| *whole > 0)?;
        Some(self.get(part)? as f64 / whole as f64 * 100.0)
    }
}

fn shown(unit: Unit, value: Option<f64>) -> String {
    let Some(value) = value else { return "-".to_string() };
    match unit {
        Unit::Count => show_count(value.round() as u64),
        Unit::Bytes => show_bytes(value.round() as u64),
        Unit::Percent if value >= 99.95 => "100".to_string(),
        Unit::Percent => format!("{value:.1}"),
        Unit::Micros if value >= 10_000.0 => format!("{:.1}ms", value / 1000.0),
        Unit::Micros => format!("{value:.0}us"),
    }
}

/// Returns the columns that this server and the terminal have room for, in their order.
fn chosen(step: &Step<'_>, columns: usize) -> Vec<&'static Column> {
    let is_for_all = |column: &&Column| !column.name.contains("ssd") && !column.name.contains("ram");
    let has_latencies = step.latencies.is_some();
    let has_ssd = step.now.get("ssd_segments").is_some_and(|segments| segments > 0);
    let exists = |column: &&Column| match column.unit {
        Unit::Micros => has_latencies && (has_ssd || column.name == "ram_p99_us"),
        _ => has_ssd || is_for_all(column) || (step.now.is_larder && column.name == "hit_ram_percent"),
    };
    let mut chosen: Vec<_> = COLUMNS.iter().filter(exists).collect();
    while chosen.iter().map(|column| column.width + 1).sum::<usize>() > columns + 1 {
        // Of the columns with the highest rank, the last one goes.
        let last = chosen.iter().enumerate().max_by_key(|(at, column)| (column.rank, *at));
        match last.map(|(at, _)| at).filter(|_| chosen.len() > 1) {
            Some(at) => drop(chosen.remove(at)),
            None => break,
        }
    }
    chosen
}

/// Returns the titles.
pub fn header(step: &Step<'_>, columns: usize) -> String {
    row(step, columns, |column| column.title.to_string())
}

/// Returns the values.
pub fn line(step: &Step<'_>, columns: usize) -> String {
    row(step, columns, |column| shown(column.unit, (column.value)(step)))
}

fn row(step: &Step<'_>, columns: usize, cell: impl Fn(&Column) -> String) -> String {
    let cells = chosen(step, columns).into_iter().map(|column| format!("{:>1$}", cell(column), column.width));
    cells.collect::<Vec<_>>().join(" ")
}

/// Returns all values as an object of JSON; what the server does not have is null.
pub fn json(step: &Step<'_>) -> Value {
    let number =
        |value: f64| Number::from_f64((value * 1000.0).round() / 1000.0).map_or(Value::Null, Value::Number);
    let value = |column: &Column| (column.value)(step).map_or(Value::Null, number);
    Value::Object(
        COLUMNS.iter().map(|column| (column.name.to_string(), value(column))).collect::<Map<_, _>>(),
    )
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn figures(at: Instant, factor: u64) -> Figures {
        let values = [
            ("cmd_get", 1000 * factor),
            ("cmd_set", 500 * factor),
            ("get_hits", 900 * factor),
            ("get_misses", 100 * factor),
            ("get_hits_ram", 600 * factor),
            ("get_hits_ssd", 300 * factor),
            ("evictions", 7 * factor),
            ("ssd_bytes_read", 4_000_000 * factor),
            ("ssd_bytes_written", 16_000_000 * factor),
            ("ram_segments_free", 50),
            ("ram_segments", 100),
            ("ssd_segments", 64),
            ("ssd_segments_used", 16),
            ("curr_items", 123_456),
            ("curr_connections", 3),
        ];
        Figures::of(at, true, &values)
    }

    #[test]
    fn rates_and_shares_are_of_the_interval() {
        let now = Instant::now();
        let (before, after) = (figures(now, 1), figures(now + Duration::from_secs(2), 3));
        let step = Step { before: Some(&before), now: &after, latencies: None };
        assert_eq!(
            header(&step, 80),
            " req/s  hit%  ram%  ssd%  set/s evict/s  read/s write/s  mem% used%  items conns"
        );
        assert_eq!(
            line(&step, 80),
            "  1500  90.0  60.0  30.0    500       7 4.00 MB 16.0 MB  50.0  25.0   123k     3"
        );
        assert_eq!(json(&step)["hit_ram_percent"], 60.0);
    }

    #[test]
    fn a_line_is_never_wider_than_the_terminal() {
        let now = Instant::now();
        let (before, after) = (figures(now, 1), figures(now + Duration::from_secs(2), 3));
        let step = Step { before: Some(&before), now: &after, latencies: None };
        for columns in 20..120 {
            let (header, line) = (header(&step, columns), line(&step, columns));
            assert!(header.len() <= columns && header.len() == line.len(), "{columns}: {header}");
        }
        assert_eq!(header(&step, 40), " req/s  hit%  ssd%  read/s write/s  mem%");
    }

    #[test]
    fn a_server_that_was_started_again_counts_from_nothing() {
        let now = Instant::now();
        let (before, after) = (figures(now, 5), figures(now + Duration::from_secs(1), 1));
        let step = Step { before: Some(&before), now: &after, latencies: None };
        assert_eq!(step.rate(&["cmd_get"]), 1000.0);
    }

    #[test]
    fn memcached_has_the_columns_of_memcached() {
        let now = Instant::now();
        let figures = Figures::of(
            now,
            false,
            &[("bytes", 25), ("limit_maxbytes", 100), ("uptime", 10), ("cmd_get", 20)],
        );
        let step = Step { before: None, now: &figures, latencies: None };
        assert_eq!(header(&step, 80), " req/s  hit%  set/s evict/s  mem%  items conns");
        assert_eq!(line(&step, 80), "     2     -      0       0  25.0      -     -");
    }
}
