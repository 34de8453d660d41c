//! The ages of the oldest items, from the front of each queue alone.

use std::collections::VecDeque;
use std::sync::PoisonError;

use super::Store;
use crate::clock::Seconds;
use crate::policy::s3fifo::RamQueue;
use crate::ram::pool::{LARGE_PREFIX_BYTES, SegmentId};
use crate::record::RecordHeader;
use crate::shard::Shard;
use crate::tiers::Tiers;

/// Seconds since the oldest item of each place was last accessed, or came there; 0 where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ages {
    /// New items in RAM, on probation.
    pub ram_small_s: u32,
    /// Items in RAM that were read.
    pub ram_main_s: u32,
    /// Items on the SSD: since their segment was begun, or since the store was opened.
    pub ssd_s: u32,
}

/// When SSD segments were begun: pairs of openings so far and the second at which they were noticed.
#[derive(Default)]
pub(super) struct OpeningTimes(VecDeque<(u32, u32)>);

impl OpeningTimes {
    /// Notes that there have been `openings` by now. Of `segments` segments no more can hold anything.
    pub(super) fn note(&mut self, openings: u32, segments: u32, now: Seconds) {
        if self.0.back().is_none_or(|&(noted, _)| noted != openings) {
            self.0.push_back((openings, now.0));
        }
        while self.0.len() > 1
            && self.0.get(1).is_some_and(|&(noted, _)| openings - noted.min(openings) >= segments)
        {
            self.0.pop_front();
        }
    }

    /// Returns the second at which the opening `number` was noticed.
    fn second_of(&self, number: u32) -> Option<u32> {
        self.0.iter().find(|&&(noted, _)| noted >= number).map(|&(_, second)| second)
    }
}

impl Store {
    /// Returns how old the oldest items are.
    pub fn ages(&self, now: Seconds) -> Ages {
        let mut ages = Ages::default();
        for number in 0..self.layout.shards {
            let shard = self.lock(number);
            let age =
                |queue| shard.oldest_access(&self.tiers, queue).map_or(0, |at| now.0.saturating_sub(at));
            ages.ram_small_s = ages.ram_small_s.max(age(RamQueue::Small));
            ages.ram_main_s = ages.ram_main_s.max(age(RamQueue::Main));
        }
        let openings = self.openings.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = self.tiers.log.table.oldest_opening(self.tiers.epoch());
        let begun = oldest.and_then(|number| openings.second_of(number));
        ages.ssd_s = begun.map_or(0, |begun| now.0.saturating_sub(begun));
        ages
    }
}

impl Shard {
    /// Returns when the first record of a queue was last accessed, unless it was flushed.
    fn oldest_access(&self, tiers: &Tiers, queue: RamQueue) -> Option<u32> {
        let open = || self.open(queue).filter(|open| open.used > 0).map(|open| open.id);
        let id: SegmentId = self.queue(queue).front().or_else(open)?;
        let at = if tiers.pool.is_large(id) { LARGE_PREFIX_BYTES } else { 0 };
        let header = RecordHeader::decode(&self.segment(tiers, id)[at..])?;
        (header.epoch >= tiers.epoch()).then_some(header.accessed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openings_are_remembered_as_long_as_their_segments_can_hold_anything() {
        let mut openings = OpeningTimes::default();
        for second in 10..1_000 {
            openings.note(second / 10, 5, Seconds(second));
        }
        assert!(openings.0.len() <= 7, "{:?}", openings.0);
        assert_eq!(openings.second_of(99), Some(990));
        assert_eq!(openings.second_of(96), Some(960));
        assert_eq!(openings.second_of(1), Some(940), "as old as anything can be");
        assert_eq!(openings.second_of(100), None);
    }
}
