//! The rules by themselves, by a simulated clock.

use super::*;
use proptest::prelude::*;

const SECOND_NS: u64 = 1_000_000_000;

/// Runs arrivals, each a pause before it and a cost, through a rule. Returns the time and cost of what passed. Where
/// something was denied, the wait that was named is tried, to the nanosecond.
fn passed(limit: &Limit, arrivals: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let (mut state, mut now_ns) = (None, 1_700_000_000 * SECOND_NS);
    let mut passed = Vec::new();
    for (pause_ns, cost) in arrivals {
        now_ns += pause_ns;
        let (verdict, new) = limit.decide(state, now_ns, *cost);
        if verdict.is_allowed {
            assert_eq!(verdict.retry_after_ns, Some(0));
            passed.push((now_ns, *cost));
        } else if let Some(wait_ns) = verdict.retry_after_ns.filter(|_| *cost <= limit.cost_max()) {
            let then = |wait_ns: u64| limit.decide(state, now_ns + wait_ns, *cost).0.is_allowed;
            assert!(then(wait_ns), "it passes after the wait that was named");
            assert!(!then(wait_ns - 1), "and not before");
        }
        // A peek tells what passes, and not more.
        let state_now = new.or(state);
        let (peek, _) = limit.decide(state_now, now_ns, 0);
        if peek.remaining < u64::MAX {
            assert!(limit.decide(state_now, now_ns, peek.remaining).0.is_allowed);
            assert!(!limit.decide(state_now, now_ns, peek.remaining + 1).0.is_allowed);
        }
        state = state_now;
    }
    passed
}

fn arrivals() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let pause = prop_oneof![Just(0), 1..1000u64, 0..SECOND_NS / 5, 0..3 * SECOND_NS];
    prop::collection::vec((pause, 1..5u64), 1..200)
}

proptest! {
    #[test]
    fn gcra_never_lets_more_pass_than_a_burst_and_the_rate(
        count in 1u64..50, burst in 5u64..60, list in arrivals(),
    ) {
        let limit = Limit { count, period: Duration::from_secs(1), algorithm: Algorithm::Gcra { burst } };
        let passed = passed(&limit, &list);
        let interval_ns = SECOND_NS.div_ceil(count);
        for (at, (from_ns, _)) in passed.iter().enumerate() {
            let mut sum = 0;
            for (now_ns, cost) in &passed[at..] {
                sum += cost;
                prop_assert!(sum <= burst + (now_ns - from_ns) / interval_ns);
            }
        }
    }

    #[test]
    fn a_fixed_window_lets_its_count_pass_in_each_period(count in 5u64..50, list in arrivals()) {
        let limit = Limit::fixed_window(count, Duration::from_secs(1));
        let mut sums = std::collections::HashMap::new();
        for (now_ns, cost) in passed(&limit, &list) {
            *sums.entry(now_ns / SECOND_NS).or_insert(0) += cost;
        }
        prop_assert!(sums.values().all(|sum| *sum <= count));
    }

    #[test]
    fn a_sliding_window_lets_pass_what_the_two_counts_allow(count in 5u64..50, list in arrivals()) {
        let limit = Limit::sliding_window(count, Duration::from_secs(1));
        let passed = passed(&limit, &list);
        for (at, (now_ns, _)) in passed.iter().enumerate() {
            let in_period = |number: u64| -> u64 {
                let of_period = passed[..=at].iter().filter(|(when, _)| when / SECOND_NS == number);
                of_period.map(|(_, cost)| cost).sum()
            };
            let number = now_ns / SECOND_NS;
            let left = (SECOND_NS - now_ns % SECOND_NS) as f64 / SECOND_NS as f64;
            let estimate = in_period(number - 1) as f64 * left + in_period(number) as f64;
            prop_assert!(estimate <= count as f64 + 1e-6, "{estimate}");
        }
    }

    #[test]
    fn a_limit_that_is_kept_is_never_denied(count in 1u64..50) {
        let pause_ns = SECOND_NS.div_ceil(count);
        let period = Duration::from_secs(1);
        for limit in [Limit::gcra(count, period), Limit::fixed_window(count, period)] {
            prop_assert_eq!(passed(&limit, &vec![(pause_ns, 1); 500]).len(), 500);
        }
    }

    #[test]
    fn whatever_a_state_holds_a_rule_decides(
        numbers: [u64; 3], kind in 0..3, now_ms: u64, cost: u64, count: u64, period: u64, which in 0..3,
    ) {
        let [period_nr, before, counted] = numbers;
        let state = match kind {
            0 => State::Fixed { period: period_nr, count: counted },
            1 => State::Sliding { period: period_nr, before, count: counted },
            _ => State::Gcra { full_at_ns: period_nr },
        };
        let period = Duration::from_nanos(period);
        let limit = match which {
            0 => Limit::fixed_window(count, period),
            1 => Limit::sliding_window(count, period),
            _ => Limit { count, period, algorithm: Algorithm::Gcra { burst: cost } },
        };
        let now_ns = now_ms.saturating_mul(1_000_000);
        if let (_, Some(new)) = limit.decide(Some(state), now_ns, cost) {
            limit.state_lives(&new, now_ns);
        }
    }
}

