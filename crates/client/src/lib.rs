//! A client for memcached servers, and for Larder in particular, with a cache in shared memory in front of them
//! that all processes of a host share.

mod address;
mod breaker;
mod budget;
mod client;
mod clock;
mod error;
mod exchange;
mod key;
mod options;
mod pool;
pub mod routing;
pub mod wire;

pub use address::{Address, BadServer, PORT_DEFAULT, Server};
pub use breaker::{Thresholds, Word};
pub use client::{Cas, Client, Count, Counter, Fetch, Fetched, Item, Lease, Put, Quiet};
pub use clock::{Clock, HostClock};
pub use error::{Doing, Error, Result};
pub use key::{BadKey, KEY_BYTES_MAX, Key};
pub use options::{OnDown, Options, WordOf};
