//! What pages look like on the SSD, and extents of pages that hold one larger record.
//!
//! ```text
//!  0      4       8       9      10      12     16
//! +------+-------+-------+------+-------+------+----------------+--------+--------+-- -+
//! | seal | bytes | count | kind | first | gen. | rest of a      | record | record | 0  |
//! |      |       |       |      |       |      | page before's  |        |        |    |
//! +------+-------+-------+------+-------+------+----------------+--------+--------+-- -+
//! ```
//! `first` is where the first of the page's own `count` records begins. `bytes` counts from the page's first
//! byte to the end of its last record; the last one may go on in the pages behind, which then begin with it
//! after their headers, and `bytes` counts on as if these headers were not there.
//!
//! `seal` is the CRC32C of bytes 4 to the end of the page's content, mixed with its identity (store, segment,
//! generation, page). So a page that was lost, misdirected, torn or left over from an earlier filling does not
//! verify. All integers little endian.
//!
//! An extent is one record over several pages without headers between. Its `seal` is that of its first page,
//! which holds header and key. In place of `bytes` it has the CRC32C of its content behind the first page, so
//! that the seal of the first page decides about that too; its length follows from the record's header.

use std::borrow::Cow;

use super::PAGE_BYTES;
use crate::record::{HEADER_BYTES, RecordHeader};

pub(crate) const PAGE_HEADER_BYTES: usize = 16;
/// What a page holds at most.
const CONTENT_BYTES: usize = PAGE_BYTES - PAGE_HEADER_BYTES;
/// The most pages that one record is spread over; one of more is an extent. Index entries count so many
/// exactly.
const SPREAD_PAGES_MAX: usize = 16;
/// A record that would begin in so little room begins the next page: it costs a second page at each read, to
/// save less than this.
const SPREAD_ROOM_BYTES: usize = PAGE_BYTES / 16;
const KIND_PAGE: u8 = 0x4C;
const KIND_EXTENT: u8 = 0x58;
const CRC32C: crc_fast::CrcAlgorithm = crc_fast::CrcAlgorithm::Crc32Iscsi;

const _: () = assert!(PAGE_HEADER_BYTES == crate::ram::pool::LARGE_PREFIX_BYTES);
const _: () =
    assert!(CONTENT_BYTES / (HEADER_BYTES + 1) <= u8::MAX as usize, "a page's records can be counted");

/// Which page of which filling of which store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageId {
    pub store: u64,
    pub segment: u32,
    pub generation: u32,
    pub page: u32,
}

impl PageId {
    /// The page so many pages behind this one.
    pub(crate) fn behind(self, pages: usize) -> PageId {
        PageId { page: self.page + pages as u32, ..self }
    }

