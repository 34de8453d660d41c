//! Requests that were recorded elsewhere, as others hand them over to be replayed.

use super::verb::Verb;
use std::fmt;
use std::sync::Arc;

/// The longest expiry that every server reads as seconds from now.
pub const EXPIRY_MAX_S: u32 = 30 * 24 * 3600;

/// One recorded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it is due, from the beginning of the load (the warm-up, if there is one).
    pub at_ns: u64,
    /// Which key, as a number.
    pub key: u64,
    /// How large its value is, in bytes; of a get, what look-aside stores when it misses.
    pub size: u32,
    /// How long that lives, in seconds; 0 is for ever.
    pub expiry_s: u32,
    /// The verb.
    pub verb: Verb,
}

/// Requests in the order of their times. Several threads read it, each its own part.
pub trait Trace: fmt::Debug + Send + Sync {
    /// The records of thread `thread` of `threads`. Every record belongs to exactly one thread; records of
    /// one key should all belong to the same, so that they stay in their order.
    fn part(&self, thread: usize, threads: usize) -> Box<dyn Iterator<Item = Record> + Send + '_>;

    /// Returns a description in words.
    fn words(&self) -> String;

    /// A number above all keys.
    fn keys(&self) -> u64;
}

/// A trace in memory.
#[derive(Clone)]
pub struct Records {
    records: Arc<[Record]>,
    words: String,
}

impl Records {
    /// Of records in the order of their times.
    pub fn new(records: Arc<[Record]>, words: String) -> Self {
        Self { records, words }
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} records)", self.words, self.records.len())
    }
}

impl Trace for Records {
    fn part(&self, thread: usize, threads: usize) -> Box<dyn Iterator<Item = Record> + Send + '_> {
        let is_mine = move |record: &&Record| crate::random::mix(record.key) as usize % threads == thread;
        Box::new(self.records.iter().filter(is_mine).copied())
    }

    fn words(&self) -> String {
        self.words.clone()
    }

    fn keys(&self) -> u64 {
        self.records.iter().map(|record| record.key.saturating_add(1)).max().unwrap_or(1)
    }
}
