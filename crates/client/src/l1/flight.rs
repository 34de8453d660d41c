//! One fetch of a missing key at a time, among all processes of the host.
//!
//! A flight is a word of a table, by the key's hash. Its owner is a process, known by a byte of the file that it has
//! locked for its lifetime: where that lock is gone, one of those that wait takes the flight over.
//!
//! ```text
//!  63                          32 31       30          0
//! +------------------------------+-------+--------------+
//! |  bits of the key's hash       | waits |  the owner    |
//! +------------------------------+-------+--------------+
//! ```

use std::fs::File;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::time::Duration;

use super::sys;
use crate::clock;
use crate::simulation::{Fault, is_broken};

const WAITS: u64 = 1 << 31;
const OWNER_MASK: u64 = WAITS - 1;
/// The longest sleep without a look at whether the owner lives.
const NAP: Duration = Duration::from_millis(20);
/// Where in the file the locked bytes of processes begin: far behind its end.
const ALIVE_AT: u64 = 1 << 40;
/// Ids that are tried for a process until one is free.
const ID_TRIES: u64 = 1024;

/// How a claim or a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The flight is the caller's.
    Owned,
    /// The caller is to fetch, but others do not wait for it: the word is another flight of its own process.
    Untracked,
    /// Another thread or process has the flight; this is its word.
    Taken(u64),
}

/// Takes an id for this process, 1 or more, that others can see is alive. Returns `None` where the file cannot be
/// locked.
pub(super) fn new_id(file: &File) -> Option<u32> {
    let first = sys::process().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 36;
    for nth in 0..ID_TRIES {
        let id = (first + nth) % OWNER_MASK + 1;
        if sys::lock_byte(file, ALIVE_AT + id).ok()? {
            return u32::try_from(id).ok();
        }
    }
    None
}

/// Takes the lock of an id again, which this process may have lost. Returns false if another has it, or it cannot be
/// had.
pub(super) fn keep_id(file: &File, id: u32) -> bool {
    sys::lock_byte(file, ALIVE_AT + u64::from(id)).unwrap_or(false)
}

fn tag(hash: u64) -> u64 {
    hash >> 32 << 32
}

/// Claims the word for a key.
pub(super) fn claim(word: &AtomicU64, hash: u64, me: u32) -> State {
    let mine = tag(hash) | u64::from(me);
    let mut now = word.load(Relaxed);
    loop {
        if now & OWNER_MASK == 0 {
            match word.compare_exchange(now, mine, AcqRel, Relaxed) {
                Ok(_) => return State::Owned,
                Err(changed) => now = changed,
            }
        } else if now & OWNER_MASK == u64::from(me) && tag(now) != tag(hash) {
            // Waiting for itself would never end: a fetch that needs another key's fetch.
            return State::Untracked;
        } else {
            return State::Taken(now);
        }
    }
}

/// Waits until the flight `taken` has ended, for `limit` at most. `None`: it has not.
pub(super) fn wait(
    word: &AtomicU64,
    taken: u64,
    hash: u64,
    me: u32,
    file: &File,
    limit: Duration,
) -> Option<State> {
    let since = clock::now();
    loop {
        let now = word.load(Acquire);
        if (now ^ taken) & !WAITS != 0 {
            return Some(State::Taken(now));
        }
        let left = limit
            .checked_sub(clock::now().saturating_duration_since(since))
            .filter(|left| !left.is_zero())?;
        if now & WAITS == 0 && word.compare_exchange(now, now | WAITS, AcqRel, Relaxed).is_err() {
            continue;
        }
        let nap = left.min(NAP);
        if sys::wait(word, (now | WAITS) as u32, nap) && is_dead(taken, me, file) {
            let mine = tag(hash) | WAITS | u64::from(me);
            if word.compare_exchange(now | WAITS, mine, AcqRel, Relaxed).is_ok() {
                return Some(State::Owned);
            }
        }
    }
}

/// Takes the flight over if its owner has ended. Returns whether it has.
pub(super) fn take_over(word: &AtomicU64, taken: u64, hash: u64, me: u32, file: &File) -> bool {
    let mine = tag(hash) | taken & WAITS | u64::from(me);
    !is_broken(Fault::DeadRenewalStays)
        && is_dead(taken, me, file)
        && word.compare_exchange(taken, mine, AcqRel, Relaxed).is_ok()
}

fn is_dead(taken: u64, me: u32, file: &File) -> bool {
    let owner = (taken & OWNER_MASK) as u32;
    owner != me && !is_alive(owner, file)
}

/// Returns whether another process with this id lives, also if that cannot be found out.
pub(super) fn is_alive(id: u32, file: &File) -> bool {
    sys::is_byte_locked(file, ALIVE_AT + u64::from(id)).unwrap_or(true)
}

/// Ends the process's flight of the key, and wakes those that wait for it.
pub(super) fn finish(word: &AtomicU64, hash: u64, me: u32) {
    let mine = tag(hash) | u64::from(me);
    let mut now = word.load(Relaxed);
    while now & !WAITS == mine {
        match word.compare_exchange(now, 0, AcqRel, Relaxed) {
            Ok(_) if now & WAITS != 0 => {
                sys::wake(word, i32::MAX as u32);
                return;
            }
            Ok(_) => return,
            Err(changed) => now = changed,
        }
    }
}
