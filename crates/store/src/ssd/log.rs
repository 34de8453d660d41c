//! The SSD's write side: streams append records to segments through write buffers, and hand out the buffers as write jobs.
//!
//! ```text
//!             append                  seal                 next_write            complete_write
//!   free buffer ------> filling (stream) ------> queued ------------> flying ------------------> free buffer
//! ```
//! A segment goes free -> open (in one stream) -> sealed, and back to free when it is spent (all expired or flushed) or,
//! when none is free, by being the oldest sealed one. A segment with pages that are not on the device yet is never reused.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::page::{self, PAGE_HEADER_BYTES, PageId, Records};
use super::table::Table;
use super::{PAGE_BYTES, SEGMENT_BYTES, SEGMENT_PAGES};
use crate::admit::Budget;
use crate::arena::Region;
use crate::clock::Seconds;
use crate::entry::{Entry, SsdPlace, class_of_pages, pages_of_class};
use crate::hash::KeyHash;
use crate::ram::pool::Pin;
use crate::record::Header;

/// Which records a segment holds, so that what dies together lies together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Expiring within [`SHORT_LIVED_SECONDS`].
    Short = 0,
    /// Everything else that is new here.
    Long = 1,
    /// Rescued from a segment about to be reused.
    Readmitted = 2,
}

pub(crate) const STREAMS: usize = 3;
/// With fewer segments than this there is one stream: a segment open in another would be missed.
const STREAMS_SEGMENTS_MIN: u32 = 2 * STREAMS as u32;
/// Items that live shorter than this share segments.
pub(crate) const SHORT_LIVED_SECONDS: u32 = 1800;

impl Stream {
    pub(crate) fn of(header: &Header, now: Seconds) -> Stream {
        let left = header.expires.wrapping_sub(now.0);
        if header.expires != 0 && left < SHORT_LIVED_SECONDS { Stream::Short } else { Stream::Long }
    }
}

/// Why a record was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// No write buffer or no segment is free just now; a completed write will change that.
    Full,
    /// No segment is free, and none with live items may be filled anew.
    UsedUp,
    /// The tier is off.
    Off,
}

/// Where one segment lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home {
    pub device: u32,
    pub offset: u64,
}

/// Failed reads in a row, or failed writes in a row, after which the tier is turned off. Each is counted by itself: a device
/// that still reads while it no longer writes is not worth keeping either.
const FAILURES_MAX: u32 = 16;

/// What was asked of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// A read, which also fails when what it brings does not verify.
    Read = 0,
    /// A write.
    Write = 1,
}
/// Writes under way at once while nobody reads; while somebody does, one.
const WRITES_MAX: u32 = 4;

/// What a log is opened with besides its memory.
pub(crate) struct Rules {
    /// Random: it tells this store's pages from any other's.
    pub store: u64,
    pub piece_bytes: usize,
    pub landing_bytes_max: usize,
    pub reuses: bool,
    pub budget: Budget,
}

pub(crate) struct Log {
    pub(crate) table: Table,
    homes: Vec<Home>,
    store: u64,
    piece_bytes: usize,
    /// Bytes of large records that may be on their way at once, so that a slow device does not keep all of RAM; one may always.
    landing_bytes_max: usize,
    /// Whether a segment with live items may be filled anew when none is free.
    reuses: bool,
    pub(crate) budget: Budget,
    state: Mutex<State>,
    off: AtomicBool,
    /// Failures in a row of each [`Access`].
    failures: [AtomicU32; 2],
    /// Device operations that failed, and pages that did not verify.
    pub(crate) errors: AtomicU64,
    pub(crate) bytes_admitted: AtomicU64,
    pub(crate) bytes_written: AtomicU64,
    pub(crate) device_writes: AtomicU64,
}

struct State {
    streams: [Option<Open>; STREAMS],
    free_pieces: Vec<Region<u8>>,
    queue: VecDeque<Work>,
    flying: Vec<Work>,
    /// Segments ready to be filled.
    free: VecDeque<u32>,
    /// Sealed segments, oldest first, with the turn they were sealed in.
    sealed: VecDeque<(u32, u32)>,
    /// The oldest sealed segment's readmission, once begun.
    rescue: Option<Rescue>,
    large: Vec<Large>,
    next_id: u64,
}

/// A stream's open segment.
struct Open {
    segment: u32,
    turn: u32,
    /// The first page that is neither written nor in `piece`.
    next_page: u32,
    piece: Option<Filling>,
}

