//! Looks for the segment that is reused next, as `policy::cleaning` decides: by cost and benefit while the live
//! records fit the SSD well, else the oldest.

use super::{Log, State};
use crate::policy::cleaning::{self, Ssd, gain, moves_live_records};
use crate::policy::readmission::ByAge;
use crate::ssd::SEGMENT_PAGES;

/// Sealed segments that are looked at for one selection; more than these are sampled.
const CANDIDATES_MAX: usize = 256;

/// How a segment is treated before it is reused.
#[derive(Clone, Copy, Debug)]
pub(super) enum Victim {
    /// It holds nothing that is live.
    Empty(u32),
    /// All of its live records are moved to another segment.
    Move(u32),
    /// Its live records are dropped, but for some that were read. The numbers of segments decide how much.
    Drop(u32, ByAge),
}

/// What a look at the sealed segments shows.
struct Survey {
    /// The segment that is best moved, and the share of it that is live.
    best: Option<(u32, f64)>,
    /// The mean live share of the segments looked at.
    mean_share: f64,
    /// How many sealed segments there are, by those looked at.
    by_age: ByAge,
}

impl Log {
    /// Free segments that only moved and readmitted records may fill.
    pub(super) fn reserved_segments(&self) -> usize {
        cleaning::reserved_segments(self.segments())
    }

    /// Selects the segment that is reused next; `None` when none can be just now.
    pub(super) fn select_victim(&self, state: &State) -> Option<Victim> {
        let survey = self.survey(state);
        if let Some((segment, share)) = survey.best {
            if share == 0.0 {
                return Some(Victim::Empty(segment));
            }
            let ssd = Ssd {
                segments: self.segments(),
                has_room: self.reuses || !state.free.is_empty(),
                live_segments: self.live_segments(state, survey.mean_share),
                live_percent_max: self.live_percent_max,
            };
            if moves_live_records(share, &ssd) {
                return Some(Victim::Move(segment));
            }
        }
        if !self.reuses {
            return None;
        }
        let oldest = state.sealed.oldest_first().find(|&segment| self.can_reuse(state, segment));
        if oldest.is_none() {
            self.want_sweep_if_resting(state.sealed.oldest_first());
        }
        let mut segments = survey.by_age;
        for open in state.streams.iter().flatten() {
            *segments.of(self.table.is_again(open.segment), self.table.quarter(open.segment)) +=
                f64::from(open.next_page) / f64::from(SEGMENT_PAGES);
        }
        oldest.map(|segment| Victim::Drop(segment, segments))
    }

    /// Returns whether a segment may be opened again: none of its pages is on its way to the device, and it was
    /// not opened too often.
    pub(super) fn can_reuse(&self, state: &State, segment: u32) -> bool {
        self.table.pending(segment) == 0 && state.openings.allow(segment, self.sweeps())
    }

    /// The live records of all segments, in segments, when those of the sealed ones have `mean_share`.
    fn live_segments(&self, state: &State, mean_share: f64) -> f64 {
        let open = state.streams.iter().flatten();
        let open: f64 = open.map(|open| f64::from(open.next_page) / f64::from(SEGMENT_PAGES)).sum();
        mean_share * state.sealed.len() as f64 + open
    }

    /// Looks at every sealed segment, or at a sample that is spread evenly over their ages.
    fn survey(&self, state: &State) -> Survey {
        let lines = state.sealed.lines();
        let stride = lines.div_ceil(CANDIDATES_MAX).max(1);
        // Each selection looks at others.
        let first = self.table.openings() as usize % stride;
        let (mut best, mut best_score) = (None, f64::MIN);
        let (mut sum, mut count) = (0.0, 0_u32);
        let mut by_age = ByAge::default();
        for segment in (first..lines).step_by(stride).filter_map(|at| state.sealed.get(at)) {
            let share = if self.is_spent(segment) { 0.0 } else { self.table.live_share(segment) };
            sum += share;
            count += 1;
            *by_age.of(self.table.is_again(segment), self.table.quarter(segment)) += 1.0;
            let score = gain(share, self.table.age_of(segment));
            let is_stuck = share > 0.0 && self.table.is_stuck(segment);
            if score > best_score && !is_stuck && self.can_reuse(state, segment) {
                (best, best_score) = (Some((segment, share)), score);
            }
        }
        let looked_at = f64::from(count.max(1));
        let times = state.sealed.len() as f64 / looked_at;
        let by_age = ByAge { new: by_age.new.map(|n| n * times), again: by_age.again.map(|n| n * times) };
        Survey { best, mean_share: sum / looked_at, by_age }
    }
}
