//! Which items that leave RAM are written to the SSD.

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

/// An item that leaves RAM, as far as the decision goes.
pub(crate) struct Candidate {
    /// Whether it was read, or stored again soon after it left.
    pub was_wanted: bool,
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
    !rationed || candidate.was_wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rationed_writes_go_to_what_was_read_or_came_back() {
        let candidate = |was_wanted, seconds_left| Candidate { was_wanted, seconds_left };
        assert!(is_worth_a_write(&candidate(false, None), false));
        assert!(!is_worth_a_write(&candidate(false, None), true));
        assert!(is_worth_a_write(&candidate(true, None), true));
        assert!(!is_worth_a_write(&candidate(true, Some(1)), false));
    }
}
