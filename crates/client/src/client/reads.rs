//! Reads: of one key or many, with the cas unique, with a new expiry, with leases.

use super::call::Kind;
use super::gate::Gate;
use super::{Client, Fetch, Fetched, Item, Lease};
use crate::error::Result;
use crate::exchange::Answer;
use crate::key::Key;
use crate::simulation::{Fault, is_broken};
use crate::wire::{Facts, Get, Reply, Request};

impl Client {
    /// Returns the value of a key, or none.
    ///
    /// # Errors
    /// See [`Error`](crate::Error).
    pub fn get(&self, key: &[u8]) -> Result<Option<Item>> {
        let get = Get { value: true, flags: true, ..Get::new(Key::new(key)?) };
        self.read(get, Kind::Reads)
    }

    /// Returns the value of a key with its cas unique, for [`cas`](Self::cas).
    ///
    /// # Errors
    /// See [`Error`](crate::Error).
    pub fn gets(&self, key: &[u8]) -> Result<Option<Item>> {
        let get = Get { value: true, flags: true, cas: true, ..Get::new(Key::new(key)?) };
        self.read(get, Kind::Reads)
    }

    /// Returns the value of a key and gives it a new expiry, as [`Put::exptime`](super::Put::exptime).
    ///
    /// # Errors
    /// See [`Error`](crate::Error).
    pub fn gat(&self, key: &[u8], exptime: i32) -> Result<Option<Item>> {
        let touch = Some(exptime);
        let get = Get { value: true, flags: true, cas: true, touch, ..Get::new(Key::new(key)?) };
        self.read(get, Kind::Reads)
    }

    /// Gives an item a new expiry, as [`Put::exptime`](super::Put::exptime). Returns false if there is none.
    ///
    /// # Errors
    /// See [`Error`](crate::Error).
    pub fn touch(&self, key: &[u8], exptime: i32) -> Result<bool> {
        let get = Get { touch: Some(exptime), ..Get::new(Key::new(key)?) };
        Ok(self.read(get, Kind::Reads)?.is_some())
    }

