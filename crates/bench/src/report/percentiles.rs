//! Latency by percentile on an axis of nines: a user's wait next to the time that a clock at the send would
//! have said.

use super::plot::{Axis, Plot, colour};
use super::tables;
use super::text::{latency, quantile};
use crate::latency::Latency;
use crate::result::Run;

/// More lines than this cannot be told apart.
const LINES_MAX: usize = 5;
/// The quantiles of the table.
const QUANTILES: [f64; 8] = [0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 1.0];

/// How many nines a quantile has: 1 for 0.9, 2 for 0.99.
fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).max(1e-9).log10()
}

/// Service latencies of all verbs.
pub fn service(run: &Run) -> Latency {
    let mut all = Latency::new();
    run.verbs.iter().for_each(|verb| all.add(&verb.service));
    all
}

/// Points along the axis of nines, as far as the count of requests supports them.
fn line(latency: &Latency) -> Vec<(f64, f64)> {
    let most = (latency.count() as f64).log10().min(6.0);
    let steps = (most * 16.0) as usize;
    let mut line: Vec<(f64, f64)> = Vec::new();
    for at in 0..=steps {
        let nines = at as f64 / 16.0;
        let ns = latency.quantile_ns(1.0 - 10f64.powf(-nines)) as f64;
        let before = line.len().checked_sub(2).map(|before| line[before].1);
        match line.last_mut() {
            // A flat piece needs its two ends only.
            Some(last) if last.1 == ns && before == Some(ns) => last.0 = nines,
            _ => line.push((nines, ns)),
        }
    }
    line
}

/// The figure for some runs and its data; empty without runs.
pub fn section(runs: &[&Run]) -> String {
    // The first, the last, and evenly between.
    let lines = runs.len().min(LINES_MAX);
    let chosen = (0..lines).map(|at| at * (runs.len() - 1) / (lines - 1).max(1));
    let runs: Vec<&Run> = chosen.map(|at| runs[at]).collect();
    if runs.is_empty() {
        return String::new();
    }
    let both: Vec<(Latency, Latency)> = runs.iter().map(|run| (run.response(), service(run))).collect();
    let lines: Vec<_> = both.iter().map(|(response, service)| (line(response), line(service))).collect();
    let latencies =
        || lines.iter().flat_map(|(a, b)| a.iter().chain(b)).map(|point| point.1).filter(|ns| *ns > 0.0);
    let (low, high) = latencies().fold((1e12, 1.0f64), |(low, high), ns| (ns.min(low), ns.max(high)));
    let most = lines.iter().filter_map(|(a, _)| a.last()).map(|point| point.0).fold(1.0, f64::max);
    let ticks = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999].map(|q| (nines(q), q));
    let ticks = ticks.into_iter().filter(|(at, _)| *at <= most + 0.01).map(|(at, q)| (at, quantile(q)));
    let x = Axis { low: 0.0, high: most, log: false, ticks: ticks.collect() };
    let mut plot = Plot::new(x, Axis::log(low * 0.8, high * 2.5, latency), 300.0);
    for (at, (run, (response, service))) in runs.iter().zip(&lines).enumerate() {
        let colour = colour(at);
        plot.line(service, &format!("dash {colour}"));
        plot.line(response, &format!("line {colour}"));
        if let Some(last) = response.last() {
            plot.label(last.0, last.1, &format!("name {colour}"), &run.label);
        }
    }
    let figure = plot.svg("latency by percentile, response and service", "percentile", "latency");
    let mut rows = Vec::new();
    for (run, (response, service)) in runs.iter().zip(&both) {
        for (name, latencies) in [("response", response), ("service", service), ("slip", &run.slip)] {
            let mut row = vec![run.label.clone(), name.to_string(), latencies.count().to_string()];
            row.push(latency(latencies.mean_ns()));
            row.extend(QUANTILES.map(|quantile| latency(latencies.quantile_ns(quantile) as f64)));
            rows.push(row);
        }
    }
    let columns =
        ["run", "clock", "requests", "mean", "p25", "p50", "p75", "p90", "p99", "p99.9", "p99.99", "max"];
    let key = "<p class=\"key\">Solid: response, from the moment a request was due. Dashed: service, from \
     the actual \
               send; where they part, requests waited to be sent, which a clock at the send does not \
                see.</p>";
    format!("<figure>{figure}{key}{}</figure>", tables::data(&columns, &rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nines_count_nines() {
        assert!((nines(0.9) - 1.0).abs() < 1e-9 && (nines(0.999) - 3.0).abs() < 1e-9);
        assert_eq!(nines(0.0), 0.0);
    }

    #[test]
    fn a_line_goes_no_farther_than_its_requests() {
        let mut latency = Latency::new();
        latency.record_n(1_000_000, 1000);
        let line = line(&latency);
        assert!(line.len() <= 3, "it is flat: {line:?}");
        assert_eq!(line.last().map(|point| point.0), Some(3.0));
    }
}
