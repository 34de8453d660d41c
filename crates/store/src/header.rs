//! The arena's first page: what the arena was made for, whether it was made completely, and the words that
//! belong to no shard.
//!
//! ```text
//! byte  0       8        12      16      24      32     40      48       144     184
//!       +-------+--------+-------+-------+-------+------+-------+--------+-------+---
//!       | magic | format | crc   | clock | paths | seed | evict | layout | sizes | zero
//!       | 8     | 4      | 32c 4 | 8     | 8     | 8    | 8     | 12 x 8 | 5 x 8 |
//!       +-------+--------+-------+-------+-------+------+-------+--------+-------+---
//! byte  3968  3976   4072  4080    4088    4096
//!       +-----+------+-----+-------+-------+
//!       | cas | zero | SSD | flush | state |
//!       | 8   |      | 8   | 8     | 8     |
//!       +-----+------+-----+-------+-------+
//! ```
//! All integers little endian. The CRC is over bytes 0 to 3968 with its own field zero. Magic, format and CRC
//! lie where they are in every version, so that each version knows the others' files for Larder's.
//! The page is written at once, before anything else. Of the words behind the CRC each changes on its own:
//! `cas`, the last cas unique given out, on a cache line of its own, since every change of an item writes it;
//! `SSD`, what the SSD holds; `flush`, the flush epoch and when the pending flush is due, so that a flush that
//! came due is carried out whole or not at all; and `state`, which is written last. `clock`, `paths` and `SSD`
//! are digests of names.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering::*};

use crate::arena::Region;
use crate::index::hash::Hasher;

/// Bytes of the page.
pub(crate) const HEADER_PAGE_BYTES: usize = 4096;
pub(crate) const MAGIC: [u8; 8] = *b"LARDERMM";
/// The version of everything that is kept in the arena, and of the pages on the SSD, which are read only with
/// it: to be raised whenever any of it means something else.
pub(crate) const FORMAT: u32 = 9;
/// The state of an arena that was made completely.
pub(crate) const READY: u64 = u64::from_le_bytes(*b"complete");

/// Words by which two layouts are compared.
pub(crate) const LAYOUT_WORDS: usize = 12;

pub(crate) const AT_FORMAT: usize = 8;
pub(crate) const AT_CRC: usize = 12;
pub(crate) const AT_CLOCK: usize = 16;
pub(crate) const AT_PATHS: usize = 24;
pub(crate) const AT_SEED: usize = 32;
pub(crate) const AT_EVICT: usize = 40;
pub(crate) const AT_LAYOUT: usize = 48;
pub(crate) const AT_SIZES: usize = AT_LAYOUT + 8 * LAYOUT_WORDS;
pub(crate) const AT_SIZES_END: usize = AT_SIZES + 5 * 8;
/// The end of the fields that are written once.
const AT_CAS: usize = HEADER_PAGE_BYTES - 128;
pub(crate) const AT_SSD: usize = HEADER_PAGE_BYTES - 24;
pub(crate) const AT_FLUSH: usize = HEADER_PAGE_BYTES - 16;
pub(crate) const AT_STATE: usize = HEADER_PAGE_BYTES - 8;

/// Why a store began empty. The texts complete "starting cold: the file ...".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cold {
    /// There is no file: the memory is the process's own.
    NoFile,
    /// The file is new, or was empty.
    New,
    /// The process that began it ended before it was complete.
    Unfinished,
    /// What it holds is laid out as another version of the store does.
    OtherVersion {
        /// Its format.
        found: u32,
    },
    /// The same options come to another layout: it was made by another version of the store.
    OtherLayout,
    /// Its times are another clock's: the machine has been started anew since.
    OtherClock,
    /// It was made for what the SSD held before it was emptied, or used without this file.
    OtherSsd,
    /// Its length is not what its header says.
    Cut,
}

impl fmt::Display for Cold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cold::NoFile => "is none",
            Cold::New => "is new",
            Cold::Unfinished => "was not completely made",
            Cold::OtherVersion { found } => {
                return write!(f, "was made by another version (format {found}; this one's is {FORMAT})");
            }
            Cold::OtherLayout => "was laid out by another version",
            Cold::OtherClock => "was made before the machine was started, or in another time namespace",
            Cold::OtherSsd => "was made for another SSD, or the SSD was used without it since",
            Cold::Cut => "was cut short, or made longer",
        })
    }
}

/// The options that a memory file was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeFor {
    /// The memory limit, in bytes.
    pub memory_bytes: u64,
    /// Segments of the SSD tier.
    pub ssd_segments: u32,
    /// The expected size of an item, in bytes.
    pub item_bytes: u32,
    /// The size of the index, in bytes, if it was given.
    pub index_bytes: Option<u64>,
    /// Whether a full memory evicts.
    pub evict: bool,
    clock: u64,
    paths: u64,
}

impl MadeFor {
    /// Reads the options of the memory that begins at `offset` of a file: `None` when it is not a whole memory
    /// of this version. Changes nothing.
    ///
    /// # Errors
    /// What reading the file reports.
    pub fn read(file: &File, offset: u64) -> io::Result<Option<MadeFor>> {
        let mut page = [0; HEADER_PAGE_BYTES];
        match file.read_exact_at(&mut page, offset) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let is_whole = is_ours(&page) && format_of(&page) == FORMAT && word(&page, AT_STATE) == READY;
        Ok(is_whole.then(|| MadeFor::decode(&page)))
    }

