//! How often each segment was opened lately, so that the four bits of the generation in an index entry stay
//! unambiguous however often one segment is chosen.
//!
//! An entry into an old filling of a segment is dead until sixteen generations later; then it
//! would mean a record again. The sweep of the index clears dead entries. An entry that dies during one sweep
//! is cleared by the end of the next, so a segment that is opened less than sixteen times in any two sweeps
//! has no ambiguous entry. A segment that was opened too often rests until a sweep has ended.

/// Openings of one segment in two sweeps. Sixteen would be ambiguous; the rest covers an opening that is
/// counted to the sweep before the one it happens in.
const OPENINGS_MAX: u8 = 13;

#[derive(Clone, Copy, Default)]
struct Count {
    /// The sweep that `now` was counted in.
    sweep: u32,
    now: u8,
    before: u8,
}

impl Count {
    fn at(self, sweep: u32) -> Count {
        match sweep.wrapping_sub(self.sweep) {
            0 => self,
            1 => Count { sweep, now: 0, before: self.now },
            _ => Count { sweep, now: 0, before: 0 },
        }
    }
}

/// Openings of all segments, by sweeps of the index.
pub(super) struct Openings {
    counts: Vec<Count>,
}

impl Openings {
    /// Returns counts of 0 for `segments` segments.
    pub(super) fn new(segments: u32) -> Self {
        Openings { counts: vec![Count::default(); segments as usize] }
    }

    /// Returns whether the segment may be opened during sweep number `sweep`.
    pub(super) fn allow(&self, segment: u32, sweep: u32) -> bool {
        let Count { now, before, .. } = self.counts[segment as usize].at(sweep);
        now + before < OPENINGS_MAX
    }

    /// Counts an opening; returns how often the segment has been opened during this sweep.
    pub(super) fn count(&mut self, segment: u32, sweep: u32) -> u8 {
        let count = &mut self.counts[segment as usize];
        *count = count.at(sweep);
        count.now = count.now.saturating_add(1);
        count.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_opened_less_than_sixteen_times_in_two_sweeps() {
        let mut openings = Openings::new(2);
        let mut opened = Vec::new();
        for sweep in 0..40 {
            let mut now = 0_u32;
            while openings.allow(1, sweep) {
                openings.count(1, sweep);
                now += 1;
            }
            opened.push(now);
        }
        assert!(opened.windows(2).all(|two| two[0] + two[1] < 16), "{opened:?}");
        assert!(opened.iter().sum::<u32>() > 200, "{opened:?}");
        assert!(openings.allow(0, 40));
    }
}
