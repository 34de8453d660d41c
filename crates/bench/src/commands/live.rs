//! One line that tells how a run is going: rewritten every second on a terminal, and not at all elsewhere.

use crate::engine::{Observer, Phase, Plan};
use crate::result::Interval;
use crate::show;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// One line that tells how a run is going.
#[derive(Debug)]
pub struct Live {
    is_on: bool,
    width: usize,
    length: Duration,
    /// What stands before every line.
    head: String,
}

impl Live {
    /// For a plan; `quiet` keeps it silent.
    pub fn new(plan: &Plan, quiet: bool, width: usize) -> Self {
        let is_on = !quiet && std::io::stdout().is_terminal();
        Self { is_on, width, length: plan.duration, head: String::new() }
    }

    /// For one of several runs; `head` says which, and goes before every line.
    pub fn of_several(plan: &Plan, quiet: bool, width: usize, head: String) -> Self {
        let live = Self::new(plan, quiet, width);
        Self { width: live.width.saturating_sub(head.len() + 2).max(2), head, ..live }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.show("");
    }

    fn show(&self, line: &str) {
        if self.is_on {
            let mut out = std::io::stdout().lock();
            let head = if line.is_empty() || self.head.is_empty() { "" } else { &format!("{}  ", self.head) };
            let _ = write!(out, "\r\x1b[2K{head}{}", line.get(..self.width - 1).unwrap_or(line));
            let _ = out.flush();
        }
    }
}

impl Observer for Live {
    fn phase(&self, phase: Phase) {
        match phase {
            Phase::Prefill { stored, keys } => {
                self.show(&format!("prefill {} of {} keys", show::count(stored), show::count(keys)));
            }
            Phase::WarmUp => self.show("warming up"),
            Phase::Window => self.show("measuring"),
        }
    }

    fn second(&self, interval: &Interval, left: Option<Duration>) {
        if !self.is_on {
            return;
        }
        self.show(&line(interval, left, self.length, self.width));
    }
}

/// The line, within `width` columns: the least important part is dropped first.
pub fn line(interval: &Interval, left: Option<Duration>, length: Duration, width: usize) -> String {
    let time = |quantile| show::time(interval.response.quantile_ns(quantile) as f64);
    let keys = interval.hits + interval.misses;
    let mut parts = vec![
        show::rate(interval.count as f64),
        format!("p99 {}", time(0.99)),
        left.map_or_else(String::new, |left| format!("{} s left", left.as_secs_f64().ceil())),
        format!("p50 {}", time(0.5)),
    ];
    if keys > 0 {
        parts.push(format!("hit {:.1} %", interval.hits as f64 * 100.0 / keys as f64));
    }
    if interval.errors > 0 {
        parts.push(format!("{} errors", show::count(interval.errors)));
    }
    parts.retain(|part| !part.is_empty());
    let mut line = String::new();
    for part in parts {
        if line.len() + part.len() + 3 < width {
            line += if line.is_empty() { "" } else { "  " };
            line += &part;
        }
    }
    let bar = 20;
    if let Some(left) = left.filter(|_| line.len() + bar + 5 < width) {
        let done = 1.0 - left.as_secs_f64() / length.as_secs_f64().max(1e-9);
        let filled = (done.clamp(0.0, 1.0) * bar as f64).round() as usize;
        line = format!("[{}{}] {line}", "#".repeat(filled), ".".repeat(bar - filled));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fits_any_width() {
        let mut interval = Interval { count: 123_456, hits: 99, misses: 1, errors: 7, ..Interval::default() };
        interval.response.record_n(123_456, 1000);
        for width in 2..200 {
            let line = line(&interval, Some(Duration::from_secs(7)), Duration::from_secs(10), width);
            assert!(line.len() < width, "{width}: {line}");
            assert!(line.is_ascii());
        }
        let line = line(&interval, Some(Duration::from_secs(7)), Duration::from_secs(10), 90);
        let said = "123 K/s  p99 124 us  7 s left  p50 124 us  hit 99.0 %  7 errors";
        assert_eq!(line, format!("[######..............] {said}"));
    }
}