    pub(crate) fn decode(page: &[u8; HEADER_PAGE_BYTES]) -> MadeFor {
        let size = |number: usize| word(page, AT_SIZES + 8 * number);
        MadeFor {
            memory_bytes: size(0),
            ssd_segments: size(1) as u32,
            item_bytes: size(2) as u32,
            index_bytes: (size(3) != 0).then(|| size(4)),
            evict: word(page, AT_EVICT) != 0,
            clock: word(page, AT_CLOCK),
            paths: word(page, AT_PATHS),
        }
    }

    /// Whether its times are on this clock; the memory is of no use on another.
    pub fn is_on_clock(&self, clock: &str) -> bool {
        self.clock == digest(clock.as_bytes())
    }

    /// Whether its SSD had these paths.
    pub fn had_paths(&self, paths: &[u8]) -> bool {
        self.paths == digest(paths)
    }
}

pub(crate) fn digest(name: &[u8]) -> u64 {
    Hasher::new(0).hash(name).0
}

pub(crate) fn put(page: &mut [u8; HEADER_PAGE_BYTES], at: usize, word: u64) {
    page[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

pub(crate) fn word(page: &[u8; HEADER_PAGE_BYTES], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&page[at..at + 8]);
    u64::from_le_bytes(bytes)
}

pub(crate) fn crc(page: &[u8; HEADER_PAGE_BYTES]) -> u32 {
    let mut page = *page;
    page[AT_CRC..AT_CRC + 4].fill(0);
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &page[..AT_CAS]) as u32
}

/// Whether the page is a header of Larder's, of whatever version.
pub(crate) fn is_ours(page: &[u8; HEADER_PAGE_BYTES]) -> bool {
    page[..8] == MAGIC && crc(page).to_le_bytes() == page[AT_CRC..AT_CLOCK]
}

pub(crate) fn format_of(page: &[u8; HEADER_PAGE_BYTES]) -> u32 {
    u32::from_le_bytes([page[8], page[9], page[10], page[11]])
}

/// The page in memory.
pub(crate) struct ArenaHeader {
    words: Region<AtomicU64>,
}

/// When no flush is pending.
const NEVER: u32 = u32::MAX;

impl ArenaHeader {
    /// `words` are those of the page.
    pub(crate) fn new(words: Region<AtomicU64>) -> ArenaHeader {
        assert_eq!(words.len() * 8, HEADER_PAGE_BYTES);
        ArenaHeader { words }
    }

    fn flush(&self) -> &AtomicU64 {
        &self.words[AT_FLUSH / 8]
    }

    /// Begins to count flushes, and cas uniques after `cas`.
    pub(crate) fn begin(&self, cas: u64) {
        self.words[AT_CAS / 8].store(cas, Relaxed);
        self.flush().store(1 << 32 | u64::from(NEVER), Relaxed);
    }

    /// Ends the making of an arena, of which everything else is as it should be, for an SSD of this name.
    pub(crate) fn finish(&self, ssd: &[u8]) {
        crate::crash::step();
        self.words[AT_SSD / 8].store(digest(ssd).to_le(), Relaxed);
        crate::crash::step();
        self.words[AT_STATE / 8].store(READY, Release);
    }

    /// Returns a cas unique that no version of any item has had.
    #[inline]
    pub(crate) fn next_cas(&self) -> u64 {
        self.words[AT_CAS / 8].fetch_add(1, Relaxed).wrapping_add(1)
    }

    /// Flushes so far: a record written in an earlier epoch is gone.
    #[inline]
    pub(crate) fn epoch(&self) -> u32 {
        (self.flush().load(Relaxed) >> 32) as u32
    }

    /// Flushes now; a pending flush is replaced by that.
    pub(crate) fn flush_now(&self) {
        let flushed = |word: u64| Some(((word >> 32) + 1) << 32 | u64::from(NEVER));
        let _ = self.flush().fetch_update(Relaxed, Relaxed, flushed);
    }

    /// Makes a flush pending, in place of an earlier one.
    pub(crate) fn flush_later(&self, at: u32) {
        let planned = |word: u64| Some(word & !u64::from(u32::MAX) | u64::from(at));
        let _ = self.flush().fetch_update(Relaxed, Relaxed, planned);
    }

    /// Returns whether a flush is pending.
    pub(crate) fn flush_is_pending(&self) -> bool {
        self.flush().load(Relaxed) as u32 != NEVER
    }

    /// Carries the pending flush out if it is due by `now`.
    #[inline]
    pub(crate) fn tick(&self, now: u32) {
        let word = self.flush().load(Relaxed);
        if word as u32 <= now {
            let flushed = ((word >> 32) + 1) << 32 | u64::from(NEVER);
            // If the exchange fails, another thread has carried it out or replaced it.
            let _ = self.flush().compare_exchange(word, flushed, Relaxed, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;

    fn header() -> ArenaHeader {
        let header = ArenaHeader::new(Arena::new(8192, None).expect("memory").carve(HEADER_PAGE_BYTES / 8));
        header.begin(0);
        header
    }

    #[test]
    fn a_flush_that_comes_due_is_carried_out_once() {
        let header = header();
        header.tick(1_000);
        assert_eq!(header.epoch(), 1, "none was pending");
        header.flush_later(1_010);
        header.tick(1_009);
        assert_eq!(header.epoch(), 1);
        header.tick(1_010);
        header.tick(1_011);
        assert_eq!(header.epoch(), 2);
    }

    #[test]
    fn a_flush_replaces_the_pending_one() {
        let header = header();
        header.flush_later(1_010);
        header.flush_now();
        header.tick(2_000);
        assert_eq!(header.epoch(), 2);
        header.flush_later(2_010);
        header.flush_later(2_020);
        header.tick(2_010);
        assert_eq!(header.epoch(), 2);
        header.tick(2_020);
        assert_eq!(header.epoch(), 3);
    }
}
