//! Whether the device works: counts failures, turns the tier off, and says when a probe is due.
//!
//! ```text
//!   on --failures in a row, for some seconds--> resting --pause over--> writing --ok--> reading --as written-->
//!                                                  ^                       |               |     writing, or on
//!                                                  +------- a failure, a longer pause -----+
//! ```

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::Seconds;

/// A kind of device operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// A read, which also fails when what it brings does not verify.
    Read = 0,
    /// A write.
    Write = 1,
}

/// A change of the SSD tier that an operator wants to know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SsdEvent {
    /// Repeated failures turned the tier off: its items are gone. The next probe is this many seconds away.
    TurnedOff(u32),
    /// A probe failed; the next one is this many seconds away.
    ProbeFailed(u32),
    /// The probes succeeded: the tier is on again, and empty.
    TurnedOn,
}

/// Failed reads in a row, or failed writes in a row, after which the tier may be turned off. Each is counted by
/// itself: a device that still reads while it no longer writes is not worth keeping either.
const FAILURES_MAX: u32 = 16;
/// Seconds that failures must last for that. Resetting a controller fails everything that is under way at once.
const FAILING_SECONDS_MIN: u32 = 5;
/// Probes in a row that must succeed before the tier is turned on.
const PROBES_MIN: u32 = 4;
/// The pause before the first probe; each failure doubles it.
const PAUSE_SECONDS_MIN: u32 = 1;
const PAUSE_SECONDS_MAX: u32 = 60;
/// Events that are kept until they are asked for.
const EVENTS_MAX: usize = 16;

/// Where the probing of a device stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The tier is on, or there is none.
    Idle,
    /// No probe is due before this second.
    Resting(u32),
    /// A page is to be written.
    Write,
    /// It is being written.
    Writing,
    /// It is to be read back.
    Read,
    /// It is being read back.
    Reading,
}

/// The probing of a device that failed.
pub(super) struct Probing {
    pub(super) phase: Phase,
    pause: u32,
    /// Probes that succeeded in a row.
    passed: u32,
    events: VecDeque<SsdEvent>,
}

/// The state of the device.
pub(crate) struct Health {
    off: AtomicBool,
    /// Failures in a row of each [`Access`], and when the first of them was.
    failures: [AtomicU32; 2],
    since: [AtomicU32; 2],
    /// The time of the last upkeep.
    now: AtomicU32,
    probing: Mutex<Probing>,
    /// Device operations that failed, and pages that did not verify.
    pub(crate) errors: AtomicU64,
    /// How often the tier was turned off.
    pub(crate) turned_off: AtomicU64,
    /// Probes that were begun.
    pub(crate) probes: AtomicU64,
}

