//! Keys to values over a RAM tier and an SSD tier, with one exact set of semantics over both.
//!
//! Sans-IO: the store says what to read and write, its caller does it, so that a test can drive all of it in
//! one thread with a simulated device, a simulated clock and a seed. It knows nothing of sockets or of
//! memcached's wire.
//!
//! ```text
//!   request --> shard (lock) --> index --+--> RAM record ------------------------------> Step::Done
//!                                        |
//!                                        +--> SSD place --> Step::Read(plan) . . caller reads . . called again
//!
//!   eviction --> SSD write buffer --> next_write() . . caller writes . . complete_write()
//! ```
//! A cache of RAM alone needs no reads and writes:
//!
//! ```
//! use larder_store::{Call, Config, Fetch, OnFull, Payload, Put, PutMode, PutResult, Seconds, Step, Store};
//!
//! let store = Store::open(&Config::new(16 << 20))?;
//! let key = b"answer";
//! let call = Call { key, hash: store.hash(key), now: Seconds(0), loaded: None, on_full: OnFull::Drop };
//! let stored = store.put(&call, &Put::new(PutMode::Set), &mut Payload::Bytes(b"42"));
//! assert!(matches!(stored, Step::Done(PutResult::Stored(_))));
//! let value = store.fetch(&call, &Fetch::default(), |found| found.map(|found| found.value.to_vec()));
//! assert_eq!(value.done().flatten().as_deref(), Some(&b"42"[..]));
//! # Ok::<(), larder_store::OpenError>(())
//! ```
//! `examples/embed.rs` adds a file on an SSD.
//!
//! In reading order: [`clock`], `index` (eight bytes an item), `record`, `memory` and `ram::pool` (the owners of
//! memory), `ssd` (pages, segments, streams), `shard` (the invariants), `policy` (which items leave RAM, and
//! where to), `commands`, [`store`], and the `recover` modules (a restart).

#![warn(clippy::missing_errors_doc)]

mod arena;
pub mod clock;
mod commands;
pub mod crash;
mod departures;
mod error;
mod forecast;
mod header;
mod index;
mod policy;
mod prefetch;
mod ram;
mod read;
mod record;
pub mod sample;
pub mod shadow;
mod shard;
mod ssd;
pub mod store;
mod tiers;
mod value;

pub use clock::{Expiry, Seconds};
pub use commands::*;
pub use departures::Departed;
pub use error::OpenError;
pub use forecast::{
    Forecast, cleaning_factor, index_bytes_for, kept_index_bytes, ssd_bytes_for, ssd_bytes_of_record,
};
pub use header::{Cold, MadeFor};
pub use index::hash::KeyHash;
pub use policy::admission::Admission;
pub use read::{Loaded, ReadPlan};
pub use record::{HEADER_BYTES as RECORD_HEADER_BYTES, RAM_ALIGN as RECORD_ALIGN};
pub use shard::evict::OnFull;
pub use ssd::health::SsdEvent;
pub use ssd::write::{SharedWrite, WriteJob};
pub use ssd::{PAGE_BYTES, SEGMENT_BYTES, SSD_VALUE_BYTES_MAX};
pub use store::{
    Ages, Config, Dump, Geometry, LOG_RECORD_BYTES_MAX, Listed, ListedItem, MemoryFile, Span, SsdSurvey,
    Start, Stats, Step, Store,
};
pub use tiers::Tier;
pub use value::{LargeValue, Value, ValueParts};
