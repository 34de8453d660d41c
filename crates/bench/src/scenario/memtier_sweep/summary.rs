//! The sentences of the document, from its points and from ours: highest rate, rates below 1 ms, what to go
//! on with.

use super::hosts::Hosts;
use super::{Measured, Series, seed};
use crate::checks::figure;
use crate::result::{Curve, Point, Slo};
use crate::scenario::Stage;
use crate::stats::{curve, mean};
use crate::sweep;

/// The document's bound: a mean of 1 ms.
const SLO: Slo = Slo { quantile: 0.0, bound_ns: 1_000_000 };

/// The curve of one series.
pub(super) fn curve(name: &str, measured: &[Measured]) -> Curve {
    let runs: Vec<_> = measured.iter().map(|one| (one.connections, &one.run)).collect();
    sweep::curve(&format!("memtier-sweep {name}"), "connections", &runs, Some(SLO))
}

/// The document's statements about its points, made about ours.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lines {
    pub best_rate: f64,
    pub best_ms: f64,
    pub best_n: usize,
    /// The highest rate of a point with a mean below 1 ms; 0 when there is none.
    pub rate_below: f64,
    /// The mean rate and latency of all such points.
    pub mean_rate_below: f64,
    pub mean_ms_below: f64,
    /// The natural concurrency.
    pub n_star: f64,
}

/// Of a curve whose n = 1 has `each` connections.
pub(super) fn lines(curve: &Curve, each: f64) -> Lines {
    let Some(best) = curve.points.iter().max_by(|a, b| a.rate.total_cmp(&b.rate)) else {
        return Lines::default();
    };
    let below: Vec<&Point> =
        curve.points.iter().filter(|point| point.mean_ns < SLO.bound_ns as f64).collect();
    let least_ns = curve.points.iter().map(|point| point.mean_ns).fold(f64::MAX, f64::min);
    let of = |figure: fn(&Point) -> f64| mean(&below.iter().map(|point| figure(point)).collect::<Vec<_>>());
    Lines {
        best_rate: best.rate,
        best_ms: best.mean_ns / 1e6,
        best_n: (best.at / each).round() as usize,
        rate_below: below.iter().map(|point| point.rate).fold(0.0, f64::max),
        mean_rate_below: of(|point| point.rate),
        mean_ms_below: of(|point| point.mean_ns) / 1e6,
        n_star: curve::n_star(best.rate, least_ns),
    }
}

/// The document's sentences beside ours, one series a row.
pub(super) fn table(stage: &mut Stage<'_>, hosts: &Hosts, curves: &[Curve], all: &[(Series, Vec<Measured>)]) {
    let (rate, ms, _) = seed::HIGHEST;
    let (mean_rate, mean_ms) = seed::BELOW;
    let n_star = curve::n_star(430_000.0, seed::POINTS[0].mean_ms * 1e6);
    let document = ["document".to_string(), figure(rate), figure(ms), "11 (it says 17)".to_string()]
        .into_iter()
        .chain([figure(rate), figure(mean_rate), figure(mean_ms), figure(n_star.round())]);
    let mut rows: Vec<Vec<String>> = vec![document.collect()];
    for (curve, (series, _)) in curves.iter().zip(all) {
        let of = lines(curve, hosts.connections(1) as f64);
        let cell = |value: f64| if value > 0.0 { figure(value) } else { "none".to_string() };
        rows.push(vec![
            series.name(),
            figure(of.best_rate.round()),
            figure(of.best_ms),
            of.best_n.to_string(),
            cell(of.rate_below.round()),
            cell(of.mean_rate_below.round()),
            cell(of.mean_ms_below),
            figure(of.n_star.round()),
        ]);
    }
    let columns = [
        "",
        "highest op/s",
        "its mean ms",
        "its n",
        "highest below 1 ms",
        "mean op/s below 1 ms",
        "mean ms there",
        "N*",
    ];
    stage.part.table("max throughput with mean < 1 ms", &columns, rows);
    stage.part.note(format!(
        "N* = highest rate x least latency is the number of connections at which waiting begins; the \
         document goes on with n = {} (448 connections), 9 times its N*",
        seed::RECOMMENDED
    ));
}
