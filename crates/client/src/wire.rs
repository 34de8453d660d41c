//! The meta protocol as a client speaks it, sans-IO: requests in, bytes out; bytes in, replies out.

mod outbox;
mod reply;
mod request;

pub use outbox::Outbox;
pub use reply::{Facts, LINE_BYTES_MAX, Malformed, Reply, parse};
pub use request::{Arith, Check, Delete, Get, Mode, Request, Stale, Store};
