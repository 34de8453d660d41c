//! One slice of the hash space: its index, its RAM segments, its counters. Plain sequential code behind the
//! store's lock.
//!
//! This file keeps the invariants: every index entry in state Ram or RamLarge points at a record of this
//! shard, every change of an entry keeps the SSD table's and the shard's counts true. Which item lives where,
//! and what a command means, is decided in `evict` and `ops`.

pub(crate) mod attach;
mod check;
pub(crate) mod tally;

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering::*, compiler_fence};

use crate::arena::Region;
use crate::clock::Seconds;
use crate::crash;
use crate::entry::{Entry, SsdCopy, SsdPlace, State};
use crate::hash::KeyHash;
use crate::index::{Index, Inserted, Judge, Slot};
use crate::ram::pool::{LogParts, Owner, Queue, Reservation, SegmentId};
use crate::record::{HAS_HOME, HEADER_BYTES, HOME_BYTES, Head, Header, RAM_ALIGN, Record};
use crate::tiers::Tiers;
use tally::Tally;

/// The part of a shard that lives in the arena beside its index.
#[repr(C)]
pub(crate) struct ShardHead {
    /// Odd while a change is under way: who finds it odd in what a process left behind resets the shard.
    generation: AtomicU64,
    /// Items in RAM, large ones included.
    pub ram_items: u64,
    /// Bytes of their records.
    pub ram_bytes: u64,
    /// Items that left RAM for nowhere, by the eviction policy.
    pub evictions: u64,
    /// Of these, how many nobody had read.
    pub evicted_unread: u64,
    /// Entries that gave way because both their buckets were full.
    pub index_evictions: u64,
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
}

const _: () = assert!(size_of::<ShardHead>() == 11 * 8 + 2 * size_of::<Queue>() + 2 * 8, "no padding");

/// A record of at most one in this many parts of a segment lies in one segment, and is read without a look at
/// another; what is left at a segment's end is then as little.
const WHOLE_SHARE: usize = 32;

/// Which RAM queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RamQueue {
    /// New items, on probation.
    Small = 0,
    /// Items that were read while on probation, or came back soon after.
    Main = 1,
}

/// A log segment being filled.
#[derive(Clone, Copy)]
pub(crate) struct Open {
    pub id: SegmentId,
    pub used: usize,
}

/// Where an eviction that had to stop goes on.
#[derive(Clone, Copy)]
pub(crate) struct Cursor {
    pub id: SegmentId,
    pub at: usize,
}

pub(crate) struct Shard {
    pub index: Index,
    pub owner: Owner,
    pub head: Region<ShardHead>,
    pub ghost: Region<u8>,
    pub cursor: Option<Cursor>,
    /// The items in RAM, by queue.
    pub tally: Tally,
    /// Lookups that found an item expired, and flushed.
    pub found_expired: u64,
    pub found_flushed: u64,
    /// Log segments, and what the records that the index points at take of them.
    log_segments: u64,
    log_bytes: u64,
    segment_bytes: usize,
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
        header: Header,
        key: &'a [u8],
    },
}

