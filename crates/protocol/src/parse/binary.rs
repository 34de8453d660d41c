//! The grammar of the binary wire: a header of 24 bytes, then extras, key and value.
//!
//! ```text
//!  0      1       2     4       5         6        8       12      16    24
//!  | 0x80 | opcode | key | extras | datatype | bucket | body  | opaque | cas |
//!                    len   len      ignored    ignored  len
//! ```

use super::step::Step;
use crate::limits::LIMITS;
use crate::login::{Login, LoginReply, MECHANISM, Wish, plain_credentials};
use crate::opcode as op;
use crate::reject::Reject;
use crate::reply::Reply;
use crate::request::{Arith, Delete, Exptime, Flush, Get, Key, Keys, Request, Store, StoreMode, Touch};
use crate::status;

/// First byte of a request.
pub(super) const MAGIC: u8 = 0x80;
/// Bytes of a header on the binary wire, of a request and of a reply.
pub const HEADER_LEN: usize = 24;

struct RequestHeader {
    opcode: u8,
    key_len: usize,
    extras_len: usize,
    body_len: usize,
    opaque: u32,
    cas: u64,
}

impl RequestHeader {
    fn read(bytes: &[u8; HEADER_LEN]) -> Option<Self> {
        let [magic, opcode, k0, k1, extras_len, _, _, _, rest @ ..] = *bytes;
        let [b0, b1, b2, b3, o0, o1, o2, o3, cas @ ..] = rest;
        (magic == MAGIC).then(|| RequestHeader {
            opcode,
            key_len: usize::from(u16::from_be_bytes([k0, k1])),
            extras_len: usize::from(extras_len),
            body_len: u32::from_be_bytes([b0, b1, b2, b3]) as usize,
            opaque: u32::from_be_bytes([o0, o1, o2, o3]),
            cas: u64::from_be_bytes(cas),
        })
    }

    /// Whether the lengths are what the opcode calls for; None when there is no such opcode. Stricter than
    /// memcached where that leaves bytes behind which nothing can make sense of.
    fn lengths_fit(&self) -> Option<bool> {
        let RequestHeader { key_len, extras_len, body_len, .. } = *self;
        let bare = extras_len == 0 && key_len == 0 && body_len == 0;
        let keyed = |extras: usize| extras_len == extras && key_len > 0 && body_len == key_len + extras;
        let stores = |extras: usize| extras_len == extras && key_len > 0;
        Some(match op::loud(self.opcode) {
            op::GET | op::GETK | op::DELETE => keyed(0),
            op::GAT | op::GATK | op::TOUCH => keyed(4),
            op::INCREMENT | op::DECREMENT => keyed(20),
            op::SET | op::ADD | op::REPLACE => stores(8),
            op::APPEND | op::PREPEND => stores(0),
            op::STAT => extras_len == 0 && body_len == key_len,
            op::FLUSH => key_len == 0 && body_len == extras_len && (extras_len == 0 || extras_len == 4),
            op::QUIT | op::NOOP | op::VERSION | op::SASL_LIST => bare,
            op::SASL_AUTH | op::SASL_STEP => stores(0),
            _ => return None,
        })
    }
}

/// Parses the front of `input`.
pub(super) fn parse(input: &[u8]) -> Step<'_> {
    if input.first().is_some_and(|magic| *magic != MAGIC) {
        return Step::Close;
    }
    let Some((bytes, rest)) = input.split_first_chunk::<HEADER_LEN>() else {
        return Step::Incomplete { need: HEADER_LEN };
    };
    let Some(header) = RequestHeader::read(bytes) else {
        return Step::Close;
    };
    let refuse = |status, swallow, close| Step::Reject {
        reject: Reject::binary(header.opcode, header.opaque, status),
        len: HEADER_LEN,
        swallow,
        close,
    };
    if header.key_len + header.extras_len > header.body_len {
        return refuse(status::UNKNOWN, 0, true);
    }
    if header.key_len > LIMITS.key_bytes_max {
        return refuse(status::INVALID, 0, true);
    }
    match header.lengths_fit() {
        // All of the body goes, where memcached also takes as many bytes again as extras and key have.
        None => return refuse(status::UNKNOWN, header.body_len as u64, false),
        Some(false) => return refuse(status::INVALID, 0, true),
        Some(true) => {}
    }
    if matches!(header.opcode, op::SASL_LIST | op::SASL_AUTH | op::SASL_STEP) {
        return login(&header, rest);
    }
    let head = HEADER_LEN + header.extras_len + header.key_len;
    let Some((extras, rest)) = rest.split_at_checked(header.extras_len) else {
        return Step::Incomplete { need: head };
    };
    let Some((key, rest)) = rest.split_at_checked(header.key_len) else {
        return Step::Incomplete { need: head };
    };
    let value_len = header.body_len - header.extras_len - header.key_len;
    request(&header, head, extras, key, rest, value_len)
}

