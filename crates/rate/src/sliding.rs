//! The sliding window: this period's count, and the share of the last period's that still lies within one period.

use super::{Limit, State, Verdict};

pub(super) fn decide(
    limit: &Limit,
    state: Option<State>,
    now_ns: u64,
    cost: u64,
) -> (Verdict, Option<State>) {
    let period_ns = limit.period_ns();
    let mut number = now_ns / period_ns;
    let mut into_ns = now_ns % period_ns;
    let (before, current) = match state {
        // Another client's clock is ahead: its period has begun, and nothing of it has passed.
        Some(State::Sliding { period, before, count }) if number.checked_add(1) == Some(period) => {
            (number, into_ns) = (period, 0);
            (before, count)
        }
        Some(State::Sliding { period, before, count }) if period == number => (before, count),
        Some(State::Sliding { period, count, .. }) if period.checked_add(1) == Some(number) => (count, 0),
        _ => (0, 0),
    };
    // Rounded up: the rest of the last period never counts for less than its share.
    let still = share(before, period_ns - into_ns, period_ns);
    let counted = still.saturating_add(current).saturating_add(cost);
    let is_allowed = counted <= limit.count;
    let retry_after_ns =
        if is_allowed { 0 } else { wait_ns(limit, (before, current), (into_ns, period_ns), cost) };
    let used = if is_allowed { counted } else { counted - cost };
    // The current period's requests leave the window with the end of the next.
    let reset_after_ns = if used == 0 { 0 } else { (period_ns - into_ns).saturating_add(period_ns) };
    let verdict = Verdict {
        is_allowed,
        remaining: limit.count.saturating_sub(used),
        retry_after_ns: Some(retry_after_ns),
        reset_after_ns,
    };
    (
        verdict,
        is_allowed.then(|| State::Sliding { period: number, before, count: current.saturating_add(cost) }),
    )
}

/// Returns `count * part / whole`, rounded up.
fn share(count: u64, part: u64, whole: u64) -> u64 {
    let share = (u128::from(count) * u128::from(part)).div_ceil(u128::from(whole));
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Returns how long it takes until `cost` passes, if nothing else comes.
fn wait_ns(limit: &Limit, (before, current): (u64, u64), (into_ns, period_ns): (u64, u64), cost: u64) -> u64 {
    // How far into a period only `room` is left of `count` requests of the one before it.
    let faded_ns = |count: u64, room: u64| {
        let kept = u128::from(room) * u128::from(period_ns) / u128::from(count.max(1));
        period_ns.saturating_sub(u64::try_from(kept).unwrap_or(u64::MAX))
    };
    match limit.count.checked_sub(current.saturating_add(cost)) {
        Some(room) => faded_ns(before, room).saturating_sub(into_ns),
        None => (period_ns - into_ns).saturating_add(faded_ns(current, limit.count.saturating_sub(cost))),
    }
}
