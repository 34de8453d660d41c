//! The state that all workers share: the store, the clock, the configuration, the counts of connections and their
//! memory.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use larder_store::{KeyHash, Seconds, Stats, Store};

use crate::auth::Auth;
use crate::budget::Budget;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::config::Config;
use crate::counters::{Counters, Totals};
use crate::curves::Curves;
use crate::latency::{AllTimes, Latencies};
use crate::leases::Leases;
use crate::prefixes::Prefixes;
use crate::roster::Roster;
use crate::tls::Tls;
use crate::watchers::{Departure, WatchClasses, WatchEvent, WatchStats, WatchedItem, Watchers};
use crate::write_rate::WriteRate;

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
    /// The certificates, if connections speak TLS.
    pub tls: Option<Tls>,
    /// The servers that share the keys, if clients are told of them.
    pub cluster: Option<Cluster>,
    /// One set a worker.
    pub counters: Vec<Counters>,
    /// The times that each worker measures.
    pub latencies: Vec<Latencies>,
    /// What caches of other sizes would miss.
    pub curves: Curves,
    /// The time when the daemon started.
    pub started: Instant,
    /// The verbosity of the log; the command `verbosity` changes it.
    pub verbosity: AtomicU8,
    /// Open connections.
    pub connections: AtomicU32,
    /// The bound on the memory held for peers.
    pub budget: Budget,
    /// Keys whose changes are announced to subscribed connections.
    pub leases: Arc<Leases>,
    /// Connections that watch what happens.
    pub watchers: Arc<Watchers>,
    /// The lists of connections.
    pub roster: Roster,
    /// Commands by their keys' prefixes.
    pub prefixes: Prefixes,
    /// The last time that a large value had to wait for memory that others on their way in have been promised: in
    /// milliseconds since the start, 0 for never.
    crowded_ms: AtomicU64,
    /// Whether a listing of keys runs.
    pub is_listing: Arc<AtomicBool>,
    /// Whether `stats sizes` counts items by size.
    pub counts_sizes: AtomicBool,
    /// Whether connections are taken.
    pub accepting: AtomicBool,
    /// SSD reads under way in all workers: while there are any, writes take turns.
    pub reads_in_flight: AtomicUsize,
    /// Bytes written to each SSD path over its life.
    pub lifetime_written: Vec<AtomicU64>,
    /// How fast the SSD was written to lately.
    pub write_rate: WriteRate,
    /// Set once to make every worker drain and stop.
    pub stopping: AtomicBool,
    /// The TCP port in use, when there is one.
    pub tcp_port: AtomicU32,
    /// The interface to the SSD: `uring`, `threads` or `none`.
    pub io: &'static str,
    /// Wakes each worker, by its number.
    wakers: OnceLock<Vec<OwnedFd>>,
    /// Wakes the thread that waits for the daemon's stop.
    stop: (Mutex<()>, Condvar),
    /// Counters at the last `stats reset`.
    baseline: Mutex<Totals>,
    store_baseline: Mutex<Stats>,
    watch_baseline: Mutex<WatchStats>,
}

impl Shared {
    /// Returns the state of a daemon that starts.
    pub fn new(store: Store, clock: Clock, config: Config, io: &'static str) -> Self {
        Shared {
            store,
            clock,
            auth: config.auth_file.as_deref().map(Auth::new),
            tls: None,
            cluster: None,
            counters: (0..config.threads).map(|_| Counters::default()).collect(),
            latencies: (0..config.threads).map(|_| Latencies::default()).collect(),
            curves: Curves::default(),
            started: Instant::now(),
            verbosity: AtomicU8::new(config.verbosity),
            connections: AtomicU32::new(0),
            budget: Budget::new(config.conn_memory_bytes),
            leases: Arc::new(Leases::new(config.lease_memory_bytes, config.threads)),
            watchers: Arc::new(Watchers::new(config.watcher_queue_bytes, config.threads)),
            roster: Roster::new(config.threads),
            prefixes: Prefixes::new(config.prefix_delimiter, config.stats_detail),
            crowded_ms: AtomicU64::new(0),
            is_listing: Arc::default(),
            counts_sizes: AtomicBool::new(config.track_sizes),
            accepting: AtomicBool::new(true),
            reads_in_flight: AtomicUsize::new(0),
            lifetime_written: config.ssd.iter().map(|_| AtomicU64::new(0)).collect(),
            write_rate: WriteRate::new(Instant::now()),
            stopping: AtomicBool::new(false),
            tcp_port: AtomicU32::new(0),
            io,
            wakers: OnceLock::new(),
            stop: Default::default(),
            baseline: Mutex::new(Totals::default()),
            store_baseline: Mutex::new(Stats::default()),
            watch_baseline: Mutex::default(),
            config,
        }
    }

    /// Gives it the event descriptors that wake the workers, in the workers' order. Only the first call counts.
    pub fn set_wakers(&self, wakers: Vec<OwnedFd>) {
        let _ = self.wakers.set(wakers);
    }

