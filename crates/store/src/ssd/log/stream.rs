//! Streams: records are packed into pages of a write buffer, buffers into a segment. What is written when is
//! `log`'s business.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::{Log, Refused, State};
use crate::clock::Seconds;
use crate::crash::step;
use crate::index::entry::{SsdPlace, class_of_pages};
use crate::record::RecordHeader;
use crate::ssd::page::{self, Content, PAGE_HEADER_BYTES};
use crate::ssd::write::{Work, WriteSource};
use crate::ssd::write_buffer::{Fill, WriteBuffer, WriteBufferPlace};
use crate::ssd::{PAGE_BYTES, SEGMENT_PAGES};

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
    pub(crate) fn of(header: &RecordHeader, now: Seconds) -> Stream {
        let left = header.expires.wrapping_sub(now.0);
        if header.expires != 0 && left < SHORT_LIVED_SECONDS { Stream::Short } else { Stream::Long }
    }
}

/// A stream's open segment.
pub(super) struct Open {
    pub(super) segment: u32,
    pub(super) generation: u32,
    /// The first page that is neither written nor in `write_buffer`.
    pub(super) next_page: u32,
    pub(super) write_buffer: Option<Filling>,
}

/// A write buffer being filled: whole pages, of which the last is open.
pub(super) struct Filling {
    pub(super) write_buffer: WriteBuffer,
    pub(super) first_page: u32,
    pub(super) fill: Fill,
}

impl Filling {
    /// The page that is next, or open.
    fn page(&self) -> u32 {
        self.first_page + (self.fill.page_at / PAGE_BYTES) as u32
    }
}

impl Log {
    /// The stream that takes the place of `wanted`.
    pub(super) fn stream(&self, wanted: Stream) -> Stream {
        if self.segments() < STREAMS_SEGMENTS_MIN { Stream::Long } else { wanted }
    }

    /// Returns whether a record fits a write buffer.
    pub(crate) fn fits_buffer(&self, header: &RecordHeader) -> bool {
        page::extent_pages(header.bytes()) as usize * PAGE_BYTES <= self.write_buffer_bytes
    }

    /// Appends a record to a stream's write buffer.
    pub(crate) fn append(
        &self,
        stream: Stream,
        header: &RecordHeader,
        key: &[u8],
        value: &[u8],
    ) -> Result<SsdPlace, Refused> {
        if self.is_off() {
            return Err(Refused::Off);
        }
        let is_new = stream != Stream::Readmitted;
        let stream = self.stream(stream);
        let mut state = self.lock();
        self.part_epochs(&mut state, stream, header.epoch);
        let record = [&header.encode()[..], key, value];
        let bytes = header.bytes();
        let prefix = record[0].len() + key.len();
        let (segment, generation, page, pages) = match page::spread(PAGE_HEADER_BYTES, prefix, bytes) {
            Some(pages) => self.append_spread(&mut state, stream, record, pages as u32)?,
            None => self.append_extent(&mut state, stream, record, page::extent_pages(bytes))?,
        };
        let place = SsdPlace {
            segment,
            page: page as u16,
            class: class_of_pages(pages),
            generation: (generation & 0xF) as u8,
        };
        self.table.admit(place, header.expires, header.epoch);
        if !is_new {
            self.bytes_moved.fetch_add(bytes as u64, Relaxed);
        } else {
            self.bytes_admitted.fetch_add(bytes as u64, Relaxed);
        }
        Ok(place)
    }

