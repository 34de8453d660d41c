//! A counter in this process, in a table of its own with a time to live, under one lock: what ActiveSupport's
//! MemoryStore is to an application that has one process.

use super::{Error, Failure, KEY, Store, Worker};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An increment.
pub const STATEMENT: &str = "lock; value = table[key] + 1, or 1 if there is none or its time is over; unlock";
/// The removal of the counter.
pub const RESET: &str = "lock; remove table[key]; unlock";

const TIME_TO_LIVE: Duration = Duration::from_secs(86_400);

/// A value and when it ends.
#[derive(Clone, Copy)]
struct Item {
    value: u64,
    ends: Instant,
}

/// The table. Its clones share it.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<HashMap<String, Item>>>);

impl Memory {
    fn table(&self) -> MutexGuard<'_, HashMap<String, Item>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn found(table: &HashMap<String, Item>, now: Instant) -> Option<Item> {
        table.get(KEY).copied().filter(|item| item.ends > now)
    }
}

impl Store for Memory {
    fn version(&self) -> Result<String, Error> {
        Ok("a table in this process".into())
    }

    fn prepare(&self) -> Result<(), Error> {
        Ok(())
    }

    fn reset(&self) -> Result<(), Error> {
        self.table().remove(KEY);
        Ok(())
    }

    fn connect(&self) -> Result<Box<dyn Worker>, Error> {
        Ok(Box::new(self.clone()))
    }

    fn read(&self) -> Result<u64, Error> {
        Ok(Self::found(&self.table(), Instant::now()).map_or(0, |item| item.value))
    }
}

impl Worker for Memory {
    fn increment(&mut self) -> Result<u64, Failure> {
        let mut table = self.table();
        let now = Instant::now();
        let before = Self::found(&table, now);
        let value = before.map_or(0, |item| item.value) + 1;
        let ends = before.map_or(now + TIME_TO_LIVE, |item| item.ends);
        table.insert(KEY.to_string(), Item { value, ends });
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_the_counter_until_it_is_reset() {
        let store = Memory::default();
        let mut workers = [store.connect(), store.connect()].map(|worker| worker.expect("it is here"));
        let counts = [0, 1, 0].map(|at: usize| workers[at].increment().expect("it cannot fail"));
        assert_eq!((counts, store.read()), ([1, 2, 3], Ok(3)));
        store.reset().expect("it cannot fail");
        assert_eq!((store.read(), workers[1].increment()), (Ok(0), Ok(1)));
    }

    #[test]
    fn a_counter_whose_time_is_over_begins_again() {
        let store = Memory::default();
        let mut worker = store.connect().expect("it is here");
        store.table().insert(KEY.to_string(), Item { value: 7, ends: Instant::now() });
        assert_eq!((store.read(), worker.increment()), (Ok(0), Ok(1)));
    }
}
