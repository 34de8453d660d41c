//! Writes: to the server first, and then to shared memory what the server has.

use super::Tiered;
use super::lifetime::{Lifetime, seconds_left};
use super::read::entry_of;
use crate::client::Put;
use crate::error::Result;
use crate::l1::Stored;

impl Tiered {
    /// Stores a value on the server, and in shared memory what the server took. All processes of the host have the new
    /// value from then on, or none; other hosts within [`fresh`](super::TieredOptions::fresh).
    ///
    /// # Errors
    /// See [`Error`](crate::Error). The value may have been stored, so shared memory forgets the key.
    pub fn set(&self, key: &[u8], value: &[u8], put: Put) -> Result<()> {
        let asking = self.begin(key);
        let stored = self.client.set(key, value, put);
        let life = Lifetime::of_item(&self.options, asking.asked_ms, seconds_left(put.exptime));
        let is_kept = match &stored {
            Ok(cas) => {
                let entry = entry_of(value, put.flags, cas.unwrap_or(0), life);
                self.l1.fill(&asking.ticket, key, &entry) == Stored::Yes
            }
            Err(_) => false,
        };
        if !is_kept {
            // Another process has changed it meanwhile: only the server knows which value came last.
            self.l1.delete(key);
        }
        stored.map(drop)
    }

    /// Removes a key from the server and from shared memory. No process of the host finds the old value from then on,
    /// whatever it was reading meanwhile. Returns whether the server had it.
    ///
    /// # Errors
    /// See [`Error`](crate::Error). Shared memory has forgotten the key in any case.
    pub fn delete(&self, key: &[u8]) -> Result<bool> {
        self.l1.delete(key);
        let was_there = self.client.delete(key);
        // A value that was read from the server before it forgot the key is not stored any more, or is forgotten here.
        self.l1.delete(key);
        was_there
    }
}
