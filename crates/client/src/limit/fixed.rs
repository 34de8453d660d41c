//! The fixed window: a count for each period of the clock. The state is the period's number and the count.

use super::{Limit, State, Verdict};

/// Returns the number of the period, and how much of it is left in nanoseconds.
pub(super) fn period(limit: &Limit, now_ns: u64) -> (u64, u64) {
    let period_ns = limit.period_ns();
    (now_ns / period_ns, period_ns - now_ns % period_ns)
}

/// Judges by the count that includes this request.
pub(super) fn judge(limit: &Limit, counted: u64, left_ns: u64) -> Verdict {
    let is_allowed = counted <= limit.count;
    Verdict {
        is_allowed,
        remaining: limit.count.saturating_sub(counted),
        retry_after_ns: Some(if is_allowed { 0 } else { left_ns }),
        reset_after_ns: left_ns,
    }
}

pub(super) fn decide(
    limit: &Limit,
    state: Option<State>,
    now_ns: u64,
    cost: u64,
) -> (Verdict, Option<State>) {
    let (number, left_ns) = period(limit, now_ns);
    let counted = state.filter(|state| state.0[0] == number).map_or(0, |state| state.0[1]);
    let counted = counted.saturating_add(cost);
    // Denied requests count, as it does where a server counts.
    (judge(limit, counted, left_ns), Some(State([number, counted, 0])))
}
