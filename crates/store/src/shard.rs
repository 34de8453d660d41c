//! One slice of the hash space: its index, its RAM segments, its counters. Plain sequential code behind the
//! store's lock.
//!
//! It keeps the invariants: every index entry in state Ram or RamLarge points at a record of this shard, and every
//! change of an entry keeps the SSD table's and the shard's counts true. So its fields are private, and whatever
//! else changes an entry or a count calls a method. Which item lives where is decided in `policy`, what a command
//! means in `commands`.

mod check;
pub(crate) mod evict;
mod log;
pub(crate) mod recover;
mod repair;
pub(crate) mod resize;
mod sampling;
pub(crate) mod tally;

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering::*};
use zerocopy::FromBytes;

use crate::arena::Region;
use crate::clock::Seconds;
use crate::crash;
use crate::index::entry::{Entry, SsdCopy, SsdPlace, State};
use crate::index::hash::KeyHash;
use crate::index::{Index, Inserted, Judge, Slot};
use crate::policy::ghost::Ghost;
use crate::policy::s3fifo::{RamQueue, queue_of_new};
use crate::ram::pool::{LogParts, Owner, Pin, Pool, Queue, Reservation, SegmentId};
use crate::record::{
    Gone, HAS_SSD_COPY, HEADER_BYTES, Head, RAM_ALIGN, Record, RecordHeader, SSD_COPY_BYTES,
};
use crate::sample::Sampler;
use crate::tiers::Tiers;
use tally::{Counts, Tally};

/// The part of a shard that lives in the arena beside its index.
#[derive(FromBytes)]
#[repr(C)]
pub(crate) struct ShardHead {
    /// Changes begun and ended. Odd while one is under way: a process that finds it odd in what another left
    /// repairs the shard. The highest bit is [`GIVEN_UP`].
    changes: AtomicU64,
    /// The record that is being changed where it lies: its place in units of 8 bytes above, its length in such
    /// units (1 for a large record) in the lowest [`REWRITTEN_BITS`]; 0 for none.
    rewritten: u64,
    /// Items in RAM, large ones included.
    pub ram_items: u64,
    /// Bytes of their records.
    pub ram_bytes: u64,
    /// Items that left RAM for nowhere, by the eviction policy.
    pub evictions: u64,
    /// Of these, how many had never been read.
    pub evicted_unread: u64,
    /// Entries that gave way because both their buckets were full.
    pub index_evictions: u64,
    /// Items that gave way to another key, since the index cannot tell the two apart, where that could be known.
    pub index_collisions: u64,
    /// Entries in the index, dead ones included.
    pub index_entries: u64,
    /// Items dropped because the SSD could not take them in time.
    pub admissions_dropped: u64,
    /// Items that the admission policy did not think worth a write.
    pub admissions_refused: u64,
    /// Expired or flushed items whose memory was taken back.
    pub reclaimed: u64,
    /// Of these, how many had expired unread.
    pub expired_unread: u64,
    /// The queues of full segments, by [`RamQueue`].
    pub queues: [Queue; 2],
    /// The segments being filled, likewise: number + 1 above, bytes used below; 0 for none.
    open: [u64; 2],
    /// Buckets of the index in use.
    buckets: u64,
}

const _: () = assert!(size_of::<ShardHead>() == 14 * 8 + 2 * size_of::<Queue>() + 2 * 8, "no padding");

/// In a shard's count of changes: a panic ended a change, so nothing of the shard is believed.
const GIVEN_UP: u64 = 1 << 63;
const REWRITTEN_BITS: u32 = 30;

/// A log segment being filled.
#[derive(Clone, Copy)]
pub(crate) struct Open {
    pub id: SegmentId,
    pub used: usize,
}

/// Where an eviction that had to stop goes on.
#[derive(Clone, Copy)]
struct Cursor {
    id: SegmentId,
    at: usize,
}

