//! A shard as an earlier process left it: kept if consistent, otherwise emptied.
//!
//! A shard whose last change came to its end is whole, unless another program wrote to the memory; one whose last
//! change did not is repaired first (`shard::repair`). So that nothing that runs later meets what cannot be,
//! the shard is read through once: every record of its segments is found by the index where it lies, and the
//! index points at nothing else in RAM.

use super::Shard;
use super::tally::Tally;
use crate::index::entry::{Entry, State, pages_of_class};
use crate::index::hash::KeyHash;
use crate::policy::s3fifo::RamQueue;
use crate::prefetch::prefetch;
use crate::ram::pool::recover::{ClaimedSegments, Kept};
use crate::ram::pool::{LARGE_PREFIX_BYTES, SegmentId};
use crate::record::{HEADER_BYTES, Head, RAM_ALIGN, RecordHeader};
use crate::tiers::Tiers;

/// Counts of all shards that one thread recovered.
pub(crate) struct RecoveryCounts {
    /// Live entries by SSD segment, and the pages of their records.
    pub live: Vec<(u32, u32)>,
    /// Items in RAM.
    pub ram_items: u64,
    /// Shards that were being changed and were repaired.
    pub repaired: u64,
    /// Shards that were emptied.
    pub reset: u64,
}

/// Where a record of the log goes on: at the front of a segment.
struct Rest {
    id: SegmentId,
    /// For how many bytes; `None` if the record's beginning is gone.
    bytes: Option<usize>,
}

/// The records of one shard, counted.
#[derive(Default)]
struct RecordCount {
    tally: Tally,
    items: u64,
    bytes: u64,
    log_bytes: u64,
    log_segments: u64,
}

impl Shard {
    /// Goes on with what an earlier process left, or with nothing.
    pub(crate) fn recover(
        &mut self,
        tiers: &Tiers,
        (number, shards): (u32, u32),
        were_demoting: &[u32],
        kept: &Kept,
        counts: &mut RecoveryCounts,
    ) {
        let interrupted = self.begin_change();
        // A repair puts them back into a queue.
        let were_demoting = if interrupted { &[] } else { were_demoting };
        let mut claimed = ClaimedSegments::new(kept);
        let has_index = self.index.resume(self.head().buckets);
        let sound = has_index && !self.is_given_up() && (!interrupted || self.repair(tiers).is_some());
        let counted = match sound {
            true => self.count(tiers, (number, shards), were_demoting, &mut claimed),
            false => None,
        };
        // Each record was found by the index; if it has as many entries for RAM, each leads to a record.
        let whole = counted.filter(|count| {
            let whole = self.sweep_dead(tiers, &mut counts.live) == count.items;
            if !whole {
                self.index.entries().filter(|entry| entry.state() == State::Ssd).for_each(|entry| {
                    let place = tiers.log.table.place_of(entry);
                    let live = &mut counts.live[place.segment as usize];
                    *live = (live.0 - 1, live.1 - pages_of_class(place.class));
                });
            }
            whole
        });
        match whole {
            Some(count) => {
                claimed.keep(&tiers.pool);
                self.take_over(tiers, &count, were_demoting);
                counts.ram_items += count.items;
                counts.repaired += u64::from(interrupted);
            }
            None => {
                drop(claimed);
                self.empty();
                counts.reset += 1;
            }
        }
        self.end_change();
    }

    /// ClaimedSegments the shard's segments and counts their records; `None` when anything is not as it should
    /// be.
    fn count(
        &self,
        tiers: &Tiers,
        place: (u32, u32),
        were_demoting: &[u32],
        claimed: &mut ClaimedSegments<'_>,
    ) -> Option<RecordCount> {
        let pool = &tiers.pool;
        let mut count = RecordCount::default();
        let mut logs: Vec<Vec<(SegmentId, usize)>> = Vec::new();
        let mut large: Vec<SegmentId> = Vec::new();
        for (queue, name) in self.head().queues.iter().zip(1..) {
            let mut log = Vec::new();
            for id in pool.claim_queue(&self.owner, queue, name, claimed)? {
                match pool.is_large(id) {
                    true => large.push(id),
                    false => log.push((id, pool.used(id))),
                }
            }
            logs.push(log);
        }
        for &id in were_demoting {
            large.push(pool.claim(&self.owner, id, claimed)?);
        }
        for (queue, log) in [RamQueue::Small, RamQueue::Main].into_iter().zip(&mut logs) {
            if let Some(open) = self.open(queue) {
                let id = pool.claim(&self.owner, open.id.0, claimed)?;
                if pool.is_large(id) || pool.queue_of(id) != 0 {
                    return None;
                }
                log.push((id, open.used));
            }
        }
        for head in large {
            pool.claim_chain(&self.owner, head, claimed)?;
            self.count_large(tiers, place, head, &mut count)?;
        }
        let mut found = Vec::new();
        for log in logs {
            count.log_segments += log.len() as u64;
            // The segment before the first one may have been emptied, and with it the beginning of a record.
            let mut rest = log.first().map(|&(id, _)| Rest { id, bytes: None });
            for (id, used) in log {
                rest = self.count_segment(tiers, place, (id, used), rest, &mut found, &mut count)?;
            }
            // The last record of a queue ends in it.
            if rest.is_some() {
                return None;
            }
        }
        Some(count)
    }

