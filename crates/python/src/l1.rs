//! The class `L1`: the cache in shared memory alone.

use std::path::PathBuf;

use larder_client::{Entry, L1Options, L1Stats, Stored, now_ms};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arguments::{bytes_of, duration_of};
use crate::errors::of_l1;

/// The size of a new file unless another is given.
const BYTES_DEFAULT: u64 = 64 << 20;

/// A cache in shared memory: all processes of the user on this host that open the same name share it. Keys are `bytes`
/// or `str`, values `bytes`.
#[pyclass(frozen, module = "larder")]
pub struct L1 {
    inner: larder_client::L1,
}

impl L1 {
    /// Opens the cache with this name as Python's constructor does by default.
    ///
    /// # Errors
    /// As [`L1Options::open`].
    pub fn named(name: &str) -> PyResult<L1> {
        L1::new(name, BYTES_DEFAULT, None, None, None)
    }

    /// Opens the cache with this name for the values of certain servers.
    ///
    /// # Errors
    /// As [`L1Options::open_for`].
    fn of_servers(options: &L1Options, name: &str, servers: &[&str]) -> PyResult<L1> {
        let inner = options.open_for(name, servers).map_err(|error| of_l1(&error))?;
        Ok(L1 { inner })
    }

    /// Returns the client's own.
    pub fn inner(&self) -> &larder_client::L1 {
        &self.inner
    }
}

/// A cache as an argument: one that is open, or its name.
#[derive(FromPyObject)]
pub enum Shared {
    /// It is open.
    Open(Py<L1>),
    /// Its name.
    Name(String),
}

impl Shared {
    /// Returns the cache, and opens it first if need be.
    ///
    /// # Errors
    /// As [`L1::named`].
    pub fn open(self, py: Python<'_>) -> PyResult<Py<L1>> {
        match self {
            Shared::Open(l1) => Ok(l1),
            Shared::Name(name) => Py::new(py, L1::named(&name)?),
        }
    }

    /// Returns the cache; one that has to be opened by its name is for the values of these servers.
    ///
    /// # Errors
    /// As [`L1::of_servers`].
    pub fn open_for(self, py: Python<'_>, servers: &[&str]) -> PyResult<Py<L1>> {
        match self {
            Shared::Open(l1) => Ok(l1),
            Shared::Name(name) => {
                Py::new(py, L1::of_servers(&options(BYTES_DEFAULT, None, None), &name, servers)?)
            }
        }
    }
}

/// Returns how a cache is opened or made.
fn options(size: u64, directory: Option<PathBuf>, items: Option<u64>) -> L1Options {
    let mut options = L1Options::new().bytes(size);
    if let Some(directory) = directory {
        options = options.directory(directory);
    }
    if let Some(items) = items {
        options = options.items(items);
    }
    options
}

fn counts<'py>(py: Python<'py>, stats: &L1Stats) -> PyResult<Bound<'py, PyDict>> {
    let counts = PyDict::new(py);
    for (name, count) in [
        ("hits", stats.hits),
        ("misses", stats.misses),
        ("stored", stats.stored),
        ("refused", stats.refused),
        ("deleted", stats.deleted),
        ("evicted", stats.evicted),
        ("moved", stats.moved),
        ("shards_reset", stats.shards_reset),
    ] {
        counts.set_item(name, count)?;
    }
    Ok(counts)
}

#[pymethods]
impl L1 {
    #[new]
    #[pyo3(signature = (name, *, size=BYTES_DEFAULT, directory=None, items=None, servers=None))]
    fn new(
        name: &str,
        size: u64,
        directory: Option<PathBuf>,
        items: Option<u64>,
        servers: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let options = options(size, directory, items);
        if let Some(servers) = servers {
            return L1::of_servers(&options, name, &servers.iter().map(String::as_str).collect::<Vec<_>>());
        }
        let inner = options.open(name).map_err(|error| of_l1(&error))?;
        Ok(L1 { inner })
    }

