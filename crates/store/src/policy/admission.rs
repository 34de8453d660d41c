//! Which items that leave RAM are written to the SSD.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Which of the items that leave RAM are written to the SSD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// All of them; the log's oldest items make room.
    #[default]
    All,
    /// Once the SSD is full of live items, only those that were read or stored again: pays where most items
    /// are never wanted again, and protects the items on the SSD from them.
    Returning,
}

impl Admission {
    /// Returns a word for it, as `--ssd-admission` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Admission::All => "all",
            Admission::Returning => "returning",
        }
    }

    /// Returns whether writes to the SSD are for items that were wanted more than once: by
    /// [`Returning`](Admission::Returning), once the SSD is full, or always if there is a write limit.
    #[inline]
    pub(crate) fn is_rationing(self, is_limited: bool, is_full: impl FnOnce() -> bool) -> bool {
        self == Admission::Returning && (is_limited || is_full())
    }
}

/// An admission that may change while items leave RAM.
pub(crate) struct LiveAdmission(AtomicBool);

impl LiveAdmission {
    pub(crate) fn new(admission: Admission) -> LiveAdmission {
        LiveAdmission(AtomicBool::new(admission == Admission::Returning))
    }

    #[inline]
    pub(crate) fn get(&self) -> Admission {
        if self.0.load(Relaxed) { Admission::Returning } else { Admission::All }
    }

    pub(crate) fn set(&self, admission: Admission) {
        self.0.store(admission == Admission::Returning, Relaxed);
    }
}

/// An item that leaves RAM, as far as the decision goes.
pub(crate) struct Candidate {
    /// Whether it was read, or stored again soon after it left.
    pub was_wanted: bool,
    pub seconds_left: Option<u32>,
}

/// Items that expire sooner than this are not worth a write.
const SECONDS_LEFT_MIN: u32 = 2;

/// Why an item that leaves RAM is not written to the SSD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It expires at once.
    Expiring,
    /// The write limit leaves nothing.
    Limit,
    /// Writes are rationed, and it was neither read nor stored again.
    Unwanted,
    /// The SSD takes no items of its length, or is off.
    Unfit,
}

/// Returns why the candidate is not worth a write, if it is not. It is worth one if it does not expire at once and,
/// while writes are rationed, was read or stored again.
pub(crate) fn refusal(candidate: &Candidate, rationed: bool) -> Option<Refusal> {
    if candidate.seconds_left.is_some_and(|left| left < SECONDS_LEFT_MIN) {
        return Some(Refusal::Expiring);
    }
    (rationed && !candidate.was_wanted).then_some(Refusal::Unwanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_rationed_once_the_ssd_is_full_or_by_a_limit_and_never_if_all_are_admitted() {
        let is_rationing = |admission: Admission, is_limited, is_full| {
            LiveAdmission::new(admission).get().is_rationing(is_limited, || is_full)
        };
        assert!(!is_rationing(Admission::All, true, true));
        assert!(is_rationing(Admission::Returning, true, false));
        assert!(is_rationing(Admission::Returning, false, true));
        assert!(!is_rationing(Admission::Returning, false, false));
    }

    #[test]
    fn rationed_writes_go_to_what_was_read_or_came_back() {
        let candidate = |was_wanted, seconds_left| Candidate { was_wanted, seconds_left };
        assert_eq!(refusal(&candidate(false, None), false), None);
        assert_eq!(refusal(&candidate(false, None), true), Some(Refusal::Unwanted));
        assert_eq!(refusal(&candidate(true, None), true), None);
        assert_eq!(refusal(&candidate(true, Some(1)), false), Some(Refusal::Expiring));
    }
}
