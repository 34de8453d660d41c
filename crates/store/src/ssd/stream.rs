//! Streams: records are packed into pages of a write buffer, buffers into a segment. What is written when is
//! `log`'s business.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::log::{Log, Refused, State};
use super::page::{self, PAGE_HEADER_BYTES};
use super::write::{Landing, Large, Work, WriteSource};
use super::{PAGE_BYTES, SEGMENT_PAGES};
use crate::arena::Region;
use crate::clock::Seconds;
use crate::entry::{Entry, SsdPlace, class_of_pages};
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

/// A stream's open segment.
pub(super) struct Open {
    pub(super) segment: u32,
    pub(super) turn: u32,
    /// The first page that is neither written nor in `piece`.
    pub(super) next_page: u32,
    pub(super) piece: Option<Filling>,
}

/// A write buffer being filled: whole pages, of which the last is open.
pub(super) struct Filling {
    pub(super) memory: Region<u8>,
    pub(super) first_page: u32,
    /// Where in `memory` the open page begins.
    pub(super) page_at: usize,
    /// Bytes in the open page, header included; 0 when it has not begun.
    pub(super) page_bytes: usize,
    pub(super) page_count: u16,
}

impl Log {
    /// The stream that takes the place of `wanted`.
    fn stream(&self, wanted: Stream) -> Stream {
        if self.segments() < STREAMS_SEGMENTS_MIN { Stream::Long } else { wanted }
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

    /// Makes the stream's open page an empty one with `pages` to follow in both buffer and segment (itself
    /// counted).
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

    /// Begins to write a large record from where it lies in RAM; its index entry moves when all of it has
    /// landed.
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

    /// Queues every partly filled buffer, so that after the writes nothing is in memory only.
    pub(crate) fn seal_all(&self) {
        let mut state = self.lock();
        for stream in [Stream::Short, Stream::Long, Stream::Readmitted] {
            self.close_page(&mut state, stream);
            self.seal_piece(&mut state, stream);
        }
    }
}
