//! A against B: the relative change of a figure over pairs of runs, with its 95 % interval.
//!
//! Pairs are runs made one after the other, so that a drift of the host is in both. The figure is the
//! mean of the pairs' logarithms of after / before. With three pairs or more the bootstrap draws pairs, then
//! blocks of seconds in each run of a pair; with one or two it can only draw the blocks, and the
//! difference from run to run is not in the interval.

use super::blocks::draw;
use super::series::{Measure, Series};
use super::{RESAMPLES, percentile_interval, student};
use crate::random::Random;
use crate::result::Estimate;

/// As many pairs as it takes to see how runs differ.
pub const PAIRS_MIN: usize = 3;

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval is on the good side of no change.
    Better,
    /// The whole interval is on the bad side.
    Worse,
    /// The interval holds no change.
    Unclear,
}

impl Verdict {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Unclear => "unclear",
        }
    }
}

/// A figure before and after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The compared figure.
    pub measure: Measure,
    /// The mean over the runs before, of logarithms.
    pub before: f64,
    /// The same of the runs after.
    pub after: f64,
    /// The relative change, -0.1 for a tenth less.
    pub change: Estimate,
    /// How many pairs were compared.
    pub pairs: usize,
    /// Whether it is better; more is better of a rate, less of a latency.
    pub verdict: Verdict,
}

fn block(series: &Series) -> usize {
    series.block_seconds(0..series.seconds())
}

/// Compares the runs of each pair, `(before, after)`; none when there is no pair in which both recorded
/// something.
pub fn change(pairs: &[(Series, Series)], measure: Measure, seed: u64) -> Option<Change> {
    let whole = |series: &Series| series.measure(measure).filter(|figure| *figure > 0.0);
    let pairs: Vec<_> = pairs.iter().filter(|(a, b)| whole(a).is_some() && whole(b).is_some()).collect();
    let logs = |series: fn(&(Series, Series)) -> &Series| -> f64 {
        pairs.iter().filter_map(|pair| whole(series(pair))).map(f64::ln).sum::<f64>() / pairs.len() as f64
    };
    if pairs.is_empty() {
        return None;
    }
    let (before, after) = (logs(|pair| &pair.0), logs(|pair| &pair.1));
    // Found once: it is asked for in every resample.
    let blocks: Vec<(usize, usize)> = pairs.iter().map(|(a, b)| (block(a), block(b))).collect();
    let mut rng = Random::new(seed);
    let mut weights = Vec::new();
    let mut resample = |rng: &mut Random, series: &Series, block: usize| {
        draw(rng, series.seconds(), block, &mut weights);
        series.weighted(measure, &weights).filter(|figure| *figure > 0.0).map(f64::ln)
    };
    let draws_pairs = pairs.len() >= PAIRS_MIN;
    let mut resampled: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let mut sum = 0.0;
            for at in 0..pairs.len() {
                let at = if draws_pairs { rng.index(pairs.len()) } else { at };
                let ((a, b), (block_a, block_b)) = (pairs[at], blocks[at]);
                sum += resample(&mut rng, b, block_b)? - resample(&mut rng, a, block_a)?;
            }
            Some(sum / pairs.len() as f64)
        })
        .collect();
    // Drawing seconds besides pairs already makes up for the variance that drawing few pairs loses.
    let stretch = match draws_pairs {
        true => student::t95(pairs.len() - 1) / student::t95(usize::MAX),
        false => {
            student::stretch(pairs.iter().zip(&blocks).map(|((a, _), b)| a.seconds().div_ceil(b.0)).sum())
        }
    };
    let found = percentile_interval(after - before, &mut resampled, stretch)?;
    let change = Estimate {
        least: found.least.exp_m1(),
        estimate: found.estimate.exp_m1(),
        most: found.most.exp_m1(),
    };
    let more_is_better = measure == Measure::Rate;
    let verdict = match (change.least > 0.0, change.most < 0.0) {
        (true, _) if more_is_better => Verdict::Better,
        (true, _) => Verdict::Worse,
        (_, true) if more_is_better => Verdict::Worse,
        (_, true) => Verdict::Better,
        _ => Verdict::Unclear,
    };
    Some(Change { measure, before: before.exp(), after: after.exp(), change, pairs: pairs.len(), verdict })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Latency;

    /// A run of 10 s whose level differs from other runs by `between`.
    fn run(rng: &mut Random, mean_ns: f64, between: f64) -> Series {
        let level = (between * rng.normal()).exp();
        let second = |rng: &mut Random| {
            let mut latency = Latency::new();
            (0..500).for_each(|_| latency.record((rng.exponential() * mean_ns * level) as u64));
            latency
        };
        let seconds: Vec<Latency> = (0..10).map(|_| second(rng)).collect();
        Series::new(&seconds)
    }

    fn pairs(seed: u64, n: usize, ratio: f64, between: f64) -> Vec<(Series, Series)> {
        let mut rng = Random::new(seed);
        (0..n).map(|_| (run(&mut rng, 1e6, between), run(&mut rng, 1e6 * ratio, between))).collect()
    }

    fn verdicts(trials: u64, n: usize, ratio: f64, between: f64) -> [usize; 3] {
        let mut counts = [0; 3];
        for seed in 0..trials {
            let found = change(&pairs(seed * 13 + 5, n, ratio, between), Measure::Quantile(0.99), seed);
            counts[found.expect("there are samples").verdict as usize] += 1;
        }
        counts
    }

    #[test]
    fn no_change_is_called_unclear_though_runs_differ() {
        for (n, between) in [(3, 0.03), (7, 0.03), (7, 0.0), (1, 0.0), (2, 0.0)] {
            let [better, worse, _] = verdicts(150, n, 1.0, between);
            assert!(better + worse <= 12, "{n} pairs, {between}: {better} better, {worse} worse of 150");
        }
    }

    #[test]
    fn ten_percent_less_is_seen_in_seven_pairs() {
        let [better, worse, unclear] = verdicts(50, 7, 0.9, 0.02);
        assert!(better >= 47, "{better} better, {worse} worse, {unclear} unclear");
    }

    #[test]
    fn more_is_better_only_of_a_rate() {
        let seconds = |rate: u64| -> Series {
            let second = |at: u64| {
                let mut latency = Latency::new();
                latency.record_n(1000, rate + at);
                latency
            };
            Series::new(&(0..10).map(second).collect::<Vec<_>>())
        };
        let pairs: Vec<_> = (0..3).map(|_| (seconds(1000), seconds(1100))).collect();
        let found = change(&pairs, Measure::Rate, 1).expect("there are samples");
        assert_eq!(found.verdict, Verdict::Better);
        assert!((found.change.estimate - 0.0996).abs() < 0.002, "{found:?}");
        assert_eq!(change(&[], Measure::Rate, 1), None);
    }
}