/// Lookups that found an item gone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FoundGone {
    pub expired: u64,
    pub flushed: u64,
}

/// Items that left RAM and were not admitted to the SSD, by the reason.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Refusals {
    pub expiring: u64,
    pub limit: u64,
    pub unwanted: u64,
    pub unfit: u64,
}

pub(crate) struct Shard {
    index: Index,
    owner: Owner,
    head: Region<ShardHead>,
    ghost: Ghost<Region<u8>>,
    cursor: Option<Cursor>,
    /// The items in RAM, by queue.
    tally: Tally,
    found_gone: FoundGone,
    refusals: Refusals,
    ssd_false_reads: u64,
    /// Log segments, and what the records that the index points at take of them.
    log_segments: u64,
    log_bytes: u64,
    segment_bytes: usize,
    sampler: Sampler,
}

/// What lies in RAM under an entry.
pub(crate) enum RamRecord<'a> {
    Small(Record<'a>),
    /// A record of the log that lies over the end of its segment.
    Split {
        head: Head<'a>,
        value: LogParts<'a>,
    },
    Large {
        head: SegmentId,
        header: RecordHeader,
        key: &'a [u8],
    },
}

impl RamRecord<'_> {
    pub(crate) fn header(&self) -> &RecordHeader {
        match self {
            RamRecord::Small(record) => &record.header,
            RamRecord::Split { head, .. } => &head.header,
            RamRecord::Large { header, .. } => header,
        }
    }

    pub(crate) fn key(&self) -> &[u8] {
        match self {
            RamRecord::Small(record) => record.key,
            RamRecord::Split { head, .. } => head.key,
            RamRecord::Large { key, .. } => key,
        }
    }
}

impl<'a> RamRecord<'a> {
    /// Returns the value of a record of the log in one piece.
    pub(crate) fn log_value(&self) -> Cow<'a, [u8]> {
        match self {
            RamRecord::Small(record) => Cow::Borrowed(record.value),
            RamRecord::Split { value, .. } => Cow::Owned(value.clone().collect::<Vec<_>>().concat()),
            RamRecord::Large { .. } => unreachable!("a large record is not in the log"),
        }
    }
}

struct SsdJudge<'a> {
    tiers: &'a Tiers,
    now: Seconds,
}

impl Judge for SsdJudge<'_> {
    fn is_live(&self, entry: Entry) -> bool {
        entry.state() != State::Ssd || self.tiers.ssd_is_live(entry, self.now)
    }

    fn age(&self, entry: Entry) -> u64 {
        // What lies in RAM was wanted more recently than anything on the SSD; among its like, the colder goes
        // first.
        match entry.state() {
            State::Ssd => 8 + self.tiers.log.table.age(self.tiers.log.table.place_of(entry)),
            _ => u64::from(4 - entry.freq()),
        }
    }
}

impl Shard {
    pub(crate) fn new(
        index: Index,
        owner: Owner,
        head: Region<ShardHead>,
        ghost: Region<u8>,
        segment_bytes: usize,
    ) -> Shard {
        Shard {
            index,
            owner,
            head,
            ghost: Ghost::new(ghost),
            cursor: None,
            tally: Tally::default(),
            found_gone: FoundGone::default(),
            refusals: Refusals::default(),
            ssd_false_reads: 0,
            log_segments: 0,
            log_bytes: 0,
            segment_bytes,
            sampler: Sampler::default(),
        }
    }

    /// Returns the entries of the next buckets: see [`Index::walk`].
    pub(crate) fn walk_index(&mut self, from: u32, most: u32) -> (Vec<Entry>, Option<u32>) {
        self.index.walk(from, most)
    }

    /// The index, to look up.
    #[inline]
    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// The bytes of a RAM segment of the shard.
    #[inline]
    pub(crate) fn segment<'a>(&'a self, tiers: &'a Tiers, id: SegmentId) -> &'a [u8] {
        tiers.pool.bytes(&self.owner, id)
    }

