//! How much of an SSD segment is written again when it is reused: as much as earns its room.
//!
//! A record that is written again takes room, in which new ones would have stayed longer. So the hits of records
//! written again are compared with those of new ones, for each segment of theirs and *at the same age*, since most
//! records are read less as they grow older:
//!
//! ```text
//!                                  youngest quarter |              |              | oldest quarter
//!   segments of new records        hits a segment   | ...          | ...          | ...
//!   segments of those again        hits a segment   | ...          | ...          | ...
//! ```
//! While the latter earn their room, the share doubles in a quarter of the log's turn; while they do not, it halves.
//! It never falls to nothing, or there would be no evidence.

/// The bounds of the share of a segment that is written again. The upper one bounds what is written for each byte
/// admitted to two.
const SHARE_MIN: f64 = 0.025;
const SHARE_MAX: f64 = 0.5;
const SHARE_FIRST: f64 = 0.1;
/// Records written again earn their room if they have this part of the hits that new ones have. It is below 1 since the
/// room goes to what new ones would have when they are oldest, less than their mean.
const WORTH: f64 = 0.8;
/// In so many parts of a turn of the log the share doubles or halves, and evidence halves.
const TURN_PARTS: f64 = 4.0;
/// With fewer segments the share is always the same: one segment is too large a part of an age.
const SEGMENTS_MIN: u32 = 32;
const SHARE_OF_FEW: f64 = 0.05;
/// Hits, found or expected, from which on they tell something.
const HITS_MIN: f64 = 32.0;
/// Ages that are told apart.
pub(crate) const AGES: usize = 4;

/// Returns which age a segment has, of so many, if `openings` others were opened since.
#[inline]
pub(crate) fn age(openings: u32, segments: u32) -> usize {
    (openings as usize * AGES / (segments as usize).max(1)).min(AGES - 1)
}

/// A number for each age, of segments that hold new records and of those that hold records written again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ByAge {
    pub new: [f64; AGES],
    pub again: [f64; AGES],
}

impl ByAge {
    /// Returns the number for segments of a kind and an age, to change.
    pub(crate) fn of(&mut self, is_again: bool, age: usize) -> &mut f64 {
        let ages = if is_again { &mut self.again } else { &mut self.new };
        &mut ages[age]
    }

    fn fade_and_add(&mut self, left: f64, more: &ByAge) {
        let all = self.new.iter_mut().chain(&mut self.again);
        all.zip(more.new.iter().chain(&more.again)).for_each(|(sum, more)| *sum = *sum * left + more);
    }
}

/// What was seen of late, and the share that follows.
#[derive(Clone, Debug)]
pub(crate) struct Readmission {
    hits: ByAge,
    /// Segments, summed up over the segments reused.
    room: ByAge,
    share: f64,
    /// How much is left of what was seen when one more segment is reused.
    left: f64,
    /// By how much the share changes then.
    step: f64,
    is_fixed: bool,
}

impl Readmission {
    /// Nothing seen, on an SSD of so many segments.
    pub(crate) fn new(segments: u32) -> Readmission {
        let quarter = f64::from(segments.max(SEGMENTS_MIN)) / TURN_PARTS;
        Readmission {
            hits: ByAge::default(),
            room: ByAge::default(),
            share: if segments < SEGMENTS_MIN { SHARE_OF_FEW } else { SHARE_FIRST },
            left: 0.5_f64.powf(1.0 / quarter),
            step: 2_f64.powf(1.0 / quarter),
            is_fixed: segments < SEGMENTS_MIN,
        }
    }

    /// Takes into account that a segment is reused: the hits since the last one was, and the segments that there are.
    /// Returns the share of the segment that may be written again, from 0 to 1.
    pub(crate) fn reuse(&mut self, hits: &ByAge, segments: &ByAge) -> f64 {
        self.hits.fade_and_add(self.left, hits);
        self.room.fade_and_add(self.left, segments);
        let (found, expected) = self.evidence();
        if !self.is_fixed && found.max(expected) >= HITS_MIN {
            let is_worth = found > WORTH * expected;
            let changed = if is_worth { self.share * self.step } else { self.share / self.step };
            self.share = changed.clamp(SHARE_MIN, SHARE_MAX);
        }
        self.share
    }

    /// Returns the hits of records written again, and those that new ones would have in their room.
    fn evidence(&self) -> (f64, f64) {
        let mut sums = (0.0, 0.0);
        for age in (0..AGES).filter(|&age| self.room.new[age] > 0.0 && self.room.again[age] > 0.0) {
            sums.0 += self.hits.again[age];
            sums.1 += self.room.again[age] * self.hits.new[age] / self.room.new[age];
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENTS: ByAge = ByAge { new: [14.0; AGES], again: [2.0, 0.0, 2.0, 2.0] };

    fn share_after(hits: &ByAge, segments: &ByAge) -> f64 {
        let mut readmission = Readmission::new(64);
        (0..200).map(|_| readmission.reuse(hits, segments)).last().expect("many")
    }

    #[test]
    fn records_are_written_again_while_they_have_about_the_hits_of_new_ones_of_their_age() {
        let hits = |again| ByAge { new: [280.0, 210.0, 140.0, 70.0], again };
        assert_eq!(share_after(&hits([40.0, 0.0, 20.0, 10.0]), &SEGMENTS), SHARE_MAX);
        assert_eq!(share_after(&hits([30.0, 0.0, 15.0, 8.0]), &SEGMENTS), SHARE_MIN);
    }

    #[test]
    fn young_records_are_not_taken_for_better_ones() {
        // All that were written again are young, as when the share has just grown.
        let hits = ByAge { new: [280.0, 14.0, 14.0, 14.0], again: [20.0, 0.0, 0.0, 0.0] };
        let segments = ByAge { new: [14.0; AGES], again: [2.0, 0.0, 0.0, 0.0] };
        assert_eq!(share_after(&hits, &segments), SHARE_MIN);
    }

    #[test]
    fn without_evidence_the_share_stays() {
        assert_eq!(share_after(&ByAge::default(), &SEGMENTS), SHARE_FIRST);
        let hits = ByAge { new: [100.0; AGES], ..ByAge::default() };
        let segments = ByAge { new: [16.0; AGES], ..ByAge::default() };
        assert_eq!(share_after(&hits, &segments), SHARE_FIRST);
    }

    #[test]
    fn with_few_segments_the_share_is_always_the_same() {
        let hits = ByAge { new: [100.0; AGES], again: [90.0; AGES] };
        let mut readmission = Readmission::new(31);
        assert!((0..100).all(|_| readmission.reuse(&hits, &SEGMENTS) == SHARE_OF_FEW));
    }

    #[test]
    fn the_share_doubles_in_a_quarter_of_a_turn() {
        let mut readmission = Readmission::new(64);
        let hits = ByAge { new: [0.0; AGES], again: [90.0; AGES] };
        let share = (0..16).map(|_| readmission.reuse(&hits, &SEGMENTS)).last().expect("sixteen");
        assert!((share / (2.0 * SHARE_FIRST) - 1.0).abs() < 0.01, "{share}");
    }

    #[test]
    fn ages_are_quarters_of_a_turn() {
        assert_eq!([0, 15, 16, 47, 48, u32::MAX].map(|openings| age(openings, 64)), [0, 0, 1, 2, 3, 3]);
    }
}
