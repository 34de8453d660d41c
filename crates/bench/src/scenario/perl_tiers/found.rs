//! What was found: the loops of each row, and whether the row holds what its name says.

use super::row::{FRESH, Loop, Promise, ROWS, Row};
use super::worker::Ran;
use crate::stats::median;

/// One loop of a row as it ran, and what the servers counted meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slice {
    /// The worker's own counts.
    pub ran: Ran,
    /// Gets that the local server had; none without one, or if it does not tell.
    pub near_gets: Option<u64>,
    /// Gets that the remote server had.
    pub far_gets: Option<u64>,
}

impl Slice {
    /// Returns what does not agree with the row's promise, in words. Others may use the servers, too, if they are not
    /// `ours`.
    pub fn complaint(&self, row: &Row, which: Loop, ours: bool) -> Option<String> {
        let Ran { iterations, seconds, misses, wrong, near, far } = self.ran;
        let gets = if which.has_gets() { iterations } else { 0 };
        if iterations == 0 {
            return Some("not one iteration ended".to_string());
        }
        if misses + wrong > 0 {
            return Some(format!("{misses} misses and {wrong} wrong values in {gets} gets"));
        }
        let asked_max = match row.promise {
            Promise::Near => 0,
            Promise::NearWhileFresh => (seconds / FRESH.as_secs_f64()).ceil() as u64 + 1,
            Promise::Far | Promise::NearLost => gets,
        };
        let asked_min = if matches!(row.promise, Promise::Far | Promise::NearLost) { gets } else { 0 };
        if near + far != gets || far < asked_min || far > asked_max {
            return Some(format!("of {gets} gets {near} were near and {far} remote"));
        }
        let at_server = |name: &str, counted: Option<u64>, told: u64| {
            let counted = counted?;
            let is_right = if ours { counted == told } else { counted >= told };
            (!is_right).then(|| format!("the {name} server counted {counted} gets instead of {told}"))
        };
        let far_told = if row.far { far } else { 0 };
        let near_told = if row.near { gets } else { 0 };
        at_server("remote", self.far_gets, far_told).or_else(|| at_server("local", self.near_gets, near_told))
    }
}

/// All slices of one loop of a row, for one size at one distance.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The row, as a number in [`ROWS`].
    pub row: usize,
    /// The loop.
    pub which: Loop,
    /// Bytes of the value.
    pub bytes: u32,
    /// The site's number.
    pub site: usize,
    /// A slice for each round.
    pub slices: Vec<Slice>,
}

impl Cell {
    /// Microseconds an iteration: the median of the rounds, the least and the most; none before the first round.
    pub fn us(&self) -> Option<(f64, f64, f64)> {
        let mut each: Vec<f64> = self.slices.iter().map(|slice| slice.ran.iteration_us()).collect();
        each.sort_by(f64::total_cmp);
        Some((median(&each), *each.first()?, *each.last()?))
    }

    /// The sum of a count over the rounds.
    pub fn sum(&self, of: impl Fn(&Ran) -> u64) -> u64 {
        self.slices.iter().map(|slice| of(&slice.ran)).sum()
    }
}

/// Everything that was found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// In the order of the first round.
    pub cells: Vec<Cell>,
}

impl Found {
    /// Adds a slice to its cell.
    pub fn add(&mut self, row: usize, which: Loop, (bytes, site): (u32, usize), slice: Slice) {
        let same =
            |cell: &&mut Cell| (cell.row, cell.which, cell.bytes, cell.site) == (row, which, bytes, site);
        match self.cells.iter_mut().find(same) {
            Some(cell) => cell.slices.push(slice),
            None => self.cells.push(Cell { row, which, bytes, site, slices: vec![slice] }),
        }
    }

    /// The cell of a row's name.
    pub fn cell(&self, name: &str, which: Loop, (bytes, site): (u32, usize)) -> Option<&Cell> {
        let row = ROWS.iter().position(|row| row.name == name)?;
        let same = |cell: &&Cell| (cell.row, cell.which, cell.bytes, cell.site) == (row, which, bytes, site);
        self.cells.iter().find(same)
    }

    /// Its median, in microseconds.
    pub fn us(&self, name: &str, which: Loop, group: (u32, usize)) -> Option<f64> {
        self.cell(name, which, group)?.us().map(|(median, _, _)| median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str) -> Row {
        *ROWS.iter().find(|row| row.name == name).expect("it is a row")
    }

    fn slice(near: u64, far: u64) -> Slice {
        let ran = Ran { iterations: near + far, seconds: 2.5, near, far, ..Ran::default() };
        Slice { ran, near_gets: None, far_gets: Some(far) }
    }

    #[test]
    fn a_row_keeps_its_promise_or_fails() {
        let ok = |name: &str, slice: Slice| slice.complaint(&row(name), Loop::Get, true).is_none();
        assert!(ok("remote larder", slice(0, 100)) && !ok("remote larder", slice(1, 99)));
        assert!(ok("TieredFast", slice(100, 0)) && !ok("TieredFast", slice(99, 1)));
        assert!(ok("Rust Tiered", slice(96, 4)) && !ok("Rust Tiered", slice(95, 5)));
        let lost = |gets| Slice { near_gets: Some(gets), ..slice(0, 100) };
        assert!(ok("TieredLmc", lost(100)) && !ok("TieredLmc", lost(0)), "the near server has the value");
        assert!(!ok("TieredLmc, mended", lost(100)));
        assert!(ok("TieredLmc, mended", Slice { near_gets: Some(100), ..slice(100, 0) }));
    }

    #[test]
    fn misses_wrong_values_and_gets_that_the_server_did_not_count_fail_a_row() {
        let of = |slice: Slice, ours| slice.complaint(&row("Rust Client"), Loop::Get, ours);
        let good = slice(0, 100);
        assert_eq!(of(good, true), None);
        let with = |ran: Ran| of(Slice { ran, ..good }, true).unwrap_or_default();
        assert!(with(Ran { misses: 1, ..good.ran }).contains("1 misses"));
        assert!(with(Ran { wrong: 2, ..good.ran }).contains("2 wrong"));
        assert!(with(Ran::default()).contains("not one"));
        assert!(of(Slice { far_gets: Some(99), ..good }, false).is_some());
        assert!(of(Slice { far_gets: Some(101), ..good }, true).is_some());
        assert!(of(Slice { far_gets: Some(101), ..good }, false).is_none(), "others use that server, too");
        let sets = Slice { ran: Ran { iterations: 9, ..Ran::default() }, near_gets: None, far_gets: Some(0) };
        assert_eq!(sets.complaint(&row("Rust Client"), Loop::Set, true), None);
    }

    #[test]
    fn the_figure_of_a_cell_is_the_median_of_its_rounds() {
        let mut found = Found::default();
        for seconds in [0.3, 0.1, 0.2] {
            let ran = Ran { iterations: 1000, seconds, ..Ran::default() };
            found.add(0, Loop::Get, (100, 0), Slice { ran, ..Slice::default() });
        }
        let cell = found.cell("remote larder", Loop::Get, (100, 0)).expect("it was added");
        let (median, least, most) = cell.us().expect("it has rounds");
        assert!((median - 200.0).abs() < 1e-6 && (least - 100.0).abs() < 1e-6 && (most - 300.0).abs() < 1e-6);
        assert_eq!(cell.sum(|ran| ran.iterations), 3000);
        assert!(found.us("remote larder", Loop::Set, (100, 0)).is_none());
    }
}
