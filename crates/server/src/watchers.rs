//! Connections that watch what the daemon does (`watch`): which events they want, and the lines that wait for them.
//!
//! ```text
//!   a command, an eviction, a connection --> line --> queue of each watcher of its class --> wake its worker
//! ```
//! While nobody watches, a command costs a load of one word. A watcher's queue has the size of `-o
//! watcher_logbuf_size`; lines that find it full are skipped and counted, and the watcher is told how many.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

pub use larder_protocol::{Departure, WatchClasses, WatchEvent, WatchedItem};
use larder_protocol::{skipped_line, watch_line};

use crate::mail::Mail;

/// The most watchers, as in memcached.
const WATCHERS_MAX: usize = 20;
/// Room for the longest line: a key of 250 bytes, each of them encoded as three, and what is around it.
const LINE_BYTES: usize = 1024;
/// Room that is left for the line of those that were skipped.
const SKIPPED_LINE_BYTES: usize = 128;

/// All watchers.
pub struct Watchers {
    /// The classes that any of them watches.
    classes: AtomicU16,
    list: RwLock<Vec<Arc<Watcher>>>,
    mail: Mail,
    queue_bytes: usize,
    /// Lines so far; each has a number of its own.
    lines: AtomicU64,
    sent: AtomicU64,
    skipped: AtomicU64,
    dropped: AtomicU64,
}

/// Counts of watchers and their lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchStats {
    /// Watchers now.
    pub watchers: u64,
    /// Lines for any watcher.
    pub lines: u64,
    /// Lines that were queued, for each watcher.
    pub sent: u64,
    /// Lines that were skipped because a watcher's queue was full.
    pub skipped: u64,
    /// Events of which there were too many at a time to make lines of.
    pub dropped: u64,
}

impl WatchStats {
    /// Returns the counts since `earlier`. The number of watchers is that of now.
    pub fn since(&self, earlier: &WatchStats) -> WatchStats {
        WatchStats {
            watchers: self.watchers,
            lines: self.lines - earlier.lines,
            sent: self.sent - earlier.sent,
            skipped: self.skipped - earlier.skipped,
            dropped: self.dropped - earlier.dropped,
        }
    }
}

/// One connection that watches.
pub struct Watcher {
    classes: WatchClasses,
    worker: usize,
    connection: u64,
    queue: Mutex<Queue>,
}

struct Queue {
    bytes: VecDeque<u8>,
    /// Its bound.
    bytes_max: usize,
    /// Lines skipped since the last one that was queued.
    skipped: u64,
}

impl Queue {
    /// Appends a line, behind the number of those skipped before it. Returns false if it is skipped, too.
    fn push(&mut self, line: &[u8]) -> bool {
        if self.bytes.len() + line.len() + SKIPPED_LINE_BYTES > self.bytes_max {
            self.skipped += 1;
            return false;
        }
        let skipped = std::mem::take(&mut self.skipped);
        if skipped > 0 {
            let mut told = Vec::new();
            skipped_line(&mut told, skipped);
            self.bytes.extend(told);
        }
        self.bytes.extend(line);
        true
    }
}

impl Watcher {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves at most `bytes_max` bytes of the lines that wait to the end of `out`. Returns their number.
    pub fn take(&self, out: &mut Vec<u8>, bytes_max: usize) -> usize {
        let mut queue = self.queue();
        let bytes = queue.bytes.len().min(bytes_max);
        out.extend(queue.bytes.drain(..bytes));
        bytes
    }
}

