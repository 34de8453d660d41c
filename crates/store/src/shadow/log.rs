//! A shadow's SSD: a log of segments that is reused as the store's is, and holds the sizes of records only.

use std::collections::VecDeque;

use super::items::{Item, Items, Place, SEGMENTS_MAX, SsdPlace, spread};
use super::prefixes::{Parts, part_of};
use super::queue::Record;
use crate::policy::cleaning::{Ssd, gain, moves_live_records, reserved_segments};
use crate::policy::readmission::{ByAge, Readmission, age};
use crate::store::Geometry;

/// The most segments that a shadow's SSD has: more of them hardly change what is found.
const SEGMENTS: u32 = 64;
/// What a page holds, in bytes.
const PAGE_BYTES: f64 = 4096.0;
const CONTENT_BYTES: f64 = 4080.0;
/// A page that has so little room left begins no record that does not fit it.
const ROOM_BYTES: f64 = 256.0;
/// The most pages of a record that need not begin a page.
const SPREAD_PAGES: f64 = 16.0;
/// Streams as the store has: short-lived, long-lived, readmitted.
const STREAMS: usize = 3;
/// The weight of the last decision whether live records are moved among all, and the share of close ones from which on
/// it hangs on little.
const CLOSE_WEIGHT: f64 = 0.05;
const CLOSE_SHARE: f64 = 0.1;
const STREAMS_SEGMENTS_MIN: u32 = 2 * STREAMS as u32;
const SHORT: usize = 0;
const LONG: usize = 1;
const READMITTED: usize = 2;

/// Returns the bytes that a record takes on the SSD, with its part of what is wasted at the ends of pages, and of write
/// buffers of so many bytes.
pub(crate) fn bytes_there(bytes: u32, write_buffer_bytes: f64) -> f64 {
    let bytes = f64::from(bytes);
    if bytes > SPREAD_PAGES * CONTENT_BYTES {
        return ((bytes + PAGE_BYTES - CONTENT_BYTES) / PAGE_BYTES).ceil() * PAGE_BYTES;
    }
    let lost_a_page = if bytes < ROOM_BYTES { bytes / 2.0 } else { ROOM_BYTES / 2.0 * ROOM_BYTES / bytes };
    // A record that does not fit a buffer leaves a part of its last page: half of the record, or of the page.
    let lost_a_buffer = bytes.min(CONTENT_BYTES) / 2.0;
    bytes * PAGE_BYTES / CONTENT_BYTES
        * (1.0 + lost_a_page / CONTENT_BYTES + lost_a_buffer / write_buffer_bytes)
}

/// Returns a number from 0 to 1 that is always the same for an item.
fn unit(tag: u32) -> f64 {
    f64::from(spread(tag)) / f64::from(u32::MAX)
}

/// Returns the pages by which a record's share of a segment is counted.
fn pages(bytes: u32) -> u32 {
    (f64::from(bytes) / CONTENT_BYTES).ceil() as u32
}

#[derive(Default)]
struct Segment {
    records: Vec<Record>,
    generation: u16,
    used_bytes: f64,
    live: u32,
    live_pages: u32,
    written_pages: u32,
    /// Records that were read here for the first time.
    hot: u32,
    birth: u32,
    /// Whether it holds records that were written again.
    is_again: bool,
    /// The latest expiry of its records, all ones for never.
    expires: u32,
}

/// What the log has done, in records' bytes and in bytes written, of the sample.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    pub admitted_bytes: f64,
    pub device_bytes: f64,
}

/// The log.
pub(super) struct Log {
    segments: Vec<Segment>,
    free: VecDeque<u16>,
    sealed: VecDeque<u16>,
    open: [Option<u16>; STREAMS],
    /// The segment that is reused next: what of it is readmitted has been, and the others stay until it is needed.
    next: Option<u16>,
    births: u32,
    /// Hits since a segment was last reused, and what follows from them.
    hits: ByAge,
    readmission: Readmission,
    live_percent_max: u32,
    write_buffer_bytes: f64,
    live: u64,
    has_wrapped: bool,
    /// The share of the last decisions whether live records are moved that were close.
    close: f64,
    pub written: Written,
    /// Bytes written of the sample, by the label of the item and the part of the sample; empty if nothing asks for it.
    pub written_by_label: Vec<Parts>,
}

impl Log {
    /// An empty log in place of the SSD of such a cache.
    pub(super) fn new(geometry: &Geometry, live_percent_max: u32) -> Log {
        let count = geometry.ssd_segments.min(SEGMENTS) as u16;
        const { assert!(SEGMENTS <= SEGMENTS_MAX as u32) };
        Log {
            segments: (0..count).map(|_| Segment::default()).collect(),
            free: (0..count).collect(),
            sealed: VecDeque::new(),
            open: [None; STREAMS],
            next: None,
            births: 0,
            hits: ByAge::default(),
            readmission: Readmission::new(count.into()),
            live_percent_max,
            write_buffer_bytes: f64::from(geometry.write_buffer_bytes),
            live: 0,
            has_wrapped: false,
            close: 0.0,
            written: Written::default(),
            written_by_label: Vec::new(),
        }
    }

