//! How to say the answer on the wire that the request came from. The words themselves are in the `encode_*`
//! files.

use crate::item::ItemInfo;
use crate::outcome::Outcome;
use crate::{encode_binary, encode_classic, encode_meta};

/// The request, as far as the wording of its reply depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reads.
    Get,
    /// Stores.
    Store,
    /// `delete`, `md`.
    Delete,
    /// `incr`, `decr`, `ma`.
    Arith,
    /// `touch`.
    Touch,
    /// `me`.
    Debug,
    /// `flush_all`.
    Flush,
    /// `mn`, binary noop.
    Noop,
    /// `version`.
    Version,
    /// `verbosity`.
    Verbosity,
    /// `quit`.
    Quit,
    /// `stats`.
    Stats,
    /// The administrative commands.
    Admin,
}

/// How to answer one request. Cheap to clone; every encoder appends to `out`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// Classic text.
    Classic {
        /// What was asked.
        verb: Verb,
        /// Say nothing, not even errors.
        noreply: bool,
        /// `gets`, `gats`: show the cas.
        with_cas: bool,
    },
    /// Meta text.
    Meta {
        /// What was asked.
        verb: Verb,
        /// The flag tokens as sent, in order, blanks between them.
        flags: &'a [u8],
        /// `q`: hide the expected outcome (which depends on the verb); never errors.
        quiet: bool,
        /// `b`: the key came as base64 and is shown so.
        base64: bool,
        /// `v`: show the value.
        value: bool,
    },
    /// Binary.
    Binary {
        /// As sent; the answer repeats it.
        opcode: u8,
        /// As sent; the answer repeats it.
        opaque: u32,
        /// One of the quiet opcodes: hide misses and successes; never errors.
        quiet: bool,
    },
}

impl<'a> Reply<'a> {
    /// What was asked.
    pub fn verb(&self) -> Verb {
        match self {
            Reply::Classic { verb, .. } | Reply::Meta { verb, .. } => *verb,
            Reply::Binary { opcode, .. } => encode_binary::verb(*opcode),
        }
    }

    /// Whether success is silent: `noreply`, `q`, or a quiet opcode.
    pub fn is_quiet(&self) -> bool {
        match self {
            Reply::Classic { noreply, .. } => *noreply,
            Reply::Meta { quiet, .. } | Reply::Binary { quiet, .. } => *quiet,
        }
    }

    /// Everything before the value of an item that was found. `with_value` says whether the value will
    /// follow; the classic wire always sends it.
    #[inline]
    pub fn hit_head(&self, out: &mut Vec<u8>, key: &[u8], item: &ItemInfo, with_value: bool) {
        match self {
            Reply::Classic { with_cas, .. } => encode_classic::hit_head(out, key, item, *with_cas),
            Reply::Meta { flags, .. } => encode_meta::hit_head(out, flags, key, item, with_value),
            Reply::Binary { opcode, opaque, .. } => {
                encode_binary::hit_head(out, *opcode, *opaque, key, item, with_value);
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
            Reply::Meta { flags, quiet, base64, .. } => {
                if !quiet {
                    encode_meta::miss(out, flags, *base64, key);
                }
            }
            Reply::Binary { opcode, opaque, quiet } => {
                if !quiet {
                    encode_binary::miss(out, *opcode, *opaque, key);
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
                    encode_classic::outcome(out, *verb, outcome);
                }
            }
            Reply::Meta { verb, flags, quiet, base64, value } => {
                let wanted =
                    encode_meta::Wanted { verb: *verb, flags, quiet: *quiet, base64: *base64, value: *value };
                encode_meta::outcome(out, &wanted, key, outcome, item);
            }
            Reply::Binary { opcode, opaque, quiet } => {
                encode_binary::outcome(out, *opcode, *opaque, *quiet, outcome, item);
            }
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

    /// This reply without ties to the input, for a request that must wait while the input moves on. Allocates
    /// only where meta flags were sent.
    pub fn to_owned_reply(&self) -> OwnedReply {
        let (bare, flags): (Reply<'static>, &[u8]) = match *self {
            Reply::Classic { verb, noreply, with_cas } => (Reply::Classic { verb, noreply, with_cas }, &[]),
            Reply::Meta { verb, flags, quiet, base64, value } => {
                (Reply::Meta { verb, flags: &[], quiet, base64, value }, flags)
            }
            Reply::Binary { opcode, opaque, quiet } => (Reply::Binary { opcode, opaque, quiet }, &[]),
        };
        OwnedReply { bare, flags: flags.into() }
    }
}

/// A [`Reply`] that owns what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedReply {
    bare: Reply<'static>,
    flags: Box<[u8]>,
}

impl OwnedReply {
    /// The reply to answer with.
    #[inline]
    pub fn reply(&self) -> Reply<'_> {
        match self.bare {
            Reply::Meta { verb, quiet, base64, value, .. } => {
                Reply::Meta { verb, flags: &self.flags, quiet, base64, value }
            }
            Reply::Classic { verb, noreply, with_cas } => Reply::Classic { verb, noreply, with_cas },
            Reply::Binary { opcode, opaque, quiet } => Reply::Binary { opcode, opaque, quiet },
        }
    }
}
