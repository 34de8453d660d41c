//! Probes of a device that failed: a page is written to some segment and read back, until the device has kept
//! some in a row. The log then begins again, empty.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use larder_device::IoBuf;

use super::stream::STREAMS;
use super::{Log, PageRead, State};
use crate::ssd::PAGE_BYTES;
use crate::ssd::health::Phase;
use crate::ssd::write::{Work, WriteJob, WriteSource};

/// The generation of a probe's page: no filling of a segment has it, so the page is never taken for one of the
/// log's.
const PROBE_TURN: u32 = 0;

impl Log {
    /// The write of the next probe, if one is due. What the log had to write before is off its queue by then.
    pub(super) fn next_probe(&self, state: &mut State) -> Option<WriteJob> {
        let mut probing = self.health.probing();
        let is_quiet = state.queue.is_empty() && state.in_flight.is_empty();
        if probing.phase != Phase::Write || !is_quiet {
            return None;
        }
        probing.phase = Phase::Writing;
        let number = self.health.probes.fetch_add(1, Relaxed);
        // Segments take turns, and with them devices.
        let segment = (number % u64::from(self.segments())) as u32;
        let mut page = IoBuf::zeroed(PAGE_BYTES);
        // Different each time, so that a write that was lost shows.
        for (nth, word) in page.chunks_exact_mut(8).enumerate() {
            let word_of = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ nth as u64;
            word.copy_from_slice(&word_of.to_le_bytes());
        }
        let page = Arc::new(page);
        state.probe = Some((segment, page.clone()));
        state.next_id += 1;
        let id = state.next_id;
        let source = WriteSource::Copy(page, 0);
        let work = Work { id, segment, generation: PROBE_TURN, first_page: 0, bytes: PAGE_BYTES, source };
        state.in_flight.push(work.clone());
        let ssd_copy = self.ssd_copy(segment);
        Some(WriteJob { device: ssd_copy.device as usize, offset: ssd_copy.offset, work })
    }

    /// Returns whether a job is a probe's.
    pub(super) fn is_probe(work: &Work) -> bool {
        work.generation == PROBE_TURN
    }

    /// Returns whether a read is a probe's.
    pub(crate) fn is_probe_read(read: &PageRead) -> bool {
        read.id.generation == PROBE_TURN
    }

    /// The read of a probe whose page has been written.
    pub(crate) fn next_probe_read(&self) -> Option<PageRead> {
        let state = self.lock();
        let mut probing = self.health.probing();
        let &(segment, _) = state.probe.as_ref().filter(|_| probing.phase == Phase::Read)?;
        probing.phase = Phase::Reading;
        let ssd_copy = self.ssd_copy(segment);
        let id = self.page_id(segment, PROBE_TURN, 0);
        Some(PageRead { device: ssd_copy.device, offset: ssd_copy.offset, bytes: PAGE_BYTES, id })
    }

    /// Takes what a probe read, and turns the tier on when enough probes have brought what they wrote.
    pub(crate) fn complete_probe(&self, bytes: Option<&[u8]>) {
        let mut state = self.lock();
        let state = &mut *state;
        let Some((_, page)) = state.probe.take() else { return };
        if self.health.probed(bytes.is_some_and(|bytes| bytes == &page[..])) {
            self.begin_again(state);
            self.health.turn_on();
        }
    }

    /// Makes the log empty: every record on the device is dead, every segment free.
    fn begin_again(&self, state: &mut State) {
        for stream in 0..STREAMS {
            let Some(open) = state.streams[stream].take() else { continue };
            if let Some(filling) = open.write_buffer {
                self.lines[filling.write_buffer.number as usize].clear();
                self.table.remove_pending(open.segment);
                state.free_write_buffers.push(filling.write_buffer);
            }
        }
        state.reclaim = None;
        state.sealed.clear();
        state.free.clear();
        for segment in 0..self.segments() {
            self.table.retire(segment);
            self.table.set_cleaning(segment, false);
            state.free.push_back(segment);
        }
    }
}