    /// Returns the values of many keys, in their order. All servers are asked at once. A server that fails fails only
    /// its own keys.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<Item>>> {
        self.read_many(keys, false)
    }

    /// Returns the values of many keys like [`get_many`](Self::get_many), with their cas uniques.
    pub fn gets_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<Item>>> {
        self.read_many(keys, true)
    }

    /// Returns for each key, in order, whether it has an item. Does not count as an access.
    pub fn exist_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<bool>> {
        let requests = keys.iter().map(|key| {
            let key = Key::new(key.as_ref())?;
            Ok((key, Request::Get(Get { no_bump: true, ..Get::new(key) })))
        });
        let found = |answer: Result<(Answer, usize)>| {
            let (answer, server) = answer?;
            Ok(self.found(answer, server, false)?.is_some())
        };
        self.ask_many(requests, Kind::Reads).into_iter().map(found).collect()
    }

    /// Reads with everything that the meta protocol has: only what changed, leases to renew or to create an item, a new
    /// expiry. Returns the item with its flags, cas unique and seconds to live.
    ///
    /// # Errors
    /// See [`Error`](crate::Error).
    pub fn fetch(&self, key: &[u8], fetch: &Fetch) -> Result<Fetched> {
        let key = Key::new(key)?;
        let server = Gate::new(self).place(key.bytes())?;
        let kind = if fetch.takes_lease() { Kind::Writes } else { Kind::Reads };
        let answer = self.ask_server(Request::Get(fetch.of(key, server)), server, kind)?;
        self.fetched(answer, server, key, fetch)
    }

    /// Reads many keys like [`fetch`](Self::fetch), each with what it asks for, and returns what became of each, in
    /// order. All servers are asked at once.
    pub fn fetch_many<K: AsRef<[u8]>>(&self, keys: &[(K, Fetch)]) -> Vec<Result<Fetched>> {
        let requests = keys.iter().map(|(key, fetch)| {
            let key = Key::new(key.as_ref())?;
            Ok((key, Request::Get(fetch.of(key, self.server_of(key.bytes())))))
        });
        let takes_lease = keys.iter().any(|(_, fetch)| fetch.takes_lease());
        let answers = self.ask_many(requests, if takes_lease { Kind::Writes } else { Kind::Reads });
        let fetched = |(answer, (key, fetch)): (Result<_>, &(K, Fetch))| {
            let (answer, server) = answer?;
            self.fetched(answer, server, Key::new(key.as_ref())?, fetch)
        };
        answers.into_iter().zip(keys).map(fetched).collect()
    }

    fn fetched(&self, answer: Answer, server: usize, key: Key<'_>, fetch: &Fetch) -> Result<Fetched> {
        let Answer { reply, value, connected_ms } = answer;
        match reply {
            Reply::Done(_) if may_be_another_life(fetch, connected_ms) => {
                self.fetch(key.bytes(), &Fetch { unless_cas: None, copied_ms: None, ..*fetch })
            }
            // Another server than the one that gave the subscription its number.
            Reply::Refused(_) if fetch.announce.is_some() => {
                self.fetch(key.bytes(), &Fetch { announce: None, ..*fetch })
            }
            Reply::Miss(_) => Ok(Fetched::Miss),
            Reply::Value { facts, .. } => Ok(Fetched::Found(item(value, &facts))),
            Reply::Done(facts) if fetch.unless_cas.is_some() => Ok(Fetched::Unchanged(item(value, &facts))),
            other => Err(self.unexpected(server, other)),
        }
    }

    /// Returns an item's metadata as the server words it (`me`), or none. Does not count as an access.
    ///
    /// # Errors
    /// See [`Error`](crate::Error).
    pub fn debug(&self, key: &[u8]) -> Result<Option<String>> {
        let key = Key::new(key)?;
        let (answer, server) = self.ask(Request::Debug(key), &key, Kind::Reads)?;
        match answer.reply {
            Reply::Debug(facts) => Ok(Some(facts)),
            Reply::Miss(_) => Ok(None),
            other => Err(self.unexpected(server, other)),
        }
    }

    fn read(&self, get: Get<'_>, kind: Kind) -> Result<Option<Item>> {
        let (key, wants_value) = (get.key, get.value);
        let (answer, server) = self.ask(Request::Get(get), &key, kind)?;
        self.found(answer, server, wants_value)
    }

    fn read_many<K: AsRef<[u8]>>(&self, keys: &[K], cas: bool) -> Vec<Result<Option<Item>>> {
        let requests = keys.iter().map(|key| {
            let key = Key::new(key.as_ref())?;
            Ok((key, Request::Get(Get { value: true, flags: true, cas, ..Get::new(key) })))
        });
        let answers = self.ask_many(requests, Kind::Reads);
        answers
            .into_iter()
            .map(|answer| answer.and_then(|(answer, at)| self.found(answer, at, true)))
            .collect()
    }

    fn found(&self, answer: Answer, server: usize, wants_value: bool) -> Result<Option<Item>> {
        match answer.reply {
            Reply::Miss(_) => Ok(None),
            Reply::Value { facts, .. } if wants_value => Ok(Some(item(answer.value, &facts))),
            Reply::Done(facts) if !wants_value => Ok(Some(item(answer.value, &facts))),
            other => Err(self.unexpected(server, other)),
        }
    }
}

/// Returns whether the server may have been restarted between the copy and this connection.
fn may_be_another_life(fetch: &Fetch, connected_ms: u64) -> bool {
    fetch.copied_ms.is_some_and(|copied_ms| connected_ms >= copied_ms)
        && !is_broken(Fault::UnchangedOverReconnect)
}

fn item(value: Vec<u8>, facts: &Facts) -> Item {
    let lease = Lease { is_mine: facts.has_lease, is_taken: facts.lease_is_taken, is_stale: facts.is_stale };
    let Facts { flags, cas, ttl_s, is_announced, .. } = *facts;
    Item { value, flags: flags.unwrap_or(0), cas, ttl_s, lease, is_announced }
}

impl Fetch {
    /// Returns whether a client that asks again after a lost reply might have lost the lease, too.
    fn takes_lease(&self) -> bool {
        self.vivify.is_some() || self.recache.is_some()
    }

    /// Returns the request to the server with this number.
    fn of<'k>(&self, key: Key<'k>, server: usize) -> Get<'k> {
        let announce = self.announce.filter(|announce| announce.server == server);
        Get {
            value: true,
            cas: true,
            flags: true,
            ttl: true,
            no_bump: self.no_bump,
            touch: self.touch,
            vivify: self.vivify,
            recache: self.recache,
            unless_cas: self.unless_cas,
            announce: announce.map(|announce| (announce.subscription, announce.token)),
            ..Get::new(key)
        }
    }
}
