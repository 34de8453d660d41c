//! The figures of the document: fatcache on a small server of 2013, from one PHP process.

use crate::checks::labels;
use crate::result::{Check, Table};
use crate::scenario::part::{row, table, verdicts};

/// Items, operations, start, end, printed seconds, printed rate, and that rate as a number.
const ROWS: [(&str, f64, f64, f64, f64, &str, f64); 3] = [
    ("100K sets", 100_000.0, 1_361_323_435.0, 1_361_323_448.0, 13.0, "~7.7K", 7700.0),
    ("1M sets", 1_000_000.0, 1_361_323_670.0, 1_361_323_795.0, 125.0, "8K", 8000.0),
    ("100K sets and gets", 200_000.0, 1_361_324_006.0, 1_361_324_030.0, 13.0, "~8.3K", 8300.0),
];

/// Returns the document's table, and the checks of it.
pub fn tables() -> Vec<Table> {
    let rows =
        ROWS.iter().map(|(items, _, start, end, seconds, rate, _)| row([items, start, end, seconds, rate]));
    let columns = ["Number of items", "Start time", "Final time", "Time/s", "Operations/s"];
    vec![
        table("php-loop: the document (fatcache, 2013)", &columns, rows.collect()),
        verdicts("php-loop: the document's figures, checked", &checks()),
    ]
}

fn checks() -> Vec<Check> {
    let of = |check: Check, items: &str| Check { message: format!("{items}: {}", check.message), ..check };
    ROWS.iter()
        .flat_map(|(items, operations, start, end, printed, _, rate)| {
            let elapsed = labels::elapsed(*start, *end, *printed, 1.0);
            [of(elapsed, items), of(labels::rate(*operations, end - start, *rate), items)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Verdict;

    #[test]
    fn the_wrong_time_is_caught_and_the_right_rates_are_not() {
        let found: Vec<Verdict> = checks().iter().map(|check| check.verdict).collect();
        let (ok, warn, fail) = (Verdict::Pass, Verdict::Warn, Verdict::Fail);
        assert_eq!(found, [warn, ok, ok, ok, fail, ok]);
    }
}