    /// Wakes a worker, so that it takes its mail.
    fn wake(&self, worker: usize) {
        if let Some(waker) = self.wakers.get().and_then(|wakers| wakers.get(worker)) {
            let _ = rustix::io::write(waker, &1_u64.to_ne_bytes());
        }
    }

    /// Asks all workers for lists of their connections. Returns the number of the request; None if no worker runs.
    pub fn ask_for_sockets(&self) -> Option<u64> {
        let workers = self.wakers.get()?.len();
        let number = self.roster.ask();
        (0..workers).for_each(|worker| self.wake(worker));
        Some(number)
    }

    /// Leases a key that is about to be read to the subscription with a number. Returns whether the next change of
    /// its item will be announced. While a flush is pending, none would be.
    pub fn lease(&self, hash: KeyHash, subscription: u64, token: u64, now: Seconds) -> bool {
        !self.store.flush_is_pending(now)
            && self.leases.lease(hash.bits(), subscription, token, |worker| self.wake(worker))
    }

    /// Announces that the item of a key has changed. The change must have taken effect.
    #[inline]
    pub fn note_change(&self, hash: KeyHash) {
        if self.leases.are_used() {
            self.leases.changed(hash.bits(), |worker| self.wake(worker));
        }
    }

    /// Announces that every item may have changed, or will at a time that is known now.
    pub fn note_change_of_all(&self) {
        self.leases.all_changed(|worker| self.wake(worker));
    }

    /// Shows an event to the connections that watch its class.
    #[cold]
    pub fn show(&self, class: WatchClasses, event: &WatchEvent<'_>) {
        let unix = Duration::from_nanos(self.clock.unix_ns());
        self.watchers.show(class, unix, event, |worker| self.wake(worker));
    }

    /// Shows the items that have left RAM since the last call, if that is watched.
    #[inline]
    pub fn show_departed(&self, now: Seconds) {
        if self.watchers.watch(WatchClasses::EVICTIONS) {
            self.take_and_show_departed(now);
        }
    }

    #[cold]
    fn take_and_show_departed(&self, now: Seconds) {
        let (departed, missed) = self.store.take_departed();
        self.watchers.count_dropped(missed);
        for item in departed {
            let event = WatchEvent::Leave {
                key: &item.key,
                to: if item.on_ssd { Departure::Written } else { Departure::Evicted },
                fetched: item.fetched,
                ttl_s: item.expiry.seconds_left(now),
                idle_s: now.0.saturating_sub(item.accessed.0),
                item: WatchedItem { class: 1, value_len: item.value_len },
            };
            self.show(WatchClasses::EVICTIONS, &event);
        }
    }

    /// Tells every worker to drain its connections and stop.
    pub fn stop(&self) {
        let guard = self.stop.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.stopping.store(true, Relaxed);
        drop(guard);
        self.stop.1.notify_all();
        (0..self.config.threads).for_each(|worker| self.wake(worker));
    }

    /// Waits until the daemon is told to stop.
    pub fn wait_for_stop(&self) {
        let guard = self.stop.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.stop.1.wait_while(guard, |()| !self.stopping.load(Relaxed)));
    }

    /// Waits until the daemon is told to stop, but no longer than a time. Returns whether it is.
    pub fn wait_for_stop_within(&self, time: Duration) -> bool {
        let guard = self.stop.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.stop.1.wait_timeout_while(guard, time, |()| !self.stopping.load(Relaxed)));
        self.stopping.load(Relaxed)
    }

    /// Notes that bytes were written to an SSD path, by its number.
    pub fn note_written(&self, device: usize, bytes: u64) {
        if let Some(written) = self.lifetime_written.get(device) {
            written.fetch_add(bytes, Relaxed);
        }
    }

    /// Returns the counts of all workers since the daemon started.
    pub fn lifetime(&self) -> Totals {
        let mut totals = Totals::default();
        self.counters.iter().for_each(|counters| counters.add_to(&mut totals));
        totals
    }

    /// Returns the times of all workers since the daemon started.
    pub fn times(&self) -> AllTimes {
        let mut all = AllTimes::default();
        self.latencies.iter().for_each(|latencies| latencies.add_to(&mut all));
        all
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
        *self.watch_baseline.lock().unwrap_or_else(PoisonError::into_inner) = self.watchers.stats();
    }

    /// Returns the counts of watchers since the last reset.
    pub fn watch_stats(&self) -> WatchStats {
        self.watchers.stats().since(&self.watch_baseline.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the store's figures, of which those that memcached resets count from the last reset.
    pub fn store_stats(&self) -> Stats {
        self.since_reset(self.store.stats())
    }

    /// Returns the store's figures, given those since its opening, of which those that memcached resets count from
    /// the last reset.
    pub fn since_reset(&self, mut stats: Stats) -> Stats {
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
