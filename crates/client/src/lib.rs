//! A client for memcached servers, and for Larder in particular, with a cache in shared memory in front of them
//! that all processes of a host share.
//!
//! ```no_run
//! use larder_client::{Client, Options, Put, Server};
//!
//! let servers = ["10.0.0.1:11211", "10.0.0.2:11211"].map(|server| server.parse::<Server>());
//! let servers: Vec<Server> = servers.into_iter().collect::<Result<_, _>>()?;
//! let cache = Client::new(servers, Options::default())?;
//! cache.set(b"page:1", b"<html>", Put::for_seconds(300))?;
//! let page: Option<Vec<u8>> = cache.get(b"page:1")?.map(|item| item.value);
//! for item in cache.get_many(&["page:1", "page:2"]) {
//!     match item {
//!         Ok(Some(item)) => println!("{} bytes", item.value.len()),
//!         Ok(None) => println!("a miss"),
//!         Err(error) => println!("{error}"),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//!   client     get, set, incr ... of one key or many; retries and the breakers of servers
//!     |   |
//!     |   +------> routing     keys to servers, as other clients place them
//!     v
//!   exchange   batches on several connections at once, written and read interleaved
//!     |   |
//!     |   +------> wire        requests to bytes, bytes to replies; no sockets
//!     v
//!   pool       the connections of this process to one server
//! ```

mod address;
mod breaker;
mod budget;
mod client;
mod clock;
mod error;
mod exchange;
mod key;
pub mod l1;
pub mod limit;
mod login;
#[cfg(test)]
mod model;
mod near;
mod options;
mod pool;
mod process;
mod shared_breakers;
mod simulation;
pub mod tiered;
mod tls;
pub mod wire;

/// Which server a key belongs to.
pub use larder_placement as routing;

pub use address::{Address, BadServer, PORT_DEFAULT, Server};
pub use breaker::{Thresholds, Word};
pub use client::{
    Announce, Cas, Client, Count, Counter, Fetch, Fetched, Item, KeyList, Lease, ListedKey, NewItem, Put,
    Quiet, Watch, WatchLine,
};
pub use clock::{Clock, HostClock, UnixClock};
pub use error::{Doing, Error, Result};
pub use key::{BadKey, KEY_BYTES_MAX, Key};
pub use l1::{Entry, Hit, L1, L1Error, L1Options, L1Process, L1Processes, L1Stats, Stored, Ticket, now_ms};
pub use login::{BadLogin, Login};
pub use near::{Near, NearOptions};
pub use options::{OnDown, Options, WordOf};
pub use shared_breakers::breakers_in;
pub use tiered::{Cached, Push, Source, Tiered, TieredOptions, Times, Unreachable};
pub use tls::{BadTls, Tls, TlsOptions, Trust};
