//! The connections of one process to one server: bounded, kept while idle for a time, made again after a fork.

mod connection;
mod encryption;
mod login;
mod sessions;

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::address::Address;
use crate::clock::now;
use crate::error::{Doing, Error, Result};
use crate::login::Login;
use crate::process::PerProcess;
use crate::tls;

pub use connection::{Connection, FENCES_MAX};
use login::LoggedIn;
pub use sessions::Secured;
use sessions::Sessions;

/// A connection that was idle for less is taken without a look. A look costs a system call, and cannot rule out either
/// that the server closes the connection the moment after.
const UNCHECKED_MAX: Duration = Duration::from_millis(10);

/// The bounds of a pool.
#[derive(Clone, Copy, Debug)]
pub struct PoolLimits {
    /// The most connections at a time.
    pub connections_max: usize,
    /// How long one may take to make, with its handshake for TLS, and how long to wait for one that is in use.
    pub connect_timeout: Duration,
    /// The longest silence while a request is sent or its reply awaited.
    pub timeout: Duration,
    /// After so long without use a connection is closed.
    pub idle_max: Duration,
}

/// What a new connection begins with.
#[derive(Debug, Default)]
pub struct Greeting {
    /// TLS, if it is spoken.
    pub secured: Option<Secured>,
    /// The login, for a server that asks for it.
    pub login: Option<Login>,
}

/// The connections to one server.
#[derive(Debug)]
pub struct Pool {
    server: Arc<str>,
    address: Address,
    limits: PoolLimits,
    greeting: Greeting,
    room: PerProcess<Room>,
}

/// One process's connections.
#[derive(Debug, Default)]
struct Room {
    shelf: Mutex<Shelf>,
    freed: Condvar,
    sessions: Sessions,
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
    /// Makes a pool without connections. Each will begin with `greeting`.
    pub fn new(server: Arc<str>, address: Address, limits: PoolLimits, greeting: Greeting) -> Self {
        Pool { server, address, limits, greeting, room: PerProcess::default() }
    }

    /// Returns a connection for the caller's own use: an idle one that is still good, or a new one. Waits for another
    /// thread's if all are in use.
    ///
    /// # Errors
    /// When none can be made, or none became free in time.
    pub fn checkout(&self) -> Result<(Connection, Place<'_>)> {
        let room = self.room.get(Room::forget_inherited);
        let began = now();
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
            let left = self.limits.connect_timeout.saturating_sub(now().saturating_duration_since(began));
            if left.is_zero() {
                return Err(Error::Busy { server: self.server.clone(), max: self.limits.connections_max });
            }
            shelf.waiting += 1;
            let waited = room.freed.wait_timeout(shelf, left).unwrap_or_else(PoisonError::into_inner);
            shelf = waited.0;
            shelf.waiting -= 1;
        }
    }

    /// Closes the connections of this process that are idle. Those in use come back as before.
    pub fn close_idle(&self) {
        let room = self.room.get(Room::forget_inherited);
        let mut shelf = room.shelf();
        let closed = std::mem::take(&mut shelf.idle);
        shelf.open -= closed.len();
        room.wake(shelf);
    }

    /// Makes a connection that is not one of the pool's.
    ///
    /// # Errors
    /// When none can be made.
    pub fn connect(&self) -> Result<Connection> {
        let limits = &self.limits;
        let mut connection = match &self.greeting.secured {
            Some(secured) => self.connect_secured(secured)?,
            None => self.reach(limits.connect_timeout)?,
        };
        let Some(login) = &self.greeting.login else { return Ok(connection) };
        match login::log_in(&mut connection, login, limits.timeout) {
            Ok(LoggedIn::Yes) => Ok(connection),
            Ok(LoggedIn::No(line)) => Err(Error::Login { server: self.server.clone(), line }),
            Err(source) => Err(match tls::refusal(&source) {
                Some(reason) => Error::Tls { server: self.server.clone(), reason },
                None => self.failed(source, Doing::Connecting, limits.timeout),
            }),
        }
    }

    /// Connects the socket, within `limit`.
    fn reach(&self, limit: Duration) -> Result<Connection> {
        Connection::new(&self.address, limit.max(Duration::from_millis(1)), self.limits.timeout)
            .map_err(|source| self.failed(source, Doing::Connecting, self.limits.connect_timeout))
    }

    /// Connects and shakes hands. A server may end a handshake because it cannot resume the session, as memcached does
    /// that asks for certificates: then the next one begins without a session, in the same time.
    fn connect_secured(&self, secured: &Secured) -> Result<Connection> {
        let until = Instant::now() + self.limits.connect_timeout;
        let sessions = &self.room.get(Room::forget_inherited).sessions;
        let may_resume = sessions.may_resume();
        let shake_hands = |config| {
            let mut connection = self.reach(until.saturating_duration_since(Instant::now()))?;
            let shaken = connection.encrypt(config, secured.name.clone(), until);
            Ok::<_, Error>(shaken.map(|()| connection))
        };
        let mut shaken = shake_hands(sessions.next(&secured.tls))?;
        if may_resume && shaken.as_ref().is_err_and(tls::is_ended_by_peer) {
            shaken = shake_hands(sessions.without(&secured.tls))?;
            if shaken.is_ok() {
                sessions.refused();
            }
        }
        let connection = shaken.map_err(|source| match tls::handshake_failure(&source, &secured.name) {
            Some(reason) => Error::Tls { server: self.server.clone(), reason },
            None => self.failed(source, Doing::Encrypting, self.limits.connect_timeout),
        })?;
        sessions.met();
        Ok(connection)
    }

    /// Returns the error for a connection that could not be made, within `limit` if that was passed.
    fn failed(&self, source: io::Error, doing: Doing, limit: Duration) -> Error {
        let server = self.server.clone();
        match source.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                Error::Timeout { server, doing, limit_ms: limit.as_millis() as u64 }
            }
            io::ErrorKind::UnexpectedEof if doing == Doing::Encrypting => {
                let reason = "the server closed the connection; see that its port speaks TLS".to_string();
                Error::Connect { server, source: Arc::new(io::Error::new(source.kind(), reason)) }
            }
            _ => Error::Connect { server, source: Arc::new(source) },
        }
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
        let given_back = now();
        let is_old =
            |since: Instant| given_back.saturating_duration_since(since) >= self.pool.limits.idle_max;
        let mut shelf = self.room.shelf();
        shelf.idle.push((connection, given_back));
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
