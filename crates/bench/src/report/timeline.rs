//! A run over time: a heat map of latencies, and below it, on the same axis, rate, hits, the server and its
//! device.

use super::plot::{Axis, Plot};
use super::tables;
use super::text::{bytes, count, escape, latency, percent};
use crate::latency::Latency;
use crate::result::{Interval, ProcessSample, Run};
use std::fmt::Write as _;

/// Columns of the heat map: longer runs have several seconds in one.
const COLUMNS_MAX: usize = 120;
const ROWS: usize = 28;
const LEVELS: usize = 6;
const PANEL_PIXELS: f64 = 64.0;

/// Intervals put together so that there are few enough of them, with the seconds in each.
fn columns(run: &Run) -> (Vec<Interval>, usize) {
    let together = run.intervals.len().div_ceil(COLUMNS_MAX).max(1);
    let merge = |chunk: &[Interval]| {
        let mut merged = Interval { at_ms: chunk[0].at_ms, ..Interval::default() };
        chunk.iter().for_each(|interval| merged.add(interval));
        merged
    };
    (run.intervals.chunks(together).map(merge).collect(), together)
}

/// A run's figures over time; empty when it has no seconds.
pub fn section(run: &Run) -> String {
    let (columns, together) = columns(run);
    if columns.is_empty() || run.count() == 0 {
        return String::new();
    }
    let end_ms =
        run.intervals.last().map_or(1000, |last| last.at_ms + 1000).max((run.seconds * 1000.0) as u64);
    let mut html = format!("<figure class=\"time\"><h3>{}</h3>", escape(&run.label));
    let what = [&run.server, &run.address, &run.workload].map(|text| escape(text));
    let what: Vec<&String> = what.iter().filter(|text| !text.is_empty()).collect();
    let _ = write!(
        html,
        "<p class=\"dim\">{}</p>",
        what.iter().map(|t| t.as_str()).collect::<Vec<_>>().join(" &#183; ")
    );
    if let Some(why) = &run.cut_short {
        let _ = write!(html, "<p class=\"bad-t\">Cut short: {}</p>", escape(why));
    }
    html.push_str(&heat(&columns, end_ms));
    let mut panels = panels(run, &columns, together);
    if let Some(last) = panels.last_mut() {
        last.shows_time = true;
    }
    panels.into_iter().for_each(|panel| html.push_str(&panel.svg(end_ms)));
    let (names, rows) = data(run, &columns, together);
    html.push_str(&tables::data(&names, &rows));
    html.push_str(&server_counters(run));
    html.push_str("</figure>");
    html
}

/// Time from 0 to the end, in seconds.
fn time(end_ms: u64, with_ticks: bool) -> Axis {
    let mut axis = Axis::linear(end_ms as f64 / 1000.0, 8, |seconds| format!("{seconds} s"));
    if !with_ticks {
        axis.ticks.clear();
    }
    axis
}

fn heat(columns: &[Interval], end_ms: u64) -> String {
    let mut all = Latency::new();
    columns.iter().for_each(|column| all.add(&column.response));
    let low = (all.quantile_ns(0.001) as f64 * 0.9).max(1.0);
    let high = (all.max_ns() as f64 * 1.05).max(low * 2.0);
    let y = Axis::log(low, high, latency);
    let mut cells = vec![vec![0u64; ROWS]; columns.len()];
    for (column, cells) in columns.iter().zip(&mut cells) {
        for bin in column.response.histogram().iter_recorded() {
            let row = (y.share(bin.value_iterated_to() as f64) * ROWS as f64) as usize;
            cells[row.min(ROWS - 1)] += bin.count_at_value();
        }
    }
    let most = cells.iter().flatten().copied().max().unwrap_or(1).max(1);
    let content = cell_paths(&cells, most as f64);
    // The last column may be a part of its seconds; the axis ends where the run does.
    let mut plot = Plot::new(time(end_ms, false), y, 190.0);
    plot.raw(columns.len(), ROWS, &content);
    let middle = |column: &Interval| column.at_ms as f64 / 1000.0 + 0.5;
    for (quantile, class, name) in [(0.99, "over", "p99"), (0.5, "over thin", "p50")] {
        let line: Vec<(f64, f64)> = columns
            .iter()
            .filter(|column| column.count > 0)
            .map(|column| (middle(column), column.response.quantile_ns(quantile) as f64))
            .collect();
        plot.line(&line, "halo");
        plot.line(&line, class);
        if let Some(last) = line.last() {
            plot.label(last.0, last.1, "name over-t", name);
        }
    }
    let mut key = String::from("<p class=\"key heat\">requests in a cell: 1 ");
    (1..=LEVELS).for_each(|level| {
        let _ = write!(key, "<i class=\"h{level}\"></i>");
    });
    let _ = write!(key, " {most}</p>");
    plot.svg("heat map of response times over time", "", "response time") + &key
}

