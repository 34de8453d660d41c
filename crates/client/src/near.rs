//! A memcached on the host in front of the servers, in place of shared memory: for hosts whose programs already share
//! one.

use std::time::{Duration, Instant};

use crate::client::{Client, Fetch, Fetched, Item, Put, RELATIVE_MAX_S};
use crate::error::Result;
use crate::tiered::{Cached, Source};

/// Pauses between two looks at a value that another client fetches.
const PAUSE_MIN: Duration = Duration::from_millis(2);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// How long an entry of the near server is used. A memcached counts whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NearOptions {
    /// A value is used for so many seconds without asking its server; at least 1, the default.
    pub fresh_s: u32,
    /// For so many seconds behind that, a value is used while one client renews it, or while its server does not
    /// answer. At least 1; 10 by default.
    pub stale_s: u32,
    /// The longest that a read waits for another client that fetches the same key, and in whole seconds the longest
    /// that this one may take. 1 s by default.
    pub wait: Duration,
}

impl Default for NearOptions {
    fn default() -> Self {
        NearOptions { fresh_s: 1, stale_s: 10, wait: Duration::from_secs(1) }
    }
}

/// A near server in front of others. A value that a read returns was its server's at most `fresh_s` before the near
/// server was told, unless its source is [`Source::Stale`]. What this host changes is seen by all clients of its near
/// server at once, also by reads that were under way: they hold a lease of the near server, which the change ends.
///
/// Beside [`Tiered`](crate::Tiered), a near memcached cannot count less than seconds, try a renewal again that failed
/// (the old value is used to its end), compare versions with the far server (a value that is renewed is sent again), or
/// take part while it does not answer. Then reads go to the far server, and a change reaches other clients of this host
/// only once their entries are no longer fresh.
#[derive(Clone, Debug)]
pub struct Near {
    near: Client,
    far: Client,
    options: NearOptions,
}

/// What the near server said.
enum Answer {
    Is(Cached),
    /// This client has the lease to fetch the value, with this item in its place.
    Fetch(Item),
    /// Another client fetches it.
    Wait,
    /// The near server is of no use for this read.
    Nothing,
}

impl Near {
    /// Puts the servers of `near` in front of those of `far`.
    pub fn new(near: Client, far: Client, options: NearOptions) -> Near {
        Near { near, far, options }
    }

    /// Returns the key's value; `None` if there is none.
    ///
    /// # Errors
    /// The far server did not answer, and the near one has no value that may still be used.
    pub fn get(&self, key: &[u8]) -> Result<Option<Cached>> {
        let until = Instant::now() + self.options.wait;
        let mut pause = PAUSE_MIN;
        loop {
            match self.ask_near(key) {
                Answer::Is(cached) => return Ok(Some(cached)),
                Answer::Fetch(item) => return self.fetch(key, item),
                Answer::Wait if Instant::now() < until => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                Answer::Wait | Answer::Nothing => {
                    return Ok(self.far.get(key)?.map(|item| cached(item, Source::Server)));
                }
            }
        }
    }

    fn ask_near(&self, key: &[u8]) -> Answer {
        let lease_s = i32::try_from(self.options.wait.as_secs().max(1)).unwrap_or(i32::MAX);
        let stale_s = i32::try_from(self.options.stale_s.max(1)).unwrap_or(i32::MAX);
        let ask = Fetch { vivify: Some(lease_s), recache: Some(stale_s), ..Fetch::default() };
        match self.near.fetch(key, &ask) {
            Ok(Fetched::Found(item)) if item.lease.is_mine => Answer::Fetch(item),
            Ok(Fetched::Found(item)) if item.lease.is_taken && item.value.is_empty() => Answer::Wait,
            Ok(Fetched::Found(item)) => {
                let source = if item.lease.is_taken { Source::Stale } else { Source::L1 };
                Answer::Is(cached(item, source))
            }
            Ok(Fetched::Miss | Fetched::Unchanged(_)) | Err(_) => Answer::Nothing,
        }
    }

    /// Fetches the value, and stores it in place of the item that the lease is for.
    fn fetch(&self, key: &[u8], leased: Item) -> Result<Option<Cached>> {
        match self.far.fetch(key, &Fetch::default()) {
            Ok(Fetched::Found(item)) => {
                let put = Put { flags: item.flags, exptime: self.exptime(item.ttl_s) };
                if let Some(cas) = leased.cas {
                    // Where a change has ended the lease, nothing is stored.
                    let _ = self.near.cas(key, &item.value, cas, put);
                }
                Ok(Some(cached(item, Source::Server)))
            }
            Ok(Fetched::Miss | Fetched::Unchanged(_)) => {
                let _ = self.near.delete(key);
                Ok(None)
            }
            // An old value stays, and the next client to ask for it uses it, too.
            Err(_) if !leased.value.is_empty() => Ok(Some(cached(leased, Source::Stale))),
            Err(error) => {
                let _ = self.near.delete(key);
                Err(error)
            }
        }
    }

    /// Returns the expiry in the near server of an item with so many seconds to live; negative or `None` for ever.
    fn exptime(&self, ttl_s: Option<i64>) -> i32 {
        let NearOptions { fresh_s, stale_s, .. } = self.options;
        // An item may live a second longer than its expiry says.
        let own_s = (fresh_s.max(1) - 1).saturating_add(stale_s.max(1)).min(RELATIVE_MAX_S as u32);
        let left_s = ttl_s.and_then(|left_s| u32::try_from(left_s).ok());
        // One that has no whole second left is not kept.
        let life_s = left_s.map_or(own_s, |left_s| left_s.min(own_s));
        if life_s == 0 { -1 } else { life_s as i32 }
    }

    /// Stores a value on the far server. The near one forgets the key.
    ///
    /// # Errors
    /// The far server's; see [`Error`](crate::Error). The value may have been stored.
    pub fn set(&self, key: &[u8], value: &[u8], put: Put) -> Result<()> {
        let stored = self.far.set(key, value, put);
        let _ = self.near.delete(key);
        stored.map(drop)
    }

    /// Removes a key from both. Returns whether the far server had it.
    ///
    /// # Errors
    /// The far server's; see [`Error`](crate::Error). The key may have been removed.
    pub fn delete(&self, key: &[u8]) -> Result<bool> {
        let was_there = self.far.delete(key);
        let _ = self.near.delete(key);
        was_there
    }
}

fn cached(item: Item, source: Source) -> Cached {
    Cached { value: item.value, flags: item.flags, source }
}
