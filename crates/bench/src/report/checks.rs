//! The checks of a document: those that did not pass first, the others folded.

use super::text::escape;
use crate::result::{Check, Document, Verdict};
use crate::show::threads;
use std::fmt::Write as _;

/// More rows than this are left to `result.json`.
const ROWS_MAX: usize = 500;

/// One word for a verdict.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Warn => "warn",
        Verdict::Fail => "FAIL",
        Verdict::Skipped => "skipped",
    }
}

/// Every check with its subject.
pub fn all(document: &Document) -> Vec<(String, &Check)> {
    let whole = document.checks.iter().map(|check| ("whole document".to_string(), check));
    let runs = document.runs.iter().flat_map(|run| run.checks.iter().map(|check| (run.label.clone(), check)));
    let counters = document.counters.iter().filter(|counter| !counter.check.name.is_empty());
    let counters = counters.map(|c| (format!("{}, {}", c.store, threads(c.threads)), &c.check));
    whole.chain(runs).chain(counters).collect()
}

fn table(checks: &[(String, &Check)]) -> String {
    let mut html = String::from(
        "<div class=\"wide\"><table class=\"checks\"><thead><tr><th>verdict</th><th>check</th><th>of</th>\
         <th>figures</th></tr></thead><tbody>",
    );
    for (of, check) in checks.iter().take(ROWS_MAX) {
        let word = word(check.verdict);
        let _ = write!(
            html,
            "<tr><td class=\"v-{}\">{word}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            word.to_lowercase(),
            escape(&check.name),
            escape(of),
            escape(&check.message)
        );
    }
    html.push_str("</tbody></table></div>");
    if checks.len() > ROWS_MAX {
        let _ = write!(html, "<p class=\"dim\">{} more are in result.json.</p>", checks.len() - ROWS_MAX);
    }
    html
}

/// The section; empty when nothing was checked.
pub fn section(document: &Document) -> String {
    let (mut odd, passed): (Vec<_>, Vec<_>) =
        all(document).into_iter().partition(|(_, check)| check.verdict != Verdict::Pass);
    let rank = |verdict| match verdict {
        Verdict::Fail => 0,
        Verdict::Warn => 1,
        _ => 2,
    };
    odd.sort_by_key(|(_, check)| rank(check.verdict));
    let mut html = String::new();
    if !odd.is_empty() {
        html.push_str(&table(&odd));
    }
    if !passed.is_empty() {
        let open = if odd.is_empty() && passed.len() <= 12 { " open" } else { "" };
        let _ = write!(
            html,
            "<details class=\"data\"{open}><summary>{} passed</summary>{}</details>",
            passed.len(),
            table(&passed)
        );
    }
    html
}
