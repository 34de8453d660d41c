//! Large records: written to a segment in several writes from where they lie, in RAM or in a copy. The index
//! entry of one moves when all of it is on the device.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use larder_device::IoBuf;

use super::stream::Stream;
use super::{Log, Refused, State};
use crate::index::entry::{Entry, SsdPlace, class_of_pages};
use crate::index::hash::KeyHash;
use crate::ram::pool::Pin;
use crate::record::RecordHeader;
use crate::ssd::page;
use crate::ssd::write::{Demotion, Large, Work, WriteSource};
use crate::ssd::{PAGE_BYTES, SEGMENT_PAGES};

impl Log {
    /// Begins to write a large record from where it lies in RAM; its index entry moves when all of it
    /// has been written.
    pub(crate) fn append_large(
        &self,
        stream: Stream,
        header: &RecordHeader,
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
        let from_ram = state.large.iter().filter_map(|large| large.demotion.pin.as_ref());
        let demotion: usize = from_ram.map(|pin| pin.bytes()).sum();
        if demotion > 0 && demotion + pin.bytes() > self.demotion_bytes_max {
            return Err(Refused::Full);
        }
        let pages = page::extent_pages(header.bytes());
        let (segment, generation, page) = self.take_extent(state, stream, pages, header.epoch)?;
        let parts: Vec<&[u8]> = pin.record_parts().collect();
        pin.write_prefix(&page::seal_extent(self.page_id(segment, generation, page), &parts));
        let pin = Arc::new(pin);
        state.next_id += 1;
        let id = state.next_id;
        let mut first_page = page;
        let mut parts_left = 0;
        while let Some(part) = pin.segment(parts_left) {
            let work = Work {
                id,
                segment,
                generation,
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
        self.bytes_admitted.fetch_add(header.bytes() as u64, Relaxed);
        let class = class_of_pages(pages);
        let to = SsdPlace { segment, page: page as u16, class, generation: (generation & 0xF) as u8 };
        self.table.admit(to, header.expires, header.epoch);
        let bytes = pin.bytes();
        let demotion = Demotion { hash, from, to: Some(to), pin: Some(pin), bytes };
        state.large.push(Large { id, parts_left, failed: false, demotion });
        Ok(())
    }

    /// Takes `pages` whole pages of the stream's segment, or of its next one, for a record of `epoch`.
    fn take_extent(
        &self,
        state: &mut State,
        stream: Stream,
        pages: u32,
        epoch: u32,
    ) -> Result<(u32, u32, u32), Refused> {
        self.part_epochs(state, stream, epoch);
        self.close_page(state, stream);
        self.seal_write_buffer(state, stream);
        if state.streams[stream as usize].as_ref().is_some_and(|open| open.next_page + pages > SEGMENT_PAGES)
        {
            self.seal_segment(state, stream);
        }
        if state.streams[stream as usize].is_none() {
            self.open_segment(state, stream)?;
        }
        let open = state.streams[stream as usize].as_mut().expect("just opened");
        let place = (open.segment, open.generation, open.next_page);
        open.next_page += pages;
        Ok(place)
    }

    /// Begins to write a record that was read back and does not fit a write buffer, from a copy; its index entry
    /// moves when all of it has been written.
    pub(crate) fn move_large(
        &self,
        header: &RecordHeader,
        key: &[u8],
        value: &[u8],
        hash: KeyHash,
        from: Entry,
    ) -> Result<(), Refused> {
        if self.is_off() {
            return Err(Refused::Off);
        }
        let stream = self.stream(Stream::Readmitted);
        let pages = page::extent_pages(header.bytes());
        let mut state = self.lock();
        let state = &mut *state;
        let (segment, generation, page) = self.take_extent(state, stream, pages, header.epoch)?;
        let record = [&header.encode()[..], key, value];
        let seal = page::seal_extent(self.page_id(segment, generation, page), &record);
        let bytes = pages as usize * PAGE_BYTES;
        let mut copy = IoBuf::zeroed(bytes);
        let mut at = 0;
        for part in std::iter::once(&seal[..]).chain(record) {
            copy[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        let copy = Arc::new(copy);
        state.next_id += 1;
        let id = state.next_id;
        let mut parts_left = 0;
        for at in (0..bytes).step_by(self.write_buffer_bytes) {
            let part_bytes = self.write_buffer_bytes.min(bytes - at);
            self.budget.charge(part_bytes);
            self.table.add_pending(segment);
            parts_left += 1;
            state.queue.push_back(Work {
                id,
                segment,
                generation,
                first_page: page + (at / PAGE_BYTES) as u32,
                bytes: part_bytes,
                source: WriteSource::Copy(copy.clone(), at),
            });
        }
        self.bytes_moved.fetch_add(header.bytes() as u64, Relaxed);
        let class = class_of_pages(pages);
        let to = SsdPlace { segment, page: page as u16, class, generation: (generation & 0xF) as u8 };
        self.table.admit(to, header.expires, header.epoch);
        self.begin_demotion(state, bytes);
        let demotion = Demotion { hash, from, to: Some(to), pin: None, bytes };
        state.large.push(Large { id, parts_left, failed: false, demotion });
        Ok(())
    }
}
