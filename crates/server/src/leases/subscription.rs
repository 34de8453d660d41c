//! A connection that is told of changes, and the numbers by which it is found.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use super::guard;

/// Bits of a place among the subscriptions.
pub(super) const PLACE_BITS: u32 = 10;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;
/// The most bytes that the announcements of a subscription take while its peer does not read.
pub(super) const QUEUE_BYTES_MAX: usize = 32 << 10;
const QUEUE_TOKENS_MAX: usize = QUEUE_BYTES_MAX / size_of::<u64>();

/// Changes to be announced.
#[derive(Debug, PartialEq, Eq)]
pub enum Changes {
    /// The keys that were leased with these tokens.
    Tokens(Vec<u64>),
    /// Every key that was leased.
    All,
}

/// One subscription.
#[derive(Debug)]
pub struct Subscription {
    number: u64,
    /// Its mark on leases: the place, and a count that changes when its leases are forgotten.
    tag: AtomicU32,
    worker: usize,
    connection: u64,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    tokens: Vec<u64>,
    all: bool,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.tokens.is_empty() && !self.all
    }
}

impl Subscription {
    /// Returns the number that clients know.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the worker that has the connection.
    pub(super) fn worker(&self) -> usize {
        self.worker
    }

    /// Returns the connection's token in its worker.
    pub(super) fn connection(&self) -> u64 {
        self.connection
    }

    pub(super) fn tag(&self) -> u32 {
        self.tag.load(Relaxed)
    }

    /// Queues the announcement of one key. Returns whether the queue was empty, so that the worker has to be woken.
    pub(super) fn queue(&self, token: u64) -> bool {
        let mut queue = guard(&self.queue);
        let was_empty = queue.is_empty();
        if queue.tokens.len() >= QUEUE_TOKENS_MAX {
            *queue = Queue { tokens: Vec::new(), all: true };
        } else if !queue.all {
            queue.tokens.push(token);
        }
        was_empty
    }

    /// Queues the announcement that every key may have changed. Returns whether the queue was empty.
    pub(super) fn queue_all(&self) -> bool {
        let mut queue = guard(&self.queue);
        let was_empty = queue.is_empty();
        *queue = Queue { tokens: Vec::new(), all: true };
        was_empty
    }

    /// Takes what is to be announced: at most so many tokens, the oldest first.
    pub fn take(&self, tokens_max: usize) -> Changes {
        let mut queue = guard(&self.queue);
        if std::mem::take(&mut queue.all) {
            return Changes::All;
        }
        if queue.tokens.len() <= tokens_max {
            return Changes::Tokens(std::mem::take(&mut queue.tokens));
        }
        Changes::Tokens(queue.tokens.drain(..tokens_max).collect())
    }
}

/// The subscriptions by their places.
pub(super) struct Registry {
    places: Vec<Option<Arc<Subscription>>>,
    /// How often the leases of each place were forgotten.
    counts: Vec<u32>,
}

impl Registry {
    pub(super) fn new(places: usize) -> Registry {
        Registry { places: vec![None; places], counts: vec![0; places] }
    }

    /// Returns a tag that no lease has yet: 22 bits of the count, so one that comes again is four million forgotten
    /// subscriptions old. A lease that old would be announced to another subscription, which ignores its token.
    fn next_tag(&mut self, place: usize) -> u32 {
        let count = &mut self.counts[place];
        *count = count.wrapping_add(1);
        *count << PLACE_BITS | place as u32
    }

    pub(super) fn add(&mut self, worker: usize, connection: u64, random: u64) -> Option<Arc<Subscription>> {
        let place = self.places.iter().position(Option::is_none)?;
        let subscription = Arc::new(Subscription {
            number: random & !PLACE_MASK | place as u64,
            tag: AtomicU32::new(self.next_tag(place)),
            worker,
            connection,
            queue: Mutex::default(),
        });
        self.places[place] = Some(subscription.clone());
        Some(subscription)
    }

    /// Returns whether it was there.
    pub(super) fn remove(&mut self, subscription: &Subscription) -> bool {
        let place = (subscription.number & PLACE_MASK) as usize;
        let is_there = self.by_number(subscription.number).is_some();
        if is_there {
            self.places[place] = None;
        }
        is_there
    }

    pub(super) fn by_number(&self, number: u64) -> Option<&Subscription> {
        let place = self.places.get((number & PLACE_MASK) as usize)?.as_deref()?;
        (place.number == number).then_some(place)
    }

    pub(super) fn by_tag(&self, tag: u32) -> Option<&Subscription> {
        let place = self.places.get((u64::from(tag) & PLACE_MASK) as usize)?.as_deref()?;
        (place.tag() == tag).then_some(place)
    }

    /// Forgets the leases of all subscriptions, and returns these.
    pub(super) fn forget_leases(&mut self) -> Vec<Arc<Subscription>> {
        let all: Vec<_> = self.places.iter().flatten().cloned().collect();
        for subscription in &all {
            let tag = self.next_tag((subscription.number & PLACE_MASK) as usize);
            subscription.tag.store(tag, Relaxed);
        }
        all
    }
}
