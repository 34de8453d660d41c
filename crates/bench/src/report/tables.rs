//! Tables of HTML: those of a document, and the data under a figure.

use super::text::escape;
use crate::result::Table;
use std::fmt::Write as _;

/// More rows than this are left to `result.json`.
const ROWS_MAX: usize = 400;

/// A table; cells that look like figures stand to the right, and those with the mark of what is not certified are grey.
/// Cells are escaped.
pub fn table<C: AsRef<str>, D: AsRef<str>>(columns: &[C], rows: &[Vec<D>]) -> String {
    let mut html = String::from("<div class=\"wide\"><table><thead><tr>");
    let is_figure: Vec<bool> = (0..columns.len())
        .map(|column| {
            let cells =
                rows.iter().filter_map(|row| row.get(column)).filter(|cell| !cell.as_ref().is_empty());
            cells.clone().count() > 0 && cells.clone().all(|cell| looks_like_figure(cell.as_ref()))
        })
        .collect();
    for (column, name) in columns.iter().enumerate() {
        let class = if is_figure[column] { " class=\"n\"" } else { "" };
        let _ = write!(html, "<th{class}>{}</th>", escape(name.as_ref()));
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows.iter().take(ROWS_MAX) {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let is_doubtful = cell.as_ref().ends_with(" !");
            let class = match (is_figure.get(column) == Some(&true), is_doubtful) {
                (true, true) => " class=\"n doubt\"",
                (true, false) => " class=\"n\"",
                (false, true) => " class=\"doubt\"",
                (false, false) => "",
            };
            let _ = write!(html, "<td{class}>{}</td>", escape(cell.as_ref()));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    if rows.len() > ROWS_MAX {
        let _ = write!(html, "<p class=\"dim\">{} more rows are in result.json.</p>", rows.len() - ROWS_MAX);
    }
    html
}

fn looks_like_figure(cell: &str) -> bool {
    let cell = cell.trim();
    cell == "-" || cell.starts_with(|c: char| c.is_ascii_digit() || "+-~<>[".contains(c)) && cell.len() < 24
}

/// The data under a figure, folded.
pub fn data<C: AsRef<str>, D: AsRef<str>>(columns: &[C], rows: &[Vec<D>]) -> String {
    format!("<details class=\"data\"><summary>Data</summary>{}</details>", table(columns, rows))
}

/// The document's own tables.
pub fn section(tables: &[Table]) -> String {
    let mut html = String::new();
    for one in tables {
        let _ = write!(html, "<h3>{}</h3>{}", escape(&one.title), table(&one.columns, &one.rows));
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_is_not_certified_is_grey() {
        let html = table(&["store", "1"], &[vec!["a", "12 !"], vec!["b", "13"]]);
        assert!(html.contains("<td class=\"n doubt\">12 !</td>"), "{html}");
        assert!(html.contains("<td class=\"n\">13</td>"), "{html}");
    }
}
