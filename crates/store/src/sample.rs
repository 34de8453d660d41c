//! Sampled requests: what a request on a key of the sample did, sent to a thread that learns from it.
//!
//! Each shard has a `Sampler` behind its lock, and a ring of its own, so no request takes another lock or waits.

mod prefix;
mod ring;

use std::sync::Arc;

use crate::clock::{Expiry, Seconds};
use crate::index::hash::KeyHash;

pub use prefix::{PrefixNames, PrefixNumber};
pub use ring::{EventReceiver, EventSender, event_ring, ring_bytes};

/// What a request did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Read an item that the real cache had.
    Hit,
    /// Read a key of which the real cache had no item.
    Miss,
    /// Stored an item.
    Set,
    /// Gave an item another expiry.
    Touch,
    /// Deleted an item.
    Delete,
}

impl Op {
    const ALL: [Op; 5] = [Op::Hit, Op::Miss, Op::Set, Op::Touch, Op::Delete];
}

/// A request, as far as it matters to a cache of another size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The key's hash.
    pub hash: KeyHash,
    /// What the request did.
    pub op: Op,
    /// Bytes of the item's record: header, key and value. Of [`Op::Hit`] and [`Op::Set`].
    pub bytes: u32,
    /// When the item expires. Of [`Op::Hit`], [`Op::Set`] and [`Op::Touch`].
    pub expiry: Expiry,
    /// When.
    pub now: Seconds,
    /// Whether the device was read for it.
    pub has_read: bool,
    /// The prefix of the key; `None` if prefixes are not told apart.
    pub prefix: Option<PrefixNumber>,
}

/// What a thread that serves a request knows of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub key: &'a [u8],
    pub hash: KeyHash,
    pub now: Seconds,
    pub has_read: bool,
}

/// Returns whether a key is in a sample of one key of `scale`, which is a power of two: every key of a smaller sample
/// is in a larger one too.
#[inline]
pub fn is_sampled(hash: KeyHash, scale: u32) -> bool {
    hash.bits() & u64::from(scale - 1) == 0
}

/// Sends the requests of a shard on the keys of a sample; off until it is given a ring.
pub(crate) struct Sampler {
    /// The bits of a hash that are all 0 for a key of the sample.
    mask: u64,
    sender: Option<EventSender>,
    names: Option<Arc<PrefixNames>>,
}

impl Default for Sampler {
    fn default() -> Sampler {
        Sampler { mask: u64::MAX, sender: None, names: None }
    }
}

impl Sampler {
    /// Sends requests on one key of `scale`, a power of two, to a ring, and their prefixes' names where it is given.
    pub(crate) fn new(scale: u32, sender: EventSender, names: Option<Arc<PrefixNames>>) -> Sampler {
        Sampler { mask: u64::from(scale - 1), sender: Some(sender), names }
    }

    /// Samples one key of `scale` from now on, if it is on.
    pub(crate) fn set_scale(&mut self, scale: u32) {
        if self.sender.is_some() {
            self.mask = u64::from(scale - 1);
        }
    }

    /// Returns whether requests on the key are to be sent.
    #[inline]
    pub(crate) fn wants(&self, hash: KeyHash) -> bool {
        hash.bits() & self.mask == 0
    }

    /// Sends a request, whose item expires as its record tells. It is dropped, and counted, if the ring is full.
    #[cold]
    #[inline(never)]
    pub(crate) fn send(&mut self, op: Op, request: Request<'_>, bytes: u32, expires: u32) {
        let Some(sender) = self.sender.as_mut() else { return };
        let Request { key, hash, now, has_read } = request;
        sender.send_with(|| {
            let prefix = self.names.as_deref().map(|names| names.tell(key));
            Event { hash, op, bytes, expiry: Expiry::from_raw(expires), now, has_read, prefix }
        });
    }
}
