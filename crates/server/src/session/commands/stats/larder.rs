//! `stats larder`: Larder's own counters, which never go back, so that rates can be taken from them.

use std::sync::atomic::Ordering::Relaxed;

use larder_store::{Start, Stats};

use super::Lines;
use crate::counters::Totals;
use crate::shared::Shared;
use crate::wear;

/// Returns the lines.
pub(super) fn lines(shared: &Shared) -> Lines {
    let mut lines: Lines =
        vec![("version".into(), env!("CARGO_PKG_VERSION").to_string()), ("io".into(), shared.io.to_string())];
    let (totals, store) = (shared.lifetime(), shared.store.stats());
    let numbers = memory(shared, &store)
        .into_iter()
        .chain(life(shared))
        .chain(tiers(&totals, &store))
        .chain(state(shared, &totals, &store))
        .chain(leases(shared))
        .chain(cluster(shared));
    lines.extend(numbers.map(|(name, value)| (name.into(), value.to_string())));
    lines.push(("ssd_admission".into(), shared.store.admission().name().to_string()));
    let per_day = wear::bytes_per_day(shared, store.ssd_bytes_written) as u64;
    lines.push(("ssd_bytes_written_per_day".into(), per_day.to_string()));
    let days = wear::days_left(shared, store.ssd_bytes_written);
    lines.push(("ssd_wear_days_left".into(), days.map_or("unknown".to_string(), |days| days.to_string())));
    lines
}

/// A name and its value.
type Number = (&'static str, u64);

/// Returns the sizes of memory and index, and the number of items.
fn memory(shared: &Shared, store: &Stats) -> [Number; 21] {
    [
        ("memory_limit_bytes", shared.store.memory_limit_bytes()),
        ("arena_bytes", store.arena_bytes),
        ("ram_tier_bytes", store.ram_tier_bytes),
        ("index_bytes", store.index_bytes),
        ("index_capacity", store.index_capacity),
        ("index_entries", store.index_entries),
        ("index_evictions", store.index_evictions),
        ("index_collisions", store.index_collisions),
        ("table_bytes", store.table_bytes),
        ("buffer_bytes", store.buffer_bytes),
        ("shadow_bytes", store.shadow_bytes),
        ("ram_items", store.ram_items),
        ("ram_item_bytes", store.ram_item_bytes),
        ("ram_segment_bytes", store.ram_segment_bytes),
        ("ram_segments", store.ram_segments),
        ("ram_segments_free", store.ram_segments_free),
        ("ram_segments_reserved", store.ram_segments_reserved),
        ("ram_segments_withheld", store.ram_segments_withheld),
        ("ssd_items", store.ssd_items),
        ("ssd_segments", store.ssd_segments),
        ("ssd_segments_used", store.ssd_segments_used),
    ]
}

/// Returns the traffic of the tiers.
fn tiers(totals: &Totals, store: &Stats) -> [Number; 17] {
    [
        ("get_hits_ram", totals.get_hits_ram),
        ("get_hits_ssd", totals.get_hits_ssd),
        ("ssd_device_reads", totals.ssd_device_reads),
        ("ssd_device_writes", store.ssd_device_writes),
        ("ssd_bytes_read", totals.ssd_bytes_read),
        ("ssd_bytes_written", store.ssd_bytes_written),
        ("ssd_bytes_admitted", store.ssd_bytes_admitted),
        ("ssd_bytes_moved", store.ssd_bytes_moved),
        ("ssd_segments_cleaned", store.ssd_segments_cleaned),
        ("evictions_ram", store.evictions_ram),
        ("evictions_ssd", store.evictions_ssd),
        ("ssd_admissions_dropped", store.ssd_admissions_dropped),
        ("ssd_admissions_refused", store.ssd_admissions_refused),
        ("ssd_writes_pending", store.ssd_writes_pending),
        ("ssd_waits", totals.ssd_waits),
        ("ssd_errors", store.ssd_errors),
        ("ssd_false_reads", store.ssd_false_reads),
    ]
}

/// Returns the bytes written to all SSD paths over their lives, and those that they may take.
fn life(shared: &Shared) -> [Number; 2] {
    let written = shared.lifetime_written.iter().map(|written| written.load(Relaxed)).sum();
    let endurance = shared.config.ssd_endurance_bytes.unwrap_or(0);
    let paths = shared.lifetime_written.len() as u64;
    [("ssd_lifetime_written_bytes", written), ("ssd_endurance_bytes", endurance.saturating_mul(paths))]
}

/// Returns the subscriptions to changes, and what was leased and announced to them.
fn leases(shared: &Shared) -> [Number; 5] {
    let leases = shared.leases.stats();
    [
        ("subscriptions", leases.subscriptions),
        ("leases", leases.leases),
        ("leases_max", leases.leases_max),
        ("leases_announced", leases.announced),
        ("leases_displaced", leases.displaced),
    ]
}

/// Returns the servers of the cluster, and the look-ups in DNS that name them. Without a cluster there are none.
fn cluster(shared: &Shared) -> Vec<Number> {
    let Some(cluster) = &shared.cluster else { return Vec::new() };
    let mut numbers = vec![("cluster_servers", cluster.servers() as u64)];
    if let Some(lookups) = cluster.lookups() {
        numbers.extend([
            ("cluster_lookups_answered", lookups.answered),
            ("cluster_lookups_failed", lookups.failed),
            ("cluster_lookups_failed_in_a_row", lookups.failed_in_a_row),
            ("cluster_answer_age_seconds", lookups.answer_age.as_secs()),
        ]);
    }
    numbers
}

/// Returns the state of the SSD, the memory held for connections, and the outcome of the last restart.
fn state(shared: &Shared, totals: &Totals, store: &Stats) -> [Number; 17] {
    let restart_items = match shared.store.start() {
        Start::Warm { items, .. } => Some(items),
        Start::Cold(_) => None,
    };
    [
        ("ssd_is_off", u64::from(shared.store.ssd_is_off())),
        ("ssd_turned_off", store.ssd_turned_off),
        ("ssd_probes", store.ssd_probes),
        ("conn_bytes", shared.budget.used()),
        ("conn_memory_kicks", totals.unread_kicks + totals.unsent_kicks),
        ("conn_kicks_unread", totals.unread_kicks),
        ("conn_kicks_unsent", totals.unsent_kicks),
        ("conn_kicks_login", totals.login_kicks),
        ("open_files_wanted", shared.config.open_files_wanted),
        ("requests_denied", totals.requests_denied),
        ("limits_allowed", totals.limits_allowed),
        ("limits_denied", totals.limits_denied),
        ("shards", store.shards),
        ("shards_repaired", store.shards_repaired),
        ("shards_reset", store.shards_reset),
        ("restart_warm", u64::from(restart_items.is_some())),
        ("restart_items", restart_items.unwrap_or(0)),
    ]
}
