//! The search for the highest rate within a service level, as a pure state machine: it returns the rate to
//! try, is told the outcome, and ends with the capacity and its 95 % interval.
//!
//! ```text
//!   Climb (x 1.5 until a probe fails) -> Halve (until the bracket is narrow) -> Settle (around the crossing) -> Done
//!     |- the highest rate passes: Above        |- nothing passes: Below           |- narrow enough, or out of time
//!        ^                                                                        |
//!        +--------- all around the crossing is far on one side of the bound ------+
//! ```
//!
//! While it settles, it probes just below, at and just above the crossing, and fits a straight line through
//! the logarithm of p99 / bound of every second against that of the rate. A second in which the host stood
//! still counts as 1 at most, however long it stood. The interval is a bootstrap that draws three
//! neighbouring probes at a time, since seconds of a probe are alike, and those of the next one still a
//! little.

use super::{RESAMPLES, mean, percentile_interval, student};
use crate::random::Random;
use crate::result::Estimate;

/// The bound to search for, and the time for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// The bound of the quantile (p99 as a rule) of a second.
    pub bound_ns: u64,
    /// The first rate to try, requests a second.
    pub start_rate: f64,
    /// The highest rate to try; beyond it the answer is "above".
    pub highest_rate: f64,
    /// Half of the interval's width to reach, as a share of the estimate.
    pub half_width: f64,
    /// The time all probes may take, with their settling.
    pub budget_seconds: f64,
    /// Seconds between probes that the caller lets the server settle; counted in the budget.
    pub settle_seconds: f64,
    /// Seed of the order of rates and of the bootstrap.
    pub seed: u64,
}

impl Plan {
    /// The usual plan: half-width 3 % within 120 s.
    pub fn new(bound_ns: u64, start_rate: f64, highest_rate: f64) -> Self {
        Self {
            bound_ns,
            start_rate,
            highest_rate,
            half_width: 0.03,
            budget_seconds: 120.0,
            settle_seconds: 0.5,
            seed: 1,
        }
    }
}

/// The outcome of a probe.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The rate that was offered.
    pub rate: f64,
    /// Whether all else was well: answered at the offered rate, no errors, the generator kept up.
    pub passed: bool,
    /// The quantile of each whole second.
    pub p99s_ns: Vec<u64>,
    /// The probe's whole time, with its settling; 0 takes the search's own estimate.
    pub elapsed_seconds: f64,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Offer this rate for this many whole seconds, after settling.
    Probe {
        /// Requests a second.
        rate: f64,
        /// The measured time.
        seconds: u32,
    },
    /// The search is over.
    Done(Found),
}

/// The end of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    /// Even the lowest rate tried, this one, is too much.
    Below(f64),
    /// The capacity.
    At {
        /// Requests a second, with the interval.
        capacity: Estimate,
        /// Whether the interval is as narrow as was asked.
        narrow: bool,
    },
    /// The highest rate allowed, this one, is within the service level.
    Above(f64),
    /// The time was over before a line could be fitted: the capacity lies between a rate that passed and one
    /// that did not.
    Between(f64, f64),
    /// The generator, and not the server, set the figures at the second of these rates, again and again; the
    /// first one, or 0, is the highest that passed.
    Spoiled(f64, f64),
}

/// The constants of the search. The tests below hold the whole set to its promise: of twenty intervals,
/// eighteen hold the capacity.
struct Tuning {
    /// The factor between two rates of the climb.
    climb: f64,
    /// The bracket is narrow enough for a straight line when its ends differ by this factor.
    bracket: f64,
    /// Seconds of a probe while it climbs and halves.
    short_seconds: u32,
    /// Seconds of a probe while it settles.
    long_seconds: u32,
    /// Probes around the crossing before the first interval is computed.
    probes_min: usize,
    /// Probes that are drawn together, one of each side.
    block: usize,
    /// How much narrower than asked an interval has to be: one is computed after every block, and to stop at
    /// a lucky one would make intervals too narrow.
    margin: f64,
    /// Probes farther than this from the crossing, in logarithms of the rate, are no part of the line.
    near: f64,
    /// The least slope of the line: below it, latency hardly depends on the rate.
    slope_min: f64,
    /// The greatest slope of the line.
    slope_max: f64,
    /// A block of which every second is this far on one side of the bound, in logarithms of p99 / bound, is
    /// not near the crossing: a short probe that found otherwise was wrong.
    far: f64,
    /// Seconds from which a slope is known well enough to leave others out.
    points_min: usize,
}

