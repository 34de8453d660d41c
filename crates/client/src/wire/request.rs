//! Requests, and how each is encoded: meta text where it has a word, classic text for the rest.

use larder_rate::{Algorithm, Limit};

use super::outbox::Outbox;
use crate::key::Key;
use crate::login::Login;

/// One request to one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// `mg`: reads an item, or facts about it, or touches it.
    Get(Get<'a>),
    /// `ms`: stores a value.
    Store(Store<'a>),
    /// `md`: removes an item or marks it stale.
    Delete(Delete<'a>),
    /// `ma`: changes a counter.
    Arith(Arith<'a>),
    /// `ml`: asks whether a cost passes a limit. Larder's own; memcached refuses it.
    Check(Check<'a>),
    /// `me`: shows an item's metadata without counting as an access.
    Debug(Key<'a>),
    /// `mn`: is answered once everything before it is.
    Noop,
    /// `mi`: wants to be told of changes of the keys that are announced to this connection. Larder knows it.
    Subscribe,
    /// `flush_all`: invalidates all items, now or after so many seconds.
    FlushAll(u32),
    /// `version`.
    Version,
    /// A login: a `set` of user, blank and password, of any key.
    Login(&'a Login),
    /// `lru_crawler metadump`: lists all items, by a walk over the whole index.
    Metadump,
    /// `watch`, with the classes to show. It must hold no control bytes.
    Watch(&'a str),
    /// `stats`, with an argument that may be empty. It must hold no control bytes.
    Stats(&'a str),
}

/// A read. Times are the wire's expiry: 0 never, negative at once, up to 30 days relative seconds, beyond that
/// absolute Unix seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Get<'a> {
    /// The key.
    pub key: Key<'a>,
    /// Wants the value.
    pub value: bool,
    /// Wants the cas unique.
    pub cas: bool,
    /// Wants the client flags.
    pub flags: bool,
    /// Wants the seconds that the item has left; after `touch` or `vivify` took effect.
    pub ttl: bool,
    /// Does not count as an access.
    pub no_bump: bool,
    /// Gives the item a new expiry.
    pub touch: Option<i32>,
    /// On a miss, creates an empty item with this expiry, and the asker has the lease to fill it.
    pub vivify: Option<i32>,
    /// Takes the lease to renew the item when it has fewer seconds left than this.
    pub recache: Option<i32>,
    /// Wants no value if the item still has this cas unique. A server older than memcached 1.6.40 ignores it.
    pub unless_cas: Option<u64>,
    /// Wants the next change of the key to be announced: to the subscription with the first number, by the second
    /// one. Only a server that has this subscription knows it.
    pub announce: Option<(u64, u64)>,
    /// A miss is not answered.
    pub quiet: bool,
}

impl<'a> Get<'a> {
    /// A request that learns only whether the key is there; set the fields that are wanted.
    pub fn new(key: Key<'a>) -> Self {
        Get {
            key,
            value: false,
            cas: false,
            flags: false,
            ttl: false,
            no_bump: false,
            touch: None,
            vivify: None,
            recache: None,
            unless_cas: None,
            announce: None,
            quiet: false,
        }
    }
}

/// How a store treats the item that is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Stores in any case.
    #[default]
    Set,
    /// Stores only if there is no item.
    Add,
    /// Stores only if there is an item.
    Replace,
    /// Puts the value behind the item's, which keeps its flags and expiry.
    Append,
    /// Puts the value before the item's, which keeps its flags and expiry.
    Prepend,
}

impl Mode {
    /// The letter of the flag `M`; none for what is so without it.
    fn letter(self) -> Option<u8> {
        match self {
            Mode::Set => None,
            Mode::Add => Some(b'E'),
            Mode::Replace => Some(b'R'),
            Mode::Append => Some(b'A'),
            Mode::Prepend => Some(b'P'),
        }
    }
}

/// A write of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store<'a> {
    /// The key.
    pub key: Key<'a>,
    /// The value.
    pub value: &'a [u8],
    /// How the present item is treated.
    pub mode: Mode,
    /// Client flags, which come back with the value.
    pub flags: u32,
    /// The expiry.
    pub exptime: i32,
    /// Stores only if the item has this cas unique.
    pub compare: Option<u64>,
    /// With `compare`: if the item is newer, stores nonetheless and marks the item stale.
    pub invalidate: bool,
    /// Wants the new cas unique.
    pub cas: bool,
    /// Success is not answered.
    pub quiet: bool,
}

/// How long an item lives that is marked stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    /// As long as it would have lived.
    Unchanged,
    /// So long (an expiry).
    For(i32),
}

/// A removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete<'a> {
    /// The key.
    pub key: Key<'a>,
    /// Only if the item has this cas unique.
    pub compare: Option<u64>,
    /// Marks the item stale instead: the next reader has the lease to renew it.
    pub stale: Option<Stale>,
    /// Success is not answered.
    pub quiet: bool,
}

/// A change of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arith<'a> {
    /// The key.
    pub key: Key<'a>,
    /// By how much.
    pub delta: u64,
    /// Downwards, where it stops at 0; upwards it wraps at 2^64.
    pub decrement: bool,
    /// Creates a missing counter with this value and expiry.
    pub initial: Option<(u64, i32)>,
    /// Gives the counter a new expiry.
    pub touch: Option<i32>,
    /// Only if the counter has this cas unique.
    pub compare: Option<u64>,
    /// Success is not answered.
    pub quiet: bool,
}

/// A question whether a cost passes a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check<'a> {
    /// The key of the item that holds the limit's state.
    pub key: Key<'a>,
    /// The limit. A burst must be 1 or more.
    pub limit: Limit,
    /// How much is to pass; 0 counts nothing.
    pub cost: u64,
}

impl<'a> Request<'a> {
    /// Appends the request to `out`. A meta request carries `opaque`, which its reply repeats.
    pub fn encode(&self, opaque: Option<u32>, out: &mut Outbox<'a>) {
        match self {
            Request::Get(get) => get.encode(opaque, out.lines()),
            Request::Store(store) => store.encode(opaque, out),
            Request::Delete(delete) => delete.encode(opaque, out.lines()),
            Request::Arith(arith) => arith.encode(opaque, out.lines()),
            Request::Check(check) => check.encode(opaque, out.lines()),
            Request::Debug(key) => {
                let lines = out.lines();
                head(lines, b"me ", key);
                flag(lines, key.is_base64(), b'b');
                lines.extend_from_slice(b"\r\n");
            }
            Request::Subscribe => out.lines().extend_from_slice(b"mi\r\n"),
            Request::Noop => out.lines().extend_from_slice(b"mn\r\n"),
            Request::Metadump => out.lines().extend_from_slice(b"lru_crawler metadump hash\r\n"),
            Request::Watch(classes) => {
                let lines = out.lines();
                lines.extend_from_slice(b"watch ");
                lines.extend_from_slice(classes.as_bytes());
                lines.extend_from_slice(b"\r\n");
            }
            Request::Version => out.lines().extend_from_slice(b"version\r\n"),
            Request::FlushAll(delay) => {
                let lines = out.lines();
                lines.extend_from_slice(b"flush_all");
                if *delay > 0 {
                    lines.push(b' ');
                    digits(lines, *delay);
                }
                lines.extend_from_slice(b"\r\n");
            }
            Request::Login(login) => {
                let message = login.message();
                let lines = out.lines();
                lines.extend_from_slice(b"set login 0 0 ");
                digits(lines, message.len());
                lines.extend_from_slice(b"\r\n");
                out.value(message);
                out.lines().extend_from_slice(b"\r\n");
            }
            Request::Stats(argument) => {
                let lines = out.lines();
                lines.extend_from_slice(b"stats");
                if !argument.is_empty() {
                    lines.push(b' ');
                    lines.extend_from_slice(argument.as_bytes());
                }
                lines.extend_from_slice(b"\r\n");
            }
        }
    }
}

impl Get<'_> {
    fn encode(&self, opaque: Option<u32>, out: &mut Vec<u8>) {
        head(out, b"mg ", &self.key);
        flag(out, self.key.is_base64(), b'b');
        flag(out, self.value, b'v');
        flag(out, self.cas, b'c');
        flag(out, self.flags, b'f');
        flag(out, self.no_bump, b'u');
        // Servers apply them in their order: `R` looks at the expiry before `T`, and what `N` creates keeps its own.
        token(out, b'R', self.recache);
        token(out, b'T', self.touch);
        token(out, b'N', self.vivify);
        token(out, b'C', self.unless_cas);
        if let Some((subscription, by)) = self.announce {
            token(out, b'A', Some(subscription));
            out.push(b':');
            digits(out, by);
        }
        flag(out, self.ttl, b't');
        flag(out, self.quiet, b'q');
        token(out, b'O', opaque);
        out.extend_from_slice(b"\r\n");
    }
}

