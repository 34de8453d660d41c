//! What `larder doctor` finds, with what mends it.

use larder_cli::{Checked, Finding, Weight};

use super::figure::escape;
use super::panel::Panel;
use super::table::table;
use super::view::View;

/// Returns the panel of findings.
pub(super) fn doctor(view: &View<'_>) -> Option<Panel> {
    Some(panel(view.checked))
}

fn panel(checked: &[Checked]) -> Panel {
    let found = checked.iter().filter_map(|one| one.finding.as_ref());
    let mut body: String = found.map(shown).collect();
    if body.is_empty() {
        body = format!("<p class=\"quiet\">Nothing found, in {} checks.</p>", checked.len());
    }
    let row = |one: &Checked| {
        let text = one.finding.as_ref().map_or("nothing found".to_string(), |found| escape(&found.finding));
        (one.check.to_string(), vec![text])
    };
    let rows: Vec<_> = checked.iter().map(row).collect();
    Panel {
        id: "doctor",
        title: "Findings",
        note: "of larder doctor",
        body,
        tables: table("Checks of the server and its host", "Check", &["Found"], &rows),
    }
}

fn shown(found: &Finding) -> String {
    let class = if found.weight == Weight::Error { "notice bad" } else { "notice" };
    format!(
        "<div class=\"{class}\"><p><b>{}</b></p><p>Why: {}.</p><p>Do: {}.</p></div>",
        sentence(&found.finding),
        escape(&found.why),
        escape(&found.fix)
    )
}

/// Returns a text as HTML, its first letter a capital and a full stop behind it.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", escape(letters.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_shown_with_what_mends_them_and_escaped() {
        let finding = Finding {
            weight: Weight::Error,
            finding: "a <b>".to_string(),
            why: "it & that".into(),
            fix: "give \"-c 9\"".to_string(),
        };
        let both = [
            Checked { check: "one".into(), finding: Some(finding) },
            Checked { check: "two".into(), finding: None },
        ];
        let shown = panel(&both);
        assert!(shown.body.contains("<b>A &lt;b&gt;.</b>") && shown.body.contains("notice bad"));
        assert!(shown.body.contains("Why: it &amp; that.") && shown.body.contains("-c 9"));
        assert!(shown.tables.contains("two</th><td>nothing found</td>"));
        assert!(panel(&both[1..]).body.contains("Nothing found, in 1 checks"));
    }
}
