//! An index that grows as items come: RAM segments give way to buckets.
//!
//! The buckets of all shards lie in one stretch of the arena, in turn, so that those in use are its front. A
//! segment that is [lent](crate::ram::pool::Pool::lend) pays for as many bytes behind them. Each shard takes
//! its buckets into use when its own index is short.

use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::{Mutex, PoisonError};

use super::Store;
use crate::arena::SharedRegion;
use crate::index::hash::KeyHash;
use crate::index::{Bucket, Index, Shape};
use crate::prefetch::prefetch;
use crate::shard::Shard;
use crate::store::layout::Layout;

/// What the buckets of all shards may take.
pub(crate) struct Growth {
    stretch: SharedRegion,
    /// One bucket of each shard.
    row_bytes: usize,
    base: u32,
    segment_bytes: usize,
    /// Held while a segment is taken.
    turn: Mutex<()>,
}

impl Growth {
    pub(crate) fn new(stretch: SharedRegion, layout: &Layout) -> Growth {
        let row_bytes = layout.shards as usize * size_of::<Bucket>();
        let (base, segment_bytes) = (layout.buckets_per_shard, layout.segment_bytes);
        Growth { stretch, row_bytes, base, segment_bytes, turn: Mutex::default() }
    }

    /// Returns how many buckets a shard may have in use while so many segments are lent.
    fn granted(&self, lent: u32) -> u32 {
        let grown = (lent as usize * self.segment_bytes / self.row_bytes) as u32;
        self.base.saturating_add(grown).min((self.stretch.bytes() / self.row_bytes) as u32)
    }

    /// Returns how many segments have to be lent for so many buckets a shard.
    fn segments_for(&self, buckets: u32) -> u32 {
        ((buckets - self.base) as usize * self.row_bytes).div_ceil(self.segment_bytes) as u32
    }

    /// Takes memory for what the next segment pays for from the system. Returns false if there is none.
    fn populate_next(&self, lent: u32) -> bool {
        let from = self.base as usize * self.row_bytes + lent as usize * self.segment_bytes;
        let to = (from + self.segment_bytes).min(self.stretch.bytes());
        // Whole pages, of which the first may be in use.
        let from = from.min(to) / 4096 * 4096;
        self.stretch.populate(from, to - from)
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
        if shard.is_index_short() {
            self.grow_short_index(number, shard);
        }
    }

    #[cold]
    fn grow_short_index(&self, number: u32, shard: &mut Shard) {
        let granted = || self.growth.granted(self.tiers.pool.lent_count());
        if granted() <= shard.index().count() && !self.lend_segment() {
            return;
        }
        shard.grow_index(granted());
        self.indexes[number as usize].update(shard.index());
    }

    fn lend_segment(&self) -> bool {
        let Ok(_turn) = self.growth.turn.try_lock() else { return false };
        let pool = &self.tiers.pool;
        let lent = pool.lent_count();
        let Some(id) = pool.lend(self.tiers.spare_segments()) else { return false };
        // Where room is limited, that of the segment serves.
        let has_room = self.growth.populate_next(lent);
        if !has_room {
            pool.take_back(id);
        }
        has_room
    }

    /// Lends as many segments as the indexes of an earlier process have taken.
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
    }
}
