//! The lines of `stats settings`, with memcached's names, order and formats.

use std::path::Path;

use super::layer::Setting;
use super::listen::Protocol;
use super::option::Id;
use super::resolved::{Config, TcpPort};
use super::tls::KeyFormat;

impl Config {
    /// Returns the lines of `stats settings`. Names and order are those of memcached 1.6.45. Options without effect
    /// are shown as they were given, since tools compare them with their command line, and a last line names them.
    /// Values that change while the daemon runs (`verbosity`, `maxbytes`, `oldest`, `detail_enabled`, `tcpport` of
    /// a port the kernel picked) are those at start: overwrite them by name.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let mut lines = self.own_lines();
        lines.extend(self.memcached_lines());
        lines.extend(self.tls_lines());
        lines.extend(self.last_lines());
        if !self.ignored.is_empty() {
            lines.push(("ignored_options", self.ignored.join(",").replace(' ', "")));
        }
        lines
    }

    fn own_lines(&self) -> Vec<(&'static str, String)> {
        let port = match self.tcp_port {
            TcpPort::Off => "0".to_string(),
            TcpPort::Ephemeral => "-1".to_string(),
            TcpPort::Fixed(port) => port.to_string(),
        };
        let inter = if self.listen.iter().all(|listen| listen.host.is_none()) {
            "NULL".to_string()
        } else {
            let texts: Vec<_> =
                self.raw.all(Setting::Opt(Id::Listen)).iter().map(|g| g.text.as_str()).collect();
            texts.join(",")
        };
        let socket = self.unix_socket.as_ref();
        let protocol = match self.protocol {
            Protocol::Auto => "auto-negotiate",
            Protocol::Ascii => "ascii",
            Protocol::Binary => "binary",
        };
        vec![
            ("maxbytes", self.memory_limit_bytes.to_string()),
            ("maxconns", self.conn_limit.to_string()),
            ("tcpport", port),
            ("udpport", "0".to_string()),
            ("inter", inter),
            ("verbosity", self.verbosity.to_string()),
            ("oldest", "0".to_string()),
            ("evictions", on_off(self.evictions)),
            ("domain_socket", shown_path(socket.map(|s| s.path.as_path()), "NULL")),
            ("umask", format!("{:o}", socket.map_or(0o700, |s| s.mode))),
            ("shutdown_command", yes_no(self.shutdown)),
            ("growth_factor", format!("{:.2}", self.decimal_option(Id::SlabGrowthFactor, 1.25))),
            (
                "chunk_size",
                self.raw.last(Setting::Opt(Id::SlabMinSize)).map_or("48", |g| &g.text).to_string(),
            ),
            ("num_threads", self.threads.to_string()),
            ("stat_key_prefix", char::from(self.prefix_delimiter).to_string()),
            ("detail_enabled", yes_no(self.stats_detail)),
            ("reqs_per_event", self.reqs_per_event.to_string()),
            ("cas_enabled", yes_no(self.cas)),
            ("tcp_backlog", self.backlog.to_string()),
            ("binding_protocol", protocol.to_string()),
            ("auth_enabled_sasl", yes_no(self.auth_file.is_some() && self.protocol != Protocol::Ascii)),
            ("auth_enabled_ascii", shown_path(self.auth_file.as_deref(), "no")),
            ("item_size_max", self.item_size_max_bytes.to_string()),
            ("maxconns_fast", yes_no(self.conn_limit_fast)),
        ]
    }

    fn memcached_lines(&self) -> Vec<(&'static str, String)> {
        let text = |name| self.word(name).to_string();
        let kilobytes = |name| self.scaled(name, 1 << 10);
        let megabytes = |name| self.scaled(name, 1 << 20);
        vec![
            ("hashpower_init", text("hashpower")),
            ("slab_reassign", text("slab_reassign")),
            ("slab_automove", text("slab_automove")),
            ("slab_automove_ratio", self.decimal_word("slab_automove_ratio", 2)),
            ("slab_automove_window", text("slab_automove_window")),
            ("slab_chunk_max", kilobytes("slab_chunk_max")),
            ("lru_crawler", yes_no(self.lru_crawler)),
            ("lru_crawler_sleep", text("lru_crawler_sleep")),
            ("lru_crawler_tocrawl", text("lru_crawler_tocrawl")),
            ("tail_repair_time", text("tail_repair_time")),
            ("flush_enabled", yes_no(self.flush_all)),
            ("dump_enabled", yes_no(self.dumping)),
            ("hash_algorithm", text("hash_algorithm")),
            ("lru_maintainer_thread", yes_no(self.lru_maintainer)),
            ("lru_segmented", yes_no(self.lru_maintainer)),
            ("hot_lru_pct", text("hot_lru_pct")),
            ("warm_lru_pct", text("warm_lru_pct")),
            ("hot_max_factor", self.decimal_word("hot_max_factor", 2)),
            ("warm_max_factor", self.decimal_word("warm_max_factor", 2)),
            ("temp_lru", yes_no(self.raw.is_given(Setting::Word("temporary_ttl")))),
            ("temporary_ttl", text("temporary_ttl")),
            ("idle_timeout", self.idle_timeout.map_or(0, |t| t.as_secs()).to_string()),
            ("watcher_logbuf_size", kilobytes("watcher_logbuf_size")),
            ("worker_logbuf_size", kilobytes("worker_logbuf_size")),
            ("read_buf_mem_limit", megabytes("read_buf_mem_limit")),
            ("track_sizes", text("track_sizes")),
            ("inline_ascii_response", text("inline_ascii_resp")),
            ("ext_item_size", text("ext_item_size")),
            ("ext_item_age", text("ext_item_age")),
            ("ext_low_ttl", text("ext_low_ttl")),
            ("ext_recache_rate", text("ext_recache_rate")),
            ("ext_wbuf_size", megabytes("ext_wbuf_size")),
            ("ext_compact_under", text("ext_compact_under")),
            ("ext_drop_under", text("ext_drop_under")),
            ("ext_max_sleep", text("ext_max_sleep")),
            ("ext_max_frag", self.decimal_word("ext_max_frag", 2)),
            ("slab_automove_freeratio", self.decimal_word("slab_automove_freeratio", 3)),
            ("ext_drop_unread", text("ext_drop_unread")),
            ("ssl_enabled", yes_no(self.tls.is_some())),
        ]
    }

    fn tls_lines(&self) -> Vec<(&'static str, String)> {
        let shown =
            |name| Some(self.word(name)).filter(|text| !text.is_empty()).unwrap_or("NULL").to_string();
        let Some(tls) = &self.tls else { return Vec::new() };
        vec![
            ("ssl_chain_cert", shown("ssl_chain_cert")),
            ("ssl_key", shown("ssl_key")),
            ("ssl_verify_mode", shown("ssl_verify_mode")),
            ("ssl_keyformat", if tls.key_format == KeyFormat::Pem { "1" } else { "2" }.to_string()),
            ("ssl_ciphers", shown("ssl_ciphers")),
            ("ssl_ca_cert", shown("ssl_ca_cert")),
            ("ssl_wbuf_size", self.scaled("ssl_wbuf_size", 1 << 10)),
            ("ssl_session_cache", yes_no(tls.session_cache)),
            ("ssl_kernel_tls", yes_no(false)),
            ("ssl_min_version", if tls.only_tls13 { "tlsv1.3" } else { "tlsv1.2" }.to_string()),
        ]
    }

    fn last_lines(&self) -> Vec<(&'static str, String)> {
        vec![
            (
                "num_napi_ids",
                self.raw.last(Setting::Opt(Id::NapiIds)).map_or("(null)", |g| &g.text).to_string(),
            ),
            ("memory_file", shown_path(self.memory_file.as_deref(), "(null)")),
            ("client_flags_size", "4".to_string()),
        ]
    }

    fn decimal_option(&self, id: Id, default: f64) -> f64 {
        self.raw.last(Setting::Opt(id)).and_then(|given| given.text.parse().ok()).unwrap_or(default)
    }

    fn decimal_word(&self, name: &str, places: usize) -> String {
        let text = self.word(name);
        text.parse::<f64>().map_or_else(|_| text.to_string(), |x| format!("{x:.places$}"))
    }

    fn scaled(&self, name: &str, unit: u64) -> String {
        let text = self.word(name);
        text.parse::<u64>().map_or_else(|_| text.to_string(), |n| n.saturating_mul(unit).to_string())
    }
}

fn yes_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_string()
}

fn on_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_string()
}

fn shown_path(path: Option<&Path>, none: &str) -> String {
    path.map_or_else(|| none.to_string(), |path| path.display().to_string())
}
