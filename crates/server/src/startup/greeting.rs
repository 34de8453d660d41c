//! The report of a daemon's start: warnings in the log, and on standard output its addresses, its memory and a line
//! to try.

use std::fmt::Write as _;
use std::io::Write as _;

use larder_device::Bytes;
use larder_store::{RECORD_ALIGN, RECORD_HEADER_BYTES, Stats, index_bytes_for};

use super::ssd::SsdTier;
use super::{host, memory};
use crate::config::{Config, ListenTls, Personality};
use crate::listener::Listener;
use crate::shared::Shared;

/// The percentage of both tiers, and of the index, that items fill. The rest is lost at the ends of segments and
/// pages.
const FILL_PERCENT: u64 = 99;
const INDEX_FILL_PERCENT: u64 = 95;
/// What items take of an index is told of so many, since it is no whole number of bytes for one.
const THOUSAND: u64 = 1000;
/// What an entry takes of any index.
const ENTRY_BYTES: u64 = 8;

/// Reports how the daemon starts. Under memcached's name it is as quiet as memcached, but for warnings.
pub fn greet(
    shared: &Shared,
    (listeners, http): (&[Listener], Option<String>),
    ssd: &SsdTier,
    said: Option<String>,
) {
    let config = &shared.config;
    let stats = shared.store.stats();
    for warning in
        config.warnings.iter().chain(&ssd.warnings).chain(&warnings(config, &stats, listeners, ssd))
    {
        tracing::warn!("{warning}");
    }
    if let Some(said) = said {
        tracing::info!("{said}");
    }
    if shared.logs(1) && !config.ignored.is_empty() {
        tracing::info!("accepted without effect: {}", config.ignored.join(" "));
    }
    if config.personality == Personality::Larder || shared.logs(1) {
        let mut text = introduction(config, &stats, listeners, ssd, shared.io);
        if let Some(name) = http {
            let _ = writeln!(text, "  HTTP    {name}");
        }
        let _ = std::io::stdout().lock().write_all(text.as_bytes());
    }
}

/// Returns the warnings about this configuration on this host.
fn warnings(config: &Config, stats: &Stats, listeners: &[Listener], ssd: &SsdTier) -> Vec<String> {
    let mut warnings = Vec::new();
    let wanted_bytes = config.memory_limit_bytes.saturating_add(config.conn_memory_bytes);
    if let Some(host_bytes) = host::memory_bytes().filter(|bytes| *bytes < wanted_bytes) {
        warnings.push(format!(
            "-m {} and --conn-memory {} are more than the {} of memory that this host or container has; \
             the kernel ends the daemon when it uses them: give less",
            Bytes(config.memory_limit_bytes),
            Bytes(config.conn_memory_bytes),
            Bytes(host_bytes)
        ));
    }
    let largest = stats.ram_tier_bytes / memory::RAM_PER_LARGEST_ITEM;
    if largest < config.item_size_max_bytes {
        let enough = memory::enough(config, &ssd.spans)
            .map_or(String::new(), |bytes| format!("-m {}, or ", bytes >> 20));
        warnings.push(format!(
            "-I allows items of {}, and {} of RAM are left for items: the largest that is stored has \
             about {}; give {enough}a smaller -I",
            Bytes(config.item_size_max_bytes),
            Bytes(stats.ram_tier_bytes),
            Bytes(largest)
        ));
    }
    let (fit, indexed) = items(config, stats, ssd);
    if indexed < fit {
        warnings.push(format!(
            "the index has entries for about {} items at most, and there would be room for {} items of {}; \
             beyond that the oldest are dropped: give more -m, or the size of your items as --item-size if \
             they are larger",
            about(indexed),
            about(fit),
            Bytes(config.item_size_bytes)
        ));
    }
    let is_open = |listener: &&Listener| listener.is_exposed && listener.tls == ListenTls::Off;
    let exposed = listeners.iter().find(is_open);
    if let Some(listener) = exposed.filter(|_| config.auth_file.is_none()) {
        warnings.push(format!(
            "listening on {} without authentication or TLS: any host that reaches the port reads and writes \
             all items; give -Y FILE, -Z or -l 127.0.0.1, or keep others out with a firewall",
            listener.name
        ));
    }
    let is_warm = config.memory_file.is_some() || config.state_file.is_some();
    if ssd.was_used() && !is_warm {
        warnings.push(
            "the SSD tier starts empty: items of an earlier run are not found again without its memory, \
             which --memory-file or --state-file keeps"
                .to_string(),
        );
    }
    warnings
}