const TUNING: Tuning = Tuning {
    climb: 1.5,
    bracket: 1.10,
    short_seconds: 2,
    long_seconds: 4,
    probes_min: 15,
    block: 3,
    margin: 0.8,
    near: 0.10,
    slope_min: 0.5,
    slope_max: 200.0,
    far: 0.9,
    points_min: 24,
};

impl Tuning {
    /// Returns how far from the crossing to probe, in logarithms of the rate: for a fifth more and less
    /// latency.
    fn apart(slope: f64) -> f64 {
        (0.2 / slope).clamp(0.005, 0.04)
    }
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct Search {
    plan: Plan,
    rng: Random,
    spent_seconds: f64,
    /// The highest rate that passed and the lowest that did not, so far.
    passed: Option<f64>,
    failed: Option<f64>,
    /// All probes: the logarithm of the rate, and of p99 / bound of each second, within -1 and 1.
    probes: Vec<(f64, Vec<f64>)>,
    /// Which probes came since settling began.
    settling_since: Option<usize>,
}

impl Search {
    /// A search that has not begun.
    pub fn new(plan: Plan) -> Self {
        let rng = Random::new(plan.seed);
        let (passed, failed, settling_since) = (None, None, None);
        Self { plan, rng, spent_seconds: 0.0, passed, failed, probes: Vec::new(), settling_since }
    }

    /// The time spent so far.
    pub fn spent_seconds(&self) -> f64 {
        self.spent_seconds
    }

    /// The highest rate that passed so far.
    pub fn passed(&self) -> Option<f64> {
        self.passed
    }

    /// Counts the time of a probe that has no outcome.
    pub fn lose(&mut self, seconds: f64) {
        self.spent_seconds += seconds;
    }

    /// Returns the next step. Until the outcome is told, it is the same again but for the choice of a side.
    pub fn step(&mut self) -> Step {
        let lowest = self.plan.start_rate / 1000.0;
        match (self.passed, self.failed) {
            _ if self.settling_since.is_some() => self.settle(),
            (None, None) => self.probe(self.plan.start_rate, TUNING.short_seconds),
            (Some(passed), None) if passed >= self.plan.highest_rate => Step::Done(Found::Above(passed)),
            (Some(passed), None) => {
                self.probe((passed * TUNING.climb).min(self.plan.highest_rate), TUNING.short_seconds)
            }
            (None, Some(failed)) if failed / TUNING.climb < lowest => Step::Done(Found::Below(failed)),
            (None, Some(failed)) => self.probe(failed / TUNING.climb, TUNING.short_seconds),
            (Some(passed), Some(failed)) if failed / passed > TUNING.bracket => {
                self.probe((passed * failed).sqrt(), TUNING.short_seconds)
            }
            (Some(_), Some(_)) => {
                self.settling_since = Some(self.probes.len());
                self.settle()
            }
        }
    }

    /// Takes in the outcome of a probe.
    pub fn tell(&mut self, outcome: &Outcome) {
        let seconds = outcome.p99s_ns.len() as f64;
        let reckoned = seconds + self.plan.settle_seconds;
        self.spent_seconds += if outcome.elapsed_seconds > 0.0 { outcome.elapsed_seconds } else { reckoned };
        let excess = |p99: &u64| ((*p99).max(1) as f64 / self.plan.bound_ns as f64).ln().clamp(-1.0, 1.0);
        let seconds: Vec<f64> = match outcome.passed {
            true => outcome.p99s_ns.iter().map(excess).collect(),
            false => vec![1.0; outcome.p99s_ns.len().max(1)],
        };
        if self.settling_since.is_none() {
            let within = outcome.passed && !seconds.is_empty() && super::median(&seconds) <= 0.0;
            match within {
                true => self.passed = Some(self.passed.map_or(outcome.rate, |rate| rate.max(outcome.rate))),
                false => self.failed = Some(self.failed.map_or(outcome.rate, |rate| rate.min(outcome.rate))),
            }
        }
        self.probes.push((outcome.rate.max(1e-9).ln(), seconds));
    }

