//! The class `Client`: pymemcache's names and signatures over the Rust client, with or without shared memory in front.

mod admin;
mod cache;

use larder_client::{Cas, Count, Options, Put, Server, breakers_in};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::arguments::{Keys, bytes_of, cas_of, duration_of, login_of, servers_of};
use crate::codec::Codec;
use crate::errors::{is_failure, of_client};
use crate::l1::Shared;
use crate::tls::Spoken;
use cache::{Cache, Found};

/// A client of one or many servers. Threads may share it, and forked children go on with it.
#[pyclass(frozen, subclass, module = "larder")]
pub struct Client {
    cache: Cache,
    keys: Keys,
    codec: Codec,
    ignore_exc: bool,
    default_noreply: bool,
}

/// A key, its bytes on the wire, and what is stored under it.
type KeyedValue<'py> = (Bound<'py, PyAny>, Vec<u8>, (Bound<'py, PyBytes>, u32));

impl Client {
    /// Returns the Rust client.
    pub fn inner(&self) -> &larder_client::Client {
        &self.cache.client
    }

    /// Returns the cache in shared memory with the Rust client behind it, if there is one.
    pub fn near(&self) -> Option<&larder_client::Tiered> {
        self.cache.near.as_ref()
    }

    /// Returns what is done to keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns what is done to values.
    pub fn codec(&self) -> &Codec {
        &self.codec
    }

    /// Returns the same client with shared memory in front of it.
    pub fn with_near(&self, py: Python<'_>, near: larder_client::Tiered) -> Client {
        Client {
            cache: Cache { client: self.cache.client.clone(), near: Some(near) },
            keys: self.keys.clone(),
            codec: self.codec.clone_ref(py),
            ..*self
        }
    }

    /// Returns the value of a key that shared memory has fresh.
    #[inline]
    pub fn peek<'py>(&self, key: &Bound<'py, PyAny>, wire: &[u8]) -> Option<PyResult<Bound<'py, PyAny>>> {
        self.cache.near.as_ref()?.peek(wire, |hit, value| self.codec.load(key, value, hit.flags))
    }

    /// Returns the result of a call, or `ignored` for a failure that is to be ignored.
    fn or_ignored<T>(&self, py: Python<'_>, result: larder_client::Result<T>, ignored: T) -> PyResult<T> {
        match result {
            Err(error) if self.ignore_exc && is_failure(&error) => Ok(ignored),
            result => result.map_err(|error| of_client(py, &error)),
        }
    }

    fn is_quiet(&self, noreply: Option<bool>) -> bool {
        // What the server has not done yet could be read from it again, to stay in shared memory.
        noreply.unwrap_or(self.default_noreply) && self.cache.near.is_none()
    }

    /// Stores one value by `loud`, or by `quiet` without waiting for the reply.
    fn store(
        &self,
        (key, value): (&Bound<'_, PyAny>, &Bound<'_, PyAny>),
        (expire, noreply, flags): (i32, Option<bool>, Option<u32>),
        quiet: impl FnOnce(larder_client::Quiet<'_>, &[u8], &[u8], Put) -> larder_client::Result<()> + Send,
        loud: impl FnOnce(&Cache, &[u8], &[u8], Put) -> larder_client::Result<bool> + Send,
    ) -> PyResult<bool> {
        let wire = self.keys.wire(key)?;
        let (bytes, flags) = self.codec.dump(key, value, flags)?;
        let (value, put) = (bytes.as_bytes(), Put { flags, exptime: expire });
        let is_quiet = self.is_quiet(noreply);
        let stored = key.py().detach(|| match is_quiet {
            true => quiet(self.cache.client.quiet(), &wire, value, put).map(|()| true),
            false => loud(&self.cache, &wire, value, put),
        });
        self.or_ignored(key.py(), stored, false)
    }

    /// Changes one item, without a value of Python's.
    fn alter<T: Send>(
        &self,
        key: &Bound<'_, PyAny>,
        ignored: T,
        alter: impl FnOnce(&Cache, &[u8]) -> larder_client::Result<T> + Send,
    ) -> PyResult<T> {
        let wire = self.keys.wire(key)?;
        let result = key.py().detach(|| alter(&self.cache, &wire));
        self.or_ignored(key.py(), result, ignored)
    }

    fn count(&self, key: &Bound<'_, PyAny>, noreply: bool, count: Count) -> PyResult<Option<u64>> {
        let is_quiet = self.is_quiet(Some(noreply));
        let value = self.alter(key, None, move |cache, wire| match is_quiet {
            true => cache.client.quiet().count(wire, count).map(|()| None),
            false => cache.change(wire, |client| Ok(client.count(wire, count)?.map(|counter| counter.value))),
        })?;
        Ok(value.filter(|_| !noreply))
    }

    fn read<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        read: impl FnOnce(&Cache, &[u8]) -> larder_client::Result<Option<Found>> + Send,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Option<u64>)>> {
        let found = self.alter(key, None, read)?;
        found.map(|found| Ok((self.codec.load(key, &found.value, found.flags)?, found.cas))).transpose()
    }

    /// Reads many keys, and calls `each` for those that are there.
    fn read_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        with_cas: bool,
        mut each: impl FnMut(Bound<'py, PyAny>, Bound<'py, PyAny>, Option<u64>) -> PyResult<()>,
    ) -> PyResult<()> {
        let py = keys.py();
        let keys: Vec<Bound<'py, PyAny>> = keys.try_iter()?.collect::<PyResult<_>>()?;
        let wires: Vec<_> = keys.iter().map(|key| self.keys.wire(key)).collect::<PyResult<_>>()?;
        let results = py.detach(|| self.cache.get_many(&wires, with_cas));
        for (key, result) in keys.iter().zip(results) {
            if let Some(found) = self.or_ignored(py, result, None)? {
                each(key.clone(), self.codec.load(key, &found.value, found.flags)?, found.cas)?;
            }
        }
        Ok(())
    }
}

