//! `stats`: memcached's names in memcached's order. A figure without a counterpart here is 0.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use larder_protocol::VERSION;
use larder_store::Stats;
use rustix::process::{Resource, getrlimit};

use super::Lines;
use crate::counters::Totals;
use crate::process;
use crate::shared::Shared;
use crate::watchers::WatchStats;

/// Returns the lines. `store` has the store's figures since the last reset.
pub(super) fn lines(shared: &Shared, store: Stats) -> Lines {
    let totals = shared.totals();
    let mut general = General { lines: Vec::new(), shared, totals, store };
    general.process();
    general.connections();
    general.commands();
    general.tls();
    general.server();
    general.absent();
    general.watchers();
    general.items();
    general.lines
}

/// The lines so far, and the figures they are taken from.
struct General<'a> {
    lines: Lines,
    shared: &'a Shared,
    totals: Totals,
    store: Stats,
}

impl General<'_> {
    fn text(&mut self, name: &'static str, value: String) {
        self.lines.push((name.into(), value));
    }

    fn number(&mut self, name: &'static str, value: u64) {
        self.text(name, value.to_string());
    }

    fn zeros(&mut self, names: &[&'static str]) {
        names.iter().for_each(|name| self.number(name, 0));
    }

    fn process(&mut self) {
        let shared = self.shared;
        let (user, system) = process::cpu_time();
        self.text("pid", std::process::id().to_string());
        self.text("uptime", shared.started.elapsed().as_secs().to_string());
        self.text("time", shared.clock.unix(shared.clock.now()).to_string());
        self.text("version", VERSION.to_string());
        self.text("libevent", "none".to_string());
        self.text("pointer_size", usize::BITS.to_string());
        self.text("rusage_user", seconds(user));
        self.text("rusage_system", seconds(system));
    }

    fn connections(&mut self) {
        let shared = self.shared;
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let open = u64::from(shared.connections.load(Relaxed));
        self.number("max_connections", u64::from(shared.config.conn_limit).min(descriptors));
        self.number("curr_connections", open);
        self.number("total_connections", self.totals.total_connections);
        if shared.config.conn_limit_fast {
            self.number("rejected_connections", self.totals.rejected_connections);
        }
        self.number("connection_structures", open);
        self.zeros(&["response_obj_oom", "response_obj_count"]);
        self.number("response_obj_bytes", shared.budget.used());
        self.zeros(&[
            "read_buf_count",
            "read_buf_bytes",
            "read_buf_bytes_free",
            "read_buf_oom",
            "reserved_fds",
        ]);
    }

    fn commands(&mut self) {
        let Totals { cmd_get, cmd_set, cmd_flush, cmd_touch, cmd_meta, get_hits, get_misses, .. } =
            self.totals;
        self.number("cmd_get", cmd_get);
        self.number("cmd_set", cmd_set);
        self.number("cmd_flush", cmd_flush);
        self.number("cmd_touch", cmd_touch);
        self.number("cmd_meta", cmd_meta);
        self.number("get_hits", get_hits);
        self.number("get_misses", get_misses);
        self.number("get_expired", self.store.found_expired);
        self.number("get_flushed", self.store.found_flushed);
        self.number("delete_misses", self.totals.delete_misses);
        self.number("delete_hits", self.totals.delete_hits);
        self.number("incr_misses", self.totals.incr_misses);
        self.number("incr_hits", self.totals.incr_hits);
        self.number("decr_misses", self.totals.decr_misses);
        self.number("decr_hits", self.totals.decr_hits);
        self.number("cas_misses", self.totals.cas_misses);
        self.number("cas_hits", self.totals.cas_hits);
        self.number("cas_badval", self.totals.cas_badval);
        self.number("touch_hits", self.totals.touch_hits);
        self.number("touch_misses", self.totals.touch_misses);
        self.number("store_too_large", self.totals.store_too_large);
        self.number("store_no_memory", self.totals.store_no_memory);
        self.number("auth_cmds", self.totals.auth_cmds);
        self.number("auth_errors", self.totals.auth_errors);
        if self.shared.config.idle_timeout.is_some() {
            self.number("idle_kicks", self.totals.idle_kicks);
        }
    }

    fn tls(&mut self) {
        let Some(tls) = &self.shared.tls else { return };
        if self.shared.config.tls.as_ref().is_some_and(|options| options.session_cache) {
            self.number("ssl_new_sessions", self.totals.ssl_new_sessions);
        }
        self.number("ssl_handshake_errors", self.totals.ssl_handshake_errors);
        self.number("ssl_proto_errors", self.totals.ssl_proto_errors);
        self.number("time_since_server_cert_refresh", tls.age().as_secs());
    }

    fn server(&mut self) {
        let shared = self.shared;
        self.number("bytes_read", self.totals.bytes_read);
        self.number("bytes_written", self.totals.bytes_written);
        self.number("limit_maxbytes", shared.store.memory_limit_bytes());
        self.number("accepting_conns", u64::from(shared.accepting.load(Relaxed)));
        self.number("listen_disabled_num", self.totals.listen_disabled_num);
        self.number("time_in_listen_disabled_us", self.totals.time_in_listen_disabled_us);
        self.number("threads", shared.config.threads as u64);
        self.number("conn_yields", self.totals.conn_yields);
        self.number("hash_power_level", u64::from(self.store.index_capacity.max(1).ilog2()));
        self.number("hash_bytes", self.store.index_bytes);
        self.number("hash_is_expanding", 0);
    }

    /// Adds the figures of memcached's slabs and LRU threads, of which there are none.
    fn absent(&mut self) {
        self.zeros(&[
            "slab_reassign_rescues",
            "slab_reassign_chunk_rescues",
            "slab_reassign_inline_reclaim",
            "slab_reassign_busy_items",
            "slab_reassign_busy_deletes",
            "slab_reassign_busy_nomem",
            "slab_reassign_last_busy_status",
            "slab_reassign_running",
            "slabs_moved",
        ]);
        if self.shared.config.lru_crawler {
            self.number("lru_crawler_running", u64::from(self.shared.is_listing.load(Relaxed)));
            self.number("lru_crawler_starts", self.totals.key_listings);
        }
        if self.shared.config.lru_maintainer {
            self.number("lru_maintainer_juggles", 0);
        }
        self.number("malloc_fails", 0);
    }

    fn watchers(&mut self) {
        let WatchStats { watchers, lines, sent, skipped, dropped } = self.shared.watch_stats();
        self.number("log_worker_dropped", dropped);
        self.number("log_worker_written", lines);
        self.number("log_watcher_skipped", skipped);
        self.number("log_watcher_sent", sent);
        self.number("log_watchers", watchers);
        self.zeros(&["unexpected_napi_ids", "round_robin_fallback"]);
    }

    fn items(&mut self) {
        let has_maintainer = self.shared.config.lru_maintainer;
        self.number("bytes", self.store.ram_item_bytes);
        self.number("curr_items", self.store.ram_items + self.store.ssd_items);
        self.number("total_items", self.totals.total_items);
        self.number("slab_global_page_pool", self.store.ram_segments_free);
        self.number("expired_unfetched", self.store.expired_unread);
        self.number("evicted_unfetched", self.store.evicted_unread);
        if has_maintainer {
            self.number("evicted_active", 0);
        }
        self.number("evictions", self.store.evictions);
        self.number("reclaimed", self.store.reclaimed);
        self.zeros(&["crawler_reclaimed", "crawler_items_checked", "lrutail_reflocked"]);
        if has_maintainer {
            self.zeros(&["moves_to_cold", "moves_to_warm", "moves_within_lru", "direct_reclaims"]);
            self.number("lru_bumps_dropped", 0);
        }
    }
}

fn seconds(time: Duration) -> String {
    format!("{}.{:06}", time.as_secs(), time.subsec_micros())
}