/// Turns a SASL request into a step. `rest` follows the header.
fn login<'a>(header: &RequestHeader, rest: &'a [u8]) -> Step<'a> {
    let reply = LoginReply::binary(header.opcode, header.opaque);
    let step = |wish, len, swallow| Step::Login { login: Login { wish, reply }, len, swallow };
    if header.opcode == op::SASL_LIST {
        return step(Wish::Mechanisms, HEADER_LEN, 0);
    }
    if header.body_len > header.key_len + LIMITS.login_bytes_max {
        return step(Wish::Invalid, HEADER_LEN, header.body_len as u64);
    }
    let len = HEADER_LEN + header.body_len;
    let Some(body) = rest.get(..header.body_len) else {
        return Step::Incomplete { need: len };
    };
    let (mechanism, message) = body.split_at_checked(header.key_len).unwrap_or_default();
    let is_step = header.opcode == op::SASL_STEP;
    let wish = match (mechanism == MECHANISM.as_bytes(), message) {
        (false, _) => Wish::Invalid,
        (true, []) if !is_step => Wish::Begin,
        (true, message) => plain_credentials(message, is_step),
    };
    step(wish, len, 0)
}

/// Returns the refusal of a request that a connection may send only once it is authenticated; None for others, and
/// while the header is not all there.
pub(super) fn unauthenticated(input: &[u8]) -> Option<Step<'_>> {
    let header = RequestHeader::read(input.first_chunk()?)?;
    let is_open = matches!(header.opcode, op::SASL_LIST | op::SASL_AUTH | op::SASL_STEP | op::VERSION);
    let is_broken = header.key_len + header.extras_len > header.body_len;
    let reject = Reject::binary(header.opcode, header.opaque, status::AUTH);
    (!is_open && !is_broken).then_some(Step::Reject { reject, len: HEADER_LEN, swallow: 0, close: true })
}

/// Turns a head whose lengths are right into a request. `rest` follows the key.
fn request<'a>(
    header: &RequestHeader,
    head: usize,
    extras: &'a [u8],
    key: &'a [u8],
    rest: &'a [u8],
    value_len: usize,
) -> Step<'a> {
    let opcode = op::loud(header.opcode);
    let reply =
        Reply::Binary { opcode: header.opcode, opaque: header.opaque, quiet: opcode != header.opcode };
    let compare = Some(header.cas).filter(|cas| *cas != 0);
    let mut extras = Extras(extras);
    let fields = Fields { opcode, key, compare, reply };
    let request = match opcode {
        op::GET | op::GETK | op::GAT | op::GATK => Request::Get(fields.get(extras)),
        op::SET | op::ADD | op::REPLACE | op::APPEND | op::PREPEND => {
            return with_body(fields.store(extras, value_len), head, rest);
        }
        op::DELETE => Request::Delete(fields.delete()),
        op::INCREMENT | op::DECREMENT => Request::Arith(fields.arith(extras)),
        op::TOUCH => {
            Request::Touch(Touch { key: Key::plain(key), exptime: extras.exptime(), reply: fields.reply })
        }
        op::FLUSH => Request::Flush(Flush { delay: extras.exptime(), reply: fields.reply }),
        op::VERSION => Request::Version(fields.reply),
        op::QUIT => Request::Quit(fields.reply),
        op::STAT => Request::Stats(key, fields.reply),
        _ => Request::Noop(fields.reply),
    };
    Step::Request { request, len: head }
}

