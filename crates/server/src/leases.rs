//! Leases: which keys are held by caches of clients that want to be told of the next change. A connection subscribes;
//! others lease keys to its number; a change of a leased key takes the lease back and is announced.
//!
//! ```text
//!   mg k v A<number>:<token> --> lease, then read the item        (any connection)
//!   set, delete, ... of k    --> change the item, then take its leases back
//!                                  --> queue of the subscription --> wake its worker --> IN <token>
//! ```
//! The lease is noted before the item is read, and a change looks for leases after it took effect. So a value that is
//! older than a change is either not read any more, or its lease is found.
//!
//! Everything is bounded. A full table takes a lease back by announcing it, and a queue that overflows becomes one
//! announcement that everything has changed. Both cost a client a read, and are never wrong.

mod subscription;
mod table;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::mail::Mail;

pub use subscription::{Changes, Subscription};
use subscription::{QUEUE_BYTES_MAX, Registry};
use table::{LEASE_BYTES, Leased, Table};

/// Tables, each behind a lock of its own.
const TABLES: usize = 64;
/// The most subscriptions: their places are numbered by this many bits less one.
const SUBSCRIPTIONS_MAX: u64 = 1 << subscription::PLACE_BITS;

/// All subscriptions and their leases.
pub struct Leases {
    /// Open subscriptions. While there is none, a change costs a load of this word.
    open: AtomicU32,
    registry: RwLock<Registry>,
    tables: Vec<Mutex<Table>>,
    /// Connections that have announcements to send.
    mail: Mail,
    announced: AtomicU64,
    displaced: AtomicU64,
}

/// Counts of leases and announcements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseStats {
    /// Open subscriptions.
    pub subscriptions: u64,
    /// Leases that are held, including those of subscriptions that have ended and are not swept yet.
    pub leases: u64,
    /// The most leases at a time.
    pub leases_max: u64,
    /// Leases that were announced, because their keys changed or others took their places.
    pub announced: u64,
    /// Leases that were announced because others took their places.
    pub displaced: u64,
}

