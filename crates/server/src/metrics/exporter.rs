//! `memcached_*`: the metrics of Prometheus' memcached_exporter, by its names and from the same lines of `stats`, so
//! that dashboards and alerts made for it find their series here.

use std::collections::HashMap;

use larder_store::{Ages, Stats};

use super::text::{Exposition, Kind};
use crate::config::COMPATIBLE_VERSION;
use crate::session::statistics;
use crate::shared::Shared;

/// A metric: its name without the prefix, its type, the line of `stats` it is taken from, its meaning.
type Row = (&'static str, Kind, &'static str, &'static str);

use Kind::{Counter, Gauge, Untyped};

#[rustfmt::skip]
const GENERAL: &[Row] = &[
    ("uptime_seconds", Untyped, "uptime", "Seconds since the daemon started."),
    ("time_seconds", Gauge, "time", "The time by the daemon's clock, in seconds since 1970."),
    ("process_user_cpu_seconds_total", Counter, "rusage_user", "Processor time in user space."),
    ("process_system_cpu_seconds_total", Counter, "rusage_system", "Processor time in the kernel."),
    ("current_bytes", Gauge, "bytes", "Bytes of the items in RAM."),
    ("limit_bytes", Gauge, "limit_maxbytes", "The memory limit."),
    ("current_items", Gauge, "curr_items", "Items in RAM and on the SSD."),
    ("items_total", Counter, "total_items", "Items stored."),
    ("read_bytes_total", Counter, "bytes_read", "Bytes received from clients."),
    ("written_bytes_total", Counter, "bytes_written", "Bytes sent to clients."),
    ("current_connections", Gauge, "curr_connections", "Open connections."),
    ("connections_total", Counter, "total_connections", "Connections accepted."),
    ("connections_rejected_total", Counter, "rejected_connections", "Connections refused at the limit (-c)."),
    ("connections_yielded_total", Counter, "conn_yields", "Times that a connection gave way to others (-R)."),
    ("connections_listener_disabled_total", Counter, "listen_disabled_num",
        "Times that no connections were accepted because of the limit."),
    ("accepting_connections", Gauge, "accepting_conns", "1 while connections are accepted."),
    ("items_evicted_total", Counter, "evictions", "Live items dropped to make room."),
    ("items_reclaimed_total", Counter, "reclaimed", "Expired items whose room was used again."),
    ("item_too_large_total", Counter, "store_too_large", "Stores refused because of the item's size."),
    ("item_no_memory_total", Counter, "store_no_memory", "Stores refused for lack of memory."),
    ("direct_reclaims_total", Counter, "direct_reclaims", "Always 0: there are no slabs."),
    ("lru_crawler_starts_total", Counter, "lru_crawler_starts", "Listings of keys."),
    ("lru_crawler_items_checked_total", Counter, "crawler_items_checked", "Always 0: there is no crawler."),
    ("lru_crawler_reclaimed_total", Counter, "crawler_reclaimed", "Always 0: there is no crawler."),
    ("lru_crawler_moves_to_cold_total", Counter, "moves_to_cold", "Always 0: there is no crawler."),
    ("lru_crawler_moves_to_warm_total", Counter, "moves_to_warm", "Always 0: there is no crawler."),
    ("lru_crawler_moves_within_lru_total", Counter, "moves_within_lru", "Always 0: there is no crawler."),
];

/// From `stats settings`.
#[rustfmt::skip]
const SETTINGS: &[Row] = &[
    ("max_connections", Gauge, "maxconns", "The limit of connections (-c)."),
    ("lru_crawler_enabled", Gauge, "lru_crawler", "As -o lru_crawler says; without effect."),
    ("lru_crawler_sleep", Gauge, "lru_crawler_sleep", "As -o lru_crawler_sleep says; without effect."),
    ("lru_crawler_to_crawl", Gauge, "lru_crawler_tocrawl", "As -o lru_crawler_tocrawl says; without effect."),
    ("lru_crawler_maintainer_thread", Gauge, "lru_maintainer_thread",
        "As -o lru_maintainer says; without effect."),
    ("lru_crawler_hot_percent", Gauge, "hot_lru_pct", "As -o hot_lru_pct says; without effect."),
    ("lru_crawler_warm_percent", Gauge, "warm_lru_pct", "As -o warm_lru_pct says; without effect."),
    ("lru_crawler_hot_max_factor", Gauge, "hot_max_factor", "As -o hot_max_factor says; without effect."),
    ("lru_crawler_warm_max_factor", Gauge, "warm_max_factor", "As -o warm_max_factor says; without effect."),
];

/// From `stats items`, of each class: 1 is RAM, 2 the SSD.
#[rustfmt::skip]
const ITEMS: &[Row] = &[
    ("slab_current_items", Gauge, "number", "Items of the tier."),
    ("slab_items_age_seconds", Gauge, "age", "Age of the tier's oldest item."),
    ("slab_hot_items", Gauge, "number_hot", "New items in RAM."),
    ("slab_warm_items", Gauge, "number_warm", "Items in RAM that were read."),
    ("slab_cold_items", Gauge, "number_cold", "Items on the SSD."),
    ("slab_hot_age_seconds", Gauge, "age_hot", "Age of the oldest new item in RAM."),
    ("slab_warm_age_seconds", Gauge, "age_warm", "Age of the oldest item in RAM that was read."),
    ("slab_mem_requested_bytes", Untyped, "mem_requested", "Bytes of the tier's items; 0 for the SSD."),
    ("slab_items_evicted_total", Counter, "evicted", "Live items dropped to make room."),
    ("slab_items_evicted_unfetched_total", Counter, "evicted_unfetched", "Those that were never read."),
    ("slab_items_evicted_nonzero_total", Counter, "evicted_nonzero", "Always 0."),
    ("slab_items_evicted_time_seconds", Untyped, "evicted_time", "Always 0."),
    ("slab_items_expired_unfetched_total", Counter, "expired_unfetched", "Expired items, never read."),
    ("slab_items_outofmemory_total", Counter, "outofmemory", "Stores refused for lack of memory."),
    ("slab_items_reclaimed_total", Counter, "reclaimed", "Expired items whose room was used again."),
    ("slab_items_tailrepairs_total", Counter, "tailrepairs", "Always 0."),
    ("slab_items_crawler_reclaimed_total", Counter, "crawler_reclaimed", "Always 0."),
    ("slab_items_moves_to_cold", Untyped, "moves_to_cold", "Always 0."),
    ("slab_items_moves_to_warm", Untyped, "moves_to_warm", "Always 0."),
    ("slab_items_moves_within_lru", Untyped, "moves_within_lru", "Always 0."),
];

/// From `stats slabs`.
#[rustfmt::skip]
const SLABS: &[Row] = &[
    ("slab_chunk_size_bytes", Gauge, "chunk_size", "Bytes of a segment of RAM."),
    ("slab_chunks_per_page", Gauge, "chunks_per_page", "Always 1."),
    ("slab_current_pages", Gauge, "total_pages", "Segments of RAM in use."),
    ("slab_current_chunks", Gauge, "total_chunks", "Segments of RAM in use."),
    ("slab_chunks_used", Gauge, "used_chunks", "Items in RAM."),
    ("slab_chunks_free", Gauge, "free_chunks", "Segments of RAM that are free."),
    ("slab_chunks_free_end", Gauge, "free_chunks_end", "Always 0."),
];

/// The commands with hits and misses.
const COMMANDS: [&str; 6] = ["get", "delete", "incr", "decr", "cas", "touch"];

/// Adds all of them.
pub(super) fn add(text: &mut Exposition, shared: &Shared, store: &Stats, ages: &Ages) {
    let [stats, items, slabs, settings] =
        statistics(shared, store, ages).map(|lines| Figures(lines.into_iter().collect()));
    text.single("memcached_up", Gauge, "1: a daemon that answers is up.", 1);
    text.family("memcached_version", Gauge, "The version of memcached that it is compatible with.");
    text.sample("memcached_version", &[("version", COMPATIBLE_VERSION)], 1);
    add_rows(text, GENERAL, &stats);
    add_rows(text, SETTINGS, &settings);
    if let Some(bytes) = slabs.number("total_malloced") {
        text.single("memcached_malloced_bytes", Gauge, "Bytes of the segments of RAM in use.", bytes);
    }
    add_commands(text, &stats);
    for row in ITEMS {
        let of = |class: &str| items.number(&format!("items:{class}:{}", row.2));
        add_by_class(text, row, of);
    }
    for row in SLABS {
        add_by_class(text, row, |class| slabs.number(&format!("{class}:{}", row.2)));
    }
    add_tiers_hits(text, &items);
    add_slab_commands(text, &slabs);
}

/// The lines of one `stats` command, by name.
struct Figures(HashMap<std::borrow::Cow<'static, str>, String>);

impl Figures {
    /// Returns a value as a number's text; `yes` is 1 and `no` is 0.
    fn number(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| match value.as_str() {
            "yes" => "1",
            "no" => "0",
            other => other,
        })
    }

    fn count(&self, name: &str) -> u64 {
        self.number(name).and_then(|value| value.parse().ok()).unwrap_or(0)
    }
}

fn add_rows(text: &mut Exposition, rows: &[Row], figures: &Figures) {
    for (name, kind, line, help) in rows {
        if let Some(value) = figures.number(line) {
            text.single(&format!("memcached_{name}"), *kind, help, value);
        }
    }
}

/// Adds `commands_total`. As the exporter does it, stores with a cas unique are not counted as sets again.
fn add_commands(text: &mut Exposition, stats: &Figures) {
    let name = "memcached_commands_total";
    text.family(name, Counter, "Commands by their outcome.");
    for command in COMMANDS {
        for (status, line) in [("hit", "hits"), ("miss", "misses")] {
            let count = stats.count(&format!("{command}_{line}"));
            text.sample(name, &[("command", command), ("status", status)], count);
        }
    }
    let cas = ["cas_hits", "cas_misses", "cas_badval"].map(|line| stats.count(line)).iter().sum();
    for (command, status, count) in [
        ("cas", "badval", stats.count("cas_badval")),
        ("flush", "hit", stats.count("cmd_flush")),
        ("set", "hit", stats.count("cmd_set").saturating_sub(cas)),
    ] {
        text.sample(name, &[("command", command), ("status", status)], count);
    }
}

/// Adds a metric of the classes that have it.
fn add_by_class<'a>(text: &mut Exposition, row: &Row, of: impl Fn(&str) -> Option<&'a str>) {
    let (name, kind, _, help) = row;
    let name = format!("memcached_{name}");
    let found: Vec<_> = ["1", "2"].into_iter().filter_map(|class| Some((class, of(class)?))).collect();
    if !found.is_empty() {
        text.family(&name, *kind, help);
        found.iter().for_each(|(class, value)| text.sample(&name, &[("slab", class)], value));
    }
}

