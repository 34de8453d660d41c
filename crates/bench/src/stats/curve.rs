//! The main figures of a curve of latency against throughput: its highest rate, its knee, its natural
//! concurrency.

use super::groups::{Group, Sample, groups};
use super::series::Measure;
use super::{RESAMPLES, percentile_interval, student};
use crate::random::Random;
use crate::result::Estimate;

/// The highest rate of all points, with the interval of that point. The highest of noisy points is a little
/// too high; repeats help.
pub fn max_rate(samples: &[Sample<'_>]) -> Option<Estimate> {
    let groups = groups(samples);
    let rate = |group: &&Group| group.measure(Measure::Rate);
    let best = groups.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    interval(std::slice::from_ref(best), |weights| best.series.weighted(Measure::Rate, &weights[0]))
}

/// The power knee: the rate at which rate divided by mean latency is highest. Unlike a knee by proc_reader it
/// does not depend on how the axes are drawn. None where that is the highest rate of all: then the knee is
/// beyond.
pub fn knee(samples: &[Sample<'_>]) -> Option<Estimate> {
    let groups = groups(samples);
    let rates = || groups.iter().map(|group| group.measure(Measure::Rate));
    let (lowest, highest) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    let found = interval(&groups, |weights| {
        let points = groups.iter().zip(weights).filter_map(|(group, weights)| {
            let rate = group.series.weighted(Measure::Rate, weights)?;
            Some((rate, rate / group.series.weighted(Measure::Mean, weights)?))
        });
        points.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(rate, _)| rate)
    })?;
    // It is one of the points, however uncertain which.
    let Estimate { least, estimate, most } = found;
    (estimate < highest).then(|| Estimate { least: least.max(lowest), estimate, most: most.min(highest) })
}

/// The concurrency N* at which a closed loop without think time begins to queue: the highest rate a second
/// times the least latency. More connections than this only wait.
pub fn n_star(max_rate: f64, least_mean_ns: f64) -> f64 {
    max_rate * least_mean_ns / 1e9
}

/// `statistic` of the groups as they were, and its interval over resamples of them.
fn interval<G: std::borrow::Borrow<Group>>(
    groups: &[G],
    statistic: impl Fn(&[Vec<u32>]) -> Option<f64>,
) -> Option<Estimate> {
    let mut weights: Vec<Vec<u32>> = groups.iter().map(|g| vec![1; g.borrow().series.seconds()]).collect();
    let estimate = statistic(&weights)?;
    let mut rng = Random::new(groups.len() as u64);
    let mut resampled: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            groups.iter().zip(&mut weights).for_each(|(g, weights)| g.borrow().resample(&mut rng, weights));
            statistic(&weights)
        })
        .collect();
    let blocks = groups.iter().map(|g| g.borrow().blocks()).min().unwrap_or(1);
    let found = percentile_interval(estimate, &mut resampled, student::stretch(blocks))?;
    Some(Estimate { least: found.least.max(0.0), ..found })
}

#[cfg(test)]
mod tests {
    use super::super::Second;
    use super::*;
    use crate::latency::Latency;

    /// Ten seconds of `rate` requests that all take `ns`, the rate a little different each second.
    fn seconds(rate: u64, ns: u64) -> Vec<Latency> {
        let second = |at: u64| {
            let mut latency = Latency::new();
            latency.record_n(ns, rate + at % 3 * rate / 100);
            latency
        };
        (0..10).map(second).collect()
    }

    fn sample(rate: u64, seconds: &[Latency]) -> Sample<'_> {
        Sample { at: rate as f64, seconds: seconds.iter().map(Second::from).collect() }
    }

    #[test]
    fn the_knee_is_where_power_peaks_not_where_the_line_bends() {
        // A queue: mean 1 / (mu - rate) with mu = 1000 has its power peak at half of mu.
        let points =
            [100, 300, 500, 700, 900].map(|rate| (rate, seconds(rate, 1_000_000_000 / (1000 - rate))));
        let samples = points.each_ref().map(|(rate, seconds)| sample(*rate, seconds));
        let knee = knee(&samples).expect("there are points");
        assert!((knee.estimate / 500.0 - 1.0).abs() < 0.02, "{knee:?}");
        let max = max_rate(&samples).expect("there are points");
        assert!(max.least <= max.estimate && max.estimate <= max.most);
        assert!((max.estimate / 900.0 - 1.0).abs() < 0.02 && max.most / max.least < 1.05, "{max:?}");
    }

    #[test]
    fn a_knee_is_one_of_the_points_and_not_the_last() {
        let knee_of = |points: [(u64, u64); 3]| {
            let points = points.map(|(rate, ns)| (rate, seconds(rate, ns)));
            knee(&points.each_ref().map(|(rate, seconds)| sample(*rate, seconds)))
        };
        assert_eq!(knee_of([(100, 1000), (200, 1000), (400, 1000)]), None);
        let found = knee_of([(100, 1000), (110, 1001), (400, 9000)]).expect("it is in between");
        assert!(found.least >= 100.0 && found.most <= 405.0, "{found:?}");
    }

    #[test]
    fn natural_concurrency_of_seed_001() {
        // Plateau of 430 K/s, 0.111 ms at the least load: 48 connections, not 448.
        assert_eq!(n_star(430_000.0, 111_000.0).round(), 48.0);
    }
}
