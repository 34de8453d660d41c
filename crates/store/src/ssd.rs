//! The SSD tier: a ring of segments filled through write buffers, read page by page. It never touches a
//! device itself: it says what to read and write.

pub(crate) mod health;
pub(crate) mod log;
mod openings;
pub(crate) mod page;
mod sealed;
pub(crate) mod segment_table;
pub(crate) mod write;
pub(crate) mod write_buffer;

/// Bytes of a segment, the unit of allocation, reuse and expiry. Only simulations are compiled with small ones, by
/// `--cfg larder_small_segments`, so that an SSD of some hundred MiB has as many segments as a real one.
pub const SEGMENT_BYTES: u64 = if cfg!(larder_small_segments) { 1 << 20 } else { 16 << 20 };
/// Bytes of a page, the unit of a read.
pub const PAGE_BYTES: usize = 4096;
/// Pages of a segment.
pub(crate) const SEGMENT_PAGES: u32 = (SEGMENT_BYTES / PAGE_BYTES as u64) as u32;
/// The largest value that is kept on the SSD, half a segment; larger ones live in RAM only.
pub const SSD_VALUE_BYTES_MAX: usize = SEGMENT_BYTES as usize / 2;

const _: () = assert!(SEGMENT_PAGES <= 1 << 12, "a page number fits its field of an index entry");
