//! Tables, checks and notes as plain text that fits a terminal: columns where there is room, lines where
//! there is not.

use super::Part;
use crate::report::text::plain;
use crate::result::{Check, Table, Verdict};
use std::fmt::Write as _;

/// Between two columns; the smaller one when the larger leaves too little room.
const GAPS: [usize; 2] = [2, 1];
/// Before the text of a check or a note.
const HEAD: usize = 6;
/// This many checks of one name that all passed are told in one line.
const ALIKE: usize = 3;
/// The last column of a table may be folded down to this width.
const FOLDED: usize = 24;

/// Everything that a part has to say, within `width` columns.
pub fn part(part: &Part, width: usize) -> String {
    let mut text = String::new();
    for one in &part.tables {
        text += &table(one, width);
        text.push('\n');
    }
    let runs =
        part.runs.iter().flat_map(|run| run.checks.iter().map(move |check| (run.label.as_str(), check)));
    let (bad, good): (Vec<_>, Vec<_>) = runs.partition(|(_, check)| check.verdict == Verdict::Fail);
    text += "checks\n";
    let mut told: Vec<&str> = Vec::new();
    for check in &part.checks {
        let same: Vec<&Check> = part.checks.iter().filter(|other| other.name == check.name).collect();
        if same.len() <= ALIKE || same.iter().any(|other| other.verdict != Verdict::Pass) {
            text += &checked("", check, width);
        } else if !told.contains(&check.name.as_str()) {
            told.push(&check.name);
            text += &hanging("ok", &format!("{}: all {}", check.name, same.len()), width);
        }
    }
    for (of, check) in bad {
        text += &checked(of, check, width);
    }
    if !good.is_empty() {
        text += &hanging("ok", &format!("{} checks of {} single runs", good.len(), part.runs.len()), width);
    }
    if !part.notes.is_empty() {
        text += "\nnotes\n";
        for note in &part.notes {
            let _ = writeln!(text, "{}", wrapped(&format!("- {}", plain(note)), width, "  "));
        }
    }
    text
}

fn checked(of: &str, check: &Check, width: usize) -> String {
    let word = match check.verdict {
        Verdict::Pass => "ok",
        Verdict::Warn => "warn",
        Verdict::Fail => "FAIL",
        Verdict::Skipped => "skip",
    };
    let of = if of.is_empty() { String::new() } else { format!("{of}: ") };
    hanging(word, &format!("{}: {of}{}", check.name, plain(&check.message)), width)
}

/// A short word, and a text beside it that may take several lines.
pub fn hanging(word: &str, text: &str, width: usize) -> String {
    let mut lines = String::new();
    for (at, line) in wrapped(text, width.saturating_sub(HEAD + 1), "").lines().enumerate() {
        let _ = writeln!(lines, "{:<HEAD$} {line}", if at == 0 { word } else { "" });
    }
    lines
}

/// A table in columns; when it does not fit, every row in lines.
pub fn table(table: &Table, width: usize) -> String {
    let mut text = format!("{}\n", wrapped(&plain(&table.title), width, "  "));
    let cells = |row: &[String]| -> Vec<String> { row.iter().map(|cell| plain(cell)).collect() };
    let rows: Vec<Vec<String>> = table.rows.iter().map(|row| cells(row)).collect();
    let columns = table.columns.len();
    let mut widths: Vec<usize> = table.columns.iter().map(|name| longest_word(name)).collect();
    for row in &rows {
        row.iter().zip(&mut widths).for_each(|(cell, width)| *width = (*width).max(cell.chars().count()));
    }
    let last = widths.last().copied().unwrap_or(0);
    let before =
        |gap: &usize| widths.iter().take(columns.saturating_sub(1)).map(|width| width + gap).sum::<usize>();
    let fitting = GAPS.into_iter().find(|gap| before(gap) + FOLDED.min(last) <= width);
    let Some(gap) = fitting else { return text + &lines(table, &rows, width) };
    let before = before(&gap);
    if let Some(last) = widths.last_mut() {
        *last = (*last).min(width - before);
    }
    // A name of several words may stand over several lines; so may the last cell.
    text += &folded(&table.columns, &widths, gap, &vec![false; columns]);
    let is_figure: Vec<bool> = (0..columns)
        .map(|at| at > 0 && rows.iter().filter_map(|row| row.get(at)).all(|cell| looks_like_figure(cell)))
        .collect();
    for row in &rows {
        text += &folded(row, &widths, gap, &is_figure);
    }
    text
}