    /// Appends a record to the open page where that will do, else to a new one, from which it takes
    /// `fresh_pages`.
    fn append_spread(
        &self,
        state: &mut State,
        stream: Stream,
        record: [&[u8]; 3],
        fresh_pages: u32,
    ) -> Result<(u32, u32, u32, u32), Refused> {
        let bytes = record.iter().map(|part| part.len()).sum();
        let prefix = record[0].len() + record[1].len();
        let here = state.streams[stream as usize].as_ref().and_then(|open| {
            let filling = open.write_buffer.as_ref().filter(|filling| filling.fill.open.bytes > 0)?;
            let pages = page::spread(filling.fill.open.bytes, prefix, bytes)?;
            let fits_write_buffer = filling.fill.page_at + pages * PAGE_BYTES <= self.write_buffer_bytes;
            (fits_write_buffer && filling.page() + pages as u32 <= SEGMENT_PAGES).then_some(pages)
        });
        let pages = match here {
            Some(pages) => pages,
            None => {
                self.ensure_pages(state, stream, fresh_pages)?;
                fresh_pages as usize
            }
        };
        let open = state.streams[stream as usize].as_mut().expect("ensured");
        let filling = open.write_buffer.as_mut().expect("ensured");
        let page = filling.page();
        let id = self.page_id(open.segment, open.generation, page);
        let page_at = filling.fill.page_at;
        let mut content = filling.fill.open;
        if content.bytes == 0 {
            content = Content { bytes: PAGE_HEADER_BYTES, first: PAGE_HEADER_BYTES, count: 0 };
        }
        let memory = &mut filling.write_buffer.memory[page_at..page_at + pages * PAGE_BYTES];
        step();
        let end = page::write(memory, content.bytes, &record);
        step();
        content.bytes += bytes;
        content.count += 1;
        let (full, last) = memory.split_at_mut((pages - 1) * PAGE_BYTES);
        for (number, memory) in full.chunks_mut(PAGE_BYTES).enumerate() {
            page::seal(id.behind(number), memory, content);
            // The next ones hold nothing but the rest of the record.
            content = Content { bytes: PAGE_BYTES, first: PAGE_BYTES, count: 0 };
            step();
        }
        if pages > 1 {
            let end = end - full.len();
            debug_assert!((PAGE_HEADER_BYTES..=last.len()).contains(&end));
            content = Content { bytes: end, first: end, count: 0 };
        }
        // In one store, so that a later process finds the record, and the pages it takes, or nothing of it.
        self.set_fill(filling, Fill { page_at: page_at + (pages - 1) * PAGE_BYTES, open: content });
        Ok((open.segment, open.generation, page, pages as u32))
    }

