//! Makes sealed segments free again: says what to read back from the segment that is reused next, and frees
//! it when its records have been moved or may be dropped.
//!
//! ```text
//!   sealed --select_victim--> Empty ------------------------------------------------> free
//!                             Move: all of it is read, live records are moved ------> free
//!                             Drop: pages that were read are read back, their ------> free, or opened as
//!                                   records readmitted; the others are dropped        soon as it is needed
//! ```
//! One segment is reclaimed at a time.

use std::sync::atomic::Ordering::Relaxed;

use super::stream::Stream;
use super::victim::Victim;
use super::{Log, Refused, State};
use crate::clock::Seconds;
use crate::index::entry::{SsdPlace, class_of_pages, pages_of_class};
use crate::ssd::write::Demotion;
use crate::ssd::{PAGE_BYTES, SEGMENT_BYTES, SEGMENT_PAGES};

/// Pages that one read of a segment that is moved brings.
const CHUNK_PAGES: u32 = 64;
/// Such reads under way at once: few, so that gets keep their pace, and more while a set waits for the segment.
const CHUNK_READS_MAX: u32 = 2;
const AWAITED_CHUNK_READS_MAX: u32 = 6;
/// Bytes of large records on the move from which on nothing more is read. One record may be larger.
const MOVING_BYTES_MAX: usize = 1 << 20;
/// Reads of a readmission under way at once.
const READMISSION_READS_MAX: u32 = 4;
/// Failed reads of a segment that are tried again.
const RETRIES_MAX: u32 = 4;
/// Segments whose expiry one call of [`Log::free_spent`] looks at.
const SPENT_SEGMENTS_MAX: u32 = 4096;

/// A segment that is being reclaimed.
pub(super) struct Reclaim {
    pub(super) segment: u32,
    generation: u32,
    /// Whether all live records are moved, or only some that were read.
    pub(super) moves_all: bool,
    /// The first page that was not asked for yet.
    next_page: u32,
    /// Bytes of records that readmission may still write; 0 once all pages with such records have been read.
    bytes_left: usize,
    /// Reads under way.
    reading: u32,
    /// Pages to read again, with how many there are in all: their last record goes on behind the pages read,
    /// or found no room.
    again: Vec<(u32, u32)>,
    retries_left: u32,
    /// Bytes of large records that are being moved. They are copied, so these bound memory.
    moving_bytes: usize,
    /// A set waits for the segment.
    is_awaited: bool,
}

/// What came of a read for a reclaim.
#[derive(Default)]
pub(crate) struct ReadBack {
    /// Bytes of records written again.
    pub bytes_written: usize,
    /// Pages to read again, and how many from there on.
    pub again: Vec<(u32, u32)>,
    /// The read failed.
    pub failed: bool,
    /// No segment was free for the records.
    pub no_segment: bool,
}

impl Reclaim {
    fn new(segment: u32, generation: u32, moves_all: bool, bytes_left: usize) -> Reclaim {
        Reclaim {
            segment,
            generation,
            moves_all,
            next_page: 0,
            bytes_left,
            reading: 0,
            again: Vec::new(),
            retries_left: RETRIES_MAX,
            moving_bytes: 0,
            is_awaited: false,
        }
    }

    fn is_over(&self) -> bool {
        let all_asked = if self.moves_all { self.next_page == SEGMENT_PAGES } else { self.bytes_left == 0 };
        all_asked && self.reading == 0 && self.again.is_empty() && self.moving_bytes == 0
    }
}

