//! The memory limit and what it is used for, and connections.

use std::sync::atomic::Ordering::Relaxed;

use super::figure::{bytes, count, data, grouped, per_second};
use super::panel::Panel;
use super::shapes::{bar, meter};
use super::table::{facts, table};
use super::view::View;

/// Returns the panel of memory by its use.
pub(super) fn memory(view: &View<'_>) -> Option<Panel> {
    let store = &view.store;
    let limit = view.shared.store.memory_limit_bytes() as f64;
    let free = (store.ram_segments_free * store.ram_segment_bytes).min(store.ram_tier_bytes);
    let uses = [
        ("m1", "Items", store.ram_tier_bytes - free),
        ("m2", "Index", store.index_bytes),
        ("m3", "Tables", store.table_bytes),
        ("m4", "Write buffers", store.buffer_bytes),
        ("m0", "Free for items", free),
    ];
    let parts = uses.map(|(class, _, bytes)| (class, bytes as f64 / limit));
    let shown = |size: u64| data(size as f64, &bytes(size as f64));
    let about = format!("Memory of {} by its use", bytes(limit));
    let body = bar(&about, 20, &parts) + &facts(&uses.map(|(class, name, size)| (class, name, shown(size))));
    let row = |(_, name, size): (&str, &str, u64)| (name.to_string(), vec![count(size)]);
    let mut rows = uses.map(row).to_vec();
    rows.push(("Shadows".to_string(), vec![count(store.shadow_bytes)]));
    rows.push(("Limit (-m)".to_string(), vec![count(limit as u64)]));
    let entries = [
        ("Entries of the index", store.index_entries),
        ("Room for entries now", store.index_capacity),
        ("Room once it has grown", store.index_capacity_max),
        ("Items in RAM", store.ram_items),
        ("Items on the SSD", store.ssd_items),
    ];
    let entries = view.of_tiers(entries.map(|(name, number)| (name.to_string(), vec![count(number)])));
    Some(Panel {
        id: "memory",
        title: "Memory",
        note: "of -m",
        body,
        tables: table("Memory by its use", "Use", &["Bytes"], &rows)
            + &table("Items and their index", "", &["Number"], &entries),
    })
}

/// Returns the panel of connections and their memory.
pub(super) fn connections(view: &View<'_>) -> Option<Panel> {
    let (shared, totals) = (view.shared, &view.totals);
    let (open, most) = (u64::from(shared.connections.load(Relaxed)), u64::from(shared.config.conn_limit));
    let (held, room) = (shared.budget.used(), shared.config.conn_memory_bytes);
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let accepted = view.history.now(|point| point.accepted);
    let part = |of: u64, shown: &str, whole: &str| format!("{} of {whole}", data(of as f64, shown));
    let body = meter("Open", &part(open, &grouped(open), &grouped(most)), share(open, most))
        + &meter("Their memory", &part(held, &bytes(held as f64), &bytes(room as f64)), share(held, room))
        + &facts(&[
            ("", "New", data(accepted, &per_second(accepted))),
            ("", "Closed for holding memory", count(totals.unread_kicks + totals.unsent_kicks)),
            ("", "Refused at the limit", count(totals.rejected_connections)),
        ]);
    let rows = [
        ("Accepted", totals.total_connections),
        ("Refused at the limit (-c)", totals.rejected_connections),
        ("Closed: idle", totals.idle_kicks),
        ("Closed: replies not taken", totals.unread_kicks),
        ("Closed: requests not completed", totals.unsent_kicks),
        ("Closed: not logged in", totals.login_kicks),
        ("Requests denied by rights", totals.requests_denied),
        ("Logins failed", totals.auth_errors),
    ]
    .map(|(name, number)| (name.to_string(), vec![count(number)]));
    Some(Panel {
        id: "connections",
        title: "Connections",
        note: "and their memory",
        body,
        tables: table("Connections since the start", "Event", &["Number"], &rows),
    })
}