    /// 32 bits that differ between identities.
    fn mixed(self) -> u32 {
        let place = u64::from(self.segment) << 12 | u64::from(self.page);
        let mut x = self.store ^ place.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        x = (x ^ (x >> 32) ^ u64::from(self.generation)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        x = (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        (x >> 32) as u32
    }
}

/// What a page, or an extent, has in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Content {
    /// From the page's first byte to the end of its last record, the pages behind included.
    pub bytes: usize,
    /// Where its own records begin.
    pub first: usize,
    pub count: u8,
}

/// A header as it was read, to be believed once its seal is checked.
struct Unsealed {
    seal: u32,
    content: Content,
    /// Of an extent: the checksum of what lies behind its first page.
    rest_crc: Option<u32>,
    generation: u32,
}

impl Unsealed {
    fn of(read: &[u8]) -> Option<Unsealed> {
        let header = read.first_chunk::<PAGE_HEADER_BYTES>()?;
        let word =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let bytes = match header[9] {
            KIND_PAGE => word(4) as usize,
            KIND_EXTENT => PAGE_HEADER_BYTES + RecordHeader::decode(&read[PAGE_HEADER_BYTES..])?.bytes(),
            _ => return None,
        };
        let content = Content {
            bytes,
            count: header[8],
            first: usize::from(u16::from_le_bytes([header[10], header[11]])),
        };
        let rest_crc = (header[9] == KIND_EXTENT).then(|| word(4));
        Some(Unsealed { seal: word(0), content, rest_crc, generation: word(12) })
    }
}

fn crc32c(front: &[u8], parts: &[&[u8]]) -> u32 {
    let mut crc = crc_fast::Digest::new(CRC32C);
    crc.update(front);
    parts.iter().for_each(|part| crc.update(part));
    crc.finalize() as u32
}

/// The header of a page with `content`, of which `parts` lie in the page; `word` is its bytes 4 to 8.
fn sealed(id: PageId, kind: u8, word: u32, content: Content, parts: &[&[u8]]) -> [u8; PAGE_HEADER_BYTES] {
    let mut header = [0; PAGE_HEADER_BYTES];
    header[4..8].copy_from_slice(&word.to_le_bytes());
    header[8] = content.count;
    header[9] = kind;
    header[10..12].copy_from_slice(&(content.first as u16).to_le_bytes());
    header[12..16].copy_from_slice(&id.generation.to_le_bytes());
    let seal = crc32c(&header[4..], parts) ^ id.mixed();
    header[0..4].copy_from_slice(&seal.to_le_bytes());
    header
}

/// The header of an extent whose record is `parts`.
pub(super) fn seal_extent(id: PageId, parts: &[&[u8]]) -> [u8; PAGE_HEADER_BYTES] {
    let bytes = PAGE_HEADER_BYTES + parts.iter().map(|part| part.len()).sum::<usize>();
    let mut room = CONTENT_BYTES;
    let split = parts.iter().map(|part| {
        let (here, behind) = part.split_at(part.len().min(room));
        room -= here.len();
        (here, behind)
    });
    let (here, behind): (Vec<&[u8]>, Vec<&[u8]>) = split.unzip();
    let content = Content { bytes, first: PAGE_HEADER_BYTES, count: 1 };
    sealed(id, KIND_EXTENT, crc32c(&[], &behind), content, &here)
}

/// Seals a page in place: what `content` says lies behind its header.
pub(super) fn seal(id: PageId, page: &mut [u8], content: Content) {
    let end = content.bytes.min(PAGE_BYTES);
    let header = sealed(id, KIND_PAGE, content.bytes as u32, content, &[&page[PAGE_HEADER_BYTES..end]]);
    page[..PAGE_HEADER_BYTES].copy_from_slice(&header);
}

/// The records that begin in a page as read back, if it is `id` and unchanged. The part that was read of the
/// pages behind it is looked at by [`Page::value_of`], and only when a record goes on there.
pub(crate) fn verify(id: PageId, read: &[u8]) -> Option<Page<'_>> {
    let Unsealed { seal, content: Content { bytes, first, count }, rest_crc, generation } =
        Unsealed::of(read)?;
    let end = bytes.min(PAGE_BYTES);
    if generation != id.generation || first < PAGE_HEADER_BYTES || first > end {
        return None;
    }
    let content = read.get(..end)?;
    let crc = crc_fast::checksum(CRC32C, &content[4..]) as u32;
    if crc ^ id.mixed() != seal {
        return None;
    }
    Some(Page {
        id,
        before: &content[PAGE_HEADER_BYTES..first],
        own: &content[first..],
        count,
        rest: bytes - end,
        rest_crc,
        read,
    })
}

/// A page that is still being filled in memory and needs no seal.
pub(super) fn open(id: PageId, page: &[u8], content: Content) -> Page<'_> {
    let Content { bytes, first, count } = content;
    Page {
        id,
        before: &page[PAGE_HEADER_BYTES..first],
        own: &page[first..bytes],
        count,
        rest: 0,
        rest_crc: None,
        read: &[],
    }
}

/// A page whose content can be believed.
#[derive(Clone, Copy)]
pub(crate) struct Page<'a> {
    id: PageId,
    /// The end, or more, of a record that began in a page before.
    before: &'a [u8],
    /// Its own records, the last one as far as the page holds it.
    own: &'a [u8],
    count: u8,
    /// Bytes of the last record in the pages behind.
    rest: usize,
    /// The checksum of these where they have no headers between.
    rest_crc: Option<u32>,
    /// All that was read, of which the pages behind were not looked at yet.
    read: &'a [u8],
}

/// A record in a page: its value as far as the page holds it.
#[derive(Clone, Copy)]
pub(crate) struct Placed<'a> {
    pub header: RecordHeader,
    pub key: &'a [u8],
    part: &'a [u8],
}

