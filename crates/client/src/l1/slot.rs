//! One word of the index: which record a key has, how often it was read, or that the key left not long ago.

use super::position::{OFFSET_BITS, Position};

/// Where a slot leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere.
    Empty = 0,
    /// A record in the ring of new entries, on probation.
    Small = 1,
    /// A record in the ring of entries that were read while on probation, or came back.
    Main = 2,
    /// Nowhere: the entry left the small ring, where it had this position, without having been read.
    Ghost = 3,
}

/// A slot.
///
/// ```text
///  63      48 47  46 45   44 43        28 27              0
/// +----------+------+-------+------------+-----------------+
/// |   tag    | freq | place |  lap, low  |  word of the ring |
/// +----------+------+-------+------------+-----------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(pub(super) u64);

const LAP_BITS: u32 = 16;
const PLACE_AT: u32 = OFFSET_BITS + LAP_BITS;
const FREQ_AT: u32 = PLACE_AT + 2;
const TAG_AT: u32 = FREQ_AT + 2;
const POSITION_MASK: u64 = (1 << PLACE_AT) - 1;
const _: () = assert!(TAG_AT + 16 == 64);

/// The most reads that are counted.
pub(super) const FREQ_MAX: u64 = 3;

impl Slot {
    pub(super) const EMPTY: Slot = Slot(0);

    pub(super) fn new(tag: u64, freq: u64, place: Place, position: Position) -> Slot {
        Slot(tag << TAG_AT | freq << FREQ_AT | (place as u64) << PLACE_AT | position.0 & POSITION_MASK)
    }

    /// The bits of the key's hash that a slot holds.
    #[inline]
    pub(super) fn tag_of(hash: u64) -> u64 {
        hash & 0xFFFF
    }

    #[inline]
    pub(super) fn tag(self) -> u64 {
        self.0 >> TAG_AT
    }

    #[inline]
    pub(super) fn freq(self) -> u64 {
        self.0 >> FREQ_AT & FREQ_MAX
    }

    #[inline]
    pub(super) fn place(self) -> Place {
        match self.0 >> PLACE_AT & 3 {
            0 => Place::Empty,
            1 => Place::Small,
            2 => Place::Main,
            _ => Place::Ghost,
        }
    }

    #[inline]
    pub(super) fn offset(self) -> usize {
        Position(self.0).offset()
    }

    /// Returns whether the slot has a record.
    #[inline]
    pub(super) fn has_record(self) -> bool {
        matches!(self.place(), Place::Small | Place::Main)
    }

    /// Returns whether this is the position, as far as a slot can tell: laps that are 65,536 apart look the same.
    #[inline]
    pub(super) fn leads_to(self, position: Position) -> bool {
        (self.0 ^ position.0) & POSITION_MASK == 0
    }

    /// Returns the laps from the slot's position to a later lap, if that is less than 65,536 on.
    pub(super) fn laps_to(self, lap: u64) -> u64 {
        lap.wrapping_sub(Position(self.0).lap()) & ((1 << LAP_BITS) - 1)
    }

    /// Returns whether two slots are the same but for reads in between.
    #[inline]
    pub(super) fn is_same_entry(self, other: Slot) -> bool {
        (self.0 ^ other.0) & !(FREQ_MAX << FREQ_AT) == 0
    }

    #[inline]
    pub(super) fn with_freq(self, freq: u64) -> Slot {
        Slot(self.0 & !(FREQ_MAX << FREQ_AT) | freq << FREQ_AT)
    }

    /// The same key without a record.
    pub(super) fn ghost(self) -> Slot {
        Slot(self.with_freq(0).0 | (Place::Ghost as u64) << PLACE_AT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_comes_back_and_none_touches_another() {
        let position = Position::new(0x1_2345, 0x0ABC_DEF1);
        for (freq, place) in [(0, Place::Small), (3, Place::Main), (1, Place::Ghost), (0, Place::Empty)] {
            let slot = Slot::new(0xFFFE, freq, place, position);
            assert_eq!((slot.tag(), slot.freq(), slot.place()), (0xFFFE, freq, place));
            assert_eq!(slot.offset(), position.offset());
            assert!(slot.leads_to(position) && !slot.leads_to(position.plus(1)));
            assert!(!slot.leads_to(position.next_lap()) && slot.laps_to(0x1_2348) == 3);
            assert_eq!(slot.with_freq(2).freq(), 2);
            assert!(slot.is_same_entry(slot.with_freq(2)) && slot.with_freq(2).leads_to(position));
            assert_eq!((slot.ghost().place(), slot.ghost().tag()), (Place::Ghost, 0xFFFE));
        }
    }
}
