//! The requests that a thread is still to make: how many, and when.

use super::Arrival;
use super::arrival::Schedule;
use super::plan::{Load, Plan};
use super::tally::Window;
use crate::random::{Random, mix};

/// The requests that are still to be made.
pub(super) struct Offer {
    /// Of an open loop that is no trace.
    pub schedule: Option<Schedule>,
    /// Requests that the window may still ask, when their number is bounded.
    pub left: Option<u64>,
    pub begin_ns: u64,
    pub turn: usize,
    pub is_exhausted: bool,
}

impl Offer {
    pub fn new(plan: &Plan, thread: usize, window: Window) -> Self {
        let threads = plan.threads;
        let share = |total: u64| total / threads as u64 + u64::from((thread as u64) < total % threads as u64);
        let schedule = match plan.load {
            Load::Open { arrival: Arrival::Trace, .. } | Load::Closed { .. } => None,
            Load::Open { rate, arrival, .. } => {
                let (number, all) = plan.thread_of_all(thread);
                let random = Random::new(mix(plan.workload.seed) ^ mix(number as u64));
                let (rate, offset) = (rate / threads as f64, number as f64 / all as f64);
                Some(Schedule::new(arrival, rate, window.load_ns, offset, random))
            }
        };
        let left = plan.requests.map(share);
        Self { schedule, left, begin_ns: window.begin_ns, turn: 0, is_exhausted: false }
    }

    /// Of a closed loop: whether one more may be asked.
    pub fn takes_one(&mut self, now_ns: u64) -> bool {
        match &mut self.left {
            Some(0) => self.is_exhausted = true,
            Some(left) if now_ns >= self.begin_ns => *left -= 1,
            Some(_) | None => {}
        }
        !self.is_exhausted
    }
}
