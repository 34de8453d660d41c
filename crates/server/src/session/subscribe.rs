//! A connection that has subscribed to changes of leased keys (`mi`): what it is told, and when it is given up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use larder_protocol::{Reply, all_changed_line, changed_line, subscription_line, text};

use super::{Ctx, Served, Session};
use crate::leases::{Changes, Leases, Subscription};

/// A subscription whose peer has sent nothing for so long is closed: it would lease keys in vain.
const UNHEARD_MAX: Duration = Duration::from_secs(60);
/// With more output than this, announcements stay in their queue.
const OUTPUT_BYTES_MAX: usize = 16 << 10;
/// Announcements that are taken from the queue at a time.
const TOKENS_MAX: usize = 500;

/// The subscription of one connection. It ends with the session.
pub(super) struct Subscribed {
    leases: Arc<Leases>,
    subscription: Arc<Subscription>,
    /// When the peer sent its last request.
    heard: Instant,
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        self.leases.unsubscribe(&self.subscription);
    }
}

impl Session {
    /// Executes `mi`. A connection has one subscription, however often it asks.
    pub(super) fn subscribe(&mut self, ctx: &Ctx<'_>, reply: &Reply<'_>) -> Served {
        let config = &ctx.shared.config;
        if config.lease_memory_bytes == 0 {
            reply.line(self.out.tail(), text::ERROR);
            return Served::Done;
        }
        if self.subscribed.is_none() {
            let (worker, connection) = ctx.place;
            let leases = ctx.shared.leases.clone();
            let subscription = random().and_then(|number| leases.subscribe(worker, connection, number));
            self.subscribed = subscription
                .map(|subscription| Box::new(Subscribed { leases, subscription, heard: ctx.instant }));
        }
        match &self.subscribed {
            Some(subscribed) => subscription_line(self.out.tail(), subscribed.subscription.number()),
            None => reply.line(self.out.tail(), text::TOO_MANY_SUBSCRIPTIONS),
        }
        Served::Done
    }

    /// Notes that the peer lives.
    pub(super) fn note_heard(&mut self, now: Instant) {
        if let Some(subscribed) = &mut self.subscribed {
            subscribed.heard = now;
        }
    }

    /// Returns whether it is subscribed and its peer has been silent for too long.
    pub fn is_unheard(&self, now: Instant) -> bool {
        let heard = self.subscribed.as_ref().map(|subscribed| subscribed.heard);
        heard.is_some_and(|heard| now.saturating_duration_since(heard) > UNHEARD_MAX)
    }

    /// Encodes what has changed, and what was watched, as far as there is room in the output.
    #[inline]
    pub fn announce(&mut self) {
        if self.watching.is_some() {
            self.show_events();
        }
        if self.subscribed.is_some() {
            self.announce_changes();
        }
    }

    fn announce_changes(&mut self) {
        let Some(subscribed) = &self.subscribed else { return };
        while self.out.bytes() < OUTPUT_BYTES_MAX {
            match subscribed.subscription.take(TOKENS_MAX) {
                Changes::Tokens(tokens) if tokens.is_empty() => return,
                Changes::Tokens(tokens) => changed_line(self.out.tail(), &tokens),
                Changes::All => all_changed_line(self.out.tail()),
            }
        }
    }
}

/// Returns 64 random bits, if the system has some.
fn random() -> Option<u64> {
    let mut bytes = [0; 8];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    got.is_ok_and(|got| got == bytes.len()).then(|| u64::from_ne_bytes(bytes))
}
