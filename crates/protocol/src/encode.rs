//! Encodes replies: each wire has a file of its own, which a [`Reply`] picks.

pub(crate) mod binary;
mod change;
mod classic;
mod cluster;
mod dump;
mod limit;
mod meta;
mod number;
mod stats;
mod watch;

pub use change::{all_changed_line, changed_line, subscription_line};
pub use cluster::{ClusterNode, cluster_reply};
pub use dump::{cachedump_line, metadump_line, mgdump_line, uri_encode};
pub use watch::{Departure, WatchEvent, WatchedItem, skipped_line, watch_line};

use larder_rate::Verdict;

use crate::base64;
use crate::reply::{ItemInfo, Outcome, Reply, Verb};

/// Appends a key as a request or reply of the meta commands has it: as it is, or in base64 with ` b` behind.
#[inline]
fn push_marked_key(out: &mut Vec<u8>, key: &[u8], is_binary: bool) {
    if is_binary {
        base64::encode(out, key);
        out.extend_from_slice(b" b");
    } else {
        out.extend_from_slice(key);
    }
}

impl Reply<'_> {
    /// Everything before the value of an item that was found. `with_value` says whether the value will
    /// follow; the classic wire always sends it.
    #[inline]
    pub fn hit_head(&self, out: &mut Vec<u8>, key: &[u8], item: &ItemInfo, with_value: bool) {
        match self {
            Reply::Classic { with_cas, .. } => classic::hit_head(out, key, item, *with_cas),
            Reply::Meta { flags, leased, .. } => {
                meta::hit_head(out, flags, *leased, key, item, with_value);
            }
            Reply::Binary { opcode, opaque, .. } => {
                binary::hit_head(out, *opcode, *opaque, key, item, with_value);
            }
        }
    }

    /// Everything after the value.
    #[inline]
    pub fn hit_tail(&self, out: &mut Vec<u8>, with_value: bool) {
        match self {
            Reply::Classic { .. } => out.extend_from_slice(b"\r\n"),
            Reply::Meta { .. } if with_value => out.extend_from_slice(b"\r\n"),
            Reply::Meta { .. } | Reply::Binary { .. } => {}
        }
    }

    /// There is no such item (a read's answer; for the others see [`Outcome::NotFound`]).
    pub fn miss(&self, out: &mut Vec<u8>, key: &[u8]) {
        match self {
            Reply::Classic { .. } => {}
            Reply::Meta { flags, quiet, base64, leased, .. } => {
                if !quiet {
                    meta::miss(out, flags, *leased, *base64, key);
                }
            }
            Reply::Binary { opcode, opaque, quiet } => {
                if !quiet {
                    binary::miss(out, *opcode, *opaque, key);
                }
            }
        }
    }

    /// All keys are answered: the classic reads say so, the others say nothing.
    #[inline]
    pub fn end(&self, out: &mut Vec<u8>) {
        if let Reply::Classic { verb: Verb::Get, .. } = self {
            out.extend_from_slice(b"END\r\n");
        }
    }

    /// The answer to everything that does not read a value, and to what failed. Never for a classic read, whose
    /// one reply is its hits and the [end](Self::end): in builds with debug assertions that panics.
    pub fn outcome(&self, out: &mut Vec<u8>, key: &[u8], outcome: Outcome, item: &ItemInfo) {
        match self {
            Reply::Classic { verb, noreply, .. } => {
                debug_assert!(*verb != Verb::Get, "a classic read has one reply, which END ends");
                if !noreply {
                    classic::outcome(out, *verb, outcome);
                }
            }
            Reply::Meta { verb, flags, quiet, base64, value, .. } => {
                let wanted =
                    meta::MetaReply { verb: *verb, flags, quiet: *quiet, base64: *base64, value: *value };
                meta::outcome(out, &wanted, key, outcome, item);
            }
            Reply::Binary { opcode, opaque, quiet } => {
                binary::outcome(out, *opcode, *opaque, *quiet, outcome, item);
            }
        }
    }

    /// The answer to a check of a rate limit ([`Request::Check`](crate::Request::Check)). A quiet one hides that the
    /// cost passes. Only a meta request can ask for it; others get nothing.
    pub fn verdict(&self, out: &mut Vec<u8>, key: &[u8], verdict: &Verdict) {
        if let Reply::Meta { flags, quiet, base64, .. } = self
            && !(*quiet && verdict.is_allowed)
        {
            limit::verdict(out, flags, *base64, key, verdict);
        }
    }

    /// A line of the server's own choosing, for administrative commands and `stats` on the text wires; see
    /// [`text`](crate::text) for memcached's. Nothing on the binary wire, which has no lines.
    pub fn line(&self, out: &mut Vec<u8>, line: &str) {
        match self {
            Reply::Classic { noreply: true, .. } | Reply::Binary { .. } => {}
            Reply::Classic { .. } | Reply::Meta { .. } => {
                out.extend_from_slice(line.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
        }
    }
}
