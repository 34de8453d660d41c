//! Zipf's law with any exponent, drawn exactly: rank k of n has a chance proportional to k^-s.
//!
//! The method is rejection-inversion (Hoermann and Derflinger, 1996): it needs no table, so that neither the
//! number of keys nor the exponent costs memory, and nearly every draw is accepted at once.

use crate::random::Random;

/// A Zipf distribution over the ranks 1 to n.
#[derive(Clone, Debug)]
pub struct Zipf {
    ranks: f64,
    exponent: f64,
    integral_first: f64,
    integral_last: f64,
    at_once: f64,
}

impl Zipf {
    /// Over `ranks` ranks; an exponent of 0 is uniform.
    pub fn new(ranks: u64, exponent: f64) -> Self {
        let mut zipf =
            Self { ranks: ranks as f64, exponent, integral_first: 0.0, integral_last: 0.0, at_once: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(zipf.ranks + 0.5);
        zipf.at_once = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// A rank counted from 0, the most frequent one.
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.integral_last + random.unit() * (self.integral_first - self.integral_last);
            let x = self.inverse(u);
            let rank = x.round().clamp(1.0, self.ranks);
            if rank - x <= self.at_once || u >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// The integral of the weight, (x^(1-s) - 1) / (1-s), which is ln x at s = 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let t = (1.0 - self.exponent) * log;
        log * if t.abs() > 1e-8 { t.exp_m1() / t } else { 1.0 + t / 2.0 }
    }

    fn inverse(&self, y: f64) -> f64 {
        let t = (y * (1.0 - self.exponent)).max(-1.0);
        (y * if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t / 2.0 }).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_follow_the_law() {
        const RANKS: u64 = 50;
        const DRAWS: usize = 400_000;
        for exponent in [0.0, 0.5, 0.99, 1.0, 1.3, 2.5] {
            let zipf = Zipf::new(RANKS, exponent);
            let mut random = Random::new(3);
            let mut seen = [0u32; RANKS as usize];
            for _ in 0..DRAWS {
                seen[zipf.draw(&mut random) as usize] += 1;
            }
            let total: f64 = (1..=RANKS).map(|rank| (rank as f64).powf(-exponent)).sum();
            for rank in [1, 2, 3, 10, 50] {
                let want = (rank as f64).powf(-exponent) / total * DRAWS as f64;
                let got = f64::from(seen[rank - 1]);
                assert!(
                    (got - want).abs() < 6.0 * want.sqrt() + 2.0,
                    "s {exponent} rank {rank}: {got}, {want}"
                );
            }
        }
    }

    #[test]
    fn one_key_is_enough() {
        assert_eq!(Zipf::new(1, 0.99).draw(&mut Random::new(1)), 0);
    }
}
