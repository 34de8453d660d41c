//! The values of a sweep, its service level, and the curve of its runs. Nothing is run here.

use crate::latency::Latency;
use crate::random::mix;
use crate::result::{Curve, Point, Run, Slo};
use crate::stats::{self, Sample};
use crate::workload::parse;
use std::str::FromStr;
use std::time::Duration;

/// Points in a list at most: more is a mistake in the step.
const POINTS_MAX: usize = 1000;

/// The values that a sweep visits, in rising order: `1,2,4`, `10k:100k:10k` (from, to, step) or `10k:160k:x2`
/// (from, to, factor).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values(pub Vec<u64>);

impl FromStr for Values {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let count = |text: &str| parse::count(text);
        let parts: Vec<&str> = text.split(':').collect();
        let mut values = match parts[..] {
            [list] => list.split(',').map(count).collect::<Result<Vec<_>, _>>()?,
            [from, to, step] => {
                let (from, to) = (count(from)?, count(to)?);
                let next: Box<dyn Fn(u64) -> u64> = match step.strip_prefix('x') {
                    Some(factor) => {
                        let factor: f64 = factor.parse().map_err(|_| "the factor after x is a number")?;
                        if !factor.is_finite() || factor <= 1.0 {
                            return Err("the factor after x is above 1".to_string());
                        }
                        Box::new(move |at| ((at as f64 * factor).round() as u64).max(at + 1))
                    }
                    None => {
                        let step = count(step)?.max(1);
                        Box::new(move |at| at.saturating_add(step))
                    }
                };
                std::iter::successors(Some(from), |at| Some(next(*at)))
                    .take_while(|at| *at <= to)
                    .take(POINTS_MAX + 1)
                    .collect()
            }
            _ => return Err("is A,B,C or FROM:TO:STEP or FROM:TO:xFACTOR".to_string()),
        };
        values.sort_unstable();
        values.dedup();
        match values.len() {
            0 => Err("holds no value".to_string()),
            _ if values[0] == 0 => Err("0 is no load".to_string()),
            _ if values.len() > POINTS_MAX => Err(format!("more than {POINTS_MAX} points")),
            _ => Ok(Self(values)),
        }
    }
}

/// Reads a service level: `p99<1ms`, `p99.9<500us`, `mean<1ms`.
///
/// # Errors
/// It is none, in words.
pub fn slo(text: &str) -> Result<Slo, String> {
    let form = || "is such as p99<1ms or mean<1ms".to_string();
    let (what, bound) = text.split_once('<').ok_or_else(form)?;
    let quantile = match what.trim() {
        "mean" => 0.0,
        percentile => {
            let number = percentile.strip_prefix('p').ok_or_else(form)?;
            let percent: f64 = number.parse().map_err(|_| form())?;
            if !(0.0..100.0).contains(&percent) || percent == 0.0 {
                return Err("a percentile is above 0 and below 100".to_string());
            }
            percent / 100.0
        }
    };
    let bound: Duration = parse::duration(bound.trim())?;
    match u64::try_from(bound.as_nanos()) {
        Ok(bound_ns @ 1..) => Ok(Slo { quantile, bound_ns }),
        _ => Err(form()),
    }
}

/// A service level as [`slo`] reads it.
pub fn slo_words(slo: Slo) -> String {
    format!("{} < {}", measure_words(slo), crate::show::time(slo.bound_ns as f64))
}

/// The measure of a service level: `p99`, `mean`.
pub fn measure_words(slo: Slo) -> String {
    match slo.quantile {
        0.0 => "mean".to_string(),
        quantile => format!("p{}", (quantile * 1e6).round() / 1e4),
    }
}

/// The measure of a service level, of latencies, in nanoseconds.
pub fn measured(latency: &Latency, slo: Slo) -> u64 {
    match slo.quantile {
        0.0 => latency.mean_ns() as u64,
        quantile => latency.quantile_ns(quantile),
    }
}

/// Every value `repeats` times, each round in an order of its own, so that a drift of the host does not
/// look like an effect of the load.
pub fn shuffled(values: &[u64], repeats: u32, seed: u64) -> Vec<u64> {
    let mut order = Vec::new();
    for round in 0..u64::from(repeats) {
        let mut one: Vec<u64> = values.to_vec();
        one.sort_by_key(|value| mix(mix(seed ^ round) ^ value));
        order.extend(one);
    }
    order
}

/// One point of a curve.
pub fn point(at: f64, run: &Run) -> Point {
    let response = run.response();
    Point {
        at,
        run: run.label.clone(),
        rate: run.rate(),
        mean_ns: response.mean_ns(),
        p50_ns: response.quantile_ns(0.5),
        p99_ns: response.quantile_ns(0.99),
        p999_ns: response.quantile_ns(0.999),
        server_cpu_us: run.server_cpu_us(),
        certified: run.is_certified(),
    }
}

/// Whether a run's figures belong to the server: nothing failed but the rate that it could not keep, which is
/// what a sweep looks for.
pub fn is_sound(run: &Run) -> bool {
    run.cut_short.is_none() && run.failed().all(|check| check.name == "rate")
}

/// Returns the curve of a sweep; `runs` are given with the setting of each. All are points of it, and those
/// that are sound make up the capacity, the highest rate and the knee.
pub fn curve(label: &str, varied: &str, runs: &[(f64, &Run)], slo: Option<Slo>) -> Curve {
    let mut points: Vec<Point> = runs.iter().map(|(at, run)| point(*at, run)).collect();
    points.sort_by(|a, b| a.at.total_cmp(&b.at));
    let sound = runs.iter().filter(|(_, run)| is_sound(run));
    let samples: Vec<Sample<'_>> = sound.map(|(at, run)| Sample::of_run(*at, run)).collect();
    Curve {
        label: label.to_string(),
        varied: varied.to_string(),
        points,
        slo,
        slo_capacity: slo.and_then(|slo| stats::capacity(&samples, slo)),
        max_rate: stats::curve::max_rate(&samples),
        knee: stats::curve::knee(&samples),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_rise_whatever_the_form() {
        let values = |text: &str| text.parse::<Values>().map(|values| values.0);
        assert_eq!(values("4,1,2,2"), Ok(vec![1, 2, 4]));
        assert_eq!(values("10k:40k:10k"), Ok(vec![10_000, 20_000, 30_000, 40_000]));
        assert_eq!(values("1:9:x2"), Ok(vec![1, 2, 4, 8]));
        for wrong in ["", "0,1", "5:1:1", "1:2", "1:9:x1", "1:9:xq", "1:1g:1", "a"] {
            assert!(values(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_service_level_is_read_and_said_alike() {
        assert_eq!(slo("p99<1ms"), Ok(Slo { quantile: 0.99, bound_ns: 1_000_000 }));
        assert_eq!(slo("mean < 1ms"), Ok(Slo { quantile: 0.0, bound_ns: 1_000_000 }));
        let level = slo("p99.9<500us").expect("it is one");
        assert_eq!(slo_words(level), "p99.9 < 500 us");
        for wrong in ["p99", "p100<1ms", "p0<1ms", "q9<1ms", "p99<", "mean<0ms", "p99<never"] {
            assert!(slo(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_round_visits_every_value_in_another_order() {
        let values: Vec<u64> = (1..=20).collect();
        let order = shuffled(&values, 3, 7);
        let rounds: Vec<&[u64]> = order.chunks(20).collect();
        assert_eq!(rounds.len(), 3);
        assert_ne!(rounds[0], rounds[1]);
        for round in rounds {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, values);
        }
    }
}
