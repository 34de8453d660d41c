//! The figures of the document: eight fatcache servers on an Intel 320 of 600 GB, twemperf on another
//! machine, 2012.

use crate::checks::{figure, queueing};
use crate::result::{Check, Table};
use crate::scenario::part::{row, table, verdicts};

/// Its iostat: reads a second, kB read a second, sectors a request, queue, wait in ms, service in ms, % busy.
pub const IOSTAT: [(f64, f64, f64, f64, f64, f64, f64); 5] = [
    (31_790.0, 21_614.25, 1.36, 5.83, 0.18, 0.03, 100.05),
    (32_843.5, 22_318.25, 1.36, 6.15, 0.19, 0.03, 99.95),
    (31_946.5, 21_715.0, 1.36, 6.09, 0.19, 0.03, 100.05),
    (30_559.5, 20_758.0, 1.36, 5.20, 0.17, 0.03, 99.80),
    (32_315.0, 21_961.0, 1.36, 5.92, 0.18, 0.03, 100.0),
];

/// A block of its load generator, line by line; latencies in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Offered and answered requests a second.
    pub offered: f64,
    /// Answered.
    pub rate: f64,
    /// Seconds.
    pub seconds: f64,
    /// Bytes of a request and of a reply.
    pub bytes: (f64, f64),
    /// Mean, least, most.
    pub times_ms: (f64, f64, f64),
    /// The values printed as p25, p50, p75, p95, p99, p99.9.
    pub percentiles_ms: [f64; 6],
    /// The generator's CPU, user and system, in percent.
    pub cpu: (f64, f64),
}

/// Sets to one server.
pub const SET: Block = Block {
    offered: 100_000.0,
    rate: 93_532.1,
    seconds: 10.692,
    bytes: (129.0, 8.0),
    times_ms: (413.0, 0.4, 1430.4),
    percentiles_ms: [156.0, 387.0, 570.0, 963.0, 1140.0, 1304.0],
    cpu: (19.3, 61.6),
};
/// Gets from one of eight servers.
pub const GET: Block = Block {
    offered: 4000.0,
    rate: 4000.2,
    seconds: 249.987,
    bytes: (19.0, 133.0),
    times_ms: (595.6, 0.1, 7385.1),
    percentiles_ms: [1.0, 130.0, 588.0, 2728.0, 5191.0, 6501.0],
    cpu: (54.5, 44.0),
};

/// Returns its own summary, and the checks of its figures.
pub fn tables() -> Vec<Table> {
    let rows = vec![
        row([&"sets a second, one server", &"close to 100K"]),
        row([&"gets a second, one server", &"close to 4.5K"]),
        row([&"gets a second, all 8 servers", &"32K"]),
    ];
    let title = "fatcache-ssd: the document (8 fatcache 0.1 on one 600 GB SSD)";
    vec![
        table(title, &["what", "its summary"], rows),
        verdicts("fatcache-ssd: the document's figures, checked", &checks()),
    ]
}

fn checks() -> Vec<Check> {
    let of = |what: &str, check: Check| Check { message: format!("{what}: {}", check.message), ..check };
    let busy = |block: Block| (block.cpu.0 + block.cpu.1) / 100.0;
    let (reads, _, _, queue, wait, _, _) = IOSTAT[0];
    let percentile = format!(
        "{} ms is printed as p75 and is the 70th percentile: its program takes the 0.70th of the answers",
        figure(SET.percentiles_ms[2])
    );
    vec![
        of("set", queueing::overload(SET.offered, SET.rate, SET.times_ms.0 * 1e6, 100)),
        of("get", queueing::overload(GET.offered, GET.rate, GET.times_ms.0 * 1e6, 100)),
        of("set", queueing::generator(busy(SET))),
        of("get", queueing::generator(busy(GET))),
        crate::checks::check("percentiles", crate::result::Verdict::Fail, percentile),
        queueing::device_queue(reads, wait, queue),
        queueing::reads_per_get(reads, 32_000.0, 0.9),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Verdict;

    #[test]
    fn overload_the_generator_and_a_label_are_caught() {
        let found: Vec<Verdict> = checks().iter().map(|check| check.verdict).collect();
        let (ok, warn, fail) = (Verdict::Pass, Verdict::Warn, Verdict::Fail);
        assert_eq!(found, [fail, ok, warn, fail, fail, ok, ok]);
    }
}
