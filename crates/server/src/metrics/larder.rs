//! `larder_*`: both tiers, the SSD, connections, the last start. docs/metrics.md explains each.

use std::sync::atomic::Ordering::Relaxed;

use larder_store::{Ages, Start, Stats};

use super::text::Kind::{Counter, Gauge, Histogram};
use super::text::{Exposition, Kind};
use crate::config::{COMPATIBLE_VERSION, VERSION};
use crate::counters::Totals;
use crate::latency::AllTimes;
use crate::shared::Shared;
use crate::wear;

/// A family's name, type and meaning.
type Family = (&'static str, Kind, &'static str);

/// Adds all of them.
pub(super) fn add(text: &mut Exposition, shared: &Shared, store: &Stats, ages: &Ages) {
    let totals = shared.lifetime();
    text.family("larder_build_info", Gauge, "The build, and how the SSD is reached; always 1.");
    let build = [("version", VERSION), ("memcached", COMPATIBLE_VERSION), ("io", shared.io)];
    text.sample("larder_build_info", &build, 1);
    add_requests(text, &totals);
    let times = shared.times();
    add_request_times(text, &times);
    add_memory(text, shared, store);
    add_items(text, store, ages);
    if store.ssd_segments > 0 {
        add_ssd_traffic(text, &totals, store);
        add_ssd_times(text, &times);
        add_ssd_wear(text, shared, store);
        add_ssd_state(text, shared, store, ages);
    }
    add_connections(text, shared, &totals);
    add_leases(text, shared);
    add_cluster(text, shared);
    add_start(text, shared, store);
}

fn add_requests(text: &mut Exposition, totals: &Totals) {
    let gets: Family = ("larder_gets_total", Counter, "Keys that were read, by where they were found.");
    let outcomes = [("ram", totals.get_hits_ram), ("ssd", totals.get_hits_ssd), ("miss", totals.get_misses)];
    text.labelled(gets, "outcome", outcomes);
    let limits: Family = ("larder_limits_total", Counter, "Rate limits that were asked, by their answer.");
    text.labelled(limits, "result", [("allowed", totals.limits_allowed), ("denied", totals.limits_denied)]);
    let failed = totals.auth_errors;
    let logins: Family = ("larder_auth_total", Counter, "Logins by their result.");
    let succeeded = totals.auth_cmds.saturating_sub(failed);
    text.labelled(logins, "result", [("success", succeeded), ("failure", failed)]);
    let help = "Requests that the rights of their user do not permit.";
    text.single("larder_requests_denied_total", Counter, help, totals.requests_denied);
    let help = "Requests that waited for room because writes to the SSD were behind.";
    text.single("larder_room_waits_total", Counter, help, totals.ssd_waits);
}

fn add_request_times(text: &mut Exposition, times: &AllTimes) {
    let name = "larder_request_duration_seconds";
    let help = "From the worker's waking up for a request to the end of the round that served it (ram: gets \
                of items in RAM; store), or from the need of a read of the SSD to the reply (ssd: gets; \
                mutate_ssd: changes).";
    text.family(name, Histogram, help);
    for (class, times) in [
        ("ram", &times.ram_hits),
        ("ssd", &times.ssd_hits),
        ("store", &times.stores),
        ("mutate_ssd", &times.ssd_changes),
    ] {
        text.times(name, &[("class", class)], times);
    }
    let name = "larder_loop_duration_seconds";
    let help = "Rounds of the workers' event loops, from waking up to sleeping again.";
    text.family(name, Histogram, help);
    text.times(name, &[], &times.loops);
}

fn add_ssd_times(text: &mut Exposition, times: &AllTimes) {
    for (name, help, times) in [
        (
            "larder_ssd_queue_seconds",
            "From the need of a read of the SSD to its turn; 0 for a read that may be made at once.",
            &times.ssd_queue,
        ),
        (
            "larder_ssd_read_duration_seconds",
            "Reads of the SSD, from their submission until the worker took them back.",
            &times.ssd_reads,
        ),
        (
            "larder_ssd_write_duration_seconds",
            "Writes to the SSD, from their submission until the worker took them back.",
            &times.ssd_writes,
        ),
    ] {
        text.family(name, Histogram, help);
        text.times(name, &[], times);
    }
}