    fn probe(&self, rate: f64, seconds: u32) -> Step {
        let needed = f64::from(seconds) + self.plan.settle_seconds;
        if self.spent_seconds + needed <= self.plan.budget_seconds {
            return Step::Probe { rate, seconds };
        }
        Step::Done(match (self.passed, self.failed) {
            (Some(passed), Some(failed)) => Found::Between(passed.min(failed), failed),
            (Some(passed), None) => Found::Above(passed),
            (None, _) => Found::Below(self.failed.unwrap_or(self.plan.start_rate)),
        })
    }

    /// Probes around the crossing until its interval is narrow or the time is over.
    fn settle(&mut self) -> Step {
        if let Some((passed, failed)) = self.elsewhere() {
            (self.passed, self.failed, self.settling_since) = (passed, failed, None);
            return self.step();
        }
        let all: Vec<usize> = (0..self.probes.len()).collect();
        let middle = (self.passed.unwrap_or(1.0) * self.failed.unwrap_or(1.0)).sqrt().ln();
        let (crossing, slope) = self.line(&all, middle).unwrap_or((middle, 10.0));
        let settled = self.probes.len() - self.settling_since.unwrap_or(0);
        let over = self.spent_seconds + f64::from(TUNING.long_seconds) + self.plan.settle_seconds
            > self.plan.budget_seconds;
        if settled >= TUNING.probes_min && settled.is_multiple_of(3) || over {
            let found = self.interval(crossing);
            let wide = |e: &Estimate| (e.most - e.least) / 2.0 / e.estimate;
            match found {
                Some(capacity) if wide(&capacity) <= self.plan.half_width * TUNING.margin => {
                    return Step::Done(Found::At { capacity, narrow: true });
                }
                Some(capacity) if over => {
                    let narrow = wide(&capacity) <= self.plan.half_width;
                    return Step::Done(Found::At { capacity, narrow });
                }
                _ => {}
            }
        }
        // Three rates in turn, each three beginning at another one: near enough to be a straight line, far
        // enough to see its slope.
        let apart = Tuning::apart(slope);
        let side = [[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]][settled / 3 % 3][settled % 3];
        self.probe((crossing + side * apart).exp().min(self.plan.highest_rate), TUNING.long_seconds)
    }

    /// Returns the rates that the last block passed and failed, if the crossing is not near it.
    fn elsewhere(&self) -> Option<(Option<f64>, Option<f64>)> {
        let settled = &self.probes[self.settling_since?..];
        let last = settled
            .last_chunk::<{ TUNING.block }>()
            .filter(|_| settled.len().is_multiple_of(TUNING.block))?;
        let is_all =
            |side: f64| last.iter().all(|(_, seconds)| seconds.iter().all(|y| y * side >= TUNING.far));
        let rates = last.each_ref().map(|(x, _)| x.exp());
        if is_all(-1.0) {
            Some((rates.into_iter().reduce(f64::max), None))
        } else if is_all(1.0) {
            Some((None, rates.into_iter().reduce(f64::min)))
        } else {
            None
        }
    }

    /// The crossing and slope of the line through the given probes, as far as they are near `middle`.
    fn line(&self, chosen: &[usize], middle: f64) -> Option<(f64, f64)> {
        let mut middle = middle;
        let mut near_by = TUNING.near;
        let mut found = None;
        for _ in 0..3 {
            let near =
                chosen.iter().map(|at| &self.probes[*at]).filter(|(x, _)| (x - middle).abs() <= near_by);
            let points: Vec<(f64, f64)> = near.flat_map(|(x, ys)| ys.iter().map(|y| (*x, *y))).collect();
            if points.len() < 2 {
                return found;
            }
            let xs: Vec<f64> = points.iter().map(|point| point.0).collect();
            let ys: Vec<f64> = points.iter().map(|point| point.1).collect();
            let (mean_x, mean_y) = (mean(&xs), mean(&ys));
            let across: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
            let along: f64 = xs.iter().map(|x| (x - mean_x).powi(2)).sum();
            let slope = if along > 0.0 { across / along } else { TUNING.slope_max };
            let slope = slope.clamp(TUNING.slope_min, TUNING.slope_max);
            // Latency is a curve: once the slope is known, points farther than needed would only bend the
            // line.
            near_by = if points.len() >= TUNING.points_min {
                (2.5 * Tuning::apart(slope)).min(TUNING.near)
            } else {
                TUNING.near
            };
            // A line far from flat can still be a bad guess from two seconds: never leave the points behind.
            middle = (mean_x - mean_y / slope).clamp(middle - TUNING.near, middle + TUNING.near);
            found = Some((middle, slope));
        }
        found
    }