/// A write buffer being filled: whole pages, of which the last is open.
struct Filling {
    memory: Region<u8>,
    first_page: u32,
    /// Where in `memory` the open page begins.
    page_at: usize,
    /// Bytes in the open page, header included; 0 when it has not begun.
    page_bytes: usize,
    page_count: u16,
}

/// Pages on their way to the device.
#[derive(Clone)]
struct Work {
    id: u64,
    segment: u32,
    turn: u32,
    first_page: u32,
    bytes: usize,
    source: WriteSource,
}

/// Memory that is being written; it stays as it is until every clone is gone.
#[derive(Clone)]
enum WriteSource {
    Piece(Arc<Region<u8>>),
    Large(Arc<Pin>, u32),
}

/// A large record that is being demoted from where it lies.
struct Large {
    id: u64,
    parts_left: u32,
    failed: bool,
    landing: Landing,
}

/// A large record whose demotion is over: its index entry may now move, if it still is `from`.
pub(crate) struct Landing {
    pub hash: KeyHash,
    pub from: Entry,
    pub to: SsdPlace,
    /// Until the entry has moved, the memory under `from` must not become another record.
    pin: Arc<Pin>,
}

/// Reading back the hot pages of the segment that goes next.
struct Rescue {
    segment: u32,
    turn: u32,
    next_page: u32,
    pages_left: u32,
    reading: u32,
}

/// One write for the caller to perform: all of `data()` to `offset` of `device`, then
/// [`Store::complete_write`](crate::Store::complete_write).
pub struct WriteJob {
    /// Which of the store's devices.
    pub device: usize,
    /// Where, in bytes; a multiple of 4096.
    pub offset: u64,
    work: Work,
}

impl WriteJob {
    /// The bytes to write, at most a few MiB, a multiple of 4096 long and so aligned.
    pub fn data(&self) -> &[u8] {
        self.work.data()
    }

    /// A handle on the same bytes that keeps them valid and unchanged. Drop it before completing the job.
    pub fn share(&self) -> SharedWrite {
        SharedWrite(self.work.clone())
    }
}

/// A hold on the bytes of a [`WriteJob`], for whoever performs the write.
pub struct SharedWrite(Work);

impl AsRef<[u8]> for SharedWrite {
    fn as_ref(&self) -> &[u8] {
        self.0.data()
    }
}

impl Work {
    fn data(&self) -> &[u8] {
        match &self.source {
            WriteSource::Piece(memory) => &memory[..self.bytes],
            WriteSource::Large(pin, segment) => pin.segment(*segment).unwrap_or(&[]),
        }
    }
}

/// What one read of the SSD takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageRead {
    pub device: u32,
    pub offset: u64,
    pub bytes: usize,
    pub id: PageId,
}

impl Log {
    pub(crate) fn new(table: Table, homes: Vec<Home>, pieces: Vec<Region<u8>>, rules: Rules) -> Log {
        let Rules { store, piece_bytes, landing_bytes_max, reuses, budget } = rules;
        assert_eq!(table.count() as usize, homes.len());
        assert!(pieces.iter().all(|piece| piece.len() == piece_bytes));
        Log {
            state: Mutex::new(State {
                streams: [const { None }; STREAMS],
                free_pieces: pieces,
                queue: VecDeque::new(),
                flying: Vec::new(),
                free: (0..table.count()).collect(),
                sealed: VecDeque::new(),
                rescue: None,
                large: Vec::new(),
                next_id: 0,
            }),
            off: AtomicBool::new(homes.is_empty()),
            failures: [const { AtomicU32::new(0) }; 2],
            errors: AtomicU64::new(0),
            bytes_admitted: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            device_writes: AtomicU64::new(0),
            table,
            homes,
            store,
            piece_bytes,
            landing_bytes_max,
            reuses,
            budget,
        }
    }

