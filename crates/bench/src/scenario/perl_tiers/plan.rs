//! Which loops run in which order, and how long each may take.

use super::row::{Loop, ROWS};
use std::time::Duration;

/// What a loop takes at least, with its start.
const STEP_S: f64 = 0.15;
/// Rounds, where there is time for them.
const ROUNDS: u64 = 3;
/// A remote server takes longer, so its loops get more time; so do those of the first group, which is the document's.
const FAR_UNITS: f64 = 4.0;
const FIRST_UNITS: f64 = 4.0;

/// One loop of a row in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The row's number.
    pub row: usize,
    /// The loop.
    pub which: Loop,
    /// Bytes of the value.
    pub bytes: u32,
    /// The site's number.
    pub site: usize,
    /// Its time relative to that of other steps.
    pub units: f64,
}

/// What to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The rows' numbers.
    pub rows: Vec<usize>,
    /// Sizes and sites, the most important first.
    pub groups: Vec<(u32, usize)>,
    /// How often each loop runs.
    pub rounds: u64,
    /// Iterations of a loop, in all rounds together.
    pub count: u64,
}

impl Plan {
    /// As much as a budget allows, or everything once: the first size at all sites, then the other sizes at the first
    /// site, then the rest.
    pub fn new(
        rows: &[usize],
        (sizes, sites): (&[u32], usize),
        count: u64,
        budget: Duration,
        is_everything: bool,
    ) -> Self {
        let first = sizes.iter().take(1).flat_map(|bytes| (0..sites).map(move |site| (*bytes, site)));
        let near = sizes.iter().skip(1).map(|bytes| (*bytes, 0));
        let far = sizes.iter().skip(1).flat_map(|bytes| (1..sites).map(move |site| (*bytes, site)));
        let mut groups: Vec<_> = first.chain(near).chain(far).collect();
        let group_s = rows.iter().map(|row| ROWS[*row].loops.len()).sum::<usize>().max(1) as f64 * STEP_S;
        let fit = |rounds: u64| (budget.as_secs_f64() / (group_s * rounds as f64)) as usize;
        let rounds = (1..=ROUNDS).rev().find(|rounds| fit(*rounds) >= groups.len()).unwrap_or(1);
        if !is_everything {
            groups.truncate(fit(rounds).max(1));
        }
        Self { rows: rows.to_vec(), groups, rounds, count }
    }

    /// Iterations of a loop in one round.
    pub fn iterations(&self) -> u64 {
        self.count.div_ceil(self.rounds).max(1)
    }

    /// The steps in their order: the rows take turns, and each round begins with another one.
    pub fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        let rounds =
            (0..self.groups.len()).flat_map(|group| (0..self.rounds).map(move |round| (group, round)));
        rounds.flat_map(move |(group, round)| {
            let (bytes, site) = self.groups[group];
            let skip = round as usize % self.rows.len().max(1);
            let rows = self.rows.iter().cycle().skip(skip).take(self.rows.len());
            rows.flat_map(move |row| {
                let units = if ROWS[*row].far { FAR_UNITS } else { 1.0 };
                let units = if group == 0 { units * FIRST_UNITS } else { units };
                ROWS[*row].loops.iter().map(move |which| Step {
                    row: *row,
                    which: *which,
                    bytes,
                    site,
                    units,
                })
            })
        })
    }

    /// The units of all steps.
    pub fn units(&self) -> f64 {
        self.steps().map(|step| step.units).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [u32; 3] = [28_579, 100, 9_000];

    fn plan(seconds: u64) -> Plan {
        Plan::new(&[0, 2, 4], (&SIZES, 3), 50_000, Duration::from_secs(seconds), false)
    }

    #[test]
    fn a_short_budget_keeps_what_matters_most() {
        let long = plan(600);
        assert_eq!((long.groups.len(), long.rounds, long.iterations()), (9, 3, 16_667));
        assert_eq!(long.groups[..5], [(28_579, 0), (28_579, 1), (28_579, 2), (100, 0), (9_000, 0)]);
        let short = plan(0);
        assert_eq!((short.groups.as_slice(), short.rounds), (&[(28_579, 0)][..], 1));
        assert_eq!(short.iterations(), 50_000);
        let middle = plan(12);
        assert_eq!((middle.rounds, middle.groups.len()), (1, 9));
        let everything = Plan::new(&[0], (&SIZES, 3), 50_000, Duration::ZERO, true);
        assert_eq!((everything.rounds, everything.groups.len()), (1, 9));
    }

    #[test]
    fn each_loop_runs_once_a_round_and_each_round_begins_with_another_row() {
        let plan = plan(600);
        let steps: Vec<Step> = plan.steps().collect();
        let loops: usize = plan.rows.iter().map(|row| ROWS[*row].loops.len()).sum();
        assert_eq!(steps.len(), loops * plan.groups.len() * 3);
        let starts: Vec<usize> = steps.iter().step_by(loops).take(3).map(|step| step.row).collect();
        assert_eq!(starts, plan.rows);
        assert!(plan.units() > steps.len() as f64);
        assert!(Plan::new(&[], (&SIZES, 1), 1, Duration::ZERO, false).steps().next().is_none());
    }
}
