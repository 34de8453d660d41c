//! An index that grows as items come, and shrinks as they become fewer: RAM segments give way to buckets, and back.
//!
//! The buckets of all shards lie in one stretch of the arena, in turn, so that those in use are its front. A
//! segment that is [lent](crate::ram::pool::Pool::lend) pays for as many bytes behind them. Each shard takes
//! its buckets into use when its own index is short. The memory behind the last bucket that any shard uses returns
//! to the RAM tier.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Mutex, PoisonError};

use super::Store;
use crate::arena::Stretch;
use crate::index::hash::KeyHash;
use crate::index::{Bucket, Index, Shape};
use crate::prefetch::prefetch;
use crate::shard::Shard;
use crate::store::layout::Layout;

/// Buckets that one step of upkeep gives up: about half a millisecond.
const STEP_MERGES: u32 = 2048;
/// The most memory that one step returns to the RAM tier, in bytes.
const RETURNED_BYTES_MAX: usize = 4 << 20;

/// What the buckets of all shards may take.
pub(crate) struct Growth {
    /// Held while a segment is taken or returned; only tried, never waited for.
    stretch: Mutex<Stretch>,
    /// One bucket of each shard.
    row_bytes: usize,
    /// Buckets of each shard, at first and at most.
    base: u32,
    most: u32,
    segment_bytes: usize,
    /// Whether an index has to grow and no segment is free for it.
    waits: AtomicBool,
    /// The shard whose index may shrink next.
    next_to_shrink: AtomicU32,
}

impl Growth {
    pub(crate) fn new(stretch: Stretch, layout: &Layout) -> Growth {
        Growth {
            stretch: Mutex::new(stretch),
            row_bytes: layout.shards as usize * size_of::<Bucket>(),
            base: layout.buckets_per_shard,
            most: layout.buckets_per_shard_max,
            segment_bytes: layout.segment_bytes,
            waits: AtomicBool::new(false),
            next_to_shrink: AtomicU32::new(0),
        }
    }

    /// Returns how many segments are to be made free for an index.
    pub(super) fn segments_wanted(&self) -> u32 {
        self.waits.load(Relaxed).into()
    }

    /// Returns how many buckets a shard may have in use while so many segments are lent.
    fn granted(&self, lent: u32) -> u32 {
        let grown = (lent as usize * self.segment_bytes / self.row_bytes) as u32;
        self.base.saturating_add(grown).min(self.most)
    }

    /// Returns how many segments have to be lent for so many buckets a shard.
    fn segments_for(&self, buckets: u32) -> u32 {
        ((buckets - self.base) as usize * self.row_bytes).div_ceil(self.segment_bytes) as u32
    }

    /// Lets each shard have as many buckets in use as an earlier process did.
    pub(super) fn begin_recovery(&mut self) {
        self.stretch.get_mut().unwrap_or_else(PoisonError::into_inner).grant_what_was_used();
    }
}

/// Where the buckets of a shard are, to prefetch one without the shard's lock.
pub(crate) struct Whereabouts {
    start: usize,
    stride: usize,
    base: u32,
    shape: AtomicU64,
}

impl Whereabouts {
    pub(crate) fn new(index: &Index) -> Whereabouts {
        let (start, stride) = index.address();
        let shape = index.shape();
        Whereabouts { start, stride, base: shape.base(), shape: AtomicU64::new(shape.to_word()) }
    }

    /// Returns how many buckets the shard has in use.
    pub(super) fn count(&self) -> u32 {
        Shape::from_word(self.base, self.shape.load(Relaxed)).count()
    }

    fn update(&self, index: &Index) {
        self.shape.store(index.shape().to_word(), Relaxed);
    }

    /// Begins to fetch a key's two buckets.
    #[inline]
    pub(crate) fn prefetch(&self, hash: KeyHash) {
        let shape = Shape::from_word(self.base, self.shape.load(Relaxed));
        prefetch(self.start + shape.bucket(hash) as usize * self.stride);
        prefetch(self.start + shape.other_bucket(hash) as usize * self.stride);
    }
}

