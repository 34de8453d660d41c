//! The class `Tiered`: a `Client` with the cache in shared memory in front of it.

use larder_client::{Push, TieredOptions, Times};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::arguments::duration_of;
use crate::client::Client;
use crate::errors::of_client;
use crate::l1::{L1, Shared};

/// A client whose reads are answered from shared memory where they can be: all processes of the host that give the
/// same name share one copy of each value. It has all methods of `Client`. A value is at most `fresh` seconds old, or
/// `stale` more while one process renews it and while its server does not answer. With `push`, a value whose changes
/// are announced is used for minutes, and the server had it at most `exact_within` seconds before the call.
#[pyclass(frozen, subclass, extends = Client, module = "larder")]
pub struct Tiered {
    l1: Py<L1>,
}

#[pymethods]
impl Tiered {
    #[new]
    #[pyo3(signature = (
        l1, client, *,
        fresh=1.0, stale=10.0, negative=0.0, wait=1.0, lease=10.0, early_percent=0, push=false,
        exact_within=Some(0.1),
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are named in Python")]
    fn new(
        py: Python<'_>,
        l1: Shared,
        client: &Client,
        fresh: f64,
        stale: f64,
        negative: f64,
        wait: f64,
        lease: f64,
        early_percent: u32,
        push: bool,
        exact_within: Option<f64>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let l1 = l1.open_for(py, &client.inner().servers().collect::<Vec<_>>())?;
        let exact_within = exact_within.map(|seconds| duration_of("exact_within", seconds)).transpose()?;
        let options = TieredOptions {
            fresh: duration_of("fresh", fresh)?,
            stale: duration_of("stale", stale)?,
            negative: duration_of("negative", negative)?,
            wait: duration_of("wait", wait)?,
            lease: duration_of("lease", lease)?,
            early_percent,
            push: push.then(|| Push { exact_within, ..Push::default() }),
            ..TieredOptions::default()
        };
        let near = larder_client::Tiered::new(l1.get().inner().clone(), client.inner().clone(), options);
        Ok(PyClassInitializer::from(client.with_near(py, near)).add_subclass(Tiered { l1 }))
    }

    /// The cache in shared memory.
    #[getter]
    fn l1(&self, py: Python<'_>) -> Py<L1> {
        self.l1.clone_ref(py)
    }

    /// Returns this with other times for the keys that begin with `prefix`; of several prefixes the longest decides.
    /// What is not given stays. All processes that use the shared memory must set the same.
    #[pyo3(signature = (prefix, *, fresh=None, stale=None, negative=None))]
    fn with_prefix(
        slf: &Bound<'_, Self>,
        prefix: &Bound<'_, PyAny>,
        fresh: Option<f64>,
        stale: Option<f64>,
        negative: Option<f64>,
    ) -> PyResult<Py<Self>> {
        let wire = slf.as_super().get().keys().wire(prefix)?;
        Self::changed(slf, |near| {
            let times = times_of(near.times_of(&wire), fresh, stale, negative)?;
            Ok(near.clone().with_prefix(&wire, times))
        })
    }

    /// Returns this for calls that want fresher values, or take older ones, whatever the key. What is not given is as
    /// for keys without a prefix of their own. An entry is found for no longer than the times of its key allow.
    #[pyo3(signature = (*, fresh=None, stale=None, negative=None))]
    fn using(
        slf: &Bound<'_, Self>,
        fresh: Option<f64>,
        stale: Option<f64>,
        negative: Option<f64>,
    ) -> PyResult<Py<Self>> {
        Self::changed(slf, |near| Ok(near.using(times_of(near.times_of(b""), fresh, stale, negative)?)))
    }

    /// Returns the value of a key if shared memory has it fresh, else the default. Asks no server and never waits.
    #[pyo3(signature = (key, default=None))]
    fn peek<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let client = slf.as_super().get();
        let wire = client.keys().wire(key)?;
        Ok(client.peek(key, &wire).transpose()?.or(default))
    }

    /// Returns the value of a key. If there is none, calls `creator()` and stores what it returns for `expire` seconds:
    /// one thread of all processes of all hosts does, while the others wait. If it is killed or takes longer than
    /// `lease` seconds, one other does. What it creates later than that is returned and not stored.
    #[pyo3(signature = (key, creator, expire=0))]
    fn get_or_create<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        creator: &Bound<'py, PyAny>,
        expire: i32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let client = slf.as_super().get();
        let wire = client.keys().wire(key)?;
        if let Some(found) = client.peek(key, &wire) {
            return found;
        }
        // The creator has its own key to serialize by, since the closure leaves Python's lock.
        let (own_key, creator) = (key.clone().unbind(), creator.clone().unbind());
        let create = || {
            Python::attach(|py| {
                let made = creator.bind(py).call0()?;
                let (bytes, flags) = client.codec().dump(own_key.bind(py), &made, None)?;
                Ok::<_, PyErr>((bytes.as_bytes().to_vec(), flags))
            })
        };
        let Some(near) = client.near() else { return creator.bind(py).call0() };
        larder_client::Key::new(&wire).map_err(|error| of_client(py, &error.into()))?;
        let cached = py.detach(|| near.get_or_create_with(&wire, expire, create))?;
        client.codec().load(key, &cached.value, cached.flags)
    }
}

impl Tiered {
    /// Returns the same with a cache that `change` makes of its own.
    fn changed(
        slf: &Bound<'_, Self>,
        change: impl FnOnce(&larder_client::Tiered) -> PyResult<larder_client::Tiered>,
    ) -> PyResult<Py<Self>> {
        let py = slf.py();
        let client = slf.as_super().get();
        let near = client.near().ok_or_else(|| PyTypeError::new_err("this has no shared memory"))?;
        let client = client.with_near(py, change(near)?);
        let l1 = slf.get().l1.clone_ref(py);
        Py::new(py, PyClassInitializer::from(client).add_subclass(Tiered { l1 }))
    }
}

/// Returns times of which some are replaced by these seconds.
fn times_of(times: Times, fresh: Option<f64>, stale: Option<f64>, negative: Option<f64>) -> PyResult<Times> {
    let or = |name, given: Option<f64>, known| given.map_or(Ok(known), |seconds| duration_of(name, seconds));
    Ok(Times {
        fresh: or("fresh", fresh, times.fresh)?,
        stale: or("stale", stale, times.stale)?,
        negative: or("negative", negative, times.negative)?,
    })
}
