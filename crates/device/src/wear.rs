//! The bytes ever written to a range, kept in two pages behind the superblock. The superblock itself is not written
//! again for it: it names the content, and a figure is not worth a risk to that.
//!
//! ```text
//! byte of the range   0            4096      8192      12288                1 MiB
//!                     +------------+---------+---------+----------- - -------+----
//!                     | superblock | count   | count   | zero                | data
//!                     +------------+---------+---------+----------- - -------+----
//! of a count          0        8       12      16               24          4096
//!                     | magic  | crc32c | zero | bytes written  | zero      |
//! ```
//! All integers are little endian. The CRC is over all 4096 bytes with its own field zero. The pages are written in
//! turn, so one that is torn leaves the other; the larger of two valid counts is the newer one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crc_fast::{CrcAlgorithm, checksum};

use super::superblock::HEADER_BYTES;
use super::{IoBuf, PAGE_BYTES};

const MAGIC: [u8; 8] = *b"LARDERWR";
const AT_CRC: usize = 8;
const AT_BYTES: usize = 16;
/// The offsets of the two pages in the range.
const PLACES: [u64; 2] = [PAGE_BYTES as u64, 2 * PAGE_BYTES as u64];

const _: () = {
    assert!(AT_CRC == MAGIC.len() && AT_BYTES + 8 <= 512);
    assert!(PLACES[1] + PAGE_BYTES as u64 <= HEADER_BYTES);
};

/// Returns the count in the range that begins at `start`; 0 if none can be read.
pub(super) fn read(file: &File, start: u64) -> u64 {
    let mut page = IoBuf::zeroed(PAGE_BYTES);
    let mut count = |place: &u64| {
        file.read_exact_at(&mut page, start + place).ok()?;
        decode(&page)
    };
    PLACES.iter().filter_map(&mut count).max().unwrap_or(0)
}

/// Writes a count that is larger than all before it.
///
/// # Errors
/// The error of the device; the count before it can still be read then.
pub(super) fn write(file: &File, start: u64, bytes: u64) -> io::Result<()> {
    let mut page = IoBuf::zeroed(PAGE_BYTES);
    // The page that has the older count, or none.
    let mut found = [0; 2];
    for (count, place) in found.iter_mut().zip(PLACES) {
        file.read_exact_at(&mut page, start + place)?;
        *count = decode(&page).unwrap_or(0);
    }
    let place = if found[0] <= found[1] { PLACES[0] } else { PLACES[1] };
    encode(&mut page, bytes);
    file.write_all_at(&page, start + place)
}

fn encode(page: &mut [u8], bytes: u64) {
    page.fill(0);
    page[..MAGIC.len()].copy_from_slice(&MAGIC);
    page[AT_BYTES..AT_BYTES + 8].copy_from_slice(&bytes.to_le_bytes());
    let crc = checksum(CrcAlgorithm::Crc32Iscsi, page) as u32;
    page[AT_CRC..AT_CRC + 4].copy_from_slice(&crc.to_le_bytes());
}

fn decode(page: &[u8]) -> Option<u64> {
    let bytes = u64::from_le_bytes(page.get(AT_BYTES..AT_BYTES + 8)?.try_into().ok()?);
    let mut expected = vec![0; PAGE_BYTES];
    encode(&mut expected, bytes);
    (page == expected).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_noticed() {
        let mut page = vec![0; PAGE_BYTES];
        assert_eq!(decode(&page), None, "an empty page is no count");
        encode(&mut page, 1 << 40);
        assert_eq!(decode(&page), Some(1 << 40));
        for bit in 0..PAGE_BYTES * 8 {
            page[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&page), None, "bit {bit}");
            page[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_torn_page_leaves_the_count_before_it() {
        let path = std::env::temp_dir().join(format!("larder-wear-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path).expect("room");
        std::fs::remove_file(&path).expect("it is there");
        file.set_len(HEADER_BYTES).expect("room");
        assert_eq!(read(&file, 0), 0);
        for bytes in [1, 7, 8, 1 << 50] {
            write(&file, 0, bytes).expect("room");
            assert_eq!(read(&file, 0), bytes);
        }
        let newest = PLACES.into_iter().find(|place| {
            let mut page = vec![0; PAGE_BYTES];
            file.read_exact_at(&mut page, *place).expect("it is there");
            decode(&page) == Some(1 << 50)
        });
        file.write_all_at(&[0xff; 512], newest.expect("it was written")).expect("room");
        assert_eq!(read(&file, 0), 8);
    }
}
