//! The first page of the file: its parameters, and words that change.
//!
//! ```text
//!  word 0 | magic
//!       1 | format
//!       2 | bytes of the file
//!       3 | entries for which the index was made
//!       4 | seed of the keys' hash
//!       5 | checksum of the words before
//!      16 | generation: counts the requests to revalidate everything
//!      17 | clears: counts the requests to forget everything
//!      18 | the PID namespace of all users, or that there are several
//!      19 | a number for the servers whose values it holds; 0 for none yet
//! ```

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

use super::layout::{BYTES_MAX, BYTES_MIN, Layout};
use super::words::copy_out;

const MAGIC: u64 = u64::from_le_bytes(*b"larderL1");
/// The version of the file's layout and meaning.
const FORMAT: u64 = 4;

const CHECK_WORD: usize = 5;
/// Counts the requests to revalidate everything.
pub(super) const GENERATION_WORD: usize = 16;
/// Counts the requests to forget everything.
pub(super) const CLEARS_WORD: usize = 17;

/// Holds the inode of the PID namespace of all processes that have opened the file, or [`NAMESPACES_SEVERAL`].
pub(super) const NAMESPACE_WORD: usize = 18;
/// Threads of different processes may have equal ids.
pub(super) const NAMESPACES_SEVERAL: u64 = u64::MAX;

/// Holds a number for the servers whose values the cache holds.
const SERVERS_WORD: usize = 19;

/// Notes whose values the cache holds, unless that is noted. Returns whether it is theirs.
pub(super) fn note_servers(words: &[AtomicU64], number: u64) -> bool {
    let noted = words[SERVERS_WORD].compare_exchange(0, number, AcqRel, Acquire);
    noted.is_ok() || noted == Err(number)
}

/// Notes the PID namespace of this process, before it takes any lock of the file.
pub(super) fn note_namespace(words: &[AtomicU64]) {
    let own = std::fs::metadata("/proc/self/ns/pid").map_or(NAMESPACES_SEVERAL, |namespace| namespace.ino());
    if let Err(noted) = words[NAMESPACE_WORD].compare_exchange(0, own, AcqRel, Acquire)
        && noted != own
    {
        words[NAMESPACE_WORD].store(NAMESPACES_SEVERAL, Release);
    }
}

fn check(words: &[AtomicU64]) -> u64 {
    let mut bytes = [0; CHECK_WORD * 8];
    copy_out(words, &mut bytes);
    rapidhash_v3_seeded(&bytes, &RapidSecrets::seed(FORMAT))
}

/// Writes the header of a new file, whose other words are zero.
pub(super) fn write(words: &[AtomicU64], layout: &Layout, seed: u64) {
    for (word, value) in words.iter().zip([MAGIC, FORMAT, layout.bytes, layout.items, seed]) {
        word.store(value, Relaxed);
    }
    words[CHECK_WORD].store(check(words), Release);
}

/// Returns what a file of so many bytes was made for, and its seed; `None` if it is of another format, or damaged.
pub(super) fn read(words: &[AtomicU64], bytes: u64) -> Option<(Layout, u64)> {
    let word = |at: usize| words[at].load(Relaxed);
    let is_ours = word(0) == MAGIC && word(1) == FORMAT && word(CHECK_WORD) == check(words);
    let is_whole = word(2) == bytes && (BYTES_MIN..=BYTES_MAX).contains(&bytes);
    (is_ours && is_whole).then(|| (Layout::new(bytes, word(3)), word(4)))
}
