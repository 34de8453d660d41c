//! Empties a RAM segment: keeps, demotes or drops each of its records, as `policy::s3fifo` decides.

use super::{Cursor, RamRecord, Shard};
use crate::clock::{Expiry, Seconds};
use crate::index::Slot;
use crate::index::entry::{Entry, SsdPlace, State};
use crate::index::hash::KeyHash;
use crate::policy::admission::Refusal;
use crate::policy::s3fifo::{Exit, Leaving, RamQueue, exit_of, freq_on_ssd, kept_freq, victim_order};
use crate::ram::pool::{LARGE_PREFIX_BYTES, SegmentId};
use crate::record::{FETCHED, Head, RecordHeader, STORED_AGAIN};
use crate::ssd::SSD_VALUE_BYTES_MAX;
use crate::ssd::log::Refused;
use crate::ssd::log::stream::Stream;
use crate::tiers::Tiers;

/// What to do when the SSD cannot take a record just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFull {
    /// Stop and say [`Busy`](crate::Step::Busy): a write that completes will make room.
    Wait,
    /// Drop the record, count it, go on.
    Drop,
}

/// How an eviction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evicted {
    /// A segment was emptied and given back (survivors may have taken another).
    Segment,
    /// So many of a segment's records have gone as the step allowed.
    Part,
    /// The SSD is behind; nothing is lost, part of the segment may have gone.
    Blocked,
    /// There is nothing that may leave.
    Nothing,
}

/// What a segment costs beside its records, to seal and write a large one, to unqueue and to give back: one for
/// so many bytes of it, and at most as much.
const SEGMENT_WORK_BYTES: usize = 1024;
const SEGMENT_WORK_MAX: usize = 64;

/// Returns the frequency that an item has on the SSD.
fn freq_there(entry: Entry, header: &RecordHeader) -> u8 {
    freq_on_ssd(entry.freq(), header.item_flags & FETCHED != 0)
}

enum Fate {
    Gone,
    Keep(u8),
    ToSsdCopy(SsdPlace),
    Demote,
    Drop(Refusal),
}

impl Shard {
    /// Whether a segment's first record has expired or been flushed, and so, by likelihood, have those behind
    /// it.
    fn looks_spent(&self, tiers: &Tiers, now: Seconds, id: SegmentId) -> bool {
        let at = if tiers.pool.is_large(id) { LARGE_PREFIX_BYTES } else { tiers.pool.first(id) };
        let header = RecordHeader::decode(&tiers.pool.bytes(&self.owner, id)[at..]);
        header.is_some_and(|header| header.is_gone(now, tiers.epoch()))
    }

    fn next_victim(&mut self, tiers: &Tiers, now: Seconds) -> Option<(RamQueue, SegmentId)> {
        if let Some(cursor) = self.cursor {
            let queue = if tiers.pool.queue_of(cursor.id) == 1 { RamQueue::Small } else { RamQueue::Main };
            return Some((queue, cursor.id));
        }
        // Expired and flushed items go before any other.
        let spent = self.queue(RamQueue::Main).front().is_some_and(|id| self.looks_spent(tiers, now, id));
        let order = victim_order(self.queue(RamQueue::Small).segments, self.segments(), spent);
        if let Some(found) = order.iter().find_map(|&q| self.queue(q).front().map(|id| (q, id))) {
            return Some(found);
        }
        for queue in order {
            self.seal_open(tiers, queue);
        }
        order.iter().find_map(|&q| self.queue(q).front().map(|id| (q, id)))
    }