impl Watchers {
    /// Returns the registry of a daemon with so many workers, where no one watches. A watcher's queue takes
    /// `queue_bytes`.
    pub fn new(queue_bytes: usize, workers: usize) -> Watchers {
        Watchers {
            classes: AtomicU16::new(0),
            list: RwLock::default(),
            mail: Mail::new(workers),
            queue_bytes,
            lines: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    /// Returns the bytes that a watcher holds.
    pub fn queue_bytes(&self) -> usize {
        self.queue_bytes
    }

    /// Returns whether any watcher wants events of one of these classes.
    #[inline]
    pub fn watch(&self, classes: WatchClasses) -> bool {
        WatchClasses(self.classes.load(Relaxed)).meets(classes)
    }

    /// Adds a connection of a worker. Returns None if there are as many watchers as there may be.
    pub fn add(&self, classes: WatchClasses, worker: usize, connection: u64) -> Option<Arc<Watcher>> {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        if list.len() >= WATCHERS_MAX {
            return None;
        }
        let bytes = VecDeque::with_capacity(self.queue_bytes);
        let queue = Mutex::new(Queue { bytes, bytes_max: self.queue_bytes, skipped: 0 });
        let watcher = Arc::new(Watcher { classes, worker, connection, queue });
        list.push(watcher.clone());
        self.note_classes(&list);
        Some(watcher)
    }

    /// Removes a watcher.
    pub fn remove(&self, watcher: &Arc<Watcher>) {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        list.retain(|other| !Arc::ptr_eq(other, watcher));
        self.note_classes(&list);
    }

    fn note_classes(&self, list: &[Arc<Watcher>]) {
        let classes = list.iter().fold(WatchClasses::default(), |all, one| all.and(one.classes));
        self.classes.store(classes.0, Relaxed);
    }

    /// Shows an event to those that watch its class. `unix` is the time since 1970; `wake` wakes a worker.
    #[cold]
    pub fn show(&self, class: WatchClasses, unix: Duration, event: &WatchEvent<'_>, wake: impl Fn(usize)) {
        let number = self.lines.fetch_add(1, Relaxed) + 1;
        let mut line = Vec::with_capacity(LINE_BYTES);
        watch_line(&mut line, unix, number, event);
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        for watcher in list.iter().filter(|watcher| watcher.classes.meets(class)) {
            let mut queue = watcher.queue();
            let was_empty = queue.bytes.is_empty();
            let count = if queue.push(&line) { &self.sent } else { &self.skipped };
            count.fetch_add(1, Relaxed);
            drop(queue);
            if was_empty {
                self.mail.put(watcher.worker, watcher.connection);
                wake(watcher.worker);
            }
        }
    }

    /// Counts events of which there were too many at a time.
    pub fn count_dropped(&self, events: u64) {
        if events > 0 {
            self.dropped.fetch_add(events, Relaxed);
        }
    }

    /// Takes the connections of a worker that have lines to send.
    pub fn take_mail(&self, worker: usize) -> Vec<u64> {
        if self.classes.load(Relaxed) == 0 { Vec::new() } else { self.mail.take(worker) }
    }

    /// Returns the counts.
    pub fn stats(&self) -> WatchStats {
        WatchStats {
            watchers: self.list.read().unwrap_or_else(PoisonError::into_inner).len() as u64,
            lines: self.lines.load(Relaxed),
            sent: self.sent.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: WatchEvent<'_> = WatchEvent::Get { key: b"k", item: None, connection: 3 };

    fn show(watchers: &Watchers) {
        watchers.show(WatchClasses::FETCHERS, Duration::ZERO, &GET, |_| {});
    }

    fn taken(watcher: &Watcher) -> String {
        let mut out = Vec::new();
        watcher.take(&mut out, usize::MAX);
        String::from_utf8(out).expect("lines are text")
    }

    #[test]
    fn events_reach_those_that_watch_their_class() {
        let watchers = Watchers::new(8 << 10, 2);
        assert!(!watchers.watch(WatchClasses::FETCHERS));
        let [one, other] = [(WatchClasses::FETCHERS, 0), (WatchClasses::MUTATIONS, 1)]
            .map(|(class, worker)| watchers.add(class, worker, 7).expect("there is room"));
        assert!(watchers.watch(WatchClasses::FETCHERS) && !watchers.watch(WatchClasses::EVICTIONS));
        show(&watchers);
        show(&watchers);
        assert_eq!((watchers.take_mail(0), watchers.take_mail(1)), (vec![7], vec![]), "woken once");
        assert!(taken(&one).starts_with("ts=0.0 gid=1 type=item_get key=k status=not_found"));
        assert_eq!(taken(&other), "");
        watchers.remove(&one);
        assert!(!watchers.watch(WatchClasses::FETCHERS) && watchers.watch(WatchClasses::MUTATIONS));
        let stats = watchers.stats();
        assert_eq!((stats.watchers, stats.lines, stats.sent, stats.skipped), (1, 2, 2, 0));
    }

    #[test]
    fn a_slow_watcher_is_told_how_many_lines_it_missed() {
        let watchers = Watchers::new(1 << 10, 1);
        let watcher = watchers.add(WatchClasses::FETCHERS, 0, 7).expect("there is room");
        (0..100).for_each(|_| show(&watchers));
        let stats = watchers.stats();
        assert_eq!(stats.sent + stats.skipped, 100);
        let queued = taken(&watcher);
        assert!(queued.len() <= 1 << 10 && !queued.contains("skipped"), "{queued}");
        assert_eq!(queued.lines().count() as u64, stats.sent);
        show(&watchers);
        let told = taken(&watcher);
        assert!(told.starts_with(&format!("skipped={}\nts=", stats.skipped)), "{told}");
    }

    #[test]
    fn there_are_at_most_twenty_watchers() {
        let watchers = Watchers::new(0, 1);
        let all: Vec<_> = (0..30).map_while(|at| watchers.add(WatchClasses::FETCHERS, 0, at)).collect();
        assert_eq!(all.len(), 20);
        show(&watchers);
        assert_eq!(watchers.stats().skipped, 20, "a queue without room takes nothing");
    }
}
