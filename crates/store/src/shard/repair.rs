//! Repairs a shard that was being changed when its process ended.
//!
//! The index is right at every instant of a change: each entry leads to a whole record, written before the
//! entry and given up after it, or to the one record that was being changed where it lies. So that record is
//! dropped, what an index that grew has in two buckets is cleared from the earlier one, and everything else is
//! made to agree with the index: queues hold the segments that their links lead to, without those behind the
//! open one, which were being filled, and without large records that no entry leads to. Any other segment is
//! free. Whether the result holds together is checked as for every other shard.

use std::collections::BTreeSet;

use super::{REWRITTEN_BITS, Shard};
use crate::index::entry::State;
use crate::policy::s3fifo::RamQueue;
use crate::ram::pool::SegmentId;
use crate::record::{HEADER_BYTES, RAM_ALIGN, RecordHeader};
use crate::tiers::Tiers;

impl Shard {
    /// Puts a half-changed shard in order; `None` if no interrupted change can have left it so. May itself be
    /// ended at any instant, and then be done again.
    pub(super) fn repair(&mut self, tiers: &Tiers) -> Option<()> {
        self.index.clear_moved();
        self.drop_rewritten(tiers)?;
        self.index.end_move().then_some(())?;
        self.rebuild_queues(tiers)
    }

    /// Drops the record that was being changed where it lies. Its place keeps its length, by which the records
    /// behind it are found.
    fn drop_rewritten(&mut self, tiers: &Tiers) -> Option<()> {
        let word = self.head().rewritten;
        let bytes = (word & ((1 << REWRITTEN_BITS) - 1)) as usize * RAM_ALIGN;
        let offset = (word >> REWRITTEN_BITS) * RAM_ALIGN as u64;
        if word == 0 {
            return Some(());
        }
        self.index.keep(|entry| entry.state() == State::Ssd || entry.ram_offset() != offset);
        let value_len = match bytes.checked_sub(HEADER_BYTES + 1) {
            None => return Some(()),
            Some(len) => u32::try_from(len).ok()?,
        };
        let (id, at) = tiers.pool.locate(offset);
        if !tiers.pool.owns(&self.owner, id) || tiers.pool.is_large(id) {
            return None;
        }
        let header = RecordHeader { value_len, key_len: 1, ..RecordHeader::default() };
        let place = &mut tiers.pool.bytes_mut(&mut self.owner, id)[at..];
        place.first_chunk_mut::<HEADER_BYTES>()?.copy_from_slice(&header.encode());
        Some(())
    }

    fn rebuild_queues(&mut self, tiers: &Tiers) -> Option<()> {
        let pool = &tiers.pool;
        let entries = self.index.entries().filter(|entry| entry.state() == State::RamLarge);
        let mut large: BTreeSet<u32> = entries.map(|entry| pool.locate(entry.ram_offset()).0.0).collect();
        let mut rebuilt = Vec::new();
        for queue in [RamQueue::Small, RamQueue::Main] {
            let mut segments = pool.linked(&self.owner, self.queue(queue))?;
            if let Some(open) = self.open(queue) {
                let closed = segments.iter().position(|id| *id == open.id);
                segments.truncate(closed.unwrap_or(segments.len()));
                pool.reopen(&mut self.owner, open.id)?;
            }
            segments.retain(|id| !pool.is_large(*id) || large.remove(&id.0));
            rebuilt.push((queue, segments));
        }
        // These were moving from one queue to another, or on their way to the SSD.
        rebuilt[0].1.extend(large.into_iter().map(SegmentId));
        for (queue, segments) in rebuilt {
            let name = queue as u32 + 1;
            self.head[0].queues[queue as usize] = pool.relink(&mut self.owner, name, &segments)?;
        }
        Some(())
    }
}
