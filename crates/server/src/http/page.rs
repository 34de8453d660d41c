//! The page for people at `/`: one document, drawn here as HTML and SVG. It needs no script; with one it is kept up to
//! date without being loaded again.
//!
//! ```text
//!   page.rs   the document, its head and its foot     page.css, page.js   compiled in, at paths of their own
//!      |
//!   panels: requests.rs, memory.rs, ssd.rs, dropped.rs, sizing.rs, prefixes.rs, doctor.rs
//!      |            |
//!   panel.rs     chart.rs, shapes.rs, table.rs --> figure.rs    view.rs   the figures that all are made of
//! ```
//!
//! Nothing of a request reaches it. All text but that of this code is escaped.

mod chart;
mod doctor;
mod dropped;
mod figure;
mod memory;
mod panel;
mod prefixes;
mod requests;
mod shapes;
mod sizing;
mod ssd;
mod table;
mod view;

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use larder_cli::Checked;
use larder_store::{Cold, Start};

use super::history::History;
use crate::config::{COMPATIBLE_VERSION, VERSION};
use crate::shared::Shared;
use figure::{bytes, count, data, escape, grouped, micros, per_second, percent, short, span};
use panel::Panel;
use requests::named;
use view::View;

/// The style sheet.
pub(super) const STYLE: &str = include_str!("page/page.css");
/// The script.
pub(super) const SCRIPT: &str = include_str!("page/page.js");

/// Every panel, in the order of the page.
const PANELS: [fn(&View<'_>) -> Option<Panel>; 14] = [
    requests::requests,
    requests::hit_ratio,
    requests::latency,
    memory::memory,
    ssd::segments,
    memory::connections,
    ssd::device,
    ssd::wear_of,
    dropped::dropped,
    sizing::memory_sizes,
    sizing::ssd_sizes,
    prefixes::prefixes,
    prefixes::costs,
    doctor::doctor,
];

/// The seconds after which a browser without script loads the page again, and while the daemon starts.
const RELOAD_SECONDS: u32 = 5;
/// Points that a headline is the mean of: a minute.
const MINUTE: usize = 30;
/// The time for which the page begins with how the daemon started.
const NEWS_SECONDS: u64 = 15 * 60;

/// Returns the page of a daemon that serves.
pub(super) fn page(shared: &Shared, history: &History, checked: &[Checked], shows_keys: bool) -> String {
    let view = View::new(shared, history, checked, shows_keys);
    let mut html = head("");
    let _ = write!(
        html,
        "<header><h1>Larder</h1><p id=\"state\" data-live>{}</p><p id=\"facts\" data-live>{}</p>\
         <p id=\"contact\" role=\"status\"></p>\
         <button id=\"pause\" type=\"button\" hidden>Pause</button></header>\n\
         <main><div id=\"notices\" data-live>{}</div>\n<h2 class=\"unseen\">At a glance</h2>\
         <dl class=\"tiles\" id=\"glance\" data-live>{}</dl>\n<div class=\"panels\">\n",
        state(&view),
        about(&view),
        notices(&view),
        tiles(&view),
    );
    for panel in PANELS.iter().filter_map(|panel| panel(&view)) {
        html.push_str(&panel.html());
    }
    html.push_str("</div></main>\n");
    html.push_str(&foot());
    html
}

/// Returns the page of a daemon that starts.
pub(super) fn starting() -> String {
    let again = format!("<meta http-equiv=\"refresh\" content=\"{RELOAD_SECONDS}\">");
    head(&again)
        + "<header><h1>Larder</h1><p id=\"state\"><b class=\"wait\">Starting</b></p></header>\n\
           <main><p class=\"notice\">The daemon opens its store. This page loads itself again.</p></main>\n\
           </body></html>\n"
}

/// Returns the document up to its first element. `more` is added to its head; without it, the script is.
fn head(more: &str) -> String {
    let script = format!(
        "<noscript><meta http-equiv=\"refresh\" content=\"{RELOAD_SECONDS}\"></noscript>\
         <script src=\"/page.js\" defer></script>"
    );
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Larder</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <link rel=\"icon\" href=\"{ICON}\"><link rel=\"stylesheet\" href=\"/page.css\">{}</head>\n<body>\n",
        if more.is_empty() { &script } else { more }
    )
}

/// Three shelves, the lowest one wide.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E\
    %3Cpath fill='%232c6fbb' d='M5 2h6v3H5z'/%3E\
    %3Cpath fill='%23b86e00' d='M3 6.5h10v3H3zM1 11h14v3H1z'/%3E%3C/svg%3E";

