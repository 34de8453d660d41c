//! The document as Markdown: verdict, tables, checks; without drawings.

use super::text::{count, latency_ascii, moment, plain, shell};
use super::verdict::{Figure, figures, overall};
use super::{answer, checks, runs};
use crate::result::{Document, Verdict};
use std::fmt::Write as _;

/// More rows of a document's table than this are left to `result.json`.
const ROWS_MAX: usize = 100;

/// The page as Markdown. Text from elsewhere cannot become markup.
pub fn markdown(document: &Document) -> String {
    let mut page = format!("# {}\n\n{}\n\n", text(&document.title), moment(document.started_unix_ms));
    let _ = writeln!(page, "**{}**\n", overall(document).words().0);
    for sentence in answer::sentences(document) {
        let _ = writeln!(page, "{}.\n", text(&sentence));
    }
    for Figure { name, figure, small, is_certified } in figures(document) {
        let (name, figure, small) = (text(&name), text(&figure), text(&small));
        let _ = match is_certified {
            true => writeln!(page, "- {name}: **{figure}** ({small})"),
            false => writeln!(page, "- {name}: {figure}, not certified ({small})"),
        };
    }
    points(&mut page, document);
    if !document.runs.is_empty() {
        heading(&mut page, "Runs");
        table(&mut page, &runs::COLUMNS, &runs::rows(&document.runs));
    }
    counters(&mut page, document);
    let odd: Vec<Vec<String>> = checks::all(document)
        .into_iter()
        .filter(|(_, check)| check.verdict != Verdict::Pass)
        .map(|(of, check)| {
            vec![checks::word(check.verdict).into(), check.name.clone(), of, check.message.clone()]
        })
        .collect();
    let all = checks::all(document).len();
    if all > 0 {
        heading(&mut page, "Checks");
        let _ = writeln!(page, "{} of {all} passed.\n", all - odd.len());
        if !odd.is_empty() {
            table(&mut page, &["verdict", "check", "of", "figures"], &odd);
        }
    }
    for one in &document.tables {
        heading(&mut page, &one.title);
        table(&mut page, &one.columns, &one.rows[..one.rows.len().min(ROWS_MAX)]);
        if one.rows.len() > ROWS_MAX {
            let _ = writeln!(page, "\n{} more rows are in result.json.", one.rows.len() - ROWS_MAX);
        }
    }
    if !document.notes.is_empty() {
        heading(&mut page, "Deviations and what was skipped");
        for note in &document.notes {
            let _ = writeln!(page, "- {}", text(note));
        }
    }
    if !document.environment.facts.is_empty() {
        heading(&mut page, "Environment");
        for (name, value) in &document.environment.facts {
            let _ = writeln!(page, "- {}: {}", text(name), text(value));
        }
    }
    if !document.command.is_empty() {
        heading(&mut page, "Repeat it");
        let command = plain(&shell(&document.command)).replace("```", "` ` `");
        let _ = writeln!(page, "```sh\n{command}\n```");
    }
    page
}

fn points(page: &mut String, document: &Document) {
    for curve in &document.curves {
        heading(page, &format!("{}: latency against throughput", curve.label));
        let row = |point: &crate::result::Point| {
            vec![
                count(point.at),
                count(point.rate),
                latency_ascii(point.mean_ns),
                latency_ascii(point.p50_ns as f64),
                latency_ascii(point.p99_ns as f64),
                latency_ascii(point.p999_ns as f64),
                if point.certified { "yes" } else { "no" }.to_string(),
            ]
        };
        let columns = [curve.varied.as_str(), "rate/s", "mean", "p50", "p99", "p99.9", "certified"];
        table(page, &columns, &curve.points.iter().map(row).collect::<Vec<_>>());
    }
}

fn counters(page: &mut String, document: &Document) {
    if document.counters.is_empty() {
        return;
    }
    heading(page, "Counters");
    let row = |c: &crate::result::Counter| {
        vec![
            c.store.clone(),
            c.threads.to_string(),
            format!("{:.1}", c.rate),
            latency_ascii(c.latency.quantile_ns(0.99) as f64),
            c.errors.to_string(),
            checks::word(c.check.verdict).to_string(),
            if c.is_certified() { "yes" } else { "NO" }.to_string(),
        ]
    };
    let rows: Vec<_> = document.counters.iter().map(row).collect();
    table(page, &["store", "threads", "increments/s", "p99", "errors", "linearizable", "certified"], &rows);
}

fn heading(page: &mut String, title: &str) {
    let _ = writeln!(page, "\n## {}\n", text(title));
}

/// One line of text that is no markup.
fn text(words: &str) -> String {
    let mut out = String::with_capacity(words.len());
    for c in plain(words).chars() {
        if "\\`*_[]<>|#".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn table<C: AsRef<str>>(page: &mut String, columns: &[C], rows: &[Vec<String>]) {
    let line = |cells: &mut dyn Iterator<Item = &str>| -> String {
        cells.map(|cell| format!("| {} ", text(cell))).chain(["|\n".to_string()]).collect()
    };
    page.push_str(&line(&mut columns.iter().map(AsRef::as_ref)));
    page.push_str(&"|---".repeat(columns.len()));
    page.push_str("|\n");
    for row in rows {
        page.push_str(&line(&mut row.iter().map(String::as_str)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Table;

    #[test]
    fn names_do_not_become_markup() {
        let hostile = "a | <script> [x](y) \x1b[31m\n# no";
        let document = Document {
            title: hostile.to_string(),
            tables: vec![Table {
                title: "t".to_string(),
                columns: vec!["c".to_string()],
                rows: vec![vec![hostile.to_string()]],
            }],
            ..Document::default()
        };
        let page = markdown(&document);
        assert!(!page.contains("<script>") && !page.contains("[x](y)") && !page.contains('\x1b'));
        assert!(page.lines().all(|line| line != "# no"));
        assert!(page.contains("Certified") || page.contains("Nothing"), "{page}");
    }
}
