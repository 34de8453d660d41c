//! One entry as it lies in a ring: a header of seven words, the key, the value, each filled up to a word.
//!
//! ```text
//!  word 0 | position                                                     of this record, in full
//!       1 | hash of the key
//!       2 | checksum 32                            | value_len 32
//!       3 | flags 32                               | epoch 32
//!       4 | cas
//!       5 | fresh_until_ms 40                              | generation 24
//!       6 | stale_for_ms 32                        | feed 16  | mark 8 | key_len 8
//! ```
//! The checksum covers words 1 to 4 and 6, and the CRC32C of the value; the key is compared in full. Word 5 changes
//! in place, and the position changes when a record moves, so they are outside of it.

use crc_fast::CrcAlgorithm::Crc32Iscsi;

use super::entry::{Entry, Hit, TIME_MS_MAX};
use super::feed::FeedId;
use super::position::Position;
use super::words::words_of;

/// Words before the key.
pub(super) const HEADER_WORDS: usize = 7;
/// The word that holds the time until which the record is fresh.
pub(super) const FRESH_WORD: usize = 5;

const GENERATION_BITS: u32 = 24;
const GENERATION_MASK: u64 = (1 << GENERATION_BITS) - 1;

/// The words of a header, as they are read from a ring.
#[derive(Clone, Copy)]
pub(super) struct Header(pub(super) [u64; HEADER_WORDS]);

impl Header {
    /// The header of an entry, whose key must have at most [`super::KEY_BYTES_MAX`] bytes. Its position is set later.
    pub(super) fn new(hash: u64, key: &[u8], entry: &Entry, generation: u64) -> Header {
        let stale_for = entry.stale_until_ms.saturating_sub(entry.fresh_until_ms).min(u64::from(u32::MAX));
        let mut header = Header([
            0,
            hash,
            entry.value.len() as u64,
            u64::from(entry.flags) << 32 | u64::from(entry.epoch),
            entry.cas,
            fresh_word(entry.fresh_until_ms, generation),
            stale_for << 32 | u64::from(entry.feed) << 16 | u64::from(entry.mark) << 8 | key.len() as u64,
        ]);
        header.0[2] |= u64::from(header.checksum(entry.value)) << 32;
        header
    }

    pub(super) fn position(&self) -> Position {
        Position(self.0[0])
    }

    pub(super) fn hash(&self) -> u64 {
        self.0[1]
    }

    #[inline]
    pub(super) fn value_len(&self) -> usize {
        (self.0[2] & 0xFFFF_FFFF) as usize
    }

    pub(super) fn cas(&self) -> u64 {
        self.0[4]
    }

    #[inline]
    pub(super) fn key_len(&self) -> usize {
        (self.0[6] & 0xFF) as usize
    }

    /// Words of the whole record.
    #[inline]
    pub(super) fn words(&self) -> usize {
        words_for(self.key_len(), self.value_len())
    }

    #[inline]
    pub(super) fn fresh_until_ms(&self) -> u64 {
        self.0[FRESH_WORD] >> GENERATION_BITS
    }

    pub(super) fn stale_until_ms(&self) -> u64 {
        self.fresh_until_ms() + (self.0[6] >> 32)
    }

    /// Returns whether the value and this header belong together.
    #[inline]
    pub(super) fn verifies(&self, value: &[u8]) -> bool {
        self.0[2] >> 32 == u64::from(self.checksum(value))
    }

    #[inline]
    fn checksum(&self, value: &[u8]) -> u32 {
        let [_, hash, lens, flags, cas, _, rest] = self.0;
        let value = crc_fast::checksum(Crc32Iscsi, value);
        let sum = fold(hash ^ 0x2D35_8DCC_AA6C_78A5, lens << 32 ^ 0x8BB8_4B93_962E_ACC9)
            ^ fold(flags ^ 0x4B33_A62E_D433_D4A3, cas ^ 0x4D5A_2DA5_1DE1_AA47)
            ^ fold(rest ^ 0xA076_1D64_78BD_642F, value ^ 0xE703_7ED1_A0B4_28DB);
        (sum ^ sum >> 32) as u32
    }

    #[inline]
    pub(super) fn feed(&self) -> FeedId {
        (self.0[6] >> 16) as u16
    }