impl Log {
    /// Takes a segment to fill out of those that are free, or frees one at once where nothing is moved first.
    pub(super) fn take_segment(&self, state: &mut State, stream: Stream) -> Result<u32, Refused> {
        let reserved = if stream == Stream::Readmitted { 0 } else { self.reserved_segments() };
        if let Some(segment) = self.take_free(state, reserved) {
            return Ok(segment);
        }
        if stream == Stream::Readmitted && state.reclaim.as_ref().is_some_and(|reclaim| reclaim.moves_all) {
            return Err(Refused::UsedUp);
        }
        self.begin_reclaim(state);
        if let Some(segment) = self.take_free(state, reserved) {
            return Ok(segment);
        }
        if let Some(reclaim) = &mut state.reclaim {
            reclaim.is_awaited = true;
        }
        match state.reclaim.take_if(|reclaim| !reclaim.moves_all) {
            Some(reclaim) => {
                self.retire(reclaim.segment);
                Ok(reclaim.segment)
            }
            None if self.reuses || state.reclaim.is_some() || state.free.len() > reserved => {
                Err(Refused::Full)
            }
            None => Err(Refused::UsedUp),
        }
    }

    fn take_free(&self, state: &mut State, reserved: usize) -> Option<u32> {
        if state.free.len() <= reserved {
            return None;
        }
        let at = state.free.iter().position(|&segment| self.can_reuse(state, segment));
        if at.is_none() {
            self.want_sweep_if_resting(state.free.iter().copied());
        }
        state.free.remove(at?)
    }

    /// Makes all records of a segment dead and counts those that an index entry pointed at.
    fn retire(&self, segment: u32) {
        if self.is_spent(segment) {
            self.table.retire(segment);
            return;
        }
        let dropped = self.table.retire(segment);
        self.evictions.fetch_add(u64::from(dropped), Relaxed);
    }

    /// Frees segments that hold nothing live and begins to reclaim another one, while few are free.
    fn begin_reclaim(&self, state: &mut State) {
        if state.reclaim.as_ref().is_some_and(Reclaim::is_over) {
            self.end_reclaim(state);
        }
        while state.reclaim.is_none() && state.free.len() <= self.reserved_segments() {
            let Some(victim) = self.select_victim(state) else { return };
            let (Victim::Empty(segment) | Victim::Move(segment) | Victim::Drop(segment, _)) = victim;
            let Some(generation) = state.sealed.remove(segment) else { return };
            match victim {
                Victim::Empty(_) => {
                    self.retire(segment);
                    state.free.push_back(segment);
                }
                Victim::Move(_) => {
                    self.table.set_cleaning(segment, true);
                    state.reclaim = Some(Reclaim::new(segment, generation, true, 0));
                }
                Victim::Drop(_, segments) => {
                    let share = state.readmission.reuse(&self.table.take_hits(), &segments);
                    let bytes = (SEGMENT_BYTES as f64 * share) as usize;
                    state.reclaim = Some(Reclaim::new(segment, generation, false, bytes));
                }
            }
        }
    }

    /// The next pages to read back from the segment that is reused next; `None` while enough segments are
    /// free, or as much is under way as may be.
    pub(crate) fn next_readmission(&self) -> Option<SsdPlace> {
        if self.is_off() || self.budget.is_spent() {
            return None;
        }
        let mut state = self.lock();
        let state = &mut *state;
        // Records that are read back need write buffers to go to.
        if state.free_write_buffers.is_empty() {
            return None;
        }
        if state.reclaim.is_some() || self.is_reclaim_due(state) {
            self.begin_reclaim(state);
        }
        let room_bytes = state.free_write_buffers.len() * self.write_buffer_bytes;
        let reclaim = state.reclaim.as_mut()?;
        let (page, pages) = match reclaim.moves_all {
            true => self.next_chunk(reclaim, room_bytes)?,
            false => self.next_hot_page(reclaim)?,
        };
        reclaim.reading += 1;
        let class = class_of_pages(pages);
        let generation = (reclaim.generation & 0xF) as u8;
        Some(SsdPlace { segment: reclaim.segment, page: page as u16, class, generation })
    }

