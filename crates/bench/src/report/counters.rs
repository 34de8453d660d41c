//! The counter shoot-out: increments a second against threads, a line a store, and the proof with it.

use super::plot::{Axis, Plot, colour};
use super::tables;
use super::text::{count, escape, latency};
use crate::result::{Counter, Verdict};
use std::fmt::Write as _;

/// The stores in the order they first appear.
pub fn stores(counters: &[Counter]) -> Vec<String> {
    let mut stores: Vec<String> = Vec::new();
    for counter in counters {
        if !stores.contains(&counter.store) {
            stores.push(counter.store.clone());
        }
    }
    stores
}

/// The figure with its tables; empty without counters.
pub fn section(counters: &[Counter]) -> String {
    if counters.is_empty() {
        return String::new();
    }
    let stores = stores(counters);
    let measured: Vec<&Counter> = counters.iter().filter(|counter| counter.rate > 0.0).collect();
    let mut html = String::from("<figure>");
    if !measured.is_empty() {
        html.push_str(&figure(&stores, &measured));
    }
    let mut threads: Vec<u32> = counters.iter().map(|counter| counter.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    let mut columns = vec!["increments/s by threads".to_string()];
    columns.extend(threads.iter().map(u32::to_string));
    // The mark makes a cell grey, see `tables`.
    let cell = |store: &String, threads: u32| {
        let found = measured.iter().find(|counter| counter.store == *store && counter.threads == threads);
        let mark = |counter: &Counter| if counter.is_certified() { "" } else { " !" };
        found.map_or("-".to_string(), |counter| format!("{}{}", count(counter.rate), mark(counter)))
    };
    let row = |store: &String| {
        let mut row = vec![store.clone()];
        row.extend(threads.iter().map(|threads| cell(store, *threads)));
        row
    };
    html.push_str(&tables::table(&columns, &stores.iter().map(row).collect::<Vec<_>>()));
    html.push_str(&proofs(counters));
    html.push_str("</figure>");
    for store in &stores {
        if let Some(counter) = counters.iter().find(|counter| counter.store == *store) {
            let _ = write!(
                html,
                "<details class=\"data\"><summary>{} {}: one \
                 increment</summary><pre><code>{}</code></pre></details>",
                escape(store),
                escape(&counter.version),
                escape(&counter.statement)
            );
        }
    }
    html
}

fn figure(stores: &[String], measured: &[&Counter]) -> String {
    let rates = || measured.iter().map(|counter| counter.rate);
    let (low, high) = rates().fold((f64::MAX, 1.0f64), |(low, high), rate| (rate.min(low), rate.max(high)));
    let most = measured.iter().map(|counter| counter.threads).max().unwrap_or(1).max(2);
    let ticks = (1..=most).filter(|n| most <= 12 || n.is_power_of_two());
    // Some room to the right, where the names of the lines end.
    let ticks = ticks.map(|n| (f64::from(n), n.to_string())).collect();
    let x = Axis { low: 1.0, high: f64::from(most), log: false, ticks };
    // Stores that differ by more than thirty cannot share a straight axis.
    let y = match high / low > 30.0 {
        true => Axis::log(low * 0.7, high * 1.5, count),
        false => Axis::linear(high * 1.1, 5, count),
    };
    let mut plot = Plot::new(x, y, 340.0);
    for (at, store) in stores.iter().enumerate() {
        let mut line: Vec<&&Counter> = measured.iter().filter(|counter| counter.store == *store).collect();
        line.sort_by_key(|counter| counter.threads);
        let points: Vec<(f64, f64)> = line.iter().map(|c| (f64::from(c.threads), c.rate)).collect();
        plot.line(&points, &format!("line {}", colour(at)));
        for counter in &line {
            let title = format!(
                "{store}, {}: {}/s, p99 {}",
                crate::show::threads(counter.threads),
                count(counter.rate),
                latency(counter.latency.quantile_ns(0.99) as f64)
            );
            let class =
                if !counter.is_certified() { "ring off".to_string() } else { format!("dot {}", colour(at)) };
            plot.dot(f64::from(counter.threads), counter.rate, 3.5, &class, &title);
        }
        if let Some(last) = points.last() {
            plot.label(last.0, last.1, &format!("name {}", colour(at)), store);
        }
    }
    let figure =
        plot.svg("increments a second against threads, one line a store", "threads", "increments a second");
    format!(
        "{figure}<p class=\"key\">Grey ring and !: not certified, since the history of answers is not \
         linearizable, or another check failed.</p>"
    )
}

fn proofs(counters: &[Counter]) -> String {
    let rows: Vec<Vec<String>> = counters
        .iter()
        .map(|counter| {
            let at = |quantile| latency(counter.latency.quantile_ns(quantile) as f64);
            vec![
                counter.store.clone(),
                counter.threads.to_string(),
                counter.count.to_string(),
                format!("{:.1}", counter.rate),
                at(0.5),
                at(0.99),
                counter.errors.to_string(),
                super::checks::word(counter.check.verdict).to_string(),
                counter.check.message.clone(),
                counter
                    .checks
                    .iter()
                    .filter(|check| check.verdict == Verdict::Fail)
                    .map(|check| format!("{}: {}", check.name, check.message))
                    .collect::<Vec<_>>()
                    .join("; "),
            ]
        })
        .collect();
    let columns = [
        "store",
        "threads",
        "answered",
        "rate/s",
        "p50",
        "p99",
        "errors",
        "linearizable",
        "what the history says",
        "why the rate is not certified",
    ];
    tables::data(&columns, &rows)
}