    /// Keeps a large record of the shard where it lies until the pin is dropped.
    pub(crate) fn pin(&self, tiers: &Tiers, head: SegmentId) -> Pin {
        tiers.pool.pin(&self.owner, head)
    }

    /// Returns what a client can see of a queue.
    pub(crate) fn visible(&self, queue: RamQueue, epoch: u32) -> Counts {
        self.tally.visible(queue, epoch)
    }

    /// Counts a lookup that found an item gone.
    pub(crate) fn count_gone(&mut self, why: Gone) {
        match why {
            Gone::Expired => self.found_gone.expired += 1,
            Gone::Flushed => self.found_gone.flushed += 1,
        }
    }

    /// Returns how many lookups found an item gone.
    pub(crate) fn found_gone(&self) -> FoundGone {
        self.found_gone
    }

    /// Returns how many items were not admitted to the SSD.
    pub(crate) fn refusals(&self) -> Refusals {
        self.refusals
    }

    /// Counts a read of the device that brought another key's item.
    pub(crate) fn count_false_read(&mut self) {
        self.ssd_false_reads += 1;
    }

    /// Returns how many reads of the device brought another key's item.
    pub(crate) fn ssd_false_reads(&self) -> u64 {
        self.ssd_false_reads
    }

    /// Recounts the shard's segments in the pool; for tests.
    pub(crate) fn recount_segments(&self, pool: &Pool) -> (u32, u32) {
        pool.recount(&self.owner)
    }

    /// Begins a change of what the arena holds. Returns whether an earlier one did not come to its end.
    #[inline]
    pub(crate) fn begin_change(&mut self) -> bool {
        let changes = &self.head[0].changes;
        let before = changes.load(Relaxed);
        changes.store(before | 1, Relaxed);
        crash::step();
        before & 1 == 1
    }

    /// Ends a change.
    #[inline]
    pub(crate) fn end_change(&mut self) {
        crash::step();
        self.head[0].rewritten = 0;
        crash::step();
        let changes = &self.head[0].changes;
        changes.store((changes.load(Relaxed) | 1).wrapping_add(1), Relaxed);
        crash::step();
    }

    /// Marks the shard as one of which a later process believes nothing.
    pub(crate) fn give_up(&mut self) {
        let changes = &self.head[0].changes;
        changes.store(changes.load(Relaxed) | GIVEN_UP, Relaxed);
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.head[0].changes.load(Relaxed) & GIVEN_UP != 0
    }

    /// Takes the mark away, from a shard that was emptied.
    fn begin_trusted(&mut self) {
        crash::step();
        let changes = &self.head[0].changes;
        changes.store(changes.load(Relaxed) & !GIVEN_UP, Relaxed);
    }

    /// Names the record that changes where it lies until the change of the shard ends: a process that ends
    /// meanwhile loses it.
    fn begin_rewrite(&mut self, entry: Entry, header: &RecordHeader) {
        let bytes = if entry.state() == State::RamLarge { RAM_ALIGN } else { header.ram_bytes() };
        let place = entry.ram_offset() / RAM_ALIGN as u64;
        self.head_mut().rewritten = place << REWRITTEN_BITS | (bytes / RAM_ALIGN) as u64;
    }

    /// An empty queue's place in the arena, for both queues.
    pub(crate) fn begin_queues(&mut self) {
        self.head_mut().queues = [Queue::new(1), Queue::new(2)];
        self.head_mut().open = [0; 2];
        self.head_mut().buckets = self.index.count().into();
    }

    #[inline]
    pub(crate) fn queue(&self, queue: RamQueue) -> &Queue {
        &self.head().queues[queue as usize]
    }

    /// The segment of a queue that is being filled.
    #[inline]
    pub(crate) fn open(&self, queue: RamQueue) -> Option<Open> {
        let word = self.head().open[queue as usize];
        let id = ((word >> 32) as u32).checked_sub(1)?;
        Some(Open { id: SegmentId(id), used: word as u32 as usize })
    }

