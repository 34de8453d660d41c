//! The exit status that a sweep leads to.

use crate::commands::Exit;
use crate::result::{Curve, Run, Slo, Verdict};
use crate::stats::search::Found;

/// Returns the exit status of a sweep that went to its end, or to which `ended` put one early.
pub(super) fn exit(
    runs: &[(f64, Run)],
    ended: Option<&str>,
    need: Option<u64>,
    curve: &Curve,
    found: Option<Found>,
) -> Exit {
    if runs.iter().any(|(_, run)| run.verified.wrong > 0) {
        return Exit::Wrong;
    }
    if ended.is_some() {
        return Exit::Error;
    }
    if need.is_some_and(|need| !is_reached(need as f64, curve, found)) {
        return Exit::Missed;
    }
    // A point beyond the server's capacity belongs to a sweep; one that the generator spoiled does not.
    if runs.iter().any(|(_, run)| is_spoiled(run)) { Exit::NotCertified } else { Exit::Ok }
}

/// Whether the capacity is surely `need` or more.
fn is_reached(need: f64, curve: &Curve, found: Option<Found>) -> bool {
    match (curve.slo_capacity, found) {
        (Some(capacity), _) => capacity.least >= need,
        (None, Some(Found::Above(rate))) => rate >= need,
        (None, _) => curve.slo.is_some_and(|slo| is_within(curve, slo, need)),
    }
}

/// Whether all points of the curve, up to at least `rate`, are within the service level.
fn is_within(curve: &Curve, slo: Slo, rate: f64) -> bool {
    // A point holds some quantiles only: the next one above stands for the rest.
    let value = |point: &crate::result::Point| match slo.quantile {
        0.0 => point.mean_ns,
        quantile if quantile <= 0.5 => point.p50_ns as f64,
        quantile if quantile <= 0.99 => point.p99_ns as f64,
        _ => point.p999_ns as f64,
    };
    curve.points.iter().any(|point| point.rate >= rate)
        && curve.points.iter().all(|point| value(point) <= slo.bound_ns as f64)
}

/// Whether the generator, not the server, set the figures.
pub(super) fn is_spoiled(run: &Run) -> bool {
    run.checks.iter().any(|check| check.name == "generator" && check.verdict == Verdict::Fail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Check, Estimate};

    fn run(wrong: u64, generator: Verdict) -> (f64, Run) {
        let mut run = Run::default();
        run.verified.wrong = wrong;
        run.checks.push(Check { name: "generator".into(), verdict: generator, ..Check::default() });
        (1.0, run)
    }

    #[test]
    fn a_wrong_answer_weighs_more_than_an_early_end_and_that_more_than_a_missed_need() {
        let capacity = Estimate { least: 90.0, estimate: 100.0, most: 110.0 };
        let curve = Curve { slo_capacity: Some(capacity), ..Curve::default() };
        let of = |one, ended, need| exit(&[one], ended, need, &curve, None);
        assert_eq!(of(run(1, Verdict::Pass), Some("stopped"), Some(200)), Exit::Wrong);
        assert_eq!(of(run(0, Verdict::Pass), Some("stopped"), Some(200)), Exit::Error);
        assert_eq!(of(run(0, Verdict::Fail), None, Some(95)), Exit::Missed);
        assert_eq!(of(run(0, Verdict::Fail), None, Some(90)), Exit::NotCertified);
        assert_eq!(of(run(0, Verdict::Pass), None, Some(90)), Exit::Ok);
        assert_eq!(of(run(0, Verdict::Pass), None, None), Exit::Ok);
    }
}
