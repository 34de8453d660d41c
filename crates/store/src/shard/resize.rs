//! How large a shard's index is: when it grows and when it shrinks. The memory for it is
//! `store::growth`'s business.

use super::Shard;
use crate::tiers::Tiers;

/// How full an index is before it grows. From 91 percent on entries give way between two doublings, while part
/// of the buckets are to hold twice as much as the others.
pub(crate) const INDEX_FILL_PERCENT: u64 = 88;
/// How full an index is before it shrinks.
const INDEX_FILL_PERCENT_MIN: u64 = 70;
/// Buckets taken into use, or given up, in one step: a few microseconds.
const SPLITS_MAX: u32 = 64;
const MERGES_MAX: u32 = 64;

impl Shard {
    /// Whether the index may have to grow before more is stored: unless entries of it are dead.
    #[inline]
    pub(crate) fn may_be_short(&self) -> bool {
        self.index.may_grow() && self.head().index_entries * 100 > self.index.capacity() * INDEX_FILL_PERCENT
    }

    /// Whether the index has to grow before more is stored.
    pub(crate) fn is_index_short(&self, tiers: &Tiers, shards: u32) -> bool {
        self.live_entries(tiers, shards) * 100 > self.index.capacity() * INDEX_FILL_PERCENT
    }

    /// Returns about how many entries of the index lead to items, and seldom fewer than do. How many of the items on
    /// the SSD are this shard's is not counted: it has its share of them, by the hash.
    fn live_entries(&self, tiers: &Tiers, shards: u32) -> u64 {
        let on_ssd = tiers.log.table.items() / u64::from(shards);
        (self.head().ram_items + on_ssd + 2 * on_ssd.isqrt()).min(self.head().index_entries)
    }

    /// Takes more buckets of the index into use, as many as are granted or one step can.
    pub(crate) fn grow_index(&mut self) {
        for _ in 0..SPLITS_MAX {
            if !self.index.begin_split() {
                return;
            }
            self.head_mut().buckets += 1;
            self.index.end_split();
        }
    }

    /// Gives up buckets of the index that so few items do not need, as many as one step can. Returns how many.
    pub(crate) fn shrink_index(&mut self, tiers: &Tiers, shards: u32) -> u32 {
        for merged in 0..MERGES_MAX {
            let is_loose =
                self.live_entries(tiers, shards) * 100 < self.index.capacity() * INDEX_FILL_PERCENT_MIN;
            let Some((last, to)) = self.index.next_merge().filter(|_| is_loose) else { return merged };
            self.sweep_bucket(tiers, last);
            self.sweep_bucket(tiers, to);
            if !self.index.begin_merge() {
                self.sweep_around(tiers, [last, to]);
                if !self.index.begin_merge() {
                    return merged;
                }
            }
            self.head_mut().buckets -= 1;
            self.index.end_merge();
        }
        MERGES_MAX
    }
}
