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
//! While it settles, it probes just below, at and just above the crossing, and fits a line to the share of requests
//! over the bound (module `line`). The requests of all probes count together: the percentile of a second is no estimate
//! of the percentile of all requests, since slow requests come in crowds that most seconds have none of, and a mean of
//! such figures is too low. The interval is a bootstrap that draws three neighbouring probes at a time, since
//! neighbouring probes are still a little alike.

mod line;

use super::{RESAMPLES, percentile_interval, student};
use crate::random::Random;
use crate::result::Estimate;
use line::{Line, Model, Point};

/// The bound to search for, and the time for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// The quantile of the latency that is bounded, 0 to 1; 0 for the mean.
    pub quantile: f64,
    /// Its bound.
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
    /// The usual plan: p99, half-width 3 % within 120 s.
    pub fn new(bound_ns: u64, start_rate: f64, highest_rate: f64) -> Self {
        Self {
            quantile: 0.99,
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
    /// Its seconds.
    pub seconds: Vec<Second>,
    /// The probe's whole time, with its settling; 0 takes the search's own estimate.
    pub elapsed_seconds: f64,
}

/// One second of a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// The quantile, or the mean, of its latencies.
    pub figure_ns: u64,
    /// How many requests it had.
    pub requests: u64,
    /// How many of these took longer than the bound; of a mean, the sum of their latencies in units of the bound.
    pub over: f64,
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
    /// The time was over before a line could be fitted: the capacity lies between a rate that passed, or 0, and one
    /// that did not, or infinity.
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
    /// A block of which every second is this far on one side of the bound, in logarithms of p99 / bound, is
    /// not near the crossing: a short probe that found otherwise was wrong.
    far: f64,
    /// Probes from which a slope is known well enough to leave others out.
    points_min: usize,
    /// How far such a line reaches, in units of how far from the crossing it is probed: much nearer, chance would make
    /// it steep and then leave out what says otherwise.
    reach: f64,
}

const TUNING: Tuning = Tuning {
    climb: 1.5,
    bracket: 1.10,
    short_seconds: 2,
    long_seconds: 4,
    probes_min: 15,
    block: 3,
    margin: 0.3,
    near: 0.10,
    far: 0.9,
    points_min: 9,
    reach: 8.0,
};

impl Tuning {
    /// Returns how far from the crossing to probe, in logarithms of the rate: for about a third and three times as many
    /// requests over the bound.
    fn apart(slope: f64) -> f64 {
        (1.2 / slope).clamp(0.0025, 0.04)
    }
}

