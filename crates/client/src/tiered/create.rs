//! Values that are created when there is none: by one thread of a host, and by one host of all.

use std::time::{Duration, Instant};

use super::lifetime::{Lifetime, seconds_left};
use super::read::{Asking, entry_of, is_being_created};
use super::{ABSENT, Cached, Copy, Source, Tiered};
use crate::client::{Cas, Fetch, Fetched, Item, Put};
use crate::clock::{now, sleep};
use crate::error;
use crate::l1::{Claim, Stored, Waited};
use crate::simulation::{Fault, is_broken};

/// Pauses between two looks at a value that another host creates.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// How much later than after its time a server may end a lease, since it counts whole seconds.
const LEASE_LAG: Duration = Duration::from_secs(1);

/// What the server said to one that would create the value.
enum Answer {
    /// There is a value.
    Is(Cached),
    /// This client is to create it: the cas unique to store it with, and whether there is nothing yet.
    Create { cas: Option<u64>, is_new: bool },
    /// Another client creates it: the cas unique of the empty item that stands for it.
    Wait { cas: Option<u64> },
}

impl Tiered {
    /// Returns the key's value. If there is none, creates one and stores it: one thread of the host does, and one host
    /// of all, while the others wait or use a stale value. If that one is killed or takes longer than
    /// [`lease`](super::TieredOptions::lease), the server lets one other create it, and the rest wait on, for two
    /// leases and a second in all. A value whose creation takes longer than `lease`, or whose key is deleted meanwhile,
    /// is returned and not stored. Where the server does not answer, a stale value is returned, or a new one that is
    /// not stored.
    ///
    /// # Errors
    /// Those of `create` only.
    pub fn get_or_create<E>(
        &self,
        key: &[u8],
        put: Put,
        create: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Cached, E> {
        self.get_or_create_with(key, put.exptime, || create().map(|value| (value, put.flags)))
    }

    /// As [`get_or_create`](Self::get_or_create), with a function that returns the value and its client flags.
    ///
    /// # Errors
    /// Those of `create` only.
    pub fn get_or_create_with<E>(
        &self,
        key: &[u8],
        exptime: i32,
        create: impl FnOnce() -> Result<(Vec<u8>, u32), E>,
    ) -> Result<Cached, E> {
        self.get_or_create_unless(key, exptime, || None, create)
    }

    /// Returns the key's value like [`get_or_create`](Self::get_or_create), where the function may create none.
    /// Then that there is none is known to the processes of this host for
    /// [`negative`](super::TieredOptions::negative): the function is not called again for so long.
    ///
    /// # Errors
    /// Those of `create` only.
    pub fn get_or_create_optional<E>(
        &self,
        key: &[u8],
        put: Put,
        create: impl FnOnce() -> Result<Option<Vec<u8>>, E>,
    ) -> Result<Option<Cached>, E> {
        let asking = self.begin(key);
        // Why no value was created: an error, or none.
        let create = || {
            let value = create().map_err(Some)?;
            value.map(|value| (value, put.flags)).ok_or_else(|| {
                // A value that was marked stale is not the key's any more, either.
                let _ = self.client.delete(key);
                // Before the others that wait for it see that this one has ended.
                self.keep_absence(key, &asking);
                None
            })
        };
        match self.get_or_create_unless(key, put.exptime, || Some(None), create) {
            Ok(cached) => Ok(Some(cached)),
            Err(None) => Ok(None),
            Err(Some(error)) => Err(error),
        }
    }

    /// Returns the key's value, or creates it. `absent` returns the error if it is enough to know that there is none.
    fn get_or_create_unless<E>(
        &self,
        key: &[u8],
        exptime: i32,
        absent: impl Fn() -> Option<E>,
        create: impl FnOnce() -> Result<(Vec<u8>, u32), E>,
    ) -> Result<Cached, E> {
        let until = now() + self.options.lease * 2 + LEASE_LAG;
        match self.look(key) {
            Some(copy) if copy.is_due => {
                if let Ok(Some(cached)) = self.get_old(key, copy) {
                    return Ok(cached);
                }
            }
            copy => {
                if let Some(Ok(result)) = copy.map(|copy| settled(copy, &absent)) {
                    return result;
                }
            }
        }
        let flight = match self.l1.claim(key) {
            Claim::Owner(flight) => Some(flight),
            Claim::Waiter(waiter) => match (waiter.take_over(), self.look(key)) {
                (Some(flight), _) => Some(flight),
                (None, Some(stale)) if stale.hit.mark != ABSENT && !stale.must_wait() => {
                    return Ok(Cached { value: stale.value, flags: stale.hit.flags, source: Source::Stale });
                }
                (None, _) => match waiter.wait(self.options.lease) {
                    Waited::Owner(flight) => Some(flight),
                    Waited::Finished | Waited::TimedOut => None,
                },
            },
        };
        let result = self.create_missing(key, exptime, until, absent, create);
        drop(flight);
        result
    }

    fn create_missing<E>(
        &self,
        key: &[u8],
        exptime: i32,
        until: Instant,
        absent: impl Fn() -> Option<E>,
        create: impl FnOnce() -> Result<(Vec<u8>, u32), E>,
    ) -> Result<Cached, E> {
        let mut pause = PAUSE_MIN;
        loop {
            let copy = match self.look(key).map(|copy| settled(copy, &absent)) {
                Some(Ok(result)) => return result,
                Some(Err(copy)) => Some(copy),
                None => None,
            };
            let asking = self.begin(key);
            match self.ask_to_create(key, &asking, copy) {
                Ok(Answer::Is(cached)) => return Ok(cached),
                Ok(Answer::Create { cas, is_new }) => {
                    return self.create_with(key, exptime, (cas, is_new), create);
                }
                Ok(Answer::Wait { .. }) if now() < until => {
                    sleep(pause.min(until.saturating_duration_since(now())));
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                // Two in a row have not created it: whoever waits creates it for itself.
                Ok(Answer::Wait { cas }) => return self.create_with(key, exptime, (cas, false), create),
                Err(_) => return create().map(created),
            }
        }
    }

    fn ask_to_create(&self, key: &[u8], asking: &Asking, copy: Option<Copy>) -> error::Result<Answer> {
        let lease_s = i32::try_from(self.options.lease.as_secs().max(1)).unwrap_or(i32::MAX);
        let vivify = Some(lease_s).filter(|_| !is_broken(Fault::NoLease));
        let fetch = Fetch { vivify, ..self.fetch_of(asking, copy.as_ref()) };
        Ok(match (self.client.fetch(key, &fetch), copy) {
            (Ok(Fetched::Unchanged(item)), Some(copy)) if !item.lease.is_mine => {
                self.renew(key, asking, &copy, &item);
                copy.cached(Source::Server).map_or(Answer::Wait { cas: item.cas }, Answer::Is)
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
        if is_being_created(&item) {
            Answer::Wait { cas: item.cas }
        } else {
            Answer::Is(self.keep(key, asking, item))
        }
    }

    /// Creates the value and stores it: by the lease, if there is one.
    fn create_with<E>(
        &self,
        key: &[u8],
        exptime: i32,
        (cas, is_new): (Option<u64>, bool),
        create: impl FnOnce() -> Result<(Vec<u8>, u32), E>,
    ) -> Result<Cached, E> {
        let (value, flags) = match create() {
            Ok(created) => created,
            Err(error) => {
                if let (true, Some(cas)) = (is_new, cas) {
                    self.give_up(key, cas);
                }
                return Err(error);
            }
        };
        let put = Put { flags, exptime };
        // Taken now, not before the creation: the lease may have been announced as a change.
        let asking = self.begin(key);
        let stored = match cas {
            // A value that was stored meanwhile is newer than this one.
            Some(cas) if !is_broken(Fault::CreationReplacesNewer) => {
                match self.client.cas(key, &value, cas, put) {
                    Ok(Cas::Stored(cas)) => cas,
                    Ok(Cas::Exists | Cas::NotFound) | Err(_) => None,
                }
            }
            _ => self.client.set(key, &value, put).ok().flatten(),
        };
        let is_kept = stored.is_some_and(|cas| {
            let life = Lifetime::of_item(&self.options_of(key), asking.asked_ms, seconds_left(put.exptime));
            let is_over = life.is_over();
            let life = if asking.is_fed() { life.stale_at_once() } else { life };
            let entry = entry_of(&value, put.flags, cas, life);
            !is_over && self.l1.fill(&asking.ticket, key, &entry) == Stored::Yes
        });
        if !is_kept && !is_broken(Fault::RefusedCreationKeepsEntry) {
            // What is in shared memory may be older than what the server has.
            self.l1.delete(key);
        }
        Ok(created((value, flags)))
    }

    /// Removes the empty item that stands for a value, so that the next client to ask has the lease.
    fn give_up(&self, key: &[u8], cas: u64) {
        let _ = if is_broken(Fault::FailedCreationDeletesNewer) {
            self.client.delete(key)
        } else {
            self.client.delete_unchanged(key, cas)
        };
    }
}

/// Returns what a fresh copy settles: its value, or that there is none if `absent` says that this is enough. Else the
/// copy.
fn settled<E>(copy: Copy, absent: &impl Fn() -> Option<E>) -> Result<Result<Cached, E>, Copy> {
    match copy.fresh() {
        Ok(cached) => Ok(Ok(cached)),
        Err(copy) if copy.hit.is_fresh && copy.hit.mark == ABSENT => match absent() {
            Some(nothing) => Ok(Err(nothing)),
            None => Err(copy),
        },
        Err(copy) => Err(copy),
    }
}

fn created((value, flags): (Vec<u8>, u32)) -> Cached {
    Cached { value, flags, source: Source::Created }
}
