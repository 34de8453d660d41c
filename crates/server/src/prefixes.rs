//! Counts of commands by the prefix of their key, for `stats detail`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use larder_protocol::uri_encode;

/// The most prefixes that are counted (memcached's number), and the most bytes of them.
const PREFIXES_MAX: usize = 1 << 16;
const PREFIX_BYTES_MAX: usize = 1 << 20;

/// Returns a prefix as `metadump` shows keys, because it may hold any bytes.
pub fn encoded(prefix: &[u8]) -> String {
    let mut name = Vec::new();
    uri_encode(&mut name, prefix);
    String::from_utf8_lossy(&name).into_owned()
}

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixCounts {
    /// Reads.
    pub gets: u64,
    /// Reads that found their item.
    pub hits: u64,
    /// Stores.
    pub sets: u64,
    /// Deletes.
    pub deletes: u64,
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

    /// Returns at most `most` prefixes with their counts, those with the most commands first.
    pub fn top(&self, most: usize) -> Vec<(Vec<u8>, PrefixCounts)> {
        type Counted<'a> = (&'a [u8], PrefixCounts);
        let table = self.lock();
        let commands = |counted: &Counted<'_>| counted.1.gets + counted.1.sets + counted.1.deletes;
        // Equal counts are in the order of their names, so that they do not change places.
        let order =
            |a: &Counted<'_>, b: &Counted<'_>| commands(b).cmp(&commands(a)).then_with(|| a.0.cmp(b.0));
        let mut all: Vec<Counted<'_>> =
            table.prefixes.iter().map(|(prefix, counts)| (prefix.as_ref(), *counts)).collect();
        if all.len() > most {
            all.select_nth_unstable_by(most, order);
            all.truncate(most);
        }
        all.sort_unstable_by(order);
        all.into_iter().map(|(prefix, counts)| (prefix.to_vec(), counts)).collect()
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
    fn the_top_prefixes_are_those_with_the_most_commands() {
        let prefixes = Prefixes::new(b':', true);
        for (key, times) in [("b:1", 2), ("c:1", 2), ("a:1", 2), ("d:1", 5), ("e:1", 1)] {
            (0..times).for_each(|_| prefixes.count(key.as_bytes(), Event::Miss));
        }
        prefixes.count(b"e:2", Event::Hit);
        let names = |most| prefixes.top(most).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(3), [b"d", b"a", b"b"]);
        assert_eq!(names(9), [b"d", b"a", b"b", b"c", b"e"]);
        assert!(names(0).is_empty());
        let counts = PrefixCounts { gets: 2, hits: 1, ..PrefixCounts::default() };
        assert_eq!(prefixes.top(5)[4], (b"e".to_vec(), counts));
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
