//! Who deserves an SSD write. Pure policy: no bytes move here.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::Seconds;
use crate::shard::RamQueue;

/// A limit on the bytes written to the SSD a second, for the device's endurance: whole pages, as the device
/// gets them.
pub(crate) struct Budget {
    bytes_per_second: Option<u64>,
    /// Up to when it has been filled, and what is left; below zero by what was written beyond it.
    state: Mutex<(Seconds, i64)>,
}

impl Budget {
    pub(crate) fn new(bytes_per_second: Option<u64>) -> Self {
        Budget { bytes_per_second, state: Mutex::new((Seconds(0), 0)) }
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

/// Which of the items that leave RAM are written to the SSD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// All of them; the log's oldest items make room.
    #[default]
    All,
    /// Once the SSD is full of live items, only those that were read or stored again: pays where most items
    /// are never wanted again, and protects what is on the SSD from them.
    Returning,
}

/// What is known of an item that leaves RAM.
pub(crate) struct Candidate {
    pub from: RamQueue,
    pub seconds_left: Option<u32>,
}

/// Items that expire sooner than this are not worth a write.
const SECONDS_LEFT_MIN: u32 = 2;

/// Returns whether the candidate is worth a write: an item that does not expire at once and, while writes are
/// rationed, was read or stored again.
pub(crate) fn is_worth_a_write(candidate: &Candidate, rationed: bool) -> bool {
    if candidate.seconds_left.is_some_and(|left| left < SECONDS_LEFT_MIN) {
        return false;
    }
    !rationed || candidate.from == RamQueue::Main
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_saves_up_two_seconds_at_most_and_what_was_overdrawn_is_paid_back() {
        let budget = Budget::new(Some(100));
        assert!(!budget.allows(Seconds(0)) && budget.allows(Seconds(1)));
        budget.charge(100);
        assert!(!budget.allows(Seconds(1)) && budget.is_spent());
        assert!(budget.allows(Seconds(1000)));
        budget.charge(450);
        assert!(!budget.allows(Seconds(1000)) && !budget.allows(Seconds(1002)));
        assert!(budget.allows(Seconds(1003)));
        let unlimited = Budget::new(None);
        unlimited.charge(1 << 40);
        assert!(unlimited.allows(Seconds(0)) && !unlimited.is_spent());
    }

    #[test]
    fn rationed_writes_go_to_what_was_read_or_came_back() {
        let candidate = |from, seconds_left| Candidate { from, seconds_left };
        assert!(is_worth_a_write(&candidate(RamQueue::Small, None), false));
        assert!(!is_worth_a_write(&candidate(RamQueue::Small, None), true));
        assert!(is_worth_a_write(&candidate(RamQueue::Main, None), true));
        assert!(!is_worth_a_write(&candidate(RamQueue::Main, Some(1)), false));
    }
}