impl Health {
    /// Returns the state of a device that works, or of none at all.
    pub(crate) fn new(has_device: bool) -> Health {
        Health {
            off: AtomicBool::new(!has_device),
            failures: [const { AtomicU32::new(0) }; 2],
            since: [const { AtomicU32::new(0) }; 2],
            now: AtomicU32::new(0),
            probing: Mutex::new(Probing {
                phase: Phase::Idle,
                pause: PAUSE_SECONDS_MIN,
                passed: 0,
                events: VecDeque::new(),
            }),
            errors: AtomicU64::new(0),
            turned_off: AtomicU64::new(0),
            probes: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(crate) fn is_off(&self) -> bool {
        self.off.load(Relaxed)
    }

    pub(super) fn probing(&self) -> MutexGuard<'_, Probing> {
        self.probing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the outcome of a device operation; failures in a row that last turn the tier off.
    pub(crate) fn count_outcome(&self, access: Access, ok: bool) {
        let failures = &self.failures[access as usize];
        if ok {
            // Reads succeed all the time: they share this line, and leave it alone while there is nothing to
            // forgive.
            if failures.load(Relaxed) != 0 {
                failures.store(0, Relaxed);
            }
            return;
        }
        self.errors.fetch_add(1, Relaxed);
        let now = self.now.load(Relaxed);
        let since = &self.since[access as usize];
        let in_a_row = failures.fetch_add(1, Relaxed).saturating_add(1);
        if in_a_row == 1 {
            since.store(now, Relaxed);
        }
        let lasts = now.saturating_sub(since.load(Relaxed)) >= FAILING_SECONDS_MIN;
        if in_a_row >= FAILURES_MAX && lasts && !self.off.swap(true, SeqCst) {
            self.turned_off.fetch_add(1, Relaxed);
            let mut probing = self.probing();
            (probing.pause, probing.passed) = (PAUSE_SECONDS_MIN, 0);
            probing.rest(now);
            probing.note(SsdEvent::TurnedOff(PAUSE_SECONDS_MIN));
        }
    }

    /// Notes the time, and that a probe is due when its pause is over.
    pub(crate) fn tick(&self, now: Seconds) {
        self.now.store(now.0, Relaxed);
        if self.is_off() {
            let mut probing = self.probing();
            if matches!(probing.phase, Phase::Resting(until) if until <= now.0) {
                probing.phase = Phase::Write;
            }
        }
    }

    /// Takes the outcome of a probe's write or read. Returns whether enough probes have succeeded: the tier may
    /// then be turned on.
    pub(super) fn probed(&self, ok: bool) -> bool {
        let mut probing = self.probing();
        match (ok, probing.phase) {
            (false, _) => {
                self.errors.fetch_add(1, Relaxed);
                (probing.passed, probing.pause) = (0, (probing.pause * 2).min(PAUSE_SECONDS_MAX));
                probing.rest(self.now.load(Relaxed));
                let pause = probing.pause;
                probing.note(SsdEvent::ProbeFailed(pause));
                false
            }
            (true, Phase::Writing) => {
                probing.phase = Phase::Read;
                false
            }
            (true, _) => {
                probing.passed += 1;
                probing.phase = Phase::Write;
                probing.passed >= PROBES_MIN
            }
        }
    }

    /// Turns the tier on; its log is empty.
    pub(super) fn turn_on(&self) {
        self.failures.iter().for_each(|failures| failures.store(0, Relaxed));
        let mut probing = self.probing();
        probing.phase = Phase::Idle;
        probing.note(SsdEvent::TurnedOn);
        self.off.store(false, SeqCst);
    }

    /// Returns the oldest event that was not asked for yet.
    pub(crate) fn next_event(&self) -> Option<SsdEvent> {
        self.probing().events.pop_front()
    }
}

impl Probing {
    fn rest(&mut self, now: u32) {
        self.phase = Phase::Resting(now.saturating_add(self.pause));
    }

    fn note(&mut self, event: SsdEvent) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(from: u32, to: u32) -> Health {
        let health = Health::new(true);
        for now in from..=to {
            health.tick(Seconds(now));
            (0..20).for_each(|_| health.count_outcome(Access::Read, false));
        }
        health
    }

    #[test]
    fn failures_of_a_moment_do_not_turn_the_tier_off() {
        assert!(!failing(100, 104).is_off());
        let health = failing(100, 105);
        assert!(health.is_off() && health.next_event() == Some(SsdEvent::TurnedOff(1)));
    }

    #[test]
    fn pauses_between_probes_grow_to_a_minute() {
        let health = failing(100, 105);
        let _ = health.next_event();
        let (mut now, mut pauses) = (105, Vec::new());
        for _ in 0..8 {
            while health.probing().phase != Phase::Write {
                now += 1;
                health.tick(Seconds(now));
            }
            health.probing().phase = Phase::Writing;
            assert!(!health.probed(false));
            pauses.push(health.next_event());
        }
        let pauses: Vec<_> = pauses.into_iter().flatten().collect();
        assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60, 60].map(SsdEvent::ProbeFailed));
    }
}
