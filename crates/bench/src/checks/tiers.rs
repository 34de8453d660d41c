//! The cost model of a cache in two tiers, and its verdict on a first tier that never hits.

use super::{check, figure};
use crate::result::{Check, Verdict};

/// A first tier that answers less than this share is useless.
const USELESS: f64 = 0.05;
/// What measured times may differ from the model before it explains nothing.
const MODEL_SHARE: f64 = 0.15;

/// Mean costs of each tier alone, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// A get from the first tier (local).
    pub l1_get: f64,
    /// A set there.
    pub l1_set: f64,
    /// A get from the second tier (remote).
    pub l2_get: f64,
    /// A set there.
    pub l2_set: f64,
}

impl Costs {
    /// A get that the first tier answers.
    pub fn get_hit(&self) -> f64 {
        self.l1_get
    }

    /// A get that it does not: the second tier is asked, and the first filled.
    pub fn get_miss(&self) -> f64 {
        self.l1_get + self.l2_get + self.l1_set
    }

    /// A set, which goes to both.
    pub fn set(&self) -> f64 {
        self.l2_set + self.l1_set
    }

    /// The share of gets that the first tier answered, when a get took `measured` microseconds in the mean; 0
    /// to 1.
    pub fn hit_share(&self, measured: f64) -> f64 {
        ((self.get_miss() - measured) / (self.get_miss() - self.get_hit())).clamp(0.0, 1.0)
    }
}

/// Whether the first tier answers at all. `measured` is the mean time of a get in microseconds, or of a set
/// and a get when `with_set`.
pub fn first_tier(costs: &Costs, measured: f64, with_set: bool) -> Check {
    let set = if with_set { costs.set() } else { 0.0 };
    let share = costs.hit_share(measured - set);
    let message = format!(
        "{} us measured; the tiers' costs add up to {} when L1 hits and {} when it never does: it answers \
         {:.0} %",
        figure(measured),
        figure(set + costs.get_hit()),
        figure(set + costs.get_miss()),
        share * 100.0
    );
    if measured > (set + costs.get_miss()) * (1.0 + MODEL_SHARE) {
        return check("tiers", Verdict::Warn, format!("{message}; it is slower than the model explains"));
    }
    match share < USELESS {
        true => check("tiers", Verdict::Fail, format!("{message}; the first tier never hits")),
        false => check("tiers", Verdict::Pass, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_hits_is_half_of_the_difference() {
        let costs = Costs { l1_get: 10.0, l1_set: 10.0, l2_get: 100.0, l2_set: 50.0 };
        assert_eq!(costs.hit_share(65.0), 0.5);
        assert_eq!(first_tier(&costs, 12.0, false).verdict, Verdict::Pass);
        assert_eq!(first_tier(&costs, 300.0, false).verdict, Verdict::Warn);
    }
}