    /// Empties the segment that is next in line, as far as `work` records go.
    pub(crate) fn evict_segment(
        &mut self,
        tiers: &Tiers,
        now: Seconds,
        on_full: OnFull,
        work: &mut u32,
    ) -> Evicted {
        let Some((queue, id)) = self.next_victim(tiers, now) else {
            return Evicted::Nothing;
        };
        let segment_work = (tiers.pool.segment_bytes() / SEGMENT_WORK_BYTES).min(SEGMENT_WORK_MAX);
        *work = work.saturating_sub(segment_work as u32);
        if tiers.pool.is_large(id) {
            return self.evict_large(tiers, now, on_full, queue, id);
        }
        let used = tiers.pool.used(id);
        let mut at = self.cursor.take().map_or(tiers.pool.first(id), |cursor| cursor.at);
        while at < used {
            if *work == 0 {
                self.cursor = Some(Cursor { id, at });
                return Evicted::Part;
            }
            *work -= 1;
            let bytes = &tiers.pool.bytes(&self.owner, id)[at..used];
            let Some(record) = Head::parse(bytes) else { break };
            let (header, hash) = (record.header, tiers.hasher.hash(record.key));
            let here = Entry::ram(hash, 0, State::Ram, tiers.pool.offset(id, at));
            if let Some((slot, entry)) = self.index.find_place(hash, here)
                && !self.retire(tiers, now, on_full, queue, hash, slot, entry)
            {
                self.cursor = Some(Cursor { id, at });
                return Evicted::Blocked;
            }
            at += header.ram_bytes();
        }
        self.unqueue(tiers, id);
        self.give_back(tiers, id);
        Evicted::Segment
    }

    fn fate(
        &self,
        tiers: &Tiers,
        now: Seconds,
        queue: RamQueue,
        entry: Entry,
        header: &RecordHeader,
    ) -> Fate {
        if header.is_gone(now, tiers.epoch()) {
            return Fate::Gone;
        }
        let mean_bytes = self.head().ram_bytes / self.head().ram_items.max(1);
        if let Some(freq) = kept_freq(queue, entry.freq(), header.bytes() as u64, mean_bytes) {
            return Fate::Keep(freq);
        }
        if let Some(ssd_copy) = self.ssd_copy_of(tiers, entry) {
            // An item that is being moved is not looked at twice.
            if tiers.place_is_live(ssd_copy, now) && !tiers.log.table.is_cleaning(ssd_copy) {
                return Fate::ToSsdCopy(ssd_copy);
            }
        }
        let log = &tiers.log;
        let is_rationed = tiers.admission.get().is_rationing(log.budget.is_limited(), || log.is_full());
        let leaving = Leaving {
            queue,
            is_stored_again: header.item_flags & STORED_AGAIN != 0,
            seconds_left: Expiry::from_raw(header.expires).seconds_left(now),
            fits_ssd: !log.is_off() && header.value_len as usize <= SSD_VALUE_BYTES_MAX,
            is_rationed: is_rationed && tiers.evict,
            may_write: log.budget.allows(now),
            // Room that overwritten records take does not evict items that fit.
            must_stay: !tiers.evict || entry.state() == State::Ram && self.is_sparse(),
        };
        match exit_of(&leaving) {
            Exit::Demote => Fate::Demote,
            Exit::Drop(refusal) => Fate::Drop(refusal),
            Exit::Stay => Fate::Keep(entry.freq()),
        }
    }

    /// Keeps, demotes or drops one record of a segment that is being emptied. Returns false if that must wait for
    /// writes to the SSD.
    #[expect(clippy::too_many_arguments, reason = "one record's whole situation")]
    fn retire(
        &mut self,
        tiers: &Tiers,
        now: Seconds,
        on_full: OnFull,
        queue: RamQueue,
        hash: KeyHash,
        slot: Slot,
        entry: Entry,
    ) -> bool {
        let header = *self.ram_record(tiers, entry).header();
        let freq_there = freq_there(entry, &header);
        match self.fate(tiers, now, queue, entry, &header) {
            Fate::Gone => self.reclaim(tiers, slot, entry, &header),
            Fate::Keep(freq) => return self.keep(tiers, now, hash, slot, entry.with_freq(freq)),
            Fate::ToSsdCopy(ssd_copy) => {
                let there = tiers.log.table.entry(hash, freq_there, ssd_copy);
                self.place(tiers, now, hash, Some((slot, entry)), there);
            }
            Fate::Demote => {
                let record = self.ram_record(tiers, entry);
                let (key, value) = (record.key(), record.log_value());
                let header =
                    RecordHeader { item_flags: header.item_flags & !crate::record::HAS_SSD_COPY, ..header };
                match tiers.log.append(Stream::of(&header, now), &header, key, &value) {
                    Ok(place) => {
                        self.note_departure(tiers, entry, true);
                        let there = tiers.log.table.entry(hash, freq_there, place);
                        self.place(tiers, now, hash, Some((slot, entry)), there);
                    }
                    Err(Refused::Full) if on_full == OnFull::Wait || !tiers.evict => return false,
                    Err(_) if !tiers.evict => return self.keep(tiers, now, hash, slot, entry),
                    Err(refused) => {
                        self.head_mut().admissions_dropped += u64::from(refused == Refused::Full);
                        self.drop_item(tiers, hash, slot, entry, &header);
                    }
                }
            }
            Fate::Drop(refusal) => self.refuse(tiers, refusal, hash, slot, entry, &header),
        }
        true
    }