    pub(crate) fn set_open(&mut self, queue: RamQueue, open: Option<Open>) {
        let word = open.map_or(0, |open| u64::from(open.id.0 + 1) << 32 | open.used as u64);
        self.head_mut().open[queue as usize] = word;
    }

    /// The counts, to read.
    pub(crate) fn head(&self) -> &ShardHead {
        &self.head[0]
    }

    fn head_mut(&mut self) -> &mut ShardHead {
        crash::step();
        &mut self.head[0]
    }

    /// The record that a Ram or RamLarge entry points at.
    #[inline]
    pub(crate) fn ram_record<'a>(&'a self, tiers: &'a Tiers, entry: Entry) -> RamRecord<'a> {
        let (id, at) = tiers.pool.locate(entry.ram_offset());
        let bytes = tiers.pool.bytes(&self.owner, id);
        if entry.state() == State::RamLarge {
            let at = at + crate::ram::pool::LARGE_PREFIX_BYTES;
            let header = RecordHeader::decode(&bytes[at..]).expect("a chain begins with a header");
            let key = &bytes[at + HEADER_BYTES..at + HEADER_BYTES + usize::from(header.key_len)];
            return RamRecord::Large { head: id, header, key };
        }
        if let Some(record) = Record::parse(&bytes[at..]) {
            return RamRecord::Small(record);
        }
        let head = Head::parse(&bytes[at..]).expect("an entry points at a header and a key");
        let value_at = at + HEADER_BYTES + head.key.len();
        let value = tiers.pool.log_parts(&self.owner, (id, value_at), head.header.value_len as usize);
        RamRecord::Split { head, value }
    }

    /// The place on the SSD of the unchanged copy of a promoted record, if the copy's segment still is what it
    /// was then.
    pub(crate) fn ssd_copy_of(&self, tiers: &Tiers, entry: Entry) -> Option<SsdPlace> {
        let record = self.ram_record(tiers, entry);
        if record.header().item_flags & HAS_SSD_COPY == 0 {
            return None;
        }
        let (id, at) = tiers.pool.locate(entry.ram_offset());
        // That of a large record is kept before it.
        let at = if entry.state() == State::RamLarge { at } else { at + record.header().bytes() };
        let (mut ssd_copy, mut filled) = ([0; SSD_COPY_BYTES], 0);
        for part in tiers.pool.log_parts(&self.owner, (id, at), SSD_COPY_BYTES) {
            ssd_copy[filled..filled + part.len()].copy_from_slice(part);
            filled += part.len();
        }
        let SsdCopy { place, generation } = SsdCopy::from_bytes(&ssd_copy)?;
        (tiers.log.table.current_generation(place) == Some(generation)).then_some(place)
    }

    /// Points the key's entry at `new`, in `old`'s slot or in a fresh one, and keeps all counts. What the entry
    /// led to is given up only then, so that an entry leads to a whole record at every instant.
    pub(crate) fn place(
        &mut self,
        tiers: &Tiers,
        now: Seconds,
        hash: KeyHash,
        old: Option<(Slot, Entry)>,
        new: Entry,
    ) {
        match old {
            Some((slot, old)) => {
                self.index.set(slot, new);
                self.forget(tiers, old);
            }
            None => match self.insert(tiers, now, hash, new) {
                Inserted::Fresh => self.head_mut().index_entries += 1,
                Inserted::OverDead(dead) => self.forget(tiers, dead),
                Inserted::Evicted(victim) => {
                    self.forget(tiers, victim);
                    self.head_mut().index_evictions += 1;
                }
            },
        }
        if new.state() == State::Ssd {
            tiers.log.table.link(new);
        } else {
            let header = *self.ram_record(tiers, new).header();
            let queue = self.queue_with(tiers, new);
            self.tally.add(queue, &header, tiers.epoch());
            let head = self.head_mut();
            head.ram_items += 1;
            head.ram_bytes += header.bytes() as u64;
            if new.state() == State::Ram {
                self.log_bytes += header.ram_bytes() as u64;
            }
        }
    }

