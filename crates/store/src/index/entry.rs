//! The eight-byte index entry: all that an SSD-resident item costs in RAM.

use crate::index::hash::KeyHash;
use crate::record::SSD_COPY_BYTES;
use zerocopy::FromBytes;

/// What an entry points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing.
    Empty = 0,
    /// A record of the log, which begins inside a RAM segment.
    Ram = 1,
    /// A record that fills a chain of RAM segments of its own.
    RamLarge = 2,
    /// A record in a page (or extent of pages) of an SSD segment, perhaps still in a write buffer.
    Ssd = 3,
}

/// One index entry.
///
/// ```text
///  63     48 47 46 45     40 39 38 37   32 31        16 15     4 3      0
/// +---------+-----+---------+-----+-------+------------+--------+--------+
/// |   tag   |freq |  part   |state| class |  segment   |  page  |  gen.  |
/// +---------+-----+---------+-----+-------+------------+--------+--------+
/// |   16    |  2  |    6    |  2  |   6   |     16     |   12   |   4    |
/// ```
/// Tag and part are bits of the key's hash. In RAM, `class`, `segment` and `page` together are the record's place in
/// the arena in units of 8 bytes, and `generation` is 0. On the SSD, `class` tells how many pages to read and
/// `generation` which filling of the segment is meant. If there are more than 65,536 SSD segments, the higher bits of
/// a segment's number take the higher bits of `part`: see [`part_bits`].
#[derive(Clone, Copy, PartialEq, Eq, Default, FromBytes)]
#[repr(transparent)]
pub(crate) struct Entry(pub u64);

const TAG_SHIFT: u32 = 48;
const FREQ_SHIFT: u32 = 46;
const PART_SHIFT: u32 = 40;
const STATE_SHIFT: u32 = 38;
const CLASS_SHIFT: u32 = 32;
const SEGMENT_SHIFT: u32 = 16;
const PAGE_SHIFT: u32 = 4;
/// Bits of a part.
pub(crate) const PART_BITS: u32 = FREQ_SHIFT - PART_SHIFT;
const SEGMENT_BITS: u32 = CLASS_SHIFT - SEGMENT_SHIFT;
const FREQ_MASK: u64 = 0b11 << FREQ_SHIFT;
const TAG_MASK: u64 = 0xFFFF << TAG_SHIFT;
/// Units of a RAM place, in bytes.
pub(crate) const RAM_UNIT_BYTES: u64 = 8;
/// The most RAM an entry can address, in bytes.
pub(crate) const RAM_BYTES_MAX: u64 = RAM_UNIT_BYTES << 34;
/// The most SSD segments an entry can tell apart.
pub(crate) const SSD_SEGMENTS_MAX: u32 = 1 << 22;
/// Frequency saturates here.
pub(crate) const FREQ_MAX: u8 = 3;

const _: () = assert!(TAG_SHIFT + u16::BITS == u64::BITS, "the fields tile the word");
const _: () = assert!(TAG_SHIFT == FREQ_SHIFT + 2 && PART_BITS == 6 && PART_SHIFT == STATE_SHIFT + 2);
const _: () = assert!(STATE_SHIFT == CLASS_SHIFT + 6 && SEGMENT_BITS == 16);
const _: () = assert!(SEGMENT_SHIFT == PAGE_SHIFT + 12 && PAGE_SHIFT == 4);
const _: () =
    assert!(SSD_SEGMENTS_MAX == 1 << (SEGMENT_BITS + PART_BITS) && part_bits(SSD_SEGMENTS_MAX) == 0);

/// Returns how many bits of a part every entry has: six, less those that number more than 65,536 SSD segments (1
/// TiB).
pub(crate) const fn part_bits(ssd_segments: u32) -> u32 {
    let number_bits = u32::BITS - ssd_segments.saturating_sub(1).leading_zeros();
    PART_BITS - number_bits.saturating_sub(SEGMENT_BITS)
}

/// Returns the bits of an entry that tell whose it is, if entries have `part_bits` of a part.
pub(crate) const fn identity(part_bits: u32) -> u64 {
    TAG_MASK | ((1 << part_bits) - 1) << PART_SHIFT
}

impl Entry {
    pub(crate) const EMPTY: Entry = Entry(0);

    /// The bits of a key's hash where an entry has them.
    #[inline]
    pub(crate) fn of_hash(hash: KeyHash) -> u64 {
        u64::from(hash.tag()) << TAG_SHIFT | u64::from(hash.part()) << PART_SHIFT
    }