/// Returns the cells as one path for each level of colour; `most` is the largest number in a cell.
fn cell_paths(cells: &[Vec<u64>], most: f64) -> String {
    let level = |count: u64| match count {
        0 => None,
        // Even a single request is seen: few get more of the scale than many.
        count => {
            Some(((count as f64 / most).powf(0.45) * LEVELS as f64).ceil().clamp(1.0, LEVELS as f64) as usize)
        }
    };
    let mut paths = vec![String::new(); LEVELS + 1];
    for (across, cells) in cells.iter().enumerate() {
        let levels: Vec<Option<usize>> = cells.iter().map(|count| level(*count)).collect();
        let mut row = 0;
        // Cells of one level that stand on each other are one rectangle.
        for run in levels.chunk_by(|a, b| a == b) {
            if let Some(level) = run[0] {
                let tall = run.len();
                let _ = write!(paths[level], "M{across} {}h1v{tall}h-1z", ROWS - row - tall);
            }
            row += run.len();
        }
    }
    let path = |(level, path): (usize, &String)| match path.is_empty() {
        true => String::new(),
        false => format!("<path class=\"h{level}\" d=\"{path}\"/>"),
    };
    paths.iter().enumerate().map(path).collect()
}

/// A small plot with its own scale.
struct Panel {
    title: String,
    lines: Vec<(String, Vec<(f64, f64)>)>,
    format: fn(f64) -> String,
    highest: Option<f64>,
    shows_time: bool,
    binary: bool,
}

impl Panel {
    fn new(title: &str, format: fn(f64) -> String, lines: Vec<(&str, Vec<(f64, f64)>)>) -> Self {
        let lines = lines.into_iter().map(|(name, line)| (name.to_string(), line)).collect();
        Self { title: title.to_string(), lines, format, highest: None, shows_time: false, binary: false }
    }

    /// Of bytes.
    fn binary(mut self) -> Self {
        self.binary = true;
        self
    }

    fn up_to(mut self, highest: f64) -> Self {
        self.highest = Some(highest);
        self
    }

    fn svg(self, end_ms: u64) -> String {
        let found = self.lines.iter().flat_map(|(_, line)| line).map(|point| point.1).fold(0.0, f64::max);
        let highest = self.highest.unwrap_or(found * 1.12);
        let axis = if self.binary { Axis::binary } else { Axis::linear };
        let y = axis(highest, 2, self.format);
        let mut plot = Plot::new(time(end_ms, self.shows_time), y, PANEL_PIXELS);
        let lone = self.lines.len() == 1;
        for (at, (name, line)) in self.lines.iter().enumerate() {
            let colour = super::plot::colour(at);
            if lone {
                plot.area(line, &format!("area {colour}"));
            }
            plot.line(line, &format!("line {colour}"));
            if !lone {
                plot.key(&colour, name);
            }
        }
        plot.svg(&format!("{} over time", self.title), "", &self.title)
    }
}