    /// Moves a record on to the main queue; false when nothing may be dropped and there is no room to.
    fn keep(&mut self, tiers: &Tiers, now: Seconds, hash: KeyHash, slot: Slot, entry: Entry) -> bool {
        match self.copy_record(tiers, RamQueue::Main, entry) {
            Some(offset) => {
                let moved = Entry::ram(hash, entry.freq(), State::Ram, offset);
                self.place(tiers, now, hash, Some((slot, entry)), moved);
            }
            None if !tiers.evict => return false,
            None => {
                let header = *self.ram_record(tiers, entry).header();
                self.drop_item(tiers, hash, slot, entry, &header);
            }
        }
        true
    }

    /// Takes the memory of an expired or flushed item back.
    pub(crate) fn reclaim(&mut self, tiers: &Tiers, slot: Slot, entry: Entry, header: &RecordHeader) {
        self.remove(tiers, slot, entry);
        let head = self.head_mut();
        head.reclaimed += 1;
        head.expired_unread += u64::from(header.item_flags & FETCHED == 0);
    }

    /// Drops an item that is not admitted to the SSD. Without an SSD, nothing is refused.
    fn refuse(
        &mut self,
        tiers: &Tiers,
        refusal: Refusal,
        hash: KeyHash,
        slot: Slot,
        entry: Entry,
        header: &RecordHeader,
    ) {
        if !tiers.log.is_off() {
            self.head_mut().admissions_refused += 1;
            *match refusal {
                Refusal::Expiring => &mut self.refusals.expiring,
                Refusal::Limit => &mut self.refusals.limit,
                Refusal::Unwanted => &mut self.refusals.unwanted,
                Refusal::Unfit => &mut self.refusals.unfit,
            } += 1;
        }
        self.drop_item(tiers, hash, slot, entry, header);
    }

    fn drop_item(&mut self, tiers: &Tiers, hash: KeyHash, slot: Slot, entry: Entry, header: &RecordHeader) {
        self.note_departure(tiers, entry, false);
        self.remove(tiers, slot, entry);
        self.ghost.remember(hash);
        let head = self.head_mut();
        head.evictions += 1;
        head.evicted_unread += u64::from(header.item_flags & FETCHED == 0);
    }

