//! The lock of a shard, which outlives its holder: a word in shared memory with the holder's thread id in the form
//! that the kernel knows as a robust futex.
//!
//! ```text
//!  63                    32 31      30     29           0
//! +------------------------+-------+------+--------------+
//! |  times taken            | waits | died |  thread id   |
//! +------------------------+-------+------+--------------+
//! ```
//! Where the holder is killed, the kernel sets `died` in place of the id and wakes one that waits, in whatever PID
//! namespace it is. Where the holder is stopped, or the kernel was not told, the lock is taken from it after
//! a while. A holder that goes on afterwards finds that the times do not match, and releases nothing.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use rustix::thread::futex::{OWNER_DIED, WAITERS};

use super::{crash, mapping, sys};

const TID_MASK: u32 = 0x3FFF_FFFF;
const WAITS: u64 = WAITERS as u64;
/// Turns of waiting before the thread sleeps: a change of a shard takes about as long.
const SPINS: u32 = 200;
/// The longest sleep before the lock is checked again: the thread that should wake this one may have been killed.
const NAP: Duration = Duration::from_millis(2);

/// From which state the lock was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It was released.
    Free,
    /// The kernel released it, because a thread with the holder's id has ended.
    AfterDeath,
    /// It was taken from a holder that made no progress.
    FromHolder,
}

/// A lock that is held. It is released when this is dropped.
pub(super) struct Guard<'a> {
    word: &'a AtomicU64,
    held: u64,
}

/// Takes the lock. It is taken from a holder that keeps it for longer than `patience`.
pub(super) fn lock(word: &AtomicU64, patience: Duration) -> (Guard<'_>, Taken) {
    let now = word.load(Relaxed);
    match try_take(word, now, 0) {
        Some(guard) => (guard, taken_at(now)),
        None => lock_slowly(word, patience),
    }
}

/// Returns the kernel's id of the thread that holds the lock, and how often it was taken, modulo 2^32; `None` if it is
/// free.
pub(super) fn holder(word: &AtomicU64) -> Option<(u32, u32)> {
    let now = word.load(Relaxed);
    (!is_free(now)).then_some((now as u32 & TID_MASK, (now >> 32) as u32))
}

#[inline]
fn taken_at(now: u64) -> Taken {
    if now as u32 & OWNER_DIED == 0 { Taken::Free } else { Taken::AfterDeath }
}

#[inline]
fn is_free(now: u64) -> bool {
    now as u32 & TID_MASK == 0
}

/// Takes the lock if it is free in the state `now` and still in that state.
#[inline]
fn try_take<'a>(word: &'a AtomicU64, now: u64, waits: u64) -> Option<Guard<'a>> {
    if is_free(now) { replace(word, now, waits) } else { None }
}

fn replace<'a>(word: &'a AtomicU64, now: u64, waits: u64) -> Option<Guard<'a>> {
    sys::announce(mapping::futex(word));
    let times = (now >> 32).wrapping_add(1) << 32;
    let held = times | u64::from(sys::thread_id() & TID_MASK);
    if word.compare_exchange(now, held | now & WAITS | waits, Acquire, Relaxed).is_ok() {
        return Some(Guard { word, held });
    }
    sys::retract();
    None
}

#[cold]
fn lock_slowly(word: &AtomicU64, patience: Duration) -> (Guard<'_>, Taken) {
    let mut spins = 0;
    let mut holder = 0;
    let mut since = Instant::now();
    // After a sleep the lock is taken with `waits` set: a wake wakes one thread, and others may still sleep.
    let mut waits = 0;
    loop {
        let now = word.load(Relaxed);
        if let Some(guard) = try_take(word, now, waits) {
            return (guard, taken_at(now));
        }
        spins += 1;
        if is_free(now) || spins < SPINS {
            std::hint::spin_loop();
            continue;
        }
        if now & !WAITS != holder {
            (holder, since) = (now & !WAITS, Instant::now());
        } else if since.elapsed() > patience
            && let Some(guard) = replace(word, now, WAITS)
        {
            return (guard, Taken::FromHolder);
        }
        if now & WAITS != 0 || word.compare_exchange(now, now | WAITS, Relaxed, Relaxed).is_ok() {
            waits = WAITS;
            sys::wait(word, (now | WAITS) as u32, NAP);
        }
    }
}

impl Guard<'_> {
    /// Returns whether this guard still holds the lock: no other thread has taken it over.
    pub(super) fn is_held(&self) -> bool {
        self.word.load(Relaxed) & !WAITS == self.held
    }

    /// Releases the lock as the kernel does when the holder ends.
    fn die(&self) {
        let waits = self.word.load(Relaxed) & WAITS;
        let times = self.held >> 32 << 32;
        self.word.store(times | waits | u64::from(OWNER_DIED), Release);
    }

    fn release(&self) {
        let mut now = self.word.load(Relaxed);
        while now & !WAITS == self.held {
            match self.word.compare_exchange(now, self.held >> 32 << 32, Release, Relaxed) {
                Ok(_) if now & WAITS != 0 => {
                    // Before the call: meanwhile another thread with this id may hold the lock.
                    sys::retract();
                    sys::wake(self.word, 1);
                    return;
                }
                Ok(_) => return,
                Err(changed) => now = changed,
            }
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if crash::is_killed() {
            self.die();
        } else {
            self.release();
        }
        sys::retract();
    }
}