    /// Returns whether a free segment will soon be needed: the later a segment is selected, the less of it is
    /// live.
    fn is_reclaim_due(&self, state: &State) -> bool {
        let mut open = state.streams.iter().flatten();
        state.free.len() < self.reserved_segments() || open.any(|open| open.next_page >= SEGMENT_PAGES / 4)
    }

    fn next_chunk(&self, reclaim: &mut Reclaim, room_bytes: usize) -> Option<(u32, u32)> {
        let chunk_bytes = CHUNK_PAGES as usize * PAGE_BYTES;
        let has_room = reclaim.reading == 0 || room_bytes > reclaim.reading as usize * chunk_bytes;
        let reads_max = if reclaim.is_awaited { AWAITED_CHUNK_READS_MAX } else { CHUNK_READS_MAX };
        if reclaim.reading >= reads_max || reclaim.moving_bytes >= MOVING_BYTES_MAX || !has_room {
            return None;
        }
        if let Some(&again) = reclaim.again.last() {
            let is_alone = reclaim.reading == 0 && reclaim.moving_bytes == 0;
            if again.1 > CHUNK_PAGES && !is_alone {
                return None;
            }
            return reclaim.again.pop();
        }
        let page = reclaim.next_page;
        if page >= SEGMENT_PAGES {
            return None;
        }
        reclaim.next_page += CHUNK_PAGES;
        Some((page, CHUNK_PAGES))
    }

    fn next_hot_page(&self, reclaim: &mut Reclaim) -> Option<(u32, u32)> {
        if reclaim.reading >= READMISSION_READS_MAX {
            return None;
        }
        if let Some(longer) = reclaim.again.pop() {
            return Some(longer);
        }
        if reclaim.bytes_left == 0 {
            return None;
        }
        let Some(page) = self.table.next_hot_page(reclaim.segment, reclaim.next_page) else {
            reclaim.bytes_left = 0;
            return None;
        };
        reclaim.next_page = page + 1;
        // One page more for a record that goes on there.
        Some((page, 2.min(SEGMENT_PAGES - page)))
    }

    /// Returns whether a read of `place` is for moving all live records, and whether it brings whole pages one
    /// after another rather than one page and the rest of its last record. `None` when it is for nothing
    /// any more.
    pub(crate) fn reclaim_of(&self, place: SsdPlace) -> Option<(bool, bool)> {
        let state = self.lock();
        let reclaim = state.reclaim.as_ref().filter(|reclaim| reclaim.is_of(place))?;
        let is_chunk = u32::from(place.page).is_multiple_of(CHUNK_PAGES)
            && place.class == class_of_pages(CHUNK_PAGES)
            && reclaim.moves_all;
        Some((reclaim.moves_all, is_chunk))
    }

    /// Takes the outcome of a read back, and frees the segment when it was the last.
    pub(crate) fn rescued(&self, place: SsdPlace, outcome: ReadBack) {
        let mut state = self.lock();
        let state = &mut *state;
        let Some(reclaim) = state.reclaim.as_mut().filter(|reclaim| reclaim.is_of(place)) else { return };
        reclaim.reading = reclaim.reading.saturating_sub(1);
        if reclaim.moves_all {
            reclaim.again.extend(outcome.again);
            if outcome.failed && reclaim.retries_left > 0 {
                reclaim.retries_left -= 1;
                reclaim.again.push((place.page.into(), pages_of_class(place.class)));
            }
        } else {
            self.read_longer(reclaim, place, &outcome);
            reclaim.bytes_left = reclaim.bytes_left.saturating_sub(outcome.bytes_written);
        }
        let is_empty = reclaim.moves_all && self.table.live(reclaim.segment) == 0 && reclaim.reading == 0;
        if outcome.no_segment || is_empty || reclaim.is_over() {
            self.end_reclaim(state);
        }
    }

    /// Counts bytes of a large record that begins to be moved.
    pub(super) fn begin_demotion(&self, state: &mut State, bytes: usize) {
        if let Some(reclaim) = &mut state.reclaim {
            reclaim.moving_bytes += bytes;
        }
    }

