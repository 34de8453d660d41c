//! Which verbs a workload is made of, by weight.

use super::verb::Verb;
use crate::random::Random;
use std::fmt;

/// How many verbs there are.
pub const VERBS: usize = Verb::ALL.len();

/// Verbs by weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Weights in the order of [`Verb::ALL`].
    weights: [u32; VERBS],
}

impl Mix {
    /// As weights, in the order of [`Verb::ALL`].
    ///
    /// # Errors
    /// All are 0, or one is beyond a million.
    pub fn new(weights: [u32; VERBS]) -> Result<Self, String> {
        if weights.iter().all(|weight| *weight == 0) {
            return Err("there is no verb with a weight".to_string());
        }
        if weights.iter().any(|weight| *weight > 1_000_000) {
            return Err("a weight is at most 1000000".to_string());
        }
        Ok(Self { weights })
    }

    /// As this many sets to this many gets.
    pub fn ratio(sets: u32, gets: u32) -> Self {
        let mut weights = [0; VERBS];
        (weights[Verb::Get as usize], weights[Verb::Set as usize]) = (gets, sets);
        Self { weights }
    }

    /// The weight of a verb.
    pub fn weight(&self, verb: Verb) -> u32 {
        self.weights[verb as usize]
    }

    /// Whether it has a verb of some kind.
    pub fn has(&self, kind: impl Fn(Verb) -> bool) -> bool {
        Verb::ALL.into_iter().any(|verb| self.weight(verb) > 0 && kind(verb))
    }

    /// A verb's share of the requests, 0 to 1.
    pub fn share(&self, verb: Verb) -> f64 {
        f64::from(self.weight(verb)) / self.weights.iter().map(|weight| f64::from(*weight)).sum::<f64>()
    }

    /// Draws a verb.
    pub fn draw(&self, random: &mut Random) -> Verb {
        let sum: u64 = self.weights.iter().map(|weight| u64::from(*weight)).sum();
        let mut at = random.below(sum);
        for verb in Verb::ALL {
            let weight = u64::from(self.weight(verb));
            if at < weight {
                return verb;
            }
            at -= weight;
        }
        Verb::Get
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for verb in Verb::ALL.into_iter().filter(|verb| self.weight(*verb) > 0) {
            let percent = self.share(verb) * 100.0;
            let digits = usize::from((percent - percent.round()).abs() > 0.05);
            write!(f, "{separator}{} {percent:.digits$} %", verb.name())?;
            separator = ", ";
        }
        Ok(())
    }
}
