//! The runs of a document: which of them are drawn one by one, and a table of all.

use super::tables;
use super::text::{count, latency, percent};
use crate::result::{Document, Run, Verdict};

/// At most `most` runs that are worth a figure of their own, in the document's order: those that failed,
/// those beside a capacity or a knee, the fastest, and then evenly from the rest.
pub fn featured(document: &Document, most: usize) -> Vec<&Run> {
    let runs: Vec<&Run> = document.runs.iter().filter(|run| run.count() > 0).collect();
    if runs.len() <= most {
        return runs;
    }
    let mut ranked: Vec<usize> = Vec::new();
    let position = |name: &str| runs.iter().position(|run| run.label == name);
    for curve in &document.curves {
        for rate in [curve.slo_capacity, curve.knee, curve.max_rate].into_iter().flatten().map(|e| e.estimate)
        {
            let near =
                curve.points.iter().min_by(|a, b| (a.rate - rate).abs().total_cmp(&(b.rate - rate).abs()));
            ranked.extend(near.and_then(|point| position(&point.run)));
        }
    }
    ranked.extend((0..runs.len()).filter(|at| !runs[*at].is_certified()).take(most / 3));
    ranked.extend((0..runs.len()).max_by(|a, b| runs[*a].rate().total_cmp(&runs[*b].rate())));
    ranked.extend((0..most).map(|at| at * (runs.len() - 1) / most.max(2)));
    let mut chosen: Vec<usize> = Vec::new();
    for at in ranked {
        if chosen.len() < most && !chosen.contains(&at) {
            chosen.push(at);
        }
    }
    chosen.sort_unstable();
    chosen.into_iter().map(|at| runs[at]).collect()
}

/// Keys found as a share of keys asked for; none when none were asked for.
pub fn hit_ratio(run: &Run) -> Option<f64> {
    let hits: u64 = run.verbs.iter().map(|verb| verb.hits).sum();
    let asked = hits + run.verbs.iter().map(|verb| verb.misses).sum::<u64>();
    (asked > 0).then(|| hits as f64 / asked as f64)
}

/// How requests were offered, in a few words.
pub fn load(run: &Run) -> String {
    let load = &run.load;
    let offered = match load.rate {
        Some(rate) => format!("{}/s {}", count(rate), load.arrival),
        None if load.pipeline > 1 => format!("closed, depth {}", load.pipeline),
        None => "closed".to_string(),
    };
    format!("{offered}, {} conns", load.connections)
}

/// Errors of all verbs.
pub fn errors(run: &Run) -> u64 {
    run.verbs.iter().map(|verb| verb.errors).sum()
}

/// One word for whether a run's figures may be quoted.
pub fn verdict(run: &Run) -> &'static str {
    let warned = run.checks.iter().any(|check| check.verdict == Verdict::Warn);
    match (run.cut_short.is_some(), run.is_certified(), warned) {
        (true, ..) => "cut short",
        (_, false, _) => "not certified",
        (_, _, true) => "certified, see checks",
        _ => "certified",
    }
}

/// Column names of [`rows`].
pub const COLUMNS: [&str; 13] = [
    "run", "load", "rate/s", "mean", "p50", "p90", "p99", "p99.9", "max", "hits", "errors", "cpu/op",
    "verdict",
];

/// A row a run, with latencies from the intended time.
pub fn rows(runs: &[Run]) -> Vec<Vec<String>> {
    let row = |run: &Run| {
        let response = run.response();
        let at = |quantile| latency(response.quantile_ns(quantile) as f64);
        vec![
            run.label.clone(),
            load(run),
            count(run.rate()),
            latency(response.mean_ns()),
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.999),
            latency(response.max_ns() as f64),
            hit_ratio(run).map_or("-".to_string(), percent),
            errors(run).to_string(),
            run.server_cpu_us().map_or("-".to_string(), |us| latency(us * 1000.0)),
            verdict(run).to_string(),
        ]
    };
    runs.iter().map(row).collect()
}

/// The table of all runs, and of their verbs when there are several.
pub fn section(document: &Document) -> String {
    if document.runs.is_empty() {
        return String::new();
    }
    let mut html = tables::table(&COLUMNS, &rows(&document.runs));
    let mut verbs = Vec::new();
    for run in document.runs.iter().filter(|run| run.verbs.len() > 1) {
        for verb in &run.verbs {
            let at = |quantile| latency(verb.response.quantile_ns(quantile) as f64);
            let late = latency(verb.service.quantile_ns(0.99) as f64);
            verbs.push(vec![
                run.label.clone(),
                verb.name.clone(),
                verb.count.to_string(),
                at(0.5),
                at(0.99),
                late,
                verb.hits.to_string(),
                verb.misses.to_string(),
                verb.errors.to_string(),
            ]);
        }
    }
    if !verbs.is_empty() {
        let columns =
            ["run", "verb", "answered", "p50", "p99", "p99 from the send", "hits", "misses", "errors"];
        html.push_str("<details class=\"data\"><summary>By verb</summary>");
        html.push_str(&tables::table(&columns, &verbs));
        html.push_str("</details>");
    }
    let mut hosts = Vec::new();
    for run in &document.runs {
        for host in &run.hosts {
            hosts.push(vec![
                run.label.clone(),
                host.name.clone(),
                count(host.rate),
                latency(host.response.quantile_ns(0.99) as f64),
                format!("{:.0} \u{b5}s", host.start_skew_us),
                format!("{:.0} \u{b5}s", host.clock_error_us),
                percent(host.overlap),
            ]);
        }
    }
    if !hosts.is_empty() {
        html.push_str("<h3>Generating hosts</h3>");
        html.push_str(&tables::table(
            &["run", "host", "rate/s", "p99", "start skew", "clock error", "overlap"],
            &hosts,
        ));
    }
    html
}
