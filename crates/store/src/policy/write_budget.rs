//! How much may be written to the SSD a second.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::Seconds;

/// A limit on the bytes written to the SSD a second, for the device's endurance: whole pages, as the device
/// gets them.
pub(crate) struct WriteBudget {
    bytes_per_second: Option<u64>,
    /// The second up to which it has been filled, and the bytes left, which are negative after a write beyond
    /// them.
    state: Mutex<(Seconds, i64)>,
}

impl WriteBudget {
    pub(crate) fn new(bytes_per_second: Option<u64>) -> Self {
        WriteBudget { bytes_per_second, state: Mutex::new((Seconds(0), 0)) }
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.bytes_per_second.is_some()
    }

    fn state(&self) -> MutexGuard<'_, (Seconds, i64)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something may be written now. One second's worth may be saved up.
    pub(crate) fn allows(&self, now: Seconds) -> bool {
        let Some(rate) = self.bytes_per_second else {
            return true;
        };
        let mut state = self.state();
        let (since, left) = &mut *state;
        if now > *since {
            let filled = i128::from(*left) + i128::from(rate) * i128::from(now.0 - since.0);
            *left = filled.min(i128::from(rate) * 2).min(i128::from(i64::MAX)) as i64;
            *since = now;
        }
        *left > 0
    }

    /// Whether nothing was left when it was last filled.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_limited() && self.state().1 <= 0
    }

    /// Takes what goes to the device out of the budget.
    pub(crate) fn charge(&self, bytes: usize) {
        if self.is_limited() {
            let mut state = self.state();
            state.1 = state.1.saturating_sub_unsigned(bytes as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_saves_up_two_seconds_at_most_and_what_was_overdrawn_is_paid_back() {
        let budget = WriteBudget::new(Some(100));
        assert!(!budget.allows(Seconds(0)) && budget.allows(Seconds(1)));
        budget.charge(100);
        assert!(!budget.allows(Seconds(1)) && budget.is_spent());
        assert!(budget.allows(Seconds(1000)));
        budget.charge(450);
        assert!(!budget.allows(Seconds(1000)) && !budget.allows(Seconds(1002)));
        assert!(budget.allows(Seconds(1003)));
        let unlimited = WriteBudget::new(None);
        unlimited.charge(1 << 40);
        assert!(unlimited.allows(Seconds(0)) && !unlimited.is_spent());
    }
}
