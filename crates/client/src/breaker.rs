//! The circuit breaker of a server: after failures in a row it is left alone, then probed by one request at a time.
//!
//! ```text
//!            failures in a row                     its time is over: one request is let through
//!   closed -------------------------> open ---------------------------------------> half-open
//!     ^ ^                             | ^                                            |  |
//!     | +------- any success ---------+ +------- the probe fails: longer ------------+  |
//!     +------------------------ the probe succeeds -------------------------------------+
//! ```
//! A probe that never reports, because its process died, is given up after a while and another one may go.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One word of memory that holds a breaker's state. All zeros is a closed breaker.
///
/// It may lie in memory that the processes of a host share: then one process learns for all, and one of them probes.
pub trait Word: Send + Sync + std::fmt::Debug {
    /// Returns the word.
    fn load(&self) -> u64;
    /// Replaces the word if it still is `current`. Returns whether it did.
    fn replace(&self, current: u64, new: u64) -> bool;
}

impl Word for AtomicU64 {
    fn load(&self) -> u64 {
        AtomicU64::load(self, Relaxed)
    }

    fn replace(&self, current: u64, new: u64) -> bool {
        // The word guards no other memory, so it needs no order with any.
        self.compare_exchange(current, new, Relaxed, Relaxed).is_ok()
    }
}

/// When a breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Failures in a row that open it, up to 255. At 0 it never opens.
    pub failures: u8,
    /// How long it stays open at first, in milliseconds; twice as long after each probe that fails.
    pub open_ms: u64,
    /// The longest it stays open, in milliseconds.
    pub open_ms_max: u64,
    /// After so many milliseconds without a result, a probe is taken for lost.
    pub probe_ms: u64,
}

impl Default for Thresholds {
    /// Five failures in a row; open for one second, growing to 30; a probe is lost after five.
    fn default() -> Self {
        Thresholds { failures: 5, open_ms: 1000, open_ms_max: 30_000, probe_ms: 5000 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    Open,
    HalfOpen,
}

/// A breaker's state, packed into a word: `until_ms` 48 bits, phase 2, openings 6, failures 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    phase: Phase,
    /// Failures in a row while closed.
    failures: u8,
    /// How often it opened since it was last closed, at most 63.
    openings: u8,
    /// Open: when a probe is due. Half-open: when the probe is taken for lost.
    until_ms: u64,
}

impl State {
    fn unpack(word: u64) -> State {
        let phase = match word >> 14 & 3 {
            0 => Phase::Closed,
            1 => Phase::Open,
            // The fourth value is never written; scribbled memory is probed again.
            _ => Phase::HalfOpen,
        };
        let (failures, openings) = ((word & 0xff) as u8, (word >> 8 & 0x3f) as u8);
        State { phase, failures, openings, until_ms: word >> 16 }
    }

    fn pack(self) -> u64 {
        let phase = match self.phase {
            Phase::Closed => 0,
            Phase::Open => 1,
            Phase::HalfOpen => 2,
        };
        let until_ms = self.until_ms.min((1 << 48) - 1);
        until_ms << 16 | phase << 14 | u64::from(self.openings & 0x3f) << 8 | u64::from(self.failures)
    }

    fn opened(self, thresholds: &Thresholds, now_ms: u64) -> State {
        let grown = thresholds.open_ms.checked_shl(u32::from(self.openings)).unwrap_or(u64::MAX);
        // A shift that loses bits has outgrown any bound, too.
        let lost = grown >> self.openings != thresholds.open_ms;
        let open_ms = if lost { thresholds.open_ms_max } else { grown.min(thresholds.open_ms_max) };
        let openings = (self.openings + 1).min(0x3f);
        State { phase: Phase::Open, failures: 0, openings, until_ms: now_ms.saturating_add(open_ms) }
    }
}

/// The breaker of one server.
#[derive(Debug)]
pub struct Breaker<W> {
    word: W,
    thresholds: Thresholds,
}

impl<W: std::ops::Deref<Target = dyn Word>> Breaker<W> {
    /// Makes the breaker whose state `word` holds.
    pub fn new(word: W, thresholds: Thresholds) -> Self {
        Breaker { word, thresholds }
    }

    /// Returns how long a state that is not closed lets nothing through. A time that no breaker sets, as scribbled
    /// memory may hold, is over.
    fn wait_ms(&self, state: State, now_ms: u64) -> u64 {
        let wait_ms = state.until_ms.saturating_sub(now_ms);
        let longest = self.thresholds.open_ms_max.max(self.thresholds.probe_ms);
        if wait_ms > longest { 0 } else { wait_ms }
    }

    /// Returns whether a request could go now, as itself or as a probe. Changes nothing.
    pub fn is_live(&self, now_ms: u64) -> bool {
        let state = State::unpack(self.word.load());
        state.phase == Phase::Closed || self.wait_ms(state, now_ms) == 0
    }

