//! What a client can ask, normalised over the three wires. Borrowed from the input; nothing here executes
//! anything.

mod admin;
mod key;

pub use admin::{Admin, Automove, Clock, Crawler, Lru, ShutdownMode, Slabs, WatchClasses};
pub use key::{Key, Keys};

use larder_rate::Limit;

use crate::reply::Reply;
use crate::token::Tokens;

/// An expiry as sent: 0 never, negative at once, up to 30 days relative, beyond that absolute Unix seconds.
/// A text wire sends 32 signed bits (of a longer number its low ones), the binary wire 32 unsigned bits. The
/// server turns it into a point in time with its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exptime(pub i64);

impl Exptime {
    /// Never expires.
    pub const NEVER: Exptime = Exptime(0);
}

impl From<i32> for Exptime {
    fn from(seconds: i32) -> Self {
        Exptime(i64::from(seconds))
    }
}

/// One request, complete but for the body of a store (see [`Step`](crate::Step)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// `get gets gat gats`, `mg`, binary get and gat families.
    Get(Get<'a>),
    /// `set add replace append prepend cas`, `ms`, binary stores.
    Store(Store<'a>),
    /// `delete`, `md`, binary delete.
    Delete(Delete<'a>),
    /// `incr decr`, `ma`, binary increment and decrement.
    Arith(Arith<'a>),
    /// `ml`, which memcached does not have.
    Check(Check<'a>),
    /// `touch`, binary touch.
    Touch(Touch<'a>),
    /// `me`: an item's metadata, without a bump.
    Debug(Debug<'a>),
    /// `flush_all`, binary flush.
    Flush(Flush<'a>),
    /// `mn`, binary noop: a barrier that answers once everything before it has.
    Noop(Reply<'a>),
    /// `mi`: tell this connection when keys change that are leased to it.
    Subscribe(Reply<'a>),
    /// `version`.
    Version(Reply<'a>),
    /// `verbosity LEVEL`.
    Verbosity(u32, Reply<'a>),
    /// `quit`: answer if the wire does (binary, not quiet), then close.
    Quit(Reply<'a>),
    /// `stats [ARGS]`: the rest of the line, without surrounding blanks.
    Stats(&'a [u8], Reply<'a>),
    /// The administrative text commands.
    Admin(Admin<'a>),
}

/// Read one or many keys, perhaps changing their expiry on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Get<'a> {
    /// The keys in request order, duplicates kept; each already checked against
    /// [`KEY_BYTES_MAX`](crate::KEY_BYTES_MAX).
    pub keys: Keys<'a>,
    /// `gat`, `mg T`, binary gat: the new expiry.
    pub touch: Option<Exptime>,
    /// `mg N`: on a miss create an empty item with this expiry and win the right to fill it.
    pub vivify: Option<Exptime>,
    /// `mg R`: win the right to recache when fewer than this many seconds are left.
    pub recache: Option<i32>,
    /// `mg R` behind `T`: the seconds that are left are those of the new expiry.
    pub recache_sees_touch: bool,
    /// `mg`: this read may win the right to recache a stale item, too. False for a reader that cannot store it.
    pub may_win: bool,
    /// `mg C`: when the item's cas equals this, the client's copy is current: answer without the value.
    pub unless_cas: Option<u64>,
    /// `mg E`: the cas that a vivified item gets.
    pub new_cas: Option<u64>,
    /// False for `mg` without `v`: only metadata is wanted.
    pub value: bool,
    /// `mg u`: do not count this as an access.
    pub no_bump: bool,
    /// `mg A`: announce the next change of the key. [`lease`](Get::lease) tells to which subscription.
    pub announce: bool,
    /// How to answer each key (and, on the classic wire, the end).
    pub reply: Reply<'a>,
}

/// A wish to be told when a key changes: `mg A<subscription>:<token>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The number of the subscription, as `mi` told it.
    pub subscription: u64,
    /// The client's own number for the key, by which the change is announced.
    pub token: u64,
}

impl Lease {
    /// Reads `<subscription>:<token>`, two decimal numbers of 64 bits.
    pub(crate) fn read(argument: &[u8]) -> Option<Lease> {
        let colon = argument.iter().position(|byte| *byte == b':')?;
        let (subscription, token) = (argument.get(..colon)?, argument.get(colon + 1..)?);
        Some(Lease { subscription: number(subscription)?, token: number(token)? })
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if is_number { std::str::from_utf8(digits).ok()?.parse().ok() } else { None }
}

impl Get<'_> {
    /// The lease that the request asks for, if it asks for one.
    pub fn lease(&self) -> Option<Lease> {
        let Reply::Meta { flags, .. } = &self.reply else { return None };
        let token = Tokens::new(flags).find(|token| token.first() == Some(&b'A'));
        token.filter(|_| self.announce).and_then(|token| Lease::read(token.get(1..)?))
    }
}

/// How a store treats the present item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMode {
    /// Store in any case.
    Set,
    /// Store only if absent.
    Add,
    /// Store only if present.
    Replace,
    /// Put the value after the present one, keeping flags and expiry.
    Append,
    /// Put the value before the present one, keeping flags and expiry.
    Prepend,
}

/// Write a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store<'a> {
    /// The key.
    pub key: Key<'a>,
    /// The value's length in bytes as announced.
    pub value_len: u32,
    /// The value; empty while only the head has been parsed ([`Step::Body`](crate::Step)).
    pub value: &'a [u8],
    /// How to treat the present item.
    pub mode: StoreMode,
    /// Opaque client flags.
    pub flags: u32,
    /// Expiry of the new item.
    pub exptime: Exptime,
    /// `cas`, `ms C`, binary header cas: store only if the present item's cas is this.
    pub compare: Option<u64>,
    /// `ms E`: the cas that the new item gets.
    pub new_cas: Option<u64>,
    /// `ms I`: with a compare that is older than the item's cas, store and mark stale instead of refusing.
    pub invalidate: bool,
    /// `ms N` with append or prepend: create the item with this expiry when absent.
    pub vivify: Option<Exptime>,
    /// How to answer.
    pub reply: Reply<'a>,
}

/// Remove, mark stale or empty an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete<'a> {
    /// The key.
    pub key: Key<'a>,
    /// Only if the item's cas is this.
    pub compare: Option<u64>,
    /// `md E`: the cas that the invalidated item gets.
    pub new_cas: Option<u64>,
    /// `md I`: mark stale instead of removing.
    pub invalidate: bool,
    /// `md T`: with `I` (or `x`), the new expiry.
    pub touch: Option<Exptime>,
    /// `md x`: replace by an empty item with client flags 0.
    pub empty_value: bool,
    /// How to answer.
    pub reply: Reply<'a>,
}

/// Increment or decrement a decimal value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arith<'a> {
    /// The key.
    pub key: Key<'a>,
    /// By how much.
    pub delta: u64,
    /// Downwards (stopping at 0) rather than upwards (wrapping at 2^64).
    pub decrement: bool,
    /// When absent, create with this value and expiry.
    pub initial: Option<(u64, Exptime)>,
    /// Only if the item's cas is this.
    pub compare: Option<u64>,
    /// `ma E`: the cas that the new value gets.
    pub new_cas: Option<u64>,
    /// `ma T`: the new expiry.
    pub touch: Option<Exptime>,
    /// How to answer.
    pub reply: Reply<'a>,
}

/// Ask whether a cost may pass a rate limit, and count it if so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check<'a> {
    /// The key of the item that holds the limit's state.
    pub key: Key<'a>,
    /// The limit.
    pub limit: Limit,
    /// How much is to pass; 0 counts nothing.
    pub cost: u64,
    /// How to answer: [`Reply::verdict`].
    pub reply: Reply<'a>,
}

/// Change an item's expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch<'a> {
    /// The key.
    pub key: Key<'a>,
    /// The new expiry.
    pub exptime: Exptime,
    /// How to answer.
    pub reply: Reply<'a>,
}

/// Show an item's metadata (`me`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Debug<'a> {
    /// The key.
    pub key: Key<'a>,
    /// How to answer.
    pub reply: Reply<'a>,
}

/// Invalidate everything that is older than now, or than a moment to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flush<'a> {
    /// When: at once if zero or negative, else like any expiry (relative up to 30 days, absolute beyond).
    pub delay: Exptime,
    /// How to answer.
    pub reply: Reply<'a>,
}

impl<'a> Request<'a> {
    /// How to answer this request.
    pub fn reply(&self) -> &Reply<'a> {
        match self {
            Request::Get(get) => &get.reply,
            Request::Store(store) => &store.reply,
            Request::Delete(delete) => &delete.reply,
            Request::Arith(arith) => &arith.reply,
            Request::Check(check) => &check.reply,
            Request::Touch(touch) => &touch.reply,
            Request::Debug(debug) => &debug.reply,
            Request::Flush(flush) => &flush.reply,
            Request::Noop(reply)
            | Request::Subscribe(reply)
            | Request::Version(reply)
            | Request::Verbosity(_, reply)
            | Request::Quit(reply)
            | Request::Stats(_, reply) => reply,
            Request::Admin(admin) => admin.reply(),
        }
    }
}
