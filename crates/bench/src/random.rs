//! Streams of random numbers that never meet, and mixing of numbers that must stay the same for ever.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// One stream.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream that a seed begins.
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// `count` streams of one seed, 2^128 numbers apart.
    pub fn streams(seed: u64, count: usize) -> Vec<Self> {
        let mut at = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..count)
            .map(|_| {
                let stream = Self(at.clone());
                at.jump();
                stream
            })
            .collect()
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`; 0 when that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// An index into something of `length` entries, which must not be empty.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A number of [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The gap to the next event of a Poisson process of one event a unit of time.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// A number of the normal distribution with mean 0 and deviation 1.
    pub fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// Spreads a number over 64 bits, one to one. Values in servers were made with it, so it never changes.
pub const fn mix(number: u64) -> u64 {
    spread(number.wrapping_add(0x9e37_79b9_7f4a_7c15))
}

/// The bijection beneath [`mix`]: it leaves 0 as it is, and spreads everything else.
pub const fn spread(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(values: &[f64]) -> f64 {
        mean_of(values, |value| value)
    }

    fn deviation(values: &[f64]) -> f64 {
        let mean = mean(values);
        mean_of(values, |value| (value - mean).powi(2)).sqrt()
    }

    fn mean_of(values: &[f64], of: impl Fn(f64) -> f64) -> f64 {
        values.iter().map(|value| of(*value)).sum::<f64>() / values.len() as f64
    }

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let first: Vec<u64> = Random::streams(7, 4).iter_mut().map(Random::bits).collect();
        let again: Vec<u64> = Random::streams(7, 4).iter_mut().map(Random::bits).collect();
        assert_eq!(first, again);
        for (at, bits) in first.iter().enumerate() {
            assert!(!first[..at].contains(bits));
        }
    }

    #[test]
    fn numbers_stay_in_bounds() {
        let mut random = Random::new(1);
        assert!((0..10_000).all(|_| random.below(3) < 3));
        assert!((0..10_000).all(|_| (0.0..1.0).contains(&random.unit())));
        let mean = (0..100_000).map(|_| random.exponential()).sum::<f64>() / 100_000.0;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
    }

    #[test]
    fn the_distributions_have_their_moments() {
        let mut random = Random::new(7);
        let n = 200_000;
        let unit: Vec<f64> = (0..n).map(|_| random.unit()).collect();
        assert!((mean(&unit) - 0.5).abs() < 0.005 && (deviation(&unit) - 12f64.sqrt().recip()).abs() < 0.005);
        let waits: Vec<f64> = (0..n).map(|_| random.exponential()).collect();
        assert!((mean(&waits) - 1.0).abs() < 0.01 && (deviation(&waits) - 1.0).abs() < 0.02);
        let bell: Vec<f64> = (0..n).map(|_| random.normal()).collect();
        assert!(mean(&bell).abs() < 0.01 && (deviation(&bell) - 1.0).abs() < 0.01);
        assert!((0..1000).all(|_| random.below(3) < 3));
        assert_eq!(Random::new(1).below(0), 0);
    }

    #[test]
    fn a_seed_decides_the_stream() {
        assert_eq!(Random::new(5).bits(), Random::new(5).bits());
        assert_ne!(Random::new(5).bits(), Random::new(6).bits());
    }
}