    fn count_large(
        &self,
        tiers: &Tiers,
        (number, shards): (u32, u32),
        head: SegmentId,
        count: &mut RecordCount,
    ) -> Option<()> {
        let bytes = &tiers.pool.bytes(&self.owner, head)[LARGE_PREFIX_BYTES..];
        let header = RecordHeader::decode(bytes)?;
        let key = bytes.get(HEADER_BYTES..HEADER_BYTES + usize::from(header.key_len))?;
        let hash = tiers.hasher.hash(key);
        let entry = Entry::ram(hash, 0, State::RamLarge, tiers.pool.offset(head, 0));
        let right = LARGE_PREFIX_BYTES + header.bytes() == tiers.pool.used(head)
            && header.tag == hash.tag()
            && hash.shard(shards) == number;
        if !right || self.index.find_place(hash, entry).is_none() {
            return None;
        }
        count.items += 1;
        count.bytes += header.bytes() as u64;
        count.tally.add(self.queue_with(tiers, entry), &header, tiers.epoch());
        Some(())
    }

    /// Counts the records that begin in a segment of the log. `rest` is where the last record of the one
    /// before goes on; the same is returned of this one.
    fn count_segment(
        &self,
        tiers: &Tiers,
        (number, shards): (u32, u32),
        (id, used): (SegmentId, usize),
        rest: Option<Rest>,
        found: &mut Vec<(KeyHash, u32, RecordHeader)>,
        count: &mut RecordCount,
    ) -> Option<Option<Rest>> {
        let pool = &tiers.pool;
        let bytes = pool.bytes(&self.owner, id).get(..used)?;
        let first = pool.first(id);
        let (rest_bytes, is_orphan) = match rest {
            Some(rest) if rest.id != id => return None,
            Some(Rest { bytes: None, .. }) => (first, first == pool.segment_bytes()),
            Some(Rest { bytes: Some(bytes), .. }) => (bytes, false),
            None => (0, false),
        };
        if first != rest_bytes.min(pool.segment_bytes()) || !first.is_multiple_of(RAM_ALIGN) {
            return None;
        }
        let ((start, stride), shape) = (self.index.address(), self.index.shape());
        found.clear();
        let mut at = rest_bytes;
        while at < used {
            let record = Head::parse(&bytes[at..])?;
            let hash = tiers.hasher.hash(record.key);
            prefetch(start + shape.bucket(hash) as usize * stride);
            found.push((hash, at as u32, record.header));
            at += record.header.ram_bytes();
        }
        let goes_on = match at.checked_sub(used)? {
            0 if pool.log_next(id).is_none() => None,
            0 if is_orphan => Some(Rest { id: pool.log_next(id)?, bytes: None }),
            more if more > 0 && used == pool.segment_bytes() => {
                Some(Rest { id: pool.log_next(id)?, bytes: Some(more) })
            }
            _ => return None,
        };
        let queue =
            self.queue_with(tiers, Entry::ram(KeyHash::default(), 0, State::Ram, tiers.pool.offset(id, 0)));
        for (hash, at, header) in &*found {
            let here = Entry::ram(*hash, 0, State::Ram, tiers.pool.offset(id, *at as usize));
            // One that the index does not find was overwritten or deleted.
            if self.index.find_place(*hash, here).is_some() {
                if header.tag != hash.tag() || hash.shard(shards) != number {
                    return None;
                }
                count.items += 1;
                count.bytes += header.bytes() as u64;
                count.tally.add(queue, header, tiers.epoch());
                count.log_bytes += header.ram_bytes() as u64;
            }
        }
        Some(goes_on)
    }

    /// Makes a whole shard this process's.
    fn take_over(&mut self, tiers: &Tiers, count: &RecordCount, were_demoting: &[u32]) {
        for &head in were_demoting {
            self.enqueue(tiers, RamQueue::Small, SegmentId(head));
        }
        (self.log_segments, self.log_bytes) = (count.log_segments, count.log_bytes);
        self.tally = count.tally.clone();
        let head = self.head_mut();
        (head.ram_items, head.ram_bytes) = (count.items, count.bytes);
        self.begin_counters();
    }

    /// Forgets everything.
    fn empty(&mut self) {
        self.index.clear();
        self.begin_queues();
        (self.log_segments, self.log_bytes) = (0, 0);
        self.tally = Tally::default();
        let head = self.head_mut();
        (head.ram_items, head.ram_bytes, head.index_entries) = (0, 0, 0);
        self.begin_counters();
        self.begin_trusted();
    }

    /// Counts of what happened are this process's alone.
    fn begin_counters(&mut self) {
        let head = self.head_mut();
        (head.evictions, head.evicted_unread, head.index_evictions) = (0, 0, 0);
        (head.admissions_dropped, head.admissions_refused, head.index_collisions) = (0, 0, 0);
        (head.reclaimed, head.expired_unread) = (0, 0);
    }

    /// Clears entries that lead nowhere, counts those that lead to the SSD, and returns how many lead to RAM.
    fn sweep_dead(&mut self, tiers: &Tiers, live: &mut [(u32, u32)]) -> u64 {
        let mut in_ram = 0;
        let entries = self.index.keep(|entry| {
            if entry.state() != State::Ssd {
                in_ram += 1;
                return true;
            }
            let place = tiers.log.table.place_of(entry);
            let is_live = tiers.log.table.is_current(place);
            if is_live {
                let live = &mut live[place.segment as usize];
                *live = (live.0 + 1, live.1 + pages_of_class(place.class));
            }
            is_live
        });
        self.head_mut().index_entries = entries;
        in_ram
    }
}