    /// An entry for a record at byte `offset` of the RAM tier.
    pub(crate) fn ram(hash: KeyHash, freq: u8, state: State, offset: u64) -> Self {
        debug_assert!(offset.is_multiple_of(RAM_UNIT_BYTES) && offset < RAM_BYTES_MAX);
        Entry(
            Entry::of_hash(hash)
                | u64::from(freq) << FREQ_SHIFT
                | (state as u64) << STATE_SHIFT
                | (offset / RAM_UNIT_BYTES) << PAGE_SHIFT,
        )
    }

    /// An entry for a record on the SSD, with `part_bits` bits of the part.
    pub(crate) fn ssd(hash: KeyHash, part_bits: u32, freq: u8, place: SsdPlace) -> Self {
        let (high, low) = (place.segment >> SEGMENT_BITS, place.segment & ((1 << SEGMENT_BITS) - 1));
        debug_assert!(high >> (PART_BITS - part_bits) == 0, "{place:?} with {part_bits} bits");
        Entry(
            Entry::of_hash(hash) & identity(part_bits)
                | u64::from(freq) << FREQ_SHIFT
                | u64::from(high) << (PART_SHIFT + part_bits)
                | (State::Ssd as u64) << STATE_SHIFT
                | u64::from(place.class) << CLASS_SHIFT
                | u64::from(low) << SEGMENT_SHIFT
                | u64::from(place.page) << PAGE_SHIFT
                | u64::from(place.generation),
        )
    }

    #[inline]
    pub(crate) fn tag(self) -> u16 {
        (self.0 >> TAG_SHIFT) as u16
    }

    /// The hash bits that choose among the buckets which one has become. In the highest of them, the number of an
    /// SSD segment may lie.
    #[inline]
    pub(crate) fn part(self) -> u8 {
        (self.0 >> PART_SHIFT) as u8 & 0x3F
    }

    #[inline]
    pub(crate) fn freq(self) -> u8 {
        (self.0 >> FREQ_SHIFT) as u8 & FREQ_MAX
    }

    #[inline]
    pub(crate) fn with_freq(self, freq: u8) -> Self {
        Entry(self.0 & !FREQ_MASK | u64::from(freq.min(FREQ_MAX)) << FREQ_SHIFT)
    }

    /// One access hotter.
    #[inline]
    pub(crate) fn bumped(self) -> Self {
        if self.0 & FREQ_MASK == FREQ_MASK { self } else { Entry(self.0 + (1 << FREQ_SHIFT)) }
    }

    #[inline]
    pub(crate) fn state(self) -> State {
        match (self.0 >> STATE_SHIFT) & 0b11 {
            0 => State::Empty,
            1 => State::Ram,
            2 => State::RamLarge,
            _ => State::Ssd,
        }
    }

    /// Where in the RAM tier, in bytes.
    #[inline]
    pub(crate) fn ram_offset(self) -> u64 {
        ((self.0 >> PAGE_SHIFT) & ((1 << 34) - 1)) * RAM_UNIT_BYTES
    }

    /// Where on the SSD, if entries have `part_bits` bits of a part; only meaningful in state [`State::Ssd`].
    #[inline]
    pub(crate) fn ssd_place(self, part_bits: u32) -> SsdPlace {
        let high = u32::from(self.part() >> part_bits) << SEGMENT_BITS;
        SsdPlace {
            segment: high | (self.0 >> SEGMENT_SHIFT) as u32 & ((1 << SEGMENT_BITS) - 1),
            page: (self.0 >> PAGE_SHIFT) as u16 & 0xFFF,
            class: (self.0 >> CLASS_SHIFT) as u8 & 0x3F,
            generation: self.0 as u8 & 0xF,
        }
    }

    /// Whether both name the same record in the same place; frequency may differ.
    #[inline]
    pub(crate) fn same_place(self, other: Entry) -> bool {
        (self.0 ^ other.0) & !FREQ_MASK == 0
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.state() {
            State::Empty => f.write_str("Empty"),
            State::Ssd => {
                let place = self.ssd_place(PART_BITS);
                write!(
                    f,
                    "Ssd(tag {:04x}, part {:02x}, freq {}, {place:?})",
                    self.tag(),
                    self.part(),
                    self.freq()
                )
            }
            state => {
                write!(f, "{state:?}(tag {:04x}, freq {}, at {})", self.tag(), self.freq(), self.ram_offset())
            }
        }
    }
}

/// Where a record lies on the SSD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SsdPlace {
    /// Segment number over all devices.
    pub segment: u32,
    /// First page inside the segment.
    pub page: u16,
    /// How many pages to read, as a class (see [`pages_of_class`]).
    pub class: u8,
    /// Which filling of the segment, modulo 16.
    pub generation: u8,
}

/// Where the unchanged copy of a promoted record lies on the SSD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SsdCopy {
    pub place: SsdPlace,
    /// Which filling of the segment. A record may stay in RAM through more generations of its segment than the
    /// bits in `place` tell apart.
    pub generation: u32,
}