impl Store {
    /// Lets a shard's index grow by a step if it should and can. Slots found before mean nothing afterwards.
    #[inline]
    pub(crate) fn grow_index(&self, number: u32, shard: &mut Shard) {
        if shard.may_be_short() {
            self.grow_short_index(number, shard);
        }
    }

    #[cold]
    fn grow_short_index(&self, number: u32, shard: &mut Shard) {
        if !shard.is_index_short(&self.tiers, self.layout.shards) {
            return;
        }
        let granted = self.growth.granted(self.tiers.pool.lent_count());
        if granted <= shard.index().count() && !self.lend_segment() {
            return;
        }
        shard.grow_index();
        self.indexes[number as usize].update(shard.index());
    }

    fn lend_segment(&self) -> bool {
        let Ok(mut stretch) = self.growth.stretch.try_lock() else { return false };
        let pool = &self.tiers.pool;
        let (lent, limit) = (pool.lent_count(), pool.limit());
        // An eighth of the memory stays with the items, whatever limit is set.
        if limit <= self.ram_segments_min().max((limit + lent) / 8) {
            self.growth.waits.store(false, Relaxed);
            return false;
        }
        let has_lent = pool.lend(self.tiers.spare_segments()).is_some();
        self.growth.waits.store(!has_lent, Relaxed);
        // Where room is limited, that of the segment serves.
        let has_room = has_lent && stretch.grant(self.growth.granted(lent + 1) as usize);
        if has_lent && !has_room {
            pool.take_back();
        }
        has_room
    }

    /// Takes one bounded step towards an index of fewer buckets, if items have become fewer.
    pub(super) fn shrink_index(&self) {
        let shards = self.layout.shards;
        let (mut merged, mut idle) = (0, 0);
        while self.growth.most > self.growth.base && merged < STEP_MERGES && idle < shards {
            let number = self.growth.next_to_shrink.fetch_add(1, Relaxed) % shards;
            let mut fewer = 0;
            if self.indexes[number as usize].count() > self.growth.base {
                let mut shard = self.change(number);
                fewer = shard.shrink_index(&self.tiers, shards);
                self.indexes[number as usize].update(shard.index());
            }
            merged += fewer;
            idle = if fewer > 0 { 0 } else { idle + 1 };
        }
        self.return_segments();
    }

    /// Returns memory that no index uses any more to the RAM tier.
    fn return_segments(&self) {
        let Ok(mut stretch) = self.growth.stretch.try_lock() else { return };
        let (pool, growth) = (&self.tiers.pool, &self.growth);
        let most = (RETURNED_BYTES_MAX / growth.segment_bytes) as u32;
        let lent = pool.lent_count();
        let buckets = self.indexes.iter().map(Whereabouts::count).max().unwrap_or(growth.base);
        let kept = growth.segments_for(buckets).max(lent.saturating_sub(most));
        if kept < lent && stretch.take_back(growth.granted(kept) as usize) {
            (kept..lent).for_each(|_| pool.take_back());
        }
    }

    /// Lends as many segments as the indexes of an earlier process have taken. What it had taken beyond that, when
    /// it ended between two steps, is given back.
    pub(super) fn lend_again(&mut self) {
        let shards =
            self.shards.iter_mut().map(|shard| shard.get_mut().unwrap_or_else(PoisonError::into_inner));
        let mut buckets = self.growth.base;
        for (shard, whereabouts) in shards.zip(&self.indexes) {
            buckets = buckets.max(shard.index().count());
            whereabouts.update(shard.index());
        }
        let segments = self.growth.segments_for(buckets);
        while self.tiers.pool.lent_count() < segments && self.tiers.pool.lend(0).is_some() {}
        let granted = self.growth.granted(segments) as usize;
        let stretch = self.growth.stretch.get_mut().unwrap_or_else(PoisonError::into_inner);
        let is_rest_free = stretch.take_back(granted);
        debug_assert!(is_rest_free, "no index has more buckets");
    }
}
