//! The hosts of a run as rows for the terminal.

use crate::result::Host;
use crate::show;
use std::fmt::Write as _;

/// Below this many columns, a host has two lines.
const NARROW: usize = 76;
/// The longest name that keeps its column.
const NAME: usize = 22;

/// One row a host; nothing without hosts.
pub fn of(hosts: &[Host], width: usize) -> String {
    let mut text = String::new();
    if hosts.is_empty() {
        return text;
    }
    let is_wide = width >= NARROW && hosts.iter().all(|host| host.name.len() <= NAME);
    if is_wide {
        let _ = writeln!(
            text,
            "{:<NAME$}{:>10}{:>11}{:>9}{:>9}{:>9}{:>6}",
            "host", "requests", "rate", "p99", "skew", "clock+-", "lap"
        );
    }
    for host in hosts {
        let short = |ns: f64| show::time(ns).replace(' ', "");
        let p99 = short(host.response.quantile_ns(0.99) as f64);
        // Before its time by the error of a clock is in time.
        let skew = short(host.start_skew_us.max(0.0) * 1000.0);
        let error = short(host.clock_error_us * 1000.0);
        let (name, count, rate) = (&host.name, host.count, show::rate(host.rate));
        // Rounded down, so that 98.96 does not look like enough.
        let overlap = (host.overlap * 100.0).floor();
        let _ = if is_wide {
            writeln!(text, "{name:<NAME$}{count:>10}{rate:>11}{p99:>9}{skew:>9}{error:>9}{overlap:>5}%")
        } else {
            writeln!(text, "{name} {rate}\n  p99 {p99} skew {skew} overlap {overlap}%")
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit() {
        let host = Host {
            name: "root@198.18.0.254:2222".to_string(),
            count: 999_999_999,
            rate: 123_456.7,
            start_skew_us: 123_456.0,
            overlap: 0.9896,
            ..Host::default()
        };
        let hosts = [host.clone(), host];
        for width in [40, 80] {
            let text = of(&hosts, width);
            assert!(text.lines().all(|line| line.len() <= width), "{text}");
            assert!(text.contains("98%"), "{text}");
        }
        assert_eq!(of(&[], 80), "");
    }
}
