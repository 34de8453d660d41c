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
    fn rationed_writes_go_to_what_was_read_or_came_back() {
        let candidate = |was_wanted, seconds_left| Candidate { was_wanted, seconds_left };
        assert_eq!(refusal(&candidate(false, None), false), None);
        assert_eq!(refusal(&candidate(false, None), true), Some(Refusal::Unwanted));
        assert_eq!(refusal(&candidate(true, None), true), None);
        assert_eq!(refusal(&candidate(true, Some(1)), false), Some(Refusal::Expiring));
    }
}
