//! The classes `Limiter` and `Decision`: rate limits that all clients of a server share.

use larder_client::limit::{self, Algorithm, Limit, OnFailure};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arguments::{Keys, duration_of};
use crate::client::Client;
use crate::errors::of_client;
use crate::l1::Shared;

/// Whether a request may pass, and what a caller may tell its own client. True if it may.
#[pyclass(frozen, module = "larder")]
pub struct Decision {
    inner: limit::Decision,
}

#[pymethods]
impl Decision {
    /// Whether the request may pass.
    #[getter]
    fn allowed(&self) -> bool {
        self.inner.is_allowed
    }

    /// How much could still pass now.
    #[getter]
    fn remaining(&self) -> u64 {
        self.inner.remaining
    }

    /// Seconds until this cost could pass; 0 if it has passed, `None` if it never can.
    #[getter]
    fn retry_after(&self) -> Option<f64> {
        self.inner.retry_after.map(|time| time.as_secs_f64())
    }

    /// Seconds until all of the limit is available again.
    #[getter]
    fn reset_after(&self) -> f64 {
        self.inner.reset_after.as_secs_f64()
    }

    /// Why the servers could not decide, if they could not: then `on_failure` has decided.
    #[getter]
    fn failure(&self) -> Option<String> {
        self.inner.failure.as_ref().map(ToString::to_string)
    }

    fn __bool__(&self) -> bool {
        self.inner.is_allowed
    }

    fn __repr__(&self) -> String {
        let verdict = if self.inner.is_allowed { "allowed" } else { "denied" };
        format!("<larder.Decision {verdict}, {} remaining>", self.inner.remaining)
    }
}

/// Counts against limits in the servers of a client. `on_failure` decides while they fail: "open" lets everything pass,
/// "closed" nothing, "local" counts in this process. With `denials`, a cache in shared memory or its name, a denied
/// cost asks no server before it could pass, from any process of the host, and for `denials_max` seconds at most.
#[pyclass(frozen, module = "larder")]
pub struct Limiter {
    inner: limit::Limiter,
    keys: Keys,
}

#[pymethods]
impl Limiter {
    #[new]
    #[pyo3(signature = (client, on_failure="local", *, denials=None, denials_max=10.0))]
    fn new(
        py: Python<'_>,
        client: &Client,
        on_failure: &str,
        denials: Option<Shared>,
        denials_max: f64,
    ) -> PyResult<Self> {
        let on_failure = match on_failure {
            "open" => OnFailure::Open,
            "closed" => OnFailure::Closed,
            "local" => OnFailure::Local,
            other => {
                let message = format!("on_failure is {other:?}; give \"open\", \"closed\" or \"local\"");
                return Err(PyValueError::new_err(message));
            }
        };
        let mut inner = limit::Limiter::new(client.inner().clone(), on_failure);
        let max = duration_of("denials_max", denials_max)?;
        if let Some(denials) = denials {
            inner = inner.with_denials_in(denials.open(py)?.get().inner().clone(), max);
        }
        Ok(Limiter { inner, keys: client.keys().clone() })
    }

    /// Asks whether `cost` may pass where `count` may in each period of the clock.
    #[pyo3(signature = (key, count, period, cost=1))]
    fn fixed_window(&self, key: &Bound<'_, PyAny>, count: u64, period: f64, cost: u64) -> PyResult<Decision> {
        self.check(key, Algorithm::FixedWindow, (count, period), cost)
    }

    /// Asks whether `cost` may pass where `count` may in the last period at any time.
    #[pyo3(signature = (key, count, period, cost=1))]
    fn sliding_window(
        &self,
        key: &Bound<'_, PyAny>,
        count: u64,
        period: f64,
        cost: u64,
    ) -> PyResult<Decision> {
        self.check(key, Algorithm::SlidingWindow, (count, period), cost)
    }

    /// Asks whether `cost` may pass by a rate of `count` in a period, after a pause up to `burst` at once: `count`
    /// without it.
    #[pyo3(signature = (key, count, period, burst=None, cost=1))]
    fn gcra(
        &self,
        key: &Bound<'_, PyAny>,
        count: u64,
        period: f64,
        burst: Option<u64>,
        cost: u64,
    ) -> PyResult<Decision> {
        self.check(key, Algorithm::Gcra { burst: burst.unwrap_or(count) }, (count, period), cost)
    }
}

impl Limiter {
    fn check(
        &self,
        key: &Bound<'_, PyAny>,
        algorithm: Algorithm,
        (count, period): (u64, f64),
        cost: u64,
    ) -> PyResult<Decision> {
        let py = key.py();
        let wire = self.keys.wire(key)?;
        let limit = Limit { count, period: duration_of("period", period)?, algorithm };
        let decided = py.detach(|| self.inner.check(&wire, &limit, cost));
        decided.map(|inner| Decision { inner }).map_err(|error| of_client(py, &error))
    }
}
