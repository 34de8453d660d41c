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
//! In reading order: [`clock`], `entry` and `index` (what an item costs), `record`, `ram::pool` (who owns
//! memory), `ssd` (pages, segments, streams), `shard` (the invariants), `evict` and `admit` (who leaves and
//! where to), `ops` (what commands mean), [`store`], `header` and the `attach` modules (what a later process
//! goes on with).

mod admit;
mod arena;
pub mod clock;
pub mod crash;
mod entry;
mod error;
mod evict;
mod hash;
mod header;
mod index;
mod layout;
mod ops;
mod prefetch;
mod ram;
mod read;
mod record;
mod shard;
mod ssd;
pub mod store;
mod tiers;
mod value;

pub use admit::Admission;
pub use clock::{Expiry, Seconds};
pub use error::OpenError;
pub use evict::Patience;
pub use hash::KeyHash;
pub use header::{Cold, MadeFor};
pub use ops::*;
pub use read::{Loaded, ReadPlan};
pub use ssd::health::SsdEvent;
pub use ssd::write::{SharedWrite, WriteJob};
pub use ssd::{PAGE_BYTES, SEGMENT_BYTES, SSD_VALUE_BYTES_MAX};
pub use store::{Ages, Config, ListedItem, MemoryFile, Span, Start, Stats, Step, Store};
pub use value::{LargeValue, Value, ValueParts};