    /// Adds an entry to the index. No live entry gives way to it while there is a dead one where others could move.
    fn insert(&mut self, tiers: &Tiers, now: Seconds, hash: KeyHash, new: Entry) -> Inserted {
        let judge = SsdJudge { tiers, now };
        if let Some(inserted) = self.index.try_insert(hash, new, &judge) {
            return inserted;
        }
        self.sweep_around(tiers, self.index.buckets_of(hash));
        self.index.insert(hash, new, &judge)
    }

    /// Counts an item that gives way to a key which is not its own.
    pub(crate) fn count_collision(&mut self) {
        self.head_mut().index_collisions += 1;
    }

    /// Notes that the item of an entry was accessed.
    #[inline]
    pub(crate) fn bump(&mut self, slot: Slot, entry: Entry) {
        let bumped = entry.bumped();
        if bumped != entry {
            self.index.set(slot, bumped);
        }
    }

    /// Clears the entries of a bucket that lead to an earlier filling of an SSD segment, or to a retired one.
    pub(crate) fn sweep_bucket(&mut self, tiers: &Tiers, bucket: u32) {
        let table = &tiers.log.table;
        let is_dead = |entry: Entry| entry.state() == State::Ssd && !table.is_current(table.place_of(entry));
        let swept = self.index.sweep(bucket, is_dead);
        self.head_mut().index_entries -= u64::from(swept);
    }

    /// Clears the dead entries of the buckets to which those of two buckets could move.
    fn sweep_around(&mut self, tiers: &Tiers, both: [u32; 2]) {
        if tiers.log.segments() > 0 {
            self.index.around(both).into_iter().for_each(|bucket| self.sweep_bucket(tiers, bucket));
        }
    }

    /// Clears the dead entries of some buckets from `from` on. Returns how many buckets these were, and the one to go
    /// on with: `None` at the end.
    pub(crate) fn sweep(&mut self, tiers: &Tiers, from: u32, most: u32) -> (u32, Option<u32>) {
        let end = (from + most).min(self.index.count());
        for bucket in from..end {
            self.sweep_bucket(tiers, bucket);
        }
        (end.saturating_sub(from), (end < self.index.count()).then_some(end))
    }

    /// Whether the index can take the key without evicting anything, where that matters.
    pub(crate) fn has_slot(&mut self, tiers: &Tiers, now: Seconds, hash: KeyHash) -> bool {
        tiers.evict || self.index.make_slot(hash, &SsdJudge { tiers, now })
    }

    /// Removes an entry and what it stands for.
    pub(crate) fn remove(&mut self, tiers: &Tiers, slot: Slot, entry: Entry) {
        if entry.state() == State::Ram && !tiers.evict {
            tiers.note_freed(self.ram_record(tiers, entry).header().ram_bytes());
        }
        self.index.set(slot, Entry::EMPTY);
        self.forget(tiers, entry);
        self.head_mut().index_entries -= 1;
    }

    /// Discounts an entry that goes or moves; a large record's memory is given up.
    fn forget(&mut self, tiers: &Tiers, entry: Entry) {
        match entry.state() {
            State::Empty => {}
            State::Ssd => tiers.log.table.unlink(entry),
            State::Ram | State::RamLarge => {
                let header = *self.ram_record(tiers, entry).header();
                let queue = self.queue_with(tiers, entry);
                self.tally.take(queue, &header, tiers.epoch());
                let head = self.head_mut();
                head.ram_items -= 1;
                head.ram_bytes -= header.bytes() as u64;
                if entry.state() == State::Ram {
                    self.log_bytes -= header.ram_bytes() as u64;
                } else {
                    let (id, _) = tiers.pool.locate(entry.ram_offset());
                    self.unqueue(tiers, id);
                    tiers.pool.release(&mut self.owner, id);
                }
            }
        }
    }

