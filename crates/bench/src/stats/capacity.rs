//! The capacity of a server within a service level, with its 95 % interval.
//!
//! The quantile is fitted against the varied quantity by rising steps ([`super::isotonic`]), in logarithms;
//! where the fit crosses the bound, the rate is read off on a straight line between the last point within and
//! the first beyond. The interval comes from doing the same with resampled repeats and seconds. It does not
//! cover the space between the points: take them closer than the interval is to be wide.

use super::groups::{Group, Sample, groups};
use super::isotonic::{self, Crossing};
use super::series::Measure;
use super::{RESAMPLES, percentile_interval, student};
use crate::random::Random;
use crate::result::{Estimate, Slo};

/// Where a service level stands to a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    /// Even the first point breaks it: the capacity is below that point's rate.
    Below(f64),
    /// The highest rate within it.
    At(Estimate),
    /// No point breaks it: the capacity is above this highest rate seen.
    Above(f64),
}

/// The highest rate within the service level; none when the sweep does not cross it ([`crossing`] returns
/// which side). `samples` are the runs of one server in any order, repeats among them.
pub fn capacity(samples: &[Sample<'_>], slo: Slo) -> Option<Estimate> {
    match crossing(samples, slo)? {
        Found::At(estimate) => Some(estimate),
        Found::Below(_) | Found::Above(_) => None,
    }
}

/// Where the service level is crossed; none when nothing was recorded.
pub fn crossing(samples: &[Sample<'_>], slo: Slo) -> Option<Found> {
    let groups = groups(samples);
    let first = groups.first()?;
    let whole: Vec<Vec<u32>> = groups.iter().map(|group| vec![1; group.series.seconds()]).collect();
    let estimate = match cross(&groups, &whole, slo) {
        Crossing::Below => return Some(Found::Below(first.measure(Measure::Rate))),
        Crossing::Above => {
            let rates = groups.iter().map(|group| group.measure(Measure::Rate));
            return Some(Found::Above(rates.fold(0.0, f64::max)));
        }
        Crossing::At(rate) => rate,
    };
    let rates: Vec<f64> = groups.iter().map(|group| group.measure(Measure::Rate)).collect();
    let mut rng = Random::new(slo.bound_ns ^ 0x5105);
    let mut weights = whole;
    let mut resampled: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            groups.iter().zip(&mut weights).for_each(|(group, weights)| group.resample(&mut rng, weights));
            match cross(&groups, &weights, slo) {
                Crossing::At(rate) => rate,
                Crossing::Below => rates[0],
                Crossing::Above => rates.iter().copied().fold(0.0, f64::max),
            }
        })
        .collect();
    let last_within = rates.iter().rposition(|rate| *rate <= estimate).unwrap_or(0);
    let beside = groups.iter().skip(last_within).take(2).map(Group::blocks).sum();
    percentile_interval(estimate, &mut resampled, student::stretch(beside)).map(Found::At)
}

/// The crossing when the seconds of each group are taken as often as its weights say.
fn cross(groups: &[Group], weights: &[Vec<u32>], slo: Slo) -> Crossing {
    let measure = if slo.quantile > 0.0 { Measure::Quantile(slo.quantile) } else { Measure::Mean };
    let of = |measure| -> Vec<f64> {
        let pairs = groups.iter().zip(weights);
        pairs.map(|(group, weights)| group.series.weighted(measure, weights).unwrap_or(1.0)).collect()
    };
    let logarithms: Vec<f64> = of(measure).iter().map(|ns| ns.max(1.0).ln()).collect();
    let seconds: Vec<f64> = groups.iter().map(|group| group.series.seconds() as f64).collect();
    let fitted = isotonic::fit(&logarithms, &seconds);
    isotonic::crossing(&of(Measure::Rate), &fitted, (slo.bound_ns as f64).ln())
}

#[cfg(test)]
mod tests {
    use super::super::Second;
    use super::*;
    use crate::latency::Latency;

    const MU: f64 = 2000.0;
    const SLO: Slo = Slo { quantile: 0.99, bound_ns: 20_000_000 };

    /// The rate at which the p99 of a queue with one server and random arrivals is the bound.
    fn truth() -> f64 {
        MU - 100f64.ln() / (SLO.bound_ns as f64 / 1e9)
    }

    /// Seconds of such a queue at `rate`, each with a level of its own.
    fn seconds(rng: &mut Random, rate: f64, seconds: usize) -> Vec<Latency> {
        let mean_ns = 1e9 / (MU - rate);
        let second = |rng: &mut Random| {
            let level = (0.1 * rng.normal()).exp();
            let mut latency = Latency::new();
            let count = (rate + rate.sqrt() * rng.normal()) as u64;
            (0..count).for_each(|_| latency.record((rng.exponential() * mean_ns * level) as u64));
            latency
        };
        (0..seconds).map(|_| second(rng)).collect()
    }

    fn sweep(seed: u64, repeats: usize) -> Vec<(f64, Vec<Latency>)> {
        let mut rng = Random::new(seed);
        let shares = [0.5, 0.7, 0.8, 0.84, 0.88, 0.92, 0.96];
        let points = shares.into_iter().flat_map(|share| std::iter::repeat_n(share * MU, repeats));
        points.map(|rate| (rate, seconds(&mut rng, rate, 10))).collect()
    }

    fn samples(points: &[(f64, Vec<Latency>)]) -> Vec<Sample<'_>> {
        points
            .iter()
            .map(|(at, seconds)| Sample { at: *at, seconds: seconds.iter().map(Second::from).collect() })
            .collect()
    }

    #[test]
    fn the_interval_holds_the_true_capacity_in_95_of_100_sweeps() {
        let trials = 100;
        let held = (0..trials).filter(|seed| {
            let points = sweep(seed + 1, 2);
            let found = capacity(&samples(&points), SLO).expect("the sweep crosses the bound");
            assert!((found.most - found.least) / found.estimate < 0.08, "{found:?}");
            found.least <= truth() && truth() <= found.most
        });
        let held = held.count();
        assert!(held >= 90, "{held} of {trials}");
    }

    #[test]
    fn a_sweep_that_never_crosses_says_on_which_side() {
        let points = sweep(3, 1);
        let strict = Slo { bound_ns: 1_000_000, ..SLO };
        let lax = Slo { bound_ns: 10_000_000_000, ..SLO };
        assert!(matches!(crossing(&samples(&points), strict), Some(Found::Below(rate)) if rate < 0.6 * MU));
        assert!(matches!(crossing(&samples(&points), lax), Some(Found::Above(rate)) if rate > 0.9 * MU));
        assert_eq!(capacity(&samples(&points), lax), None);
        assert_eq!(crossing(&[], SLO), None);
    }

    #[test]
    fn a_service_level_may_be_of_the_mean() {
        let points = sweep(4, 1);
        let slo = Slo { quantile: 0.0, bound_ns: 5_000_000 };
        let found = capacity(&samples(&points), slo).expect("the sweep crosses the bound");
        assert!((found.estimate / (MU - 200.0) - 1.0).abs() < 0.02, "{found:?}");
    }
}