fn longest_word(name: &str) -> usize {
    name.split(' ').map(|word| word.chars().count()).max().unwrap_or(0)
}

fn looks_like_figure(cell: &str) -> bool {
    let begins = cell.starts_with(|c: char| c.is_ascii_digit() || "+-~<>".contains(c));
    cell.is_empty() || (begins && cell.len() < FOLDED)
}

/// One row, each cell over as many lines as it needs.
fn folded(row: &[String], widths: &[usize], gap: usize, is_figure: &[bool]) -> String {
    let cells: Vec<Vec<String>> = row
        .iter()
        .zip(widths)
        .map(|(cell, width)| wrapped(cell, (*width).max(1), "").lines().map(str::to_string).collect())
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let mut text = String::new();
    for line in 0..height {
        let mut out = String::new();
        for ((cell, width), figure) in cells.iter().zip(widths).zip(is_figure) {
            let piece = cell.get(line).map_or("", String::as_str);
            let _ = if *figure { write!(out, "{piece:>width$}") } else { write!(out, "{piece:<width$}") };
            out += &" ".repeat(gap);
        }
        let _ = writeln!(text, "{}", out.trim_end());
    }
    text
}

/// Every row as its first cell, and the others with their names under it.
fn lines(table: &Table, rows: &[Vec<String>], width: usize) -> String {
    let mut text = String::new();
    for row in rows {
        for (at, (name, cell)) in table.columns.iter().zip(row).enumerate() {
            let line = match at {
                0 => cell.clone(),
                _ if cell.is_empty() || cell == "-" => continue,
                _ => format!("  {name}: {cell}"),
            };
            let _ = writeln!(text, "{}", wrapped(&line, width, "    "));
        }
    }
    text
}

/// Breaks a text between words, or within a word that is longer than a line; further lines begin with
/// `indent`.
pub fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let lead: String = text.chars().take_while(|c| *c == ' ').collect();
    let mut lines = vec![lead];
    let mut is_fresh = true;
    let room = width.saturating_sub(indent.len()).max(1);
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut rest: Vec<char> = word.chars().collect();
        while !rest.is_empty() {
            let line = lines.last_mut().expect("there is one at least");
            let used = line.chars().count() + usize::from(!is_fresh);
            let fits = used + rest.len() <= width;
            if fits || (is_fresh && rest.len() > room) {
                let take = rest.len().min(width.saturating_sub(used).max(1));
                if !is_fresh {
                    line.push(' ');
                }
                line.extend(rest.drain(..take));
                is_fresh = false;
            }
            if !rest.is_empty() {
                lines.push(indent.to_string());
                is_fresh = true;
            }
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::part::{row, table as made};
    use super::*;

    fn sample() -> Table {
        let long = "a sentence that is longer than what is left of the line and has to be folded somewhere";
        let rows = vec![row([&"larder", &12_345, &long]), row([&"memcached", &7, &"short"])];
        made("a title", &["server", "operations a second", "says"], rows)
    }

    #[test]
    fn every_line_fits() {
        let mut one = Part::new("x");
        one.tables.push(sample());
        one.check(crate::checks::check("little", Verdict::Fail, "w".repeat(200)));
        one.note("n ".repeat(100));
        for width in [30, 40, 80, 200] {
            for line in part(&one, width).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn columns_where_there_is_room_and_lines_where_not() {
        let wide = table(&sample(), 80);
        assert!(
            wide.contains("memcached       7  short") || wide.contains("memcached           7  short"),
            "{wide}"
        );
        let narrow = table(&sample(), 40);
        assert!(narrow.contains("memcached") && narrow.lines().count() > wide.lines().count(), "{narrow}");
        assert_eq!(wrapped("  one two three", 9, "  "), "  one two\n  three");
        assert_eq!(wrapped("abcdefgh", 3, ""), "abc\ndef\ngh");
        assert_eq!(hanging("ok", "one two", 11), "ok     one\n       two\n");
    }
}