impl<'a> Page<'a> {
    /// The record that an index entry with `tag` means, if its key is `key`.
    ///
    /// An entry names a page and a tag, and a page may hold several records that one entry could mean:
    /// earlier versions of the key, and other keys with the same tag and the same buckets (`rivals` says
    /// which), each of which took the entry over when it was written. So the last of all these is meant,
    /// and if that is another key's, an earlier record of this key is dead.
    pub(crate) fn find(&self, tag: u16, key: &[u8], rivals: impl Fn(&[u8]) -> bool) -> Option<Placed<'a>> {
        let mut found = None;
        for record in self.records().filter(|record| record.header.tag == tag) {
            if record.key == key {
                found = Some(record);
            } else if rivals(record.key) {
                found = None;
            }
        }
        found
    }

    /// The records that begin here, front to back.
    pub(crate) fn records(&self) -> impl Iterator<Item = Placed<'a>> + use<'a> {
        let (mut own, mut count, rest) = (self.own, self.count, self.rest);
        std::iter::from_fn(move || {
            count = count.checked_sub(1)?;
            let header = RecordHeader::decode(own)?;
            let key_end = HEADER_BYTES + usize::from(header.key_len);
            let key = own.get(HEADER_BYTES..key_end)?;
            let cut = if count == 0 { rest } else { 0 };
            let end = header.bytes().checked_sub(cut)?;
            let part = own.get(key_end..end)?;
            own = &own[end..];
            Some(Placed { header, key, part })
        })
    }

    /// How many pages it and the end of its last record take.
    pub(crate) fn pages(&self) -> usize {
        1 + match self.rest_crc {
            Some(_) => self.rest.div_ceil(PAGE_BYTES),
            None => self.rest.div_ceil(CONTENT_BYTES),
        }
    }

    /// The value of one of its records; `None` when a page behind that holds some of it is not what it should
    /// be, or was not read.
    pub(crate) fn value_of(&self, record: &Placed<'a>) -> Option<Cow<'a, [u8]>> {
        let len = record.header.value_len as usize;
        if record.part.len() == len {
            return Some(Cow::Borrowed(record.part));
        }
        if let Some(rest_crc) = self.rest_crc {
            let end = PAGE_BYTES + self.rest;
            let rest = self.read.get(PAGE_BYTES..end)?;
            let is_whole = crc_fast::checksum(CRC32C, rest) as u32 == rest_crc;
            return is_whole.then(|| Cow::Borrowed(&self.read[end - len..end]));
        }
        let mut value = Vec::with_capacity(len);
        value.extend_from_slice(record.part);
        let behind = self.read.get(PAGE_BYTES..).unwrap_or_default();
        for (number, page) in behind.chunks(PAGE_BYTES).enumerate() {
            let wanted = (len - value.len()).min(CONTENT_BYTES);
            let part = verify(self.id.behind(number + 1), page)?.before;
            if part.len() != wanted {
                return None;
            }
            value.extend_from_slice(part);
            if value.len() == len {
                return Some(Cow::Owned(value));
            }
        }
        None
    }
}

/// How many pages a record takes that begins at byte `at` of a page: `bytes` in all, `prefix` of them header
/// and key, which must lie in one page. `None` when it must not begin there.
pub(super) fn spread(at: usize, prefix: usize, bytes: usize) -> Option<usize> {
    let room = PAGE_BYTES - at;
    if bytes <= room {
        return Some(1);
    }
    let pages = 1 + (bytes - room).div_ceil(CONTENT_BYTES);
    (prefix <= room && room > SPREAD_ROOM_BYTES && pages <= SPREAD_PAGES_MAX).then_some(pages)
}

/// Writes a record that begins at byte `at` of `pages`, leaving their headers alone; returns where it ends.
pub(super) fn write(pages: &mut [u8], mut at: usize, record: &[&[u8]]) -> usize {
    for mut part in record.iter().copied() {
        while !part.is_empty() {
            if at.is_multiple_of(PAGE_BYTES) {
                at += PAGE_HEADER_BYTES;
            }
            let (now, later) = part.split_at(part.len().min(PAGE_BYTES - at % PAGE_BYTES));
            pages[at..at + now.len()].copy_from_slice(now);
            at += now.len();
            part = later;
        }
    }
    at
}