/// Takes the value of a store from `rest` if all of it is there.
fn with_body<'a>(store: Store<'a>, head: usize, rest: &'a [u8]) -> Step<'a> {
    let value_len = store.value_len as usize;
    match rest.get(..value_len) {
        Some(value) => {
            Step::Request { request: Request::Store(Store { value, ..store }), len: head + value_len }
        }
        None => Step::Body { request: store, head, tail: 0 },
    }
}

/// The fields of a head that several requests have in common.
struct Fields<'a> {
    /// The loud form of the opcode.
    opcode: u8,
    key: &'a [u8],
    compare: Option<u64>,
    reply: Reply<'a>,
}

impl<'a> Fields<'a> {
    fn get(self, mut extras: Extras<'_>) -> Get<'a> {
        Get {
            keys: Keys::one(Key::plain(self.key)),
            touch: matches!(self.opcode, op::GAT | op::GATK).then(|| extras.exptime()),
            vivify: None,
            recache: None,
            recache_sees_touch: false,
            may_win: false,
            unless_cas: None,
            new_cas: None,
            value: true,
            no_bump: false,
            announce: false,
            reply: self.reply,
        }
    }

    fn store(self, mut extras: Extras<'_>, value_len: usize) -> Store<'a> {
        let concatenates = matches!(self.opcode, op::APPEND | op::PREPEND);
        let mode = match self.opcode {
            op::APPEND => StoreMode::Append,
            op::PREPEND => StoreMode::Prepend,
            // A compare makes all three of them the same.
            _ if self.compare.is_some() => StoreMode::Set,
            op::ADD => StoreMode::Add,
            op::REPLACE => StoreMode::Replace,
            _ => StoreMode::Set,
        };
        let flags = if concatenates { 0 } else { extras.u32() };
        let exptime = if concatenates { Exptime::NEVER } else { extras.exptime() };
        Store {
            key: Key::plain(self.key),
            value_len: value_len as u32,
            value: &[],
            mode,
            flags,
            exptime,
            compare: self.compare,
            new_cas: None,
            invalidate: false,
            vivify: None,
            reply: self.reply,
        }
    }

    fn delete(self) -> Delete<'a> {
        Delete {
            key: Key::plain(self.key),
            compare: self.compare,
            new_cas: None,
            invalidate: false,
            touch: None,
            empty_value: false,
            reply: self.reply,
        }
    }

    fn arith(self, mut extras: Extras<'_>) -> Arith<'a> {
        let (delta, initial, seconds) = (extras.u64(), extras.u64(), extras.u32());
        Arith {
            key: Key::plain(self.key),
            delta,
            decrement: self.opcode == op::DECREMENT,
            // All ones: do not create.
            initial: (seconds != u32::MAX).then(|| (initial, exptime(seconds))),
            compare: self.compare,
            new_cas: None,
            touch: None,
            reply: self.reply,
        }
    }
}

/// The extras, read front to back; their length is checked, so missing ones read as zero.
struct Extras<'a>(&'a [u8]);

impl Extras<'_> {
    fn u32(&mut self) -> u32 {
        self.0.split_first_chunk().map_or(0, |(bytes, rest)| {
            self.0 = rest;
            u32::from_be_bytes(*bytes)
        })
    }

    fn u64(&mut self) -> u64 {
        self.0.split_first_chunk().map_or(0, |(bytes, rest)| {
            self.0 = rest;
            u64::from_be_bytes(*bytes)
        })
    }

    fn exptime(&mut self) -> Exptime {
        exptime(self.u32())
    }
}

/// Returns an expiry of the binary wire, which is unsigned: all ones is a date in 2106, not the past that the
/// same bits are in text.
fn exptime(seconds: u32) -> Exptime {
    Exptime(i64::from(seconds))
}
