//! The head of the page: the main figures, and whether they may be quoted.

use super::runs;
use super::text::{count, escape, latency, percent, quantile};
use crate::result::{Check, Counter, Curve, Document, Estimate, Verdict};
use std::fmt::Write as _;

/// Reasons against quoting that the card names.
const REASONS_MAX: usize = 3;

/// Whether everything of the document may be quoted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Overall {
    /// Nothing failed.
    Certified,
    /// Some runs did.
    Partly(usize, usize),
    /// A check over the whole failed, or every run did.
    Not,
    /// There is nothing to certify.
    Empty,
}

/// The verdict on a document.
pub fn overall(document: &Document) -> Overall {
    let failed = |check: &Check| check.verdict == Verdict::Fail;
    let counters = document.counters.iter().filter(|counter| !counter.is_certified()).count();
    let runs = document.runs.iter().filter(|run| !run.is_certified()).count();
    let (bad, all) = (counters + runs, document.counters.len() + document.runs.len());
    match (bad, all) {
        _ if document.checks.iter().any(failed) => Overall::Not,
        (0, 0) if document.tables.is_empty() => Overall::Empty,
        (0, _) => Overall::Certified,
        (bad, all) if bad < all => Overall::Partly(bad, all),
        _ => Overall::Not,
    }
}

impl Overall {
    /// The headline and its class.
    pub fn words(self) -> (String, &'static str) {
        match self {
            Overall::Certified => ("Certified".to_string(), "good"),
            Overall::Partly(bad, all) => (format!("{bad} of {all} measurements not certified"), "warn"),
            Overall::Not => ("Not certified".to_string(), "bad"),
            Overall::Empty => ("Nothing was measured".to_string(), "warn"),
        }
    }
}

/// A rate with its interval: `61.2 K/s  [59.8 K, 62.9 K]`.
pub fn estimate(found: Estimate) -> (String, String) {
    (format!("{}/s", count(found.estimate)), format!("{} to {}", count(found.least), count(found.most)))
}

/// The name of a service level: `p99 < 1 ms`.
pub fn slo_name(curve: &Curve) -> String {
    curve.slo.map_or("SLO".to_string(), |slo| {
        format!("{} \u{2264} {}", quantile(slo.quantile), latency(slo.bound_ns as f64))
    })
}

/// A figure to know.
#[derive(Debug)]
pub struct Figure {
    /// What it is a figure of.
    pub name: String,
    /// The figure with its unit.
    pub figure: String,
    /// The small print: its interval, or other figures that belong to it.
    pub small: String,
    /// Whether it may be quoted; else it is not to be set large.
    pub is_certified: bool,
}

impl Figure {
    fn new(name: String, figure: String, small: String) -> Self {
        Self { name, figure, small, is_certified: true }
    }
}

/// The figures to know.
pub fn figures(document: &Document) -> Vec<Figure> {
    let mut figures = Vec::new();
    for curve in document.curves.iter().take(8) {
        if let Some(found) = curve.slo_capacity {
            let (figure, interval) = estimate(found);
            let name = format!("{}, {}", curve.label, slo_name(curve));
            figures.push(Figure::new(name, figure, format!("95 %: {interval}")));
        } else if curve.slo.is_some() {
            let small = "the sweep does not cross the service level".to_string();
            let name = format!("{}, {}", curve.label, slo_name(curve));
            figures.push(Figure::new(name, "not found".to_string(), small));
        }
        let knee = curve.knee.map(|knee| format!("knee at {}/s", count(knee.estimate)));
        if let Some(most) = curve.max_rate {
            let (figure, interval) = estimate(most);
            let small = [Some(format!("95 %: {interval}")), knee].into_iter().flatten().collect::<Vec<_>>();
            figures.push(Figure::new(format!("{}, highest rate", curve.label), figure, small.join("; ")));
        }
    }
    if document.curves.is_empty() {
        for run in document.runs.iter().filter(|run| run.count() > 0).take(8) {
            let response = run.response();
            let at = |quantile| latency(response.quantile_ns(quantile) as f64);
            let hits = runs::hit_ratio(run).map(|ratio| format!(", hits {}", percent(ratio)));
            let small =
                format!("p50 {}, p99 {}, p99.9 {}{}", at(0.5), at(0.99), at(0.999), hits.unwrap_or_default());
            let figure = Figure::new(run.label.clone(), format!("{}/s", count(run.rate())), small);
            figures.push(Figure { is_certified: run.is_certified(), ..figure });
        }
    }
    for store in super::counters::stores(&document.counters).into_iter().take(10) {
        let of_store = document.counters.iter().filter(|counter| counter.store == store);
        let best = of_store.clone().max_by(|a, b| a.rate.total_cmp(&b.rate));
        let Some(best) = best.filter(|best| best.rate > 0.0) else { continue };
        let is_wrong = |counter: &Counter| counter.check.verdict == Verdict::Fail;
        let proof =
            if of_store.clone().any(is_wrong) { "history NOT linearizable" } else { "history linearizable" };
        let small = format!("{proof}; best at {}", crate::show::threads(best.threads));
        let figure = Figure::new(format!("{store}, increments"), format!("{}/s", count(best.rate)), small);
        figures.push(Figure { is_certified: of_store.clone().all(Counter::is_certified), ..figure });
    }
    figures
}

/// The card: whether the document may be quoted, the sentences that answer what was asked, and the first reasons
/// against quoting it.
pub fn section(document: &Document, answer: &[String]) -> String {
    let (words, class) = overall(document).words();
    let mut html = format!("<div class=\"card {class}\"><p class=\"verdict\">{}</p>", escape(&words));
    for sentence in answer {
        let _ = write!(html, "<p class=\"answer\">{}.</p>", escape(sentence));
    }
    html.push_str(&reasons(document, class));
    html.push_str("</div>");
    html
}

/// The first reasons against quoting, one for each check that failed; folded where there is something to quote.
fn reasons(document: &Document, class: &str) -> String {
    let all = document
        .checks
        .iter()
        .chain(document.runs.iter().flat_map(|run| &run.checks))
        .filter(|check| check.verdict == Verdict::Fail)
        .chain(document.counters.iter().flat_map(Counter::failed));
    let mut failed: Vec<(&Check, usize)> = Vec::new();
    for check in all {
        match failed.iter_mut().find(|(first, _)| first.name == check.name) {
            Some((_, times)) => *times += 1,
            None => failed.push((check, 1)),
        }
    }
    if failed.is_empty() {
        return String::new();
    }
    let open = if class == "bad" { " open" } else { "" };
    let mut html = format!("<details class=\"why\"{open}><summary>What failed</summary><ul>");
    for (check, times) in failed.iter().take(REASONS_MAX) {
        let times = if *times > 1 { format!(", {times} times, such as:") } else { String::new() };
        let _ = write!(html, "<li><b>{}</b>{times} {}</li>", escape(&check.name), escape(&check.message));
    }
    if failed.len() > REASONS_MAX {
        let _ =
            write!(html, "<li class=\"dim\">{} other checks; see Checks</li>", failed.len() - REASONS_MAX);
    }
    html + "</ul></details>"
}