impl<'a> Store<'a> {
    fn encode(&self, opaque: Option<u32>, out: &mut Outbox<'a>) {
        let lines = out.lines();
        head(lines, b"ms ", &self.key);
        lines.push(b' ');
        digits(lines, self.value.len());
        flag(lines, self.key.is_base64(), b'b');
        flag(lines, self.cas, b'c');
        token(lines, b'F', Some(self.flags).filter(|flags| *flags != 0));
        token(lines, b'T', Some(self.exptime).filter(|exptime| *exptime != 0));
        token(lines, b'C', self.compare);
        flag(lines, self.invalidate, b'I');
        if let Some(letter) = self.mode.letter() {
            lines.extend_from_slice(&[b' ', b'M', letter]);
        }
        flag(lines, self.quiet, b'q');
        token(lines, b'O', opaque);
        lines.extend_from_slice(b"\r\n");
        out.value(self.value);
        out.lines().extend_from_slice(b"\r\n");
    }
}

impl Delete<'_> {
    fn encode(&self, opaque: Option<u32>, out: &mut Vec<u8>) {
        head(out, b"md ", &self.key);
        flag(out, self.key.is_base64(), b'b');
        token(out, b'C', self.compare);
        flag(out, self.stale.is_some(), b'I');
        let exptime = match self.stale {
            Some(Stale::For(exptime)) => Some(exptime),
            Some(Stale::Unchanged) | None => None,
        };
        token(out, b'T', exptime);
        flag(out, self.quiet, b'q');
        token(out, b'O', opaque);
        out.extend_from_slice(b"\r\n");
    }
}

