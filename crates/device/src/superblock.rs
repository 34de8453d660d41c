//! The block that marks a device's range as Larder's. Never the layout of what follows it.

use std::fmt;
use std::io;

use crc_fast::{CrcAlgorithm, checksum};

use super::PAGE_BYTES;

/// Bytes at the start of a range that hold the superblock and keep the data behind it aligned to what flash
/// erases.
pub(super) const HEADER_BYTES: u64 = 1 << 20;

/// Fewest segments a range must have room for: one being filled, one being emptied, and two to read from.
pub(super) const SEGMENTS_MIN: u64 = 4;

/// Most slices a file or disk is divided into.
pub(super) const SHARES_MAX: u32 = 1024;

/// A random identity.
pub(super) fn new_store_id() -> io::Result<StoreId> {
    let mut id = StoreId::default();
    let filled = rustix::rand::getrandom(&mut id[..], rustix::rand::GetRandomFlags::empty())?;
    if filled == id.len() { Ok(id) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// A store's identity, random. Records carry it in their checksums, so that nothing written by another store,
/// or by this one before it was emptied, is ever taken for its own.
pub type StoreId = [u8; 16];

const MAGIC: [u8; 8] = *b"LARDERSB";

/// The version of the on-disk format that this code writes and reads.
const VERSION: u32 = 1;

/// What the first page of a device's range says. All integers are little endian.
///
/// ```text
/// byte   0        8         12       16         32      36      40        48        56        64        4096
///        +--------+---------+--------+----------+-------+-------+---------+---------+---------+--- - ----+
///        | magic  | version | crc32c | store id | share | share | range   | segment | created | zero     |
///        | 8      | 4       | 4      | 16       | index | count | bytes 8 | bytes 8 | unix s 8|          |
///        +--------+---------+--------+----------+-------+-------+---------+---------+---------+--- - ----+
/// ```
///
/// The CRC is over all 4096 bytes with its own field zero. Everything that varies is in the first sector, so
/// a power cut leaves the old block or the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Whose data follows.
    pub store_id: StoreId,
    /// Which slice of the file or disk this is, from 1.
    pub share_index: u32,
    /// Of how many slices; 1 when there is one user.
    pub share_count: u32,
    /// Bytes of the slice, this block included.
    pub range_bytes: u64,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// When the store was created, in seconds since 1970.
    pub created_unix_s: u64,
}

const AT_VERSION: usize = 8;
const AT_CRC: usize = 12;
const AT_STORE_ID: usize = 16;
const AT_SHARE_INDEX: usize = 32;
const AT_SHARE_COUNT: usize = 36;
const AT_RANGE: usize = 40;
const AT_SEGMENT: usize = 48;
const AT_CREATED: usize = 56;
const AT_ZERO: usize = 64;

const _: () = {
    assert!(AT_VERSION == MAGIC.len() && AT_CRC == AT_VERSION + 4 && AT_STORE_ID == AT_CRC + 4);
    assert!(AT_SHARE_INDEX == AT_STORE_ID + size_of::<StoreId>() && AT_SHARE_COUNT == AT_SHARE_INDEX + 4);
    assert!(AT_RANGE == AT_SHARE_COUNT + 4 && AT_SEGMENT == AT_RANGE + 8 && AT_CREATED == AT_SEGMENT + 8);
    assert!(AT_ZERO == AT_CREATED + 8 && AT_ZERO <= 512);
};

/// Why a page is no superblock of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuperblockError {
    /// It does not begin with the magic: it was never one.
    Foreign,
    /// It is one of another format version.
    Version {
        /// The version it has.
        found: u32,
    },
    /// It was one, and is damaged.
    Checksum {
        /// The CRC it carries.
        expected: u32,
        /// The CRC it has.
        found: u32,
    },
}

impl fmt::Display for SuperblockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SuperblockError::Foreign => write!(f, "no Larder superblock"),
            SuperblockError::Version { found } => {
                write!(
                    f,
                    "a Larder superblock of format version {found}; this Larder reads version {VERSION}"
                )
            }
            SuperblockError::Checksum { expected, found } => {
                write!(f, "a damaged Larder superblock (checksum {found:08x}, expected {expected:08x})")
            }
        }
    }
}