/// Returns whether the daemon serves, in a word.
fn state(view: &View<'_>) -> &'static str {
    match () {
        () if view.shared.stopping.load(Relaxed) => "<b class=\"wait\">Stopping</b>",
        () if view.has_ssd() && view.shared.store.ssd_is_off() => "<b class=\"bad\">Serving, SSD off</b>",
        () => "<b class=\"good\">Serving</b>",
    }
}

/// Returns what the daemon is, in a line.
fn about(view: &View<'_>) -> String {
    let shared = view.shared;
    let mut parts = vec![format!("up {}", span(shared.started.elapsed().as_secs()))];
    let port = shared.tcp_port.load(Relaxed);
    if port > 0 {
        parts.push(format!("port {port}"));
    }
    parts.push(format!("{} workers", shared.config.threads));
    if view.has_ssd() {
        parts.push(format!("I/O by {}", escape(shared.io)));
    }
    parts.iter().map(|part| format!("<span>{part}</span>")).collect()
}

/// Returns what an operator should know first: failures, and for a while how the daemon started.
fn notices(view: &View<'_>) -> String {
    let mut html = String::new();
    let mut add = |class: &str, text: &str| {
        let _ = write!(html, "<p class=\"notice {class}\">{}</p>", escape(text));
    };
    let store = &view.store;
    if view.has_ssd() && view.shared.store.ssd_is_off() {
        add(
            "bad",
            "Failures of the SSD have turned it off. Its items are misses; RAM serves alone until it works.",
        );
    }
    if store.shards_reset > 0 {
        let text = "parts of the hash space were damaged at the start, and emptied.";
        add("bad", &format!("{} of {} {text}", store.shards_reset, store.shards));
    }
    if view.shared.started.elapsed().as_secs() < NEWS_SECONDS {
        match view.shared.store.start() {
            Start::Warm { items, .. } => {
                add("good", &format!("Warm restart: continued with {} items.", grouped(items)));
            }
            Start::Cold(Cold::NoFile | Cold::New) => {}
            Start::Cold(why) => add("", &format!("Cold start: the memory file {why}.")),
        }
    }
    html
}

/// Returns the headlines.
fn tiles(view: &View<'_>) -> String {
    let (history, store, totals) = (view.history, &view.store, &view.totals);
    let hits = history.mean(MINUTE, |point| point.hits_ram + point.hits_ssd);
    let misses = history.mean(MINUTE, |point| point.misses);
    let ratio = hits / (hits + misses);
    let all = (totals.get_hits_ram + totals.get_hits_ssd) as f64;
    let overall = all / (all + totals.get_misses as f64);
    let gets = history.now(|point| point.hits_ram + point.hits_ssd + point.misses);
    let stores = history.now(|point| point.stores);
    let items = store.ram_items + store.ssd_items;
    let mut html = String::new();
    let mut add = |name: &str, figure: String, more: String| {
        let _ = write!(html, "<div><dt>{name}</dt><dd>{figure}</dd><dd>{more}</dd></div>");
    };
    add("Gets", data(gets, &per_second(gets)), format!("stores {}", data(stores, &per_second(stores))));
    add(
        "Hit ratio, last minute",
        data(ratio, &percent(ratio)),
        format!("since the start {}", percent(overall)),
    );
    let p99 = |us: f64| data(us, &micros(us));
    let (ram, ssd) = (history.now(|point| point.ram_p99_us), history.now(|point| point.ssd_p99_us));
    let below = if view.has_ssd() { format!("from the SSD {}", p99(ssd)) } else { "from RAM".to_string() };
    add("Hits, p99", p99(ram), below);
    let tiers = format!("{} in RAM", named("ram_items", &count(store.ram_items)));
    add("Items", named("items", &data(items as f64, &short(items as f64))), tiers);
    let limit = view.shared.store.memory_limit_bytes() as f64;
    let used = store.arena_bytes as f64 - (store.ram_segments_free * store.ram_segment_bytes) as f64;
    let of = format!("of {}", data(limit, &bytes(limit)));
    add("Memory", data(used, &bytes(used.max(0.0))), of);
    if view.has_ssd() {
        let share = store.ssd_segments_used as f64 / store.ssd_segments as f64;
        add("SSD used", data(share, &percent(share)), format!("oldest {}", span(view.ages.ssd_s.into())));
    }
    let open = u64::from(view.shared.connections.load(Relaxed));
    let most = format!("of {}", grouped(view.shared.config.conn_limit.into()));
    add("Connections", named("curr_connections", &count(open)), most);
    html
}

/// Returns the end of the document, with the other paths.
fn foot() -> String {
    let mut html = String::from("<footer><nav aria-label=\"Other figures\">");
    for path in super::PATHS {
        let _ = write!(html, "<a href=\"{path}\">{path}</a> ");
    }
    let _ = write!(
        html,
        "</nav><p>Larder {}, compatible with memcached {}</p></footer>\n</body></html>\n",
        escape(VERSION),
        escape(COMPATIBLE_VERSION)
    );
    html
}
