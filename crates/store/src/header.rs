//! The arena's first page: what the arena was made for, whether it was made completely, and the words that
//! belong to no shard.
//!
//! ```text
//! byte  0       8        12      16      24      32     40       48             3968  3976    4080    4088    4096
//!       +-------+--------+-------+-------+-------+------+--------+--------+--- -+-----+--- - -+-------+-------+
//!       | magic | format | crc   | clock | SSD   | seed | evicts | layout | zero| cas | zero  | flush | state |
//!       | 8     | 4      | 32c 4 | 8     | 8     | 8    | 8      | 12 x 8 |     | 8   |       | 8     | 8     |
//!       +-------+--------+-------+-------+-------+------+--------+--------+--- -+-----+--- - -+-------+-------+
//! ```
//! All integers little endian. The CRC is over bytes 0 to 3968 with its own field zero: what is written once.
//! `clock` and `SSD` are digests of the names they go by. `cas` is the last cas unique given out, on a cache
//! line of its own, since every change of an item writes it. `flush` holds the flush epoch and when the pending
//! flush is due, in one word, so that a flush that came due is carried out whole or not at all. `state` is
//! written last.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering::*};

use crate::arena::Region;
use crate::hash::Hasher;
use crate::layout::Layout;

/// Bytes of the page.
pub(crate) const HEADER_PAGE_BYTES: usize = 4096;
const MAGIC: [u8; 8] = *b"LARDERMM";
/// The version of everything that is kept in the arena: to be raised whenever any of it means something else.
const FORMAT: u32 = 3;
/// The state of an arena that was made completely.
const READY: u64 = u64::from_le_bytes(*b"complete");

const AT_FORMAT: usize = 8;
const AT_CRC: usize = 12;
const AT_CLOCK: usize = 16;
const AT_SSD: usize = 24;
const AT_SEED: usize = 32;
const AT_EVICTS: usize = 40;
const AT_LAYOUT: usize = 48;
/// The end of what is written once.
const AT_CAS: usize = HEADER_PAGE_BYTES - 128;
const AT_FLUSH: usize = HEADER_PAGE_BYTES - 16;
const AT_STATE: usize = HEADER_PAGE_BYTES - 8;

/// Why a store began empty. The texts complete "starting cold: the file ...".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cold {
    /// There is no file: the memory is the process's own.
    NoFile,
    /// The file is new, or was empty.
    New,
    /// Whoever made it did not come to the end.
    Unfinished,
    /// What it holds is laid out as another version of the store does.
    OtherVersion {
        /// Its format.
        found: u32,
    },
    /// Its times are another clock's: the machine has been started anew since.
    OtherClock,
    /// It was made for another memory limit, SSD size, item size or index size.
    OtherSize,
    /// It was made for another SSD, or for what the SSD held before it was emptied.
    OtherSsd,
    /// It was made with evictions where there are to be none, or the other way round.
    OtherEvictions,
    /// Its header was changed by somebody else.
    Damaged,
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
            Cold::OtherClock => "was made before the machine was started, or in another time namespace",
            Cold::OtherSize => "was made for another size of memory, SSD, index or items",
            Cold::OtherSsd => "was made for another SSD, or the SSD was used without it since",
            Cold::OtherEvictions => "was made with another choice about evictions",
            Cold::Damaged => "has a damaged header",
        })
    }
}

/// What must be the same for an arena to be of use.
pub(crate) struct Identity<'a> {
    pub clock: &'a str,
    pub ssd: &'a [u8],
    pub evicts: bool,
    pub layout: &'a Layout,
}

/// What a memory file holds.
pub(crate) enum Content {
    /// A whole arena, of this seed.
    Arena(u64),
    /// Nothing of use, and nothing of anybody else's.
    Useless(Cold),
    /// Something that is not an arena.
    Foreign,
}

fn digest(name: &[u8]) -> u64 {
    Hasher::new(0).hash(name).0
}

fn put(page: &mut [u8; HEADER_PAGE_BYTES], at: usize, word: u64) {
    page[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

fn word(page: &[u8; HEADER_PAGE_BYTES], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&page[at..at + 8]);
    u64::from_le_bytes(bytes)
}

fn crc(page: &[u8; HEADER_PAGE_BYTES]) -> u32 {
    let mut page = *page;
    page[AT_CRC..AT_CRC + 4].fill(0);
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &page[..AT_CAS]) as u32
}

