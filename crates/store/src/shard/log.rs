//! Appends records to the log of a queue: the open segment, and fresh ones behind it.
//!
//! Nothing shows a record before it is written: the word that names the open segment, and where its records end,
//! is stored behind it. `shard::repair` relies on that.

use super::{Open, Shard};
use crate::crash;
use crate::index::entry::{Entry, SsdCopy};
use crate::policy::s3fifo::RamQueue;
use crate::ram::pool::SegmentId;
use crate::record::{HAS_SSD_COPY, HEADER_BYTES, RAM_ALIGN, RecordHeader};
use crate::tiers::Tiers;

/// A record of at most one in this many parts of a segment lies in one segment, and is read without a look at
/// another; the rest of a segment at its end is then as small.
const WHOLE_SHARE: usize = 32;

/// Room in the log for a record that is not written yet. Until the record is, the log ends where it did.
struct Room {
    begin: Open,
    /// The open segment once the record is written.
    end: Open,
    /// The segments that the record takes besides the open one, in order.
    fresh: Vec<SegmentId>,
}

impl Shard {
    /// Returns where in a queue's open segment a record begins, or `None` if it begins in a fresh one:
    /// a record that takes little of a segment lies in one, and so do header and key of any.
    fn begins_in(&self, queue: RamQueue, header: &RecordHeader) -> Option<Open> {
        let (open, bytes) = (self.open(queue)?, header.ram_bytes());
        let left = self.segment_bytes - open.used;
        let splits =
            bytes > self.segment_bytes / WHOLE_SHARE && left >= HEADER_BYTES + usize::from(header.key_len);
        (bytes <= left || splits).then_some(open)
    }

    /// Returns how many free segments a record in a queue takes.
    pub(crate) fn segments_wanted(&self, queue: RamQueue, header: &RecordHeader) -> u32 {
        let left = self.begins_in(queue, header).map_or(0, |open| self.segment_bytes - open.used);
        header.ram_bytes().saturating_sub(left).div_ceil(self.segment_bytes) as u32
    }

    /// Finds room for a record, from the queue's open segment on through as many fresh ones as it takes. Returns
    /// `None` when the pool has too few segments.
    fn room(&mut self, tiers: &Tiers, queue: RamQueue, header: &RecordHeader) -> Option<Room> {
        let begin = self.begins_in(queue, header);
        let bytes = header.ram_bytes();
        if let Some(open) = begin
            && open.used + bytes <= self.segment_bytes
        {
            let end = Open { used: open.used + bytes, ..open };
            return Some(Room { begin: open, end, fresh: Vec::new() });
        }
        let wanted = self.segments_wanted(queue, header) as usize;
        let mut fresh = Vec::new();
        while fresh.len() < wanted {
            let Some(id) = tiers.pool.take(&mut self.owner) else {
                fresh.into_iter().for_each(|id| tiers.pool.give_back(&mut self.owner, id));
                return None;
            };
            fresh.push(id);
        }
        self.log_segments += wanted as u64;
        let mut at = begin;
        let mut left = bytes;
        for &id in &fresh {
            if let Some(open) = at {
                left -= self.segment_bytes - open.used;
                tiers.pool.link_log(&mut self.owner, open.id, id, left.min(self.segment_bytes));
            }
            at = Some(Open { id, used: 0 });
        }
        let open = at?;
        let begin = begin.or(fresh.first().map(|&id| Open { id, used: 0 }))?;
        Some(Room { begin, end: Open { used: open.used + left, ..open }, fresh })
    }

    /// Makes a record that has been written the last one of the log. The word that names the open segment is
    /// stored last: until then, whatever is queued from that segment on does not count.
    fn fill(&mut self, tiers: &Tiers, queue: RamQueue, room: &Room) {
        if let Some((_, full)) = room.fresh.split_last() {
            if let Some(open) = self.open(queue) {
                let splits = room.begin.id == open.id;
                let used = if splits { self.segment_bytes } else { open.used };
                self.close(tiers, queue, Open { used, ..open });
            }
            for &id in full {
                self.close(tiers, queue, Open { id, used: self.segment_bytes });
            }
        }
        self.set_open(queue, Some(room.end));
    }