    fn evict_large(
        &mut self,
        tiers: &Tiers,
        now: Seconds,
        on_full: OnFull,
        queue: RamQueue,
        id: SegmentId,
    ) -> Evicted {
        let here = tiers.pool.offset(id, 0);
        let probe = Entry::ram(KeyHash::default(), 0, State::RamLarge, here);
        let RamRecord::Large { header, key, .. } = self.ram_record(tiers, probe) else {
            return Evicted::Nothing;
        };
        let hash = tiers.hasher.hash(key);
        let here = Entry::ram(hash, 0, State::RamLarge, here);
        // A large record whose entry went was released with it, so whatever is queued is indexed.
        let (slot, entry) = self.index.find_place(hash, here).expect("a queued large record is indexed");
        match self.fate(tiers, now, queue, entry, &header) {
            Fate::Gone => self.reclaim(tiers, slot, entry, &header),
            Fate::Keep(freq) => return self.keep_large(tiers, queue, slot, entry.with_freq(freq)),
            Fate::ToSsdCopy(ssd_copy) => {
                let there = tiers.log.table.entry(hash, freq_there(entry, &header), ssd_copy);
                self.place(tiers, now, hash, Some((slot, entry)), there);
            }
            Fate::Demote => {
                // The room before the record is the extent's header from here on.
                self.make_dirty(tiers, entry);
                let header =
                    RecordHeader { item_flags: header.item_flags & !crate::record::HAS_SSD_COPY, ..header };
                tiers.pool.begin_demotion(&mut self.owner, id);
                let pin = tiers.pool.pin(&self.owner, id);
                match tiers.log.append_large(Stream::of(&header, now), &header, pin, hash, entry) {
                    Ok(()) => {
                        self.unqueue(tiers, id);
                        self.retally(tiers, &header, queue, RamQueue::Small);
                        return Evicted::Blocked;
                    }
                    Err(refused) => {
                        tiers.pool.end_demotion(&mut self.owner, id);
                        if refused == Refused::Full && (on_full == OnFull::Wait || !tiers.evict) {
                            return Evicted::Blocked;
                        }
                        if !tiers.evict {
                            return self.keep_large(tiers, queue, slot, entry);
                        }
                        self.head_mut().admissions_dropped += u64::from(refused == Refused::Full);
                        self.drop_item(tiers, hash, slot, entry, &header);
                    }
                }
            }
            Fate::Drop(refusal) => self.refuse(tiers, refusal, hash, slot, entry, &header),
        }
        Evicted::Segment
    }

    fn keep_large(&mut self, tiers: &Tiers, queue: RamQueue, slot: Slot, entry: Entry) -> Evicted {
        let (id, _) = tiers.pool.locate(entry.ram_offset());
        let header = *self.ram_record(tiers, entry).header();
        self.retally(tiers, &header, queue, RamQueue::Main);
        self.unqueue(tiers, id);
        self.enqueue(tiers, RamQueue::Main, id);
        self.index.set(slot, entry);
        if tiers.evict { Evicted::Segment } else { Evicted::Blocked }
    }

    /// Moves a large record's entry to its place on the SSD. An item in RAM whose demotion failed is dropped;
    /// one that was to be moved from another segment stays there, to go with it.
    pub(crate) fn end_demotion(
        &mut self,
        tiers: &Tiers,
        now: Seconds,
        demotion: &crate::ssd::write::Demotion,
    ) {
        let Some((slot, entry)) = self.index.find_place(demotion.hash, demotion.from) else {
            return;
        };
        if entry.state() == State::Ssd {
            if let Some(to) = demotion.to {
                let there = tiers.log.table.entry(demotion.hash, entry.freq(), to);
                self.place(tiers, now, demotion.hash, Some((slot, entry)), there);
            }
            return;
        }
        let (id, _) = tiers.pool.locate(entry.ram_offset());
        let header = *self.ram_record(tiers, entry).header();
        let freq_there = freq_there(entry, &header);
        tiers.pool.end_demotion(&mut self.owner, id);
        let Some(to) = demotion.to else {
            self.head_mut().admissions_dropped += 1;
            return self.drop_item(tiers, demotion.hash, slot, entry, &header);
        };
        self.note_departure(tiers, entry, true);
        let there = tiers.log.table.entry(demotion.hash, freq_there, to);
        self.place(tiers, now, demotion.hash, Some((slot, entry)), there);
    }

    /// Notes an item that is about to leave RAM, if that is watched.
    fn note_departure(&self, tiers: &Tiers, entry: Entry, on_ssd: bool) {
        if tiers.departures.is_on() {
            let record = self.ram_record(tiers, entry);
            tiers.departures.note(record.header(), record.key(), on_ssd);
        }
    }
}
