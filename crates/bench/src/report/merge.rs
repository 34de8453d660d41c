//! Several documents as one, for one page.

use super::text::shell;
use crate::result::{Document, SCHEMA};

/// Puts documents together, each with the name it is told by (a file's, a scenario's), in their order. Labels
/// that two of them use get the name in front; where environments differ, both are kept; the commands become
/// notes.
pub fn merge(documents: Vec<(String, Document)>) -> Document {
    let mut merged = Document { schema: SCHEMA, ..Document::default() };
    let several = documents.len() > 1;
    for (name, mut document) in documents {
        let label_is_taken = |label: &String| merged.runs.iter().any(|run| run.label == *label);
        if document.runs.iter().any(|run| label_is_taken(&run.label)) {
            document.runs.iter_mut().for_each(|run| run.label = format!("{name}: {}", run.label));
            let points = document.curves.iter_mut().flat_map(|curve| &mut curve.points);
            points.for_each(|point| point.run = format!("{name}: {}", point.run));
        }
        for curve in &mut document.curves {
            if merged.curves.iter().any(|other| other.label == curve.label) {
                curve.label = format!("{name}: {}", curve.label);
            }
        }
        if merged.title.is_empty() {
            merged.title = document.title;
        } else if !document.title.is_empty() && document.title != merged.title {
            merged.title = format!("{}; {}", merged.title, document.title);
        }
        if merged.started_unix_ms == 0 || document.started_unix_ms < merged.started_unix_ms {
            merged.started_unix_ms = document.started_unix_ms;
        }
        for fact in document.environment.facts {
            if !merged.environment.facts.contains(&fact) {
                let differs = merged.environment.facts.iter().any(|known| known.0 == fact.0);
                let shown = if differs { format!("{} ({name})", fact.0) } else { fact.0 };
                merged.environment.facts.push((shown, fact.1));
            }
        }
        if several {
            let tell = |text: &str| format!("{name}: {text}");
            merged.notes.push(tell(&shell(&document.command)));
            merged.notes.extend(document.notes.iter().map(|note| tell(note)));
            document.checks.iter_mut().for_each(|check| check.message = tell(&check.message));
        } else {
            merged.command = document.command;
            merged.notes = document.notes;
        }
        merged.runs.append(&mut document.runs);
        merged.curves.append(&mut document.curves);
        merged.counters.append(&mut document.counters);
        merged.tables.append(&mut document.tables);
        merged.checks.append(&mut document.checks);
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Environment, Run};

    fn document(label: &str, kernel: &str) -> Document {
        Document {
            title: "t".to_string(),
            command: vec!["run".to_string(), label.to_string()],
            started_unix_ms: 5,
            runs: vec![Run { label: label.to_string(), ..Run::default() }],
            environment: Environment { facts: vec![("kernel".to_string(), kernel.to_string())] },
            ..Document::default()
        }
    }

    #[test]
    fn labels_stay_unique_and_facts_that_differ_are_told_apart() {
        let merged =
            merge(vec![("a".to_string(), document("x", "1")), ("b".to_string(), document("x", "2"))]);
        let labels: Vec<&str> = merged.runs.iter().map(|run| run.label.as_str()).collect();
        assert_eq!(labels, ["x", "b: x"]);
        assert_eq!(merged.environment.facts[1].0, "kernel (b)");
        assert_eq!(merged.notes, ["a: run x", "b: run x"]);
        assert_eq!(merged.title, "t");
    }

    #[test]
    fn one_document_stays_as_it_is() {
        let merged = merge(vec![("a".to_string(), document("x", "1"))]);
        assert_eq!((merged.command.len(), merged.notes.len()), (2, 0));
    }
}
