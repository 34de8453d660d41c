//! The generic cell rate algorithm. The state is the time when the bucket is full again.

use super::{Limit, State, Verdict};

pub(super) fn decide(
    limit: &Limit,
    burst: u64,
    state: Option<State>,
    now_ns: u64,
    cost: u64,
) -> (Verdict, Option<State>) {
    // Rounded up, so that never more than the rate passes.
    let interval_ns = limit.period_ns().div_ceil(limit.count()).max(1);
    let bucket_ns = interval_ns.saturating_mul(burst);
    let full_at = match state {
        // No clock of a client is a bucket ahead: this one was set back. The bucket is empty.
        Some(State::Gcra { full_at_ns }) if full_at_ns.saturating_sub(now_ns) / 2 > bucket_ns => {
            now_ns.saturating_add(bucket_ns)
        }
        Some(State::Gcra { full_at_ns }) => full_at_ns.max(now_ns),
        _ => now_ns,
    };
    let full_then = full_at.saturating_add(interval_ns.saturating_mul(cost));
    let over_ns = (full_then - now_ns).saturating_sub(bucket_ns);
    let is_allowed = over_ns == 0;
    let full_at = if is_allowed { full_then } else { full_at };
    let verdict = Verdict {
        is_allowed,
        remaining: bucket_ns.saturating_sub(full_at - now_ns) / interval_ns,
        retry_after_ns: Some(over_ns),
        reset_after_ns: full_at - now_ns,
    };
    (verdict, is_allowed.then_some(State::Gcra { full_at_ns: full_at }))
}