    fn interval(&mut self, crossing: f64) -> Option<Estimate> {
        let near: Vec<usize> = (0..self.probes.len())
            .filter(|at| (self.probes[*at].0 - crossing).abs() <= TUNING.near)
            .collect();
        let (crossing, slope) = self.line(&near, crossing)?;
        let mut rng = self.rng.clone();
        let mut chosen = near.clone();
        let mut resampled: Vec<f64> = (0..RESAMPLES)
            .filter_map(|_| {
                for block in chosen.chunks_mut(TUNING.block) {
                    let start = rng.index(near.len());
                    (start..).zip(block).for_each(|(at, probe)| *probe = near[at % near.len()]);
                }
                self.line(&chosen, crossing).map(|found| found.0)
            })
            .collect();
        // Overlapping blocks know more than as many that do not overlap, and less than as many probes.
        let stretch = student::stretch(near.len() / 2);
        let found = percentile_interval(crossing, &mut resampled, stretch)?;
        // The greatest error of a straight line through a queue's curve, and a little for the host's
        // own drift.
        let bend = Tuning::apart(slope) / 4.0;
        let (least, most) = ((found.least - bend).exp(), (found.most + bend).exp());
        Some(Estimate { least, estimate: found.estimate.exp(), most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server whose p99 rises like a queue's, with noise that lasts some seconds, and a second now and then
    /// in which the host stands still.
    struct Server {
        rng: Random,
        most: f64,
        idle_ns: f64,
        noise: f64,
        hiccups: f64,
        level: f64,
        /// The probe that is told to have passed, and the one that is told not to have.
        wrong: [Option<u32>; 2],
    }

    impl Server {
        fn new(seed: u64, noise: f64, hiccups: f64) -> Self {
            Self {
                rng: Random::new(seed),
                most: 150_000.0,
                idle_ns: 100_000.0,
                noise,
                hiccups,
                level: 0.0,
                wrong: [None; 2],
            }
        }

        fn capacity(&self, bound_ns: f64) -> f64 {
            self.most * (1.0 - self.idle_ns / bound_ns)
        }

        fn probe(&mut self, rate: f64, seconds: u32) -> Outcome {
            let mut queued = 0.0;
            let p99s_ns = (0..seconds).map(|_| {
                self.level = 0.5 * self.level + self.noise * self.rng.normal();
                let room = 1.0 - rate / self.most;
                queued += (-room).max(0.0) * 1e9;
                let p99 = self.idle_ns / room.max(0.002) * self.level.exp() + queued;
                (if self.rng.unit() < self.hiccups { p99 + 3e7 } else { p99 }) as u64
            });
            Outcome {
                rate,
                p99s_ns: p99s_ns.collect(),
                passed: rate < self.most * 1.05,
                elapsed_seconds: 0.0,
            }
        }

        fn search(&mut self, plan: Plan) -> (Found, f64, u32) {
            let mut search = Search::new(plan);
            for probes in 0.. {
                match search.step() {
                    Step::Done(found) => return (found, search.spent_seconds(), probes),
                    Step::Probe { rate, seconds } => {
                        let mut outcome = self.probe(rate, seconds);
                        if self.wrong[0] == Some(probes) {
                            (outcome.passed, outcome.p99s_ns) = (true, vec![self.idle_ns as u64; 2]);
                        }
                        outcome.passed &= self.wrong[1] != Some(probes);
                        search.tell(&outcome);
                    }
                }
            }
            unreachable!("a search ends with its budget")
        }
    }

    #[test]
    fn eighteen_of_twenty_repeats_hold_the_capacity_within_three_percent() {
        for (noise, hiccups) in [(0.1, 0.0), (0.2, 0.0), (0.2, 0.02)] {
            let mut inside = 0;
            for seed in 0..20 {
                let mut server = Server::new(seed + 100, noise, hiccups);
                let truth = server.capacity(1e6);
                let (found, spent, _) = server.search(Plan { seed, ..Plan::new(1_000_000, 10_000.0, 1e6) });
                let Found::At { capacity, narrow } = found else { panic!("seed {seed}: {found:?}") };
                let half_width = (capacity.most - capacity.least) / 2.0 / capacity.estimate;
                assert!(narrow && half_width <= 0.03 && spent <= 120.0, "{seed}: {half_width} in {spent} s");
                inside += usize::from(capacity.least <= truth && truth <= capacity.most);
            }
            assert!(inside >= 18, "noise {noise}, hiccups {hiccups}: {inside} of 20");
        }
    }

    #[test]
    fn one_wrong_probe_does_not_lead_it_astray() {
        // From 10 K/s on it is the eighth probe, number 7, that is the first beyond the capacity.
        for (right, wrong) in [(None, Some(0)), (None, Some(3)), (Some(7), None)] {
            let mut server = Server::new(5, 0.2, 0.0);
            server.wrong = [right, wrong];
            let truth = server.capacity(1e6);
            let (found, ..) = server.search(Plan::new(1_000_000, 10_000.0, 1e6));
            let Found::At { capacity, .. } = found else { panic!("{right:?}, {wrong:?}: {found:?}") };
            assert!((capacity.estimate / truth - 1.0).abs() < 0.03, "{right:?}, {wrong:?}: {capacity:?}");
        }
    }

    #[test]
    fn repeats_agree_more_often_than_eighteen_of_twenty() {
        let (mut inside, trials) = (0, 200);
        for seed in 0..trials {
            let mut server = Server::new(seed * 7 + 1, 0.2, 0.0);
            let truth = server.capacity(1e6);
            let (found, ..) = server.search(Plan { seed, ..Plan::new(1_000_000, 20_000.0, 1e6) });
            let Found::At { capacity, .. } = found else { panic!("seed {seed}: {found:?}") };
            inside += usize::from(capacity.least <= truth && truth <= capacity.most);
        }
        assert!(inside * 100 >= trials as usize * 92, "{inside} of {trials}");
    }

    #[test]
    fn a_capacity_out_of_reach_is_said_to_be() {
        let mut server = Server::new(1, 0.1, 0.0);
        let (found, ..) = server.search(Plan::new(1_000_000, 10_000.0, 50_000.0));
        assert_eq!(found, Found::Above(50_000.0));
        let (found, spent, _) = server.search(Plan::new(50_000, 10_000.0, 50_000.0));
        assert!(matches!(found, Found::Below(rate) if rate < 10_000.0), "{found:?}");
        assert!(spent <= 120.0);
    }

    #[test]
    fn a_short_budget_ends_with_a_bracket() {
        let mut server = Server::new(1, 0.1, 0.0);
        let plan = Plan { budget_seconds: 22.0, ..Plan::new(1_000_000, 10_000.0, 1e6) };
        let (found, spent, _) = server.search(plan);
        let truth = server.capacity(1e6);
        assert!(
            matches!(found, Found::Between(low, high) if low < truth * 1.05 && high > truth * 0.95),
            "{found:?}"
        );
        assert!(spent <= 22.0);
    }

    #[test]
    fn noise_that_hides_the_crossing_is_admitted() {
        let mut server = Server::new(5, 1.5, 0.1);
        let (found, spent, _) = server.search(Plan::new(1_000_000, 10_000.0, 1e6));
        assert!(spent <= 120.0);
        if let Found::At { capacity, narrow } = found {
            let half_width = (capacity.most - capacity.least) / 2.0 / capacity.estimate;
            assert_eq!(narrow, half_width <= 0.03, "{found:?}");
        }
    }
}
