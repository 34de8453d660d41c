//! The items that leave RAM, for those who watch: a queue with a bound, which the store's caller empties.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::{Expiry, Seconds};
use crate::record::{FETCHED, RecordHeader};

/// The most items that wait to be taken. With the longest keys they take less than 100 KiB.
const DEPARTED_MAX: usize = 256;

/// An item that has left RAM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departed {
    /// Its key.
    pub key: Box<[u8]>,
    /// The length of its value, in bytes.
    pub value_len: u32,
    /// When it expires.
    pub expiry: Expiry,
    /// When it was last read or stored.
    pub accessed: Seconds,
    /// Whether it had been read since it was stored.
    pub fetched: bool,
    /// Whether it was written to the SSD, rather than dropped.
    pub on_ssd: bool,
}

/// The queue. While nobody watches, an item that leaves costs a load.
#[derive(Default)]
pub(crate) struct Departures {
    is_on: AtomicBool,
    queue: Mutex<Vec<Departed>>,
    missed: AtomicU64,
}

impl Departures {
    fn lock(&self) -> MutexGuard<'_, Vec<Departed>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts or stops the noting. What is queued is forgotten at a stop.
    pub(crate) fn turn(&self, on: bool) {
        if self.is_on.swap(on, Relaxed) && !on {
            *self.lock() = Vec::new();
        }
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// Notes an item. It is counted instead while the queue is full.
    #[cold]
    pub(crate) fn note(&self, header: &RecordHeader, key: &[u8], on_ssd: bool) {
        let mut queue = self.lock();
        if queue.len() >= DEPARTED_MAX {
            self.missed.fetch_add(1, Relaxed);
            return;
        }
        queue.push(Departed {
            key: key.into(),
            value_len: header.value_len,
            expiry: Expiry::from_raw(header.expires),
            accessed: Seconds(header.accessed),
            fetched: header.item_flags & FETCHED != 0,
            on_ssd,
        });
    }

    /// Takes the items noted since the last call, and the number of those that found the queue full.
    pub(crate) fn take(&self) -> (Vec<Departed>, u64) {
        (std::mem::take(&mut *self.lock()), self.missed.swap(0, Relaxed))
    }
}