fn add_memory(text: &mut Exposition, shared: &Shared, store: &Stats) {
    let memory: Family = ("larder_memory_bytes", Gauge, "Memory by its use.");
    let uses = [
        ("index", store.index_bytes),
        ("tables", store.table_bytes),
        ("buffers", store.buffer_bytes),
        ("shadows", store.shadow_bytes),
        ("ram_tier", store.ram_tier_bytes),
        ("connections", shared.budget.used()),
    ];
    text.labelled(memory, "kind", uses);
    let limit = shared.store.memory_limit_bytes();
    text.single("larder_memory_limit_bytes", Gauge, "The limit of all but connections (-m).", limit);
    let limit = shared.config.conn_memory_bytes;
    text.single("larder_connections_memory_limit_bytes", Gauge, "The limit of connections.", limit);
    let segments: Family = ("larder_ram_segments", Gauge, "Segments of RAM by their state.");
    let used = store.ram_segments - store.ram_segments_free - store.ram_segments_withheld;
    let states =
        [("used", used), ("free", store.ram_segments_free), ("withheld", store.ram_segments_withheld)];
    text.labelled(segments, "state", states);
    text.single("larder_index_entries", Gauge, "Entries of the index in use.", store.index_entries);
    text.single("larder_index_capacity", Gauge, "Entries that the index has room for.", store.index_capacity);
    let help = "Entries that the index can have once it has grown.";
    text.single("larder_index_capacity_limit", Gauge, help, store.index_capacity_max);
    let help = "Items in RAM dropped because the index could not tell a new key from theirs.";
    text.single("larder_index_collisions_total", Counter, help, store.index_collisions);
}

fn add_items(text: &mut Exposition, store: &Stats, ages: &Ages) {
    let items: Family = ("larder_items", Gauge, "Items by their tier.");
    text.labelled(items, "tier", [("ram", store.ram_items), ("ssd", store.ssd_items)]);
    let help = "Bytes of the items in RAM.";
    text.labelled(("larder_item_bytes", Gauge, help), "tier", [("ram", store.ram_item_bytes)]);
    let help = "Live items dropped to make room, by the place that was full.";
    let places =
        [("ram", store.evictions_ram), ("ssd", store.evictions_ssd), ("index", store.index_evictions)];
    text.labelled(("larder_evictions_total", Counter, help), "place", places);
    let help = "Seconds since the oldest item of a queue in RAM was stored or last read.";
    let queues = [("small", ages.ram_small_s), ("main", ages.ram_main_s)];
    text.labelled(("larder_ram_oldest_age_seconds", Gauge, help), "queue", queues);
    let help = "Reads that found their item expired.";
    text.single("larder_found_expired_total", Counter, help, store.found_expired);
}

fn add_ssd_traffic(text: &mut Exposition, totals: &Totals, store: &Stats) {
    for (name, help, value) in [
        ("larder_ssd_reads_total", "Reads of the SSD.", totals.ssd_device_reads),
        ("larder_ssd_read_bytes_total", "Bytes read from the SSD.", totals.ssd_bytes_read),
        ("larder_ssd_writes_total", "Writes to the SSD.", store.ssd_device_writes),
        ("larder_ssd_written_bytes_total", "Bytes written to the SSD.", store.ssd_bytes_written),
        (
            "larder_ssd_admitted_bytes_total",
            "Bytes of records that left RAM for the SSD. Written bytes divided by these are the write \
             amplification.",
            store.ssd_bytes_admitted,
        ),
        (
            "larder_ssd_moved_bytes_total",
            "Bytes of records written again because their segment was reused.",
            store.ssd_bytes_moved,
        ),
        (
            "larder_ssd_cleaned_segments_total",
            "Segments whose live items were all moved.",
            store.ssd_segments_cleaned,
        ),
    ] {
        text.single(name, Counter, help, value);
    }
    let help = "Items that left RAM and were not written to the SSD, by the reason.";
    let reasons = [
        ("policy", store.ssd_refused_unwanted),
        ("limit", store.ssd_refused_limit),
        ("expiring", store.ssd_refused_expiring),
        ("too_large", store.ssd_refused_unfit),
        ("behind", store.ssd_admissions_dropped),
    ];
    text.labelled(("larder_ssd_not_admitted_total", Counter, help), "reason", reasons);
    let help = "Operations of the SSD that failed, and pages with a wrong checksum.";
    let kinds =
        [("read", totals.ssd_read_errors), ("write", totals.ssd_write_errors), ("any", store.ssd_errors)];
    text.labelled(("larder_ssd_errors_total", Counter, help), "kind", kinds);
}

fn add_ssd_wear(text: &mut Exposition, shared: &Shared, store: &Stats) {
    let name = "larder_ssd_lifetime_written_bytes_total";
    let help = "Bytes written to an SSD path over its life, by all daemons that have used it.";
    text.family(name, Counter, help);
    for (path, written) in shared.config.ssd.iter().zip(&shared.lifetime_written) {
        let path = path.path.to_string_lossy();
        text.sample(name, &[("path", &path)], written.load(Relaxed));
    }
    let help = "Bytes that each SSD path may take over its life (--ssd-endurance); 0 if not known.";
    text.single("larder_ssd_endurance_bytes", Gauge, help, shared.config.ssd_endurance_bytes.unwrap_or(0));
    let help = "Bytes a day written to all SSD paths in the last day, or since the start.";
    let per_day = wear::bytes_per_day(shared, store.ssd_bytes_written) as u64;
    text.single("larder_ssd_written_bytes_per_day", Gauge, help, per_day);
    let name = "larder_ssd_wear_days_left";
    let help = "Days until the most worn path has taken them, if writes go on as in the last day.";
    text.family(name, Gauge, help);
    if let Some(days) = wear::days_left(shared, store.ssd_bytes_written) {
        text.sample(name, &[], days);
    }
}

