//! How many buckets an index has, and so where a key's are.
//!
//! An index begins with `base` buckets and grows by one at a time, as linear hashing does: a new bucket takes
//! over a part of the entries of an earlier one. Which part, a bit of the hash decides that entries hold beside the
//! tag (the [part](KeyHash::part)). With `base << level` buckets, each bucket of the base has become
//! `1 << level`, and the low `level` bits of a part choose among these:
//!
//! ```text
//!   0      base             2 base                              4 base
//!   | b, 0  | b, parts ...1  | b, parts ..10, then b, parts ..11 | ...
//!                                            ^ count: bucket `count` is the next one
//! ```
//! The buckets of one doubling lie by bucket of the base first and then by part. A key's two buckets come of
//! different ones of the base, so that often one has split and the other has not, and the emptier takes what
//! the fuller has no room for.

use crate::index::entry::Entry;
use crate::index::hash::KeyHash;

/// The buckets of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    base: u32,
    count: u32,
    /// `base << level`, the most of these that are no more than `count`.
    low: u32,
    level: u32,
}

impl Shape {
    /// The shape of `count` buckets that began as `base`, which are no more.
    pub(crate) fn new(base: u32, count: u32) -> Shape {
        let level = (count / base).ilog2();
        Shape { base, count, low: base << level, level }
    }

    pub(crate) fn base(self) -> u32 {
        self.base
    }

    pub(crate) fn count(self) -> u32 {
        self.count
    }

    /// One word, from which [`from_word`](Self::from_word) makes it again.
    pub(crate) fn to_word(self) -> u64 {
        u64::from(self.level) << 32 | u64::from(self.count)
    }

    #[inline]
    pub(crate) fn from_word(base: u32, word: u64) -> Shape {
        let level = (word >> 32) as u32;
        Shape { base, count: word as u32, low: base << level, level }
    }

    /// Where the entries of bucket `first` of the base are whose parts end in the bits `sub`, the highest of
    /// which is the one that the bucket was made for.
    #[inline]
    fn place(self, first: u32, sub: u32) -> u32 {
        match sub.checked_ilog2() {
            None => first,
            // No more than the number of buckets, so it does not wrap around.
            Some(doubling) => (self.base.wrapping_add(first) << doubling).wrapping_add(sub ^ 1 << doubling),
        }
    }

    /// Where an entry with this part is, of those in bucket `first` of the base.
    #[inline]
    fn grown(self, first: u32, part: u8) -> u32 {
        if self.count == self.base {
            return first;
        }
        let (part, mask) = (u32::from(part), (1_u32 << self.level).wrapping_sub(1));
        let has_split = (first << self.level | part & mask) < self.count.wrapping_sub(self.low);
        self.place(first, part & if has_split { mask << 1 | 1 } else { mask })
    }

    /// The bucket of the base in which an entry with this part was, that is in `bucket` now.
    fn first(self, bucket: u32, part: u8) -> u32 {
        let Some(doubling) = (bucket / self.base).checked_ilog2() else { return bucket };
        let sub = u32::from(part) & ((2 << doubling) - 1);
        ((bucket + (1 << doubling) - sub) >> doubling) - self.base
    }

    #[inline]
    fn other_first(self, first: u32, tag: u16) -> u32 {
        let count = u64::from(self.base);
        let spread = (u64::from(tag) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let sum = (spread * count) >> 32;
        let other = sum + count - u64::from(first);
        (if other >= count { other - count } else { other }) as u32
    }

    /// The first of a key's two buckets.
    #[inline]
    pub(crate) fn bucket(self, hash: KeyHash) -> u32 {
        self.grown(hash.bucket(self.base), hash.part())
    }

    /// The other one.
    #[inline]
    pub(crate) fn other_bucket(self, hash: KeyHash) -> u32 {
        self.grown(self.other_first(hash.bucket(self.base), hash.tag()), hash.part())
    }

    /// The other bucket of an entry in `bucket`. Its own inverse.
    pub(crate) fn other(self, bucket: u32, entry: Entry) -> u32 {
        let first = self.first(bucket, entry.part());
        self.grown(self.other_first(first, entry.tag()), entry.part())
    }

    /// Whether two keys of one tag have the same two buckets of the base.
    pub(crate) fn share_buckets(self, one: KeyHash, two: KeyHash) -> bool {
        let (first, second) = (one.bucket(self.base), two.bucket(self.base));
        first == second || self.other_first(first, one.tag()) == second
    }

    /// The bucket of which the next one takes entries over, and the bit that is set in the parts of these.
    pub(crate) fn next_split(self) -> (u32, u8) {
        let nth = self.count - self.low;
        (self.place(nth >> self.level, nth & ((1 << self.level) - 1)), 1 << self.level)
    }

    /// With one bucket more.
    pub(crate) fn grow(self) -> Shape {
        Shape::new(self.base, self.count + 1)
    }

    /// With one bucket less; `None` if there were no fewer at first.
    pub(crate) fn shrink(self) -> Option<Shape> {
        (self.count > self.base).then(|| Shape::new(self.base, self.count - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::entry::State;
    use crate::index::hash::Hasher;

    #[test]
    fn the_other_bucket_of_the_other_bucket_is_the_first() {
        for base in [1, 2, 3, 100, 1000, 65_537] {
            for count in [base, base + base / 2, base * 2, base * 5, base * 11 + base / 3] {
                let shape = Shape::new(base, count);
                assert_eq!(Shape::from_word(base, shape.to_word()), shape);
                let hasher = Hasher::new(7);
                for key in 0_u64..500 {
                    let hash = hasher.hash(&key.to_le_bytes());
                    let (one, two) = (shape.bucket(hash), shape.other_bucket(hash));
                    assert!(one < count && two < count, "{shape:?}");
                    let entry = Entry::ram(hash, 0, State::Ram, 0);
                    assert_eq!((shape.other(one, entry), shape.other(two, entry)), (two, one));
                }
            }
        }
    }

    #[test]
    fn what_a_new_bucket_takes_over_was_in_the_one_that_splits() {
        let hasher = Hasher::new(3);
        let mut shape = Shape::new(6, 6);
        for _ in 0..100 {
            let grown = shape.grow();
            let (from, bit) = shape.next_split();
            for key in 0_u64..300 {
                let hash = hasher.hash(&key.to_le_bytes());
                for (before, after) in [
                    (shape.bucket(hash), grown.bucket(hash)),
                    (shape.other_bucket(hash), grown.other_bucket(hash)),
                ] {
                    let moves = before == from && hash.part() & bit != 0;
                    assert_eq!(after, if moves { shape.count() } else { before });
                }
            }
            shape = grown;
        }
    }
}