/// Returns about how many items of the expected size fit into both tiers together, and how many the index can have
/// entries for.
fn items(config: &Config, stats: &Stats, ssd: &SsdTier) -> (u64, u64) {
    let ssd_bytes: u64 = ssd.spans.iter().map(|span| span.bytes).sum();
    let record_bytes =
        (config.item_size_bytes + RECORD_HEADER_BYTES as u64).next_multiple_of(RECORD_ALIGN as u64);
    // An index that grows takes its memory from the items in RAM.
    let (index_bytes, thousands_bytes) = match stats.index_capacity < stats.index_capacity_max {
        true => (stats.index_bytes, index_bytes_for(THOUSAND)),
        false => (0, 0),
    };
    let bytes = stats.ram_tier_bytes + index_bytes + ssd_bytes;
    let fit = bytes * THOUSAND / (record_bytes * THOUSAND + thousands_bytes) * FILL_PERCENT / 100;
    (fit, stats.index_capacity_max * INDEX_FILL_PERCENT / 100)
}

/// Returns a number with three significant digits: an estimate is not more exact than that.
fn about(number: u64) -> String {
    let unit = 10_u64.pow(number.max(1).ilog10().saturating_sub(2));
    let digits = (number / unit * unit).to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// Returns how large the index may become, and what hint it began with.
fn index(config: &Config, stats: &Stats) -> String {
    let most_bytes = stats.index_capacity_max * ENTRY_BYTES;
    let hint = config.index_memory_bytes.map(|bytes| format!(" (--index-memory {})", Bytes(bytes)));
    let hint = hint.unwrap_or_default();
    match stats.index_capacity < stats.index_capacity_max {
        true => format!("grows with the items, to {} at most{hint}", Bytes(most_bytes)),
        false => format!("keeps its size{hint}"),
    }
}

fn introduction(config: &Config, stats: &Stats, listeners: &[Listener], ssd: &SsdTier, io: &str) -> String {
    let names: Vec<&str> = listeners.iter().map(|listener| listener.name.as_str()).collect();
    let mut text = format!("larder {} listens on {}\n", env!("CARGO_PKG_VERSION"), names.join(", "));
    let _ = writeln!(
        text,
        "  memory  {}: items {}, index {}, buffers {}",
        Bytes(config.memory_limit_bytes),
        Bytes(stats.ram_tier_bytes),
        Bytes(stats.index_bytes),
        Bytes(stats.buffer_bytes + stats.table_bytes)
    );
    let _ = writeln!(text, "  index   {}", index(config, stats));
    match ssd.described.as_slice() {
        [] => text += "  SSD     none\n",
        devices => {
            for device in devices {
                let _ = writeln!(text, "  SSD     {device} by {io}");
            }
        }
    }
    let (fit, indexed) = items(config, stats, ssd);
    let (items, size) = (about(fit.min(indexed)), Bytes(config.item_size_bytes));
    let _ = writeln!(text, "  room    for about {items} items of {size}");
    // A line to try that had to authenticate first, or to shake hands, would be no line to try.
    match listeners.iter().find(|listener| config.auth_file.is_none() && listener.tls == ListenTls::Off) {
        Some(Listener { port: Some(port), .. }) => {
            text += "  try     printf 'set k 0 0 5\\r\\nhello\\r\\nget k\\r\\nquit\\r\\n' |\n";
            let _ = writeln!(text, "          bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}; cat >&3; cat <&3'");
        }
        Some(listener) => {
            let _ = writeln!(text, "  try     printf 'version\\r\\nquit\\r\\n' | nc -U {}", listener.name);
        }
        None => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_no_more_exact_than_they_are_known() {
        let shown = [0, 7, 999, 1_234, 111_069, 16_926_917].map(about);
        assert_eq!(shown, ["0", "7", "999", "1,230", "111,000", "16,900,000"]);
    }
}
