//! What a page, or an extent of pages that holds one larger record, looks like on the SSD.
//!
//! ```text
//!  0      4       8       10      12      16
//! +------+-------+-------+-------+-------+----------------+----------------+-- -+
//! | seal | bytes | count | magic | turn  | record         | record         | 0  |
//! +------+-------+-------+-------+-------+----------------+----------------+-- -+
//! ```
//! `bytes` counts from the page's first byte to the end of its last record; `seal` is the CRC32C of bytes 4
//! to there, mixed with the page's identity (store, segment, turn, page). So a page that was lost,
//! misdirected, torn or left over from an earlier filling does not verify. All integers little endian.

use super::PAGE_BYTES;
use crate::record::Record;

pub(crate) const PAGE_HEADER_BYTES: usize = 16;
const MAGIC: u16 = 0x4C50;

const _: () = assert!(PAGE_HEADER_BYTES == crate::ram::pool::LARGE_PREFIX_BYTES);

/// Which page of which filling of which store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageId {
    pub store: u64,
    pub segment: u32,
    pub turn: u32,
    pub page: u32,
}

impl PageId {
    /// 32 bits that differ between identities.
    fn mixed(self) -> u32 {
        let place = u64::from(self.segment) << 12 | u64::from(self.page);
        let mut x = self.store ^ place.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        x = (x ^ (x >> 32) ^ u64::from(self.turn)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        x = (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        (x >> 32) as u32
    }
}

fn crc32c(parts: &[&[u8]]) -> u32 {
    let algorithm = crc_fast::CrcAlgorithm::Crc32Iscsi;
    if let [only] = parts {
        return crc_fast::checksum(algorithm, only) as u32;
    }
    let mut digest = crc_fast::Digest::new(algorithm);
    for part in parts {
        digest.update(part);
    }
    digest.finalize() as u32
}

/// The header of a page or extent whose records are `parts`, `bytes` long with the header.
pub(crate) fn seal(id: PageId, bytes: u32, count: u16, parts: &[&[u8]]) -> [u8; PAGE_HEADER_BYTES] {
    let mut header = [0; PAGE_HEADER_BYTES];
    header[4..8].copy_from_slice(&bytes.to_le_bytes());
    header[8..10].copy_from_slice(&count.to_le_bytes());
    header[10..12].copy_from_slice(&MAGIC.to_le_bytes());
    header[12..16].copy_from_slice(&id.turn.to_le_bytes());
    let mut crc = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    crc.update(&header[4..]);
    for part in parts {
        crc.update(part);
    }
    let sealed = crc.finalize() as u32 ^ id.mixed();
    header[0..4].copy_from_slice(&sealed.to_le_bytes());
    header
}

/// Seals a page in place: its records lie behind the header, `bytes` long with it.
pub(crate) fn seal_in_place(id: PageId, page: &mut [u8], bytes: usize, count: u16) {
    let header = seal(id, bytes as u32, count, &[&page[PAGE_HEADER_BYTES..bytes]]);
    page[..PAGE_HEADER_BYTES].copy_from_slice(&header);
}

/// The records of a page as read back, if it is the page `id` whole and unchanged.
pub(crate) fn verify(id: PageId, read: &[u8]) -> Option<Records<'_>> {
    let header = read.first_chunk::<PAGE_HEADER_BYTES>()?;
    let bytes = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
    let count = u16::from_le_bytes([header[8], header[9]]);
    let content = read.get(..bytes)?;
    let sealed = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    let turn = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
    if bytes < PAGE_HEADER_BYTES || u16::from_le_bytes([header[10], header[11]]) != MAGIC || turn != id.turn {
        return None;
    }
    if crc32c(&[&content[4..]]) ^ id.mixed() != sealed {
        return None;
    }
    Some(Records { rest: &content[PAGE_HEADER_BYTES..], count })
}

/// The records of a page that is still being filled in memory and needs no seal.
pub(crate) fn records(page: &[u8], bytes: usize, count: u16) -> Records<'_> {
    Records { rest: &page[PAGE_HEADER_BYTES..bytes], count }
}

