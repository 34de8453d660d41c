//! Prefixes of keys, by number: an event carries a number of 28 bits, and the prefix itself is sent when it is asked
//! for.
//!
//! ```text
//!   request on a sampled key --> event with the prefix's number --> ring --> what accounts by number
//!          |                                                                        |
//!          +--> names, if the number's bit is set <--- asks for the name of a number+
//! ```
//! No request waits: a name that finds no room, or the names' lock taken, is sent with a later request.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError, TryLockError};

use crate::index::hash::Hasher;

/// Bits of a prefix's number.
pub(super) const NUMBER_BITS: u32 = 28;
/// Numbers are asked for by so many of their bits, and others that share these send their names too.
const ASKED_BITS: u32 = 10;
const WORD_BITS: usize = u64::BITS as usize;
/// The most names that wait to be taken.
const NAMES_MAX: usize = 64;

/// A prefix of keys, by its hash: never 0, which stands for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrefixNumber(u32);

impl PrefixNumber {
    pub(super) fn from_bits(bits: u32) -> Option<PrefixNumber> {
        (bits != 0).then_some(PrefixNumber(bits))
    }

    pub(super) fn bits(self) -> u32 {
        self.0
    }

    /// Returns bits that differ from one number to the next.
    pub(crate) fn hash(self) -> usize {
        self.0 as usize
    }

    /// Returns the word and the bit by which it is asked for.
    fn asked(self) -> (usize, u64) {
        let bit = self.0 as usize & ((1 << ASKED_BITS) - 1);
        (bit / WORD_BITS, 1 << (bit % WORD_BITS))
    }
}

/// Prefixes on their way from the threads that serve requests to the one that accounts for them.
pub struct PrefixNames {
    delimiter: u8,
    hasher: Hasher,
    asked: [AtomicU64; (1 << ASKED_BITS) / WORD_BITS],
    names: Mutex<Vec<(PrefixNumber, Box<[u8]>)>>,
}

impl PrefixNames {
    /// Prefixes end before the first `delimiter`. Their numbers depend on the store's hash, so clients cannot choose
    /// keys of which the prefixes have the same one.
    pub(crate) fn new(delimiter: u8, hasher: Hasher) -> PrefixNames {
        PrefixNames { delimiter, hasher, asked: Default::default(), names: Mutex::default() }
    }

    /// Returns the byte that ends a prefix.
    pub fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Returns what precedes a key's first delimiter. A key without one has the empty prefix.
    pub fn prefix_of<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        key.iter().position(|byte| *byte == self.delimiter).and_then(|end| key.get(..end)).unwrap_or_default()
    }

    /// Returns the number of a prefix.
    pub fn number(&self, prefix: &[u8]) -> PrefixNumber {
        PrefixNumber(((self.hasher.hash(prefix).bits() >> (u64::BITS - NUMBER_BITS)) as u32).max(1))
    }

    /// Returns the number of a key's prefix, and sends the prefix if it is asked for.
    pub(super) fn tell(&self, key: &[u8]) -> PrefixNumber {
        let prefix = self.prefix_of(key);
        let number = self.number(prefix);
        let (word, bit) = number.asked();
        if self.asked[word].load(Relaxed) & bit != 0 {
            self.send(number, prefix);
        }
        number
    }

    fn send(&self, number: PrefixNumber, prefix: &[u8]) {
        let mut names = match self.names.try_lock() {
            Ok(names) => names,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if names.len() < NAMES_MAX {
            names.push((number, prefix.into()));
            // Once is enough; if it was another prefix's name, it is asked for again.
            let (word, bit) = number.asked();
            self.asked[word].fetch_and(!bit, Relaxed);
        }
    }

    /// Asks for the name of a number.
    pub(crate) fn ask(&self, number: PrefixNumber) {
        let (word, bit) = number.asked();
        self.asked[word].fetch_or(bit, Relaxed);
    }

    /// Takes the names that have come. Some may not have been asked for.
    pub(crate) fn take(&self) -> Vec<(PrefixNumber, Box<[u8]>)> {
        std::mem::take(&mut *self.names.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> PrefixNames {
        PrefixNames::new(b':', Hasher::new(7))
    }

    #[test]
    fn a_prefix_ends_before_the_first_delimiter_and_a_key_without_one_has_the_empty_prefix() {
        let names = names();
        let long = [b"x".repeat(249), b":".to_vec()].concat();
        let keys: [(&[u8], &[u8]); 6] = [
            (b"shop:a:b", b"shop"),
            (b":a", b""),
            (b"plain", b""),
            (b"shop:", b"shop"),
            (b"\0\xff\n:\0", b"\0\xff\n"),
            (&long, &long[..249]),
        ];
        for (key, prefix) in keys {
            assert_eq!(names.prefix_of(key), prefix);
            assert_eq!(names.tell(key), names.number(prefix));
        }
        assert!(names.take().is_empty(), "no name was asked for");
    }

    #[test]
    fn a_name_is_sent_once_after_it_was_asked_for() {
        let names = names();
        let number = names.tell(b"shop:1");
        names.ask(number);
        names.tell(b"other:1");
        for _ in 0..3 {
            names.tell(b"shop:2");
        }
        assert_eq!(names.take(), [(number, b"shop"[..].into())]);
        names.tell(b"shop:3");
        assert!(names.take().is_empty());
    }

    #[test]
    fn a_name_that_finds_no_room_is_sent_later() {
        let names = names();
        let keys: Vec<Vec<u8>> = (0..10 * NAMES_MAX).map(|i| format!("{i}:key").into_bytes()).collect();
        keys.iter().for_each(|key| names.ask(names.number(names.prefix_of(key))));
        for _ in 0..2 {
            keys.iter().for_each(|key| assert_eq!(names.tell(key), names.number(names.prefix_of(key))));
            assert_eq!(names.take().len(), NAMES_MAX);
        }
    }

    #[test]
    fn a_name_whose_lock_is_taken_is_sent_later() {
        let names = names();
        names.ask(names.number(b"taken"));
        let lock = names.names.lock().expect("nothing panics");
        names.tell(b"taken:1");
        drop(lock);
        assert!(names.take().is_empty());
        names.tell(b"taken:1");
        assert_eq!(names.take().len(), 1);
    }
}
