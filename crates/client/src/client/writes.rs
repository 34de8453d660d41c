//! Writes: of one key or many, conditional or not; removals.

use super::Client;
use super::call::Kind;
use crate::error::{Error, Result};
use crate::exchange::Answer;
use crate::key::Key;
use crate::wire::{Delete, Mode, Reply, Request, Stale, Store};

/// Exptimes of up to so many seconds, 30 days, are relative; larger ones are Unix times (memcached's rule).
pub(crate) const RELATIVE_MAX_S: i32 = 2_592_000;

/// Flags and expiry that are stored with a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Put {
    /// Client flags, which come back with the value.
    pub flags: u32,
    /// When it expires: 0 never, up to 2,592,000 (30 days) in so many seconds, beyond that at this Unix time. Negative:
    /// at once.
    pub exptime: i32,
}

impl Put {
    /// Without flags, for so many seconds, up to 30 days.
    pub fn for_seconds(seconds: i32) -> Self {
        Put { flags: 0, exptime: seconds }
    }
}

/// A value to be stored by [`Client::store_many`], with flags and expiry of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewItem<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// Flags and expiry.
    pub put: Put,
}

/// What became of a compare-and-swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cas {
    /// The value is stored; this is its cas unique. (A server might not tell; none does so.)
    Stored(Option<u64>),
    /// The item has changed since it was read. Nothing is stored.
    Exists,
    /// The item is gone. Nothing is stored.
    NotFound,
}

