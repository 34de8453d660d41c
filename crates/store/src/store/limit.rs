//! A memory limit that changes while the store runs, within the arena made at its start.

use std::sync::atomic::Ordering::*;

use super::{Step, Store};
use crate::clock::Seconds;
use crate::shard::evict::OnFull;

/// RAM segments evicted in one step, in bytes: what a step keeps its thread from anything else for.
const EVICTED_BYTES_MAX: usize = 4 << 20;
/// Free RAM segments given back to the system in one step, in bytes.
const RETURNED_BYTES_MAX: usize = 64 << 20;
/// The smallest RAM tier, in bytes, and in segments a shard: two that are being filled, and as many to evict.
const RAM_BYTES_MIN: usize = 1 << 20;
const SHARD_SEGMENTS_MIN: u32 = 4;

impl Store {
    /// Returns the bound on everything the store keeps in memory, in bytes.
    pub fn memory_limit_bytes(&self) -> u64 {
        self.memory_limit.load(Relaxed)
    }

    /// Changes the memory limit. A higher one is in force at once; to a lower one the store shrinks step by step
    /// with each [`upkeep`](Store::upkeep), evicting what no longer fits. Returns false, and changes nothing,
    /// for more than the store was opened with, or too little for its index, its tables and a RAM tier, or more
    /// than the file system of the memory file has room for.
    pub fn set_memory_limit(&self, bytes: u64) -> bool {
        let (layout, pool) = (&self.layout, &self.tiers.pool);
        let ram_bytes = u64::from(layout.segments) * layout.segment_bytes as u64;
        let segments = match bytes {
            more if more > self.memory_bytes => return false,
            all if all >= layout.arena_bytes + self.shadow_bytes => layout.segments,
            less => {
                let others = layout.arena_bytes - ram_bytes + self.shadow_bytes;
                let Some(ram) = less.checked_sub(others) else { return false };
                (ram / layout.segment_bytes as u64) as u32
            }
        };
        if segments.saturating_sub(pool.lent_count()) < self.ram_segments_min() {
            return false;
        }
        if !pool.set_limit(segments) {
            return false;
        }
        self.memory_limit.store(bytes, Relaxed);
        true
    }

    /// Returns how many segments the RAM tier has at least, whatever else takes memory.
    pub(super) fn ram_segments_min(&self) -> u32 {
        let least = (RAM_BYTES_MIN / self.layout.segment_bytes) as u32;
        least.max(self.layout.shards * SHARD_SEGMENTS_MIN).min(self.layout.segments)
    }

    /// Takes one bounded step towards a memory limit that was lowered.
    pub(super) fn shrink(&self, now: Seconds) {
        let (tiers, pool) = (&self.tiers, &self.tiers.pool);
        if pool.limit() + pool.lent_count() == pool.count() {
            return;
        }
        let segments = |bytes: usize| (bytes / self.layout.segment_bytes).max(1) as u32;
        if pool.withhold(segments(RETURNED_BYTES_MAX), tiers.spare_segments()) == 0 {
            return;
        }
        for _ in 0..segments(EVICTED_BYTES_MAX) {
            let victim = self.next_victim.fetch_add(1, Relaxed) % self.layout.shards;
            if tiers.evict {
                match self.make_room::<()>(victim, 1, now, OnFull::Wait) {
                    Ok(()) => {}
                    Err(Step::Again) => continue,
                    Err(_) => return,
                }
            }
            let spare = if tiers.evict { tiers.spare_segments() } else { 0 };
            let before = pool.withheld_count();
            if pool.withhold(1, spare) == 0 || pool.withheld_count() == before {
                return;
            }
        }
    }
}
