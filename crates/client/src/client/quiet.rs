//! Writes without replies: they are sent and not waited for.

use super::call::{Batch, Kind};
use super::counters::arith;
use super::gate::Gate;
use super::{Client, Count, Put};
use crate::error::Result;
use crate::key::Key;
use crate::wire::{Delete, Get, Mode, Request};

/// A view of a [`Client`] whose writes are not answered. That a server refused one, or lost it, is not learned; an
/// error means that it could not be sent. The next request on the same connection is executed after it.
///
/// The server still ends each batch with a fence, which the connection's next user reads; so no late error line can be
/// taken for the reply to something else.
#[derive(Clone, Copy, Debug)]
pub struct Quiet<'c> {
    client: &'c Client,
}

impl Client {
    /// Returns the view of this client that does not wait for replies (`noreply`).
    pub fn quiet(&self) -> Quiet<'_> {
        Quiet { client: self }
    }
}

impl Quiet<'_> {
    /// Stores a value.
    ///
    /// # Errors
    /// When it could not be sent.
    pub fn set(&self, key: &[u8], value: &[u8], put: Put) -> Result<()> {
        self.store(key, value, put, Mode::Set)
    }

    /// Stores a value if there is no item.
    ///
    /// # Errors
    /// When it could not be sent.
    pub fn add(&self, key: &[u8], value: &[u8], put: Put) -> Result<()> {
        self.store(key, value, put, Mode::Add)
    }

    /// Stores a value if there is an item.
    ///
    /// # Errors
    /// When it could not be sent.
    pub fn replace(&self, key: &[u8], value: &[u8], put: Put) -> Result<()> {
        self.store(key, value, put, Mode::Replace)
    }

    /// Puts bytes behind an item's value.
    ///
    /// # Errors
    /// When it could not be sent.
    pub fn append(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.store(key, value, Put::default(), Mode::Append)
    }

    /// Puts bytes before an item's value.
    ///
    /// # Errors
    /// When it could not be sent.
    pub fn prepend(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.store(key, value, Put::default(), Mode::Prepend)
    }

    /// Removes an item.
    ///
    /// # Errors
    /// When it could not be sent.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        let key = Key::new(key)?;
        self.send(key, Request::Delete(Delete { key, compare: None, stale: None, quiet: true }))
    }

    /// Gives an item a new expiry.
    ///
    /// # Errors
    /// When it could not be sent.
    pub fn touch(&self, key: &[u8], exptime: i32) -> Result<()> {
        let key = Key::new(key)?;
        self.send(key, Request::Get(Get { touch: Some(exptime), quiet: true, ..Get::new(key) }))
    }

    /// Changes a counter.
    ///
    /// # Errors
    /// When it could not be sent.
    pub fn count(&self, key: &[u8], count: Count) -> Result<()> {
        let key = Key::new(key)?;
        self.send(key, Request::Arith(arith(key, count, true)))
    }

    /// Stores many values, with one fence for each server. Returns for each, in order, whether it could be sent.
    pub fn set_many<K, V>(&self, items: &[(K, V)], put: Put) -> Vec<Result<()>>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        let requests = items.iter().map(|(key, value)| {
            let key = Key::new(key.as_ref())?;
            let mut store = self.client.put(key, value.as_ref(), put, Mode::Set)?;
            (store.quiet, store.cas) = (true, false);
            Ok((key, Request::Store(store)))
        });
        self.client.send_many(requests)
    }

    /// Removes many items, with one fence for each server. Returns for each, in order, whether it could be sent.
    pub fn delete_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<()>> {
        let requests = keys.iter().map(|key| {
            let key = Key::new(key.as_ref())?;
            Ok((key, Request::Delete(Delete { key, compare: None, stale: None, quiet: true })))
        });
        self.client.send_many(requests)
    }

    fn store(&self, key: &[u8], value: &[u8], put: Put, mode: Mode) -> Result<()> {
        let key = Key::new(key)?;
        let mut store = self.client.put(key, value, put, mode)?;
        (store.quiet, store.cas) = (true, false);
        self.send(key, Request::Store(store))
    }

    fn send(&self, key: Key<'_>, request: Request<'_>) -> Result<()> {
        let server = Gate::new(self.client).place(key.bytes())?;
        let batch = Batch { server, requests: vec![request], kind: Kind::Quiet };
        let outcome = self.client.run(vec![batch]).pop();
        outcome.and_then(|outcome| outcome.error).map_or(Ok(()), Err)
    }
}
