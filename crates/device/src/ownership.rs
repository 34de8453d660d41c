//! Whether a range may be written to: Larder's own, empty, or a stranger's. Never writes.

use std::io;
use std::ops::Range;

use super::extents::Extents;
use super::{PAGE_BYTES, Superblock, SuperblockError};

/// Bytes at either end of a disk that are read. Every common file system, partition table, RAID and volume
/// manager leaves a mark there, which makes a more telling refusal than that nothing is known of the disk.
const MARGIN_BYTES: u64 = 1 << 20;

/// What a device was when it was opened. Only `Reopened` may still hold a store's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The file did not exist.
    Created,
    /// It existed and held nothing.
    Empty,
    /// It held something, and was to be formatted.
    Formatted,
    /// It was this store's, of another size or segment size, and has been emptied.
    Reshaped,
    /// It is this store's.
    Reopened,
}

/// What a range holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Nothing.
    Empty,
    /// What the superblock describes.
    Ours(Superblock),
    /// A superblock that cannot be used.
    Unusable(SuperblockError),
    /// Another Larder's, for this share of this many.
    OtherShare(u32, u32),
    /// A slice of this many bytes, or a sibling's, where the division would make it another size.
    OtherSize(u64),
    /// Something else, found where the words say.
    Foreign(&'static str),
    /// A disk without a mark of Larder's; what lies between its ends is not known.
    Unmarked,
}

/// The slices of a file or disk: `count` of `bytes` each, side by side from offset 0, of which `index` (from
/// 1) is the one in question.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slices {
    pub(super) index: u32,
    pub(super) count: u32,
    pub(super) bytes: u64,
}

impl Slices {
    /// The range of the slice in question.
    pub(super) fn range(&self) -> Range<u64> {
        let start = self.start_of(self.index);
        start..start + self.bytes
    }

    fn start_of(&self, index: u32) -> u64 {
        u64::from(index - 1) * self.bytes
    }
}

