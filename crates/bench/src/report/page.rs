//! The page as a whole: its order, its style, and its size.

use super::text::{escape, moment, shell};
use super::{
    PAGE_BYTES_MAX, answer, bars, checks, counters, curves, percentiles, reduced, runs, tables, timeline,
    verdict,
};
use crate::result::Document;
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The document as one HTML file that needs nothing else: no network, no script. When it would be larger than
/// [`PAGE_BYTES_MAX`], fewer runs are drawn one by one; the page notes it.
pub fn html(document: &Document) -> String {
    let mut page = String::new();
    for featured in [8, 4, 2, 0] {
        page = render(document, featured);
        if page.len() <= PAGE_BYTES_MAX {
            break;
        }
    }
    page
}

fn render(document: &Document, featured: usize) -> String {
    let title = escape(&document.title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"generator\" \
          content=\"larder-bench\">\
         <title>{title}</title><style>{STYLE}</style></head><body><main>\
         <header><p class=\"dim\">larder-bench &#183; {}</p><h1>{title}</h1></header>",
        moment(document.started_unix_ms)
    );
    page.push_str(&verdict::section(document, &answer::sentences(document)));
    let chosen = runs::featured(document, featured);
    // The first of these that there is stands on the first screen: the picture that goes with the answer.
    section(&mut page, "Latency against throughput", &curves::section(document));
    section(&mut page, "Counters", &counters::section(&document.counters));
    if document.curves.is_empty() {
        section(&mut page, "Answered requests a second", &bars::section(&chosen));
    }
    section(&mut page, "Latency by percentile", &percentiles::section(&chosen));
    let mut timelines: String = chosen.iter().map(|run| timeline::section(run)).collect();
    let drawable = document.runs.iter().filter(|run| run.count() > 0).count();
    if chosen.len() < drawable {
        let _ = write!(
            timelines,
            "<p class=\"dim\">{} of {drawable} runs are drawn over time; the seconds of all are in \
             timeseries.csv.</p>",
            chosen.len()
        );
    }
    section(&mut page, "Over time", &timelines);
    section(&mut page, "Checks", &checks::section(document));
    section(&mut page, "Runs", &runs::section(document));
    section(&mut page, "Tables", &tables::section(&document.tables));
    section(&mut page, "Deviations and what was skipped", &notes(document));
    section(&mut page, "Environment", &environment(document));
    section(&mut page, "Repeat it", &command(document));
    let _ = writeln!(
        page,
        "</main><script type=\"application/json\" \
         id=\"result\">{}</script><script>{SCRIPT}</script></body></html>",
        reduced::reduced(document)
    );
    page
}

fn section(page: &mut String, title: &str, content: &str) {
    if !content.is_empty() {
        let _ = write!(page, "<section><h2>{}</h2>{content}</section>", escape(title));
    }
}

fn notes(document: &Document) -> String {
    if document.notes.is_empty() {
        return String::new();
    }
    let items: String = document.notes.iter().map(|note| format!("<li>{}</li>", escape(note))).collect();
    format!("<ul>{items}</ul>")
}

fn environment(document: &Document) -> String {
    if document.environment.facts.is_empty() {
        return String::new();
    }
    let facts = document.environment.facts.iter();
    let rows: String =
        facts.map(|(name, value)| format!("<dt>{}</dt><dd>{}</dd>", escape(name), escape(value))).collect();
    format!("<dl class=\"facts\">{rows}</dl>")
}

fn command(document: &Document) -> String {
    if document.command.is_empty() {
        return String::new();
    }
    format!(
        "<pre id=\"command\"><code>{}</code></pre><p class=\"dim\">Beside this page: result.json (all of \
         it), \
         timeseries.csv (a row a second), latency.hlog (HdrHistogram interval log), report.md.</p>",
        escape(&shell(&document.command))
    )
}
