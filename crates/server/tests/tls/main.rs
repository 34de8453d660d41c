//! TLS: records without sockets, and workers with them.

mod certificates;
#[path = "../../../../fuzz/harness.rs"]
mod harness;
mod link;
mod records;
#[path = "../fuzz/stream.rs"]
mod stream;
#[path = "../support/mod.rs"]
mod support;
mod workers;
