//! The retry budget: retries are at most a share of the requests, so that they cannot multiply an overload.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a retry costs. A request pays in as many of these as the percentage says.
const RETRY_COST: u64 = 100;
/// Retries that are free at the start, and that a quiet client may save up.
const RETRIES_SAVED_MAX: u64 = 10;

/// A bucket of tokens that requests fill and retries empty.
#[derive(Debug)]
pub struct Budget {
    tokens: AtomicU64,
    percent: u64,
}

impl Budget {
    /// Makes a budget of `percent` retries for 100 requests, and ten more. With 0 there are none at all.
    pub fn new(percent: u32) -> Self {
        let saved = if percent == 0 { 0 } else { RETRIES_SAVED_MAX };
        Budget { tokens: AtomicU64::new(saved * RETRY_COST), percent: u64::from(percent) }
    }

    /// Counts a request.
    pub fn deposit(&self) {
        let max = RETRIES_SAVED_MAX * RETRY_COST;
        // Most of the time the bucket is full, and nothing is written.
        let fill = |tokens: u64| (tokens < max).then(|| max.min(tokens + self.percent));
        let _ = self.tokens.fetch_update(Relaxed, Relaxed, fill);
    }

    /// Takes the tokens for one retry. Returns false if there are too few.
    pub fn withdraw(&self) -> bool {
        self.tokens.fetch_update(Relaxed, Relaxed, |tokens| tokens.checked_sub(RETRY_COST)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_a_tenth_of_the_requests_and_ten_more() {
        let budget = Budget::new(10);
        let mut retries = 0;
        for _ in 0..10_000 {
            budget.deposit();
            retries += u32::from(budget.withdraw());
        }
        assert!((1000..=1010).contains(&retries), "{retries}");
    }

    #[test]
    fn what_is_saved_up_is_bounded() {
        let budget = Budget::new(10);
        (0..1_000_000).for_each(|_| budget.deposit());
        assert_eq!((0..1000).filter(|_| budget.withdraw()).count(), 10);
    }

    #[test]
    fn without_a_percentage_nothing_is_tried_again() {
        let budget = Budget::new(0);
        (0..1000).for_each(|_| budget.deposit());
        assert!(!budget.withdraw());
    }

    #[test]
    fn threads_share_one_budget() {
        let budget = Budget::new(10);
        let one = || {
            (0..10_000)
                .filter(|_| {
                    budget.deposit();
                    budget.withdraw()
                })
                .count()
        };
        let retries: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|thread| thread.join().expect("it counts")).sum()
        });
        assert!((3990..=4010).contains(&retries), "{retries}");
    }
}
