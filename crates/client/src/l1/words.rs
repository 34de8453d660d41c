//! Bytes in atomic words. The order of the words within a copy is unspecified; `ring` explains how
//! readers detect a torn one.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::crash;
use super::mapping::{WORD, copy_in_at_once, copy_out_at_once};

/// Returns how many words hold so many bytes.
#[inline]
pub(super) fn words_of(bytes: usize) -> usize {
    bytes.div_ceil(WORD)
}

/// Copies the front of `words` to `bytes`; both end together but for the rest of a last word.
#[inline]
pub(super) fn copy_out(words: &[AtomicU64], bytes: &mut [u8]) {
    if copy_out_at_once(words, bytes) {
        return;
    }
    let (whole, rest) = bytes.as_chunks_mut::<WORD>();
    for (bytes, word) in whole.iter_mut().zip(words) {
        *bytes = word.load(Relaxed).to_le_bytes();
    }
    if let (false, Some(word)) = (rest.is_empty(), words.get(whole.len())) {
        let word = word.load(Relaxed).to_le_bytes();
        rest.iter_mut().zip(word).for_each(|(byte, of_word)| *byte = of_word);
    }
}

/// Copies `bytes` to the front of `words`, and fills a last word with zeros, or leaves it as it was.
#[inline]
pub(super) fn copy_in(words: &[AtomicU64], bytes: &[u8]) {
    // A test may end a writer between two words.
    if !cfg!(test) && copy_in_at_once(words, bytes) {
        return;
    }
    let (whole, rest) = bytes.as_chunks::<WORD>();
    for (bytes, word) in whole.iter().zip(words) {
        crash::step();
        word.store(u64::from_le_bytes(*bytes), Relaxed);
    }
    if let (false, Some(word)) = (rest.is_empty(), words.get(whole.len())) {
        crash::step();
        word.store(last_word(bytes), Relaxed);
    }
}

/// Copies `from` to `to`. They may overlap where `to` begins first.
pub(super) fn copy_within(from: &[AtomicU64], to: &[AtomicU64]) {
    for (from, to) in from.iter().zip(to) {
        crash::step();
        to.store(from.load(Relaxed), Relaxed);
    }
}

/// Returns whether the front of `words` holds `bytes`.
#[inline]
pub(super) fn hold(words: &[AtomicU64], bytes: &[u8]) -> bool {
    let (whole, rest) = bytes.as_chunks::<WORD>();
    let same = whole.iter().zip(words).all(|(bytes, word)| word.load(Relaxed) == u64::from_le_bytes(*bytes));
    same && words.len() >= words_of(bytes.len())
        && (rest.is_empty() || words[whole.len()].load(Relaxed) == last_word(bytes))
}

/// Returns the word that holds the bytes behind the last whole one, with zeros behind them. Reads one word where it
/// can: a copy of so few bytes takes longer than all else that a lookup does with a key.
#[inline]
fn last_word(bytes: &[u8]) -> u64 {
    let rest = bytes.len() % WORD;
    match bytes.last_chunk::<WORD>() {
        Some(last) => u64::from_le_bytes(*last) >> ((WORD - rest) * 8),
        None => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_length_come_back_and_no_word_behind_them_changes() {
        for len in [0, 1, 7, 8, 9, 64, 65, 250] {
            let words: Vec<_> = (0..40).map(|_| AtomicU64::new(u64::MAX)).collect();
            let bytes: Vec<u8> = (0..len).map(|at| at as u8 ^ 0x5A).collect();
            copy_in(&words, &bytes);
            let mut back = vec![0; len];
            copy_out(&words, &mut back);
            assert_eq!(back, bytes);
            assert!(
                hold(&words, &bytes)
                    && !hold(&words[..words_of(len).saturating_sub(1)], &[&bytes[..], b"x"].concat())
            );
            assert_eq!(
                words.iter().filter(|word| word.load(Relaxed) == u64::MAX).count(),
                40 - words_of(len)
            );
            let mut other = bytes.clone();
            if let Some(last) = other.last_mut() {
                *last ^= 1;
                assert!(!hold(&words, &other));
            }
        }
    }

    #[test]
    fn a_copy_downwards_may_overlap() {
        let words: Vec<_> = (0..100).map(AtomicU64::new).collect();
        copy_within(&words[10..80], &words[7..]);
        assert!((7..77).all(|at| words[at].load(Relaxed) == at as u64 + 3));
    }
}