fn panels(run: &Run, columns: &[Interval], together: usize) -> Vec<Panel> {
    let seconds = together as f64;
    let at = |column: &Interval| column.at_ms as f64 / 1000.0 + 0.5 * seconds;
    let line = |of: &dyn Fn(&Interval) -> f64| -> Vec<(f64, f64)> {
        columns.iter().map(|column| (at(column), of(column))).collect()
    };
    let mut panels = vec![Panel::new(
        "answered requests a second",
        count,
        vec![("", line(&|c| c.count as f64 / seconds))],
    )];
    if run.intervals.iter().any(|interval| interval.hits + interval.misses > 0) {
        let ratio = |c: &Interval| c.hits as f64 / (c.hits + c.misses).max(1) as f64;
        panels.push(Panel::new("hit ratio", percent, vec![("", line(&ratio))]).up_to(1.0));
    }
    if run.intervals.iter().any(|interval| interval.errors > 0) {
        panels.push(Panel::new("errors a second", count, vec![("", line(&|c| c.errors as f64 / seconds))]));
    }
    let Some(watch) = &run.watch else { return panels };
    if !watch.process.is_empty() {
        let samples = |of: &dyn Fn(&ProcessSample) -> f64| -> Vec<(f64, f64)> {
            watch.process.iter().map(|s| (s.at_ms as f64 / 1000.0, of(s))).collect()
        };
        let share = |us: u64, s: &ProcessSample| us as f64 / 1000.0 / (s.interval_ms.max(1)) as f64;
        let lines = vec![
            ("user", samples(&|s| share(s.cpu_user_us, s))),
            ("system", samples(&|s| share(s.cpu_system_us, s))),
        ];
        panels.push(Panel::new("server CPU, share of a core", percent, lines));
        let memory = samples(&|s| s.resident_bytes as f64);
        panels.push(Panel::new("server memory, resident", bytes, vec![("", memory)]).binary());
        let switches = samples(&|s| s.switches as f64 * 1000.0 / s.interval_ms.max(1) as f64);
        panels.push(Panel::new("context switches a second", count, vec![("", switches)]));
    }
    if !watch.device.is_empty() {
        let device = watch.device_name.as_deref().unwrap_or("device");
        let samples = |of: fn(&crate::result::DeviceSample) -> f64| -> Vec<(f64, f64)> {
            watch.device.iter().map(|s| (s.at_ms as f64 / 1000.0, of(s))).collect()
        };
        let lines = vec![("reads", samples(|s| s.reads)), ("writes", samples(|s| s.writes))];
        panels.push(Panel::new(&format!("{device}: requests a second"), count, lines));
        let lines = vec![("read", samples(|s| s.read_bytes)), ("written", samples(|s| s.written_bytes))];
        panels.push(Panel::new(&format!("{device}: bytes a second"), bytes, lines).binary());
        let lines = vec![
            ("read", samples(|s| s.read_await_ms * 1e6)),
            ("write", samples(|s| s.write_await_ms * 1e6)),
        ];
        panels.push(Panel::new(&format!("{device}: await"), latency, lines));
        let lines = vec![("", samples(|s| s.utilisation))];
        panels.push(Panel::new(&format!("{device}: utilisation"), percent, lines).up_to(1.0));
    }
    panels
}

fn data(run: &Run, columns: &[Interval], together: usize) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let mut names = vec!["second", "rate/s", "p50", "p99", "max", "hits", "errors"];
    let process = run.watch.as_ref().map(|watch| &watch.process).filter(|samples| !samples.is_empty());
    let device = run.watch.as_ref().map(|watch| &watch.device).filter(|samples| !samples.is_empty());
    if process.is_some() {
        names.extend(["user", "system", "memory"]);
    }
    if device.is_some() {
        names.extend(["reads/s", "writes/s", "r await", "util"]);
    }
    let rows = columns.iter().map(|column| {
        let asked = column.hits + column.misses;
        let mut row = vec![
            format!("{}", column.at_ms / 1000),
            format!("{:.0}", column.count as f64 / together as f64),
            latency(column.response.quantile_ns(0.5) as f64),
            latency(column.response.quantile_ns(0.99) as f64),
            latency(column.response.max_ns() as f64),
            if asked > 0 { percent(column.hits as f64 / asked as f64) } else { "-".to_string() },
            column.errors.to_string(),
        ];
        // The sample that ended soonest after the middle of the column.
        let middle = column.at_ms + 500 * together as u64;
        if let Some(samples) = process {
            match samples.iter().find(|sample| sample.at_ms >= middle) {
                Some(s) => {
                    let share = |us: u64| percent(us as f64 / 1000.0 / s.interval_ms.max(1) as f64);
                    row.extend([
                        share(s.cpu_user_us),
                        share(s.cpu_system_us),
                        bytes(s.resident_bytes as f64),
                    ]);
                }
                None => row.extend(["-"; 3].map(str::to_string)),
            }
        }
        if let Some(samples) = device {
            match samples.iter().find(|sample| sample.at_ms >= middle) {
                Some(s) => row.extend([
                    count(s.reads),
                    count(s.writes),
                    latency(s.read_await_ms * 1e6),
                    percent(s.utilisation),
                ]),
                None => row.extend(["-"; 4].map(str::to_string)),
            }
        }
        row
    });
    (names, rows.collect())
}

/// The server's own counters.
fn server_counters(run: &Run) -> String {
    let Some(watch) = run.watch.as_ref().filter(|w| !w.stats_growth.is_empty() || !w.stats_end.is_empty())
    else {
        return String::new();
    };
    let growth = watch.stats_growth.iter().filter(|(_, value)| **value != 0.0);
    let mut rows: Vec<Vec<String>> =
        growth.map(|(name, value)| vec![name.clone(), format!("{value:+}"), String::new()]).collect();
    for (name, value) in &watch.stats_end {
        match rows.iter_mut().find(|row| row[0] == *name) {
            Some(row) => row[2] = value.clone(),
            None => rows.push(vec![name.clone(), String::new(), value.clone()]),
        }
    }
    rows.truncate(120);
    format!(
        "<details class=\"data\"><summary>The server's own counters ({})</summary>{}</details>",
        escape(&watch.source),
        tables::table(&["counter", "growth in the window", "at its end"], &rows)
    )
}