    /// The stream that takes the place of `wanted`.
    fn stream(&self, wanted: Stream) -> Stream {
        if self.segments() < STREAMS_SEGMENTS_MIN { Stream::Long } else { wanted }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_off(&self) -> bool {
        self.off.load(Relaxed)
    }

    pub(crate) fn segments(&self) -> u32 {
        self.homes.len() as u32
    }

    /// Whether the next segment to open would cost live items.
    pub(crate) fn is_full(&self) -> bool {
        self.lock().free.is_empty()
    }

    /// Counts the outcome of a device operation; many failures in a row turn the tier off.
    pub(crate) fn count_outcome(&self, access: Access, ok: bool) {
        let failures = &self.failures[access as usize];
        if ok {
            // Reads succeed all the time: they share this line, and leave it alone while there is nothing to forgive.
            if failures.load(Relaxed) != 0 {
                failures.store(0, Relaxed);
            }
            return;
        }
        self.errors.fetch_add(1, Relaxed);
        if failures.fetch_add(1, Relaxed) + 1 >= FAILURES_MAX {
            self.off.store(true, Relaxed);
        }
    }

    fn page_id(&self, segment: u32, turn: u32, page: u32) -> PageId {
        PageId { store: self.store, segment, turn, page }
    }

    /// The read that fetches the record at `place`, unless it is gone.
    pub(crate) fn read_of(&self, place: SsdPlace) -> Option<PageRead> {
        let turn = self.table.current_turn(place)?;
        let home = self.homes[place.segment as usize];
        let page = u32::from(place.page);
        let pages = pages_of_class(place.class).min(SEGMENT_PAGES - page);
        Some(PageRead {
            device: home.device,
            offset: home.offset + u64::from(page) * PAGE_BYTES as u64,
            bytes: pages as usize * PAGE_BYTES,
            id: self.page_id(place.segment, turn, page),
        })
    }

    /// Looks into the page at `place` if it is still in memory.
    pub(crate) fn with_buffered<R>(&self, place: SsdPlace, look: impl FnOnce(Records<'_>) -> R) -> Option<R> {
        if !self.table.has_pending(place) {
            return None;
        }
        let state = self.lock();
        let turn = self.table.current_turn(place)?;
        let page = u32::from(place.page);
        for open in
            state.streams.iter().flatten().filter(|open| open.segment == place.segment && open.turn == turn)
        {
            let Some(filling) = &open.piece else { continue };
            let Some(at) = page.checked_sub(filling.first_page).map(|pages| pages as usize * PAGE_BYTES)
            else {
                continue;
            };
            if at == filling.page_at && filling.page_bytes > 0 {
                return Some(look(page::records(
                    &filling.memory[at..],
                    filling.page_bytes,
                    filling.page_count,
                )));
            }
            if at < filling.page_at {
                return page::verify(self.page_id(place.segment, turn, page), &filling.memory[at..])
                    .map(look);
            }
        }
        let work = state.queue.iter().chain(&state.flying).find(|work| {
            work.segment == place.segment
                && work.turn == turn
                && matches!(work.source, WriteSource::Piece(_))
                && page >= work.first_page
                && ((page - work.first_page) as usize) < work.bytes / PAGE_BYTES
        })?;
        let at = (page - work.first_page) as usize * PAGE_BYTES;
        page::verify(self.page_id(place.segment, turn, page), &work.data()[at..]).map(look)
    }

    /// Appends a record to a stream's write buffer.
    pub(crate) fn append(
        &self,
        stream: Stream,
        header: &Header,
        key: &[u8],
        value: &[u8],
    ) -> Result<SsdPlace, Refused> {
        if self.is_off() {
            return Err(Refused::Off);
        }
        let stream = self.stream(stream);
        let mut state = self.lock();
        let record = [&header.encode()[..], key, value];
        let bytes = header.bytes();
        let pages = page::pages_for(bytes);
        debug_assert!(pages as usize * PAGE_BYTES <= self.piece_bytes);
        let (segment, turn, page) = if pages == 1 {
            self.append_small(&mut state, stream, record, bytes)?
        } else {
            self.append_extent(&mut state, stream, record, bytes, pages)?
        };
        self.table.admit(segment, header.expires, header.epoch);
        self.bytes_admitted.fetch_add(bytes as u64, Relaxed);
        Ok(SsdPlace { segment, page: page as u16, class: class_of_pages(pages), turn: (turn & 0xF) as u8 })
    }

    fn append_small(
        &self,
        state: &mut State,
        stream: Stream,
        record: [&[u8]; 3],
        bytes: usize,
    ) -> Result<(u32, u32, u32), Refused> {
        let fits = |open: &Option<Open>| {
            let filling = open.as_ref().and_then(|open| open.piece.as_ref());
            filling.is_some_and(|f| f.page_bytes > 0 && f.page_bytes + bytes <= PAGE_BYTES)
        };
        if !fits(&state.streams[stream as usize]) {
            self.ensure_pages(state, stream, 1)?;
        }
        let open = state.streams[stream as usize].as_mut().expect("ensured");
        let filling = open.piece.as_mut().expect("ensured");
        if filling.page_bytes == 0 {
            filling.page_bytes = PAGE_HEADER_BYTES;
            filling.page_count = 0;
        }
        let mut at = filling.page_at + filling.page_bytes;
        for part in record {
            filling.memory[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        filling.page_bytes += bytes;
        filling.page_count += 1;
        Ok((open.segment, open.turn, filling.first_page + (filling.page_at / PAGE_BYTES) as u32))
    }

    fn append_extent(
        &self,
        state: &mut State,
        stream: Stream,
        record: [&[u8]; 3],
        bytes: usize,
        pages: u32,
    ) -> Result<(u32, u32, u32), Refused> {
        self.ensure_pages(state, stream, pages)?;
        let open = state.streams[stream as usize].as_mut().expect("ensured");
        let filling = open.piece.as_mut().expect("ensured");
        let page = filling.first_page + (filling.page_at / PAGE_BYTES) as u32;
        let id = self.page_id(open.segment, open.turn, page);
        let extent = &mut filling.memory[filling.page_at..filling.page_at + pages as usize * PAGE_BYTES];
        let content = bytes + PAGE_HEADER_BYTES;
        extent[..PAGE_HEADER_BYTES].copy_from_slice(&page::seal(id, content as u32, 1, &record));
        let mut at = PAGE_HEADER_BYTES;
        for part in record {
            extent[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        extent[at..].fill(0);
        filling.page_at += extent.len();
        Ok((open.segment, open.turn, page))
    }

    /// Makes the stream's open page an empty one with `pages` to follow in both buffer and segment (itself counted).
    fn ensure_pages(&self, state: &mut State, stream: Stream, pages: u32) -> Result<(), Refused> {
        self.close_page(state, stream);
        if let Some(open) = &mut state.streams[stream as usize] {
            let begun = open
                .piece
                .as_ref()
                .map_or(open.next_page, |f| f.first_page + (f.page_at / PAGE_BYTES) as u32);
            let fits_segment = begun + pages <= SEGMENT_PAGES;
            let fits_piece = open
                .piece
                .as_ref()
                .is_some_and(|f| f.page_at + pages as usize * PAGE_BYTES <= self.piece_bytes);
            if fits_segment && fits_piece {
                return Ok(());
            }
            self.seal_piece(state, stream);
            if !fits_segment {
                self.seal_segment(state, stream);
            }
        }
        if state.streams[stream as usize].is_none() {
            let segment = self.take_segment(state)?;
            let turn = self.table.open(segment);
            state.streams[stream as usize] = Some(Open { segment, turn, next_page: 0, piece: None });
        }
        let memory = state.free_pieces.pop().ok_or(Refused::Full)?;
        let open = state.streams[stream as usize].as_mut().expect("just opened");
        self.table.add_pending(open.segment);
        open.piece =
            Some(Filling { memory, first_page: open.next_page, page_at: 0, page_bytes: 0, page_count: 0 });
        Ok(())
    }

    fn close_page(&self, state: &mut State, stream: Stream) {
        let Some(open) = &mut state.streams[stream as usize] else {
            return;
        };
        let Some(filling) = &mut open.piece else { return };
        if filling.page_bytes == 0 {
            return;
        }
        let id =
            self.page_id(open.segment, open.turn, filling.first_page + (filling.page_at / PAGE_BYTES) as u32);
        let page = &mut filling.memory[filling.page_at..filling.page_at + PAGE_BYTES];
        page[filling.page_bytes..].fill(0);
        page::seal_in_place(id, page, filling.page_bytes, filling.page_count);
        filling.page_at += PAGE_BYTES;
        filling.page_bytes = 0;
    }

    /// Queues the stream's buffer, its open page closed, to be written.
    fn seal_piece(&self, state: &mut State, stream: Stream) {
        let Some(open) = &mut state.streams[stream as usize] else {
            return;
        };
        let Some(filling) = open.piece.take() else { return };
        if filling.page_at == 0 {
            state.free_pieces.push(filling.memory);
            self.table.remove_pending(open.segment);
            return;
        }
        open.next_page = filling.first_page + (filling.page_at / PAGE_BYTES) as u32;
        self.budget.charge(filling.page_at);
        state.next_id += 1;
        state.queue.push_back(Work {
            id: state.next_id,
            segment: open.segment,
            turn: open.turn,
            first_page: filling.first_page,
            bytes: filling.page_at,
            source: WriteSource::Piece(Arc::new(filling.memory)),
        });
    }

    fn seal_segment(&self, state: &mut State, stream: Stream) {
        if let Some(open) = state.streams[stream as usize].take() {
            state.sealed.push_back((open.segment, open.turn));
        }
    }

    fn take_segment(&self, state: &mut State) -> Result<u32, Refused> {
        if let Some(at) = state.free.iter().position(|&segment| self.table.pending(segment) == 0) {
            return state.free.remove(at).ok_or(Refused::Full);
        }
        if !self.reuses {
            return Err(if state.free.is_empty() { Refused::UsedUp } else { Refused::Full });
        }
        let oldest = state.sealed.iter().position(|&(segment, _)| self.table.pending(segment) == 0);
        let (segment, _) = oldest.and_then(|at| state.sealed.remove(at)).ok_or(Refused::Full)?;
        if state.rescue.as_ref().is_some_and(|rescue| rescue.segment == segment) {
            state.rescue = None;
        }
        Ok(segment)
    }

    /// Begins to write a large record from where it lies in RAM; its index entry moves when all of it has landed.
    pub(crate) fn append_large(
        &self,
        stream: Stream,
        header: &Header,
        pin: Pin,
        hash: KeyHash,
        from: Entry,
    ) -> Result<(), Refused> {
        if self.is_off() {
            return Err(Refused::Off);
        }
        let stream = self.stream(stream);
        let mut state = self.lock();
        let state = &mut *state;
        let landing: usize = state.large.iter().map(|large| large.landing.pin.bytes()).sum();
        if landing > 0 && landing + pin.bytes() > self.landing_bytes_max {
            return Err(Refused::Full);
        }
        let pages = page::pages_for(header.bytes());
        self.close_page(state, stream);
        self.seal_piece(state, stream);
        if state.streams[stream as usize].as_ref().is_some_and(|open| open.next_page + pages > SEGMENT_PAGES)
        {
            self.seal_segment(state, stream);
        }
        if state.streams[stream as usize].is_none() {
            let segment = self.take_segment(state)?;
            let turn = self.table.open(segment);
            state.streams[stream as usize] = Some(Open { segment, turn, next_page: 0, piece: None });
        }
        let open = state.streams[stream as usize].as_mut().expect("just opened");
        let (segment, turn, page) = (open.segment, open.turn, open.next_page);
        open.next_page += pages;
        let parts: Vec<&[u8]> = pin.record_parts().collect();
        pin.write_prefix(&page::seal(self.page_id(segment, turn, page), pin.bytes() as u32, 1, &parts));
        let pin = Arc::new(pin);
        state.next_id += 1;
        let id = state.next_id;
        let mut first_page = page;
        let mut parts_left = 0;
        while let Some(part) = pin.segment(parts_left) {
            let work = Work {
                id,
                segment,
                turn,
                first_page,
                bytes: part.len(),
                source: WriteSource::Large(pin.clone(), parts_left),
            };
            first_page += (part.len() / PAGE_BYTES) as u32;
            parts_left += 1;
            self.budget.charge(part.len());
            self.table.add_pending(segment);
            state.queue.push_back(work);
        }
        self.table.admit(segment, header.expires, header.epoch);
        self.bytes_admitted.fetch_add(header.bytes() as u64, Relaxed);
        let to =
            SsdPlace { segment, page: page as u16, class: class_of_pages(pages), turn: (turn & 0xF) as u8 };
        state.large.push(Large { id, parts_left, failed: false, landing: Landing { hash, from, to, pin } });
        Ok(())
    }

    /// The next write to perform, if one may start now.
    pub(crate) fn next_write(&self, reads_wait: bool) -> Option<WriteJob> {
        let mut state = self.lock();
        if state.flying.len() as u32 >= if reads_wait { 1 } else { WRITES_MAX } {
            return None;
        }
        let work = state.queue.pop_front()?;
        state.flying.push(work.clone());
        let home = self.homes[work.segment as usize];
        Some(WriteJob {
            device: home.device as usize,
            offset: home.offset + u64::from(work.first_page) * PAGE_BYTES as u64,
            work,
        })
    }

    /// Takes a performed write back; answers a large record that has thereby landed.
    pub(crate) fn complete_write(&self, job: WriteJob, ok: bool) -> Option<Landing> {
        self.count_outcome(Access::Write, ok);
        if ok {
            self.device_writes.fetch_add(1, Relaxed);
            self.bytes_written.fetch_add(job.work.bytes as u64, Relaxed);
        }
        let mut state = self.lock();
        let flying = state
            .flying
            .iter()
            .position(|work| work.id == job.work.id && work.first_page == job.work.first_page);
        drop(state.flying.swap_remove(flying.expect("a job is completed once")));
        self.table.remove_pending(job.work.segment);
        match job.work.source {
            WriteSource::Piece(memory) => {
                if let Ok(memory) = Arc::try_unwrap(memory) {
                    state.free_pieces.push(memory);
                } else {
                    unreachable!("a write buffer is shared after its write");
                }
                None
            }
            WriteSource::Large(..) => {
                let at = state.large.iter().position(|large| large.id == job.work.id)?;
                let large = &mut state.large[at];
                large.parts_left -= 1;
                large.failed |= !ok;
                if large.parts_left > 0 {
                    return None;
                }
                let Large { failed, mut landing, .. } = state.large.swap_remove(at);
                if failed {
                    landing.to = SsdPlace::NOWHERE;
                }
                Some(landing)
            }
        }
    }

    /// Writes under way and waiting to start.
    pub(crate) fn writes_pending(&self) -> usize {
        let state = self.lock();
        state.queue.len() + state.flying.len()
    }

    /// Queues every partly filled buffer, so that after the writes nothing is in memory only.
    pub(crate) fn seal_all(&self) {
        let mut state = self.lock();
        for stream in [Stream::Short, Stream::Long, Stream::Readmitted] {
            self.close_page(&mut state, stream);
            self.seal_piece(&mut state, stream);
        }
    }

    /// Frees segments in which everything has expired or been flushed.
    pub(crate) fn free_spent(&self, now: Seconds, epoch: u32) {
        let mut state = self.lock();
        let State { sealed, free, .. } = &mut *state;
        sealed.retain(|&(segment, _)| {
            let spent = self.table.is_spent(segment, now, epoch);
            if spent {
                free.push_back(segment);
            }
            !spent
        });
    }

    /// The next hot page to read back from the segment that will be reused next, within the byte budget; `None` while there
    /// is room without reuse.
    pub(crate) fn next_rescue(&self, reads_max: u32) -> Option<SsdPlace> {
        let mut state = self.lock();
        let state = &mut *state;
        if !state.free.is_empty() || !self.reuses || self.is_off() || self.budget.is_spent() {
            return None;
        }
        let &(segment, turn) = state.sealed.front()?;
        if self.table.pending(segment) > 0 {
            return None;
        }
        if state.rescue.as_ref().is_none_or(|rescue| rescue.segment != segment || rescue.turn != turn) {
            state.rescue =
                Some(Rescue { segment, turn, next_page: 0, pages_left: RESCUE_PAGES_MAX, reading: 0 });
        }
        let rescue = state.rescue.as_mut()?;
        if rescue.reading >= reads_max || rescue.pages_left == 0 {
            return None;
        }
        let Some(page) = self.table.next_hot_page(segment, rescue.next_page) else {
            rescue.pages_left = 0;
            return None;
        };
        rescue.next_page = page + 1;
        rescue.pages_left -= 1;
        rescue.reading += 1;
        Some(SsdPlace { segment, page: page as u16, class: 0, turn: (turn & 0xF) as u8 })
    }

    /// A rescue's read is over.
    pub(crate) fn rescued(&self, place: SsdPlace) {
        if let Some(rescue) = self.lock().rescue.as_mut().filter(|rescue| rescue.segment == place.segment) {
            rescue.reading = rescue.reading.saturating_sub(1);
        }
    }

    /// Segments that were opened at least once.
    pub(crate) fn segments_used(&self) -> u32 {
        self.segments()
            - self.lock().free.iter().filter(|&&segment| self.table.turn(segment) == 0).count() as u32
    }
}

/// Pages of a segment that readmission may read back: a tenth, which bounds what it adds to the writes.
const RESCUE_PAGES_MAX: u32 = SEGMENT_PAGES / 10;
const _: () = assert!(SEGMENT_BYTES.is_multiple_of(PAGE_BYTES as u64));

impl SsdPlace {
    /// Stands for a record that did not land.
    pub(crate) const NOWHERE: SsdPlace = SsdPlace { segment: u32::MAX, page: 0, class: 0, turn: 0 };
}