impl RamRecord<'_> {
    pub(crate) fn header(&self) -> &Header {
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
            State::Ssd => 8 + self.tiers.log.table.age(entry.ssd_place()),
            _ => u64::from(4 - entry.hot()),
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
            ghost,
            cursor: None,
            tally: Tally::default(),
            found_expired: 0,
            found_flushed: 0,
            log_segments: 0,
            log_bytes: 0,
            segment_bytes,
        }
    }

    /// Begins a change of what the arena holds; answers whether an earlier one did not come to its end.
    #[inline]
    pub(crate) fn begin_change(&mut self) -> bool {
        let generation = &self.head[0].generation;
        let before = generation.load(Relaxed);
        generation.store(before | 1, Relaxed);
        // One thread's stores reach memory in the order they are made in, or look so to whoever comes after
        // the process: only the compiler must not move any past these words.
        compiler_fence(SeqCst);
        crash::step();
        before & 1 == 1
    }

    /// Ends a change.
    #[inline]
    pub(crate) fn end_change(&mut self) {
        crash::step();
        compiler_fence(SeqCst);
        let generation = &self.head[0].generation;
        generation.store((generation.load(Relaxed) | 1).wrapping_add(1), Relaxed);
        crash::step();
    }

    /// An empty queue's place in the arena, for both queues.
    pub(crate) fn begin_queues(&mut self) {
        self.head_mut().queues = [Queue::new(1), Queue::new(2)];
        self.head_mut().open = [0; 2];
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

    pub(crate) fn head(&self) -> &ShardHead {
        &self.head[0]
    }

    pub(crate) fn head_mut(&mut self) -> &mut ShardHead {
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
            let header = Header::decode(&bytes[at..]).expect("a chain begins with a header");
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
    pub(crate) fn home_of(&self, tiers: &Tiers, entry: Entry) -> Option<SsdPlace> {
        let record = self.ram_record(tiers, entry);
        if record.header().item_flags & HAS_HOME == 0 {
            return None;
        }
        let (id, at) = tiers.pool.locate(entry.ram_offset());
        // That of a large record is kept before it.
        let at = if entry.state() == State::RamLarge { at } else { at + record.header().bytes() };
        let (mut home, mut filled) = ([0; HOME_BYTES], 0);
        for part in tiers.pool.log_parts(&self.owner, (id, at), HOME_BYTES) {
            home[filled..filled + part.len()].copy_from_slice(part);
            filled += part.len();
        }
        let SsdCopy { place, turn } = SsdCopy::from_bytes(&home);
        (tiers.log.table.current_turn(place) == Some(turn)).then_some(place)
    }

    /// Points the key's entry at `new`, in `old`'s slot or in a fresh one, and keeps all counts.
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
                self.forget(tiers, old);
                self.index.set(slot, new);
            }
            None => match self.index.insert(hash, new, &SsdJudge { tiers, now }) {
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

    /// Whether the index can take the key without evicting anything, where that matters.
    pub(crate) fn has_slot(&mut self, tiers: &Tiers, now: Seconds, hash: KeyHash) -> bool {
        tiers.evict || self.index.make_slot(hash, &SsdJudge { tiers, now })
    }

    /// Removes an entry and what it stands for.
    pub(crate) fn remove(&mut self, tiers: &Tiers, slot: Slot, entry: Entry) {
        if entry.state() == State::Ram && !tiers.evict {
            tiers.note_freed(self.ram_record(tiers, entry).header().ram_bytes());
        }
        self.forget(tiers, entry);
        self.index.set(slot, Entry::EMPTY);
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
    pub(crate) fn retally(&mut self, tiers: &Tiers, header: &Header, from: RamQueue, to: RamQueue) {
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

    /// Returns where in a queue's open segment a record begins, or `None` if it begins in a fresh one:
    /// a record that takes little of a segment lies in one, and so do header and key of any.
    fn begins_in(&self, queue: RamQueue, header: &Header) -> Option<Open> {
        let (open, bytes) = (self.open(queue)?, header.ram_bytes());
        let left = self.segment_bytes - open.used;
        let splits =
            bytes > self.segment_bytes / WHOLE_SHARE && left >= HEADER_BYTES + usize::from(header.key_len);
        (bytes <= left || splits).then_some(open)
    }

    /// Returns how many free segments a record in a queue takes.
    pub(crate) fn segments_wanted(&self, queue: RamQueue, header: &Header) -> u32 {
        let left = self.begins_in(queue, header).map_or(0, |open| self.segment_bytes - open.used);
        header.ram_bytes().saturating_sub(left).div_ceil(self.segment_bytes) as u32
    }

    /// Takes room for a record, from the queue's open segment on through as many fresh ones as it
    /// takes. Returns where it begins, or `None` when the pool has too few segments.
    fn room(&mut self, tiers: &Tiers, queue: RamQueue, header: &Header) -> Option<Open> {
        let begin = self.begins_in(queue, header);
        let bytes = header.ram_bytes();
        if let Some(open) = begin
            && open.used + bytes <= self.segment_bytes
        {
            self.set_open(queue, Some(Open { used: open.used + bytes, ..open }));
            return begin;
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
        let start = begin.or(fresh.first().map(|&id| Open { id, used: 0 }))?;
        let mut at = begin;
        let mut left = bytes;
        for id in fresh {
            if let Some(open) = at {
                left -= self.segment_bytes - open.used;
                tiers.pool.link_log(&mut self.owner, open.id, id, left.min(self.segment_bytes));
                self.set_open(queue, Some(Open { used: self.segment_bytes, ..open }));
            }
            self.seal_open(tiers, queue);
            at = Some(Open { id, used: 0 });
            self.set_open(queue, at);
        }
        let open = at?;
        self.set_open(queue, Some(Open { used: open.used + left, ..open }));
        Some(start)
    }

    /// Moves the open segment to the back of its queue, where eviction finds it.
    pub(crate) fn seal_open(&mut self, tiers: &Tiers, queue: RamQueue) {
        if let Some(full) = self.open(queue) {
            self.set_open(queue, None);
            tiers.pool.set_used(&mut self.owner, full.id, full.used);
            self.enqueue(tiers, queue, full.id);
        }
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

    /// Writes a record into a queue's open segment; answers its place in the tier, or `None` when the pool is
    /// empty.
    pub(crate) fn append(
        &mut self,
        tiers: &Tiers,
        queue: RamQueue,
        header: &Header,
        key: &[u8],
        value: &[&[u8]],
        home: Option<SsdCopy>,
    ) -> Option<u64> {
        let mut header = *header;
        header.item_flags =
            if home.is_some() { header.item_flags | HAS_HOME } else { header.item_flags & !HAS_HOME };
        let open = self.room(tiers, queue, &header)?;
        self.write_record(tiers, (open.id, open.used), &header, key, value, home);
        Some(tiers.pool.offset(open.id, open.used))
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
        let open = self.room(tiers, queue, &header)?;
        tiers.pool.copy_log(&mut self.owner, from, (open.id, open.used), bytes);
        Some(tiers.pool.offset(open.id, open.used))
    }

    /// Replaces the record under a Ram entry where it lies, if the new one takes exactly as much room.
    pub(crate) fn overwrite(
        &mut self,
        tiers: &Tiers,
        entry: Entry,
        header: &Header,
        key: &[u8],
        value: &[&[u8]],
    ) -> bool {
        let old = self.ram_record(tiers, entry);
        let header = Header { item_flags: header.item_flags & !HAS_HOME, ..*header };
        let bytes = header.ram_bytes();
        if entry.state() != State::Ram || old.header().ram_bytes() != bytes || old.key() != key {
            return false;
        }
        let old = *old.header();
        let old_bytes = old.bytes() as u64;
        let queue = self.queue_with(tiers, entry);
        self.tally.take(queue, &old, tiers.epoch());
        self.tally.add(queue, &header, tiers.epoch());
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
        change: impl FnOnce(&mut Header),
    ) -> bool {
        let (id, at) = tiers.pool.locate(entry.ram_offset());
        let bytes = if entry.state() == State::RamLarge {
            let Some(bytes) = tiers.pool.header_mut(&mut self.owner, id) else {
                return false;
            };
            &mut bytes[..]
        } else {
            &mut tiers.pool.bytes_mut(&mut self.owner, id)[at..at + HEADER_BYTES]
        };
        let mut header = Header::decode(bytes).expect("32 bytes");
        let before = header.bytes();
        change(&mut header);
        debug_assert_eq!(before, header.bytes());
        crash::step();
        bytes.copy_from_slice(&header.encode());
        true
    }

    /// Cuts a promoted record off from its copy on the SSD, because it has changed. The record keeps its
    /// size.
    pub(crate) fn make_dirty(&mut self, tiers: &Tiers, entry: Entry) {
        let header = *self.ram_record(tiers, entry).header();
        if header.item_flags & HAS_HOME == 0 {
            return;
        }
        if entry.state() == State::RamLarge {
            let cut_off = self.rewrite_header(tiers, entry, |header| header.item_flags &= !HAS_HOME);
            debug_assert!(cut_off, "a record that changes is not landing");
            return;
        }
        let (id, at) = tiers.pool.locate(entry.ram_offset());
        let nowhere = SsdCopy { place: SsdPlace::NOWHERE, turn: 0 }.to_bytes();
        crash::step();
        tiers.pool.write_log(&mut self.owner, (id, at + header.bytes()), &nowhere);
    }

    /// Makes a large record that has arrived the shard's own; answers its place in the tier. The place of its
    /// `copy` on the SSD, if it has one, is kept before the record.
    pub(crate) fn adopt(
        &mut self,
        tiers: &Tiers,
        queue: RamQueue,
        header: &Header,
        mut record: Reservation,
        copy: Option<SsdCopy>,
    ) -> u64 {
        let mut header = Header { item_flags: header.item_flags & !HAS_HOME, ..*header };
        if let Some(copy) = copy {
            header.item_flags |= HAS_HOME;
            record.write_prefix(&copy.to_bytes());
        }
        record.write_front(&header.encode());
        let id = tiers.pool.adopt(&mut self.owner, record);
        self.enqueue(tiers, queue, id);
        tiers.pool.offset(id, 0)
    }

    /// Remembers a key that left, in case it comes back soon.
    pub(crate) fn remember(&mut self, hash: KeyHash) {
        if !self.ghost.is_empty() {
            let at = hash.bucket(self.ghost.len() as u32) as usize;
            self.ghost[at] = hash.fingerprint();
        }
    }

    /// Whether the key left not long ago; forgets that it did.
    pub(crate) fn recall(&mut self, hash: KeyHash) -> bool {
        if self.ghost.is_empty() {
            return false;
        }
        let at = hash.bucket(self.ghost.len() as u32) as usize;
        let known = self.ghost[at] == hash.fingerprint();
        if known {
            self.ghost[at] = 0;
        }
        known
    }

    /// RAM segments in use.
    pub(crate) fn segments(&self) -> u32 {
        let [small, main] = &self.head().queues;
        small.segments + main.segments + self.open_segments()
    }

    fn open_segments(&self) -> u32 {
        self.head().open.iter().filter(|open| **open != 0).count() as u32
    }

    /// Lays a record out in the log, its end padded with zeros.
    fn write_record(
        &mut self,
        tiers: &Tiers,
        (id, at): (SegmentId, usize),
        header: &Header,
        key: &[u8],
        value: &[&[u8]],
        home: Option<SsdCopy>,
    ) {
        let (pool, owner) = (&tiers.pool, &mut self.owner);
        let bytes = header.ram_bytes();
        if at + bytes <= self.segment_bytes {
            return write_whole(&mut pool.bytes_mut(owner, id)[at..at + bytes], header, key, value, home);
        }
        let home = home.map(SsdCopy::to_bytes);
        let home = home.as_ref().map(|home| &home[..]);
        pool.write_log(owner, (id, at), &header.encode());
        let mut end = at + HEADER_BYTES;
        for part in std::iter::once(key).chain(value.iter().copied()).chain(home) {
            pool.write_log(owner, (id, end), part);
            end += part.len();
        }
        pool.write_log(owner, (id, end), &[0; RAM_ALIGN][..at + bytes - end]);
    }
}

/// Lays a record out in one segment, its end padded with zeros.
fn write_whole(to: &mut [u8], header: &Header, key: &[u8], value: &[&[u8]], home: Option<SsdCopy>) {
    crash::step();
    to[..HEADER_BYTES].copy_from_slice(&header.encode());
    crash::step();
    let mut at = HEADER_BYTES;
    let home = home.map(SsdCopy::to_bytes);
    for part in std::iter::once(key).chain(value.iter().copied()).chain(home.as_ref().map(|home| &home[..])) {
        to[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    to[at..].fill(0);
}