/// How many pages an extent takes whose record is `record_bytes` long.
pub(super) fn extent_pages(record_bytes: usize) -> u32 {
    (PAGE_HEADER_BYTES + record_bytes).div_ceil(PAGE_BYTES) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordHeader;

    fn page(id: PageId) -> Vec<u8> {
        let mut page = vec![0; PAGE_BYTES];
        let mut at = PAGE_HEADER_BYTES;
        for (tag, key, value) in [(1, "a", "first"), (2, "b", "other"), (1, "a", "second"), (1, "c", "rival")]
        {
            let header =
                RecordHeader { key_len: 1, value_len: value.len() as u32, tag, ..RecordHeader::default() };
            for part in [&header.encode()[..], key.as_bytes(), value.as_bytes()] {
                page[at..at + part.len()].copy_from_slice(part);
                at += part.len();
            }
        }
        seal(id, &mut page, Content { bytes: at, first: PAGE_HEADER_BYTES, count: 4 });
        page
    }

    const ID: PageId = PageId { store: 7, segment: 3, generation: 9, page: 12 };

    #[test]
    fn the_later_of_two_records_of_one_key_counts() {
        let page = page(ID);
        let page = verify(ID, &page).expect("sealed");
        let find = |tag, key: &str| {
            let record = page.find(tag, key.as_bytes(), |_| false)?;
            Some(page.value_of(&record).expect("in one page").into_owned())
        };
        assert_eq!(find(1, "a"), Some(b"second".to_vec()));
        assert_eq!(find(2, "b"), Some(b"other".to_vec()));
        assert_eq!(find(2, "c"), None);
    }

    #[test]
    fn a_dead_record_does_not_come_back_through_the_entry_of_a_later_key_with_the_same_tag() {
        let page = page(ID);
        let page = verify(ID, &page).expect("sealed");
        assert!(page.find(1, b"a", |key| key == b"c").is_none());
        assert!(page.find(1, b"c", |key| key == b"a").is_some());
    }

    #[test]
    fn another_identity_does_not_verify() {
        let page = page(ID);
        for other in [
            PageId { store: 8, ..ID },
            PageId { segment: 4, ..ID },
            PageId { generation: 10, ..ID },
            PageId { generation: 9 + 16, ..ID },
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

    /// Pages with one record that begins at byte `at` of the first, and behind it a short one.
    fn spread_out(at: usize, value: &[u8]) -> Vec<u8> {
        let record = |key: &'static [u8], value: &[u8], tag| {
            let header = RecordHeader {
                key_len: key.len() as u8,
                value_len: value.len() as u32,
                tag,
                ..RecordHeader::default()
            };
            [&header.encode()[..], key, value].concat()
        };
        let (long, short) = (record(b"long", value, 1), record(b"short", b"behind", 2));
        let pages = spread(at, HEADER_BYTES + 4, long.len()).expect("it may begin there");
        let mut memory = vec![0xAA; pages * PAGE_BYTES];
        let end = write(&mut memory, at, &[&long[..36], &long[36..]]);
        assert_eq!(end.div_ceil(PAGE_BYTES), pages, "as many pages as were said");
        let last = (pages - 1) * PAGE_BYTES;
        for page in 0..pages - 1 {
            let first = if page == 0 { at } else { PAGE_BYTES };
            let bytes = if page == 0 { at + long.len() } else { PAGE_BYTES };
            let content = Content { bytes, first, count: u8::from(page == 0) };
            seal(ID.behind(page), &mut memory[page * PAGE_BYTES..][..PAGE_BYTES], content);
        }
        let mut content = Content { bytes: end - last, first: end - last, count: 0 };
        if pages == 1 {
            (content.first, content.count) = (at, 1);
        }
        if end + short.len() <= memory.len() {
            write(&mut memory, end, &[&short]);
            content.bytes += short.len();
            content.count += 1;
        }
        seal(ID.behind(pages - 1), &mut memory[last..], content);
        memory
    }

    fn look_up(id: PageId, memory: &[u8], tag: u16, key: &[u8]) -> Option<Vec<u8>> {
        let page = verify(id, memory)?;
        let record = page.find(tag, key, |_| false)?;
        page.value_of(&record).map(Cow::into_owned)
    }

    #[test]
    fn a_record_that_goes_on_in_the_pages_behind_is_read_whole() {
        let value: Vec<u8> = (0..60_000_u32).map(|n| (n / 8 * 31) as u8).collect();
        let ends = [3000, 3838, 3839].into_iter().chain(PAGE_BYTES - 400..PAGE_BYTES - SPREAD_ROOM_BYTES);
        for at in [PAGE_HEADER_BYTES, 100].into_iter().chain(ends) {
            for len in [0, 1, 300, 1024, 4000, 4043, 4044, 4045, 4060, 8140, 20_000, 60_000] {
                let memory = spread_out(at, &value[..len]);
                assert_eq!(look_up(ID, &memory, 1, b"long").as_deref(), Some(&value[..len]), "{len} at {at}");
                let last = memory.len() / PAGE_BYTES - 1;
                let behind = look_up(ID.behind(last), &memory[last * PAGE_BYTES..], 2, b"short");
                assert!(behind.is_none_or(|value| value == b"behind"));
            }
        }
    }

    #[test]
    fn what_goes_on_elsewhere_is_missing_when_any_of_its_pages_is_not_the_one() {
        let value = vec![7; 10_000];
        let good = spread_out(2000, &value);
        assert_eq!(good.len(), 3 * PAGE_BYTES);
        let missing = |memory: &[u8]| look_up(ID, memory, 1, b"long").is_none();
        for page in 0..3 {
            for at in [0, 5, 8, 9, 10, 12, 16, 700] {
                let mut bad = good.clone();
                bad[page * PAGE_BYTES + at] ^= 4;
                assert!(missing(&bad), "byte {at} of page {page}");
            }
        }
        assert!(missing(&good[..PAGE_BYTES]) && missing(&good[..3 * PAGE_BYTES - 4000]));
        let swapped =
            [&good[..PAGE_BYTES], &good[2 * PAGE_BYTES..], &good[PAGE_BYTES..2 * PAGE_BYTES]].concat();
        assert!(missing(&swapped), "pages know their number");
        let mut other = good.clone();
        seal(ID.behind(2), &mut other[2 * PAGE_BYTES..], Content { bytes: 900, first: 899, count: 0 });
        assert!(missing(&other), "as much as is missing, and no more, lies behind");
    }

    /// An extent of one record, and its value.
    fn extent(value_len: usize) -> (Vec<u8>, Vec<u8>) {
        let value: Vec<u8> = (0..value_len as u32).map(|n| (n / 8 * 31) as u8).collect();
        let header =
            RecordHeader { key_len: 3, value_len: value.len() as u32, tag: 1, ..RecordHeader::default() };
        let header = header.encode();
        let (front, back) = value.split_at(value.len() / 3);
        let parts = [&header[..], b"key", front, back];
        let mut memory = [&seal_extent(ID, &parts)[..], &parts.concat()].concat();
        memory.resize(memory.len().next_multiple_of(PAGE_BYTES), 0);
        (memory, value)
    }

    #[test]
    fn the_first_page_of_an_extent_tells_of_its_record_and_the_others_bring_the_value() {
        for len in [10, 4044, 4045, 4046, 12_000, 300_000] {
            let (memory, value) = extent(len);
            assert_eq!(look_up(ID, &memory, 1, b"key"), Some(value), "{len}");
            let first = verify(ID, &memory[..PAGE_BYTES]).expect("it verifies by itself");
            assert_eq!(first.pages(), memory.len() / PAGE_BYTES);
            let record = first.find(1, b"key", |_| false).expect("it has the key");
            assert_eq!(record.header.value_len as usize, len);
            assert_eq!(first.value_of(&record).is_some(), memory.len() == PAGE_BYTES, "{len}");
        }
    }

    #[test]
    fn no_flipped_bit_and_no_truncation_of_an_extent_goes_unseen() {
        let (good, value) = extent(9_000);
        let end = PAGE_HEADER_BYTES + HEADER_BYTES + 3 + value.len();
        for bit in 0..end * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(look_up(ID, &bad, 1, b"key"), None, "bit {bit}");
            // A header is read from the first page alone.
            assert_eq!(verify(ID, &bad[..PAGE_BYTES]).is_some(), bit / 8 >= PAGE_BYTES, "bit {bit}");
        }
        for len in 0..end {
            assert_eq!(look_up(ID, &good[..len], 1, b"key"), None, "{len} bytes");
        }
        let mut other = extent(9_000).0;
        other[5_000..6_000].fill(9);
        let stale = [&good[..PAGE_BYTES], &other[PAGE_BYTES..]].concat();
        assert_eq!(look_up(ID, &stale, 1, b"key"), None, "pages that another filling left");
    }

    #[test]
    fn little_room_is_left_and_very_long_records_are_extents() {
        assert_eq!(spread(PAGE_HEADER_BYTES, 40, 4080), Some(1));
        assert_eq!(spread(PAGE_HEADER_BYTES, 40, 4081), Some(2));
        assert_eq!(spread(PAGE_BYTES - SPREAD_ROOM_BYTES, 40, 500), None);
        assert_eq!(spread(PAGE_BYTES - SPREAD_ROOM_BYTES, 40, 256), Some(1));
        assert_eq!(spread(PAGE_BYTES - 270, 282, 500), None, "the key would be cut");
        assert_eq!(spread(PAGE_HEADER_BYTES, 40, 16 * CONTENT_BYTES), Some(16));
        assert_eq!(spread(PAGE_HEADER_BYTES, 40, 16 * CONTENT_BYTES + 1), None);
    }
}