    /// Returns how many bytes each of its segments stands for, if `segments` of `segment_bytes` are in use: more than
    /// there are, if the reserved ones and the open ones are a larger part of the few.
    pub(super) fn segment_bytes(&self, segments: u32, segment_bytes: u64) -> f64 {
        let usable = |count: u32| {
            let open = if count < STREAMS_SEGMENTS_MIN { 0.5 } else { 1.0 };
            f64::from(count) - reserved_segments(count) as f64 - open
        };
        let here = usable(self.segments.len() as u32).max(0.5);
        segment_bytes as f64 * usable(segments).max(0.5) / here
    }

    fn bytes_there(&self, record: Record) -> f64 {
        bytes_there(record.bytes, self.write_buffer_bytes)
    }

    pub(super) fn segments(&self) -> usize {
        self.segments.len()
    }

    pub(super) fn live(&self) -> u64 {
        self.live
    }

    /// Whether it hangs on little if live records are moved.
    pub(super) fn is_on_edge(&self) -> bool {
        self.close > CLOSE_SHARE
    }

    /// Whether every segment has been used.
    pub(super) fn has_wrapped(&self) -> bool {
        self.has_wrapped || self.segments.is_empty()
    }

    /// Returns the memory that the log takes, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.segments.iter().map(|segment| segment.records.capacity() * size_of::<Record>()).sum()
    }

    fn reserved(&self) -> usize {
        reserved_segments(self.segments.len() as u32)
    }

    /// Whether the next segment to open would cost live items, as in the store.
    pub(super) fn is_full(&self) -> bool {
        let mean = self.live / (self.segments.len() as u64).max(1);
        let live = self
            .next
            .or(self.sealed.front().copied())
            .map_or(0, |segment| self.segments[usize::from(segment)].live);
        self.free.len() <= self.reserved() && 2 * u64::from(live) > mean
    }

    /// Whether a place still is what it was, at second `now`.
    pub(super) fn is_live(&self, place: SsdPlace, now: u32) -> bool {
        let segment = &self.segments[usize::from(place.segment)];
        segment.generation == place.generation && segment.expires > now
    }

    /// Counts an item that a place holds again.
    pub(super) fn link(&mut self, place: SsdPlace, bytes: u32) {
        let segment = &mut self.segments[usize::from(place.segment)];
        segment.live += 1;
        segment.live_pages += pages(bytes);
        self.live += 1;
    }

    /// Discounts an item that a place holds no longer.
    pub(super) fn unlink(&mut self, place: SsdPlace, bytes: u32) {
        let segment = &mut self.segments[usize::from(place.segment)];
        if segment.generation == place.generation && segment.live > 0 {
            segment.live -= 1;
            segment.live_pages = segment.live_pages.saturating_sub(pages(bytes));
            self.live -= 1;
        }
    }

    /// Counts a hit.
    pub(super) fn count_hit(&mut self, place: SsdPlace) {
        *self.hits.of(self.segments[usize::from(place.segment)].is_again, self.quarter(place.segment)) += 1.0;
    }

    /// Returns the age of a segment, in quarters of a turn.
    fn quarter(&self, segment: u16) -> usize {
        age(self.births - self.segments[usize::from(segment)].birth, self.segments.len() as u32)
    }

    /// Returns the share of the segment that is reused next that may be written again.
    fn readmitted_share(&mut self, at: &At) -> f64 {
        let mut segments = ByAge::default();
        for &number in self.sealed.iter().chain(self.open.iter().flatten()) {
            let segment = &self.segments[usize::from(number)];
            *segments.of(segment.is_again, self.quarter(number)) +=
                (segment.used_bytes / at.segment_bytes).min(1.0);
        }
        self.readmission.reuse(&std::mem::take(&mut self.hits), &segments)
    }

    /// Counts the first read of an item here.
    pub(super) fn mark_hot(&mut self, place: SsdPlace) {
        self.segments[usize::from(place.segment)].hot += 1;
    }

    /// Writes the record of an item that leaves RAM, and returns its place. `None` if there is no room.
    pub(super) fn append(
        &mut self,
        items: &mut Items,
        record: Record,
        is_short_lived: bool,
        at: &At,
    ) -> Option<SsdPlace> {
        self.written.admitted_bytes += f64::from(record.bytes);
        let stream = if is_short_lived { SHORT } else { LONG };
        self.write(items, record, stream, at)
    }

    fn write(&mut self, items: &mut Items, record: Record, stream: usize, at: &At) -> Option<SsdPlace> {
        let has_streams = self.segments.len() as u32 >= STREAMS_SEGMENTS_MIN;
        let stream = if has_streams { stream } else { LONG };
        let &Item { expires, label, .. } = items.get(record.tag)?;
        let bytes = self.bytes_there(record);
        let open = self.open[stream];
        let fits = |log: &Log, open: u16| {
            log.segments[usize::from(open)].used_bytes + bytes <= at.segment_bytes
                || log.segments[usize::from(open)].records.is_empty()
        };
        let number = match open.filter(|&open| fits(self, open)) {
            Some(open) => open,
            None => {
                self.sealed.extend(self.open[stream].take());
                let number = self.take_segment(items, stream, at)?;
                self.births += 1;
                self.segments[usize::from(number)].birth = self.births;
                self.segments[usize::from(number)].is_again = stream == READMITTED;
                self.open[stream] = Some(number);
                number
            }
        };
        self.written.device_bytes += bytes;
        if let Some(written) = self.written_by_label.get_mut(usize::from(label)) {
            written[part_of(record.tag)] += bytes;
        }
        let segment = &mut self.segments[usize::from(number)];
        segment.records.push(record);
        segment.used_bytes += bytes;
        segment.written_pages += pages(record.bytes);
        segment.expires = segment.expires.max(if expires == 0 { u32::MAX } else { expires });
        let place = SsdPlace { segment: number, generation: segment.generation };
        let is_next_due = segment.used_bytes >= at.segment_bytes / 4.0;
        self.link(place, record.bytes);
        if is_next_due && stream != READMITTED {
            self.reclaim(items, at);
        }
        Some(place)
    }

    fn take_segment(&mut self, items: &mut Items, stream: usize, at: &At) -> Option<u16> {
        if stream == READMITTED {
            // The reserved one; or, unless all live records are moved, the very one that they are read from.
            return self.free.pop_front().or_else(|| self.take_next(items));
        }
        self.reclaim(items, at);
        if self.free.len() > self.reserved() {
            return self.free.pop_front();
        }
        self.take_next(items)
    }

    /// Drops what is left in the segment that is reused next.
    fn take_next(&mut self, items: &mut Items) -> Option<u16> {
        let next = self.next.take()?;
        self.empty(items, next);
        Some(next)
    }

    /// Frees segments or selects the next one, while few are free.
    fn reclaim(&mut self, items: &mut Items, at: &At) {
        while self.next.is_none() && self.free.len() <= self.reserved() {
            let Some((number, moves_all)) = self.victim(at) else { return };
            self.has_wrapped = true;
            self.sealed.retain(|sealed| *sealed != number);
            if moves_all {
                self.move_records(items, number, true, at);
                self.empty(items, number);
                self.free.push_back(number);
            } else {
                self.next = Some(number);
                self.move_records(items, number, false, at);
                if self.free.len() < self.reserved() {
                    let freed = self.take_next(items);
                    self.free.extend(freed);
                }
            }
        }
    }

    fn live_share(&self, number: u16, at: &At) -> f64 {
        let segment = &self.segments[usize::from(number)];
        if segment.live == 0 || segment.expires <= at.now {
            return 0.0;
        }
        let of_written = f64::from(segment.live_pages) / f64::from(segment.written_pages.max(1));
        of_written.min(1.0) * (segment.used_bytes / at.segment_bytes).min(1.0)
    }

    /// Selects the segment that is reused next as the store does, and whether all its live records are moved.
    fn victim(&mut self, at: &At) -> Option<(u16, bool)> {
        let shares: Vec<(u16, f64)> =
            self.sealed.iter().map(|&number| (number, self.live_share(number, at))).collect();
        let score = |&(number, share): &(u16, f64)| {
            gain(share, self.births - self.segments[usize::from(number)].birth)
        };
        let best = shares.iter().max_by(|one, two| score(one).total_cmp(&score(two)))?;
        let (number, share) = *best;
        let part_of = |open: &u16| self.segments[usize::from(*open)].used_bytes / at.segment_bytes;
        let open: f64 = self.open.iter().flatten().map(|open| part_of(open).min(1.0)).sum();
        let ssd = Ssd {
            segments: self.segments.len() as u32,
            has_room: true,
            live_segments: shares.iter().map(|(_, share)| share).sum::<f64>() + open,
            live_percent_max: self.live_percent_max,
        };
        if share > 0.0 {
            let moves = |times: f64| {
                moves_live_records(share, &Ssd { live_segments: ssd.live_segments * times, ..ssd })
            };
            let is_close = moves(1.0 - 2.0 * at.doubt) != moves(1.0 + 2.0 * at.doubt);
            self.close += CLOSE_WEIGHT * (f64::from(u8::from(is_close)) - self.close);
        }
        let moves_all = share == 0.0 || moves_live_records(share, &ssd);
        Some(if moves_all { (number, true) } else { (*self.sealed.front()?, false) })
    }

    /// Moves records out of a segment: all live ones, or some of those that were read. Ends if the segment itself is
    /// reused for them.
    fn move_records(&mut self, items: &mut Items, number: u16, moves_all: bool, at: &At) {
        let here = self.place_of(number);
        let share = if moves_all { f64::MAX } else { self.readmitted_share(at) };
        let hot_pages = self.hot_pages(number);
        let (mut bytes_left, mut nth) = (share * at.segment_bytes, 0);
        while bytes_left > 0.0 && self.place_of(number) == here {
            let Some(record) = self.segments[usize::from(number)].records.get(nth).copied() else { return };
            nth += 1;
            let Some(item) = items.get(record.tag).filter(|item| item.place() == Place::Ssd(here)) else {
                continue;
            };
            let (freq, bytes) = (item.freq(), item.bytes);
            // One that was not read here comes with its page if another one was.
            let is_read_back = item.is_hot() || unit(record.tag) < hot_pages;
            if item.has_expired(at.now) || !moves_all && (freq == 0 || !is_read_back) {
                continue;
            }
            bytes_left -= f64::from(bytes);
            let Some(to) = self.write(items, Record { bytes, ..record }, READMITTED, at) else { return };
            self.unlink(here, bytes);
            if let Some(item) = items.get_mut(record.tag) {
                item.set_written(to, if moves_all { freq } else { freq - 1 });
                item.set_fetched(item.is_fetched() || freq > 0);
                if moves_all && freq > 0 && item.take_first_read() {
                    self.mark_hot(to);
                }
            }
        }
    }

    /// Drops what is left in a segment.
    fn empty(&mut self, items: &mut Items, number: u16) {
        let here = self.place_of(number);
        let segment = &mut self.segments[usize::from(number)];
        let records = std::mem::take(&mut segment.records);
        self.live -= u64::from(segment.live);
        *segment = Segment { generation: here.generation.wrapping_add(1), ..Segment::default() };
        for record in &records {
            if items.get(record.tag).is_some_and(|item| item.place() == Place::Ssd(here)) {
                items.remove(record.tag);
            }
        }
    }

    fn place_of(&self, segment: u16) -> SsdPlace {
        SsdPlace { segment, generation: self.segments[usize::from(segment)].generation }
    }

    /// Returns the share of a segment's pages of which a record was read.
    fn hot_pages(&self, number: u16) -> f64 {
        let segment = &self.segments[usize::from(number)];
        let count = segment.records.len().max(1) as f64;
        let mean_pages = segment.used_bytes / count / PAGE_BYTES;
        let hot = (f64::from(segment.hot) / count).min(1.0);
        if mean_pages < 1.0 { 1.0 - (1.0 - hot).powf(1.0 / mean_pages) } else { hot }
    }

    /// Keeps what a smaller sample has, of which `is_kept` tells by an item's tag.
    pub(super) fn retain(&mut self, is_kept: impl Fn(u32) -> bool, items: &Items) {
        self.live = 0;
        for (segment, number) in self.segments.iter_mut().zip(0..) {
            segment.records.retain(|record| is_kept(record.tag));
            segment.records.shrink_to_fit();
            let here = Place::Ssd(SsdPlace { segment: number, generation: segment.generation });
            let is_live = |record: &&Record| items.get(record.tag).is_some_and(|item| item.place() == here);
            let bytes =
                segment.records.iter().map(|record| bytes_there(record.bytes, self.write_buffer_bytes));
            segment.used_bytes = bytes.sum();
            segment.written_pages = segment.records.iter().map(|record| pages(record.bytes)).sum();
            segment.live = segment.records.iter().filter(is_live).count() as u32;
            let live = segment.records.iter().filter(is_live);
            segment.live_pages = live.map(|record| pages(record.bytes)).sum();
            segment.hot /= 2;
            self.live += u64::from(segment.live);
        }
    }
}

/// When something is written, and where.
pub(super) struct At {
    /// The second.
    pub now: u32,
    /// The bytes of a segment that the sample has.
    pub segment_bytes: f64,
    /// How unsure the live share of the log is, as a part of it.
    pub doubt: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_take_as_much_of_the_ssd_as_the_stores_do() {
        // As measured: key and value, and the bytes there with a header of 32.
        for (bytes, there) in [
            (100, 137.0),
            (200, 241.0),
            (512, 546.0),
            (1_024, 1_069.0),
            (2_000, 2_048.0),
            (102_400, 106_496.0),
        ] {
            let found = bytes_there(bytes + 32, 262_144.0);
            assert!((found / there - 1.0).abs() < 0.02, "{bytes} bytes take {found}");
        }
    }
}
