//! What was asked, answered in one or two sentences. Only figures that may be quoted take part.

use super::counters::stores;
use super::text::{count, latency, quantile};
use super::verdict::{estimate, slo_name};
use crate::result::{Counter, Curve, Document, Run, Verdict};

/// Servers that are named in one sentence.
const NAMED_MAX: usize = 3;

/// The sentences; empty for a document of tables alone.
pub fn sentences(document: &Document) -> Vec<String> {
    let mut all = Vec::new();
    if !document.curves.is_empty() {
        all.push(curves(&document.curves));
    }
    if !document.counters.is_empty() {
        all.push(counters(&document.counters));
    }
    let runs: Vec<&Run> = document.runs.iter().filter(|run| run.count() > 0).collect();
    if all.is_empty() && !runs.is_empty() {
        all.push(self::runs(&runs));
    }
    all
}

/// Names the most of a list, and counts the others.
fn joined(mut parts: Vec<String>) -> String {
    if parts.len() > NAMED_MAX {
        let more = parts.len() - NAMED_MAX;
        parts.truncate(NAMED_MAX);
        parts.push(format!("{more} more are below"));
    }
    parts.join("; ")
}

fn curves(curves: &[Curve]) -> String {
    let mut curves: Vec<&Curve> = curves.iter().collect();
    let rank = |curve: &Curve| curve.slo_capacity.or(curve.max_rate).map_or(0.0, |found| found.estimate);
    curves.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
    joined(curves.into_iter().map(curve).collect())
}

fn curve(curve: &Curve) -> String {
    let label = &curve.label;
    let certified = || curve.points.iter().filter(|point| point.certified);
    let highest = certified().max_by(|a, b| a.rate.total_cmp(&b.rate));
    if let (Some(_), Some(found)) = (curve.slo, curve.slo_capacity) {
        let (rate, interval) = estimate(found);
        return format!("{label} answers {rate} with {} (95 %: {interval})", slo_name(curve));
    }
    let Some(highest) = highest else { return format!("{label}: no point may be quoted") };
    match (curve.slo, curve.max_rate) {
        (Some(_), _) => format!(
            "{label}: the certified points do not cross {}; the fastest answered {}/s with p99 {}",
            slo_name(curve),
            count(highest.rate),
            latency(highest.p99_ns as f64)
        ),
        (None, Some(most)) => {
            let (rate, interval) = estimate(most);
            format!(
                "{label} answers at most {rate} (95 %: {interval}), with p99 {}",
                latency(highest.p99_ns as f64)
            )
        }
        (None, None) => {
            format!("{label} answered {}/s with p99 {}", count(highest.rate), latency(highest.p99_ns as f64))
        }
    }
}

fn counters(counters: &[Counter]) -> String {
    let is_wrong = |counter: &&Counter| counter.check.verdict == Verdict::Fail;
    let mut parts: Vec<(f64, String)> = Vec::new();
    let (mut wrong, mut doubtful) = (Vec::new(), Vec::new());
    for store in stores(counters) {
        let of_store = || counters.iter().filter(|counter| counter.store == store);
        if of_store().any(|counter| is_wrong(&counter)) {
            wrong.push(store);
        } else if let Some(best) = of_store()
            .filter(|counter| counter.is_certified() && counter.rate > 0.0)
            .max_by(|a, b| a.rate.total_cmp(&b.rate))
        {
            parts.push((
                best.rate,
                format!("{store} {} ({})", count(best.rate), crate::show::threads(best.threads)),
            ));
        } else {
            doubtful.push(store);
        }
    }
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let right = joined(parts.into_iter().map(|part| part.1).collect());
    let mut said = Vec::new();
    if !right.is_empty() {
        said.push(format!("Most increments a second: {right}"));
    }
    if !doubtful.is_empty() {
        said.push(format!("no rate may be quoted: {}", doubtful.join(", ")));
    }
    if !wrong.is_empty() {
        said.push(format!("counted wrong: {}", wrong.join(", ")));
    }
    said.join("; ")
}

fn runs(runs: &[&Run]) -> String {
    let certified = || runs.iter().filter(|run| run.is_certified());
    let Some(best) = certified().max_by(|a, b| a.rate().total_cmp(&b.rate())) else {
        return match runs.len() {
            1 => format!("{}: no figure may be quoted", runs[0].label),
            all => format!("None of {all} runs may be quoted"),
        };
    };
    let response = best.response();
    let at = |at: f64| format!("{} {}", quantile(at), latency(response.quantile_ns(at) as f64));
    let figures = format!("{}/s with {}, {} and {}", count(best.rate()), at(0.5), at(0.99), at(0.999));
    match (runs.len(), certified().count()) {
        (1, _) => format!("{} answered {figures}", best.label),
        (all, good) => {
            format!("{} answered most: {figures}. {good} of {all} runs may be quoted", best.label)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Check, Estimate, Point, Slo};

    fn curve_of(label: &str, capacity: Option<f64>) -> Curve {
        let slo = Some(Slo { quantile: 0.99, bound_ns: 1_000_000 });
        let found = |at: f64| Estimate { least: at * 0.9, estimate: at, most: at * 1.1 };
        let point = Point { rate: 30e3, p99_ns: 500_000, certified: true, ..Point::default() };
        Curve {
            label: label.to_string(),
            slo,
            slo_capacity: capacity.map(found),
            points: vec![point],
            ..Curve::default()
        }
    }

    #[test]
    fn the_best_server_comes_first() {
        let document = Document {
            curves: vec![curve_of("a", Some(20e3)), curve_of("b", Some(40e3))],
            ..Document::default()
        };
        let said = sentences(&document).join(" ");
        assert!(
            said.starts_with("b answers 40 K/s with p99 \u{2264} 1 ms (95 %: 36 K to 44 K); a answers"),
            "{said}"
        );
    }

    #[test]
    fn a_level_that_is_not_crossed_is_no_capacity() {
        let mut curve = curve_of("a", None);
        let said = |curve: &Curve| {
            sentences(&Document { curves: vec![curve.clone()], ..Document::default() }).join("")
        };
        assert!(said(&curve).contains("do not cross"), "{}", said(&curve));
        curve.points[0].certified = false;
        assert_eq!(said(&curve), "a: no point may be quoted");
    }

    #[test]
    fn a_wrong_counter_is_not_fast() {
        let counter = |store: &str, rate, verdict| Counter {
            store: store.to_string(),
            threads: 2,
            rate,
            check: Check { verdict, ..Check::default() },
            ..Counter::default()
        };
        let counters = vec![counter("liar", 9e6, Verdict::Fail), counter("b", 100.0, Verdict::Pass)];
        let said = sentences(&Document { counters, ..Document::default() }).join("");
        assert_eq!(said, "Most increments a second: b 100 (2 threads); counted wrong: liar");
    }

    #[test]
    fn a_counter_of_starved_threads_is_no_figure() {
        let counter = |threads, rate, verdict| Counter {
            store: "a".to_string(),
            threads,
            rate,
            checks: vec![Check { name: "generator".to_string(), verdict, ..Check::default() }],
            ..Counter::default()
        };
        let said = |counters: &[Counter]| {
            sentences(&Document { counters: counters.to_vec(), ..Document::default() }).join("")
        };
        let counters = [counter(1, 100.0, Verdict::Pass), counter(2, 900.0, Verdict::Fail)];
        assert_eq!(said(&counters), "Most increments a second: a 100 (1 thread)");
        assert_eq!(said(&counters[1..]), "no rate may be quoted: a");
    }
}