/// A probe that was made.
#[derive(Clone, Debug)]
struct Probe {
    /// Of all its seconds together.
    point: Point,
    /// The logarithm of figure / bound of each second, within -1 and 1.
    excesses: Vec<f64>,
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
    /// All probes.
    probes: Vec<Probe>,
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
        let reckoned = outcome.seconds.len() as f64 + self.plan.settle_seconds;
        self.spent_seconds += if outcome.elapsed_seconds > 0.0 { outcome.elapsed_seconds } else { reckoned };
        let bound_ns = self.plan.bound_ns as f64;
        let excess = |second: &Second| (second.figure_ns.max(1) as f64 / bound_ns).ln().clamp(-1.0, 1.0);
        let excesses: Vec<f64> = match outcome.passed {
            true => outcome.seconds.iter().filter(|second| second.requests > 0).map(excess).collect(),
            false => vec![1.0; outcome.seconds.len().max(1)],
        };
        if self.settling_since.is_none() {
            let within = outcome.passed && !excesses.is_empty() && super::median(&excesses) <= 0.0;
            match within {
                true => self.passed = Some(self.passed.map_or(outcome.rate, |rate| rate.max(outcome.rate))),
                false => self.failed = Some(self.failed.map_or(outcome.rate, |rate| rate.min(outcome.rate))),
            }
        }
        let requests: u64 = outcome.seconds.iter().map(|second| second.requests).sum();
        let over: f64 = outcome.seconds.iter().map(|second| second.over).sum();
        let model = self.model();
        let share = if outcome.passed { over / requests.max(1) as f64 } else { model.most() };
        let point = Point { at: outcome.rate.max(1e-9).ln(), weight: requests.max(1) as f64, share };
        self.probes.push(Probe { point, excesses });
    }

    fn model(&self) -> Model {
        match self.plan.quantile {
            0.0 => Model::Mean,
            quantile => Model::Share(1.0 - quantile),
        }
    }

    fn probe(&self, rate: f64, seconds: u32) -> Step {
        let needed = f64::from(seconds) + self.plan.settle_seconds;
        if self.spent_seconds + needed <= self.plan.budget_seconds {
            return Step::Probe { rate, seconds };
        }
        if let (Some(passed), Some(failed)) = (self.passed, self.failed)
            && let Some(capacity) = self.interval((passed * failed).sqrt().ln())
        {
            return Step::Done(self.at(capacity));
        }
        Step::Done(match (self.passed, self.failed) {
            (Some(passed), Some(failed)) => Found::Between(passed.min(failed), failed),
            (passed, failed) => Found::Between(passed.unwrap_or(0.0), failed.unwrap_or(f64::INFINITY)),
        })
    }

    /// Probes around the crossing until its interval is narrow or the time is over.
    fn settle(&mut self) -> Step {
        if let Some((passed, failed)) = self.elsewhere() {
            (self.passed, self.failed, self.settling_since) = (passed, failed, None);
            return self.step();
        }
        let all: Vec<Point> = self.probes.iter().map(|probe| probe.point).collect();
        let middle = (self.passed.unwrap_or(1.0) * self.failed.unwrap_or(1.0)).sqrt().ln();
        let (Line { crossing, slope }, _) = self.line(&all, middle);
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
                Some(capacity) if over => return Step::Done(self.at(capacity)),
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
            .last_chunk::<{ 2 * TUNING.block }>()
            .filter(|_| settled.len().is_multiple_of(TUNING.block))?;
        let is_all =
            |side: f64| last.iter().all(|probe| probe.excesses.iter().all(|y| y * side >= TUNING.far));
        let rates = last.each_ref().map(|probe| probe.point.at.exp());
        if is_all(-1.0) {
            Some((rates.into_iter().reduce(f64::max), None))
        } else if is_all(1.0) {
            Some((None, rates.into_iter().reduce(f64::min)))
        } else {
            None
        }
    }

    /// The line through those of the points that are near `middle`, and these points.
    fn line(&self, points: &[Point], middle: f64) -> (Line, Vec<Point>) {
        let mut line = Line { crossing: middle, slope: 10.0 };
        let mut near = Vec::new();
        let mut near_by = TUNING.near;
        for _ in 0..3 {
            let middle = line.crossing;
            near = points.iter().copied().filter(|point| (point.at - middle).abs() <= near_by).collect();
            let Some(found) = line::fit(&near, self.model(), line.slope) else { break };
            // A line far from flat can still be a bad guess from two probes: never leave the points behind.
            let crossing = found.crossing.clamp(middle - TUNING.near, middle + TUNING.near);
            line = Line { crossing, ..found };
            // Latency is a curve: once the slope is known, points farther than needed would only bend the line.
            near_by = match near.len() >= TUNING.points_min {
                true => (TUNING.reach * Tuning::apart(line.slope)).min(TUNING.near),
                false => TUNING.near,
            };
        }
        (line, near)
    }

    /// The end of a search whose time is over.
    fn at(&self, capacity: Estimate) -> Found {
        let narrow = (capacity.most - capacity.least) / 2.0 / capacity.estimate <= self.plan.half_width;
        Found::At { capacity, narrow }
    }

    fn interval(&self, crossing: f64) -> Option<Estimate> {
        let all: Vec<Point> = self.probes.iter().map(|probe| probe.point).collect();
        let (Line { crossing, slope }, near) = self.line(&all, crossing);
        if near.len() < TUNING.points_min / 2 {
            return None;
        }
        let mut rng = self.rng.clone();
        let mut chosen = near.clone();
        let mut resampled: Vec<f64> = (0..RESAMPLES)
            .filter_map(|_| {
                for block in chosen.chunks_mut(TUNING.block) {
                    let start = rng.index(near.len());
                    (start..).zip(block).for_each(|(at, point)| *point = near[at % near.len()]);
                }
                line::fit_near(&chosen, self.model(), slope)
                    .map(|line| line.crossing.clamp(crossing - TUNING.near, crossing + TUNING.near))
            })
            .collect();
        // Overlapping blocks know more than as many that do not overlap, and less than as many probes.
        let stretch = student::stretch(near.len() / 2);
        // Shares of few crowds are too low more often than too high, and resamples are to the line what the line is to
        // the truth: the interval has both its own tail and the mirrored one on each side.
        let found = percentile_interval(crossing, &mut resampled, stretch)?;
        let mirrored = (2.0 * crossing - found.most, 2.0 * crossing - found.least);
        let estimate = 2.0 * crossing - super::median(&resampled);
        let found =
            Estimate { least: found.least.min(mirrored.0), estimate, most: found.most.max(mirrored.1) };
        // The greatest error of a straight line through a queue's curve, and a little for the host's own drift.
        let bend = Tuning::apart(slope) / 4.0;
        let (least, most) = ((found.least - bend).exp(), (found.most + bend).exp());
        Some(Estimate { least, estimate: found.estimate.exp(), most })
    }
}

#[cfg(test)]
mod tests;