impl SsdCopy {
    /// The bytes of the trailer of a record without a copy. No copy has these: its generation is never 0.
    pub(crate) const NO_BYTES: [u8; SSD_COPY_BYTES] = [0; SSD_COPY_BYTES];

    /// The bytes of the trailer in RAM.
    pub(crate) fn to_bytes(self) -> [u8; SSD_COPY_BYTES] {
        let mut bytes = [0; SSD_COPY_BYTES];
        bytes[..8].copy_from_slice(&self.place.to_bits().to_le_bytes());
        bytes[8..].copy_from_slice(&self.generation.to_le_bytes());
        bytes
    }

    /// Returns the copy that a trailer names; `None` if it names none.
    pub(crate) fn from_bytes(bytes: &[u8; SSD_COPY_BYTES]) -> Option<Self> {
        if *bytes == SsdCopy::NO_BYTES {
            return None;
        }
        let [a, b, c, d, e, f, g, h, generation @ ..] = *bytes;
        let place = SsdPlace::from_bits(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
        Some(SsdCopy { place, generation: u32::from_le_bytes(generation) })
    }
}

impl SsdPlace {
    /// One word, from which [`from_bits`](Self::from_bits) makes it again.
    fn to_bits(self) -> u64 {
        u64::from(self.class) << 38
            | u64::from(self.segment) << 16
            | u64::from(self.page) << 4
            | u64::from(self.generation)
    }

    fn from_bits(bits: u64) -> Self {
        SsdPlace {
            segment: (bits >> 16) as u32 & (SSD_SEGMENTS_MAX - 1),
            page: (bits >> 4) as u16 & 0xFFF,
            class: (bits >> 38) as u8 & 0x3F,
            generation: bits as u8 & 0xF,
        }
    }
}

/// The class whose read covers `pages` (1 to 4096): exact up to 16 pages, then four steps a doubling.
pub(crate) fn class_of_pages(pages: u32) -> u8 {
    debug_assert!((1..=4096).contains(&pages));
    if pages <= 16 {
        return (pages - 1) as u8;
    }
    let doubling = (pages - 1).ilog2() - 4;
    let step = (pages - 1) >> (doubling + 2) & 0b11;
    (16 + doubling * 4 + step) as u8
}

/// How many pages a read of `class` covers: at least those stored, at most a quarter more.
pub(crate) fn pages_of_class(class: u8) -> u32 {
    let class = u32::from(class);
    if class < 16 {
        return class + 1;
    }
    let (doubling, step) = ((class - 16) / 4, (class - 16) % 4);
    (5 + step) << (doubling + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_count_is_covered_by_its_class_with_at_most_a_quarter_over() {
        for pages in 1..=4096 {
            let class = class_of_pages(pages);
            let read = pages_of_class(class);
            assert!(class < 64 && read >= pages, "{pages} pages, class {class} reads {read}");
            assert!(read <= pages + pages.div_ceil(4), "{pages} pages, class {class} reads {read}");
        }
    }

    #[test]
    fn fields_survive_packing() {
        let hash = KeyHash(0x1234_5678_9ABC_BEEF);
        for (segments, bits) in
            [(1, 6), (1 << 16, 6), ((1 << 16) + 1, 5), (1 << 20, 2), (SSD_SEGMENTS_MAX, 0)]
        {
            assert_eq!(part_bits(segments), bits, "{segments} segments");
            let place = SsdPlace { segment: segments - 1, page: 4095, class: 63, generation: 15 };
            let entry = Entry::ssd(hash, bits, 2, place);
            let fields = (entry.tag(), entry.freq(), entry.state(), entry.ssd_place(bits));
            assert_eq!(fields, (0xBEEF, 2, State::Ssd, place));
            assert_eq!(entry.part() & ((1 << bits) - 1), hash.part() & ((1 << bits) - 1));
            assert_eq!((entry.0 ^ Entry::of_hash(hash)) & identity(bits), 0);
            let copy = SsdCopy { place, generation: u32::MAX };
            assert_eq!(SsdCopy::from_bytes(&copy.to_bytes()), Some(copy));
        }
        let hash = KeyHash(0x1234_5678_9ABC_0007);
        let entry = Entry::ram(hash, 3, State::RamLarge, RAM_BYTES_MAX - 8);
        assert_eq!((entry.tag(), entry.part(), entry.freq(), entry.state()), (7, 0x3C, 3, State::RamLarge));
        assert_eq!(entry.ram_offset(), RAM_BYTES_MAX - 8);
        assert!(entry.bumped().same_place(entry.with_freq(0)) && entry.bumped().freq() == 3);
    }
}