impl Client {
    /// Stores a value in any case. Returns its cas unique.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn set(&self, key: &[u8], value: &[u8], put: Put) -> Result<Option<u64>> {
        match self.store(key, value, put, Mode::Set, None, false)? {
            Cas::Stored(cas) => Ok(cas),
            Cas::Exists | Cas::NotFound => Ok(None),
        }
    }

    /// Stores a value if there is no item. Returns whether it did.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn add(&self, key: &[u8], value: &[u8], put: Put) -> Result<bool> {
        self.is_stored(key, value, put, Mode::Add)
    }

    /// Stores a value if there is an item. Returns whether it did.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn replace(&self, key: &[u8], value: &[u8], put: Put) -> Result<bool> {
        self.is_stored(key, value, put, Mode::Replace)
    }

    /// Puts bytes behind an item's value. Its flags and expiry stay. Returns false if there is no item.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn append(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.is_stored(key, value, Put::default(), Mode::Append)
    }

    /// Puts bytes before an item's value. Its flags and expiry stay. Returns false if there is no item.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn prepend(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.is_stored(key, value, Put::default(), Mode::Prepend)
    }

    /// Stores a value if the item still has the cas unique that it was read with.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn cas(&self, key: &[u8], value: &[u8], cas: u64, put: Put) -> Result<Cas> {
        self.store(key, value, put, Mode::Set, Some(cas), false)
    }

    /// Stores the value that a lease was taken for. `cas` is the cas unique that came with the lease. If the item was
    /// [invalidated](Self::invalidate) meanwhile, the value is stored as stale, so that the next reader renews it;
    /// if it was deleted, nothing is stored.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn fill(&self, key: &[u8], value: &[u8], cas: u64, put: Put) -> Result<Cas> {
        self.store(key, value, put, Mode::Set, Some(cas), true)
    }

    /// Stores many values, and returns what became of each, in order: its cas unique or an error.
    pub fn set_many<'r, K, V>(&self, items: &'r [(K, V)], put: Put) -> Vec<Result<Option<u64>>>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        let requests = items.iter().map(|(key, value)| {
            let key = Key::new(key.as_ref())?;
            let store: Store<'r> = self.put(key, value.as_ref(), put, Mode::Set)?;
            Ok((key, Request::Store(store)))
        });
        let answers = self.ask_many(requests, Kind::Writes).into_iter();
        answers
            .map(|answer| {
                let (answer, server) = answer?;
                match answer.reply {
                    Reply::Done(facts) => Ok(facts.cas),
                    other => Err(self.unexpected(server, other)),
                }
            })
            .collect()
    }

    /// Stores many values, each with flags and expiry of its own, and returns for each, in order, whether it was
    /// stored. With `add`, a key that has an item keeps it.
    pub fn store_many(&self, items: &[NewItem<'_>], add: bool) -> Vec<Result<bool>> {
        let mode = if add { Mode::Add } else { Mode::Set };
        let requests = items.iter().map(|item| {
            let key = Key::new(item.key)?;
            Ok((key, Request::Store(self.put(key, item.value, item.put, mode)?)))
        });
        let stored = |answer: Result<(Answer, usize)>| {
            let (answer, server) = answer?;
            match answer.reply {
                Reply::Done(_) => Ok(true),
                Reply::NotStored(_) if add => Ok(false),
                other => Err(self.unexpected(server, other)),
            }
        };
        self.ask_many(requests, Kind::Writes).into_iter().map(stored).collect()
    }

    /// Removes an item. Returns false if there was none.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn delete(&self, key: &[u8]) -> Result<bool> {
        let key = Key::new(key)?;
        self.remove(Delete { key, compare: None, stale: None, quiet: false })
    }

    /// Removes an item if it still has the cas unique that it was read with. Returns whether it had.
    ///
    /// # Errors
    /// See [`Error`].
    pub(crate) fn delete_unchanged(&self, key: &[u8], cas: u64) -> Result<bool> {
        let key = Key::new(key)?;
        self.remove(Delete { key, compare: Some(cas), stale: None, quiet: false })
    }

    /// Marks an item stale for so long (as [`Put::exptime`]): readers still get the old value, and one of them has the
    /// lease to renew it. Returns false if there is none.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn invalidate(&self, key: &[u8], exptime: i32) -> Result<bool> {
        let key = Key::new(key)?;
        self.remove(Delete { key, compare: None, stale: Some(Stale::For(exptime)), quiet: false })
    }

    /// Gives back the lease to renew an item that was marked stale, if the item is still the one with this cas unique:
    /// the next reader has it. Returns whether it was.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn give_back(&self, key: &[u8], cas: u64) -> Result<bool> {
        let key = Key::new(key)?;
        self.remove(Delete { key, compare: Some(cas), stale: Some(Stale::Unchanged), quiet: false })
    }

    /// Removes many items, and returns for each, in order, whether there was one.
    pub fn delete_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<bool>> {
        let requests = keys.iter().map(|key| {
            let key = Key::new(key.as_ref())?;
            Ok((key, Request::Delete(Delete { key, compare: None, stale: None, quiet: false })))
        });
        let answers = self.ask_many(requests, Kind::Writes).into_iter();
        answers.map(|answer| answer.and_then(|(answer, server)| self.removed(answer.reply, server))).collect()
    }

    /// Makes the request for a plain store, after a look at its size.
    pub(super) fn put<'r>(&self, key: Key<'r>, value: &'r [u8], put: Put, mode: Mode) -> Result<Store<'r>> {
        let max = self.inner.options.value_bytes_max;
        if value.len() > max {
            return Err(Error::ValueTooLarge { bytes: value.len(), max });
        }
        let Put { flags, exptime } = put;
        Ok(Store {
            key,
            value,
            mode,
            flags,
            exptime,
            compare: None,
            invalidate: false,
            cas: true,
            quiet: false,
        })
    }

    fn is_stored(&self, key: &[u8], value: &[u8], put: Put, mode: Mode) -> Result<bool> {
        Ok(matches!(self.store(key, value, put, mode, None, false)?, Cas::Stored(_)))
    }

    fn store(
        &self,
        key: &[u8],
        value: &[u8],
        put: Put,
        mode: Mode,
        compare: Option<u64>,
        invalidate: bool,
    ) -> Result<Cas> {
        let key = Key::new(key)?;
        let store = Store { compare, invalidate, ..self.put(key, value, put, mode)? };
        let (answer, server) = self.ask(Request::Store(store), &key, Kind::Writes)?;
        match answer.reply {
            Reply::Done(facts) => Ok(Cas::Stored(facts.cas)),
            Reply::Exists(_) if compare.is_some() => Ok(Cas::Exists),
            Reply::NotFound(_) | Reply::NotStored(_) if mode != Mode::Set || compare.is_some() => {
                Ok(Cas::NotFound)
            }
            other => Err(self.unexpected(server, other)),
        }
    }

    fn remove(&self, delete: Delete<'_>) -> Result<bool> {
        let key = delete.key;
        let (answer, server) = self.ask(Request::Delete(delete), &key, Kind::Writes)?;
        self.removed(answer.reply, server)
    }

    fn removed(&self, reply: Reply, server: usize) -> Result<bool> {
        match reply {
            Reply::Done(_) => Ok(true),
            Reply::NotFound(_) | Reply::Exists(_) => Ok(false),
            other => Err(self.unexpected(server, other)),
        }
    }
}
