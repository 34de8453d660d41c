//! The figures of the document: Perl 5.10 on a virtual machine of 512 MB, one core of 3.16 GHz, 2008.

use crate::checks::figure;
use crate::checks::tiers::{Costs, first_tier};
use crate::result::{Check, Table};
use crate::scenario::part::{row, table, verdicts};

/// The document's number of iterations.
pub const ITERATIONS: u64 = 50_000;

/// Seconds for [`ITERATIONS`]: gets, and set with get; and the misses of the first.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The document's name for it.
    pub name: &'static str,
    /// Seconds of the read-heavy loop.
    pub read_s: f64,
    /// Seconds of the write-heavy one.
    pub write_s: f64,
    misses: u32,
}

const fn line(name: &'static str, read_s: f64, write_s: f64, misses: u32) -> Row {
    Row { name, read_s, write_s, misses }
}

static ROWS: [Row; 7] = [
    line("memcached", 101.018_182, 129.661_46, 3),
    line("local memcached", 3.473_889, 11.377_581, 0),
    line("mmap", 5.370_702, 12.923_498, 0),
    line("mmap fast", 3.165_09, 7.368_855, 0),
    line("Tiered", 9.488_398, 44.160_01, 0),
    line("TieredFast", 5.193_063, 40.125_187, 0),
    line("TieredLmc", 113.350_251, 149.111_689, 3),
];

impl Row {
    /// An iteration of the two loops, in microseconds.
    pub fn iterations_us(&self) -> (f64, f64) {
        (us(self.read_s), us(self.write_s))
    }
}

/// The row that the document gives this name.
pub fn row_of(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name)
}

fn us(seconds: f64) -> f64 {
    seconds / ITERATIONS as f64 * 1e6
}

/// Returns the document's table, and the checks of it.
pub fn tables() -> Vec<Table> {
    let rows =
        ROWS.iter().map(|line| row([&line.name, &figure(line.read_s), &figure(line.write_s), &line.misses]));
    let columns = ["store", "50,000 gets s", "50,000 sets and gets s", "misses"];
    vec![
        table("perl-tiers: the document (Perl 5.10, 2008)", &columns, rows.collect()),
        verdicts("perl-tiers: the document's figures, checked", &checks()),
    ]
}

fn checks() -> Vec<Check> {
    let remote = ROWS[0];
    let of = |first: usize, both: usize| {
        let (first, both) = (ROWS[first], ROWS[both]);
        let costs = Costs {
            l1_get: us(first.read_s),
            l1_set: us(first.write_s) - us(first.read_s),
            l2_get: us(remote.read_s),
            l2_set: us(remote.write_s) - us(remote.read_s),
        };
        let named = |loops: &str, check: Check| Check {
            message: format!("{} {loops}: {}", both.name, check.message),
            ..check
        };
        [
            named("get", first_tier(&costs, us(both.read_s), false)),
            named("set and get", first_tier(&costs, us(both.write_s), true)),
        ]
    };
    [of(2, 4), of(3, 5), of(1, 6)].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Verdict;

    #[test]
    fn the_tier_that_never_hits_is_caught_and_the_others_are_not() {
        let found: Vec<Verdict> = checks().iter().map(|check| check.verdict).collect();
        let (ok, fail) = (Verdict::Pass, Verdict::Fail);
        assert_eq!(found, [ok, ok, ok, ok, fail, fail]);
    }
}
