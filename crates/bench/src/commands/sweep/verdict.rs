//! The exit status that a sweep leads to.

use crate::commands::Exit;
use crate::result::{Curve, Point, Run, Slo};
use crate::stats::search::Found;
use crate::sweep::is_sound;

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
    let is_certified = match found {
        // A search goes beyond what the server can do, and does not go by points that the generator spoiled.
        Some(Found::Spoiled(..)) => false,
        // One that ran out of time has not found the capacity, but may have seen what was asked for.
        Some(Found::Between(..)) => need.is_some(),
        Some(_) => true,
        None => runs.iter().all(|(_, run)| is_sound(run)),
    };
    if is_certified { Exit::Ok } else { Exit::NotCertified }
}

/// Whether the capacity is surely `need` or more.
fn is_reached(need: f64, curve: &Curve, found: Option<Found>) -> bool {
    match (curve.slo_capacity, found) {
        (Some(capacity), _) => capacity.least >= need,
        (None, Some(Found::Above(rate) | Found::Spoiled(rate, _))) => rate >= need,
        (None, Some(Found::Between(rate, failed))) => failed.is_infinite() && rate >= need,
        (None, Some(_)) => false,
        (None, None) => curve.slo.is_some_and(|slo| is_within(curve, slo, need)),
    }
}

/// Whether the points of the curve, up to one of at least `rate`, are certified and within the service level.
fn is_within(curve: &Curve, slo: Slo, rate: f64) -> bool {
    // A point holds some quantiles only: the next one above stands for the rest.
    let value = |point: &Point| match slo.quantile {
        0.0 => point.mean_ns,
        quantile if quantile <= 0.5 => point.p50_ns as f64,
        quantile if quantile <= 0.99 => point.p99_ns as f64,
        _ => point.p999_ns as f64,
    };
    let is_good = |point: &Point| point.certified && value(point) <= slo.bound_ns as f64;
    let reached = curve.points.iter().filter(|point| point.rate >= rate);
    let Some(reached) = reached.min_by(|a, b| a.at.total_cmp(&b.at)) else { return false };
    curve.points.iter().filter(|point| point.at <= reached.at).all(is_good)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Check, Estimate, Verdict};

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

    #[test]
    fn a_need_is_met_by_certified_points_only() {
        let point = |at: f64, p99_ns: u64, certified: bool| Point {
            at,
            rate: at,
            p99_ns,
            certified,
            ..Point::default()
        };
        let slo = Some(Slo { quantile: 0.99, bound_ns: 1_000_000 });
        for (points, want) in [
            (vec![point(10.0, 5, true), point(20.0, 5, true)], true),
            // Refused requests are answered fast.
            (vec![point(10.0, 5, true), point(20.0, 5, false)], false),
            (vec![point(10.0, 5, false), point(20.0, 5, true)], false),
            (vec![point(10.0, 5, true), point(20.0, 2_000_000, true)], false),
            // What lies beyond the need does not matter.
            (vec![point(20.0, 5, true), point(40.0, 2_000_000, false)], true),
            (vec![point(10.0, 5, true)], false),
        ] {
            let curve = Curve { slo, points, ..Curve::default() };
            assert_eq!(is_reached(20.0, &curve, None), want, "{:?}", curve.points);
        }
        let curve = Curve { slo, ..Curve::default() };
        assert!(is_reached(20.0, &curve, Some(Found::Spoiled(20.0, 40.0))));
        assert!(!is_reached(20.0, &curve, Some(Found::Spoiled(10.0, 40.0))));
        assert_eq!(exit(&[], None, None, &curve, Some(Found::Spoiled(10.0, 40.0))), Exit::NotCertified);
    }

    #[test]
    fn a_search_that_runs_out_of_time_is_not_certified_but_may_have_seen_what_is_needed() {
        let curve = Curve::default();
        let of = |passed, failed, need| exit(&[], None, need, &curve, Some(Found::Between(passed, failed)));
        for failed in [40.0, f64::INFINITY] {
            assert_eq!(of(0.0, failed, None), Exit::NotCertified);
            assert_eq!(of(20.0, failed, None), Exit::NotCertified);
        }
        // A rate that passed for two seconds near one that failed is no promise.
        assert_eq!(of(20.0, 40.0, Some(20)), Exit::Missed);
        assert_eq!(of(20.0, f64::INFINITY, Some(21)), Exit::Missed);
        assert_eq!(of(20.0, f64::INFINITY, Some(20)), Exit::Ok);
    }
}
