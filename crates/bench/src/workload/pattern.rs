//! Which key is asked for next.

use super::zipf::Zipf;
use crate::random::Random;
use std::fmt;

/// The skew of `latest`, which is YCSB's.
const LATEST_EXPONENT: f64 = 0.99;
/// An odd number far from any simple fraction of 2^64, to scatter hot keys by.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Which key is asked for next.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// All equally often.
    Uniform,
    /// Rank k with a chance proportional to k^-s, the hot ones scattered over all keys.
    Zipf(f64),
    /// Normal around the middle, with a sixth of the keys as deviation.
    Gauss,
    /// One after the other, and again from the beginning.
    Sequential,
    /// A set writes the next key, everything else prefers those written last.
    Latest,
    /// A share of the keys draws a share of the requests: `hot:20/80`.
    Hot {
        /// Percent of the keys.
        share: f64,
        /// Percent of the requests.
        weight: f64,
    },
}

impl Pattern {
    /// What cannot be.
    ///
    /// # Errors
    /// It said in one line.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Zipf(exponent) if !(0.0..=10.0).contains(exponent) => {
                Err("--key-pattern zipf: an exponent of 0 to 10".to_string())
            }
            Self::Hot { share, weight }
                if !(0.0..=100.0).contains(share) || !(0.0..=100.0).contains(weight) =>
            {
                Err("--key-pattern hot:SHARE/WEIGHT: two percentages".to_string())
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => write!(f, "uniform"),
            Self::Zipf(exponent) => write!(f, "zipf {exponent}"),
            Self::Gauss => write!(f, "gauss"),
            Self::Sequential => write!(f, "sequential"),
            Self::Latest => write!(f, "latest"),
            Self::Hot { share, weight } => write!(f, "hot ({share} % of keys get {weight} %)"),
        }
    }
}

/// Draws keys after a pattern; the same for all connections, which bring their own random stream.
#[derive(Clone, Debug)]
pub struct Picker {
    keys: u64,
    kind: Kind,
    stride: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    Uniform,
    Zipf(Zipf),
    Gauss,
    Sequential,
    Latest(Zipf),
    Hot { hot: u64, weight: f64 },
}

impl Picker {
    /// For `keys` keys.
    pub fn new(pattern: &Pattern, keys: u64) -> Self {
        let kind = match pattern {
            Pattern::Uniform => Kind::Uniform,
            Pattern::Zipf(exponent) => Kind::Zipf(Zipf::new(keys, *exponent)),
            Pattern::Gauss => Kind::Gauss,
            Pattern::Sequential => Kind::Sequential,
            Pattern::Latest => Kind::Latest(Zipf::new(keys, LATEST_EXPONENT)),
            Pattern::Hot { share, weight } => {
                let hot = ((share / 100.0 * keys as f64).round() as u64).clamp(1, keys);
                Kind::Hot { hot, weight: weight / 100.0 }
            }
        };
        Self { keys, kind, stride: coprime(keys) }
    }

    /// The next key. `next` is the place of the thread's walk, for the patterns that walk.
    pub fn pick(&self, random: &mut Random, next: &mut u64, is_set: bool) -> u64 {
        match &self.kind {
            Kind::Uniform => random.below(self.keys),
            Kind::Zipf(zipf) => self.scatter(zipf.draw(random)),
            Kind::Gauss => self.gauss(random),
            Kind::Sequential => self.step(next),
            Kind::Latest(_) if is_set => self.step(next),
            Kind::Latest(zipf) => {
                let newest = *next + self.keys - 1;
                (newest - zipf.draw(random)) % self.keys
            }
            Kind::Hot { hot, weight } => {
                let is_hot = *hot == self.keys || random.unit() < *weight;
                let rank = if is_hot { random.below(*hot) } else { hot + random.below(self.keys - hot) };
                self.scatter(rank)
            }
        }
    }

    fn step(&self, next: &mut u64) -> u64 {
        let key = *next;
        *next = if key + 1 == self.keys { 0 } else { key + 1 };
        key
    }

    fn gauss(&self, random: &mut Random) -> u64 {
        let keys = self.keys as f64;
        loop {
            let at = keys / 2.0 + random.normal() * keys / 6.0;
            if (0.0..keys).contains(&at) {
                return at as u64;
            }
        }
    }

    /// Hot keys must not be neighbours: keys stored together would be read together.
    fn scatter(&self, rank: u64) -> u64 {
        if self.keys <= u64::from(u32::MAX) {
            return rank * self.stride % self.keys;
        }
        (u128::from(rank) * u128::from(self.stride) % u128::from(self.keys)) as u64
    }
}

/// A step that visits every one of `keys` keys, near their golden section.
fn coprime(keys: u64) -> u64 {
    let mut stride = ((u128::from(keys) * u128::from(STRIDE)) >> 64) as u64 | 1;
    while gcd(stride, keys) != 1 {
        stride += 2;
    }
    stride % keys.max(2)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn scattering_meets_every_key_once() {
        for keys in [1, 2, 3, 10, 97, 1000, 4096, 100_003] {
            let picker = Picker::new(&Pattern::Zipf(1.0), keys);
            let seen: HashSet<u64> = (0..keys).map(|rank| picker.scatter(rank)).collect();
            assert_eq!(seen.len() as u64, keys);
            assert!(seen.iter().all(|key| *key < keys));
        }
    }

    #[test]
    fn every_pattern_stays_among_its_keys() {
        let hot = Pattern::Hot { share: 20.0, weight: 80.0 };
        let patterns =
            [Pattern::Uniform, Pattern::Zipf(1.2), Pattern::Gauss, Pattern::Sequential, Pattern::Latest, hot];
        for keys in [1, 5, 1000] {
            for pattern in &patterns {
                let picker = Picker::new(pattern, keys);
                let (mut random, mut next) = (Random::new(1), 0);
                assert!(
                    (0..2000).all(|n| picker.pick(&mut random, &mut next, n % 3 == 0) < keys),
                    "{pattern}"
                );
            }
        }
    }

    #[test]
    fn the_hot_share_draws_its_weight() {
        let picker = Picker::new(&Pattern::Hot { share: 20.0, weight: 80.0 }, 1000);
        let hot: HashSet<u64> = (0..200).map(|rank| picker.scatter(rank)).collect();
        let (mut random, mut next) = (Random::new(1), 0);
        let inside =
            (0..100_000).filter(|_| hot.contains(&picker.pick(&mut random, &mut next, false))).count();
        assert!((79_000..81_000).contains(&inside), "{inside}");
    }

    #[test]
    fn latest_prefers_what_was_written_last() {
        let picker = Picker::new(&Pattern::Latest, 1000);
        let (mut random, mut next) = (Random::new(1), 500);
        assert_eq!(picker.pick(&mut random, &mut next, true), 500);
        let reads: Vec<u64> = (0..1000).map(|_| picker.pick(&mut random, &mut next, false)).collect();
        let newest = reads.iter().filter(|key| **key == 500).count();
        assert!((90..200).contains(&newest), "{newest}");
    }
}