    /// Asks to send a request. Where that makes it the probe, no other request is admitted until it reports.
    ///
    /// # Errors
    /// When the server is to be left alone: returns the milliseconds until it is worth asking again.
    pub fn admit(&self, now_ms: u64) -> Result<(), u64> {
        loop {
            let word = self.word.load();
            let state = State::unpack(word);
            if state.phase == Phase::Closed {
                return Ok(());
            }
            match self.wait_ms(state, now_ms) {
                0 => {}
                wait_ms => return Err(wait_ms),
            }
            let until_ms = now_ms.saturating_add(self.thresholds.probe_ms.max(1));
            let probing = State { phase: Phase::HalfOpen, until_ms, ..state };
            if self.word.replace(word, probing.pack()) {
                return Ok(());
            }
        }
    }

    /// Reports that the server has answered.
    pub fn success(&self) {
        loop {
            let word = self.word.load();
            if word == 0 || self.word.replace(word, 0) {
                return;
            }
        }
    }

    /// Reports that the server could not be reached, or did not answer as a server does.
    pub fn failure(&self, now_ms: u64) {
        loop {
            let word = self.word.load();
            let state = State::unpack(word);
            let failures = state.failures.saturating_add(1);
            let new = match state.phase {
                Phase::Closed if self.thresholds.failures == 0 => return,
                Phase::Closed if failures < self.thresholds.failures => State { failures, ..state },
                Phase::Closed | Phase::HalfOpen => state.opened(&self.thresholds, now_ms),
                // A request that began before it opened.
                Phase::Open => return,
            };
            if self.word.replace(word, new.pack()) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    const THRESHOLDS: Thresholds = Thresholds { failures: 3, open_ms: 100, open_ms_max: 350, probe_ms: 50 };

    fn breaker() -> Breaker<Arc<dyn Word>> {
        Breaker::new(Arc::new(AtomicU64::new(0)), THRESHOLDS)
    }

    fn opened_at(now_ms: u64) -> Breaker<Arc<dyn Word>> {
        let breaker = breaker();
        (0..3).for_each(|_| breaker.failure(now_ms));
        breaker
    }

    #[test]
    fn only_failures_in_a_row_open_it() {
        let breaker = breaker();
        for _ in 0..100 {
            breaker.failure(5);
            breaker.failure(5);
            breaker.success();
        }
        assert_eq!(breaker.admit(5), Ok(()));
        (0..3).for_each(|_| breaker.failure(5));
        assert_eq!(breaker.admit(5), Err(100));
        assert!(!breaker.is_live(104) && breaker.is_live(105));
    }

    #[test]
    fn one_probe_goes_and_its_success_closes() {
        let breaker = opened_at(0);
        assert_eq!(breaker.admit(99), Err(1));
        assert_eq!(breaker.admit(100), Ok(()));
        assert_eq!(breaker.admit(100), Err(50));
        breaker.success();
        assert_eq!(breaker.admit(100), Ok(()));
        assert_eq!(breaker.admit(100), Ok(()));
    }

    #[test]
    fn a_failed_probe_doubles_the_time_up_to_its_bound() {
        let breaker = opened_at(0);
        let mut now = 0;
        for open_ms in [100, 200, 350, 350, 350] {
            assert_eq!(breaker.admit(now + open_ms - 1), Err(1));
            now += open_ms;
            assert_eq!(breaker.admit(now), Ok(()));
            breaker.failure(now);
        }
        // However often it opened, the bound stays.
        for _ in 0..100 {
            now += 350;
            assert_eq!(breaker.admit(now), Ok(()));
            breaker.failure(now);
        }
        assert_eq!(breaker.admit(now), Err(350));
    }

    #[test]
    fn a_probe_that_never_reports_is_replaced() {
        let breaker = opened_at(0);
        assert_eq!(breaker.admit(100), Ok(()));
        assert_eq!(breaker.admit(149), Err(1));
        assert_eq!(breaker.admit(150), Ok(()));
    }

    #[test]
    fn without_a_threshold_it_never_opens() {
        let thresholds = Thresholds { failures: 0, ..THRESHOLDS };
        let breaker: Breaker<Arc<dyn Word>> = Breaker::new(Arc::new(AtomicU64::new(0)), thresholds);
        (0..1000).for_each(|_| breaker.failure(0));
        assert_eq!(breaker.admit(0), Ok(()));
    }

    #[test]
    fn of_many_threads_one_probes() {
        for _ in 0..200 {
            let breaker = opened_at(0);
            let admitted: usize = std::thread::scope(|scope| {
                let threads: Vec<_> =
                    (0..4).map(|_| scope.spawn(|| usize::from(breaker.admit(100).is_ok()))).collect();
                threads.into_iter().map(|thread| thread.join().expect("it asks")).sum()
            });
            assert_eq!(admitted, 1);
        }
    }

    proptest! {
        #[test]
        fn whatever_the_word_holds_a_server_is_asked_again(word: u64, now_ms in 0u64..1 << 47) {
            let word: Arc<dyn Word> = Arc::new(AtomicU64::new(word));
            let breaker = Breaker::new(word, THRESHOLDS);
            breaker.failure(now_ms);
            if let Err(wait_ms) = breaker.admit(now_ms) {
                prop_assert!(wait_ms <= THRESHOLDS.open_ms_max);
                prop_assert!(breaker.admit(now_ms + wait_ms).is_ok());
            }
            breaker.success();
            prop_assert!(breaker.admit(now_ms).is_ok());
        }
    }
}
