//! Counters: changed by the server, so that clients never lose each other's changes.

use super::Client;
use super::call::Kind;
use crate::error::Result;
use crate::key::Key;
use crate::wire::{Arith, Malformed, Reply, Request};

/// How a counter is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// By how much.
    pub delta: u64,
    /// Downwards, where it stops at 0. Upwards it wraps at 2^64.
    pub decrement: bool,
    /// Creates a missing counter with this value, and an expiry as [`Put::exptime`](super::Put::exptime). That it has
    /// been created is seen by the value.
    pub initial: Option<(u64, i32)>,
    /// Gives a counter that exists a new expiry.
    pub touch: Option<i32>,
}

impl Default for Count {
    /// Upwards by one, and a missing counter stays missing.
    fn default() -> Self {
        Count { delta: 1, decrement: false, initial: None, touch: None }
    }
}

/// A counter after the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its value.
    pub value: u64,
    /// Seconds left to live; -1 for ever.
    pub ttl_s: Option<i64>,
    /// Its cas unique.
    pub cas: Option<u64>,
}

impl Client {
    /// Adds to a counter, and returns the new value; none if there is no such counter.
    ///
    /// # Errors
    /// See [`Error`](crate::Error). The server refuses a value that is no number.
    pub fn incr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        Ok(self.count(key, Count { delta, ..Count::default() })?.map(|counter| counter.value))
    }

    /// Takes from a counter, which stops at 0, and returns the new value; none if there is no such counter.
    ///
    /// # Errors
    /// See [`Error`](crate::Error). The server refuses a value that is no number.
    pub fn decr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        let count = Count { delta, decrement: true, ..Count::default() };
        Ok(self.count(key, count)?.map(|counter| counter.value))
    }

    /// Changes a counter, in one round trip also where it is created with a time to live. Returns none if it is missing
    /// and was not to be created.
    ///
    /// # Errors
    /// See [`Error`](crate::Error). The server refuses a value that is no number.
    pub fn count(&self, key: &[u8], count: Count) -> Result<Option<Counter>> {
        let key = Key::new(key)?;
        let (answer, server) = self.ask(Request::Arith(arith(key, count, false)), &key, Kind::Writes)?;
        match answer.reply {
            Reply::NotFound(_) => Ok(None),
            Reply::Value { facts, .. } => {
                // A counter that went down may have blanks behind it.
                let digits = answer.value.trim_ascii();
                let value = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
                let bad = || Malformed::Number(String::from_utf8_lossy(&answer.value).into_owned());
                let value = value.ok_or_else(|| self.unfitting(server, &bad().to_string()))?;
                Ok(Some(Counter { value, ttl_s: facts.ttl_s, cas: facts.cas }))
            }
            other => Err(self.unexpected(server, other)),
        }
    }
}

pub(super) fn arith(key: Key<'_>, count: Count, quiet: bool) -> Arith<'_> {
    let Count { delta, decrement, initial, touch } = count;
    Arith { key, delta, decrement, initial, touch, compare: None, quiet }
}