    /// Moves a segment to the back of its queue, where eviction finds it.
    fn close(&mut self, tiers: &Tiers, queue: RamQueue, full: Open) {
        tiers.pool.set_used(&mut self.owner, full.id, full.used);
        self.enqueue(tiers, queue, full.id);
    }

    /// Moves the open segment to the back of its queue.
    pub(crate) fn seal_open(&mut self, tiers: &Tiers, queue: RamQueue) {
        if let Some(full) = self.open(queue) {
            self.close(tiers, queue, full);
            self.set_open(queue, None);
        }
    }

    /// Writes a record into a queue's open segment; returns its place in the tier, or `None` when the pool is
    /// empty.
    pub(crate) fn append(
        &mut self,
        tiers: &Tiers,
        queue: RamQueue,
        header: &RecordHeader,
        key: &[u8],
        value: &[&[u8]],
        ssd_copy: Option<SsdCopy>,
    ) -> Option<u64> {
        let mut header = *header;
        header.item_flags = if ssd_copy.is_some() {
            header.item_flags | HAS_SSD_COPY
        } else {
            header.item_flags & !HAS_SSD_COPY
        };
        let room = self.room(tiers, queue, &header)?;
        let Open { id, used } = room.begin;
        self.write_record(tiers, (id, used), &header, key, value, ssd_copy);
        self.fill(tiers, queue, &room);
        Some(tiers.pool.offset(id, used))
    }

    /// Copies the record under a Ram entry into a queue's open segment, which may not be the one it is in.
    pub(crate) fn copy_record(&mut self, tiers: &Tiers, queue: RamQueue, entry: Entry) -> Option<u64> {
        let header = *self.ram_record(tiers, entry).header();
        let bytes = header.ram_bytes();
        let from = tiers.pool.locate(entry.ram_offset());
        // A record whose end lies in the open segment is copied to other ones.
        let open = self.open(queue).map(|open| open.id);
        if open.is_some_and(|open| tiers.pool.log_segments(from, bytes).any(|id| id == open)) {
            self.seal_open(tiers, queue);
        }
        let room = self.room(tiers, queue, &header)?;
        let Open { id, used } = room.begin;
        tiers.pool.copy_log(&mut self.owner, from, (id, used), bytes);
        self.fill(tiers, queue, &room);
        Some(tiers.pool.offset(id, used))
    }

    /// Lays a record out in the log, its end padded with zeros.
    pub(super) fn write_record(
        &mut self,
        tiers: &Tiers,
        (id, at): (SegmentId, usize),
        header: &RecordHeader,
        key: &[u8],
        value: &[&[u8]],
        ssd_copy: Option<SsdCopy>,
    ) {
        let (pool, owner) = (&tiers.pool, &mut self.owner);
        let bytes = header.ram_bytes();
        if at + bytes <= self.segment_bytes {
            return write_whole(&mut pool.bytes_mut(owner, id)[at..at + bytes], header, key, value, ssd_copy);
        }
        let ssd_copy = ssd_copy.map(SsdCopy::to_bytes);
        let ssd_copy = ssd_copy.as_ref().map(|ssd_copy| &ssd_copy[..]);
        pool.write_log(owner, (id, at), &header.encode());
        let mut end = at + HEADER_BYTES;
        for part in std::iter::once(key).chain(value.iter().copied()).chain(ssd_copy) {
            pool.write_log(owner, (id, end), part);
            end += part.len();
        }
        pool.write_log(owner, (id, end), &[0; RAM_ALIGN][..at + bytes - end]);
    }
}

/// Lays a record out in one segment, its end padded with zeros.
fn write_whole(to: &mut [u8], header: &RecordHeader, key: &[u8], value: &[&[u8]], ssd_copy: Option<SsdCopy>) {
    crash::step();
    to[..HEADER_BYTES].copy_from_slice(&header.encode());
    crash::step();
    let mut at = HEADER_BYTES;
    let ssd_copy = ssd_copy.map(SsdCopy::to_bytes);
    for part in std::iter::once(key)
        .chain(value.iter().copied())
        .chain(ssd_copy.as_ref().map(|ssd_copy| &ssd_copy[..]))
    {
        to[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    to[at..].fill(0);
}
