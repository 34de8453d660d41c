//! Workloads that others have named: YCSB's, as far as a cache's commands can express them.

use super::{Mix, Pattern, Sizes, Workload};
use std::str::FromStr;

/// Bytes of a record: ten fields of 100.
const RECORD_BYTES: u32 = 1000;
/// YCSB's skew.
const EXPONENT: f64 = 0.99;

/// One of YCSB's core workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Half reads, half updates.
    YcsbA,
    /// 95 % reads, 5 % updates.
    YcsbB,
    /// Reads alone.
    YcsbC,
    /// 95 % reads of what was stored last, 5 % stores.
    YcsbD,
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "ycsb-a" => Ok(Self::YcsbA),
            "ycsb-b" => Ok(Self::YcsbB),
            "ycsb-c" => Ok(Self::YcsbC),
            "ycsb-d" => Ok(Self::YcsbD),
            "ycsb-e" => Err("it scans ranges of keys, which no cache can".to_string()),
            "ycsb-f" => {
                Err("it changes a part of what it has read, which the mix of verbs cannot".to_string())
            }
            _ => Err("is one of ycsb-a, ycsb-b, ycsb-c, ycsb-d".to_string()),
        }
    }
}

impl Preset {
    /// Sets what the preset decides: the verbs, the pattern of keys and the size of values.
    pub fn apply(self, workload: &mut Workload) {
        let (sets, gets) = match self {
            Self::YcsbA => (50, 50),
            Self::YcsbB | Self::YcsbD => (5, 95),
            Self::YcsbC => (0, 100),
        };
        workload.mix = Mix::ratio(sets, gets);
        workload.pattern = if self == Self::YcsbD { Pattern::Latest } else { Pattern::Zipf(EXPONENT) };
        workload.sizes = Sizes::Fixed(RECORD_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::verb::Verb;

    #[test]
    fn presets_are_those_of_ycsb() {
        let workload = |name: &str| {
            let mut workload = Workload::default();
            name.parse::<Preset>().expect("it is one").apply(&mut workload);
            workload
        };
        let shares = ["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d"].map(|name| workload(name).mix.share(Verb::Get));
        assert_eq!(shares, [0.5, 0.95, 1.0, 0.95]);
        assert_eq!(workload("ycsb-a").pattern, Pattern::Zipf(0.99));
        assert_eq!(workload("ycsb-d").pattern, Pattern::Latest);
        assert_eq!(workload("ycsb-c").sizes, Sizes::Fixed(1000));
    }

    #[test]
    fn what_a_cache_cannot_do_is_refused_with_the_reason() {
        assert!("ycsb-e".parse::<Preset>().is_err_and(|why| why.contains("scans")));
        assert!("ycsb-f".parse::<Preset>().is_err() && "ycsb".parse::<Preset>().is_err());
    }
}
