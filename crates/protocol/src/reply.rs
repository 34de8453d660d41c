//! How a request is to be replied to, and what the reply is about. `encode.rs` turns both into bytes.

mod item;
mod outcome;

pub use item::ItemInfo;
pub use outcome::Outcome;

use crate::opcode as op;

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
    /// `ml`.
    Check,
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

impl Verb {
    /// Returns what a binary opcode asks.
    pub(crate) fn of_opcode(opcode: u8) -> Verb {
        match op::loud(opcode) {
            op::GET | op::GETK | op::GAT | op::GATK => Verb::Get,
            op::SET | op::ADD | op::REPLACE | op::APPEND | op::PREPEND => Verb::Store,
            op::DELETE => Verb::Delete,
            op::INCREMENT | op::DECREMENT => Verb::Arith,
            op::TOUCH => Verb::Touch,
            op::FLUSH => Verb::Flush,
            op::NOOP => Verb::Noop,
            op::VERSION => Verb::Version,
            op::QUIT => Verb::Quit,
            op::STAT => Verb::Stats,
            _ => Verb::Admin,
        }
    }
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
        /// The key is leased as `A` asked: show that.
        leased: bool,
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
            Reply::Binary { opcode, .. } => Verb::of_opcode(*opcode),
        }
    }

    /// Whether success is silent: `noreply`, `q`, or a quiet opcode.
    pub fn is_quiet(&self) -> bool {
        match self {
            Reply::Classic { noreply, .. } => *noreply,
            Reply::Meta { quiet, .. } | Reply::Binary { quiet, .. } => *quiet,
        }
    }

    /// This reply, showing that the key is leased: to a request with `A` only.
    #[must_use]
    pub fn with_lease(mut self) -> Reply<'a> {
        if let Reply::Meta { leased, .. } = &mut self {
            *leased = true;
        }
        self
    }

    /// This reply without ties to the input, for a request that must wait while the input moves on. Allocates
    /// only where meta flags were sent.
    pub fn to_owned_reply(&self) -> OwnedReply {
        let (bare, flags): (Reply<'static>, &[u8]) = match *self {
            Reply::Classic { verb, noreply, with_cas } => (Reply::Classic { verb, noreply, with_cas }, &[]),
            Reply::Meta { verb, flags, quiet, base64, value, leased } => {
                (Reply::Meta { verb, flags: &[], quiet, base64, value, leased }, flags)
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
            Reply::Meta { verb, quiet, base64, value, leased, .. } => {
                Reply::Meta { verb, flags: &self.flags, quiet, base64, value, leased }
            }
            Reply::Classic { verb, noreply, with_cas } => Reply::Classic { verb, noreply, with_cas },
            Reply::Binary { opcode, opaque, quiet } => Reply::Binary { opcode, opaque, quiet },
        }
    }
}