fn add_ssd_state(text: &mut Exposition, shared: &Shared, store: &Stats, ages: &Ages) {
    let used = store.ssd_segments_used;
    let states = [("used", used), ("unused", store.ssd_segments.saturating_sub(used))];
    text.labelled(("larder_ssd_segments", Gauge, "Segments of the SSD by their state."), "state", states);
    let help = "Seconds since the oldest segment with live items was begun: how long items stay.";
    text.single("larder_ssd_oldest_segment_age_seconds", Gauge, help, ages.ssd_s);
    let in_flight = shared.reads_in_flight.load(Relaxed) as u64;
    let help = "Operations of the SSD under way; of writes also those that wait.";
    let operations = [("read", in_flight), ("write", store.ssd_writes_pending)];
    text.labelled(("larder_ssd_in_flight", Gauge, help), "op", operations);
    let help = "1 while lasting failures have turned the SSD off.";
    text.single("larder_ssd_off", Gauge, help, u64::from(shared.store.ssd_is_off()));
    text.single(
        "larder_ssd_turned_off_total",
        Counter,
        "Times that it was turned off.",
        store.ssd_turned_off,
    );
    text.single("larder_ssd_probes_total", Counter, "Probes whether it works again.", store.ssd_probes);
}

fn add_connections(text: &mut Exposition, shared: &Shared, totals: &Totals) {
    let help = "Connections closed by the daemon, by the reason: unread did not take their replies, unsent \
                did not complete their requests, login did not log in.";
    let reasons = [
        ("idle", totals.idle_kicks),
        ("unread", totals.unread_kicks),
        ("unsent", totals.unsent_kicks),
        ("login", totals.login_kicks),
    ];
    text.labelled(("larder_connections_closed_total", Counter, help), "reason", reasons);
    if let Some(tls) = &shared.tls {
        let help = "Handshakes of TLS that failed.";
        text.single("larder_tls_handshake_errors_total", Counter, help, totals.ssl_handshake_errors);
        let help = "Seconds since the certificates were read.";
        text.single("larder_tls_certificates_age_seconds", Gauge, help, tls.age().as_secs());
    }
}

fn add_leases(text: &mut Exposition, shared: &Shared) {
    let leases = shared.leases.stats();
    let help = "Connections that are told when leased keys change.";
    text.single("larder_subscriptions", Gauge, help, leases.subscriptions);
    text.single("larder_leases", Gauge, "Keys that are leased to them.", leases.leases);
    text.single("larder_leases_limit", Gauge, "The most of these keys.", leases.leases_max);
    let help = "Leases that ended with an announcement.";
    text.single("larder_leases_announced_total", Counter, help, leases.announced);
    let help = "Those of them that ended because another lease took their place.";
    text.single("larder_leases_displaced_total", Counter, help, leases.displaced);
}

fn add_cluster(text: &mut Exposition, shared: &Shared) {
    let Some(cluster) = &shared.cluster else { return };
    let help = "Servers of the cluster that clients are told; 0 before they are known.";
    text.single("larder_cluster_servers", Gauge, help, cluster.servers() as u64);
    let Some(lookups) = cluster.lookups() else { return };
    let help = "Look-ups of these servers in DNS by their result.";
    let results = [("success", lookups.answered), ("failure", lookups.failed)];
    text.labelled(("larder_cluster_lookups_total", Counter, help), "result", results);
    let help = "Seconds since DNS last named these servers, or since the daemon's start.";
    text.single("larder_cluster_answer_age_seconds", Gauge, help, lookups.answer_age.as_secs());
}

fn add_start(text: &mut Exposition, shared: &Shared, store: &Stats) {
    let items = match shared.store.start() {
        Start::Warm { items, .. } => Some(items),
        Start::Cold(_) => None,
    };
    let is_warm = u64::from(items.is_some());
    text.single(
        "larder_restart_warm",
        Gauge,
        "1 if this start continued with an earlier one's items.",
        is_warm,
    );
    text.single("larder_restart_items", Gauge, "How many items it found.", items.unwrap_or(0));
    let help = "Parts of the hash space, by what the start found: reset ones were damaged and are emptied.";
    let whole = store.shards - (store.shards_repaired + store.shards_reset).min(store.shards);
    let states = [("whole", whole), ("repaired", store.shards_repaired), ("reset", store.shards_reset)];
    text.labelled(("larder_shards", Gauge, help), "state", states);
    text.single("larder_threads", Gauge, "Workers (-t).", shared.config.threads);
}
