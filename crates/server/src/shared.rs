//! The state that all workers share: the store, the clock, the configuration, the counts of connections and their
//! memory.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use larder_store::{Stats, Store};

use crate::auth::Auth;
use crate::budget::Budget;
use crate::clock::Clock;
use crate::config::Config;
use crate::counters::{Counters, Totals};
use crate::prefixes::Prefixes;

/// Shared by every thread for the daemon's life.
pub struct Shared {
    /// Keys to values.
    pub store: Store,
    /// Seconds.
    pub clock: Clock,
    /// As started.
    pub config: Config,
    /// The users, if connections have to authenticate. Until their file is loaded, nobody is let in.
    pub auth: Option<Auth>,
    /// One set a worker.
    pub counters: Vec<Counters>,
    /// The time when the daemon started.
    pub started: Instant,
    /// The verbosity of the log; the command `verbosity` changes it.
    pub verbosity: AtomicU8,
    /// Open connections.
    pub connections: AtomicU32,
    /// The bound on the memory held for peers.
    pub budget: Budget,
    /// Commands by their keys' prefixes.
    pub prefixes: Prefixes,
    /// The last time that a large value had to wait for memory that others on their way in have been promised: in
    /// milliseconds since the start, 0 for never.
    crowded_ms: AtomicU64,
    /// Whether a listing of keys runs.
    pub is_listing: Arc<AtomicBool>,
    /// Whether connections are taken.
    pub accepting: AtomicBool,
    /// SSD reads under way in all workers: while there are any, writes take turns.
    pub reads_in_flight: AtomicUsize,
    /// Set once to make every worker drain and stop.
    pub stopping: AtomicBool,
    /// The TCP port in use, when there is one.
    pub tcp_port: AtomicU32,
    /// The interface to the SSD: `uring`, `threads` or `none`.
    pub io: &'static str,
    /// Wakes the workers to see that the daemon stops.
    wakers: Mutex<Vec<OwnedFd>>,
    /// Wakes the thread that waits for the daemon's stop.
    stop: (Mutex<()>, Condvar),
    /// Counters at the last `stats reset`.
    baseline: Mutex<Totals>,
    store_baseline: Mutex<Stats>,
}

impl Shared {
    /// Returns the state of a daemon that starts.
    pub fn new(store: Store, clock: Clock, config: Config, io: &'static str) -> Self {
        Shared {
            store,
            clock,
            auth: config.auth_file.as_deref().map(Auth::new),
            counters: (0..config.threads).map(|_| Counters::default()).collect(),
            started: Instant::now(),
            verbosity: AtomicU8::new(config.verbosity),
            connections: AtomicU32::new(0),
            budget: Budget::new(config.conn_memory_bytes),
            prefixes: Prefixes::new(config.prefix_delimiter, config.stats_detail),
            crowded_ms: AtomicU64::new(0),
            is_listing: Arc::default(),
            accepting: AtomicBool::new(true),
            reads_in_flight: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            tcp_port: AtomicU32::new(0),
            io,
            wakers: Mutex::new(Vec::new()),
            stop: Default::default(),
            baseline: Mutex::new(Totals::default()),
            store_baseline: Mutex::new(Stats::default()),
            config,
        }
    }

    /// Adds an event descriptor that is raised when the daemon is to stop.
    pub fn add_waker(&self, waker: OwnedFd) {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner).push(waker);
    }

    /// Tells every worker to drain its connections and stop.
    pub fn stop(&self) {
        let guard = self.stop.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.stopping.store(true, Relaxed);
        drop(guard);
        self.stop.1.notify_all();
        for waker in self.wakers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = rustix::io::write(waker, &1_u64.to_ne_bytes());
        }
    }

    /// Waits until the daemon is told to stop.
    pub fn wait_for_stop(&self) {
        let guard = self.stop.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.stop.1.wait_while(guard, |()| !self.stopping.load(Relaxed)));
    }

    /// Returns the counts of all workers since the daemon started.
    pub fn lifetime(&self) -> Totals {
        let mut totals = Totals::default();
        self.counters.iter().for_each(|counters| counters.add_to(&mut totals));
        totals
    }

    /// Returns the counts of all workers since the last reset.
    pub fn totals(&self) -> Totals {
        self.lifetime().since(&self.baseline.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins to count from zero.
    pub fn reset_counters(&self) {
        *self.baseline.lock().unwrap_or_else(PoisonError::into_inner) = self.lifetime();
        self.prefixes.clear();
        *self.store_baseline.lock().unwrap_or_else(PoisonError::into_inner) = self.store.stats();
    }

    /// Returns the store's figures, of which those that memcached resets count from the last reset.
    pub fn store_stats(&self) -> Stats {
        let mut stats = self.store.stats();
        let before = self.store_baseline.lock().unwrap_or_else(PoisonError::into_inner);
        stats.evictions -= before.evictions;
        stats.evicted_unread -= before.evicted_unread;
        stats.reclaimed -= before.reclaimed;
        stats.expired_unread -= before.expired_unread;
        stats.found_expired -= before.found_expired;
        stats.found_flushed -= before.found_flushed;
        stats
    }

    /// Notes that a large value has to wait for others on their way in.
    pub fn note_crowd(&self) {
        self.crowded_ms.store(self.started.elapsed().as_millis() as u64, Relaxed);
    }

    /// Returns whether a large value had to wait in the last second.
    pub fn is_crowded(&self) -> bool {
        let at = self.crowded_ms.load(Relaxed);
        at > 0 && self.started.elapsed().as_millis() as u64 <= at + 1000
    }

    /// Returns whether lines of verbosity `level` are logged.
    pub fn logs(&self, level: u8) -> bool {
        self.verbosity.load(Relaxed) >= level
    }
}
