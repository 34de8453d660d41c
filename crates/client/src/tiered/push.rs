//! Announcements of changes: which entries are fresh for as long as a server announces, and the threads that listen.

use std::sync::{Arc, Once};
use std::time::Duration;

use super::lifetime::Lifetime;
use super::listener::Listener;
use super::{Tiered, TieredOptions};
use crate::client::{Announce, Client, Item};
use crate::l1::{EPOCH_MS_MIN, FeedId, L1, now_ms};
use crate::process::PerProcess;
use crate::simulation;

/// Bounds of [`Push::silence`].
const SILENCE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(30));
/// Bounds of [`Push::exact_within`].
const EXACT: (Duration, Duration) = (Duration::from_micros(200), Duration::from_secs(16));
/// The most of [`Push::keep`]: an entry that is kept longer could meet the number of its feed again.
const KEEP_MAX: Duration = Duration::from_millis(900 * EPOCH_MS_MIN);

/// How long entries are used whose changes the server announces.
#[derive(Clone, Copy, Debug)]
pub struct Push {
    /// An entry is used for so long without asking its server, as long as the server is heard. 10 minutes by default,
    /// 15 at most.
    pub keep: Duration,
    /// A server is taken to announce for so long after it was last asked whether it is there, and answered. So this is
    /// the longest that a change goes unseen while a connection or process hangs. 1 s by default, 50 ms to 30 s.
    pub silence: Duration,
    /// No read uses a value whose server, while it answers, had replaced it so long before the read, whatever hangs or
    /// is late: a value of which that is not known is asked for, without being sent again if it is current. `None` for
    /// `silence` as the only bound. 100 ms by default, 200 us to 16 s; sensible from two round trips on.
    pub exact_within: Option<Duration>,
}

impl Default for Push {
    fn default() -> Self {
        Push {
            keep: Duration::from_secs(600),
            silence: Duration::from_secs(1),
            exact_within: Some(Duration::from_millis(100)),
        }
    }
}

impl Push {
    /// Returns [`exact_within`](Self::exact_within) in microseconds; 0 for `None`.
    pub(super) fn exact_us(&self) -> u64 {
        let within = self.exact_within.map(|within| within.clamp(EXACT.0, EXACT.1));
        within.map_or(0, |within| u64::try_from(within.as_micros()).unwrap_or(u64::MAX))
    }
}

/// The threads of each process that listen to announcements.
#[derive(Debug, Default)]
pub(super) struct Threads {
    started: PerProcess<Started>,
}

#[derive(Debug)]
struct Started(Once);

impl Default for Started {
    fn default() -> Self {
        Started(Once::new())
    }
}

impl Threads {
    /// Returns what listens to a server until this is dropped.
    fn listener(self: &Arc<Self>, l1: &L1, client: &Client, push: Push, server: usize) -> Listener<Self> {
        let silence = push.silence.clamp(SILENCE.0, SILENCE.1);
        let keep = push.keep.min(KEEP_MAX);
        Listener { l1: l1.clone(), client: client.clone(), server, silence, keep, user: Arc::downgrade(self) }
    }

    /// Starts the threads of this process, one for each server, unless they run. They end when this is dropped.
    fn start(self: &Arc<Self>, l1: &L1, client: &Client, push: Push) {
        // Simulated threads listen where their program says so.
        if simulation::process().is_some() {
            return;
        }
        let start = || {
            for server in 0..client.servers().count() {
                let listener = self.listener(l1, client, push, server);
                // Without a thread no server is heard, and entries are fresh for their ordinary time.
                let _ = std::thread::Builder::new().name("larder-push".into()).spawn(move || listener.run());
            }
        };
        self.started.get(|_| ()).0.call_once(start);
    }
}

/// A feed that lasts, and the wish to be told of a key's change by it.
#[derive(Clone, Copy)]
pub(super) struct Fed {
    feed: FeedId,
    /// The longest that its entries may be fresh.
    keep: Duration,
    pub(super) announce: Announce,
}