fn add_tiers_hits(text: &mut Exposition, items: &Figures) {
    let name = "memcached_slab_lru_hits_total";
    text.family(name, Counter, "Hits by the queue of the item: warm is RAM, cold is the SSD.");
    for class in ["1", "2"] {
        for (lru, line) in [("hot", "hot"), ("warm", "warm"), ("cold", "cold"), ("temporary", "temp")] {
            if let Some(hits) = items.number(&format!("items:{class}:hits_to_{line}")) {
                text.sample(name, &[("slab", class), ("lru", lru)], hits);
            }
        }
    }
}

fn add_slab_commands(text: &mut Exposition, slabs: &Figures) {
    let name = "memcached_slab_commands_total";
    text.family(name, Counter, "Commands by their outcome, of both tiers together.");
    let mut add = |command, status, count: u64| {
        text.sample(name, &[("slab", "1"), ("command", command), ("status", status)], count);
    };
    for command in COMMANDS {
        let line = format!("1:{command}_hits");
        if slabs.number(&line).is_some() {
            add(command, "hit", slabs.count(&line));
        }
    }
    let cas = slabs.count("1:cas_hits") + slabs.count("1:cas_badval");
    add("cas", "badval", slabs.count("1:cas_badval"));
    add("set", "hit", slabs.count("1:cmd_set").saturating_sub(cas));
}
