//! The connections of one process to one server: bounded, kept while idle for a time, made again after a fork.

mod connection;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::address::Address;
use crate::error::{Doing, Error, Result};
use crate::process::PerProcess;

pub use connection::{Connection, FENCES_MAX};

/// A connection that was idle for less is taken without a look. A look costs a system call, and cannot rule out either
/// that the server closes the connection the moment after.
const UNCHECKED_MAX: Duration = Duration::from_millis(10);

/// The bounds of a pool.
#[derive(Clone, Copy, Debug)]
pub struct PoolLimits {
    /// The most connections at a time.
    pub connections_max: usize,
    /// How long one may take to make, and how long to wait for one that is in use.
    pub connect_timeout: Duration,
    /// The longest silence while a request is sent or its reply awaited.
    pub timeout: Duration,
    /// After so long without use a connection is closed.
    pub idle_max: Duration,
}

/// The connections to one server.
#[derive(Debug)]
pub struct Pool {
    server: Arc<str>,
    address: Address,
    limits: PoolLimits,
    room: PerProcess<Room>,
}

/// One process's connections.
#[derive(Debug, Default)]
struct Room {
    shelf: Mutex<Shelf>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Shelf {
    /// The one that was used last is at the end.
    idle: Vec<(Connection, Instant)>,
    /// Connections that are idle or in use.
    open: usize,
    /// Threads that wait for one.
    waiting: usize,
}

impl Room {
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        // A panic between two statements leaves a shelf as usable as before.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes a thread that waits for a connection.
    fn wake(&self, shelf: MutexGuard<'_, Shelf>) {
        let is_wanted = shelf.waiting > 0;
        drop(shelf);
        // Waking costs a system call even if there is no thread to wake.
        if is_wanted {
            self.freed.notify_one();
        }
    }

    /// Closes this process's copies of the connections of the process it was forked from. That process still has them.
    fn forget_inherited(&self) {
        if let Ok(mut shelf) = self.shelf.try_lock() {
            shelf.idle.clear();
        }
    }
}

impl Pool {
    /// Makes a pool without connections.
    pub fn new(server: Arc<str>, address: Address, limits: PoolLimits) -> Self {
        Pool { server, address, limits, room: PerProcess::default() }
    }

    /// Returns a connection for the caller's own use: an idle one that is still good, or a new one. Waits for another
    /// thread's if all are in use.
    ///
    /// # Errors
    /// When none can be made, or none became free in time.
    pub fn checkout(&self) -> Result<(Connection, Place<'_>)> {
        let room = self.room.get(Room::forget_inherited);
        let began = Instant::now();
        let mut shelf = room.shelf();
        loop {
            while let Some((connection, since)) = shelf.idle.pop() {
                let idle = began.saturating_duration_since(since);
                if idle < self.limits.idle_max && (idle < UNCHECKED_MAX || connection.is_usable()) {
                    return Ok((connection, Place { pool: self, room, is_counted: true }));
                }
                shelf.open -= 1;
            }
            if shelf.open < self.limits.connections_max {
                shelf.open += 1;
                drop(shelf);
                let place = Place { pool: self, room, is_counted: true };
                return Ok((self.connect()?, place));
            }
            let left = self.limits.connect_timeout.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(Error::Busy { server: self.server.clone(), max: self.limits.connections_max });
            }
            shelf.waiting += 1;
            let waited = room.freed.wait_timeout(shelf, left).unwrap_or_else(PoisonError::into_inner);
            shelf = waited.0;
            shelf.waiting -= 1;
        }
    }

    fn connect(&self) -> Result<Connection> {
        let limits = &self.limits;
        Connection::new(&self.address, limits.connect_timeout, limits.timeout).map_err(|source| {
            let server = self.server.clone();
            if matches!(source.kind(), std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock) {
                let limit_ms = limits.connect_timeout.as_millis() as u64;
                return Error::Timeout { server, doing: Doing::Connecting, limit_ms };
            }
            Error::Connect { server, source: Arc::new(source) }
        })
    }
}

/// The place of a connection that is in use. Without one no other connection is made beyond the bound.
#[derive(Debug)]
pub struct Place<'p> {
    pool: &'p Pool,
    room: &'p Room,
    is_counted: bool,
}

impl Place<'_> {
    /// Gives the place's connection back to the pool. It is closed if it is not [clean](Connection::is_clean), as is
    /// one whose place is dropped instead.
    pub fn give_back(mut self, connection: Connection) {
        if !connection.is_clean() {
            return;
        }
        let now = Instant::now();
        let is_old = |since: Instant| now.saturating_duration_since(since) >= self.pool.limits.idle_max;
        let mut shelf = self.room.shelf();
        shelf.idle.push((connection, now));
        let old = shelf.idle.iter().take_while(|(_, since)| is_old(*since)).count();
        let closed: Vec<_> = shelf.idle.drain(..old).collect();
        shelf.open -= closed.len();
        self.is_counted = false;
        self.room.wake(shelf);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.is_counted {
            let mut shelf = self.room.shelf();
            shelf.open -= 1;
            self.room.wake(shelf);
        }
    }
}
