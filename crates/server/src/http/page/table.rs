//! Tables and lists of figures.

use std::fmt::Write as _;

use super::figure::escape;

/// A row: its name, and its cells as HTML.
pub(super) type Row = (String, Vec<String>);

/// Returns a table. `first` is the head of the rows' names, `heads` are those of the cells.
pub(super) fn table(caption: &str, first: &str, heads: &[&str], rows: &[Row]) -> String {
    let mut html = format!(
        "<table><caption>{}</caption><thead><tr><th scope=\"col\">{}</th>",
        escape(caption),
        escape(first)
    );
    for head in heads {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(head));
    }
    html.push_str("</tr></thead><tbody>");
    for (name, cells) in rows {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(name));
        for cell in cells {
            let _ = write!(html, "<td>{cell}</td>");
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table>");
    html
}

/// Returns a list of names and figures. `class` is the colour of the name's mark, or empty; figures are HTML.
pub(super) fn facts(rows: &[(&str, &str, String)]) -> String {
    let mut html = String::from("<dl class=\"facts\">");
    for (class, name, figure) in rows {
        let (name, class) = (escape(name), if class.is_empty() { String::new() } else { mark(class) });
        let _ = write!(html, "<div{class}><dt>{name}</dt><dd>{figure}</dd></div>");
    }
    html.push_str("</dl>");
    html
}

fn mark(class: &str) -> String {
    format!(" class=\"{class} area\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_cells_are_html() {
        let rows = [("<a>".to_string(), vec!["<b>1</b>".to_string()])];
        let shown = table("A & B", "Name", &["<c>"], &rows);
        assert!(shown.contains("<caption>A &amp; B</caption>") && shown.contains("&lt;c&gt;"));
        assert!(shown.contains("<th scope=\"row\">&lt;a&gt;</th><td><b>1</b></td>"));
        let shown = facts(&[("ram", "<a>", "<b>1</b>".to_string()), ("", "c", String::new())]);
        assert!(
            shown
                .contains("<div class=\"ram area\"><dt>&lt;a&gt;</dt><dd><b>1</b></dd></div><div><dt>c</dt>")
        );
    }
}
