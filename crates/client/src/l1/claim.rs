//! The fetch of a missing key: the owner of its flight fetches it, and the others wait.

use std::time::Duration;

use super::flight::{self, State};
use super::{L1, crash, sys};

/// The answer to [`L1::claim`].
#[derive(Debug)]
#[must_use]
pub enum Claim {
    /// The caller is to fetch the key, store it, and then drop the flight.
    Owner(Flight),
    /// Another thread or process is fetching it.
    Waiter(Waiter),
}

/// How a wait ended.
#[derive(Debug)]
#[must_use]
pub enum Waited {
    /// The other has stored the key, or given up: look again.
    Finished,
    /// The other has ended without finishing; the caller is the owner now. Look again before fetching.
    Owner(Flight),
    /// The time is over; the other is still fetching.
    TimedOut,
}

/// A fetch that others wait for. It ends when this is dropped, also by a panic; if the process is killed, one of
/// those that wait takes it over within 50 ms.
#[derive(Debug)]
pub struct Flight {
    l1: L1,
    hash: u64,
    /// The id of the process; 0 if others do not wait for this fetch.
    me: u32,
    /// The process that has it: not a child that was forked meanwhile.
    process: u64,
}

/// A place among those that wait for a fetch.
#[derive(Debug)]
pub struct Waiter {
    l1: L1,
    hash: u64,
    me: u32,
    taken: u64,
}

impl Claim {
    pub(super) fn new(l1: &L1, hash: u64) -> Claim {
        let Some(me) = l1.inner.process_id() else { return Claim::Owner(Flight::new(l1, hash, 0)) };
        match flight::claim(l1.inner.flight(hash), hash, me) {
            State::Owned => Claim::Owner(Flight::new(l1, hash, me)),
            State::Untracked => Claim::Owner(Flight::new(l1, hash, 0)),
            State::Taken(taken) => Claim::Waiter(Waiter { l1: l1.clone(), hash, me, taken }),
        }
    }
}

impl Flight {
    fn new(l1: &L1, hash: u64, me: u32) -> Flight {
        Flight { l1: l1.clone(), hash, me, process: sys::process() }
    }

    /// Returns whether others wait for this fetch if they want the key. They do not where the file cannot be locked,
    /// or where the caller's process fetches another key with the same place in the table.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.me != 0
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if self.me != 0 && self.process == sys::process() && !crash::is_killed() {
            flight::finish(self.l1.inner.flight(self.hash), self.hash, self.me);
        }
    }
}

impl Waiter {
    /// Takes the fetch over, without waiting, if the process that has it has ended. Returns `None` if it lives.
    #[must_use]
    pub fn take_over(&self) -> Option<Flight> {
        let inner = &self.l1.inner;
        flight::take_over(inner.flight(self.hash), self.taken, self.hash, self.me, inner.file())
            .then(|| Flight::new(&self.l1, self.hash, self.me))
    }

    /// Sleeps until the fetch has ended, for `limit` at most.
    pub fn wait(&self, limit: Duration) -> Waited {
        let inner = &self.l1.inner;
        match flight::wait(inner.flight(self.hash), self.taken, self.hash, self.me, inner.file(), limit) {
            None => Waited::TimedOut,
            Some(State::Owned) => Waited::Owner(Flight::new(&self.l1, self.hash, self.me)),
            Some(State::Taken(_) | State::Untracked) => Waited::Finished,
        }
    }
}
