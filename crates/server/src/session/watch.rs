//! A connection that watches (`watch`): it is sent the lines of events until it leaves, and what it sends is ignored.

use std::sync::Arc;

use larder_protocol::{Reply, WatchClasses, WatchEvent, WatchedItem, text};
use larder_store::Tier;

use super::{Ctx, Served, Session, Wait};
use crate::budget::Claim;
use crate::watchers::{Watcher, Watchers};

/// With more output than this, lines stay in their queue.
const OUTPUT_BYTES_MAX: usize = 16 << 10;

/// The watching of one connection. It ends with the session.
pub(super) struct Watching {
    watchers: Arc<Watchers>,
    watcher: Arc<Watcher>,
}

impl Watching {
    /// Returns the bytes that it holds.
    pub(super) fn memory_bytes(&self) -> usize {
        self.watchers.queue_bytes()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.watchers.remove(&self.watcher);
    }
}

impl Session {
    /// Executes `watch`. Its queue is taken from the budget, and held until the connection ends.
    pub(super) fn watch(
        &mut self,
        ctx: &Ctx<'_>,
        classes: Option<WatchClasses>,
        reply: &Reply<'_>,
    ) -> Served {
        let line = match classes {
            _ if !ctx.shared.config.watching => text::WATCH_NOT_ALLOWED,
            _ if !self.out.is_empty() => text::WATCH_PIPELINED,
            None => text::ERROR,
            Some(classes) => match self.begin_watching(ctx, classes) {
                Ok(()) => "OK",
                Err(refusal) => refusal,
            },
        };
        reply.line(self.out.tail(), line);
        Served::Done
    }

    fn begin_watching(&mut self, ctx: &Ctx<'_>, classes: WatchClasses) -> Result<(), &'static str> {
        let watchers = ctx.shared.watchers.clone();
        let bytes = watchers.queue_bytes();
        if !ctx.shared.budget.take(bytes as u64, Claim::Output { light: false }) {
            return Err(text::WATCH_FAILED);
        }
        let (worker, connection) = ctx.place;
        let Some(watcher) = watchers.add(classes, worker, connection) else {
            ctx.shared.budget.give(bytes as u64);
            return Err(text::WATCH_TOO_MANY);
        };
        if classes.meets(WatchClasses::EVICTIONS) {
            ctx.shared.store.note_departures(true);
        }
        self.claimed += bytes;
        self.watching = Some(Box::new(Watching { watchers, watcher }));
        self.wait = Wait::Watch;
        Ok(())
    }

    /// Moves lines that wait to the output, as far as there is room.
    pub(super) fn show_events(&mut self) {
        let Some(watching) = &self.watching else { return };
        let room = OUTPUT_BYTES_MAX.saturating_sub(self.out.bytes());
        if room > 0 {
            watching.watcher.take(self.out.tail(), room);
        }
    }
}

/// An item that a command has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) tier: Tier,
    pub(super) value_len: u32,
}

impl Hit {
    fn watched(self) -> WatchedItem {
        WatchedItem { class: class_of(self.tier), value_len: self.value_len }
    }
}

/// Returns the number that stands for a tier where memcached has slab classes.
pub(super) fn class_of(tier: Tier) -> u32 {
    match tier {
        Tier::Ram => 1,
        Tier::Ssd => 2,
    }
}

/// A store that came to its end, as watchers are shown it.
pub(super) struct WatchedStore {
    /// memcached's word for what came of it.
    pub(super) status: &'static str,
    pub(super) command: &'static str,
    pub(super) ttl_s: u32,
    pub(super) value_len: u32,
}

impl Ctx<'_> {
    /// Returns whether any watcher wants events of one of these classes.
    #[inline]
    pub(super) fn is_watched(&self, classes: WatchClasses) -> bool {
        self.shared.watchers.watch(classes)
    }

    /// Shows that a command has looked for an item.
    #[inline]
    pub(super) fn show_get(&self, key: &[u8], hit: Option<Hit>) {
        if self.is_watched(WatchClasses::FETCHERS) {
            let connection = self.connection;
            let event = WatchEvent::Get { key, item: hit.map(Hit::watched), connection };
            self.shared.show(WatchClasses::FETCHERS, &event);
        }
    }

    /// Shows that a command has stored an item, or tried to.
    pub(super) fn show_store(&self, key: &[u8], store: &WatchedStore) {
        let WatchedStore { status, command, ttl_s, value_len } = *store;
        let class = if status == "stored" { class_of(Tier::Ram) } else { 0 };
        let item = WatchedItem { class, value_len };
        let event = WatchEvent::Store { key, status, command, ttl_s, item, connection: self.connection };
        self.shared.show(WatchClasses::MUTATIONS, &event);
    }

    /// Shows that a command has removed an item.
    pub(super) fn show_delete(&self, key: &[u8], command: &'static str, hit: Hit) {
        if self.is_watched(WatchClasses::DELETIONS) {
            let event = WatchEvent::Delete { key, command, item: hit.watched() };
            self.shared.show(WatchClasses::DELETIONS, &event);
        }
    }
}