    fn append_extent(
        &self,
        state: &mut State,
        stream: Stream,
        record: [&[u8]; 3],
        pages: u32,
    ) -> Result<(u32, u32, u32, u32), Refused> {
        self.ensure_pages(state, stream, pages)?;
        let open = state.streams[stream as usize].as_mut().expect("ensured");
        let filling = open.write_buffer.as_mut().expect("ensured");
        let page = filling.page();
        let id = self.page_id(open.segment, open.generation, page);
        let end = filling.fill.page_at + pages as usize * PAGE_BYTES;
        let extent = &mut filling.write_buffer.memory[filling.fill.page_at..end];
        extent[..PAGE_HEADER_BYTES].copy_from_slice(&page::seal_extent(id, &record));
        let mut at = PAGE_HEADER_BYTES;
        for part in record {
            extent[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        extent[at..].fill(0);
        self.set_fill(filling, Fill { page_at: end, ..Fill::default() });
        Ok((open.segment, open.generation, page, pages))
    }

    /// Makes the stream's open page an empty one with `pages` to follow in both buffer and segment (itself
    /// counted).
    fn ensure_pages(&self, state: &mut State, stream: Stream, pages: u32) -> Result<(), Refused> {
        self.close_page(state, stream);
        if let Some(open) = &mut state.streams[stream as usize] {
            let begun = open.write_buffer.as_ref().map_or(open.next_page, Filling::page);
            let fits_segment = begun + pages <= SEGMENT_PAGES;
            let fits_write_buffer = open
                .write_buffer
                .as_ref()
                .is_some_and(|f| f.fill.page_at + pages as usize * PAGE_BYTES <= self.write_buffer_bytes);
            if fits_segment && fits_write_buffer {
                return Ok(());
            }
            self.seal_write_buffer(state, stream);
            if !fits_segment {
                self.seal_segment(state, stream);
            }
        }
        if state.streams[stream as usize].is_none() {
            self.open_segment(state, stream)?;
        }
        let write_buffer = state.free_write_buffers.pop().ok_or(Refused::Full)?;
        let open = state.streams[stream as usize].as_mut().expect("just opened");
        let (segment, generation, first_page) = (open.segment, open.generation, open.next_page);
        self.table.add_pending(segment);
        self.lines[write_buffer.number as usize].begin(WriteBufferPlace { segment, generation, first_page });
        open.write_buffer = Some(Filling { write_buffer, first_page, fill: Fill::default() });
        Ok(())
    }

    pub(super) fn close_page(&self, state: &mut State, stream: Stream) {
        let Some(open) = &mut state.streams[stream as usize] else {
            return;
        };
        let Some(filling) = &mut open.write_buffer else { return };
        if filling.fill.open.bytes == 0 {
            return;
        }
        let place = WriteBufferPlace {
            segment: open.segment,
            generation: open.generation,
            first_page: filling.first_page,
        };
        let fill = self.close(place, &mut filling.write_buffer, filling.fill);
        self.set_fill(filling, fill);
    }

    /// Seals a buffer's open page, which stays as readable as it was; returns how far the buffer is filled
    /// then.
    pub(super) fn close(&self, place: WriteBufferPlace, write_buffer: &mut WriteBuffer, fill: Fill) -> Fill {
        let Fill { page_at, open } = fill;
        let number = place.first_page + (page_at / PAGE_BYTES) as u32;
        let id = self.page_id(place.segment, place.generation, number);
        let page = &mut write_buffer.memory[page_at..page_at + PAGE_BYTES];
        step();
        page[open.bytes..].fill(0);
        step();
        page::seal(id, page, open);
        Fill { page_at: page_at + PAGE_BYTES, ..Fill::default() }
    }

    /// Records how far a buffer is filled, for this process and for recovery.
    fn set_fill(&self, filling: &mut Filling, fill: Fill) {
        self.lines[filling.write_buffer.number as usize].fill(fill);
        filling.fill = fill;
    }

    /// Queues the stream's buffer, its open page closed, to be written.
    pub(super) fn seal_write_buffer(&self, state: &mut State, stream: Stream) {
        let Some(open) = &mut state.streams[stream as usize] else {
            return;
        };
        let Some(filling) = open.write_buffer.take() else { return };
        if filling.fill.page_at == 0 {
            self.lines[filling.write_buffer.number as usize].clear();
            state.free_write_buffers.push(filling.write_buffer);
            self.table.remove_pending(open.segment);
            return;
        }
        open.next_page = filling.page();
        let place = WriteBufferPlace {
            segment: open.segment,
            generation: open.generation,
            first_page: filling.first_page,
        };
        self.queue_write_buffer(state, place, filling.write_buffer, filling.fill.page_at);
    }

    /// Queues `bytes` of a buffer to be written.
    pub(super) fn queue_write_buffer(
        &self,
        state: &mut State,
        place: WriteBufferPlace,
        write_buffer: WriteBuffer,
        bytes: usize,
    ) {
        self.budget.charge(bytes);
        state.next_id += 1;
        state.queue.push_back(Work {
            id: state.next_id,
            segment: place.segment,
            generation: place.generation,
            first_page: place.first_page,
            bytes,
            source: WriteSource::WriteBuffer(Arc::new(write_buffer)),
        });
    }

    /// Ends the stream's segment if its records were written before a flush that the next one is written after:
    /// so a flush makes all of a segment invisible or none of it, and what it makes invisible is free at once.
    pub(super) fn part_epochs(&self, state: &mut State, stream: Stream, epoch: u32) {
        let open = state.streams[stream as usize].as_ref();
        if open.is_some_and(|open| self.table.is_of_another_epoch(open.segment, epoch)) {
            self.close_page(state, stream);
            self.seal_write_buffer(state, stream);
            self.seal_segment(state, stream);
        }
    }

    pub(super) fn open_segment(&self, state: &mut State, stream: Stream) -> Result<(), Refused> {
        let segment = self.take_segment(state, stream)?;
        let generation = self.table.open(segment);
        self.table.set_again(segment, stream == Stream::Readmitted);
        self.count_opening(state, segment, generation);
        state.streams[stream as usize] = Some(Open { segment, generation, next_page: 0, write_buffer: None });
        Ok(())
    }

    pub(super) fn seal_segment(&self, state: &mut State, stream: Stream) {
        if let Some(open) = state.streams[stream as usize].take() {
            state.sealed.push(open.segment, open.generation);
        }
    }

    /// Queues every partly filled buffer, so that after the writes nothing is in memory only.
    pub(crate) fn seal_all(&self) {
        let mut state = self.lock();
        for stream in [Stream::Short, Stream::Long, Stream::Readmitted] {
            self.close_page(&mut state, stream);
            self.seal_write_buffer(&mut state, stream);
        }
    }
}
