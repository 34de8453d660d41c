//! The document without its histograms and seconds, to be carried inside the page.

use crate::result::Document;
use serde_json::{Value, json};

/// Labels, rates, quantiles, verdicts: JSON that cannot end the element it stands in.
pub fn reduced(document: &Document) -> String {
    let runs: Vec<Value> = document
        .runs
        .iter()
        .map(|run| {
            let response = run.response();
            json!({
                "label": run.label,
                "server": run.server,
                "protocol": run.protocol,
                "tls": run.tls,
                "load": run.load,
                "seconds": run.seconds,
                "count": run.count(),
                "rate": run.rate(),
                "mean_ns": response.mean_ns(),
                "p50_ns": response.quantile_ns(0.5),
                "p99_ns": response.quantile_ns(0.99),
                "p999_ns": response.quantile_ns(0.999),
                "max_ns": response.max_ns(),
                "certified": run.is_certified(),
            })
        })
        .collect();
    let curves: Vec<Value> = document
        .curves
        .iter()
        .map(|curve| {
            json!({
                "label": curve.label,
                "slo": curve.slo,
                "slo_capacity": curve.slo_capacity,
                "knee": curve.knee,
                "max_rate": curve.max_rate,
            })
        })
        .collect();
    let counters: Vec<Value> = document
        .counters
        .iter()
        .map(|c| json!({"store": c.store, "threads": c.threads, "rate": c.rate, "check": c.check}))
        .collect();
    let whole = json!({
        "schema": document.schema,
        "title": document.title,
        "command": document.command,
        "started_unix_ms": document.started_unix_ms,
        "runs": runs,
        "curves": curves,
        "counters": counters,
    });
    // In a script element only the end tag and comments are special; both begin with this sign.
    whole.to_string().replace('<', "\\u003c")
}
