//! `larder-bench` as a library: the parts of its commands. It never uses `larder-store` or a cache
//! client, so that a bug of the measured server cannot hide inside the instrument.
//!
//! ```text
//!   command line -> plan -> engine (one event loop a thread) -> result::Document -> report (HTML, Markdown, CSV)
//!                              |  wire, workload, latency               ^
//!                              +-- watch (the server's /proc, stats) ---+---- checks, stats (intervals, knee)
//! ```
#![forbid(unsafe_code)]

pub mod calibrate;
pub mod checks;
pub mod clock;
pub mod commands;
pub mod counter;
pub mod engine;
pub mod environment;
pub mod fleet;
pub mod latency;
pub mod net;
pub mod null_server;
pub mod random;
pub mod report;
pub mod result;
pub mod scenario;
pub mod show;
pub mod stats;
pub mod sweep;
pub mod trace;
pub mod transport;
pub mod watch;
pub mod wire;
pub mod workload;