/// A file or disk that is looked at.
pub(super) trait Source {
    /// Reads at an offset; what lies past the end is zero.
    fn read_padded(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;

    /// Returns whether a range holds data.
    fn extents(&self, range: Range<u64>) -> io::Result<Extents>;
}

/// Looks at what a slice holds, and at the ends of the `whole_bytes` it is a part of.
pub(super) fn examine(source: &impl Source, slices: Slices, whole_bytes: u64) -> io::Result<Content> {
    let range = slices.range();
    // Before anything is read: see there.
    let (of_slice, of_whole) = (source.extents(range.clone())?, source.extents(0..whole_bytes)?);
    match superblock(source, range.start)? {
        Ok(found) if (found.share_index, found.share_count) == (slices.index, slices.count) => {
            return ours(source, slices, found);
        }
        Ok(found) => return Ok(Content::OtherShare(found.share_index, found.share_count)),
        Err(SuperblockError::Foreign) => {}
        Err(error) => return Ok(Content::Unusable(error)),
    }
    if of_whole == Extents::Empty {
        return Ok(Content::Empty);
    }
    // A neighbour's mark makes the whole Larder's. The ends are looked at all the same.
    let is_neighbours = neighbour(source, slices)?;
    if !ends_are_zero(source, &range)? {
        return Ok(Content::Foreign("its beginning or its end is not empty"));
    }
    if let Some(content) = is_neighbours {
        return Ok(content);
    }
    if let Err(error @ SuperblockError::Version { .. }) = superblock(source, 0)? {
        return Ok(Content::Unusable(error));
    }
    Ok(match (of_slice, ends_are_zero(source, &(0..whole_bytes))?) {
        (Extents::Disk, true) => Content::Unmarked,
        (Extents::Data(_), _) => {
            Content::Foreign("there is data between its ends, or zeros were written there")
        }
        _ => Content::Foreign("the beginning or the end of the whole is not empty"),
    })
}

/// What the mark of another slice makes of an unmarked one.
fn neighbour(source: &impl Source, slices: Slices) -> io::Result<Option<Content>> {
    for index in (1..=slices.count).filter(|&index| index != slices.index) {
        if let Ok(found) = superblock(source, slices.start_of(index))? {
            let is_sibling = (found.share_index, found.share_count) == (index, slices.count);
            return Ok(Some(match is_sibling {
                false => Content::OtherShare(found.share_index, found.share_count),
                true if found.range_bytes != slices.bytes => Content::OtherSize(found.range_bytes),
                true => Content::Empty,
            }));
        }
    }
    Ok(None)
}

fn ends_are_zero(source: &impl Source, range: &Range<u64>) -> io::Result<bool> {
    let margin = MARGIN_BYTES.min(range.end - range.start);
    Ok(is_zero(source, range.start, margin)? && is_zero(source, range.end - margin, margin)?)
}

/// Whether a slice of this store may be used with the size it has now.
fn ours(source: &impl Source, slices: Slices, found: Superblock) -> io::Result<Content> {
    if found.range_bytes != slices.bytes && slices.count > 1 {
        // The neighbours' slices would begin elsewhere too.
        return Ok(Content::OtherSize(found.range_bytes));
    }
    if found.range_bytes < slices.bytes {
        let beyond = slices.range().start + found.range_bytes..slices.range().end;
        if source.extents(beyond)? != Extents::Empty {
            return Ok(Content::Foreign("what lies beyond its former size may not be empty"));
        }
    }
    Ok(Content::Ours(found))
}

fn superblock(source: &impl Source, offset: u64) -> io::Result<Result<Superblock, SuperblockError>> {
    let mut page = [0; PAGE_BYTES];
    source.read_padded(&mut page, offset)?;
    Ok(Superblock::decode(&page))
}

fn is_zero(source: &impl Source, offset: u64, len: u64) -> io::Result<bool> {
    const STEP: usize = 64 << 10;
    let mut buf = vec![0; STEP];
    let mut at = offset;
    let end = offset.saturating_add(len);
    while at < end {
        let n = usize::try_from(end - at).map_or(STEP, |left| left.min(STEP));
        source.read_padded(&mut buf[..n], at)?;
        if buf[..n].iter().any(|&b| b != 0) {
            return Ok(false);
        }
        at += n as u64;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A disk tells nothing of its extents.
    struct Disk(Vec<u8>);

    impl Source for Disk {
        fn read_padded(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
            self.0.read_padded(buf, offset)
        }

        fn extents(&self, _: Range<u64>) -> io::Result<Extents> {
            Ok(Extents::Disk)
        }
    }

    impl Source for Vec<u8> {
        fn extents(&self, range: Range<u64>) -> io::Result<Extents> {
            let end = self.len().min(range.end as usize);
            let data = (range.start as usize..end).find(|&at| self[at] != 0);
            Ok(data.map_or(Extents::Empty, |at| Extents::Data(at as u64)))
        }

        fn read_padded(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
            for (i, byte) in buf.iter_mut().enumerate() {
                *byte = self.get(offset as usize + i).copied().unwrap_or(0);
            }
            Ok(())
        }
    }

    #[test]
    fn what_lies_beyond_the_former_size_must_be_empty() {
        let mut disk = vec![0; 8 * MIB as usize];
        marked(&mut disk, Slices { bytes: 4 * MIB, ..WHOLE });
        assert!(matches!(look(&disk, WHOLE), Content::Ours(_)));
        disk[5 * MIB as usize - 1] = 1;
        assert!(matches!(look(&disk, WHOLE), Content::Foreign(_)));
        assert!(matches!(look(&disk, Slices { bytes: 3 * MIB, ..WHOLE }), Content::Ours(_)));
    }

    #[test]
    fn shares_agree_on_their_size() {
        let mut disk = vec![0; 16 * MIB as usize];
        marked(&mut disk, quarter(1));
        let larger = |index| Slices { index, count: 4, bytes: 4 * MIB };
        assert_eq!(look(&disk, larger(1)), Content::OtherSize(2 * MIB));
        assert_eq!(look(&disk, larger(2)), Content::OtherSize(2 * MIB));
    }

    fn marked(disk: &mut [u8], slices: Slices) {
        let block = Superblock {
            store_id: [1; 16],
            share_index: slices.index,
            share_count: slices.count,
            range_bytes: slices.bytes,
            segment_bytes: MIB,
            created_unix_s: 0,
        };
        let start = slices.range().start as usize;
        disk[start..start + PAGE_BYTES].copy_from_slice(&block.encode());
    }

    fn look(disk: &Vec<u8>, slices: Slices) -> Content {
        examine(disk, slices, disk.len() as u64).expect("memory can be read")
    }

    const WHOLE: Slices = Slices { index: 1, count: 1, bytes: 8 * MIB };

    fn quarter(index: u32) -> Slices {
        Slices { index, count: 4, bytes: 2 * MIB }
    }

    #[test]
    fn data_anywhere_makes_a_file_a_strangers() {
        let middle = 4 * MIB as usize;
        for at in [0, 1080, MIB as usize - 1, middle - 1, middle, 7 * MIB as usize, 8 * MIB as usize - 1] {
            let mut disk = vec![0; 8 * MIB as usize];
            disk[at] = 1;
            assert!(matches!(look(&disk, WHOLE), Content::Foreign(_)), "byte {at}");
            assert!(
                matches!(look(&disk, quarter(2)), Content::Foreign(_)),
                "byte {at}, from another quarter"
            );
            let part = Slices { bytes: 4 * MIB, ..WHOLE };
            assert!(matches!(look(&disk, part), Content::Foreign(_)), "byte {at}, using half");
            assert!(matches!(look(&disk, quarter(3)), Content::Foreign(_)), "byte {at}, from the third");
        }
        assert_eq!(look(&vec![0; 8 * MIB as usize], WHOLE), Content::Empty);
        assert_eq!(look(&Vec::new(), WHOLE), Content::Empty);
    }

    #[test]
    fn a_disk_without_a_mark_is_never_taken_for_empty() {
        let bytes = 8 * MIB;
        let look = |disk: &Disk, slices| examine(disk, slices, bytes).expect("memory can be read");
        let mut disk = Disk(vec![0; bytes as usize]);
        assert_eq!(look(&disk, WHOLE), Content::Unmarked);
        assert_eq!(look(&disk, quarter(2)), Content::Unmarked);
        marked(&mut disk.0, quarter(4));
        assert_eq!(look(&disk, quarter(2)), Content::Empty, "a neighbour's mark is one");
        for at in [2 * MIB as usize, 4 * MIB as usize - 1] {
            disk.0[at] = 1;
            assert!(matches!(look(&disk, quarter(2)), Content::Foreign(_)), "byte {at}");
            disk.0[at] = 0;
        }
        let mut disk = Disk(vec![0; bytes as usize]);
        marked(&mut disk.0, Slices { bytes: 4 * MIB, ..WHOLE });
        assert!(matches!(look(&disk, WHOLE), Content::Foreign(_)), "beyond its former size");
    }

    #[test]
    fn a_share_beside_others_is_empty_and_not_foreign() {
        let mut disk = vec![0; 8 * MIB as usize];
        marked(&mut disk, quarter(4));
        disk[8 * MIB as usize - 1] = 1;
        assert_eq!(look(&disk, quarter(2)), Content::Empty);
        assert!(matches!(look(&disk, quarter(4)), Content::Ours(found) if found.share_index == 4));
    }

    #[test]
    fn a_disk_divided_otherwise_is_refused() {
        let mut disk = vec![0; 8 * MIB as usize];
        marked(&mut disk, quarter(1));
        assert_eq!(look(&disk, WHOLE), Content::OtherShare(1, 4));
        let half = |index| Slices { index, count: 2, bytes: 4 * MIB };
        assert_eq!(look(&disk, half(1)), Content::OtherShare(1, 4));
        assert_eq!(look(&disk, half(2)), Content::OtherShare(1, 4));
    }

    #[test]
    fn a_damaged_superblock_is_neither_ours_nor_empty() {
        let mut disk = vec![0; 8 * MIB as usize];
        marked(&mut disk, WHOLE);
        disk[100] ^= 1;
        assert!(matches!(look(&disk, WHOLE), Content::Unusable(SuperblockError::Checksum { .. })));
    }
}
