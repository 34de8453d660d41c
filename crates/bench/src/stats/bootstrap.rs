//! The block bootstrap: a figure with its 95 % interval from the seconds of one run.
//!
//! Blocks of neighbouring seconds are drawn with replacement and put together to a run of the same length;
//! the figure is measured from the merged histogram, as of the real run. Blocks keep the likeness of a second
//! to the next. The run is taken as a circle, so that every second is drawn equally often. A run
//! cannot show its difference from the next run: that needs repeats ([`super::paired`],
//! [`mod@super::capacity`]).

use super::blocks::draw;
use super::series::{Measure, Series};
use super::{RESAMPLES, percentile_interval, student};
use crate::random::Random;
use crate::result::Estimate;

/// A measure of the series and its interval; none for a run that recorded nothing. With a single second the
/// ends are the figure itself, since nothing is known about its spread.
pub fn interval(series: &Series, measure: Measure, seed: u64) -> Option<Estimate> {
    let estimate = series.measure(measure)?;
    let seconds = series.seconds();
    if seconds < 2 {
        return Some(Estimate { least: estimate, estimate, most: estimate });
    }
    let block = series.block_seconds(0..seconds);
    let mut rng = Random::new(seed);
    let mut weights = Vec::new();
    let mut resampled: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            draw(&mut rng, seconds, block, &mut weights);
            series.weighted(measure, &weights)
        })
        .collect();
    let mut found = percentile_interval(estimate, &mut resampled, student::stretch(seconds.div_ceil(block)))?;
    found.least = found.least.max(0.0);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Latency;

    /// Seconds of a queue with one server and random arrivals: the time in it is exponential with the rate
    /// mu - lambda. `drift` makes neighbouring seconds alike.
    fn queue(rng: &mut Random, seconds: usize, per_second: u64, mean_ns: f64, drift: f64) -> Vec<Latency> {
        let mut level = 0.0f64;
        let mut second = |rng: &mut Random| {
            level = 0.6 * level + drift * rng.normal();
            let mut latency = Latency::new();
            (0..per_second).for_each(|_| latency.record((rng.exponential() * mean_ns * level.exp()) as u64));
            latency
        };
        (0..seconds).map(|_| second(rng)).collect()
    }

    /// The share of `trials` whose interval holds the true value.
    fn coverage(seconds: usize, drift: f64, measure: Measure, truth: f64, trials: u64) -> f64 {
        let held = (0..trials).filter(|trial| {
            let seconds = queue(&mut Random::new(trial * 77 + 1), seconds, 400, 500_000.0, drift);
            let found = interval(&Series::new(&seconds), measure, *trial).expect("there are samples");
            found.least <= truth && truth <= found.most
        });
        held.count() as f64 / trials as f64
    }

    #[test]
    fn the_interval_of_a_quantile_holds_the_truth_in_95_of_100_runs() {
        let p99 = 500_000.0 * 100f64.ln();
        for seconds in [10, 30, 60] {
            let share = coverage(seconds, 0.0, Measure::Quantile(0.99), p99, 300);
            assert!((0.92..=0.995).contains(&share), "{seconds} s: {share}");
        }
        let share = coverage(30, 0.0, Measure::Mean, 500_000.0, 300);
        assert!((0.92..=0.99).contains(&share), "mean: {share}");
    }

    #[test]
    fn neighbouring_seconds_that_are_alike_do_not_fool_it() {
        // The mean over the drift of the mean of a second.
        let variance = 0.2f64.powi(2) / (1.0 - 0.36);
        let truth = 500_000.0 * (variance / 2.0).exp();
        let share = coverage(60, 0.2, Measure::Mean, truth, 300);
        assert!(share >= 0.88, "{share}");
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let seconds = queue(&mut Random::new(1), 20, 300, 1e6, 0.1);
        let series = Series::new(&seconds);
        let measure = Measure::Quantile(0.9);
        assert_eq!(interval(&series, measure, 9), interval(&series, measure, 9));
    }

    #[test]
    fn one_second_says_nothing_of_its_spread() {
        let seconds = queue(&mut Random::new(1), 1, 300, 1e6, 0.0);
        let found = interval(&Series::new(&seconds), Measure::Rate, 1).expect("there are samples");
        assert_eq!((found.least, found.estimate, found.most), (300.0, 300.0, 300.0));
    }
}
