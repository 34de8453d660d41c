//! Requests of a trace in whole seconds, spread within their second.
//!
//! The times within a second are made up: as many uniform moments as the second has requests, in rising
//! order, which is what random arrivals look like when their number is known. The order of requests stays as
//! it was.

use super::Record;
use crate::random::Random;
use std::collections::VecDeque;
use std::io;

const SECOND_NS: u64 = 1_000_000_000;
/// More requests of one second than this are spread in groups, to bound memory.
const GROUP_MAX: usize = 4 << 20;

/// The records of `input` with times within their seconds.
pub struct Spread<I> {
    input: I,
    rng: Random,
    ready: VecDeque<Record>,
    ahead: Option<io::Result<Record>>,
    last_ns: u64,
}

impl<I: Iterator<Item = io::Result<Record>>> Spread<I> {
    /// `seed` decides the made-up times.
    pub fn new(mut input: I, seed: u64) -> Self {
        let ahead = input.next();
        Self { input, rng: Random::new(seed), ready: VecDeque::new(), ahead, last_ns: 0 }
    }

    /// Takes in one whole second.
    fn fill(&mut self) {
        let Some(Ok(first)) = self.ahead else { return };
        let second = first.time_ns / SECOND_NS;
        while let Some(Ok(record)) = &self.ahead {
            if record.time_ns / SECOND_NS != second || self.ready.len() >= GROUP_MAX {
                break;
            }
            self.ready.push_back(*record);
            self.ahead = self.input.next();
        }
        let mut times: Vec<u64> = (0..self.ready.len()).map(|_| self.rng.below(SECOND_NS)).collect();
        times.sort_unstable();
        for (record, within) in self.ready.iter_mut().zip(times) {
            // A trace whose time goes back a little stays in order.
            self.last_ns = (second * SECOND_NS).saturating_add(within).max(self.last_ns);
            record.time_ns = self.last_ns;
        }
    }
}

impl<I: Iterator<Item = io::Result<Record>>> Iterator for Spread<I> {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() {
            self.fill();
        }
        match self.ready.pop_front() {
            Some(record) => Some(Ok(record)),
            None => self.ahead.take(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_stay_in_order_and_in_their_second() {
        let record = |at: u64| Ok(Record { time_ns: at / 1000 * SECOND_NS, key: at, ..Record::default() });
        let spread: Vec<_> = Spread::new((0..5000).map(record), 1).map(|r| r.expect("no error")).collect();
        assert!(
            spread
                .iter()
                .enumerate()
                .all(|(at, r)| r.key == at as u64 && r.time_ns / SECOND_NS == r.key / 1000)
        );
        assert!(spread.is_sorted_by_key(|record| record.time_ns));
        // Random arrivals: the deviation of the gaps is as large as their mean.
        let gaps: Vec<f64> = spread.windows(2).map(|w| (w[1].time_ns - w[0].time_ns) as f64).collect();
        let ratio = crate::stats::deviation(&gaps) / crate::stats::mean(&gaps);
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn an_error_comes_where_it_was() {
        let broken = || io::Error::other("broken");
        let records = vec![Ok(Record::default()), Ok(Record::default()), Err(broken())];
        let found: Vec<bool> = Spread::new(records.into_iter(), 1).map(|r| r.is_ok()).collect();
        assert_eq!(found, [true, true, false]);
    }
}