/// The records of one page, front to back.
#[derive(Clone)]
pub(crate) struct Records<'a> {
    rest: &'a [u8],
    count: u16,
}

impl<'a> Records<'a> {
    /// The record that an index entry with `tag` means, if its key is `key`.
    ///
    /// An entry names a page and a tag, and a page may hold several records that one entry could mean:
    /// earlier versions of the key, and other keys with the same tag and the same buckets (`rivals` says
    /// which), each of which took the entry over when it was written. So the last of all these is meant,
    /// and if that is another key's, an earlier record of this key is dead.
    pub(crate) fn find(self, tag: u16, key: &[u8], rivals: impl Fn(&[u8]) -> bool) -> Option<Record<'a>> {
        let mut found = None;
        for record in self.filter(|record| record.header.tag == tag) {
            if record.key == key {
                found = Some(record);
            } else if rivals(record.key) {
                found = None;
            }
        }
        found
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;
    fn next(&mut self) -> Option<Record<'a>> {
        self.count = self.count.checked_sub(1)?;
        let record = Record::parse(self.rest)?;
        self.rest = self.rest.get(record.header.bytes()..)?;
        Some(record)
    }
}

/// How many pages a record of `record_bytes` takes when it begins a page.
pub(crate) fn pages_for(record_bytes: usize) -> u32 {
    (PAGE_HEADER_BYTES + record_bytes).div_ceil(PAGE_BYTES) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Header;

    fn page(id: PageId) -> Vec<u8> {
        let mut page = vec![0; PAGE_BYTES];
        let mut at = PAGE_HEADER_BYTES;
        for (tag, key, value) in [(1, "a", "first"), (2, "b", "other"), (1, "a", "second"), (1, "c", "rival")]
        {
            let header = Header { key_len: 1, value_len: value.len() as u32, tag, ..Header::default() };
            for part in [&header.encode()[..], key.as_bytes(), value.as_bytes()] {
                page[at..at + part.len()].copy_from_slice(part);
                at += part.len();
            }
        }
        seal_in_place(id, &mut page, at, 4);
        page
    }

    const ID: PageId = PageId { store: 7, segment: 3, turn: 9, page: 12 };

    #[test]
    fn the_later_of_two_records_of_one_key_counts() {
        let page = page(ID);
        let records = verify(ID, &page).expect("sealed");
        let find = |tag, key: &str| records.clone().find(tag, key.as_bytes(), |_| false).map(|r| r.value);
        assert_eq!(find(1, "a"), Some(&b"second"[..]));
        assert_eq!(find(2, "b"), Some(&b"other"[..]));
        assert_eq!(find(2, "c"), None);
    }

    #[test]
    fn a_dead_record_does_not_come_back_through_the_entry_of_a_later_key_with_the_same_tag() {
        let page = page(ID);
        let records = verify(ID, &page).expect("sealed");
        assert!(records.clone().find(1, b"a", |key| key == b"c").is_none());
        assert!(records.clone().find(1, b"c", |key| key == b"a").is_some());
    }

    #[test]
    fn another_identity_does_not_verify() {
        let page = page(ID);
        for other in [
            PageId { store: 8, ..ID },
            PageId { segment: 4, ..ID },
            PageId { turn: 10, ..ID },
            PageId { turn: 9 + 16, ..ID },
            PageId { page: 13, ..ID },
        ] {
            assert!(verify(other, &page).is_none(), "{other:?}");
        }
    }

    #[test]
    fn no_flipped_bit_and_no_truncation_goes_unseen() {
        let good = page(ID);
        let bytes = u32::from_le_bytes([good[4], good[5], good[6], good[7]]) as usize;
        for bit in 0..bytes * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(verify(ID, &bad).is_none(), "bit {bit}");
        }
        for len in 0..bytes {
            assert!(verify(ID, &good[..len]).is_none(), "{len} bytes");
        }
    }
}