impl Identity<'_> {
    fn encode(&self, seed: u64) -> [u8; HEADER_PAGE_BYTES] {
        let mut page = [0; HEADER_PAGE_BYTES];
        page[..8].copy_from_slice(&MAGIC);
        page[AT_FORMAT..AT_CRC].copy_from_slice(&FORMAT.to_le_bytes());
        put(&mut page, AT_CLOCK, digest(self.clock.as_bytes()));
        put(&mut page, AT_SSD, digest(self.ssd));
        put(&mut page, AT_SEED, seed);
        put(&mut page, AT_EVICTS, u64::from(self.evicts));
        for (number, word) in self.layout.words().into_iter().enumerate() {
            put(&mut page, AT_LAYOUT + 8 * number, word);
        }
        let crc = crc(&page);
        page[AT_CRC..AT_CLOCK].copy_from_slice(&crc.to_le_bytes());
        page
    }

    /// Looks at what a file holds; changes nothing.
    pub(crate) fn examine(&self, file: &File) -> io::Result<Content> {
        let bytes = file.metadata()?.len();
        if bytes == 0 {
            return Ok(Content::Useless(Cold::New));
        }
        let mut page = [0; HEADER_PAGE_BYTES];
        if bytes < HEADER_PAGE_BYTES as u64 {
            return Ok(Content::Foreign);
        }
        file.read_exact_at(&mut page, 0)?;
        if page == [0; HEADER_PAGE_BYTES] {
            // As it is between getting its length and getting its header.
            return Ok(Content::Useless(Cold::Unfinished));
        }
        if page[..8] != MAGIC {
            return Ok(Content::Foreign);
        }
        if word(&page, AT_STATE) != READY {
            return Ok(Content::Useless(Cold::Unfinished));
        }
        // Before the checksum, which another version may compute otherwise.
        let found = u32::from_le_bytes([page[8], page[9], page[10], page[11]]);
        if found != FORMAT {
            return Ok(Content::Useless(Cold::OtherVersion { found }));
        }
        let seed = word(&page, AT_SEED);
        let wanted = self.encode(seed);
        let differs = |at: usize, bytes: usize| page[at..at + bytes] != wanted[at..at + bytes];
        let why = if crc(&page).to_le_bytes() != page[AT_CRC..AT_CLOCK] {
            Cold::Damaged
        } else if differs(AT_CLOCK, 8) {
            Cold::OtherClock
        } else if differs(AT_LAYOUT, AT_CAS - AT_LAYOUT) || bytes != self.layout.arena_bytes {
            Cold::OtherSize
        } else if differs(AT_SSD, 8) {
            Cold::OtherSsd
        } else if differs(AT_EVICTS, 8) {
            Cold::OtherEvictions
        } else {
            return Ok(Content::Arena(seed));
        };
        Ok(Content::Useless(why))
    }
}

/// The page in memory.
pub(crate) struct Header {
    words: Region<AtomicU64>,
}

/// When no flush is pending.
const NEVER: u32 = u32::MAX;

impl Header {
    /// `words` are those of the page.
    pub(crate) fn new(words: Region<AtomicU64>) -> Header {
        assert_eq!(words.len() * 8, HEADER_PAGE_BYTES);
        Header { words }
    }

    fn flush(&self) -> &AtomicU64 {
        &self.words[AT_FLUSH / 8]
    }

    /// Begins a new arena, not made completely yet, whose first cas unique comes after `cas`.
    pub(crate) fn begin(&self, cas: u64) {
        // First of all, so that the file is known for one of ours.
        self.words[0].store(u64::from_le_bytes(MAGIC), Release);
        self.words[AT_CAS / 8].store(cas, Relaxed);
        self.flush().store(1 << 32 | u64::from(NEVER), Relaxed);
    }

    /// Ends the making of an arena, of which everything else is as it should be.
    pub(crate) fn finish(&self, identity: &Identity<'_>, seed: u64) {
        for (word, bytes) in self.words[..AT_CAS / 8].iter().zip(identity.encode(seed).chunks_exact(8)) {
            crate::crash::step();
            word.store(u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes")), Relaxed);
        }
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

    /// Makes a flush pending, in place of what was.
    pub(crate) fn flush_later(&self, at: u32) {
        let planned = |word: u64| Some(word & !u64::from(u32::MAX) | u64::from(at));
        let _ = self.flush().fetch_update(Relaxed, Relaxed, planned);
    }

    /// Carries the pending flush out if it is due by `now`.
    #[inline]
    pub(crate) fn tick(&self, now: u32) {
        let word = self.flush().load(Relaxed);
        if word as u32 <= now {
            let flushed = ((word >> 32) + 1) << 32 | u64::from(NEVER);
            // Whoever loses found it carried out, or replaced.
            let _ = self.flush().compare_exchange(word, flushed, Relaxed, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;

    fn header() -> Header {
        let header = Header::new(Arena::new(8192, None).expect("memory").carve(HEADER_PAGE_BYTES / 8));
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

    #[test]
    fn the_page_is_what_is_drawn() {
        let sizes = crate::layout::Sizes {
            memory_bytes: 4 << 20,
            ssd_segments: 0,
            item_bytes: 512,
            index_bytes: None,
        };
        let layout = Layout::new(&sizes).expect("fits");
        let page = Identity { clock: "c", ssd: b"s", evicts: true, layout: &layout }.encode(7);
        assert_eq!(&page[..12], b"LARDERMM\x03\0\0\0");
        assert_eq!(page[12..16], crc(&page).to_le_bytes());
        assert_eq!((word(&page, 16), word(&page, 24)), (digest(b"c"), digest(b"s")));
        assert_eq!((word(&page, 32), word(&page, 40), word(&page, 48)), (7, 1, layout.shards.into()));
        assert!(page[48 + 12 * 8..].iter().all(|&byte| byte == 0));
    }
}
