//! `stats` and its sub-commands: memcached's names where tools read them, Larder's own under `stats larder`.

mod classes;

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use larder_protocol::{ItemInfo, Outcome, Reply, VERSION, cachedump_line, text};
use larder_store::{Expiry, Start};
use rustix::process::{Resource, getrlimit};

use crate::process;
use crate::session::{Ctx, Served, Session};
use crate::shared::Shared;

impl Session {
    pub(super) fn stats(&mut self, ctx: &mut Ctx<'_>, arguments: &[u8], reply: &Reply<'_>) -> Served {
        let is_dump = arguments.starts_with(b"cachedump");
        self.add_cost(if is_dump { CACHEDUMP_COST_BYTES } else { STATS_COST_BYTES });
        let mut words = arguments.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let out = self.out.tail();
        match words.next() {
            None => show(out, reply, general(ctx.shared)),
            Some(b"larder") => show(out, reply, larder_lines(ctx.shared)),
            Some(b"settings") => show(out, reply, settings(ctx.shared)),
            Some(b"items") => show(out, reply, classes::items(ctx)),
            Some(b"slabs") => show(out, reply, classes::slabs(ctx)),
            Some(b"sizes") => show(out, reply, vec![("sizes_status".into(), "disabled".into())]),
            Some(b"conns" | b"extstore") => show(out, reply, vec![]),
            Some(b"reset") => {
                ctx.shared.reset_counters();
                reply.outcome(out, b"", Outcome::Reset, &ItemInfo::default());
            }
            Some(b"detail") => detail(ctx, out, reply, words.next()),
            Some(b"cachedump") if is_binary(reply) => reply.stats_unknown(out),
            Some(b"cachedump") => cachedump(ctx, out, reply, words.next(), words.next()),
            Some(_) => reply.stats_unknown(out),
        }
        Served::Done
    }
}

