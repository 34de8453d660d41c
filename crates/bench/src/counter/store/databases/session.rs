//! An asynchronous driver used as a blocking one: each connection has a runtime of its own on its own thread,
//! so that T threads are T threads and T connections, and nothing else works for them.

use crate::counter::store::{Error, Failure};
use std::future::Future;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// A runtime that runs while its owner waits for something.
pub struct Session {
    runtime: Runtime,
    timeout: Duration,
}

impl Session {
    /// With a bound on every wait.
    pub fn new(timeout: Duration) -> Result<Self, Error> {
        Ok(Self { runtime: Builder::new_current_thread().enable_all().build()?, timeout })
    }

    /// Waits for a statement that prepares or reads; `error` words the driver's errors.
    pub fn wait<T, E>(
        &self,
        what: impl Future<Output = Result<T, E>>,
        error: impl Fn(E) -> Error,
    ) -> Result<T, Error> {
        match self.runtime.block_on(async { tokio::time::timeout(self.timeout, what).await }) {
            Ok(done) => done.map_err(error),
            Err(_) => Err(Error("no answer in time".into())),
        }
    }

    /// Waits for an increment; `failure` tells a refusal from a loss.
    pub fn increment<T, E>(
        &self,
        what: impl Future<Output = Result<T, E>>,
        failure: impl Fn(E) -> Failure,
    ) -> Result<T, Failure> {
        match self.runtime.block_on(async { tokio::time::timeout(self.timeout, what).await }) {
            Ok(done) => done.map_err(failure),
            Err(_) => Err(Failure::Lost("no answer in time".into())),
        }
    }

    /// Lets something run whenever this waits.
    pub fn spawn(&self, what: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(what);
    }
}
