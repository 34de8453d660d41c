//! The fixed window: a count for each period of the clock.

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
    let (mut number, mut left_ns) = period(limit, now_ns);
    let before = match state {
        // Another client's clock is ahead: its period has begun, and nothing of it has passed.
        Some(State::Fixed { period, count }) if number.checked_add(1) == Some(period) => {
            (number, left_ns) = (period, left_ns.saturating_add(limit.period_ns()));
            count
        }
        Some(State::Fixed { period, count }) if period == number => count,
        _ => 0,
    };
    let counted = before.saturating_add(cost);
    let verdict = judge(limit, counted, left_ns);
    if !verdict.is_allowed {
        let remaining = limit.count.saturating_sub(before);
        return (Verdict { remaining, ..verdict }, None);
    }
    (verdict, Some(State::Fixed { period: number, count: counted }))
}
