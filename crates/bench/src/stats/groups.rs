//! Runs of a sweep, grouped by the varied quantity: repeats of one point form a group that is resampled as a
//! whole.

use super::blocks::draw;
use super::series::{Measure, Second, Series};
use crate::random::Random;
use crate::result::Run;
use std::ops::Range;

/// One run of a sweep.
#[derive(Clone, Debug)]
pub struct Sample<'a> {
    /// The setting: a rate, or a number of connections.
    pub at: f64,
    /// Its seconds.
    pub seconds: Vec<Second<'a>>,
}

impl<'a> Sample<'a> {
    /// The whole seconds of a run that was made at `at`.
    pub fn of_run(at: f64, run: &'a Run) -> Self {
        Self { at, seconds: Second::all_of(run).collect() }
    }
}

/// The repeats at one value of the varied quantity.
pub(super) struct Group {
    /// Repeats, one after the other.
    pub series: Series,
    /// The seconds of each repeat, and the length of its blocks.
    repeats: Vec<(Range<usize>, usize)>,
}

impl Group {
    /// Draws repeats, and blocks of seconds within each; `weights` holds how often each second is taken.
    pub fn resample(&self, rng: &mut Random, weights: &mut Vec<u32>) {
        weights.clear();
        weights.resize(self.series.seconds(), 0);
        let mut within = Vec::new();
        for _ in 0..self.repeats.len() {
            let (repeat, block) = &self.repeats[rng.index(self.repeats.len())];
            draw(rng, repeat.len(), *block, &mut within);
            repeat.clone().zip(&within).for_each(|(second, weight)| weights[second] += weight);
        }
    }

    /// How many independent blocks it has.
    pub fn blocks(&self) -> usize {
        self.repeats.iter().map(|(repeat, block)| repeat.len().div_ceil(*block)).sum()
    }

    /// The measure of the group as it was, which is not empty.
    pub fn measure(&self, measure: Measure) -> f64 {
        self.series.measure(measure).unwrap_or(f64::NAN)
    }
}

/// Returns the groups in rising order of the varied quantity; samples in which nothing was recorded are left
/// out.
pub(super) fn groups(samples: &[Sample<'_>]) -> Vec<Group> {
    let has_counts = |sample: &&Sample| sample.seconds.iter().any(|second| second.response.count() > 0);
    let mut samples: Vec<&Sample> = samples.iter().filter(has_counts).collect();
    samples.sort_by(|a, b| a.at.total_cmp(&b.at));
    let alike = samples.chunk_by(|a, b| (a.at - b.at).abs() <= 1e-9 * a.at.abs());
    alike
        .map(|samples| {
            let mut repeats: Vec<Range<usize>> = Vec::new();
            let mut start = 0;
            for sample in samples {
                repeats.push(start..start + sample.seconds.len());
                start += sample.seconds.len();
            }
            let seconds = samples.iter().flat_map(|sample| sample.seconds.iter().copied());
            let series = Series::new(seconds);
            let repeats =
                repeats.into_iter().map(|range| (range.clone(), series.block_seconds(range))).collect();
            Group { series, repeats }
        })
        .collect()
}