impl Arith<'_> {
    fn encode(&self, opaque: Option<u32>, out: &mut Vec<u8>) {
        head(out, b"ma ", &self.key);
        flag(out, self.key.is_base64(), b'b');
        if self.decrement {
            out.extend_from_slice(b" MD");
        }
        // In this order, so that an item that `N` creates keeps its expiry.
        token(out, b'T', self.touch);
        token(out, b'N', self.initial.map(|(_, exptime)| exptime));
        token(out, b'J', self.initial.map(|(value, _)| value));
        token(out, b'D', Some(self.delta));
        token(out, b'C', self.compare);
        flag(out, self.quiet, b'q');
        // The value last of what is wanted, so that `t` sees a new expiry.
        out.extend_from_slice(b" t c v");
        token(out, b'O', opaque);
        out.extend_from_slice(b"\r\n");
    }
}

impl Check<'_> {
    fn encode(&self, opaque: Option<u32>, out: &mut Vec<u8>) {
        head(out, b"ml ", &self.key);
        flag(out, self.key.is_base64(), b'b');
        token(out, b'L', Some(self.limit.count.max(1)));
        token(out, b'P', Some(self.limit.period_ms()));
        match self.limit.algorithm {
            Algorithm::FixedWindow => out.extend_from_slice(b" MF"),
            Algorithm::SlidingWindow => out.extend_from_slice(b" MS"),
            Algorithm::Gcra { burst } => token(out, b'B', Some(burst)),
        }
        token(out, b'D', Some(self.cost));
        out.extend_from_slice(b" r w a");
        token(out, b'O', opaque);
        out.extend_from_slice(b"\r\n");
    }
}

fn head(out: &mut Vec<u8>, verb: &[u8], key: &Key<'_>) {
    out.extend_from_slice(verb);
    key.encode(out);
}

fn flag(out: &mut Vec<u8>, is_wanted: bool, letter: u8) {
    if is_wanted {
        out.extend_from_slice(&[b' ', letter]);
    }
}

fn token<N: itoa::Integer>(out: &mut Vec<u8>, letter: u8, number: Option<N>) {
    if let Some(number) = number {
        out.extend_from_slice(&[b' ', letter]);
        digits(out, number);
    }
}

fn digits<N: itoa::Integer>(out: &mut Vec<u8>, number: N) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}
