//! The cache in shared memory ([`L1`]) in front of servers: most reads ask no server, and of the processes of a host
//! one asks for all.
//!
//! ```text
//!   get --> L1 fresh --------------------------------------------> value
//!           L1 stale --> one process asks the server: unchanged? --> value, fresh again
//!                        the others meanwhile --------------------> the stale value
//!           L1 miss  --> one process asks the server -------------> value
//!                        the others wait for it
//! ```
//! An entry is fresh for [`TieredOptions::fresh`] from *before* it was asked for, so a value that a get returns was
//! the server's at most that long ago, whichever host changed it. What this host changes itself is seen by all its
//! processes at once. A stale entry is used for [`TieredOptions::stale`] more: while one process renews it, and while
//! the server does not answer.
//!
//! ```no_run
//! use larder_client::{Client, L1Options, Options, Put, Server, Tiered, TieredOptions};
//!
//! let client = Client::new(["10.0.0.1:11211".parse::<Server>()?], Options::default())?;
//! let cache = Tiered::new(L1Options::new().open("shop")?, client, TieredOptions::default());
//! cache.set(b"page:1", b"<html>", Put::for_seconds(300))?;
//! let page = cache.get(b"page:1")?.map(|cached| cached.value);
//! let made = cache.get_or_create(b"page:2", Put::for_seconds(300), || Ok::<_, std::fmt::Error>(b"<p>".to_vec()))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod create;
mod lifetime;
mod read;
mod write;

use std::time::Duration;

use crate::client::Client;
use crate::l1::{Hit, L1};

/// The mark of an entry that says that the server does not have the key.
const ABSENT: u8 = 1;

/// How long an entry is used, and waited for.
#[derive(Clone, Copy, Debug)]
pub struct TieredOptions {
    /// A value is used for so long without asking its server. 1 s by default.
    pub fresh: Duration,
    /// For so long behind that, a value is used while another thread or process renews it, or while its server does
    /// not answer; never beyond the item's own time to live. 10 s by default, 49 days at most.
    pub stale: Duration,
    /// That a server does not have a key is known for so long; zero, the default, for not at all.
    pub negative: Duration,
    /// The longest that a read waits for another thread or process that fetches the same key; then it asks itself.
    /// 1 s by default.
    pub wait: Duration,
    /// The longest that one host has to create a value while others wait for it; then they create it, too. In whole
    /// seconds, 1 at least; 10 s by default.
    pub lease: Duration,
}

impl Default for TieredOptions {
    fn default() -> Self {
        TieredOptions {
            fresh: Duration::from_secs(1),
            stale: Duration::from_secs(10),
            negative: Duration::ZERO,
            wait: Duration::from_secs(1),
            lease: Duration::from_secs(10),
        }
    }
}

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Shared memory; it is fresh.
    L1,
    /// Shared memory; it is stale: it is being renewed, or the server does not answer.
    Stale,
    /// The server sent it, or told that the one in shared memory is current.
    Server,
    /// The caller created it.
    Created,
}

/// A value that was found or created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cached {
    /// The value.
    pub value: Vec<u8>,
    /// The client flags that it was stored with.
    pub flags: u32,
    /// Where it came from.
    pub source: Source,
}

/// A cache in shared memory in front of servers. Clones, threads and forked children share it.
#[derive(Clone, Debug)]
pub struct Tiered {
    l1: L1,
    client: Client,
    options: TieredOptions,
}

/// An entry of the cache in shared memory, with its value.
struct Copy {
    hit: Hit,
    value: Vec<u8>,
}

impl Copy {
    fn cached(self, source: Source) -> Option<Cached> {
        let Copy { hit, value } = self;
        (hit.mark != ABSENT).then_some(Cached { value, flags: hit.flags, source })
    }
}

impl Tiered {
    /// Puts a cache in shared memory in front of servers. All processes that use this cache must use the same servers.
    pub fn new(l1: L1, client: Client, options: TieredOptions) -> Tiered {
        Tiered { l1, client, options }
    }

    /// Returns the cache in shared memory.
    pub fn l1(&self) -> &L1 {
        &self.l1
    }

    /// Returns the client of the servers.
    pub fn client(&self) -> &Client {
        &self.client
    }

    fn look(&self, key: &[u8]) -> Option<Copy> {
        let mut value = Vec::new();
        self.l1.get(key, &mut value).map(|hit| Copy { hit, value })
    }
}