    /// Returns the queue that an entry's record belongs to. One that is on its way to the SSD is in none, and
    /// counts as on probation.
    #[inline]
    pub(crate) fn queue_with(&self, tiers: &Tiers, entry: Entry) -> RamQueue {
        let (id, _) = tiers.pool.locate(entry.ram_offset());
        let is_main = tiers.pool.queue_of(id) == RamQueue::Main as u32 + 1
            || self.open(RamQueue::Main).is_some_and(|open| open.id == id);
        if is_main { RamQueue::Main } else { RamQueue::Small }
    }

    /// Counts an item of a large record as moved from one queue to another.
    pub(crate) fn retally(&mut self, tiers: &Tiers, header: &RecordHeader, from: RamQueue, to: RamQueue) {
        self.tally.take(from, header, tiers.epoch());
        self.tally.add(to, header, tiers.epoch());
    }

    /// Takes a segment out of whichever queue it is in.
    pub(crate) fn unqueue(&mut self, tiers: &Tiers, id: SegmentId) {
        let name = tiers.pool.queue_of(id);
        if let Some(queue) = self.head[0].queues.get_mut((name as usize).wrapping_sub(1)) {
            tiers.pool.unqueue(&mut self.owner, queue, id);
        }
    }

    pub(crate) fn enqueue(&mut self, tiers: &Tiers, queue: RamQueue, id: SegmentId) {
        tiers.pool.push_back(&mut self.owner, &mut self.head[0].queues[queue as usize], id);
    }

    /// Gives an emptied log segment back, which is in no queue.
    pub(crate) fn give_back(&mut self, tiers: &Tiers, id: SegmentId) {
        tiers.pool.give_back(&mut self.owner, id);
        self.log_segments -= 1;
    }

    /// Whether dead records take more room than live ones, so that moving the live ones together makes room
    /// too. No segment is ever less than half full for want of a record that fits, and two are open:
    /// beyond these, moving must gain.
    pub(crate) fn is_sparse(&self) -> bool {
        self.log_bytes * 2 < self.log_segments.saturating_sub(2) * self.segment_bytes as u64
    }

    /// Replaces the record under a Ram entry where it lies, if the new one takes exactly as much room.
    pub(crate) fn overwrite(
        &mut self,
        tiers: &Tiers,
        entry: Entry,
        header: &RecordHeader,
        key: &[u8],
        value: &[&[u8]],
    ) -> bool {
        let old = self.ram_record(tiers, entry);
        let header = RecordHeader { item_flags: header.item_flags & !HAS_SSD_COPY, ..*header };
        let bytes = header.ram_bytes();
        if entry.state() != State::Ram || old.header().ram_bytes() != bytes || old.key() != key {
            return false;
        }
        let old = *old.header();
        let old_bytes = old.bytes() as u64;
        let queue = self.queue_with(tiers, entry);
        self.tally.take(queue, &old, tiers.epoch());
        self.tally.add(queue, &header, tiers.epoch());
        self.begin_rewrite(entry, &old);
        let (id, at) = tiers.pool.locate(entry.ram_offset());
        self.write_record(tiers, (id, at), &header, key, value, None);
        let head = self.head_mut();
        head.ram_bytes = head.ram_bytes - old_bytes + header.bytes() as u64;
        true
    }

    /// Changes the header of the record under a Ram or RamLarge entry in place. The lengths must stay. False
    /// when the record is a large one on its way to the SSD, which must not change now.
    pub(crate) fn rewrite_header(
        &mut self,
        tiers: &Tiers,
        entry: Entry,
        change: impl FnOnce(&mut RecordHeader),
    ) -> bool {
        let before = *self.ram_record(tiers, entry).header();
        if self.header_bytes(tiers, entry).is_none() {
            return false;
        }
        let mut header = before;
        change(&mut header);
        debug_assert_eq!(before.bytes(), header.bytes());
        self.begin_rewrite(entry, &before);
        crash::step();
        if let Some(bytes) = self.header_bytes(tiers, entry) {
            bytes.copy_from_slice(&header.encode());
        }
        true
    }

