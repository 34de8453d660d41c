//! The look-ups in DNS and their outcome, counted by the thread that makes them and read by others.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What became of the look-ups.
pub struct Lookups(Mutex<Outcomes>);

struct Outcomes {
    answered: u64,
    failed: u64,
    failed_in_a_row: u64,
    /// When the last look-up was answered; until then, when the daemon started.
    answered_at: Instant,
}

/// The look-ups up to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookupCounts {
    /// Those that brought servers.
    pub answered: u64,
    /// Those that DNS did not answer, or with something else than servers.
    pub failed: u64,
    /// Those that failed since the last one that was answered.
    pub failed_in_a_row: u64,
    /// The time since the last one that was answered, or since the daemon started.
    pub answer_age: Duration,
}

impl Lookups {
    /// Returns the counts of a daemon that starts now.
    pub fn new() -> Lookups {
        let answered_at = Instant::now();
        Lookups(Mutex::new(Outcomes { answered: 0, failed: 0, failed_in_a_row: 0, answered_at }))
    }

    /// Counts a look-up.
    pub fn count(&self, is_answered: bool) {
        let mut outcomes = self.outcomes();
        if is_answered {
            outcomes.answered += 1;
            outcomes.failed_in_a_row = 0;
            outcomes.answered_at = Instant::now();
        } else {
            outcomes.failed += 1;
            outcomes.failed_in_a_row += 1;
        }
    }

    /// Returns the counts.
    pub fn counts(&self) -> LookupCounts {
        let Outcomes { answered, failed, failed_in_a_row, answered_at } = *self.outcomes();
        LookupCounts { answered, failed, failed_in_a_row, answer_age: answered_at.elapsed() }
    }

    fn outcomes(&self) -> MutexGuard<'_, Outcomes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_a_row_of_failures() {
        let lookups = Lookups::new();
        let counts = |is_answered| {
            lookups.count(is_answered);
            let LookupCounts { answered, failed, failed_in_a_row, .. } = lookups.counts();
            (answered, failed, failed_in_a_row)
        };
        assert_eq!(counts(false), (0, 1, 1));
        assert_eq!(counts(true), (1, 1, 0));
        assert_eq!(counts(false), (1, 2, 1));
        assert_eq!(counts(false), (1, 3, 2));
        assert_eq!(counts(true), (2, 3, 0));
        assert!(lookups.counts().answer_age < Duration::from_secs(60));
    }
}
