//! How large values are. The size is a function of the key, so that a key always has the same.

use crate::random::mix;
use std::fmt;

/// The largest value, in bytes.
pub const SIZE_MAX: u32 = 512 << 20;
/// Keeps sizes apart from whatever else is derived from a key's number.
const SALT: u64 = 0x5173;

/// How large values are.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// All equally large.
    Fixed(u32),
    /// Anything from one to another, equally often.
    Range(u32, u32),
    /// Sizes with weights, and the words that described them.
    Weighted(Table),
}

/// Sizes with weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    words: String,
    /// Sizes, each with the sum of the weights up to and including its own.
    rows: Vec<(u32, f64)>,
}

impl Table {
    /// Of sizes and weights.
    ///
    /// # Errors
    /// There is none, or a weight is negative or no number, or all are 0.
    pub fn new(words: &str, weighted: &[(u32, f64)]) -> Result<Self, String> {
        let mut sum = 0.0;
        let mut rows = Vec::with_capacity(weighted.len());
        for (size, weight) in weighted {
            if !weight.is_finite() || *weight < 0.0 {
                return Err(format!("the weight {weight} is none"));
            }
            if *size > SIZE_MAX {
                return Err(format!("a size of {size} bytes is more than {SIZE_MAX}"));
            }
            sum += weight;
            rows.push((*size, sum));
        }
        if sum <= 0.0 {
            return Err("there is no size with a weight".to_string());
        }
        Ok(Self { words: words.to_string(), rows })
    }

    fn sum(&self) -> f64 {
        self.rows.last().map_or(0.0, |(_, sum)| *sum)
    }

    fn at(&self, unit: f64) -> u32 {
        let wanted = unit * self.sum();
        let row = self.rows.partition_point(|(_, sum)| *sum <= wanted).min(self.rows.len() - 1);
        self.rows[row].0
    }

    fn mean(&self) -> f64 {
        let mut before = 0.0;
        let total = self.rows.iter().map(|(size, sum)| {
            let weight = sum - before;
            before = *sum;
            f64::from(*size) * weight
        });
        total.sum::<f64>() / self.sum()
    }
}

impl Sizes {
    /// The size of a key's value, in bytes.
    pub fn of(&self, key: u64) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Range(from, to) => {
                let span = u128::from(to - from) + 1;
                from + ((u128::from(mix(key ^ SALT)) * span) >> 64) as u32
            }
            Self::Weighted(table) => table.at((mix(key ^ SALT) >> 11) as f64 / (1u64 << 53) as f64),
        }
    }

    /// The smallest size that a key may have, in bytes.
    pub fn least(&self) -> u32 {
        match self {
            Self::Fixed(size) | Self::Range(size, _) => *size,
            Self::Weighted(table) => table.rows.iter().map(|row| row.0).min().unwrap_or(0),
        }
    }

    /// The mean size, in bytes.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(size) => f64::from(*size),
            Self::Range(from, to) => (f64::from(*from) + f64::from(*to)) / 2.0,
            Self::Weighted(table) => table.mean(),
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(size) => write!(f, "{size} B"),
            Self::Range(from, to) => write!(f, "{from} to {to} B"),
            Self::Weighted(table) => write!(f, "{} (mean {:.0} B)", table.words, table.mean()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_its_size() {
        let table = Table::new("list", &[(64, 9.0), (1024, 1.0)]).expect("it is one");
        for sizes in [Sizes::Fixed(7), Sizes::Range(10, 20), Sizes::Weighted(table)] {
            let mean = (0..100_000).map(|key| f64::from(sizes.of(key))).sum::<f64>() / 100_000.0;
            assert!((mean / sizes.mean() - 1.0).abs() < 0.02, "{sizes}: {mean}");
            assert!((0..100).all(|key| sizes.of(key) == sizes.of(key)));
        }
        let seen: std::collections::BTreeSet<u32> =
            (0..1000).map(|key| Sizes::Range(10, 12).of(key)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [10, 11, 12]);
    }

    #[test]
    fn weights_that_are_none_are_refused() {
        assert!(Table::new("x", &[]).is_err());
        assert!(Table::new("x", &[(1, -1.0)]).is_err());
        assert!(Table::new("x", &[(1, f64::NAN)]).is_err());
        assert!(Table::new("x", &[(1, 0.0)]).is_err());
    }
}