    /// Marks the record under a Ram or RamLarge entry as read, unless it is on its way to the SSD.
    pub(crate) fn mark_read(&mut self, tiers: &Tiers, entry: Entry, now: Seconds) {
        if let Some(bytes) = self.header_bytes(tiers, entry) {
            RecordHeader::mark_read(bytes, now.0);
        }
    }

    /// Marks the small record at a place in RAM as read.
    #[inline]
    pub(crate) fn mark_read_at(&mut self, tiers: &Tiers, (id, at): (SegmentId, usize), now: Seconds) {
        RecordHeader::mark_read(&mut tiers.pool.bytes_mut(&mut self.owner, id)[at..], now.0);
    }

    /// The bytes of the header of the record under a Ram or RamLarge entry, to change; `None` when the record is
    /// a large one on its way to the SSD.
    fn header_bytes<'a>(&'a mut self, tiers: &'a Tiers, entry: Entry) -> Option<&'a mut [u8]> {
        let (id, at) = tiers.pool.locate(entry.ram_offset());
        if entry.state() == State::RamLarge {
            return Some(tiers.pool.header_mut(&mut self.owner, id)?);
        }
        Some(&mut tiers.pool.bytes_mut(&mut self.owner, id)[at..at + HEADER_BYTES])
    }

    /// Cuts a promoted record off from its copy on the SSD, because it has changed. The record keeps its
    /// size.
    pub(crate) fn make_dirty(&mut self, tiers: &Tiers, entry: Entry) {
        let header = *self.ram_record(tiers, entry).header();
        if header.item_flags & HAS_SSD_COPY == 0 {
            return;
        }
        if entry.state() == State::RamLarge {
            let bytes = self.header_bytes(tiers, entry);
            debug_assert!(bytes.is_some(), "a record that changes is not demotion");
            return bytes.into_iter().for_each(RecordHeader::forget_ssd_copy);
        }
        self.begin_rewrite(entry, &header);
        let (id, at) = tiers.pool.locate(entry.ram_offset());
        tiers.pool.write_log(&mut self.owner, (id, at + header.bytes()), &SsdCopy::NO_BYTES);
    }

    /// Makes a large record that has arrived the shard's own; returns its place in the tier. The place of its
    /// `copy` on the SSD, if it has one, is kept before the record.
    pub(crate) fn adopt(
        &mut self,
        tiers: &Tiers,
        queue: RamQueue,
        header: &RecordHeader,
        mut record: Reservation,
        copy: Option<SsdCopy>,
    ) -> u64 {
        let mut header = RecordHeader { item_flags: header.item_flags & !HAS_SSD_COPY, ..*header };
        if let Some(copy) = copy {
            header.item_flags |= HAS_SSD_COPY;
            record.write_prefix(&copy.to_bytes());
        }
        record.write_front(&header.encode());
        let id = tiers.pool.adopt(&mut self.owner, record);
        self.enqueue(tiers, queue, id);
        tiers.pool.offset(id, 0)
    }

    /// Returns the queue of the key's new item, which is also new to the index if `is_new`.
    pub(crate) fn queue_for(&mut self, hash: KeyHash, is_new: bool) -> RamQueue {
        queue_of_new(is_new && self.ghost.recall(hash))
    }

    /// RAM segments in use.
    pub(crate) fn segments(&self) -> u32 {
        let [small, main] = &self.head().queues;
        small.segments + main.segments + self.open_segments()
    }

    fn open_segments(&self) -> u32 {
        self.head().open.iter().filter(|open| **open != 0).count() as u32
    }
}
