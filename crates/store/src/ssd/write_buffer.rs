//! Write buffers: the memory of each, and the line of the arena that says what of it is not on the device
//! yet, so that a later process can write it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*, compiler_fence};
use zerocopy::FromBytes;

use super::PAGE_BYTES;
use super::page::Content;
use crate::arena::Region;
use crate::crash::step;

/// What the arena knows of one write buffer.
///
/// ```text
/// filled   63 62   48 47    32 31    16 15     8 7      0
///         +--+-------+--------+--------+--------+--------+
///         |1 | pages | bytes  | first  |   0    | count  |
///         +--+-------+--------+--------+--------+--------+
/// ```
/// The highest bit says that the buffer is in use. `pages` are sealed; the rest is the [`Content`] of the
/// open page behind them (all 0 when there is none). The word changes in one store, after the bytes that it
/// speaks of and before any that it does not.
#[derive(FromBytes)]
#[repr(C)]
pub(crate) struct WriteBufferState {
    filled: AtomicU64,
    segment: AtomicU32,
    generation: AtomicU32,
    first_page: AtomicU32,
    spare: AtomicU32,
}

const _: () = assert!(size_of::<WriteBufferState>() == 24, "no padding");

/// Where a buffer's pages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteBufferPlace {
    pub segment: u32,
    pub generation: u32,
    pub first_page: u32,
}

/// How far a buffer is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Fill {
    /// Where in the buffer the open page begins.
    pub page_at: usize,
    /// The content of the open page; of 0 bytes when it has not begun.
    pub open: Content,
}

const IN_USE: u64 = 1 << 63;

impl WriteBufferState {
    fn store(&self, word: u64) {
        step();
        compiler_fence(SeqCst);
        self.filled.store(word, Relaxed);
        compiler_fence(SeqCst);
        step();
    }

    /// The buffer's pages are to go to `place`; it holds none yet.
    pub(super) fn begin(&self, place: WriteBufferPlace) {
        self.segment.store(place.segment, Relaxed);
        self.generation.store(place.generation, Relaxed);
        step();
        self.first_page.store(place.first_page, Relaxed);
        self.fill(Fill::default());
    }

    pub(super) fn fill(&self, fill: Fill) {
        let Fill { page_at, open } = fill;
        let pages = (page_at / PAGE_BYTES) as u64;
        let open = (open.bytes as u64) << 32 | (open.first as u64) << 16 | u64::from(open.count);
        self.store(IN_USE | pages << 48 | open);
    }

    /// What the buffer held is on the device, or given up.
    pub(super) fn clear(&self) {
        self.store(0);
    }

    /// What the line says, if the buffer, `write_buffer_bytes` long, is in use and the line can be true.
    pub(super) fn load(&self, write_buffer_bytes: usize) -> Option<(WriteBufferPlace, Fill)> {
        let word = self.filled.load(Relaxed);
        let fill = Fill {
            page_at: (word >> 48 & 0x7FFF) as usize * PAGE_BYTES,
            open: Content {
                bytes: (word >> 32 & 0xFFFF) as usize,
                first: (word >> 16 & 0xFFFF) as usize,
                count: word as u8,
            },
        };
        let Content { bytes, first, .. } = fill.open;
        let pages = fill.page_at + if bytes > 0 { PAGE_BYTES } else { 0 };
        let possible = pages <= write_buffer_bytes
            && bytes <= PAGE_BYTES
            && (bytes == 0 || (super::page::PAGE_HEADER_BYTES..=bytes).contains(&first));
        let place = WriteBufferPlace {
            segment: self.segment.load(Relaxed),
            generation: self.generation.load(Relaxed),
            first_page: self.first_page.load(Relaxed),
        };
        (word & IN_USE != 0 && possible).then_some((place, fill))
    }
}

/// A write buffer.
pub(crate) struct WriteBuffer {
    /// Which line is its.
    pub(super) number: u32,
    pub(super) memory: Region<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;

    const PLACE: WriteBufferPlace = WriteBufferPlace { segment: 3, generation: 7, first_page: 100 };

    fn line() -> Region<WriteBufferState> {
        Arena::new(8192, None).expect("memory").carve(1)
    }

    #[test]
    fn a_line_says_what_was_stored_last() {
        let line = line();
        assert_eq!(line[0].load(65_536), None, "new memory is a free buffer");
        line[0].begin(PLACE);
        assert_eq!(line[0].load(65_536), Some((PLACE, Fill::default())));
        let open = Content { bytes: PAGE_BYTES, first: 99, count: 77 };
        let fill = Fill { page_at: 15 * PAGE_BYTES, open };
        line[0].fill(fill);
        assert_eq!(line[0].load(65_536), Some((PLACE, fill)));
        line[0].clear();
        assert_eq!(line[0].load(65_536), None);
    }

    #[test]
    fn a_line_that_cannot_be_true_is_not_believed() {
        let line = line();
        for (page_at, bytes, first) in [
            (17 * PAGE_BYTES, 0, 0),
            (16 * PAGE_BYTES, 20, 16),
            (0, 15, 15),
            (0, 20, 15),
            (0, 20, 21),
            (0, PAGE_BYTES + 1, 16),
        ] {
            let fill = Fill { page_at, open: Content { bytes, first, count: 1 } };
            line[0].begin(PLACE);
            line[0].fill(fill);
            assert_eq!(line[0].load(65_536), None, "{fill:?}");
        }
        line[0].store(IN_USE >> 1);
        assert_eq!(line[0].load(65_536), None);
    }
}
