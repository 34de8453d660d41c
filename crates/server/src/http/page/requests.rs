//! Requests by their outcome, the hit ratio by tier, and times.

use super::chart::{Chart, Scale, Series};
use super::figure::{count, data, micros, per_second, percent};
use super::panel::Panel;
use super::table::table;
use super::view::View;
use crate::histogram::Times;
use crate::http::history::{Point, others};

const SSD_HITS: &str = "SSD hits";

/// Returns the panel of gets by their outcome, and stores.
pub(super) fn requests(view: &View<'_>) -> Option<Panel> {
    let series = |name, class, of: fn(&Point) -> f32| Series { name, class, values: view.history.series(of) };
    let mut all = vec![series("RAM hits", "ram", |point| point.hits_ram)];
    if view.has_ssd() {
        all.push(series(SSD_HITS, "ssd", |point| point.hits_ssd));
    }
    all.push(series("Misses", "miss", |point| point.misses));
    all.push(series("Stores", "store", |point| point.stores));
    let about = "Requests per second by their outcome";
    let chart = Chart { about, scale: Scale::Stacked, base: 1000.0, show: per_second, series: all };
    let totals = &view.totals;
    let rows = [
        ("RAM hits", "get_hits_ram", totals.get_hits_ram),
        (SSD_HITS, "get_hits_ssd", totals.get_hits_ssd),
        ("Misses", "get_misses", totals.get_misses),
        ("Stores", "cmd_set", totals.cmd_set),
        ("Deletes, touches, incr, decr", "others", others(totals)),
    ];
    let rows = rows.map(|(name, id, total)| (name.to_string(), vec![named(id, &count(total))]));
    let rows = view.of_tiers(rows);
    Some(Panel {
        id: "requests",
        title: "Requests",
        note: "by outcome",
        body: chart.html(),
        tables: chart.table() + &table("Requests since the start", "Outcome", &["Requests"], &rows),
    })
}

/// Returns a figure that tools find by the name that `stats` has for it.
pub(super) fn named(name: &str, figure: &str) -> String {
    format!("<span id=\"stat-{name}\">{figure}</span>")
}

/// Returns the panel of the share of gets that each tier answers.
pub(super) fn hit_ratio(view: &View<'_>) -> Option<Panel> {
    let share = |of: fn(&Point) -> f32| {
        move |point: &Point| of(point) / (point.hits_ram + point.hits_ssd + point.misses)
    };
    let values = |of| view.history.series(share(of));
    let mut series = vec![Series { name: "RAM", class: "ram", values: values(|point| point.hits_ram) }];
    if view.has_ssd() {
        series.push(Series { name: "SSD", class: "ssd", values: values(|point| point.hits_ssd) });
    }
    let about = "Share of gets found, by tier";
    let chart = Chart { about, scale: Scale::Shares, base: 1000.0, show: percent, series };
    let [ram, ssd, misses] = [view.totals.get_hits_ram, view.totals.get_hits_ssd, view.totals.get_misses]
        .map(|count| count as f64);
    let share = |count: f64| data(count / (ram + ssd + misses), &percent(count / (ram + ssd + misses)));
    let rows = [("RAM", ram), ("SSD", ssd), ("Missed", misses)]
        .map(|(name, count)| (name.to_string(), vec![share(count)]));
    let rows = view.of_tiers(rows);
    Some(Panel {
        id: "ratio",
        title: "Hit ratio",
        note: "by tier",
        body: chart.html(),
        tables: chart.table() + &table("Gets since the start", "Found in", &["Share"], &rows),
    })
}

/// Returns the panel of the times of requests.
pub(super) fn latency(view: &View<'_>) -> Option<Panel> {
    let series = |name, class, of: fn(&Point) -> f32| Series { name, class, values: view.history.series(of) };
    let mut all = vec![series("RAM hits", "ram", |point| point.ram_p99_us)];
    if view.has_ssd() {
        all.push(series(SSD_HITS, "ssd", |point| point.ssd_p99_us));
    }
    all.push(series("Stores", "store", |point| point.store_p99_us));
    let about = "Time that 99 of 100 requests take at most";
    let chart = Chart { about, scale: Scale::Log, base: 1000.0, show: micros, series: all };
    let times = &view.times;
    let all = [
        ("RAM hits", &times.ram_hits),
        (SSD_HITS, &times.ssd_hits),
        ("Stores", &times.stores),
        ("Changes on the SSD", &times.ssd_changes),
        ("Rounds of event loops", &times.loops),
    ];
    let row = |(name, times): (&str, &Times)| (name.to_string(), quantiles(times));
    let rows = view.of_tiers(all.map(row));
    Some(Panel {
        id: "latency",
        title: "Latency",
        note: "p99, inside the daemon",
        body: chart.html(),
        tables: chart.table() + &table("Times since the start", "Class", &QUANTILE_HEADS, &rows),
    })
}

/// The heads of [`quantiles`].
pub(super) const QUANTILE_HEADS: [&str; 4] = ["Number", "p50", "p99", "p99.9"];

/// Returns how many times there are, and their quantiles.
pub(super) fn quantiles(times: &Times) -> Vec<String> {
    let mut cells = vec![count(times.count())];
    for share in [0.5, 0.99, 0.999] {
        let us = if times.count() == 0 { f64::NAN } else { times.quantile(share).as_micros() as f64 };
        cells.push(data(us, &micros(us)));
    }
    cells
}
