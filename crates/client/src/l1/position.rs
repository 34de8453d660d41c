//! Where a record lies in a ring: the lap and the word in it. Positions grow for as long as the file lives.

/// A place in a ring.
///
/// ```text
///  63                          28 27              0
/// +------------------------------+-----------------+
/// |             lap              |  word of the ring |
/// +------------------------------+-----------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position(pub(super) u64);

/// Bits of the word in the ring: a ring has at most 2 GiB.
pub(super) const OFFSET_BITS: u32 = 28;
/// Laps after which a shard is emptied and begins at lap 1 again.
pub(super) const LAPS_MAX: u64 = (1 << (64 - OFFSET_BITS)) - 4;

impl Position {
    /// The beginning of the first lap. A zeroed word is no position of a record.
    pub(super) const FIRST: Position = Position::new(1, 0);

    pub(super) const fn new(lap: u64, offset: usize) -> Position {
        Position(lap << OFFSET_BITS | offset as u64)
    }

    #[inline]
    pub(super) fn lap(self) -> u64 {
        self.0 >> OFFSET_BITS
    }

    /// The word of the ring; may be the ring's length, at the end of a lap.
    #[inline]
    pub(super) fn offset(self) -> usize {
        (self.0 & ((1 << OFFSET_BITS) - 1)) as usize
    }

    /// The position so many words on, in the same lap.
    pub(super) fn plus(self, words: usize) -> Position {
        Position(self.0 + words as u64)
    }

    /// The beginning of the next lap.
    pub(super) fn next_lap(self) -> Position {
        Position::new(self.lap() + 1, 0)
    }

    /// Returns the words from `self` to a later position, in a ring of `len` words; `None` if `later` is not later,
    /// or by more than the ring holds.
    pub(super) fn words_to(self, later: Position, len: usize) -> Option<usize> {
        let laps = usize::try_from(later.lap().checked_sub(self.lap())?).ok()?;
        let words = laps.checked_mul(len)?.checked_add(later.offset())?.checked_sub(self.offset())?;
        (words <= len).then_some(words)
    }

    /// The word at this position if the rest of the lap is unused, instead of a record.
    pub(super) fn filler(self) -> u64 {
        !self.0
    }
}
