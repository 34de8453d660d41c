//! The figures of the document: memcached 1.4 on six cores, seven hosts of six cores, 1 Gb/s, 2015.

use crate::checks::{figure, hits, queueing};
use crate::result::{Check, Table};
use crate::scenario::part::{row, table, verdicts};

/// One point: connections are 28 n.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Connections a thread.
    pub n: usize,
    /// Operations a second.
    pub rate: f64,
    /// Mean latency in milliseconds.
    pub mean_ms: f64,
    /// Hit ratio in percent.
    pub hits: f64,
}

const fn point(n: usize, rate: f64, mean_ms: f64, hits: f64) -> Point {
    Point { n, rate, mean_ms, hits }
}

/// The points of its raw data that are known.
pub const POINTS: [Point; 10] = [
    point(1, 243_324.0, 0.111, 64.7),
    point(2, 342_291.0, 0.160, 59.5),
    point(3, 375_628.0, 0.220, 52.9),
    point(5, 454_683.0, 0.304, 47.6),
    point(8, 411_619.0, 0.541, 38.2),
    point(11, 474_937.0, 0.668, 28.8),
    point(15, 424_891.0, 0.954, 22.3),
    point(16, 446_546.0, 1.001, 22.5),
    point(17, 431_312.0, 1.065, 18.2),
    point(48, 872_351.0, 1.725, 22.6),
];
/// Its text: the highest rate, the connections it names for it, the mean of the points below 1 ms, their
/// latency.
pub const HIGHEST: (f64, f64, f64) = (474_936.0, 0.668, 476.0);
/// Mean rate and mean latency in milliseconds of n = 1 to 16.
pub const BELOW: (f64, f64) = (404_391.0, 0.563);
/// The n that it recommends.
pub const RECOMMENDED: usize = 16;

/// Returns the document's points, and the checks of them.
pub fn tables() -> Vec<Table> {
    let rows = POINTS.iter().map(|point| {
        let connections = 28.0 * point.n as f64;
        let in_flight = point.rate * point.mean_ms / 1000.0;
        row([
            &point.n,
            &connections,
            &figure(point.rate),
            &figure(point.mean_ms),
            &figure(point.hits),
            &figure(in_flight.round()),
        ])
    });
    let columns = ["n", "connections", "op/s", "mean ms", "hit %", "rate x latency"];
    vec![
        table("memtier-sweep: the document (memcached 1.4.24, 2015)", &columns, rows.collect()),
        verdicts("memtier-sweep: the document's figures, checked", &checks()),
    ]
}

fn checks() -> Vec<Check> {
    let of = |what: &str, check: Check| Check { message: format!("{what}: {}", check.message), ..check };
    let (rate, ms, claimed) = HIGHEST;
    let last = POINTS[9];
    let ratios: Vec<(f64, f64)> =
        POINTS[..9].iter().map(|point| (point.n as f64, point.hits / 100.0)).collect();
    let n_star = crate::stats::curve::n_star(430_000.0, POINTS[0].mean_ms * 1e6);
    vec![
        of("`476 connections`", queueing::little(rate, ms * 1e6, claimed)),
        of("n = 11", queueing::little(rate, ms * 1e6, 308.0)),
        of("n = 48", queueing::little(last.rate, last.mean_ms * 1e6, 1344.0)),
        hits::steady(&ratios),
        of("`16 connections`", queueing::past_knee(448.0, n_star)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Verdict;

    #[test]
    fn its_connections_and_its_hits_are_caught() {
        let found: Vec<Verdict> = checks().iter().map(|check| check.verdict).collect();
        let (ok, warn, fail) = (Verdict::Pass, Verdict::Warn, Verdict::Fail);
        assert_eq!(found, [fail, ok, fail, fail, warn]);
    }
}
