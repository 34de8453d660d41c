//! What all shards share: the RAM pool, the SSD log, the hash, the flush epoch.

use std::sync::Arc;

use crate::clock::Seconds;
use crate::departures::Departures;
use crate::header::ArenaHeader;
use crate::index::entry::{Entry, SsdPlace};
use crate::index::hash::Hasher;
use crate::policy::admission::LiveAdmission;
use crate::policy::s3fifo;
use crate::ram::compaction::Compaction;
use crate::ram::pool::Pool;
use crate::ssd::log::Log;

/// Which tier an item was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Memory.
    Ram,
    /// The SSD, or a buffer on its way there.
    Ssd,
}

pub(crate) struct Tiers {
    pub pool: Arc<Pool>,
    pub log: Log,
    pub hasher: Hasher,
    /// The words that belong to no shard: flushes.
    pub header: ArenaHeader,
    /// Which items that leave RAM are written to the SSD.
    pub admission: LiveAdmission,
    /// Whether what does not fit may be dropped; without it, what does not fit is refused.
    pub evict: bool,
    /// Without it, how hard to look for room.
    pub compaction: Compaction,
    /// Records above this many bytes live in RAM segments of their own.
    pub large_bytes: usize,
    /// The items that leave RAM, while they are watched.
    pub departures: Departures,
}

impl Tiers {
    /// Whether a record of `segments` segments may be copied from the SSD to RAM now: one that would take more
    /// than a small part of RAM stays on the SSD.
    pub(crate) fn has_room_to_promote(&self, segments: u32) -> bool {
        self.pool.free_count() >= self.spare_segments() + segments && self.is_promotable(segments)
    }

    /// Whether a record of `segments` segments takes a small enough part of RAM to be promoted.
    pub(crate) fn is_promotable(&self, segments: u32) -> bool {
        s3fifo::is_promotable(segments, self.pool.limit())
    }

    /// Flushes so far: a record written in an earlier epoch is gone.
    #[inline]
    pub(crate) fn epoch(&self) -> u32 {
        self.header.epoch()
    }

    /// Returns how many free segments to keep at hand, so that an eviction has somewhere to copy survivors to.
    #[inline]
    pub(crate) fn spare_segments(&self) -> u32 {
        s3fifo::spare_segments(self.pool.limit(), self.large_bytes, self.pool.segment_bytes())
    }

    /// Returns a cas unique that no version of any item has had.
    #[inline]
    pub(crate) fn next_cas(&self) -> u64 {
        self.header.next_cas()
    }

    /// Notes that so many bytes of records in RAM are dead from now on.
    #[inline]
    pub(crate) fn note_freed(&self, bytes: usize) {
        if !self.evict {
            self.compaction.note_freed(bytes as u64);
        }
    }

    /// Whether an Ssd entry can still lead to an item, as far as RAM knows.
    #[inline]
    pub(crate) fn ssd_is_live(&self, entry: Entry, now: Seconds) -> bool {
        self.place_is_live(self.log.table.place_of(entry), now)
    }

    /// Whether an item can still be at a place on the SSD, as far as RAM knows.
    #[inline]
    pub(crate) fn place_is_live(&self, place: SsdPlace, now: Seconds) -> bool {
        !self.log.is_off() && self.log.table.is_live(place, now, self.epoch())
    }
}