fn guard<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Leases {
    /// Returns leases that take at most `bytes` of memory, for connections of so many workers. With 0 bytes there are
    /// no subscriptions.
    pub fn new(bytes: u64, workers: usize) -> Leases {
        let for_queues = bytes / 4;
        let subscriptions = (for_queues / QUEUE_BYTES_MAX as u64).min(SUBSCRIPTIONS_MAX);
        let capacity = (bytes - for_queues) / (LEASE_BYTES * TABLES) as u64;
        Leases {
            open: AtomicU32::new(0),
            registry: RwLock::new(Registry::new(subscriptions as usize)),
            tables: (0..TABLES).map(|_| Mutex::new(Table::new(capacity as usize))).collect(),
            mail: Mail::new(workers),
            announced: AtomicU64::new(0),
            displaced: AtomicU64::new(0),
        }
    }

    /// Returns whether there is a subscription, so that changes have to be looked up. A change that has taken effect
    /// sees every subscription to which its key was leased before: the lock of the key's shard lies in between.
    #[inline]
    pub fn are_used(&self) -> bool {
        self.open.load(Relaxed) > 0
    }

    fn table(&self, hash: u64) -> MutexGuard<'_, Table> {
        guard(&self.tables[(hash >> 58) as usize % TABLES])
    }

    /// Begins a subscription for a connection of a worker. Its number is known to nobody else: `random` are its
    /// upper bits. Returns `None` if there are as many as there may be.
    pub fn subscribe(&self, worker: usize, connection: u64, random: u64) -> Option<Arc<Subscription>> {
        let mut registry = self.registry.write().unwrap_or_else(PoisonError::into_inner);
        let subscription = registry.add(worker, connection, random)?;
        self.open.fetch_add(1, Relaxed);
        Some(subscription)
    }

    /// Ends a subscription. Its leases are forgotten.
    pub fn unsubscribe(&self, subscription: &Subscription) {
        let mut registry = self.registry.write().unwrap_or_else(PoisonError::into_inner);
        if registry.remove(subscription) && self.open.fetch_sub(1, Relaxed) == 1 {
            // No lease can be added meanwhile: that takes the registry's lock, too.
            self.tables.iter().for_each(|table| guard(table).clear());
        }
    }

    /// Leases a key to a subscription, before the key is read. Returns false if there is no such subscription. `wake`
    /// wakes a worker.
    pub fn lease(&self, hash: u64, number: u64, token: u64, wake: impl Fn(usize)) -> bool {
        let registry = self.registry.read().unwrap_or_else(PoisonError::into_inner);
        let Some(subscription) = registry.by_number(number) else { return false };
        let displaced = self.table(hash).insert(Leased { hash, token, tag: subscription.tag() });
        if let Some(displaced) = displaced
            && self.tell(&registry, &displaced, &wake)
        {
            self.displaced.fetch_add(1, Relaxed);
        }
        true
    }

    /// Takes back the leases of a key that has changed, and announces it.
    pub fn changed(&self, hash: u64, wake: impl Fn(usize)) {
        let taken = self.table(hash).take(hash);
        if taken.is_empty() {
            return;
        }
        let registry = self.registry.read().unwrap_or_else(PoisonError::into_inner);
        taken.iter().for_each(|lease| {
            self.tell(&registry, lease, &wake);
        });
    }

    /// Takes back all leases, and announces that every key may have changed.
    pub fn all_changed(&self, wake: impl Fn(usize)) {
        let mut registry = self.registry.write().unwrap_or_else(PoisonError::into_inner);
        for subscription in registry.forget_leases() {
            if subscription.queue_all() {
                self.send_mail(&subscription, &wake);
            }
        }
    }

    /// Queues an announcement, unless the subscription has ended. Returns whether it did.
    fn tell(&self, registry: &Registry, lease: &Leased, wake: &impl Fn(usize)) -> bool {
        let Some(subscription) = registry.by_tag(lease.tag) else { return false };
        self.announced.fetch_add(1, Relaxed);
        if subscription.queue(lease.token) {
            self.send_mail(subscription, wake);
        }
        true
    }

    fn send_mail(&self, subscription: &Subscription, wake: &impl Fn(usize)) {
        self.mail.put(subscription.worker(), subscription.connection());
        wake(subscription.worker());
    }

    /// Takes the connections of a worker that have announcements to send.
    pub fn take_mail(&self, worker: usize) -> Vec<u64> {
        if self.are_used() { self.mail.take(worker) } else { Vec::new() }
    }

    /// Returns the counts.
    pub fn stats(&self) -> LeaseStats {
        let tables = self.tables.iter().map(|table| guard(table).counts());
        let (leases, leases_max) = tables.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        LeaseStats {
            subscriptions: self.open.load(Relaxed).into(),
            leases,
            leases_max,
            announced: self.announced.load(Relaxed),
            displaced: self.displaced.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn asleep(_: usize) {}

    fn tokens(subscription: &Subscription) -> Vec<u64> {
        match subscription.take(usize::MAX) {
            Changes::Tokens(tokens) => tokens,
            Changes::All => panic!("everything has changed"),
        }
    }

    #[test]
    fn a_change_is_announced_once_to_each_subscription_that_leased_the_key() {
        let leases = Leases::new(MIB, 2);
        let [one, other] = [0, 1].map(|worker| leases.subscribe(worker, 7, 99 << 20).expect("there is room"));
        assert!(leases.lease(5, one.number(), 50, asleep) && leases.lease(5, one.number(), 50, asleep));
        assert!(leases.lease(5, other.number(), 51, asleep) && leases.lease(6, other.number(), 60, asleep));
        let woken = Mutex::new(Vec::new());
        leases.changed(5, |worker| guard(&woken).push(worker));
        leases.changed(5, asleep);
        let mut woken = woken.into_inner().expect("no panic");
        woken.sort_unstable();
        assert_eq!(woken, [0, 1]);
        assert_eq!((leases.take_mail(0), leases.take_mail(1)), (vec![7], vec![7]));
        assert_eq!((tokens(&one), tokens(&other)), (vec![50], vec![51]));
        leases.changed(6, asleep);
        assert_eq!((tokens(&one), tokens(&other)), (vec![], vec![60]));
        assert_eq!(leases.stats().announced, 3);
    }

    #[test]
    fn nothing_is_leased_to_a_number_that_is_no_subscription() {
        let leases = Leases::new(MIB, 1);
        assert!(!leases.lease(5, 1, 2, asleep) && !leases.are_used());
        let one = leases.subscribe(0, 7, 99 << 20).expect("there is room");
        assert!(!leases.lease(5, one.number() ^ 1 << 40, 2, asleep), "the upper bits count");
        leases.unsubscribe(&one);
        assert!(!leases.lease(5, one.number(), 2, asleep) && !leases.are_used());
        let next = leases.subscribe(0, 7, 98 << 20).expect("there is room");
        assert_ne!(next.number(), one.number());
        leases.changed(5, asleep);
        assert_eq!((tokens(&next), leases.stats().leases), (vec![], 0));
    }

    #[test]
    fn leases_of_a_subscription_that_has_ended_are_not_announced_to_its_successor() {
        let leases = Leases::new(MIB, 1);
        let stays = leases.subscribe(0, 1, 1 << 20).expect("there is room");
        let ends = leases.subscribe(0, 2, 2 << 20).expect("there is room");
        assert!(leases.lease(5, ends.number(), 50, asleep));
        leases.unsubscribe(&ends);
        let next = leases.subscribe(0, 3, 3 << 20).expect("there is room");
        leases.changed(5, asleep);
        assert_eq!((tokens(&next), tokens(&stays)), (vec![], vec![]));
    }

    #[test]
    fn a_full_table_announces_the_lease_whose_place_it_takes() {
        let leases = Leases::new(MIB, 1);
        let one = leases.subscribe(0, 7, 99 << 20).expect("there is room");
        let most = leases.stats().leases_max;
        // The upper bits choose the table.
        for hash in 0..most {
            assert!(leases.lease(hash << 58 | hash, one.number(), hash, asleep));
        }
        let stats = leases.stats();
        assert!(stats.leases <= most && stats.displaced == most - stats.leases, "{stats:?}");
        for hash in most..most * 3 {
            assert!(leases.lease(hash << 58 | hash, one.number(), hash, asleep));
        }
        let stats = leases.stats();
        assert_eq!(stats.leases, most);
        assert_eq!(stats.displaced, most * 2);
        // Every lease was either announced or is still there.
        assert!(matches!(one.take(usize::MAX), Changes::All), "so many overflow the queue");
        (0..most * 3).for_each(|hash| leases.changed(hash << 58 | hash, asleep));
        assert_eq!((leases.stats().announced, leases.stats().leases), (most * 3, 0));
    }

    #[test]
    fn a_queue_that_overflows_announces_that_everything_has_changed() {
        let leases = Leases::new(16 * MIB, 1);
        let one = leases.subscribe(0, 7, 99 << 20).expect("there is room");
        let most = (QUEUE_BYTES_MAX / size_of::<u64>()) as u64;
        for hash in 0..=most {
            assert!(leases.lease(hash, one.number(), hash, asleep));
        }
        (0..most).for_each(|hash| leases.changed(hash, asleep));
        assert_eq!(leases.take_mail(0), [7], "one wake for all of them");
        assert_eq!(tokens(&one).len() as u64, most);
        (0..most).for_each(|hash| assert!(leases.lease(hash, one.number(), hash, asleep)));
        (0..=most).for_each(|hash| leases.changed(hash, asleep));
        assert!(matches!(one.take(usize::MAX), Changes::All));
        assert!(tokens(&one).is_empty());
        assert!(leases.lease(5, one.number(), 50, asleep));
        leases.changed(5, asleep);
        assert_eq!(tokens(&one), [50], "and it goes on as before");
    }

    #[test]
    fn a_flush_takes_all_leases_back() {
        let leases = Leases::new(MIB, 1);
        let one = leases.subscribe(0, 7, 99 << 20).expect("there is room");
        assert!(leases.lease(5, one.number(), 50, asleep));
        leases.all_changed(asleep);
        assert_eq!(leases.take_mail(0), [7]);
        assert!(matches!(one.take(usize::MAX), Changes::All));
        leases.changed(5, asleep);
        assert!(tokens(&one).is_empty());
        assert!(leases.lease(5, one.number(), 50, asleep), "the number stays");
        leases.changed(5, asleep);
        assert_eq!(tokens(&one), [50]);
    }

    #[test]
    fn the_number_of_subscriptions_is_bounded() {
        for (bytes, most) in [(0, 0), (MIB, 8), (16 * MIB, 128), (1 << 40, SUBSCRIPTIONS_MAX)] {
            let leases = Leases::new(bytes, 1);
            let all: Vec<_> = (0..=most).map_while(|_| leases.subscribe(0, 7, 99 << 20)).collect();
            assert_eq!(all.len() as u64, most);
        }
    }
}