impl std::error::Error for SuperblockError {}

impl Superblock {
    /// The page to write.
    pub fn encode(&self) -> [u8; PAGE_BYTES] {
        let mut page = [0; PAGE_BYTES];
        put(&mut page, 0, &MAGIC);
        put(&mut page, AT_VERSION, &VERSION.to_le_bytes());
        put(&mut page, AT_STORE_ID, &self.store_id);
        put(&mut page, AT_SHARE_INDEX, &self.share_index.to_le_bytes());
        put(&mut page, AT_SHARE_COUNT, &self.share_count.to_le_bytes());
        put(&mut page, AT_RANGE, &self.range_bytes.to_le_bytes());
        put(&mut page, AT_SEGMENT, &self.segment_bytes.to_le_bytes());
        put(&mut page, AT_CREATED, &self.created_unix_s.to_le_bytes());
        let crc = crc32c(&page);
        put(&mut page, AT_CRC, &crc.to_le_bytes());
        page
    }

    /// Reads a page back.
    ///
    /// # Errors
    /// What it is instead.
    pub fn decode(page: &[u8; PAGE_BYTES]) -> Result<Self, SuperblockError> {
        if take::<8>(page, 0) != MAGIC {
            return Err(SuperblockError::Foreign);
        }
        // Before the checksum, which another version may compute otherwise.
        let version = u32::from_le_bytes(take(page, AT_VERSION));
        if version != VERSION {
            return Err(SuperblockError::Version { found: version });
        }
        let expected = u32::from_le_bytes(take(page, AT_CRC));
        let mut cleared = *page;
        put(&mut cleared, AT_CRC, &[0; 4]);
        let found = crc32c(&cleared);
        if found != expected {
            return Err(SuperblockError::Checksum { expected, found });
        }
        Ok(Superblock {
            store_id: take(page, AT_STORE_ID),
            share_index: u32::from_le_bytes(take(page, AT_SHARE_INDEX)),
            share_count: u32::from_le_bytes(take(page, AT_SHARE_COUNT)),
            range_bytes: u64::from_le_bytes(take(page, AT_RANGE)),
            segment_bytes: u64::from_le_bytes(take(page, AT_SEGMENT)),
            created_unix_s: u64::from_le_bytes(take(page, AT_CREATED)),
        })
    }
}

fn crc32c(page: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, page) as u32
}

fn put(page: &mut [u8; PAGE_BYTES], at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}

fn take<const N: usize>(page: &[u8; PAGE_BYTES], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&page[at..at + N]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Superblock = Superblock {
        store_id: [7; 16],
        share_index: 3,
        share_count: 8,
        range_bytes: 1 << 30,
        segment_bytes: 16 << 20,
        created_unix_s: 1_790_000_000,
    };

    #[test]
    fn it_comes_back() {
        assert_eq!(Superblock::decode(&SAMPLE.encode()), Ok(SAMPLE));
    }

    #[test]
    fn the_format_is_what_is_drawn() {
        let page = SAMPLE.encode();
        assert_eq!(&page[..12], b"LARDERSB\x01\0\0\0");
        assert_eq!(
            &page[16..40],
            b"\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x03\0\0\0\x08\0\0\0"
        );
        assert_eq!(page[40..48], (1u64 << 30).to_le_bytes());
        assert!(page[64..].iter().all(|&b| b == 0));
        assert_eq!(crc32c(b"123456789"), 0xe306_9283, "the check value of CRC-32C");
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let page = SAMPLE.encode();
        for bit in 0..PAGE_BYTES * 8 {
            let mut flipped = page;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Superblock::decode(&flipped).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn what_it_is_not_is_told_apart() {
        assert_eq!(Superblock::decode(&[0; PAGE_BYTES]), Err(SuperblockError::Foreign));
        let mut page = SAMPLE.encode();
        page[AT_VERSION] = 9;
        assert_eq!(Superblock::decode(&page), Err(SuperblockError::Version { found: 9 }));
    }
}
