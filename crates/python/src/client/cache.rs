//! The Rust client with or without shared memory in front of it: one set of calls for both.

use larder_client::{Cached, Client, Fetch, Fetched, Item, Put, Result, Tiered};

/// Where a client reads and writes.
#[derive(Debug)]
pub struct Cache {
    /// The client of the servers.
    pub client: Client,
    /// The same with shared memory in front of it.
    pub near: Option<Tiered>,
}

/// A value that was found.
#[derive(Debug)]
pub struct Found {
    /// The value.
    pub value: Vec<u8>,
    /// Its client flags.
    pub flags: u32,
    /// Its cas unique, if it was asked for.
    pub cas: Option<u64>,
}

impl Found {
    /// Returns what an item has; none of the empty one that stands for a value which another client creates.
    pub fn of(item: Item) -> Option<Found> {
        let is_being_created = item.value.is_empty() && item.lease.is_taken && !item.lease.is_mine;
        let Item { value, flags, cas, .. } = item;
        (!is_being_created).then_some(Found { value, flags, cas })
    }
}

impl From<Cached> for Found {
    fn from(cached: Cached) -> Found {
        Found { value: cached.value, flags: cached.flags, cas: None }
    }
}

/// A value to store under a key, with its client flags.
type Stored<'v> = (u32, (&'v [u8], &'v [u8]));

impl Cache {
    /// Returns the value of a key.
    ///
    /// # Errors
    /// See [`larder_client::Error`]; so for all calls here.
    pub fn get(&self, key: &[u8]) -> Result<Option<Found>> {
        match &self.near {
            Some(near) => Ok(near.get(key)?.map(Found::from)),
            None => Ok(self.client.get(key)?.and_then(Found::of)),
        }
    }

    /// Returns the values of many keys, in order; with their cas uniques always from the servers.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K], with_cas: bool) -> Vec<Result<Option<Found>>> {
        match &self.near {
            Some(near) if !with_cas => each(near.get_many(keys), |found| found.map(Found::from)),
            _ if with_cas => each(self.client.gets_many(keys), |item| item.and_then(Found::of)),
            _ => each(self.client.get_many(keys), |item| item.and_then(Found::of)),
        }
    }

    /// Returns the seconds that an item has left to live; -1 for ever.
    pub fn ttl(&self, key: &[u8]) -> Result<Option<i64>> {
        let fetch = Fetch { no_bump: true, ..Fetch::default() };
        Ok(match self.client.fetch(key, &fetch)? {
            Fetched::Found(item) | Fetched::Unchanged(item) => item.ttl_s,
            Fetched::Miss => None,
        })
    }

    /// Stores a value.
    pub fn set(&self, key: &[u8], value: &[u8], put: Put) -> Result<bool> {
        match &self.near {
            Some(near) => near.set(key, value, put)?,
            None => drop(self.client.set(key, value, put)?),
        }
        Ok(true)
    }

    /// Changes an item in another way; shared memory forgets it.
    pub fn change<T>(&self, key: &[u8], change: impl FnOnce(&Client) -> Result<T>) -> Result<T> {
        match &self.near {
            Some(near) => near.change(key, change),
            None => change(&self.client),
        }
    }

    /// Stores many values, each with its flags, and returns what became of them, in order. Values with the same flags
    /// are sent together.
    pub fn set_many(&self, items: &[Stored<'_>], exptime: i32, is_quiet: bool) -> Vec<Result<()>> {
        let mut results: Vec<Result<()>> = items.iter().map(|_| Ok(())).collect();
        let mut places: Vec<usize> = (0..items.len()).collect();
        places.sort_by_key(|place| items[*place].0);
        for places in places.chunk_by(|one, other| items[*one].0 == items[*other].0) {
            let put = Put { flags: items[places[0]].0, exptime };
            let batch: Vec<_> = places.iter().map(|place| items[*place].1).collect();
            let stored = match &self.near {
                Some(near) => near.set_many(&batch, put),
                None if is_quiet => self.client.quiet().set_many(&batch, put),
                None => each(self.client.set_many(&batch, put), drop),
            };
            places.iter().zip(stored).for_each(|(place, stored)| results[*place] = stored);
        }
        results
    }

    /// Removes many items, and returns what became of each, in order.
    pub fn delete_many<K: AsRef<[u8]>>(&self, keys: &[K], is_quiet: bool) -> Vec<Result<()>> {
        match &self.near {
            Some(near) => each(near.delete_many(keys), drop),
            None if is_quiet => self.client.quiet().delete_many(keys),
            None => each(self.client.delete_many(keys), drop),
        }
    }

    /// Invalidates all items of all servers after so many seconds; shared memory forgets all at once.
    pub fn flush_all(&self, delay_s: u32) -> Vec<Result<()>> {
        let clear = || self.near.iter().for_each(|near| near.l1().clear());
        clear();
        let flushed = self.client.flush_all(delay_s);
        clear();
        flushed
    }
}

fn each<T, U>(results: Vec<Result<T>>, of: impl Fn(T) -> U) -> Vec<Result<U>> {
    results.into_iter().map(|result| result.map(&of)).collect()
}
