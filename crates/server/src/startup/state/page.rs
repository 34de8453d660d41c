//! The first page of a state file.
//!
//! ```text
//! byte  0       8         12      16          24       32      40      48     4096
//!       +-------+---------+-------+-----------+--------+-------+-------+------+------------
//!       | magic | version | crc   | unix base | second | bytes | sum   | zero | the memory,
//!       | 8     | 4       | 32c 4 | 8         | 8      | 8     | 8     |      | with holes
//!       +-------+---------+-------+-----------+--------+-------+-------+------+------------
//! ```
//! All integers are little endian. `crc` is over the page with its own field zero, `sum` is the CRC-64/NVME of the
//! `bytes` of memory. The items' times are on a clock that had its second 0 at Unix time `unix base` and came to
//! `second`: the next daemon's clock continues from there.
//!
//! Magic, version and checksum lie where they are in every version.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crc_fast::{CrcAlgorithm, checksum};

pub(super) const PAGE_BYTES: usize = 4096;
const MAGIC: [u8; 8] = *b"LARDERST";
pub(super) const VERSION: u32 = 1;
pub(super) const AT_CRC: usize = 12;
pub(super) const AT_BASE: usize = 16;
pub(super) const AT_SECOND: usize = 24;
pub(super) const AT_BYTES: usize = 32;
pub(super) const AT_SUM: usize = 40;

/// Returns the first page of a state.
pub(super) fn encode(unix_base: i64, second: u32, bytes: u64, sum: u64) -> [u8; PAGE_BYTES] {
    let mut page = [0; PAGE_BYTES];
    page[..8].copy_from_slice(&MAGIC);
    page[8..AT_CRC].copy_from_slice(&VERSION.to_le_bytes());
    page[AT_BASE..AT_SECOND].copy_from_slice(&unix_base.to_le_bytes());
    page[AT_SECOND..AT_BYTES].copy_from_slice(&u64::from(second).to_le_bytes());
    page[AT_BYTES..AT_SUM].copy_from_slice(&bytes.to_le_bytes());
    page[AT_SUM..AT_SUM + 8].copy_from_slice(&sum.to_le_bytes());
    let crc = page_crc(&page);
    page[AT_CRC..AT_BASE].copy_from_slice(&crc);
    page
}

/// Reads the first page of a state. Returns `None` if it is not one of Larder's.
pub(super) fn read_page(file: &File) -> io::Result<Option<[u8; PAGE_BYTES]>> {
    let mut page = [0; PAGE_BYTES];
    match file.read_exact_at(&mut page, 0) {
        Ok(()) => Ok((page[..8] == MAGIC && page_crc(&page) == page[AT_CRC..AT_BASE]).then_some(page)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the word at a place of the page.
pub(super) fn word(page: &[u8; PAGE_BYTES], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&page[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// Returns the checksum of the page.
pub(super) fn page_crc(page: &[u8; PAGE_BYTES]) -> [u8; 4] {
    let mut page = *page;
    page[AT_CRC..AT_BASE].fill(0);
    (checksum(CrcAlgorithm::Crc32Iscsi, &page) as u32).to_le_bytes()
}
