//! The results of one scenario: its share of a document.

use crate::result::{Check, Counter, Curve, Document, Run, Table, Verdict};

/// One scenario's share of a document.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The scenario's name; it stands before everything that is named.
    pub name: &'static str,
    /// Single measurements.
    pub runs: Vec<Run>,
    /// Latency against throughput.
    pub curves: Vec<Curve>,
    /// Counters under threads.
    pub counters: Vec<Counter>,
    /// The document's figures and ours.
    pub tables: Vec<Table>,
    /// Tables for the document alone, too long for a terminal.
    pub raw: Vec<Table>,
    /// The checks besides those of each run.
    pub checks: Vec<Check>,
    /// Deviations from the document, and skipped parts.
    pub notes: Vec<String>,
}

impl Part {
    /// Nothing yet.
    pub fn new(name: &'static str) -> Self {
        Self { name, ..Self::default() }
    }

    /// Adds a table.
    pub fn table(&mut self, title: &str, columns: &[&str], rows: Vec<Vec<String>>) {
        if rows.iter().flatten().any(|cell| cell.ends_with(" !")) {
            self.note("a figure with ! is not certified: the checks of its run name the reason");
        }
        let title = format!("{}: {title}", self.name);
        self.tables.push(table(&title, columns, rows));
    }

    /// Adds a check.
    pub fn check(&mut self, check: Check) {
        self.checks.push(check);
    }

    /// Adds a check of something that has a name.
    pub fn check_of(&mut self, what: &str, check: Check) {
        self.checks.push(Check { message: format!("{what}: {}", check.message), ..check });
    }

    /// Adds a note, once.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Whether no check failed, those of the runs among them.
    pub fn is_certified(&self) -> bool {
        let own = self.checks.iter().all(|check| check.verdict != Verdict::Fail);
        own && self.runs.iter().all(Run::is_certified)
    }

    /// Whether a server gave a wrong answer.
    pub fn is_wrong(&self) -> bool {
        self.runs.iter().any(|run| run.verified.wrong > 0)
            || self.counters.iter().any(|counter| counter.check.verdict == Verdict::Fail)
    }

    /// Adds it to a document. Names of runs get the scenario's before them.
    pub fn add_to(self, document: &mut Document) {
        let name = self.name;
        document.runs.extend(self.runs);
        document.curves.extend(self.curves);
        document.counters.extend(self.counters);
        document.tables.extend(self.tables);
        document.tables.extend(self.raw);
        let named = |check: Check| Check { message: format!("{name}: {}", check.message), ..check };
        document.checks.extend(self.checks.into_iter().map(named));
        document.notes.extend(self.notes.into_iter().map(|note| format!("{name}: {note}")));
    }
}

/// A table of titles and rows.
pub fn table(title: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Table {
    Table { title: title.to_string(), columns: columns.iter().map(ToString::to_string).collect(), rows }
}

/// A row of anything that can be shown.
pub fn row<const N: usize>(cells: [&dyn std::fmt::Display; N]) -> Vec<String> {
    cells.iter().map(ToString::to_string).collect()
}

/// A figure, with the mark of one whose run is not certified.
pub fn marked(figure: String, is_certified: bool) -> String {
    if is_certified { figure } else { format!("{figure} !") }
}

/// Checks as a table: for those of figures that others published, which say nothing of our runs.
pub fn verdicts(title: &str, checks: &[Check]) -> Table {
    let word = |verdict| match verdict {
        Verdict::Pass => "ok",
        Verdict::Warn => "warn",
        Verdict::Fail => "WRONG",
        Verdict::Skipped => "skipped",
    };
    let rows = checks.iter().map(|check| row([&check.name, &word(check.verdict), &check.message])).collect();
    table(title, &["check", "verdict", "figures"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::check;

    #[test]
    fn a_figure_that_is_not_certified_is_marked_and_the_mark_is_explained() {
        let mut part = Part::new("php-loop");
        part.table("ours", &["a"], vec![row([&marked("1".to_string(), false)])]);
        assert_eq!(part.tables[0].rows, [["1 !"]]);
        assert!(part.notes[0].contains("not certified"), "{:?}", part.notes);
    }

    #[test]
    fn a_part_is_named_in_the_document() {
        let mut part = Part::new("php-loop");
        part.check_of("larder", check("rate", Verdict::Fail, "wrong"));
        part.note("skipped");
        part.note("skipped");
        part.table("ours", &["a"], vec![row([&marked("1".to_string(), true)])]);
        assert!(!part.is_certified() && !part.is_wrong());
        let mut document = Document::default();
        part.add_to(&mut document);
        assert_eq!(document.checks[0].message, "php-loop: larder: wrong");
        assert_eq!(document.notes, ["php-loop: skipped"]);
        assert_eq!(document.tables[0].title, "php-loop: ours");
    }
}
