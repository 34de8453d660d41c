//! Reads: from shared memory, or by one process of the host from the server.

use super::lifetime::Lifetime;
use super::{ABSENT, Cached, Copy, Source, Tiered};
use crate::client::{Fetch, Fetched, Item};
use crate::error::Result;
use crate::l1::{Claim, Entry, Stored, Ticket, Waited, now_ms};

/// A fetch that begins: nothing that it brings is stored if the key is changed from here on.
pub(super) struct Asking {
    pub(super) ticket: Ticket,
    pub(super) asked_ms: u64,
}

impl Tiered {
    /// Returns the key's value; `None` if there is none. The value was the server's at most
    /// [`fresh`](super::TieredOptions::fresh) ago, unless its source is [`Source::Stale`].
    ///
    /// # Errors
    /// The server did not answer, and shared memory has no value that may still be used; see
    /// [`Error`](crate::Error).
    pub fn get(&self, key: &[u8]) -> Result<Option<Cached>> {
        match self.look(key) {
            Some(copy) if copy.hit.is_fresh => Ok(copy.cached(Source::L1)),
            Some(copy) => match self.l1.claim(key) {
                Claim::Owner(_flight) => self.ask(key, Some(copy)),
                Claim::Waiter(_) => Ok(copy.cached(Source::Stale)),
            },
            None => self.get_missing(key),
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
        let asked_ms = now_ms();
        Asking { ticket: self.l1.begin_fetch(key), asked_ms }
    }

    /// Returns what to ask a server for that may send no value if the copy is current.
    pub(super) fn fetch_of(&self, copy: Option<&Copy>) -> Fetch {
        let known = copy.filter(|copy| copy.hit.mark != ABSENT && copy.hit.cas != 0);
        Fetch {
            unless_cas: known.map(|copy| copy.hit.cas),
            copied_ms: known.map(|copy| u64::from(copy.hit.epoch) * 1000),
            ..Fetch::default()
        }
    }

    /// Asks the server. A copy is used if that is still current, or the server does not answer.
    fn ask(&self, key: &[u8], copy: Option<Copy>) -> Result<Option<Cached>> {
        let asking = self.begin(key);
        match (self.client.fetch(key, &self.fetch_of(copy.as_ref())), copy) {
            (Ok(Fetched::Unchanged(item)), Some(copy)) => {
                self.renew(key, &asking, &copy, &item);
                Ok(copy.cached(Source::Server))
            }
            (Ok(Fetched::Found(item)), _) if is_being_created(&item) => {
                self.l1.delete(key);
                Ok(None)
            }
            (Ok(Fetched::Found(item)), _) => Ok(Some(self.keep(key, &asking, item))),
            (Ok(Fetched::Miss | Fetched::Unchanged(_)), _) => {
                self.keep_absence(key, &asking);
                Ok(None)
            }
            (Err(_), Some(copy)) => Ok(copy.cached(Source::Stale)),
            (Err(error), None) => Err(error),
        }
    }

    /// Makes a copy fresh again that the server said is current.
    pub(super) fn renew(&self, key: &[u8], asking: &Asking, copy: &Copy, item: &Item) {
        let life = Lifetime::of_item(&self.options, asking.asked_ms, item.ttl_s);
        // It is stale for as long behind that as before, so an item that dies sooner is stored anew.
        let stale_ms = copy.hit.stale_until_ms.saturating_sub(copy.hit.fresh_until_ms);
        if life.fresh_until_ms + stale_ms <= life.stale_until_ms {
            self.l1.touch(&asking.ticket, key, copy.hit.cas, life.fresh_until_ms);
        } else {
            let entry = entry_of(&copy.value, copy.hit.flags, copy.hit.cas, life);
            let _ = self.l1.fill(&asking.ticket, key, &Entry { epoch: copy.hit.epoch, ..entry });
        }
    }

    /// Keeps what the server sent.
    pub(super) fn keep(&self, key: &[u8], asking: &Asking, item: Item) -> Cached {
        let life = Lifetime::of_item(&self.options, asking.asked_ms, item.ttl_s);
        let entry = entry_of(&item.value, item.flags, item.cas.unwrap_or(0), life);
        // A value that another one is to renew is not kept for longer than this read.
        if !item.lease.is_stale {
            let _ = self.l1.fill(&asking.ticket, key, &entry);
        }
        Cached { value: item.value, flags: item.flags, source: Source::Server }
    }

    /// Keeps that the server does not have the key.
    fn keep_absence(&self, key: &[u8], asking: &Asking) {
        let life = Lifetime::of_absence(&self.options, asking.asked_ms);
        let entry = Entry { mark: ABSENT, ..entry_of(b"", 0, 0, life) };
        let is_kept = !self.options.negative.is_zero()
            && matches!(self.l1.fill(&asking.ticket, key, &entry), Stored::Yes | Stored::Refused);
        if !is_kept {
            self.l1.delete(key);
        }
    }
}

/// Returns whether the item is the empty one that stands for a value which another client creates.
pub(super) fn is_being_created(item: &Item) -> bool {
    item.value.is_empty() && item.lease.is_taken && !item.lease.is_mine
}

/// Returns an entry. Its epoch is the second in which it was asked for: a connection that is younger may lead to a
/// server that was restarted since, in which the cas unique means something else.
pub(super) fn entry_of(value: &[u8], flags: u32, cas: u64, life: Lifetime) -> Entry<'_> {
    let Lifetime { asked_ms, fresh_until_ms, stale_until_ms } = life;
    let epoch = u32::try_from(asked_ms / 1000).unwrap_or(0);
    Entry { value, flags, cas, epoch, mark: 0, fresh_until_ms, stale_until_ms }
}