    /// Makes a cache without a file, which is shared with the children that this process forks.
    #[staticmethod]
    #[pyo3(signature = (*, size=BYTES_DEFAULT, items=None))]
    fn anonymous(size: u64, items: Option<u64>) -> PyResult<Self> {
        let inner = options(size, None, items).anonymous().map_err(|error| of_l1(&error))?;
        Ok(L1 { inner })
    }

    /// Removes the file of the cache with this name. Processes that have it open keep it.
    #[staticmethod]
    #[pyo3(signature = (name, *, directory=None))]
    fn remove(name: &str, directory: Option<PathBuf>) -> PyResult<bool> {
        options(BYTES_DEFAULT, directory, None).remove(name).map_err(|error| of_l1(&error))
    }

    /// Returns the value of a key, or the default.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = key.py();
        let found = self.inner.get_with(bytes_of(key)?, |_, value| PyBytes::new(py, value).into_any());
        Ok(found.or(default))
    }

    /// Stores a value for so many seconds; for ever without. Returns false if it is too large to be kept.
    #[pyo3(signature = (key, value, expire=None))]
    fn set(&self, key: &Bound<'_, PyAny>, value: &[u8], expire: Option<f64>) -> PyResult<bool> {
        let until_ms = match expire {
            Some(expire) => {
                let left_ms = u64::try_from(duration_of("expire", expire)?.as_millis()).unwrap_or(u64::MAX);
                now_ms().saturating_add(left_ms)
            }
            None => u64::MAX,
        };
        let entry = Entry { value, fresh_until_ms: until_ms, stale_until_ms: until_ms, ..Entry::default() };
        let wire = bytes_of(key)?;
        if wire.len() > larder_client::KEY_BYTES_MAX {
            return Err(PyValueError::new_err("a key has 250 bytes at most"));
        }
        // A change waits for the lock of a part of the cache, up to a second where its holder was stopped.
        Ok(key.py().detach(|| self.inner.set(wire, &entry)) == Stored::Yes)
    }

    /// Forgets a key. Returns whether it was there.
    fn delete(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let wire = bytes_of(key)?;
        Ok(key.py().detach(|| self.inner.delete(wire)))
    }

    /// Forgets everything.
    fn clear(&self, py: Python<'_>) {
        py.detach(|| self.inner.clear());
    }

    /// Returns the counts of all processes together since the file was made.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counts(py, &self.inner.stats())
    }

    /// Returns the counts of each process that lives, with its `pid`, and at last those of all others, with `pid` 0:
    /// of processes that have ended, and of those beyond the file's rows.
    fn stats_by_process<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let found = py.detach(|| self.inner.stats_by_process());
        let living = found.living.iter().map(|process| (process.pid, &process.stats));
        let of_process = |(pid, stats): (u32, &L1Stats)| {
            let counts = counts(py, stats)?;
            counts.set_item("pid", pid)?;
            Ok(counts)
        };
        living.chain([(0, &found.others)]).map(of_process).collect()
    }

    /// The size of the file in bytes.
    #[getter]
    fn size(&self) -> u64 {
        self.inner.bytes()
    }

    /// The longest value in bytes.
    #[getter]
    fn value_bytes_max(&self) -> usize {
        self.inner.value_bytes_max()
    }

    /// The path of the file; `None` if there is no place for one, so that only forked children share the cache.
    #[getter]
    fn path(&self) -> Option<String> {
        self.inner.path().map(|path| path.display().to_string())
    }

    /// Returns about how many entries there are.
    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.inner.get_with(bytes_of(key)?, |_, _| ()).is_some())
    }

    fn __repr__(&self) -> String {
        let path = self.path().unwrap_or_else(|| "without a file".to_string());
        format!("<larder.L1 {path}, {} bytes>", self.inner.bytes())
    }
}