/// As pymemcache has a cas unique: its digits.
fn cas_token<'py>(py: Python<'py>, cas: Option<u64>) -> Option<Bound<'py, PyAny>> {
    cas.map(|cas| PyBytes::new(py, cas.to_string().as_bytes()).into_any())
}

type Pair<'py> = (Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (
        server, serde=None, connect_timeout=None, timeout=None, ignore_exc=false, key_prefix=None,
        default_noreply=true, allow_unicode_keys=false, encoding="ascii", *, max_pool_size=None,
        placement="rendezvous", on_down="fail", login=None, tls=None, breakers=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are pymemcache's, and named in Python")]
    fn new(
        server: &Bound<'_, PyAny>,
        serde: Option<Py<PyAny>>,
        connect_timeout: Option<f64>,
        timeout: Option<f64>,
        ignore_exc: bool,
        key_prefix: Option<&Bound<'_, PyAny>>,
        default_noreply: bool,
        allow_unicode_keys: bool,
        encoding: &str,
        max_pool_size: Option<usize>,
        placement: &str,
        on_down: &str,
        login: Option<(String, Bound<'_, PyAny>)>,
        tls: Option<Spoken>,
        breakers: Option<Shared>,
    ) -> PyResult<Self> {
        let (py, servers) = (server.py(), servers_of(server)?);
        let names: Vec<String> = servers.iter().map(Server::label).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let shared = breakers.map(|shared| shared.open_for(py, &names)).transpose()?;
        let mut options = Options {
            placement: admin::placement_of(placement)?,
            on_down: admin::on_down_of(on_down)?,
            login: login.map(login_of).transpose()?,
            tls: tls.map(Spoken::tls).transpose()?.flatten(),
            breaker_word: shared.map(|l1| breakers_in(l1.get().inner(), &servers)),
            ..Options::default()
        };
        if let Some(seconds) = connect_timeout {
            options.connect_timeout = duration_of("connect_timeout", seconds)?;
        }
        if let Some(seconds) = timeout {
            options.timeout = duration_of("timeout", seconds)?;
        }
        options.connections_max = max_pool_size.unwrap_or(options.connections_max);
        let client = larder_client::Client::new(servers, options);
        let prefix = key_prefix.map(bytes_of).transpose()?.unwrap_or_default().to_vec();
        Ok(Client {
            cache: Cache { client: client.map_err(|error| of_client(py, &error))?, near: None },
            keys: Keys { prefix, are_unicode: allow_unicode_keys },
            codec: Codec { serde, encoding: encoding.to_string() },
            ignore_exc,
            default_noreply,
        })
    }

    /// Returns the value of a key, or the default.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.cache.near.is_some()
            && let Some(found) = self.peek(key, &self.keys.wire(key)?)
        {
            return found.map(Some);
        }
        Ok(self.read(key, |cache, wire| cache.get(wire))?.map(|(value, _)| value).or(default))
    }

    /// Returns the value of a key and its cas unique, for `cas`. Always asks the server.
    #[pyo3(signature = (key, default=None, cas_default=None))]
    fn gets<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
        cas_default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Pair<'py>> {
        let found = self.read(key, |cache, wire| Ok(cache.client.gets(wire)?.and_then(Found::of)))?;
        Ok(found.map_or((default, cas_default), |(value, cas)| (Some(value), cas_token(key.py(), cas))))
    }

    /// Returns the value of a key, or the default, and gives it a new expiry.
    #[pyo3(signature = (key, expire=0, default=None))]
    fn gat<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        expire: i32,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.gats(key, expire, default, None)?.0)
    }

    /// As `gat`, with the cas unique.
    #[pyo3(signature = (key, expire=0, default=None, cas_default=None))]
    fn gats<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        expire: i32,
        default: Option<Bound<'py, PyAny>>,
        cas_default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Pair<'py>> {
        let found = self.read(key, |cache, wire| {
            cache.change(wire, |client| Ok(client.gat(wire, expire)?.and_then(Found::of)))
        })?;
        Ok(found.map_or((default, cas_default), |(value, cas)| (Some(value), cas_token(key.py(), cas))))
    }

    /// Returns the values of the keys that are there.
    fn get_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(keys.py());
        self.read_many(keys, false, |key, value, _| found.set_item(key, value))?;
        Ok(found)
    }

    /// Returns the values of the keys that are there, with their cas uniques. Always asks the servers.
    fn gets_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let (py, found) = (keys.py(), PyDict::new(keys.py()));
        self.read_many(keys, true, |key, value, cas| found.set_item(key, (value, cas_token(py, cas))))?;
        Ok(found)
    }

    /// Stores a value for `expire` seconds, 0 for ever.
    #[pyo3(signature = (key, value, expire=0, noreply=None, flags=None))]
    fn set(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        expire: i32,
        noreply: Option<bool>,
        flags: Option<u32>,
    ) -> PyResult<bool> {
        self.store(
            (key, value),
            (expire, noreply, flags),
            |quiet, key, value, put| quiet.set(key, value, put),
            |cache, key, value, put| cache.set(key, value, put),
        )
    }

    /// Stores a value if there is none. Returns whether it did.
    #[pyo3(signature = (key, value, expire=0, noreply=None, flags=None))]
    fn add(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        expire: i32,
        noreply: Option<bool>,
        flags: Option<u32>,
    ) -> PyResult<bool> {
        self.store(
            (key, value),
            (expire, noreply, flags),
            |quiet, key, value, put| quiet.add(key, value, put),
            |cache, key, value, put| cache.change(key, |client| client.add(key, value, put)),
        )
    }

    /// Stores a value if there is one. Returns whether it did.
    #[pyo3(signature = (key, value, expire=0, noreply=None, flags=None))]
    fn replace(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        expire: i32,
        noreply: Option<bool>,
        flags: Option<u32>,
    ) -> PyResult<bool> {
        self.store(
            (key, value),
            (expire, noreply, flags),
            |quiet, key, value, put| quiet.replace(key, value, put),
            |cache, key, value, put| cache.change(key, |client| client.replace(key, value, put)),
        )
    }

    /// Puts bytes behind a value. Its expiry and flags stay. Returns false if there is none.
    #[pyo3(signature = (key, value, expire=0, noreply=None, flags=None))]
    fn append(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        expire: i32,
        noreply: Option<bool>,
        flags: Option<u32>,
    ) -> PyResult<bool> {
        self.store(
            (key, value),
            (expire, noreply, flags),
            |quiet, key, value, _| quiet.append(key, value),
            |cache, key, value, _| cache.change(key, |client| client.append(key, value)),
        )
    }

    /// Puts bytes before a value. Its expiry and flags stay. Returns false if there is none.
    #[pyo3(signature = (key, value, expire=0, noreply=None, flags=None))]
    fn prepend(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        expire: i32,
        noreply: Option<bool>,
        flags: Option<u32>,
    ) -> PyResult<bool> {
        self.store(
            (key, value),
            (expire, noreply, flags),
            |quiet, key, value, _| quiet.prepend(key, value),
            |cache, key, value, _| cache.change(key, |client| client.prepend(key, value)),
        )
    }

    /// Stores a value if the item has not changed since it was read with this cas unique. Returns false if it has,
    /// and `None` if it is gone. It always waits for the reply.
    #[pyo3(signature = (key, value, cas, expire=0, noreply=false, flags=None))]
    fn cas(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        cas: &Bound<'_, PyAny>,
        expire: i32,
        noreply: bool,
        flags: Option<u32>,
    ) -> PyResult<Option<bool>> {
        let _ = noreply;
        let cas = cas_of(cas)?;
        let (bytes, flags) = self.codec.dump(key, value, flags)?;
        let (value, put) = (bytes.as_bytes(), Put { flags, exptime: expire });
        self.alter(key, Some(false), |cache, wire| {
            let stored = cache.change(wire, |client| client.cas(wire, value, cas, put))?;
            Ok(match stored {
                Cas::Stored(_) => Some(true),
                Cas::Exists => Some(false),
                Cas::NotFound => None,
            })
        })
    }

    /// Stores many values. Returns the keys that could not be stored.
    #[pyo3(signature = (values, expire=0, noreply=None, flags=None))]
    fn set_many<'py>(
        &self,
        values: &Bound<'py, PyDict>,
        expire: i32,
        noreply: Option<bool>,
        flags: Option<u32>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let py = values.py();
        let mut items: Vec<KeyedValue<'py>> = Vec::with_capacity(values.len());
        for (key, value) in values.iter() {
            let wire = self.keys.wire(&key)?.into_owned();
            let dumped = self.codec.dump(&key, &value, flags)?;
            items.push((key, wire, dumped));
        }
        let sent =
            items.iter().map(|(_, wire, (bytes, flags))| (*flags, (wire.as_slice(), bytes.as_bytes())));
        let sent: Vec<_> = sent.collect();
        let is_quiet = self.is_quiet(noreply);
        let stored = py.detach(|| self.cache.set_many(&sent, expire, is_quiet));
        let mut failed = Vec::new();
        for ((key, ..), stored) in items.into_iter().zip(stored) {
            match stored {
                Ok(()) => {}
                Err(error) if is_failure(&error) => failed.push(key),
                Err(error) => return Err(of_client(py, &error)),
            }
        }
        Ok(failed)
    }

    /// Removes an item. Returns whether there was one.
    #[pyo3(signature = (key, noreply=None))]
    fn delete(&self, key: &Bound<'_, PyAny>, noreply: Option<bool>) -> PyResult<bool> {
        let is_quiet = self.is_quiet(noreply);
        self.alter(key, false, move |cache, wire| match is_quiet {
            true => cache.client.quiet().delete(wire).map(|()| true),
            false => cache.change(wire, |client| client.delete(wire)),
        })
    }

    /// Removes many items. Returns true.
    #[pyo3(signature = (keys, noreply=None))]
    fn delete_many(&self, keys: &Bound<'_, PyAny>, noreply: Option<bool>) -> PyResult<bool> {
        let py = keys.py();
        let keys: Vec<Bound<'_, PyAny>> = keys.try_iter()?.collect::<PyResult<_>>()?;
        let wires: Vec<_> = keys.iter().map(|key| self.keys.wire(key)).collect::<PyResult<_>>()?;
        let is_quiet = self.is_quiet(noreply);
        for result in py.detach(|| self.cache.delete_many(&wires, is_quiet)) {
            self.or_ignored(py, result, ())?;
        }
        Ok(true)
    }

    /// Adds to a counter. Returns its new value, or `None` if there is no such counter. With `initial` a missing one is
    /// created with that value and `expire`, in the same round trip.
    #[pyo3(signature = (key, value, noreply=false, *, initial=None, expire=0))]
    fn incr(
        &self,
        key: &Bound<'_, PyAny>,
        value: u64,
        noreply: bool,
        initial: Option<u64>,
        expire: i32,
    ) -> PyResult<Option<u64>> {
        let initial = initial.map(|initial| (initial, expire));
        self.count(key, noreply, Count { delta: value, initial, ..Count::default() })
    }

    /// Takes from a counter, which stops at 0; as `incr`.
    #[pyo3(signature = (key, value, noreply=false, *, initial=None, expire=0))]
    fn decr(
        &self,
        key: &Bound<'_, PyAny>,
        value: u64,
        noreply: bool,
        initial: Option<u64>,
        expire: i32,
    ) -> PyResult<Option<u64>> {
        let initial = initial.map(|initial| (initial, expire));
        self.count(key, noreply, Count { delta: value, decrement: true, initial, ..Count::default() })
    }

    /// Gives an item a new expiry. Returns whether there is one.
    #[pyo3(signature = (key, expire=0, noreply=None))]
    fn touch(&self, key: &Bound<'_, PyAny>, expire: i32, noreply: Option<bool>) -> PyResult<bool> {
        let is_quiet = self.is_quiet(noreply);
        self.alter(key, false, move |cache, wire| match is_quiet {
            true => cache.client.quiet().touch(wire, expire).map(|()| true),
            false => cache.change(wire, |client| client.touch(wire, expire)),
        })
    }

    /// Returns the seconds that an item has left to live: -1 for ever, `None` if there is none. Always asks the server.
    fn ttl(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
        self.alter(key, None, |cache, wire| cache.ttl(wire))
    }

    /// Invalidates all items of all servers, now or after `delay` seconds.
    #[pyo3(signature = (delay=0, noreply=None))]
    fn flush_all(&self, py: Python<'_>, delay: u32, noreply: Option<bool>) -> PyResult<bool> {
        let _ = noreply;
        for result in py.detach(|| self.cache.flush_all(delay)) {
            self.or_ignored(py, result, ())?;
        }
        Ok(true)
    }

    /// Returns the statistics of a server, by default the first one; `args` are words such as "settings".
    #[pyo3(signature = (*args, server=0))]
    fn stats<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        server: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        admin::stats(py, &self.cache.client, args, server)
    }

    /// Returns the version of a server, by default the first one.
    #[pyo3(signature = (*, server=0))]
    fn version<'py>(&self, py: Python<'py>, server: usize) -> PyResult<Bound<'py, PyBytes>> {
        admin::version(py, &self.cache.client, server)
    }

    /// The names of the servers, in order.
    #[getter]
    fn servers(&self) -> Vec<&str> {
        self.cache.client.servers().collect()
    }

    /// Closes the connections that are not in use. The next call makes new ones.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.cache.client.close_idle());
    }

    /// As `close`.
    fn quit(&self, py: Python<'_>) {
        self.close(py);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.get(key, None)?.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set(key, value, 0, Some(true), None).map(drop)
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.delete(key, Some(true)).map(drop)
    }

    fn __repr__(&self) -> String {
        format!("<larder client of {}>", self.servers().join(", "))
    }
}
