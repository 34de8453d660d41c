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
mod listener;
mod many;
mod push;
mod read;
mod times;
mod write;

use std::sync::Arc;
use std::time::Duration;

use crate::client::Client;
use crate::l1::{Hit, L1, now_ms, now_us};
use crate::simulation::{self, Fault, is_broken};
use times::{Prefixes, Use};

pub use times::Times;

pub use push::Push;
use push::Threads;

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
    /// In the last part of `fresh`, in percent, one process renews a value that is read, while the others use it: so a
    /// value that is read often is never stale. 0, the default, for none.
    pub early_percent: u32,
    /// What a read returns if there is no value that may still be used, and the server does not answer.
    pub unreachable: Unreachable,
    /// The longest that a read waits for another thread or process that fetches the same key; then it asks itself.
    /// 1 s by default.
    pub wait: Duration,
    /// The longest that one host has to create a value while others wait for it; then one of those creates it, and a
    /// value that is created later than this is not stored. In whole seconds, 1 at least; 10 s by default.
    pub lease: Duration,
    /// Uses values for longer whose changes their server announces, as Larder does: they are as current as with a
    /// request for each. One process of the host listens, on a thread of its own. `None`, the default, for not at all.
    pub push: Option<Push>,
}

impl Default for TieredOptions {
    fn default() -> Self {
        TieredOptions {
            fresh: Duration::from_secs(1),
            stale: Duration::from_secs(10),
            negative: Duration::ZERO,
            early_percent: 0,
            unreachable: Unreachable::Error,
            wait: Duration::from_secs(1),
            lease: Duration::from_secs(10),
            push: None,
        }
    }
}

/// What a read returns if shared memory has no value that may still be used, and the server does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unreachable {
    /// The error.
    #[default]
    Error,
    /// The same as if there were no value.
    Miss,
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
    prefixes: Prefixes,
    /// [`Push::exact_within`] in microseconds; 0 for none.
    exact_us: u64,
    /// The times of a call, instead of those of its key.
    call: Option<Times>,
    threads: Arc<Threads>,
}

/// An entry of the cache in shared memory, with its value.
struct Copy {
    hit: Hit,
    value: Vec<u8>,
    /// Whether it may be used while it is not fresh.
    is_usable: bool,
    /// Whether it may not be used while its server answers.
    must_ask: bool,
    /// Whether it should be renewed, though it is fresh.
    is_due: bool,
}

impl Copy {
    /// Returns the value if it may be used without asking the server; else the copy.
    fn fresh(self) -> Result<Cached, Copy> {
        if !self.hit.is_fresh || self.hit.mark == ABSENT {
            return Err(self);
        }
        let Copy { hit, value, .. } = self;
        Ok(Cached { value, flags: hit.flags, source: Source::L1 })
    }

    fn cached(self, source: Source) -> Option<Cached> {
        let Copy { hit, value, is_usable, .. } = self;
        let is_usable = hit.is_fresh || is_usable || source != Source::Stale;
        (hit.mark != ABSENT && is_usable).then_some(Cached { value, flags: hit.flags, source })
    }

    /// Returns whether it may not be used while another one renews it.
    fn must_wait(&self) -> bool {
        self.must_ask && !is_broken(Fault::InexactBesideRenewal)
    }

    /// Returns where the value comes from if no server is asked.
    fn source(&self) -> Source {
        if self.hit.is_fresh { Source::L1 } else { Source::Stale }
    }
}

impl Tiered {
    /// Puts a cache in shared memory in front of servers. All processes that use this cache must use the same servers.
    pub fn new(l1: L1, client: Client, options: TieredOptions) -> Tiered {
        let exact_us = options.push.map_or(0, |push| push.exact_us());
        let (prefixes, threads) = (Prefixes::default(), Arc::default());
        Tiered { l1, client, options, prefixes, exact_us, call: None, threads }
    }

    /// Sets other times for the keys that begin with `prefix`; of several prefixes the longest decides. All processes
    /// that use the cache must set the same.
    #[must_use]
    pub fn with_prefix(mut self, prefix: &[u8], times: Times) -> Tiered {
        self.prefixes.set(prefix, times);
        self
    }

    /// Returns the same cache for calls that use entries for other times: fresher ones, or older ones. An entry is
    /// found for no longer than the times of its key allow. What these calls store is fresh for the times of its key.
    #[must_use]
    pub fn using(&self, times: Times) -> Tiered {
        Tiered { call: Some(times), ..self.clone() }
    }

    /// Returns the times for which a key's entries are stored.
    pub fn times_of(&self, key: &[u8]) -> Times {
        let TieredOptions { fresh, stale, negative, .. } = self.options;
        self.prefixes.of(key).unwrap_or(Times { fresh, stale, negative })
    }

    /// Returns the options with the times of a key.
    fn options_of(&self, key: &[u8]) -> TieredOptions {
        let Times { fresh, stale, negative } = self.times_of(key);
        TieredOptions { fresh, stale, negative, ..self.options }
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
        self.look_into(key, Vec::new())
    }

    /// Returns the entry with its value in `value`, whose memory is used again.
    fn look_into(&self, key: &[u8], mut value: Vec<u8>) -> Option<Copy> {
        simulation::step();
        let mut hit = self.find(key, &mut value)?;
        let Use { is_fresh, is_usable, is_due } = self.judge(key, &hit);
        hit.is_fresh = is_fresh;
        let must_ask = self.exact_us > 0 && !is_fresh && (hit.feed != 0 || self.announces(key));
        Some(Copy { hit, value, is_usable, must_ask, is_due })
    }

    /// Copies the value of an entry, which is fresh only if it is as exact as the options want.
    #[inline]
    fn find(&self, key: &[u8], value: &mut Vec<u8>) -> Option<Hit> {
        match self.exact_us {
            0 => self.l1.get(key, value),
            within_us => {
                let mut hit = self.l1.get_exact(key, value, within_us)?;
                // Between two feeds, such as after the process that listened has ended, nothing is announced.
                if hit.feed == 0 && hit.is_fresh && hit.mark != ABSENT && self.announces(key) {
                    let fresh_ms = u64::try_from(self.times_of(key).fresh.as_millis()).unwrap_or(u64::MAX);
                    let asked_us = hit.fresh_until_ms.saturating_sub(fresh_ms) * 1000;
                    hit.is_fresh = now_us().saturating_sub(asked_us) < within_us;
                }
                Some(hit)
            }
        }
    }

    /// Returns whether the server of a key has ever announced changes to this host.
    fn announces(&self, key: &[u8]) -> bool {
        self.l1.feed(self.client.server_of(key)).is_some_and(|feed| feed.has_begun())
    }

    /// Returns what an entry may be used for.
    #[inline]
    fn judge(&self, key: &[u8], hit: &Hit) -> Use {
        if self.call.is_none() && self.options.early_percent == 0 {
            return Use { is_fresh: hit.is_fresh, is_usable: true, is_due: false };
        }
        let own = self.times_of(key);
        let times = (&own, self.call.as_ref().unwrap_or(&own));
        let used = Use::of(hit, hit.mark == ABSENT, times, self.options.early_percent, now_ms());
        // An item that expires is found for less than the times of its key: then it is used as long as it is found.
        Use { is_usable: used.is_usable || self.call.is_none(), ..used }
    }
}
