//! Statistics over measurements: intervals, capacities, knees, comparisons. Everything is deterministic:
//! the same figures and the same seed give the same answer. No clock, no socket, no printing lives here.
//!
//! Latency is autocorrelated, so nothing here resamples single requests. The unit is a second: its histogram
//! is kept or dropped as a whole, in blocks of neighbouring seconds.

mod blocks;
pub mod bootstrap;
pub mod capacity;
pub mod curve;
mod groups;
pub mod isotonic;
pub mod paired;
pub mod rank;
pub mod search;
pub mod series;
pub mod student;

pub use capacity::{capacity, crossing};
pub use groups::Sample;
pub use series::{Measure, Second, Series};

use crate::result::Estimate;

/// The confidence of all intervals: the share of repeats whose interval holds the true value.
pub const CONFIDENCE: f64 = 0.95;
/// Resamples of a bootstrap: enough that the ends of the interval are stable to a twentieth of its width.
pub const RESAMPLES: usize = 1000;

/// The interval between the 2.5th and the 97.5th percentile of `resampled`, stretched by `stretch` about
/// `estimate`. None when there is nothing, or a figure is not finite.
pub(crate) fn percentile_interval(estimate: f64, resampled: &mut [f64], stretch: f64) -> Option<Estimate> {
    if resampled.is_empty() || !estimate.is_finite() || resampled.iter().any(|x| !x.is_finite()) {
        return None;
    }
    resampled.sort_by(f64::total_cmp);
    let at = |share: f64| resampled[((resampled.len() - 1) as f64 * share).round() as usize];
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let (low, high) = (at(tail).min(estimate), at(1.0 - tail).max(estimate));
    Some(Estimate {
        least: estimate - (estimate - low) * stretch,
        estimate,
        most: estimate + (high - estimate) * stretch,
    })
}

/// The mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The standard deviation of a sample (n - 1 below); 0 of fewer than two.
pub fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

/// The middle value; the mean of the two middle ones of an even number; 0 of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Jain's fairness of shares: 1 when all are equal, 1/n when one has everything; 1 of nothing.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_one_for_equals_and_one_nth_for_a_monopoly() {
        assert!((jain(&[3.0, 3.0, 3.0, 3.0]) - 1.0).abs() < 1e-12);
        assert!((jain(&[9.0, 0.0, 0.0]) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(jain(&[]), 1.0);
    }

    #[test]
    fn middle_and_spread_of_a_few() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!((deviation(&[1.0, 2.0, 3.0, 4.0]) - (5.0f64 / 3.0).sqrt()).abs() < 1e-12);
    }
}
