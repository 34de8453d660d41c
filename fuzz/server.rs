//! Of the daemon, without its sockets: connections over a simulated store, TLS, HTTP, configurations.

use crate::harness;

#[path = "../crates/server/tests/fuzz/binary.rs"]
pub mod binary;
#[path = "../crates/server/tests/tls/certificates.rs"]
mod certificates;
#[path = "../crates/server/tests/fuzz/configuration.rs"]
pub mod configuration;
#[path = "../crates/server/tests/fuzz/connection.rs"]
pub mod connection;
#[path = "../crates/server/tests/tls/link.rs"]
mod link;
#[path = "../crates/server/tests/fuzz/meta.rs"]
pub mod meta;
#[path = "../crates/server/tests/fuzz/stream.rs"]
pub mod stream;
#[path = "../crates/server/tests/support/mod.rs"]
mod support;
#[path = "../crates/server/tests/fuzz/web.rs"]
pub mod web;
