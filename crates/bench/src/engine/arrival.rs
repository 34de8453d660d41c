//! When requests become due in an open loop.

use crate::random::Random;
use std::fmt;
use std::str::FromStr;

/// How requests are spread over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Evenly.
    Constant,
    /// As if of many independent users: exponential gaps.
    Poisson,
    /// This many at once, the bursts evenly.
    Burst(u32),
    /// At the times of a trace.
    Trace,
}

impl FromStr for Arrival {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "const" || text == "constant" => Ok(Self::Constant),
            None if text == "poisson" => Ok(Self::Poisson),
            Some(("burst", size)) => match size.parse() {
                Ok(size) if size > 0 => Ok(Self::Burst(size)),
                _ => Err("burst:N needs a number of requests of at least 1".to_string()),
            },
            _ => Err("is one of const, poisson, burst:N".to_string()),
        }
    }
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => write!(f, "constant"),
            Self::Poisson => write!(f, "poisson"),
            Self::Burst(size) => write!(f, "burst:{size}"),
            Self::Trace => write!(f, "trace"),
        }
    }
}

/// One thread's schedule: the times at which its requests become due.
#[derive(Clone, Debug)]
pub struct Schedule {
    arrival: Arrival,
    begin_ns: u64,
    gap_ns: f64,
    /// Of the next request, from the beginning.
    next_ns: f64,
    number: u64,
    random: Random,
}

impl Schedule {
    /// A schedule of `rate` requests a second in the mean from `begin_ns` on. Of several threads, `offset` (0
    /// to 1) moves each by a part of its gap, so that together they are even.
    pub fn new(arrival: Arrival, rate: f64, begin_ns: u64, offset: f64, mut random: Random) -> Self {
        let gap_ns = 1e9 / rate;
        let next_ns = match arrival {
            Arrival::Poisson => random.exponential() * gap_ns,
            Arrival::Burst(size) => gap_ns * offset * f64::from(size),
            Arrival::Constant | Arrival::Trace => gap_ns * offset,
        };
        Self { arrival, begin_ns, gap_ns, next_ns, number: 0, random }
    }

    /// When the next request is due.
    pub fn due_ns(&self) -> u64 {
        self.begin_ns + self.next_ns as u64
    }

    /// Advances to the next request.
    pub fn advance(&mut self) {
        self.number += 1;
        match self.arrival {
            Arrival::Poisson => self.next_ns += self.random.exponential() * self.gap_ns,
            Arrival::Burst(size) if !self.number.is_multiple_of(u64::from(size)) => {}
            Arrival::Burst(size) => self.next_ns += self.gap_ns * f64::from(size),
            Arrival::Constant | Arrival::Trace => self.next_ns += self.gap_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arrival: Arrival, count: usize) -> Vec<u64> {
        let mut schedule = Schedule::new(arrival, 1000.0, 5, 0.0, Random::new(1));
        let step = |_| {
            let due = schedule.due_ns();
            schedule.advance();
            due
        };
        (0..count).map(step).collect()
    }

    #[test]
    fn constant_is_even_and_does_not_drift() {
        let times = times(Arrival::Constant, 1_000_001);
        assert_eq!(times[..3], [5, 1_000_005, 2_000_005]);
        assert!(times[1_000_000].abs_diff(1_000_000_000_005) < 1000);
    }

    #[test]
    fn bursts_come_at_once() {
        assert_eq!(times(Arrival::Burst(3), 7), [5, 5, 5, 3_000_005, 3_000_005, 3_000_005, 6_000_005]);
    }

    #[test]
    fn poisson_keeps_the_rate_and_varies() {
        let times = times(Arrival::Poisson, 100_001);
        assert!(times.is_sorted());
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.02, "{mean}");
        assert!((square.sqrt() / mean - 1.0).abs() < 0.03);
    }
}
