//! Many keys at once: one round trip to each server for all that shared memory does not have.

use super::read::Asking;
use super::{Cached, Copy, Source, Tiered};
use crate::client::Put;
use crate::error::Result;
use crate::l1::Hit;

impl Tiered {
    /// Calls `with` for the entry and the value of a key that shared memory has fresh and not due to be renewed, and
    /// returns the result. Asks no
    /// server and never waits.
    #[inline]
    pub fn peek<T>(&self, key: &[u8], with: impl FnOnce(&Hit, &[u8]) -> T) -> Option<T> {
        let usable = |hit: &Hit| {
            let used = self.judge(key, hit);
            used.is_fresh && !used.is_due && hit.mark != super::ABSENT
        };
        self.l1.with_buffer(|value| self.find(key, value).filter(usable).map(|hit| with(&hit, value)))
    }

    /// Returns the values of many keys, in order, as [`get`](Self::get) does. Those that shared memory does not have
    /// fresh are asked for at once, also where another process is asking for one of them. Of two keys that share a
    /// counter of changes ([`L1::begin_fetch`](crate::L1::begin_fetch)) one is kept.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<Cached>>> {
        let mut results: Vec<Result<Option<Cached>>> = Vec::with_capacity(keys.len());
        let mut wanted: Vec<(usize, Asking, Option<Copy>)> = Vec::new();
        let mut fetches = Vec::new();
        for (nth, key) in keys.iter().map(AsRef::as_ref).enumerate() {
            let (fresh, copy) = match self.look(key) {
                Some(copy) if copy.hit.is_fresh && !copy.is_due => (copy.cached(Source::L1), None),
                copy => {
                    let asking = self.begin(key);
                    fetches.push((key, self.fetch_of(&asking, copy.as_ref())));
                    (None, Some((nth, asking, copy)))
                }
            };
            results.push(Ok(fresh));
            wanted.extend(copy);
        }
        let fetched = if fetches.is_empty() { Vec::new() } else { self.client.fetch_many(&fetches) };
        for (((nth, asking, copy), (key, _)), fetched) in wanted.into_iter().zip(&fetches).zip(fetched) {
            if let Some(result) = results.get_mut(nth) {
                *result = self.answered(key, &asking, copy, fetched);
            }
        }
        results
    }

    /// Stores many values, as [`set`](Self::set) does, and returns what became of each, in order.
    pub fn set_many<K, V>(&self, items: &[(K, V)], put: Put) -> Vec<Result<()>>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        let askings: Vec<Asking> = items.iter().map(|(key, _)| self.begin(key.as_ref())).collect();
        let stored = self.client.set_many(items, put);
        let keep = |((stored, asking), (key, value)): ((Result<_>, &Asking), &(K, V))| {
            self.keep_own(key.as_ref(), value.as_ref(), put, asking, &stored);
            stored.map(drop)
        };
        stored.into_iter().zip(&askings).zip(items).map(keep).collect()
    }

    /// Removes many keys, as [`delete`](Self::delete) does, and returns for each, in order, whether the server had it.
    pub fn delete_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<bool>> {
        let forget = || {
            for key in keys {
                self.l1.delete(key.as_ref());
            }
        };
        forget();
        let were_there = self.client.delete_many(keys);
        forget();
        were_there
    }
}
