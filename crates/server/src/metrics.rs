//! Metrics as text for Prometheus: memcached_exporter's names, the usual ones of a process, and Larder's own.
//!
//! ```text
//!   exporter.rs   memcached_*, from the lines of `stats`    --+
//!   larder.rs     larder_*, from the counters and the store --+--> text.rs   families and samples
//!   mrc.rs        larder_mrc_*, from the last estimates     --+
//!   process.rs    process_*, from /proc                     --+
//! ```
//! A scrape takes each shard's lock for some hundred nanoseconds, as `stats` does, and no other lock of a request.

mod exporter;
mod larder;
mod mrc;
mod prefixes;
mod process;
mod text;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::shared::Shared;

pub use text::Format;
use text::{Exposition, Kind};

/// What is known of scrapes besides the figures themselves.
pub struct Scrapes {
    /// When the process started, in seconds since 1970: always the same, since Prometheus compares it.
    started_unix_s: f64,
    /// How long the last scrape took.
    last_ns: AtomicU64,
}

impl Scrapes {
    /// Returns the state of a process that started just now.
    pub fn new() -> Scrapes {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Scrapes { started_unix_s: now.as_millis() as f64 / 1000.0, last_ns: AtomicU64::new(0) }
    }
}

impl Default for Scrapes {
    fn default() -> Self {
        Scrapes::new()
    }
}

/// Returns all metrics in a format.
pub fn scrape(shared: &Shared, scrapes: &Scrapes, format: Format, shows_keys: bool) -> String {
    let began = Instant::now();
    let mut text = Exposition::new(format);
    // Both look at every shard and every segment of the SSD, so they are taken once.
    let (store, ages) = (shared.store.stats(), shared.store.ages(shared.clock.now()));
    exporter::add(&mut text, shared, &store, &ages);
    larder::add(&mut text, shared, &store, &ages);
    mrc::add(&mut text, shared);
    if shows_keys {
        prefixes::add(&mut text, shared);
    }
    process::add(&mut text, scrapes.started_unix_s);
    let last = Duration::from_nanos(scrapes.last_ns.load(Relaxed)).as_secs_f64();
    let help = "How long the scrape before this one took the daemon.";
    text.single("larder_scrape_duration_seconds", Kind::Gauge, help, last);
    scrapes.last_ns.store(began.elapsed().as_nanos() as u64, Relaxed);
    text.end()
}
