//! Counts of this process alone, for while the cache fails: bounded, and gone with the process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use larder_rate::{Limit, State, Verdict};

use crate::process::PerProcess;

/// The most keys that are counted at a time.
const KEYS_MAX: usize = 10_000;

/// Each key's state, and when it stops to matter.
type States = HashMap<Box<[u8]>, (State, u64)>;

#[derive(Debug, Default)]
pub(super) struct Local {
    states: PerProcess<Mutex<States>>,
}

impl Local {
    /// Decides and counts. A new key pushes out those that no longer matter, or if all do, any.
    pub(super) fn check(&self, key: &[u8], limit: &Limit, now_ns: u64, cost: u64) -> Verdict {
        let states = self.states.get(|_| {});
        let mut states = states.lock().unwrap_or_else(PoisonError::into_inner);
        let (verdict, new) = limit.decide(states.get(key).map(|(state, _)| *state), now_ns, cost);
        let Some(new) = new else { return verdict };
        if states.len() >= KEYS_MAX && !states.contains_key(key) {
            states.retain(|_, (_, until_ns)| *until_ns > now_ns);
            if states.len() >= KEYS_MAX {
                let any = states.keys().next().cloned();
                any.and_then(|any| states.remove(&any));
            }
        }
        let lives_ns = limit.state_lives(&new, now_ns).as_nanos() as u64;
        states.insert(key.into(), (new, now_ns.saturating_add(lives_ns)));
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn counts_are_bounded_whatever_keys_come() {
        let local = Local::default();
        let limit = Limit::gcra(1, Duration::from_secs(1000));
        for number in 0..3 * KEYS_MAX {
            assert!(local.check(&number.to_le_bytes(), &limit, 0, 1).is_allowed);
            assert!(!local.check(&number.to_le_bytes(), &limit, 0, 1).is_allowed);
        }
        assert!(local.states.get(|_| {}).lock().expect("it is whole").len() <= KEYS_MAX);
    }

    #[test]
    fn keys_that_no_longer_matter_go_first() {
        let local = Local::default();
        let limit = Limit::gcra(1, Duration::from_secs(1));
        assert!(local.check(b"kept", &Limit::gcra(1, Duration::from_secs(1000)), 0, 1).is_allowed);
        for number in 0..KEYS_MAX - 1 {
            local.check(&number.to_le_bytes(), &limit, 0, 1);
        }
        let later_ns = 2_000_000_000;
        assert!(local.check(b"new", &limit, later_ns, 1).is_allowed);
        assert!(!local.check(b"kept", &Limit::gcra(1, Duration::from_secs(1000)), later_ns, 1).is_allowed);
        assert_eq!(local.states.get(|_| {}).lock().expect("it is whole").len(), 2);
    }
}
