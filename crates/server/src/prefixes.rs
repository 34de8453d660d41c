//! Counts of commands by the prefix of their key, for `stats detail`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most prefixes that are counted (memcached's number), and the most bytes of them.
const PREFIXES_MAX: usize = 1 << 16;
const PREFIX_BYTES_MAX: usize = 1 << 20;

/// The effect of a command on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A read that found the item.
    Hit,
    /// A read that found nothing.
    Miss,
    /// A store, whatever came of it.
    Set,
    /// A delete, whatever came of it.
    Delete,
}

/// One prefix's counts.
#[derive(Clone, Copy, Debug, Default)]
struct PrefixCounts {
    gets: u64,
    hits: u64,
    sets: u64,
    deletes: u64,
}

#[derive(Default)]
struct PrefixTable {
    prefixes: HashMap<Box<[u8]>, PrefixCounts>,
    bytes: usize,
}

/// The counts of all prefixes. Off, it costs a command one load.
pub struct Prefixes {
    delimiter: u8,
    is_on: AtomicBool,
    table: Mutex<PrefixTable>,
}

impl Prefixes {
    /// Prefixes end before the first `delimiter` of a key; a key without one is not counted.
    pub fn new(delimiter: u8, is_on: bool) -> Self {
        Prefixes { delimiter, is_on: AtomicBool::new(is_on), table: Mutex::default() }
    }

    /// Returns whether commands are counted.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// Starts or stops the counting; the counts stay.
    pub fn turn(&self, on: bool) {
        self.is_on.store(on, Relaxed);
    }

    /// Counts a command. Of a prefix that is new when the table is full, nothing is counted.
    #[inline]
    pub fn count(&self, key: &[u8], event: Event) {
        if self.is_on() {
            self.count_prefix(key, event);
        }
    }

    #[cold]
    fn count_prefix(&self, key: &[u8], event: Event) {
        let Some(end) = key.iter().position(|byte| *byte == self.delimiter) else { return };
        let prefix = &key[..end];
        let mut table = self.lock();
        if !table.prefixes.contains_key(prefix) {
            if table.prefixes.len() >= PREFIXES_MAX || table.bytes + prefix.len() > PREFIX_BYTES_MAX {
                return;
            }
            table.bytes += prefix.len();
            table.prefixes.insert(prefix.into(), PrefixCounts::default());
        }
        let Some(counts) = table.prefixes.get_mut(prefix) else { return };
        match event {
            Event::Hit => (counts.gets, counts.hits) = (counts.gets + 1, counts.hits + 1),
            Event::Miss => counts.gets += 1,
            Event::Set => counts.sets += 1,
            Event::Delete => counts.deletes += 1,
        }
    }

    /// Forgets all counts.
    pub fn clear(&self) {
        *self.lock() = PrefixTable::default();
    }

    /// Returns the lines of `stats detail dump`, with their end.
    pub fn dump(&self) -> Vec<u8> {
        let table = self.lock();
        let mut lines = Vec::new();
        for (prefix, PrefixCounts { gets, hits, sets, deletes }) in &table.prefixes {
            lines.extend_from_slice(b"PREFIX ");
            lines.extend_from_slice(prefix);
            let counts = format!(" get {gets} hit {hits} set {sets} del {deletes}\r\n");
            lines.extend_from_slice(counts.as_bytes());
        }
        lines.extend_from_slice(b"END\r\n");
        lines
    }

    fn lock(&self) -> MutexGuard<'_, PrefixTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_counted_up_to_a_bound() {
        let prefixes = Prefixes::new(b':', true);
        for i in 0..PREFIXES_MAX + 100 {
            prefixes.count(format!("{i}:key").as_bytes(), Event::Set);
        }
        assert_eq!(prefixes.lock().prefixes.len(), PREFIXES_MAX);
        prefixes.count(b"7:other", Event::Hit);
        assert!(String::from_utf8_lossy(&prefixes.dump()).contains("PREFIX 7 get 1 hit 1 set 1 del 0\r\n"));
        prefixes.clear();
        for i in 0..6_000 {
            prefixes.count(format!("{i:0200}:key").as_bytes(), Event::Set);
        }
        assert_eq!(prefixes.lock().prefixes.len(), PREFIX_BYTES_MAX / 200);
    }

    #[test]
    fn a_key_without_a_delimiter_and_a_stopped_count_leave_no_trace() {
        let prefixes = Prefixes::new(b'/', false);
        prefixes.count(b"a/b", Event::Set);
        prefixes.turn(true);
        prefixes.count(b"a:b", Event::Set);
        assert_eq!(prefixes.dump(), b"END\r\n");
        prefixes.count(b"/b", Event::Delete);
        assert_eq!(prefixes.dump(), b"PREFIX  get 0 hit 0 set 0 del 1\r\nEND\r\n");
    }
}
