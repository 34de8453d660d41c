//! A counter that is wrong on purpose: get, add one, set. It is the negative control of the verdict.
//!
//! On its own this may go well for a long time. So the first increments after a reset are made to collide:
//! a connection that has read waits, before it writes, until a second connection has read too. Both then
//! answer 1.

use super::memcached::{Answer, Connection, Memcached};
use super::{Error, Failure, Options, Store, Worker};
use crate::wire::{Protocol, Verb};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// An increment.
pub const STATEMENT: &str = "get larder-bench-counter; set larder-bench-counter 0 0 <bytes> / <value + 1>";

/// Where the first two meet.
#[derive(Default)]
struct Meeting {
    state: Mutex<State>,
    second_came: Condvar,
}

#[derive(Default)]
struct State {
    /// Connections that are open.
    workers: usize,
    /// Increments since the reset that have read.
    readers: usize,
}

impl Meeting {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a second reader, if there is a second connection to come.
    fn read_done(&self, timeout: std::time::Duration) {
        let mut state = self.state();
        state.readers += 1;
        if state.readers == 2 {
            self.second_came.notify_all();
        }
        let is_alone = |state: &mut State| state.readers < 2 && state.workers > 1;
        drop(self.second_came.wait_timeout_while(state, timeout, is_alone));
    }
}

/// A server.
pub struct Broken {
    server: Memcached,
    timeout: std::time::Duration,
    meeting: Arc<Meeting>,
}

impl Broken {
    /// At an address.
    pub fn new(address: &str, options: Options) -> Self {
        let server = Memcached::new(address, options, Protocol::Text);
        Self { server, timeout: options.timeout, meeting: Arc::default() }
    }
}

impl Store for Broken {
    fn version(&self) -> Result<String, Error> {
        self.server.version()
    }

    fn prepare(&self) -> Result<(), Error> {
        Ok(())
    }

    fn reset(&self) -> Result<(), Error> {
        self.server.reset()?;
        self.meeting.state().readers = 0;
        Ok(())
    }

    fn connect(&self) -> Result<Box<dyn Worker>, Error> {
        let connection = self.server.connection()?;
        self.meeting.state().workers += 1;
        Ok(Box::new(Careless { connection, meeting: self.meeting.clone(), timeout: self.timeout }))
    }

    fn read(&self) -> Result<u64, Error> {
        self.server.read()
    }
}

struct Careless {
    connection: Connection,
    meeting: Arc<Meeting>,
    timeout: std::time::Duration,
}

impl Worker for Careless {
    fn increment(&mut self) -> Result<u64, Failure> {
        let value = self.connection.get()?.unwrap_or(0) + 1;
        self.meeting.read_done(self.timeout);
        match self.connection.ask(Verb::Set, |counter, out| counter.set(out, value))? {
            Answer::Done => Ok(value),
            answer => Err(answer.unexpected("set")),
        }
    }
}

impl Drop for Careless {
    fn drop(&mut self) {
        self.meeting.state().workers -= 1;
        self.meeting.second_came.notify_all();
    }
}
