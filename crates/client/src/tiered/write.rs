//! Writes: to the server first, and then to shared memory what the server has.

use super::Tiered;
use super::lifetime::{Lifetime, seconds_left};
use super::read::{Asking, entry_of};
use crate::client::{Client, Put};
use crate::error::Result;
use crate::l1::Stored;
use crate::simulation::{Fault, is_broken};

impl Tiered {
    /// Stores a value on the server, and in shared memory what the server took. All processes of the host have the new
    /// value from then on, or none; other hosts within [`fresh`](super::TieredOptions::fresh).
    ///
    /// # Errors
    /// See [`Error`](crate::Error). The value may have been stored, so shared memory forgets the key.
    pub fn set(&self, key: &[u8], value: &[u8], put: Put) -> Result<()> {
        let asking = self.begin(key);
        let stored = self.client.set(key, value, put);
        self.keep_own(key, value, put, &asking, &stored);
        stored.map(drop)
    }

    /// Keeps a value that this process has sent to the server, if the server took it.
    pub(super) fn keep_own(
        &self,
        key: &[u8],
        value: &[u8],
        put: Put,
        asking: &Asking,
        stored: &Result<Option<u64>>,
    ) {
        let life = Lifetime::of_item(&self.options_of(key), asking.asked_ms, seconds_left(put.exptime));
        let is_kept = match stored {
            // Nothing is announced yet of what was stored just now: the next read asks for it.
            Ok(_) if asking.is_fed() => false,
            // The clock of reads may lag behind the one by which it is over.
            Ok(_) if life.is_over() => false,
            Ok(cas) => {
                let entry = entry_of(value, put.flags, cas.unwrap_or(0), life);
                self.l1.fill(&asking.ticket, key, &entry) == Stored::Yes
            }
            Err(_) => false,
        };
        if !is_kept && !is_broken(Fault::RefusedSetKeepsEntry) {
            // Another process has changed it meanwhile: only the server knows which value came last.
            self.l1.delete(key);
        }
    }

    /// Removes a key from the server and from shared memory. No process of the host finds the old value from then on,
    /// whatever it was reading meanwhile. Returns whether the server had it.
    ///
    /// # Errors
    /// See [`Error`](crate::Error). Shared memory has forgotten the key in any case.
    pub fn delete(&self, key: &[u8]) -> Result<bool> {
        self.change(key, |client| client.delete(key))
    }

    /// Changes a key on the server in any way, such as by [`Client::append`]. No process of the host finds the earlier
    /// value from then on, whatever it was reading meanwhile: shared memory forgets the key. Returns what `change`
    /// returns.
    pub fn change<T>(&self, key: &[u8], change: impl FnOnce(&Client) -> T) -> T {
        self.l1.delete(key);
        let changed = change(&self.client);
        // A value that was read from the server before the change is not stored any more, or is forgotten here.
        self.l1.delete(key);
        changed
    }
}
