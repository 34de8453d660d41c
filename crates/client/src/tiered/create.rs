//! Values that are created when there is none: by one thread of a host, and by one host of all.

use std::time::{Duration, Instant};

use super::lifetime::{Lifetime, seconds_left};
use super::read::{Asking, entry_of, is_being_created};
use super::{Cached, Copy, Source, Tiered};
use crate::client::{Cas, Fetch, Fetched, Item, Put};
use crate::error;
use crate::l1::{Claim, Waited};

/// Pauses between two looks at a value that another host creates.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// What the server said to one that would create the value.
enum Answer {
    /// There is a value.
    Is(Cached),
    /// This client is to create it: the cas unique to store it with, and whether there is nothing yet.
    Create { cas: Option<u64>, is_new: bool },
    /// Another client creates it.
    Wait,
}

impl Tiered {
    /// Returns the key's value. If there is none, creates one and stores it: one thread of the host does, and one host
    /// of all, while the others wait for [`lease`](super::TieredOptions::lease) at most, or use a stale value. A value
    /// whose key is deleted while it is created is returned and not stored. Where the server does not answer, a stale
    /// value is returned, or a new one that is not stored.
    ///
    /// # Errors
    /// Those of `create` only.
    pub fn get_or_create<E>(
        &self,
        key: &[u8],
        put: Put,
        create: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Cached, E> {
        let until = Instant::now() + self.options.lease;
        let copy = self.look(key);
        if let Some(fresh) = copy.filter(|copy| copy.hit.is_fresh).and_then(|copy| copy.cached(Source::L1)) {
            return Ok(fresh);
        }
        let flight = match self.l1.claim(key) {
            Claim::Owner(flight) => Some(flight),
            Claim::Waiter(waiter) => {
                if let Some(stale) = self.look(key).and_then(|copy| copy.cached(Source::Stale)) {
                    return Ok(stale);
                }
                match waiter.wait(self.options.lease) {
                    Waited::Owner(flight) => Some(flight),
                    Waited::Finished | Waited::TimedOut => None,
                }
            }
        };
        let result = self.create_missing(key, put, until, create);
        drop(flight);
        result
    }

    fn create_missing<E>(
        &self,
        key: &[u8],
        put: Put,
        until: Instant,
        create: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Cached, E> {
        let mut pause = PAUSE_MIN;
        loop {
            let copy = self.look(key);
            if let Some(fresh) = copy.as_ref().filter(|copy| copy.hit.is_fresh)
                && fresh.hit.mark != super::ABSENT
            {
                return Ok(Cached { value: fresh.value.clone(), flags: fresh.hit.flags, source: Source::L1 });
            }
            let asking = self.begin(key);
            match self.ask_to_create(key, &asking, copy) {
                Ok(Answer::Is(cached)) => return Ok(cached),
                Ok(Answer::Create { cas, is_new }) => {
                    return self.create_with(key, put, &asking, (cas, is_new), create);
                }
                Ok(Answer::Wait) if Instant::now() < until => {
                    std::thread::sleep(pause.min(until.saturating_duration_since(Instant::now())));
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                // The other host was given up.
                Ok(Answer::Wait) => return self.create_with(key, put, &asking, (None, false), create),
                Err(_) => return create().map(|value| created(value, put)),
            }
        }
    }

    fn ask_to_create(&self, key: &[u8], asking: &Asking, copy: Option<Copy>) -> error::Result<Answer> {
        let lease_s = i32::try_from(self.options.lease.as_secs().max(1)).unwrap_or(i32::MAX);
        let fetch = Fetch { vivify: Some(lease_s), ..self.fetch_of(copy.as_ref()) };
        Ok(match (self.client.fetch(key, &fetch), copy) {
            (Ok(Fetched::Unchanged(item)), Some(copy)) if !item.lease.is_mine => {
                self.renew(key, asking, &copy, &item);
                copy.cached(Source::Server).map_or(Answer::Wait, Answer::Is)
            }
            (Ok(Fetched::Found(item) | Fetched::Unchanged(item)), _) if item.lease.is_mine => {
                Answer::Create { cas: item.cas, is_new: !item.lease.is_stale }
            }
            (Ok(Fetched::Found(item)), _) => self.found(key, asking, item),
            (Ok(Fetched::Miss | Fetched::Unchanged(_)), _) => Answer::Create { cas: None, is_new: false },
            (Err(error), copy) => match copy.and_then(|copy| copy.cached(Source::Stale)) {
                Some(stale) => Answer::Is(stale),
                None => return Err(error),
            },
        })
    }

    fn found(&self, key: &[u8], asking: &Asking, item: Item) -> Answer {
        if is_being_created(&item) { Answer::Wait } else { Answer::Is(self.keep(key, asking, item)) }
    }

    /// Creates the value and stores it: by the lease, if there is one.
    fn create_with<E>(
        &self,
        key: &[u8],
        put: Put,
        asking: &Asking,
        (cas, is_new): (Option<u64>, bool),
        create: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Cached, E> {
        let value = match create() {
            Ok(value) => value,
            Err(error) => {
                if is_new {
                    // The empty item is of no use: the next one to ask has the lease.
                    let _ = self.client.delete(key);
                }
                return Err(error);
            }
        };
        let stored_ms = crate::l1::now_ms();
        let stored = match cas {
            Some(cas) => match self.client.fill(key, &value, cas, put) {
                Ok(Cas::Stored(cas)) => cas,
                Ok(Cas::Exists | Cas::NotFound) | Err(_) => None,
            },
            None => self.client.set(key, &value, put).ok().flatten(),
        };
        if let Some(cas) = stored {
            let life = Lifetime::of_item(&self.options, stored_ms, seconds_left(put.exptime));
            let _ = self.l1.fill(&asking.ticket, key, &entry_of(&value, put.flags, cas, life));
        }
        Ok(created(value, put))
    }
}

fn created(value: Vec<u8>, put: Put) -> Cached {
    Cached { value, flags: put.flags, source: Source::Created }
}