type Lines = Vec<(std::borrow::Cow<'static, str>, String)>;

fn is_binary(reply: &Reply<'_>) -> bool {
    matches!(reply, Reply::Binary { .. })
}

/// `stats detail on|off|dump`. The binary wire has a name for a dump, and no words for what is wrong.
fn detail(ctx: &Ctx<'_>, out: &mut Vec<u8>, reply: &Reply<'_>, word: Option<&[u8]>) {
    let prefixes = &ctx.shared.prefixes;
    match word {
        _ if !ctx.shared.config.dumping && !is_binary(reply) => {
            reply.line(out, text::STATS_DETAIL_NOT_ALLOWED)
        }
        Some(b"on" | b"off") => {
            prefixes.turn(word == Some(b"on"));
            match is_binary(reply) {
                true => reply.stats_end(out),
                false => reply.line(out, "OK"),
            }
        }
        Some(b"dump") if ctx.shared.config.dumping => match is_binary(reply) {
            true => {
                reply.stat(out, "detailed", &prefixes.dump());
                reply.stats_end(out);
            }
            false => out.extend_from_slice(&prefixes.dump()),
        },
        _ if is_binary(reply) => reply.stats_unknown(out),
        _ => reply.line(out, text::STATS_DETAIL_USAGE),
    }
}

/// The newest items of a class: 1 is RAM; the SSD's keys are on the SSD and are not listed.
fn cachedump(
    ctx: &Ctx<'_>,
    out: &mut Vec<u8>,
    reply: &Reply<'_>,
    class: Option<&[u8]>,
    limit: Option<&[u8]>,
) {
    let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse::<u32>().ok();
    let (Some(class), Some(limit)) = (class.map(number), limit.and_then(number)) else {
        return reply.line(out, text::STATS_CACHEDUMP_USAGE);
    };
    if !ctx.shared.config.dumping {
        return reply.line(out, text::STATS_CACHEDUMP_NOT_ALLOWED);
    }
    if class.is_none_or(|class| class >= 64) {
        return reply.line(out, text::STATS_CACHEDUMP_CLASS);
    }
    if class == Some(1) {
        let limit = if limit == 0 { usize::MAX } else { limit as usize };
        let unix = |expiry| match expiry {
            Expiry::Never => 0,
            Expiry::At(at) => ctx.shared.clock.unix(at),
        };
        for item in ctx.shared.store.list_ram(limit.min(CACHEDUMP_ITEMS_MAX), ctx.now) {
            cachedump_line(out, &item.key, item.value_len as u32, unix(item.expiry));
        }
    }
    reply.stats_end(out);
}

/// What statistics cost, in bytes of a value that cost as much to send: they look at every shard.
const STATS_COST_BYTES: usize = 128 << 10;
/// The same of a dump, which looks at many records.
const CACHEDUMP_COST_BYTES: usize = 1 << 20;
/// The most items that one dump lists, which bounds its time: a few milliseconds. (memcached bounds it by 2 MiB.)
const CACHEDUMP_ITEMS_MAX: usize = 5_000;

fn show(out: &mut Vec<u8>, reply: &Reply<'_>, lines: Lines) {
    for (name, value) in lines {
        reply.stat(out, &name, value.as_bytes());
    }
    reply.stats_end(out);
}

fn seconds(time: Duration) -> String {
    format!("{}.{:06}", time.as_secs(), time.subsec_micros())
}

/// `stats`: memcached's names in memcached's order. What has no counterpart here is 0.
fn general(shared: &Shared) -> Lines {
    let totals = shared.totals();
    let store = shared.store_stats();
    let now = shared.clock.now();
    let (user, system) = process::cpu_time();
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let items = store.ram_items + store.ssd_items;
    let config = &shared.config;
    let mut lines: Vec<(&'static str, String)> = Vec::new();
    let mut text = |name, value: String| lines.push((name, value));
    text("pid", std::process::id().to_string());
    text("uptime", shared.started.elapsed().as_secs().to_string());
    text("time", shared.clock.unix(now).to_string());
    text("version", VERSION.to_string());
    text("libevent", "none".to_string());
    text("pointer_size", usize::BITS.to_string());
    text("rusage_user", seconds(user));
    text("rusage_system", seconds(system));
    let mut number = |name, value: u64| text(name, value.to_string());
    number("max_connections", u64::from(config.conn_limit).min(descriptors));
    number("curr_connections", u64::from(shared.connections.load(Relaxed)));
    number("total_connections", totals.total_connections);
    if config.conn_limit_fast {
        number("rejected_connections", totals.rejected_connections);
    }
    number("connection_structures", u64::from(shared.connections.load(Relaxed)));
    number("response_obj_oom", 0);
    number("response_obj_count", 0);
    number("response_obj_bytes", shared.budget.used());
    for name in ["read_buf_count", "read_buf_bytes", "read_buf_bytes_free", "read_buf_oom", "reserved_fds"] {
        number(name, 0);
    }
    number("cmd_get", totals.cmd_get);
    number("cmd_set", totals.cmd_set);
    number("cmd_flush", totals.cmd_flush);
    number("cmd_touch", totals.cmd_touch);
    number("cmd_meta", totals.cmd_meta);
    number("get_hits", totals.get_hits);
    number("get_misses", totals.get_misses);
    number("get_expired", store.found_expired);
    number("get_flushed", store.found_flushed);
    number("delete_misses", totals.delete_misses);
    number("delete_hits", totals.delete_hits);
    number("incr_misses", totals.incr_misses);
    number("incr_hits", totals.incr_hits);
    number("decr_misses", totals.decr_misses);
    number("decr_hits", totals.decr_hits);
    number("cas_misses", totals.cas_misses);
    number("cas_hits", totals.cas_hits);
    number("cas_badval", totals.cas_badval);
    number("touch_hits", totals.touch_hits);
    number("touch_misses", totals.touch_misses);
    number("store_too_large", totals.store_too_large);
    number("store_no_memory", totals.store_no_memory);
    number("auth_cmds", 0);
    number("auth_errors", 0);
    if config.idle_timeout.is_some() {
        number("idle_kicks", totals.idle_kicks);
    }
    number("bytes_read", totals.bytes_read);
    number("bytes_written", totals.bytes_written);
    number("limit_maxbytes", shared.store.memory_limit_bytes());
    number("accepting_conns", u64::from(shared.accepting.load(Relaxed)));
    number("listen_disabled_num", totals.listen_disabled_num);
    number("time_in_listen_disabled_us", totals.time_in_listen_disabled_us);
    number("threads", config.threads as u64);
    number("conn_yields", totals.conn_yields);
    number("hash_power_level", u64::from(store.index_capacity.max(1).ilog2()));
    number("hash_bytes", store.index_bytes);
    number("hash_is_expanding", 0);
    for name in [
        "slab_reassign_rescues",
        "slab_reassign_chunk_rescues",
        "slab_reassign_inline_reclaim",
        "slab_reassign_busy_items",
        "slab_reassign_busy_deletes",
        "slab_reassign_busy_nomem",
        "slab_reassign_last_busy_status",
        "slab_reassign_running",
        "slabs_moved",
    ] {
        number(name, 0);
    }
    if config.lru_crawler {
        number("lru_crawler_running", 0);
        number("lru_crawler_starts", 0);
    }
    if config.lru_maintainer {
        number("lru_maintainer_juggles", 0);
    }
    for name in [
        "malloc_fails",
        "log_worker_dropped",
        "log_worker_written",
        "log_watcher_skipped",
        "log_watcher_sent",
        "log_watchers",
        "unexpected_napi_ids",
        "round_robin_fallback",
    ] {
        number(name, 0);
    }
    number("bytes", store.ram_item_bytes);
    number("curr_items", items);
    number("total_items", totals.total_items);
    number("slab_global_page_pool", store.ram_segments_free);
    number("expired_unfetched", store.expired_unread);
    number("evicted_unfetched", store.evicted_unread);
    if config.lru_maintainer {
        number("evicted_active", 0);
    }
    number("evictions", store.evictions);
    number("reclaimed", store.reclaimed);
    for name in ["crawler_reclaimed", "crawler_items_checked", "lrutail_reflocked"] {
        number(name, 0);
    }
    if config.lru_maintainer {
        for name in
            ["moves_to_cold", "moves_to_warm", "moves_within_lru", "direct_reclaims", "lru_bumps_dropped"]
        {
            number(name, 0);
        }
    }
    lines.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

/// `stats larder`. Its counters never go back, so that rates can be taken from them.
fn larder_lines(shared: &Shared) -> Lines {
    let totals = shared.lifetime();
    let store = shared.store.stats();
    let restart_items = match shared.store.start() {
        Start::Warm { items, .. } => Some(items),
        Start::Cold(_) => None,
    };
    let mut lines: Lines =
        vec![("version".into(), env!("CARGO_PKG_VERSION").to_string()), ("io".into(), shared.io.to_string())];
    let numbers = [
        ("memory_limit_bytes", shared.store.memory_limit_bytes()),
        ("arena_bytes", store.arena_bytes),
        ("ram_tier_bytes", store.ram_tier_bytes),
        ("index_bytes", store.index_bytes),
        ("index_capacity", store.index_capacity),
        ("index_entries", store.index_entries),
        ("index_evictions", store.index_evictions),
        ("table_bytes", store.table_bytes),
        ("buffer_bytes", store.buffer_bytes),
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
        ("ssd_is_off", u64::from(shared.store.ssd_is_off())),
        ("ssd_turned_off", store.ssd_turned_off),
        ("ssd_probes", store.ssd_probes),
        ("conn_bytes", shared.budget.used()),
        ("conn_memory_kicks", totals.unread_kicks + totals.unsent_kicks),
        ("conn_kicks_unread", totals.unread_kicks),
        ("conn_kicks_unsent", totals.unsent_kicks),
        ("shards", store.shards),
        ("shards_repaired", store.shards_repaired),
        ("shards_reset", store.shards_reset),
        ("restart_warm", u64::from(restart_items.is_some())),
        ("restart_items", restart_items.unwrap_or(0)),
    ];
    lines.extend(numbers.into_iter().map(|(name, value)| (name.into(), value.to_string())));
    lines
}

fn settings(shared: &Shared) -> Lines {
    let mut lines: Lines =
        shared.config.settings().into_iter().map(|(name, value)| (name.into(), value)).collect();
    for (name, value) in &mut lines {
        match name.as_ref() {
            "detail_enabled" => *value = if shared.prefixes.is_on() { "yes" } else { "no" }.to_string(),
            "maxbytes" => *value = shared.store.memory_limit_bytes().to_string(),
            "verbosity" => *value = shared.verbosity.load(Relaxed).to_string(),
            "tcpport" if shared.tcp_port.load(Relaxed) != 0 => {
                *value = shared.tcp_port.load(Relaxed).to_string()
            }
            _ => {}
        }
    }
    lines
}