#[test]
fn another_clock_that_is_ahead_lets_no_more_pass() {
    let limit = Limit::sliding_window(10, Duration::from_secs(1));
    let (ahead_ns, behind_ns) = (100 * SECOND_NS + 50, 100 * SECOND_NS - 50);
    let (_, state) = limit.decide(None, ahead_ns, 10);
    assert!(!limit.decide(state, behind_ns, 1).0.is_allowed);
    let limit = Limit::gcra(10, Duration::from_secs(1));
    let (_, state) = limit.decide(None, ahead_ns, 10);
    assert!(!limit.decide(state, behind_ns, 1).0.is_allowed);
}

#[test]
fn another_clock_that_is_ahead_keeps_its_fixed_window() {
    let limit = Limit::fixed_window(10, Duration::from_secs(1));
    let (ahead_ns, behind_ns) = (100 * SECOND_NS + 50, 100 * SECOND_NS - 50);
    let (_, state) = limit.decide(None, ahead_ns, 10);
    let (verdict, _) = limit.decide(state, behind_ns, 1);
    assert!(!verdict.is_allowed);
    assert_eq!(verdict.retry_after_ns, Some(SECOND_NS + 50), "the end of the period that has begun");
}

#[test]
fn a_clock_that_is_set_by_an_hour_denies_nobody_for_longer_than_two_periods() {
    let (now_ns, hour_ns, period_ns) = (500_000 * SECOND_NS, 3_600 * SECOND_NS, SECOND_NS);
    for limit in all(10) {
        for set_ns in [now_ns - hour_ns, now_ns + hour_ns] {
            let (_, state) = limit.decide(None, now_ns, 10);
            let (verdict, _) = limit.decide(state, set_ns, 1);
            assert!(verdict.retry_after_ns.expect("it can pass") <= 2 * period_ns, "{limit:?}: {verdict:?}");
            assert!(limit.decide(state, set_ns + 2 * period_ns, 1).0.retry_after_ns <= Some(2 * period_ns));
        }
    }
}

#[test]
fn a_denial_changes_no_state_and_a_peek_neither() {
    for limit in all(5) {
        let now_ns = 1000 * SECOND_NS;
        let (_, state) = limit.decide(None, now_ns, 4);
        let (denied, new) = limit.decide(state, now_ns, 2);
        assert_eq!((denied.is_allowed, denied.remaining, new), (false, 1, None), "{limit:?}");
        let (peek, new) = limit.decide(state, now_ns, 0);
        assert_eq!((peek.is_allowed, peek.remaining, new), (true, 1, None), "{limit:?}");
        assert!(limit.decide(state, now_ns, 1).0.is_allowed, "{limit:?}");
    }
}

#[test]
fn a_cost_beyond_the_limit_never_passes() {
    for limit in all(5) {
        let (verdict, new) = limit.decide(None, 1000 * SECOND_NS, 6);
        assert_eq!((verdict.is_allowed, verdict.retry_after_ns, new), (false, None, None), "{limit:?}");
    }
}

#[test]
fn a_state_of_another_rule_counts_for_nothing() {
    for limit in all(5) {
        for other in all(5).into_iter().filter(|other| other.algorithm != limit.algorithm) {
            let (_, state) = other.decide(None, 1000 * SECOND_NS, 5);
            assert!(limit.decide(state, 1000 * SECOND_NS, 5).0.is_allowed, "{limit:?} after {other:?}");
        }
    }
}

#[test]
fn a_period_is_whole_milliseconds_within_its_bounds() {
    let of = |nanos| Limit::gcra(1, Duration::from_nanos(nanos)).period_ms();
    assert_eq!([0, 1, 1_000_000, 1_000_001, u64::MAX].map(of), [1, 1, 1, 2, PERIOD_MS_MAX]);
}

fn all(count: u64) -> [Limit; 3] {
    let period = Duration::from_secs(1);
    [Limit::fixed_window(count, period), Limit::sliding_window(count, period), Limit::gcra(count, period)]
}

#[test]
fn a_limit_of_none_lets_nothing_pass() {
    let period = Duration::from_secs(60);
    for limit in [Limit::fixed_window(0, period), Limit::sliding_window(0, period), Limit::gcra(0, period)] {
        assert_eq!(limit.decide(None, 1, 1), (Verdict::NEVER, None));
        assert_eq!(limit.decide(None, 1, 0).0.remaining, 0);
    }
}