impl Tiered {
    /// Returns the feed under which a key can be fetched now; `None` if its server announces nothing.
    pub(super) fn feed_of(&self, key: &[u8]) -> Option<Fed> {
        let push = self.options.push?;
        self.threads.start(&self.l1, &self.client, push);
        let server = self.client.server_of(key);
        let (feed, subscription, keep_ms) = self.l1.feed(server)?.current(now_ms())?;
        let keep = push.keep.min(Duration::from_millis(keep_ms));
        Some(Fed { feed, keep, announce: Announce { server, subscription, token: self.l1.token(key) } })
    }

    /// Listens to the first server on this thread.
    #[cfg(test)]
    pub(crate) fn listen(&self) {
        let push = self.options.push.unwrap_or_default();
        self.threads.listener(&self.l1, &self.client, push, 0).run();
    }

    /// Returns whether the changes of a key are being announced, so that its value is used for the time that
    /// [`Push::keep`] sets. That begins a moment after the first read that asks a server, and not at all with servers
    /// that announce nothing.
    pub fn is_pushed(&self, key: &[u8]) -> bool {
        self.feed_of(key).is_some()
    }
}

/// Returns how long an item may be used that was asked for at `asked_ms` under a feed, and the feed, if its changes
/// will be announced; else how long it may be used without.
pub(super) fn life_of(
    options: &TieredOptions,
    asked_ms: u64,
    fed: Option<Fed>,
    item: &Item,
) -> (Lifetime, FeedId) {
    let life = Lifetime::of_item(options, asked_ms, item.ttl_s);
    let fed = fed.filter(|_| item.is_announced);
    match fed.and_then(|fed| Some((life.pushed(options, fed.keep, item.ttl_s)?, fed))) {
        Some((life, fed)) => (life, fed.feed),
        None => (life, 0),
    }
}

impl Lifetime {
    /// Returns this without the time in which nobody is asked.
    pub(super) fn stale_at_once(self) -> Lifetime {
        Lifetime { fresh_until_ms: self.asked_ms, ..self }
    }

    /// Returns how long the item may be used while its changes are announced; `None` if that is no longer than without.
    /// An expiry is not announced. The server counts it in whole seconds, so up to one of those it told has passed.
    fn pushed(&self, options: &TieredOptions, keep: Duration, ttl_s: Option<i64>) -> Option<Lifetime> {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let keep_ms = ms(keep);
        let left_ms = ttl_s.and_then(|left_s| u64::try_from(left_s).ok()).map(|left_s| left_s * 1000);
        let fresh_ms = left_ms.map_or(keep_ms, |left_ms| keep_ms.min(left_ms.saturating_sub(1000)));
        let fresh_until_ms = self.asked_ms.saturating_add(fresh_ms);
        let expires_ms = left_ms.map_or(u64::MAX, |left_ms| self.asked_ms.saturating_add(left_ms));
        let stale_until_ms = fresh_until_ms.saturating_add(ms(options.stale)).min(expires_ms);
        (fresh_until_ms > self.fresh_until_ms).then_some(Lifetime {
            asked_ms: self.asked_ms,
            fresh_until_ms,
            stale_until_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_that_is_announced_is_used_until_it_may_have_expired() {
        let options = TieredOptions::default();
        let keep = Duration::from_secs(600);
        let announce = Announce { server: 0, subscription: 1, token: 2 };
        let life = |ttl_s, is_announced| {
            let item = Item { ttl_s, is_announced, ..Item::default() };
            let (life, feed) = life_of(&options, 5_000, Some(Fed { feed: 9, keep, announce }), &item);
            (life.fresh_until_ms, life.stale_until_ms, feed)
        };
        assert_eq!(life(None, true), (605_000, 615_000, 9));
        assert_eq!(life(Some(-1), true), (605_000, 615_000, 9));
        assert_eq!(life(Some(60), true), (64_000, 65_000, 9));
        assert_eq!(life(Some(2), true), (6_000, 7_000, 0), "no longer than without");
        assert_eq!(life(None, false), (6_000, 16_000, 0));
    }

    #[test]
    fn the_bound_of_an_exact_read_has_bounds() {
        let within = |exact_within| Push { exact_within, ..Push::default() }.exact_us();
        let bounds = [None, Some(Duration::ZERO), Push::default().exact_within, Some(Duration::MAX)];
        assert_eq!(bounds.map(within), [0, 200, 100_000, 16_000_000]);
    }
}
