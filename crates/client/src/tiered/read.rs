//! Reads: from shared memory, or by one process of the host from the server.

use super::lifetime::Lifetime;
use super::push::{Fed, life_of};
use super::{ABSENT, Cached, Copy, Source, Tiered, Unreachable};
use crate::client::{Fetch, Fetched, Item};
use crate::error::{Error, Result};
use crate::l1::{Claim, Entry, Stored, Ticket, Waited, now_ms, now_us};
use crate::simulation::{Fault, is_broken};

/// A fetch that begins: nothing that it brings is stored if the key is changed from here on.
pub(super) struct Asking {
    pub(super) ticket: Ticket,
    pub(super) asked_ms: u64,
    /// The feed under which it is fetched.
    fed: Option<Fed>,
}

impl Asking {
    /// Returns whether the server announces changes now.
    pub(super) fn is_fed(&self) -> bool {
        self.fed.is_some()
    }
}

impl Tiered {
    /// Returns the key's value; `None` if there is none. The value was the server's at most
    /// [`fresh`](super::TieredOptions::fresh) ago, unless its source is [`Source::Stale`].
    ///
    /// # Errors
    /// The server did not answer, and shared memory has no value that may still be used, unless that is to be a miss
    /// ([`Unreachable`]); see [`Error`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Cached>> {
        self.get_reusing(key, Vec::new())
    }

    /// As [`Tiered::get`], with a value of shared memory in `buffer`. A caller that passes the value of the call before
    /// allocates nothing for a hit and copies to memory that the processor still holds: 28 KB take a quarter
    /// less time.
    ///
    /// # Errors
    /// As [`Tiered::get`]; `buffer` is gone then.
    pub fn get_reusing(&self, key: &[u8], buffer: Vec<u8>) -> Result<Option<Cached>> {
        match self.look_into(key, buffer) {
            Some(copy) if copy.hit.is_fresh && !copy.is_due => Ok(copy.cached(Source::L1)),
            Some(copy) if (copy.hit.is_fresh || copy.is_usable) && !copy.must_wait() => {
                self.get_old(key, copy)
            }
            _ => self.get_missing(key),
        }
    }

    /// Returns the key's value, or another one if there is none or the server does not answer.
    pub fn get_or(&self, key: &[u8], otherwise: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
        self.get(key).ok().flatten().map_or_else(otherwise, |cached| cached.value)
    }

    /// Renews a copy that may be used, unless another one does so; then the copy is used.
    pub(super) fn get_old(&self, key: &[u8], copy: Copy) -> Result<Option<Cached>> {
        let flight = match self.l1.claim(key) {
            Claim::Owner(flight) => Some(flight),
            Claim::Waiter(waiter) => waiter.take_over(),
        };
        let Some(_flight) = flight else {
            let source = copy.source();
            return Ok(copy.cached(source));
        };
        match self.look(key) {
            // Another one has renewed it just now.
            Some(copy) if copy.hit.is_fresh && !copy.is_due => Ok(copy.cached(Source::L1)),
            copy => self.ask(key, copy),
        }
    }

    fn get_missing(&self, key: &[u8]) -> Result<Option<Cached>> {
        let flight = match self.l1.claim(key) {
            Claim::Owner(flight) => Some(flight),
            Claim::Waiter(waiter) => match waiter.wait(self.options.wait) {
                Waited::Owner(flight) => Some(flight),
                Waited::Finished | Waited::TimedOut => None,
            },
        };
        // Another one may have fetched it between the look and the claim, or while this one waited.
        let result = match self.look(key) {
            Some(copy) if copy.hit.is_fresh => Ok(copy.cached(Source::L1)),
            copy => self.ask(key, copy),
        };
        drop(flight);
        result
    }

    pub(super) fn begin(&self, key: &[u8]) -> Asking {
        // An entry is exact for a while because it was asked for: the coarse clock may lag by more than that.
        let asked_ms = if self.exact_us > 0 { now_us() / 1000 } else { now_ms() };
        Asking { ticket: self.l1.begin_fetch(key), asked_ms, fed: self.feed_of(key) }
    }

    /// Returns what to ask a server for that may send no value if the copy is current.
    pub(super) fn fetch_of(&self, asking: &Asking, copy: Option<&Copy>) -> Fetch {
        let known = copy.filter(|copy| copy.hit.mark != ABSENT && copy.hit.cas != 0);
        Fetch {
            unless_cas: known.map(|copy| copy.hit.cas),
            copied_ms: known.map(|copy| u64::from(copy.hit.epoch) * 1000),
            announce: asking.fed.map(|fed| fed.announce),
            ..Fetch::default()
        }
    }

    /// Asks the server. A copy is used if that is still current, or the server does not answer.
    fn ask(&self, key: &[u8], copy: Option<Copy>) -> Result<Option<Cached>> {
        let asking = self.begin(key);
        let fetched = self.client.fetch(key, &self.fetch_of(&asking, copy.as_ref()));
        self.answered(key, &asking, copy, fetched)
    }

    /// Keeps what the server told, and returns the value to use.
    pub(super) fn answered(
        &self,
        key: &[u8],
        asking: &Asking,
        copy: Option<Copy>,
        fetched: Result<Fetched>,
    ) -> Result<Option<Cached>> {
        if let Ok(Fetched::Found(item) | Fetched::Unchanged(item)) = &fetched {
            self.give_back(key, item);
        }
        match (fetched, copy) {
            (Ok(Fetched::Unchanged(item)), Some(copy)) => {
                self.renew(key, asking, &copy, &item);
                Ok(copy.cached(Source::Server))
            }
            (Ok(Fetched::Found(item)), _) if is_being_created(&item) => {
                self.l1.delete(key);
                Ok(None)
            }
            (Ok(Fetched::Found(item)), _) => Ok(Some(self.keep(key, asking, item))),
            (Ok(Fetched::Miss | Fetched::Unchanged(_)), _) => {
                self.keep_absence(key, asking);
                Ok(None)
            }
            (Err(_), Some(copy)) if copy.hit.is_fresh || copy.is_usable => {
                let source = copy.source();
                Ok(copy.cached(source))
            }
            (Err(error), _) => self.without_server(error),
        }
    }

    /// Gives back the lease to renew an item that was marked stale. The server gives it to the first that reads the
    /// item, and no other client would renew it: but this one only reads.
    fn give_back(&self, key: &[u8], item: &Item) {
        if let Some(cas) = item.cas.filter(|_| item.lease.is_mine) {
            let _ = self.client.give_back(key, cas);
        }
    }

    fn without_server(&self, error: Error) -> Result<Option<Cached>> {
        match self.options.unreachable {
            // An error without a server is the caller's own, such as a key that is too long.
            Unreachable::Miss if error.server().is_some() => Ok(None),
            Unreachable::Miss | Unreachable::Error => Err(error),
        }
    }

    /// Makes a copy fresh again that the server said is current.
    pub(super) fn renew(&self, key: &[u8], asking: &Asking, copy: &Copy, item: &Item) {
        let (life, feed) = life_of(&self.options_of(key), asking.asked_ms, asking.fed, item);
        // It is stale for as long behind that as before, so an item that dies sooner is stored anew.
        let stale_ms = copy.hit.stale_until_ms.saturating_sub(copy.hit.fresh_until_ms);
        if life.fresh_until_ms + stale_ms <= life.stale_until_ms && copy.hit.feed == feed {
            self.l1.renew(&asking.ticket, key, (copy.hit.cas, feed), life.fresh_until_ms);
        } else {
            let entry = entry_of(&copy.value, copy.hit.flags, copy.hit.cas, life);
            let _ = self.l1.fill(&asking.ticket, key, &Entry { epoch: copy.hit.epoch, feed, ..entry });
        }
    }

    /// Keeps what the server sent.
    pub(super) fn keep(&self, key: &[u8], asking: &Asking, item: Item) -> Cached {
        let asked_ms = if is_broken(Fault::FreshFromReply) { now_ms() } else { asking.asked_ms };
        let (life, feed) = life_of(&self.options_of(key), asked_ms, asking.fed, &item);
        let entry = Entry { feed, ..entry_of(&item.value, item.flags, item.cas.unwrap_or(0), life) };
        // A value that another one is to renew is not kept for longer than this read.
        if !item.lease.is_stale {
            let _ = self.l1.fill(&asking.ticket, key, &entry);
        }
        Cached { value: item.value, flags: item.flags, source: Source::Server }
    }

    /// Keeps that the server does not have the key.
    pub(super) fn keep_absence(&self, key: &[u8], asking: &Asking) {
        let options = self.options_of(key);
        let life = Lifetime::of_absence(&options, asking.asked_ms);
        let entry = Entry { mark: ABSENT, ..entry_of(b"", 0, 0, life) };
        let is_kept = !options.negative.is_zero()
            && matches!(self.l1.fill(&asking.ticket, key, &entry), Stored::Yes | Stored::Refused);
        if !is_kept {
            self.l1.delete(key);
        }
    }
}

/// Returns whether the item is an empty one that stands for a value which a client creates.
pub(super) fn is_being_created(item: &Item) -> bool {
    // A reader has the lease itself if the item was marked stale meanwhile.
    let is_mine = item.lease.is_mine && !is_broken(Fault::EmptyItemIsValue);
    item.value.is_empty() && (item.lease.is_taken || is_mine)
}

/// Returns an entry. Its epoch is the second in which it was asked for: a connection that is younger may lead to a
/// server that was restarted since, in which the cas unique means something else.
pub(super) fn entry_of(value: &[u8], flags: u32, cas: u64, life: Lifetime) -> Entry<'_> {
    let Lifetime { asked_ms, fresh_until_ms, stale_until_ms } = life;
    let epoch = u32::try_from(asked_ms / 1000).unwrap_or(0);
    Entry { value, flags, cas, epoch, mark: 0, feed: 0, fresh_until_ms, stale_until_ms }
}
