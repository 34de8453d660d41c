//! Which admission suits the traffic: two shadows of the cache's own size, one by each rule, see the same requests.
//!
//! ```text
//!   request --> all:       misses it? --+
//!         |                             +--> only one misses it --> evidence, which fades as RAM is turned over
//!         +---> returning: misses it? --+
//! ```
//! Requests that both miss, or neither, tell nothing, so chance matters little. [`Returning`](Admission::Returning) has
//! to prove itself: without evidence, all items are written, so items that are new are never kept out by old ones that
//! are no longer read.

use super::pair::Pair;
use super::scale::Scale;
use super::{PARTS, Rules, mixed};
use crate::error::OpenError;
use crate::policy::admission::Admission;
use crate::sample::Event;
use crate::store::{Config, Geometry, Store};

/// The part of a turn of RAM between two decisions.
const STEP_TURNS: f64 = 1.0 / 16.0;
/// Turns of RAM in which evidence halves: the quick kind tells that the traffic has changed, the slow one what is
/// better by little.
const QUICK_TURNS: f64 = 0.25;
const SLOW_TURNS: f64 = 2.0;
/// Standard deviations by which the difference must not be chance.
const SURE: f64 = 3.0;
const QUICKLY_SURE: f64 = 4.0;
/// The least difference for which `returning` replaces `all`, and the least evidence of any kind with which it stays:
/// as parts of what is stored.
const GAIN_MIN: f64 = 0.005;
const QUICK_GAIN_MIN: f64 = 0.02;
const DIFFERING_MIN: f64 = 0.01;

/// What speaks for one rule or the other: sampled gets that one alone has missed, by parts of the sample.
#[derive(Clone, Copy, Debug, Default)]
struct Evidence {
    /// Half-life, in turns.
    half_turns: f64,
    /// For `returning` less those for `all`, by part.
    balance: [f64; PARTS],
    /// Gets that either alone has missed.
    differing: f64,
    /// Items stored.
    stored: f64,
}

impl Evidence {
    fn new(half_turns: f64) -> Evidence {
        Evidence { half_turns, ..Evidence::default() }
    }

    /// Lets all of it fade by so many turns.
    fn fade(&mut self, turns: f64) {
        let left = 0.5_f64.powf(turns / self.half_turns);
        self.balance.iter_mut().for_each(|balance| *balance *= left);
        self.differing *= left;
        self.stored *= left;
    }

    /// Returns the gets that `returning` would have saved, relative to the items stored.
    fn gain(&self) -> f64 {
        self.balance.iter().sum::<f64>() / self.stored.max(1.0)
    }

    /// Returns by how many standard deviations `returning` is better.
    fn sureness(&self) -> f64 {
        let sum: f64 = self.balance.iter().sum();
        let mean = sum / PARTS as f64;
        let spread: f64 = self.balance.iter().map(|balance| (balance - mean).powi(2)).sum();
        // Keys that come often count once in the spread of the parts, which is unsure with so few of them.
        let variance = (spread * PARTS as f64 / (PARTS - 1) as f64).max(self.differing);
        sum / variance.max(1.0).sqrt()
    }
}

/// The shadows by which the admission is chosen.
pub struct Choice {
    /// By [`Admission::All`] and by [`Admission::Returning`].
    pair: Pair,
    quick: Evidence,
    slow: Evidence,
    /// Turns of RAM at the last decision.
    decided_at: f64,
    chosen: Admission,
    switches: u64,
}

/// What speaks for the admission that was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chosen {
    /// The admission.
    pub admission: Admission,
    /// How often it has changed.
    pub switches: u64,
    /// Misses of the two shadows since they began, multiplied by the scale: of `all` and of `returning`.
    pub misses: [u64; 2],
    /// Bytes that they would have written to the SSD.
    pub ssd_bytes_written: [u64; 2],
    /// The gets that `returning` would have saved of late, relative to the items stored; below 0 if `all` is better.
    pub gain: f64,
    /// One of so many keys is in the sample.
    pub scale: u32,
}