    /// Discounts a large record whose entry has been moved, and frees its segment when it was the last.
    pub(crate) fn end_move(&self, demotion: &Demotion) {
        let mut state = self.lock();
        let state = &mut *state;
        let from = self.table.place_of(demotion.from);
        let Some(reclaim) = state.reclaim.as_mut().filter(|reclaim| reclaim.is_of(from)) else { return };
        reclaim.moving_bytes = reclaim.moving_bytes.saturating_sub(demotion.bytes);
        if reclaim.is_over() {
            self.end_reclaim(state);
        }
    }

    /// Asks once more for a page whose last record is longer than the bytes read, where that is worth it: a
    /// record that does not fit a write buffer is not readmitted.
    fn read_longer(&self, reclaim: &mut Reclaim, place: SsdPlace, outcome: &ReadBack) {
        for &(page, pages) in &outcome.again {
            let fits =
                page + pages <= SEGMENT_PAGES && (pages as usize) * PAGE_BYTES < self.write_buffer_bytes;
            let is_allowed = pages as usize * PAGE_BYTES <= reclaim.bytes_left;
            if fits && pages_of_class(place.class) < pages && is_allowed {
                reclaim.again.push((page, pages));
            }
        }
    }

    /// Frees the segment that was reclaimed. One whose records are dropped stays readable until it is needed.
    fn end_reclaim(&self, state: &mut State) {
        let is_needed = state.free.len() < self.reserved_segments();
        let Some(reclaim) = state.reclaim.take_if(|reclaim| reclaim.moves_all || is_needed) else { return };
        if reclaim.moves_all && !self.reuses && self.table.live(reclaim.segment) > 0 {
            // Nothing may be dropped: what could not be read or has no room stays.
            self.table.set_stuck(reclaim.segment);
            state.sealed.push(reclaim.segment, reclaim.generation);
            return;
        }
        self.retire(reclaim.segment);
        self.table.set_cleaning(reclaim.segment, false);
        if reclaim.moves_all {
            self.segments_cleaned.fetch_add(1, Relaxed);
        }
        state.free.push_back(reclaim.segment);
    }

    /// Notes the time and the flush epoch: items that are gone by then are not evicted.
    pub(crate) fn note_time(&self, now: Seconds, epoch: u32) {
        self.seen_now.store(now.0, Relaxed);
        self.seen_epoch.store(epoch, Relaxed);
    }

    /// Returns whether everything in a segment had expired or been flushed when the time was last noted.
    pub(super) fn is_spent(&self, segment: u32) -> bool {
        self.table.is_spent(segment, Seconds(self.seen_now.load(Relaxed)), self.seen_epoch.load(Relaxed))
    }

    /// Frees segments in which everything has expired or been flushed. Looks at some segments a call, so that
    /// the log is not locked for long.
    pub(crate) fn free_spent(&self, now: Seconds, epoch: u32) {
        self.note_time(now, epoch);
        let count = self.segments();
        let looks = SPENT_SEGMENTS_MAX.min(count);
        let first = self.next_spent.fetch_add(looks, Relaxed);
        let segments = (0..looks).map(|nth| first.wrapping_add(nth) % count.max(1));
        let spent: Vec<u32> = segments.filter(|&segment| self.is_spent(segment)).collect();
        if spent.is_empty() {
            return;
        }
        let mut state = self.lock();
        for segment in spent {
            // Those that are free or open are not sealed.
            if state.sealed.remove(segment).is_some() {
                // From now on its entries are not counted, and may be cleared.
                self.table.retire(segment);
                state.free.push_back(segment);
            }
        }
    }
}

impl Reclaim {
    fn is_of(&self, place: SsdPlace) -> bool {
        self.segment == place.segment && (self.generation & 0xF) as u8 == place.generation
    }
}
