//! Who deserves an SSD write. Pure policy: no bytes move here.

use std::sync::Mutex;
use std::sync::PoisonError;

use crate::clock::Seconds;
use crate::shard::RamQueue;

/// A limit on the bytes written to the SSD a second, for the device's endurance.
pub(crate) struct Budget {
    bytes_per_second: Option<u64>,
    state: Mutex<(Seconds, u64)>,
}

impl Budget {
    pub(crate) fn new(bytes_per_second: Option<u64>) -> Self {
        Budget { bytes_per_second, state: Mutex::new((Seconds(0), 0)) }
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.bytes_per_second.is_some()
    }

    /// Takes `bytes` out of this second's budget, if they are there. One second's worth may be saved up.
    pub(crate) fn spend(&self, bytes: usize, now: Seconds) -> bool {
        let Some(rate) = self.bytes_per_second else {
            return true;
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, left) = &mut *state;
        if now > *since {
            *left = left
                .saturating_add(rate.saturating_mul(u64::from(now.0 - since.0)))
                .min(rate.saturating_mul(2));
            *since = now;
        }
        match left.checked_sub(bytes as u64) {
            Some(rest) => {
                *left = rest;
                true
            }
            None => false,
        }
    }
}

/// What is known of an item that leaves RAM.
pub(crate) struct Candidate {
    pub from: RamQueue,
    pub hot: u8,
    pub seconds_left: Option<u32>,
}

/// Items that expire sooner than this are not worth a write.
const SECONDS_LEFT_MIN: u32 = 2;

/// Whether the candidate is worth a write. While the SSD has room, everything is that won't expire at once;
/// when a write costs a live item its place, or writes are rationed, only what was read or came back.
pub(crate) fn is_worth_a_write(candidate: &Candidate, rationed: bool) -> bool {
    if candidate.seconds_left.is_some_and(|left| left < SECONDS_LEFT_MIN) {
        return false;
    }
    !rationed || candidate.from == RamQueue::Main || candidate.hot > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_saves_up_two_seconds_at_most() {
        let budget = Budget::new(Some(100));
        assert!(budget.spend(100, Seconds(1)));
        assert!(budget.spend(100, Seconds(1000)) && budget.spend(100, Seconds(1000)));
        assert!(!budget.spend(1, Seconds(1000)));
        assert!(budget.spend(100, Seconds(1001)) && !budget.spend(1, Seconds(1001)));
    }

    #[test]
    fn rationed_writes_go_to_what_was_read_or_came_back() {
        let candidate = |from, hot, seconds_left| Candidate { from, hot, seconds_left };
        assert!(is_worth_a_write(&candidate(RamQueue::Small, 0, None), false));
        assert!(!is_worth_a_write(&candidate(RamQueue::Small, 0, None), true));
        assert!(is_worth_a_write(&candidate(RamQueue::Small, 1, None), true));
        assert!(is_worth_a_write(&candidate(RamQueue::Main, 0, None), true));
        assert!(!is_worth_a_write(&candidate(RamQueue::Main, 3, Some(1)), false));
    }
}
