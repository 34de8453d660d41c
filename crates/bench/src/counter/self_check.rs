//! Checks the checker: large histories of a sound counter, and the same with one lost update somewhere.

use super::history::{Client, History, Op};
use std::time::{Duration, Instant};

/// Clients of each history.
const CLIENTS: u64 = 10;

/// The result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Sound histories judged, and as many with one lost update.
    pub histories: u32,
    /// Sound ones that were judged wrong.
    pub false_alarms: u32,
    /// Lost updates that were found.
    pub found: u32,
    /// The longest verdict.
    pub slowest: Duration,
    /// Memory of one history, in bytes.
    pub history_bytes: usize,
}

/// Judges `histories` sound histories of `count` increments and as many with a lost update at varying places.
pub fn self_check(count: u64, histories: u32) -> Findings {
    let mut findings = Findings { histories, ..Findings::default() };
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..histories {
        let lost_at = 1 + random.below(count.saturating_sub(1).max(1));
        for lost_at in [None, Some(lost_at)] {
            let history = history(count, lost_at, &mut random);
            let began = Instant::now();
            let verdict = history.verdict();
            findings.slowest = findings.slowest.max(began.elapsed());
            findings.history_bytes = history.size_bytes();
            match lost_at {
                None => findings.false_alarms += u32::from(verdict.is_err()),
                Some(_) => findings.found += u32::from(verdict.is_err()),
            }
        }
    }
    findings
}

/// A counter that takes 1 us for each increment, more or less, and ten clients that wait for theirs in turn.
/// The increment `lost_at` overwrites the one before it.
fn history(count: u64, lost_at: Option<u64>, random: &mut Random) -> History {
    let mut history = History::default();
    history.clients.resize_with(CLIENTS as usize, Client::default);
    let (mut now_ns, mut counter) = (10_000, 0);
    for turn in 0..count {
        now_ns += 500 + random.below(1000);
        if Some(turn) != lost_at {
            counter += 1;
        }
        // A client's moments are at least 5 us apart, so that its intervals are, too.
        let start_ns = now_ns - random.below(2500);
        let end_ns = now_ns + random.below(2500);
        history.clients[(turn % CLIENTS) as usize].log.push(Op { start_ns, end_ns, value: counter });
    }
    history.final_read = Some(counter);
    history
}

/// Numbers that look random and are the same each time (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lost_update_is_found_and_nothing_else() {
        let findings = self_check(20_000, 50);
        assert_eq!((findings.false_alarms, findings.found), (0, 50));
    }
}
