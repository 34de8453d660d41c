//! How much of the SSD live items take, by the age of its segments.

use super::Store;
use crate::clock::Seconds;

/// The most segments that a survey looks at: they are sorted by age each time.
const LOOKS_MAX: u32 = 1024;

/// The SSD's segments in the order of their age.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SsdSurvey {
    /// The share of the segments that have been filled, from 0 to 1.
    pub used_share: f64,
    /// The share of each part of them that live items take, from 0 to 1. The parts have equally many segments; the
    /// first one has those that were begun last.
    pub live_shares: Vec<f64>,
}

impl Store {
    /// Looks at the segments of the SSD, or at a sample of them, and divides the filled ones into at most `parts`
    /// parts of neighbours in age.
    pub fn survey_ssd(&self, parts: usize, now: Seconds) -> SsdSurvey {
        let (table, epoch) = (&self.tiers.log.table, self.tiers.epoch());
        let stride = table.count().div_ceil(LOOKS_MAX).max(1) as usize;
        let looks = (0..table.count()).step_by(stride);
        let seen = looks.len();
        let mut filled: Vec<(u32, f64)> = looks
            .filter(|&segment| table.generation(segment) > 0)
            .map(|segment| {
                let is_spent = table.is_spent(segment, now, epoch);
                (table.age_of(segment), if is_spent { 0.0 } else { table.live_share(segment) })
            })
            .collect();
        filled.sort_unstable_by_key(|(age, _)| *age);
        let used_share = filled.len() as f64 / seen.max(1) as f64;
        SsdSurvey { used_share, live_shares: means(&filled, parts) }
    }
}

/// Returns the mean share of each of at most `parts` parts, which differ by one segment at most.
fn means(filled: &[(u32, f64)], parts: usize) -> Vec<f64> {
    let parts = parts.min(filled.len());
    let mean = |part: usize| {
        let (from, to) = (part * filled.len() / parts, (part + 1) * filled.len() / parts);
        filled[from..to].iter().map(|(_, share)| share).sum::<f64>() / (to - from) as f64
    };
    (0..parts).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_equally_many_segments() {
        let filled: Vec<(u32, f64)> = (0..7).map(|age| (age, f64::from(age))).collect();
        assert_eq!(means(&filled, 3), [0.5, 2.5, 5.0]);
        assert_eq!(means(&filled, 100).len(), 7);
        assert_eq!(means(&filled, 0), []);
        assert_eq!(means(&[], 3), []);
    }
}
