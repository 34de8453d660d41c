//! Counters as a table for a terminal: stores down, threads across, as many beside each other as fit.

use crate::result::{Counter, Verdict};

/// Columns that a rate takes at least, with the blank in front of it.
const RATE_COLUMNS: usize = 9;
/// Columns that the word on the right takes.
const CHECK_COLUMNS: usize = 7;

/// The table, with increments a second. Repeats show their median; the word on the right is the worst of its
/// row, with `!` for rates that are not certified.
pub fn table(counters: &[Counter], columns: usize) -> String {
    let mut stores: Vec<&str> = Vec::new();
    let mut threads: Vec<u32> = Vec::new();
    for counter in counters {
        if !stores.contains(&counter.store.as_str()) {
            stores.push(&counter.store);
        }
        if !threads.contains(&counter.threads) {
            threads.push(counter.threads);
        }
    }
    let name_columns = stores.iter().map(|name| name.len()).max().unwrap_or(0).max("threads".len());
    let cell_of = |store: &str, threads: u32| {
        rate(counters.iter().filter(|one| one.store == store && one.threads == threads))
    };
    let cells = || stores.iter().flat_map(|store| threads.iter().map(|threads| cell_of(store, *threads)));
    // A counter in this process makes tens of millions a second, and two rates must not touch.
    let rate_columns = cells().map(|cell| cell.len() + 1).max().unwrap_or(0).max(RATE_COLUMNS);
    let fitting = (columns.saturating_sub(name_columns + CHECK_COLUMNS) / rate_columns).max(1);
    // Blocks of the same width are easier to read than a full one and a rest.
    let blocks = threads.len().div_ceil(fitting).max(1);
    let mut lines = Vec::new();
    for block in threads.chunks(threads.len().div_ceil(blocks).max(1)) {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        let head: String = block.iter().map(|threads| format!("{threads:>rate_columns$}")).collect();
        lines.push(format!("{:name_columns$}{head}  check", "threads"));
        for store in &stores {
            let rows =
                |threads: u32| counters.iter().filter(move |c| c.store == *store && c.threads == threads);
            let cell = |threads: &u32| format!("{:>rate_columns$}", cell_of(store, *threads));
            let cells: String = block.iter().map(cell).collect();
            let verdicts = || block.iter().flat_map(|threads| rows(*threads));
            let doubt = if verdicts().all(Counter::is_certified) { "" } else { " !" };
            let word = word(verdicts().map(|counter| counter.check.verdict));
            lines.push(format!(
                "{store:name_columns$}{cells}  {word}{}",
                if word == "WRONG" { "" } else { doubt }
            ));
        }
    }
    lines.join("\n")
}

fn rate<'a>(rows: impl Iterator<Item = &'a Counter>) -> String {
    let mut rates: Vec<f64> = rows.map(|counter| counter.rate).collect();
    rates.sort_by(f64::total_cmp);
    match rates.len() {
        0 => "-".into(),
        len => grouped(((rates[(len - 1) / 2] + rates[len / 2]) / 2.0).round() as u64),
    }
}

fn word(verdicts: impl Iterator<Item = Verdict>) -> &'static str {
    let mut worst = "-";
    for verdict in verdicts {
        worst = match (verdict, worst) {
            (Verdict::Fail, _) | (_, "WRONG") => "WRONG",
            (Verdict::Warn | Verdict::Skipped, _) | (_, "cut") => "cut",
            (Verdict::Pass, _) => "ok",
        };
    }
    worst
}

/// `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Check;

    fn counter(store: &str, threads: u32, rate: f64, verdict: Verdict) -> Counter {
        let check = Check { verdict, ..Check::default() };
        Counter { store: store.into(), threads, rate, check, ..Counter::default() }
    }

    #[test]
    fn a_rate_that_is_not_certified_is_marked() {
        let mut doubtful = counter("larder", 2, 9.0, Verdict::Pass);
        doubtful.checks = vec![Check { verdict: Verdict::Fail, ..Check::default() }];
        let lines = table(&[counter("larder", 1, 9.0, Verdict::Pass), doubtful], 80);
        assert!(lines.ends_with("ok !"), "{lines}");
    }

    #[test]
    fn rates_of_millions_stand_apart_and_fit() {
        let of = |threads| counter("memory-store", threads, 43_210_987.0, Verdict::Pass);
        let counters: Vec<Counter> = (1..=10).map(of).collect();
        for columns in [40, 80] {
            let text = table(&counters, columns);
            let rates = text.split_whitespace().filter(|word| *word == "43,210,987").count();
            assert_eq!(rates, 10, "{text}");
            assert!(text.lines().all(|line| line.len() <= columns), "{text}");
        }
    }

    #[test]
    fn it_fits_and_shows_medians_and_the_worst() {
        let mut counters = Vec::new();
        for threads in 1..=10 {
            counters.push(counter("postgres-unlogged", threads, 9876.4, Verdict::Pass));
            for rate in [1_234_567.0, 5.0, 30.0] {
                counters.push(counter("broken-rmw", threads, rate, Verdict::Fail));
            }
        }
        counters.push(counter("mongodb", 1, 44.6, Verdict::Warn));
        let wide = table(&counters, 200);
        let lines: Vec<&str> = wide.lines().collect();
        assert_eq!(lines.len(), 4, "{wide}");
        assert!(
            lines[2].starts_with("broken-rmw") && lines[2].contains(" 30 ") && lines[2].ends_with("WRONG")
        );
        assert!(lines[3].contains(" 45 ") && lines[3].contains(" - ") && lines[3].ends_with("cut"));
        for columns in [40, 80] {
            let narrow = table(&counters, columns);
            assert!(narrow.lines().all(|line| line.len() <= columns), "{narrow}");
            assert_eq!(narrow.matches("9,876").count(), 10, "{narrow}");
        }
        assert_eq!(table(&[], 80), "");
    }
}