    /// Returns the entry at a time and in a generation; `None` after `stale_until_ms`. It is fresh while its feed
    /// lasts, until `feed_end_ms`, and stale for so long behind that.
    #[inline]
    pub(super) fn hit(&self, now_ms: u64, generation: u64, feed_end_ms: u64) -> Option<Hit> {
        let fresh_until_ms = self.fresh_until_ms();
        let has_ended = now_ms >= feed_end_ms;
        let fresh_until_ms = if has_ended { fresh_until_ms.min(feed_end_ms) } else { fresh_until_ms };
        let stale_until_ms = fresh_until_ms + (self.0[6] >> 32);
        (now_ms < stale_until_ms).then_some(Hit {
            flags: (self.0[3] >> 32) as u32,
            epoch: self.0[3] as u32,
            cas: self.0[4],
            mark: (self.0[6] >> 8) as u8,
            feed: self.feed(),
            is_fresh: now_ms < fresh_until_ms && (self.0[FRESH_WORD] ^ generation) & GENERATION_MASK == 0,
            fresh_until_ms,
            stale_until_ms,
        })
    }
}

/// Words of a record.
#[inline]
pub(super) fn words_for(key_len: usize, value_len: usize) -> usize {
    HEADER_WORDS + words_of(key_len) + words_of(value_len)
}

/// The word that says until when a record is fresh, and in which generation. Generations that are 16 million apart
/// look the same; a record is fresh for far less time than it takes to ask for revalidation so often.
pub(super) fn fresh_word(fresh_until_ms: u64, generation: u64) -> u64 {
    fresh_until_ms.min(TIME_MS_MAX) << GENERATION_BITS | generation & GENERATION_MASK
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Entry = Entry {
        value: b"a value",
        flags: 0xDEAD_BEEF,
        cas: u64::MAX - 5,
        epoch: 7,
        mark: 201,
        feed: 0xABCD,
        fresh_until_ms: 1_000,
        stale_until_ms: 5_000,
    };

    #[test]
    fn an_entry_comes_back_until_its_time_is_over() {
        let header = Header::new(99, b"key", &ENTRY, (1 << 24) + 4);
        assert!(header.verifies(ENTRY.value));
        assert_eq!((header.key_len(), header.value_len(), header.words()), (3, 7, 9));
        let hit = header.hit(999, (1 << 24) + 4, u64::MAX).expect("it is fresh");
        assert_eq!((hit.flags, hit.cas, hit.epoch, hit.mark), (0xDEAD_BEEF, u64::MAX - 5, 7, 201));
        assert_eq!((hit.is_fresh, hit.fresh_until_ms, hit.stale_until_ms), (true, 1_000, 5_000));
        assert!(!header.hit(1_000, (1 << 24) + 4, u64::MAX).expect("it is stale").is_fresh);
        assert!(!header.hit(999, (1 << 24) + 5, u64::MAX).expect("it is to be revalidated").is_fresh);
        assert!(header.hit(4_999, 0, u64::MAX).is_some() && header.hit(5_000, 0, u64::MAX).is_none());
    }

    #[test]
    fn an_entry_is_fresh_no_longer_than_its_feed_lasts() {
        let header = Header::new(99, b"key", &ENTRY, 0);
        let at = |now_ms, end_ms| {
            header.hit(now_ms, 0, end_ms).map(|hit| (hit.is_fresh, hit.fresh_until_ms, hit.stale_until_ms))
        };
        assert_eq!(at(300, 400), Some((true, 1_000, 5_000)), "while it lasts");
        assert_eq!(at(400, 400), Some((false, 400, 4_400)), "it is stale for as long behind its end");
        assert_eq!((at(4_399, 400).is_some(), at(4_400, 400)), (true, None));
        assert_eq!(at(4_000, 0), None, "nothing is known of the feed any more");
        assert_eq!(header.feed(), 0xABCD);
    }

    #[test]
    fn times_beyond_the_bounds_are_the_bounds() {
        let late = Entry { fresh_until_ms: u64::MAX, stale_until_ms: u64::MAX, ..ENTRY };
        let header = Header::new(99, b"key", &late, 0);
        let hit = header.hit(1, 0, u64::MAX).expect("it is fresh");
        assert_eq!((hit.fresh_until_ms, hit.stale_until_ms), (TIME_MS_MAX, TIME_MS_MAX));
        let never = Entry { fresh_until_ms: 10, stale_until_ms: 1, ..ENTRY };
        let header = Header::new(99, b"key", &never, 0);
        assert_eq!(header.stale_until_ms(), 10);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let header = Header::new(99, b"key", &ENTRY, 0);
        for word in [1, 2, 3, 4, 6] {
            for bit in 0..64 {
                let mut flipped = header;
                flipped.0[word] ^= 1 << bit;
                assert!(!flipped.verifies(ENTRY.value), "bit {bit} of word {word}");
            }
        }
        for bit in 0..ENTRY.value.len() * 8 {
            let mut value = ENTRY.value.to_vec();
            value[bit / 8] ^= 1 << (bit % 8);
            assert!(!header.verifies(&value), "bit {bit} of the value");
        }
    }
}
