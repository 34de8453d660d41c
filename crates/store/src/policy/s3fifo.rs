//! Which items stay in RAM and where the others go, after S3-FIFO (Yang et al., SOSP 2023): a small queue on
//! probation, a main queue, two bits of frequency.

use super::admission::{Candidate, Refusal, refusal};

/// Which RAM queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RamQueue {
    /// New items, on probation.
    Small = 0,
    /// Items that were read while on probation, or came back soon after.
    Main = 1,
}

/// The small queue's share of the RAM tier, one in this many segments.
const SMALL_SHARE: u32 = 10;
/// An item of at most one in this many parts of the mean size goes on to the main queue unread.
const SLIGHT_PARTS: u64 = 2;
/// Frequency at which an item on the SSD is copied to RAM.
const PROMOTE_AT: u8 = 2;
/// A promoted record takes at most one in this many parts of RAM.
const PROMOTED_PARTS: u32 = 32;

/// Returns the queue of a new item, by whether its key left not long ago.
pub(crate) fn queue_of_new(came_back: bool) -> RamQueue {
    if came_back { RamQueue::Main } else { RamQueue::Small }
}

/// Returns the order in which the queues are asked for the segment that is emptied next. `main_is_spent` means
/// that the oldest items of the main queue have expired or were flushed: those go before any other.
pub(crate) fn victim_order(small_segments: u32, segments: u32, main_is_spent: bool) -> [RamQueue; 2] {
    if !main_is_spent && small_segments + 1 > segments / SMALL_SHARE {
        [RamQueue::Small, RamQueue::Main]
    } else {
        [RamQueue::Main, RamQueue::Small]
    }
}

/// Returns the frequency with which an item goes on to the main queue when its segment is emptied; `None` if it
/// leaves RAM. An item that is so much smaller than the mean that keeping it costs next to nothing goes on too.
pub(crate) fn kept_freq(queue: RamQueue, freq: u8, bytes: u64, mean_bytes: u64) -> Option<u8> {
    match queue {
        RamQueue::Small => (freq > 0 || bytes * SLIGHT_PARTS <= mean_bytes).then_some(0),
        RamQueue::Main => freq.checked_sub(1),
    }
}

/// What decides where an item goes that leaves RAM.
#[derive(Clone, Copy)]
pub(crate) struct Leaving {
    /// The queue that it leaves.
    pub queue: RamQueue,
    /// Whether it was stored in place of its former version.
    pub is_stored_again: bool,
    /// Seconds until it expires; `None` for never.
    pub seconds_left: Option<u32>,
    /// Whether the SSD is in use and takes items of its length.
    pub fits_ssd: bool,
    /// Whether writes to the SSD are for items that were wanted more than once.
    pub is_rationed: bool,
    /// Whether the write limit leaves anything.
    pub may_write: bool,
    /// Whether it must not be dropped: nothing may be evicted, or the room that it takes is not what is missing.
    pub must_stay: bool,
}

/// Where an item goes that leaves RAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// To the SSD.
    Demote,
    /// Nowhere.
    Drop(Refusal),
    /// Back to the main queue, as it is.
    Stay,
}

/// Returns where an item goes that leaves RAM and has no copy on the SSD.
pub(crate) fn exit_of(leaving: &Leaving) -> Exit {
    let candidate =
        Candidate { was_wanted: leaving.queue == RamQueue::Main, seconds_left: leaving.seconds_left };
    let refusal = match refusal(&candidate, leaving.is_rationed) {
        _ if !leaving.fits_ssd => Some(Refusal::Unfit),
        None if !leaving.may_write => Some(Refusal::Limit),
        refusal => refusal,
    };
    match refusal {
        None => Exit::Demote,
        Some(_) if leaving.must_stay => Exit::Stay,
        // It is wanted as one that was read on probation.
        Some(Refusal::Unwanted) if leaving.is_stored_again => Exit::Stay,
        Some(refusal) => Exit::Drop(refusal),
    }
}

/// Returns the frequency of an item that moves to the SSD, where only this tells whether the item has been
/// read: 0 if not, at least 1 if so.
pub(crate) fn freq_on_ssd(freq: u8, was_read: bool) -> u8 {
    if was_read { freq.max(1) } else { 0 }
}

/// Returns whether an item on the SSD that was read, and has this frequency since, is copied to RAM.
pub(crate) fn is_promoted(freq: u8) -> bool {
    freq >= PROMOTE_AT
}

/// Returns whether a record of `segments` segments takes a small enough part of RAM to be promoted.
pub(crate) fn is_promotable(segments: u32, ram_segments: u32) -> bool {
    segments <= (ram_segments / PROMOTED_PARTS).max(1)
}

/// Returns how many of `segments` are kept free: a 64th, within bounds, and at least as many as the longest record of
/// the log takes, of `record_bytes_max`.
#[inline]
pub(crate) fn spare_segments(segments: u32, record_bytes_max: usize, segment_bytes: usize) -> u32 {
    let record = (record_bytes_max / segment_bytes) as u32;
    (segments / 64).clamp(2, 16).max(record + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_on_probation_stay_if_they_were_read_and_others_as_often_as_they_were() {
        assert_eq!(kept_freq(RamQueue::Small, 0, 100, 100), None);
        assert_eq!(kept_freq(RamQueue::Small, 3, 100, 100), Some(0));
        assert_eq!(kept_freq(RamQueue::Small, 0, 50, 100), Some(0), "slight");
        assert_eq!(kept_freq(RamQueue::Main, 0, 1, 100), None);
        assert_eq!(kept_freq(RamQueue::Main, 3, 100, 100), Some(2));
    }

    #[test]
    fn the_small_queue_gives_way_first_once_it_has_its_share() {
        let first = |small, all, spent| victim_order(small, all, spent)[0];
        assert_eq!(first(9, 100, false), RamQueue::Main);
        assert_eq!(first(10, 100, false), RamQueue::Small);
        assert_eq!(first(10, 100, true), RamQueue::Main);
    }

    #[test]
    fn what_may_not_be_dropped_stays_if_the_ssd_does_not_take_it() {
        let leaving = Leaving {
            queue: RamQueue::Small,
            is_stored_again: false,
            seconds_left: None,
            fits_ssd: true,
            is_rationed: false,
            may_write: true,
            must_stay: false,
        };
        assert_eq!(exit_of(&leaving), Exit::Demote);
        assert_eq!(exit_of(&Leaving { is_rationed: true, ..leaving }), Exit::Drop(Refusal::Unwanted));
        let again = Leaving { is_rationed: true, is_stored_again: true, ..leaving };
        assert_eq!(exit_of(&again), Exit::Stay, "stored again");
        assert_eq!(exit_of(&Leaving { queue: RamQueue::Main, ..again }), Exit::Demote);
        assert_eq!(exit_of(&Leaving { may_write: false, ..leaving }), Exit::Drop(Refusal::Limit));
        assert_eq!(exit_of(&Leaving { fits_ssd: false, ..leaving }), Exit::Drop(Refusal::Unfit));
        assert_eq!(exit_of(&Leaving { seconds_left: Some(1), ..leaving }), Exit::Drop(Refusal::Expiring));
        assert_eq!(exit_of(&Leaving { fits_ssd: false, must_stay: true, ..leaving }), Exit::Stay);
        assert_eq!(exit_of(&Leaving { seconds_left: Some(1), must_stay: true, ..leaving }), Exit::Stay);
    }

    #[test]
    fn a_record_of_a_large_part_of_ram_is_not_promoted() {
        assert!(is_promotable(1, 4) && is_promotable(2, 64) && !is_promotable(3, 64));
    }
}