impl Choice {
    /// Cold shadows of a cache divided as `geometry` tells, of one key of `scale`, a power of two. Rules but the
    /// admission are the cache's own; the admission is the one that it begins with.
    pub fn new(geometry: Geometry, rules: Rules, scale: u32) -> Choice {
        Choice::of(geometry, rules, Scale::unbounded(scale))
    }

    /// Cold shadows of a cache with these options, which take at most `memory_bytes_max` bytes.
    pub(super) fn bounded(config: &Config, memory_bytes_max: usize) -> Result<Choice, OpenError> {
        let scale = Scale::of_caches(2 * config.cache_bytes(), memory_bytes_max);
        Ok(Choice::of(Store::geometry(config)?, Rules::of(config), scale))
    }

    fn of(geometry: Geometry, rules: Rules, scale: Scale) -> Choice {
        let of = |admission| (geometry, Rules { admission, ..rules });
        Choice {
            pair: Pair::new([of(Admission::All), of(Admission::Returning)], scale),
            quick: Evidence::new(QUICK_TURNS),
            slow: Evidence::new(SLOW_TURNS),
            decided_at: 0.0,
            chosen: rules.admission,
            switches: 0,
        }
    }

    /// Returns the admission that suits the traffic.
    pub fn admission(&self) -> Admission {
        self.chosen
    }

    /// Returns what speaks for it.
    pub fn chosen(&self) -> Chosen {
        let counts = self.pair.shadows.each_ref().map(|shadow| shadow.counts());
        Chosen {
            admission: self.chosen,
            switches: self.switches,
            misses: counts.map(|counts| counts.misses.iter().sum()),
            ssd_bytes_written: counts.map(|counts| counts.ssd_bytes_written),
            gain: self.slow.gain(),
            scale: self.pair.scale(),
        }
    }

    /// Returns one key of how many it looks at.
    pub fn scale(&self) -> u32 {
        self.pair.scale()
    }

    /// Returns the memory that it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.pair.memory_bytes()
    }

    /// Takes a request into account, if its key is in the sample.
    pub fn feed(&mut self, event: &Event) {
        let before = self.turns();
        let Some([all_misses, returning_misses]) = self.pair.feed(event) else { return };
        let stored = f64::from(u8::from(self.turns() > before));
        for evidence in [&mut self.quick, &mut self.slow] {
            evidence.stored += stored;
            if all_misses != returning_misses {
                evidence.differing += 1.0;
                evidence.balance[mixed(event.hash) as usize % PARTS] += if all_misses { 1.0 } else { -1.0 };
            }
        }
        let turns = self.turns() - self.decided_at;
        if turns >= STEP_TURNS {
            self.decided_at = self.turns();
            self.decide();
            self.quick.fade(turns);
            self.slow.fade(turns);
        }
    }

    /// Returns how often the RAM of a cache that admits all has been turned over.
    fn turns(&self) -> f64 {
        self.pair.shadows[0].turns()
    }

    fn decide(&mut self) {
        let (quick, slow) = (&self.quick, &self.slow);
        let best = match self.chosen {
            Admission::All
                if slow.sureness() >= SURE && slow.gain() >= GAIN_MIN && quick.sureness() >= 0.0
                    || quick.sureness() >= QUICKLY_SURE && quick.gain() >= QUICK_GAIN_MIN =>
            {
                Admission::Returning
            }
            Admission::Returning
                if slow.gain() < 0.0
                    || quick.differing < DIFFERING_MIN * quick.stored
                    || quick.sureness() <= -QUICKLY_SURE =>
            {
                Admission::All
            }
            chosen => chosen,
        };
        self.switches += u64::from(best != self.chosen);
        self.chosen = best;
    }

    /// Looks at every second key of its sample from now on.
    pub fn halve(&mut self) {
        self.pair.halve();
    }

    /// Forgets all items, as a flush does, and what spoke for either rule.
    pub fn flush(&mut self) {
        self.pair.flush();
        (self.quick, self.slow) = (Evidence::new(QUICK_TURNS), Evidence::new(SLOW_TURNS));
    }
}
