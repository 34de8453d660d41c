//! The protocols as a client speaks them: requests into bytes, bytes into replies. No sockets, no clocks, and
//! no allocation for a request or a reply.
//!
//! Requests are appended to a buffer, so that a batch of them is one write. Replies are read from whatever
//! has arrived so far: [`Decoder::next`] returns `None` until the next piece is whole, whatever the split.

mod binary;
mod counting;
mod hint;
mod login;
mod meta;
mod resp;
mod text;

pub use crate::workload::verb::Verb;
pub use counting::Counting;
pub use login::Login;

use crate::workload::keys::Names;
use crate::workload::values::Pool;
use std::fmt;
use std::str::FromStr;

/// A line of a reply that is longer than this is not one of a cache.
const LINE_BYTES_MAX: usize = 8 << 10;
/// A value longer than this is not one that was asked for.
const VALUE_BYTES_MAX: u64 = 1 << 30;

/// The protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// memcached's classic text.
    Text,
    /// memcached's meta commands (`mg`, `ms`, ...).
    Meta,
    /// memcached's binary protocol.
    Binary,
    /// Redis's RESP, version 2.
    Resp2,
}

impl Protocol {
    /// Its name on the command line and in a result.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Meta => "meta",
            Self::Binary => "binary",
            Self::Resp2 => "resp2",
        }
    }

    /// The port its servers listen on unless told otherwise.
    pub fn default_port(self) -> u16 {
        if self == Self::Resp2 { 6379 } else { 11211 }
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "text" | "memcache_text" => Ok(Self::Text),
            "meta" => Ok(Self::Meta),
            "binary" | "memcache_binary" => Ok(Self::Binary),
            "resp2" | "resp" | "redis" => Ok(Self::Resp2),
            _ => Err("is one of text, meta, binary, resp2".to_string()),
        }
    }
}

/// Writes requests.
#[derive(Debug)]
pub struct Encoder {
    /// The protocol.
    pub protocol: Protocol,
    /// How keys of values are called.
    pub items: Names,
    /// How keys of counters are called: a value cannot be counted up.
    pub counters: Names,
    /// Where values come from.
    pub pool: Pool,
}

impl Encoder {
    /// Asks for the values of `keys`, in one request.
    pub fn get(&self, out: &mut Vec<u8>, keys: &[u64]) {
        match (self.protocol, keys) {
            (Protocol::Text, _) => text::get(out, &self.items, keys),
            (Protocol::Meta, [key]) => meta::get(out, &self.items, *key),
            (Protocol::Meta, _) => meta::gets(out, &self.items, keys),
            (Protocol::Binary, [key]) => binary::get(out, &self.items, *key),
            (Protocol::Binary, _) => binary::gets(out, &self.items, keys),
            (Protocol::Resp2, _) => resp::get(out, &self.items, keys),
        }
    }

    /// Stores `bytes` bytes that tell of `key` and `version`, for `expiry_s` seconds or, at 0, for ever.
    pub fn set(&self, out: &mut Vec<u8>, key: u64, bytes: u32, expiry_s: u32, version: u64) {
        match self.protocol {
            Protocol::Text => text::set_head(out, &self.items, key, bytes, expiry_s),
            Protocol::Meta => meta::set_head(out, &self.items, key, bytes, expiry_s),
            Protocol::Binary => binary::set_head(out, &self.items, key, bytes, expiry_s),
            Protocol::Resp2 => resp::set_head(out, &self.items, key, bytes, expiry_s),
        }
        self.value(out, key, Value { bytes, expiry_s, version });
    }

    /// Stores values in a row, of which only the last is answered; as [`Self::cas`], not in redis.
    pub fn sets(&self, out: &mut Vec<u8>, values: impl Iterator<Item = (u64, Value)>) {
        let mut values = values.enumerate().peekable();
        while let Some((index, (key, value))) = values.next() {
            let (begin, is_last) = (out.len(), values.peek().is_none());
            let Value { bytes, expiry_s, .. } = value;
            match self.protocol {
                Protocol::Text => {
                    text::set_head(out, &self.items, key, bytes, expiry_s);
                    if !is_last {
                        flag(out, b" noreply");
                    }
                }
                Protocol::Meta => {
                    meta::set_head(out, &self.items, key, bytes, expiry_s);
                    flag(out, b" q");
                }
                Protocol::Binary => {
                    binary::set_head(out, &self.items, key, bytes, expiry_s);
                    binary::quieten(&mut out[begin..], index as u32);
                }
                Protocol::Resp2 => resp::set_head(out, &self.items, key, bytes, expiry_s),
            }
            self.value(out, key, value);
        }
        match self.protocol {
            Protocol::Meta => meta::noop(out),
            Protocol::Binary => binary::noop(out),
            Protocol::Text | Protocol::Resp2 => {}
        }
    }

    /// Asks for the value of a key with its unique number.
    pub fn gets(&self, out: &mut Vec<u8>, key: u64) {
        match self.protocol {
            Protocol::Text => text::gets(out, &self.items, key),
            Protocol::Meta => meta::get_unique(out, &self.items, key),
            Protocol::Binary => binary::get(out, &self.items, key),
            Protocol::Resp2 => resp::get(out, &self.items, &[key]),
        }
    }

    /// Stores a value as [`Self::set`] does, if the key still has the number `unique`. Redis has no such command, and
    /// no plan asks for it there.
    pub fn cas(&self, out: &mut Vec<u8>, key: u64, unique: u64, value: Value) {
        let Value { bytes, expiry_s, .. } = value;
        match self.protocol {
            Protocol::Text => text::cas_head(out, &self.items, key, bytes, (expiry_s, unique)),
            Protocol::Meta => meta::cas_head(out, &self.items, key, bytes, (expiry_s, unique)),
            Protocol::Binary => binary::cas_head(out, &self.items, key, bytes, (expiry_s, unique)),
            Protocol::Resp2 => resp::set_head(out, &self.items, key, bytes, expiry_s),
        }
        self.value(out, key, value);
    }

    /// Adds a value in front of the one that a key has, or behind it; for redis as [`Self::cas`].
    pub fn add(&self, out: &mut Vec<u8>, is_front: bool, key: u64, value: Value) {
        match self.protocol {
            Protocol::Text => text::add_head(out, is_front, &self.items, key, value.bytes),
            Protocol::Meta => meta::add_head(out, is_front, &self.items, key, value.bytes),
            Protocol::Binary => binary::add_head(out, is_front, &self.items, key, value.bytes),
            Protocol::Resp2 => resp::set_head(out, &self.items, key, value.bytes, 0),
        }
        self.value(out, key, Value { expiry_s: 0, ..value });
    }

    /// Appends a value and whatever ends the request.
    fn value(&self, out: &mut Vec<u8>, key: u64, Value { bytes, expiry_s, version }: Value) {
        self.pool.write(out, self.items.hash(key), bytes, version);
        match self.protocol {
            Protocol::Binary => {}
            Protocol::Resp2 => resp::set_tail(out, expiry_s),
            Protocol::Text | Protocol::Meta => out.extend_from_slice(b"\r\n"),
        }
    }

    /// Stores a counter that stands at 0.
    pub fn set_counter(&self, out: &mut Vec<u8>, key: u64) {
        match self.protocol {
            Protocol::Text => text::set_head(out, &self.counters, key, 1, 0),
            Protocol::Meta => meta::set_head(out, &self.counters, key, 1, 0),
            Protocol::Binary => binary::set_head(out, &self.counters, key, 1, 0),
            Protocol::Resp2 => resp::set_head(out, &self.counters, key, 1, 0),
        }
        out.push(b'0');
        match self.protocol {
            Protocol::Binary => {}
            Protocol::Resp2 => resp::set_tail(out, 0),
            Protocol::Text | Protocol::Meta => out.extend_from_slice(b"\r\n"),
        }
    }

    /// Adds one to a counter; where the protocol leaves the choice, one that is absent is not made.
    pub fn incr(&self, out: &mut Vec<u8>, key: u64) {
        match self.protocol {
            Protocol::Text => text::incr(out, &self.counters, key),
            Protocol::Meta => meta::incr(out, &self.counters, key),
            Protocol::Binary => binary::incr(out, &self.counters, key),
            Protocol::Resp2 => resp::incr(out, &self.counters, key),
        }
    }

    /// Asks for the server's version.
    pub fn version(&self, out: &mut Vec<u8>) {
        match self.protocol {
            Protocol::Text | Protocol::Meta => out.extend_from_slice(b"version\r\n"),
            Protocol::Binary => binary::version(out),
            Protocol::Resp2 => resp::command(out, &["PING"]),
        }
    }

    /// Removes a key.
    pub fn delete(&self, out: &mut Vec<u8>, key: u64) {
        match self.protocol {
            Protocol::Text => text::delete(out, &self.items, key),
            Protocol::Meta => meta::delete(out, &self.items, key),
            Protocol::Binary => binary::delete(out, &self.items, key),
            Protocol::Resp2 => resp::delete(out, &self.items, key),
        }
    }

    /// Asks for the value of a key, and lets it live for `expiry_s` seconds from now; 0 is for ever.
    pub fn gat(&self, out: &mut Vec<u8>, key: u64, expiry_s: u32) {
        match self.protocol {
            Protocol::Text => text::gat(out, &self.items, key, expiry_s),
            Protocol::Meta => meta::gat(out, &self.items, key, expiry_s),
            Protocol::Binary => binary::gat(out, &self.items, key, expiry_s),
            Protocol::Resp2 => resp::gat(out, &self.items, key, expiry_s),
        }
    }

    /// Lets a key live for `expiry_s` seconds from now; 0 is for ever.
    pub fn touch(&self, out: &mut Vec<u8>, key: u64, expiry_s: u32) {
        match self.protocol {
            Protocol::Text => text::touch(out, &self.items, key, expiry_s),
            Protocol::Meta => meta::touch(out, &self.items, key, expiry_s),
            Protocol::Binary => binary::touch(out, &self.items, key, expiry_s),
            Protocol::Resp2 => resp::touch(out, &self.items, key, expiry_s),
        }
    }
}

/// A value to store.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    /// Its length.
    pub bytes: u32,
    /// How long it lives; 0 is for ever.
    pub expiry_s: u32,
    /// The version that it carries.
    pub version: u64,
}

/// The request that the next reply answers.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Its verb.
    pub verb: Verb,
    /// Of how many keys; more than one only for a get, and for sets in a row.
    pub keys: u32,
}

/// A piece of a reply.
#[derive(Debug, PartialEq)]
pub struct Reply<'a> {
    /// Bytes of the input that it took.
    pub consumed: usize,
    /// Its content.
    pub what: What<'a>,
    /// Whether it ends the request's reply.
    pub is_last: bool,
}

/// The content of a piece of a reply.
#[derive(Debug, PartialEq)]
pub enum What<'a> {
    /// A key was found, and this is its value, with its client flags where the protocol has them.
    Value(Whose<'a>, &'a [u8], Option<u32>),
    /// The same, with the unique number of the value.
    Unique(Whose<'a>, &'a [u8], Option<u32>, u64),
    /// It was done: stored, counted, removed, touched.
    Done,
    /// It was counted, and this is the new value.
    Count(u64),
    /// There is no such key.
    Miss,
    /// It was not stored, since the key has another unique number.
    Exists,
    /// Framing without content.
    Frame,
    /// It was not stored, since another client was first; in the server's words.
    NotStored(&'a [u8]),
    /// It was refused, in the server's words.
    Error(&'a [u8]),
}

/// Which of the keys asked for a value belongs to.
#[derive(Debug, PartialEq)]
pub enum Whose<'a> {
    /// Only one was asked for, and the protocol does not repeat it.
    Only,
    /// The one at this place of the request.
    Index(u32),
    /// The one of this name.
    Name(&'a [u8]),
}

/// The bytes are not a reply to the request; the connection is out of step or refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Garbage {
    /// The error, with the first of the bytes, and what to do about them if they are known.
    pub message: String,
}

impl Garbage {
    fn new(why: &str, input: &[u8]) -> Self {
        let shown = &input[..input.len().min(40)];
        let hint = hint::of(input).map(|hint| format!("; {hint}")).unwrap_or_default();
        Self { message: format!("{why}: \"{}\"{hint}", shown.escape_ascii()) }
    }

    /// Something came although nothing was asked.
    pub fn unasked(input: &[u8]) -> Self {
        Self::new("something that was not asked for", input)
    }
}

impl fmt::Display for Garbage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Reads the replies of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    protocol: Protocol,
    resp: resp::Progress,
}

impl Decoder {
    /// Of a connection at its beginning.
    pub fn new(protocol: Protocol) -> Self {
        Self { protocol, resp: resp::Progress::default() }
    }

    /// The next piece of the reply to `expected` from the beginning of `input`, if it is there as a whole.
    ///
    /// # Errors
    /// The bytes cannot become a reply to that request.
    pub fn next<'a>(&mut self, expected: Expected, input: &'a [u8]) -> Result<Option<Reply<'a>>, Garbage> {
        // A gat is answered as a get; only the binary protocol repeats its opcode.
        let read =
            if expected.verb == Verb::Gat { Expected { verb: Verb::Get, ..expected } } else { expected };
        let reply = match self.protocol {
            Protocol::Text => text::next(read, input),
            Protocol::Meta if expected.verb == Verb::Connect => text::next(read, input),
            Protocol::Meta => meta::next(read, input),
            Protocol::Binary => binary::next(expected, input),
            Protocol::Resp2 => self.resp.next(read, input),
        };
        match reply {
            Ok(Some(Reply { what: What::Error(_), .. })) if hint::is_limit(input) => {
                Err(Garbage::new("that it takes no more connections", input))
            }
            reply => reply,
        }
    }
}

/// The first line of `input` without its end, and where the next one begins.
fn line(input: &[u8]) -> Result<Option<(&[u8], usize)>, Garbage> {
    match memchr::memchr(b'\n', input) {
        Some(end) if end > 0 && input[end - 1] == b'\r' => Ok(Some((&input[..end - 1], end + 1))),
        Some(_) => Err(Garbage::new("a line without a carriage return", input)),
        None if input.len() > LINE_BYTES_MAX => Err(Garbage::new("a line without an end", input)),
        None => Ok(None),
    }
}

/// Returns the value of `bytes` bytes at `from` and the place after its line end, if all of it is there.
fn block(input: &[u8], from: usize, bytes: u64) -> Result<Option<(&[u8], usize)>, Garbage> {
    if bytes > VALUE_BYTES_MAX {
        return Err(Garbage::new("a value that is too long to be one", input));
    }
    let end = from + bytes as usize;
    if input.len() < end + 2 {
        return Ok(None);
    }
    if &input[end..end + 2] != b"\r\n" {
        return Err(Garbage::new("a value that is longer than it says", input));
    }
    Ok(Some((&input[from..end], end + 2)))
}

/// A decimal number without a sign, of at most 19 digits.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    digits
        .iter()
        .try_fold(0u64, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + u64::from(digit - b'0')))
}

/// Client flags in decimal; flags that do not fit are none that were stored.
fn flags_of(digits: &[u8]) -> Option<u32> {
    number(digits).map(|flags| u32::try_from(flags).unwrap_or(u32::MAX))
}

/// Continues a line that was ended by a flag, and ends it again.
fn flag(out: &mut Vec<u8>, flag: &[u8]) {
    out.truncate(out.len() - b"\r\n".len());
    out.extend_from_slice(flag);
    out.extend_from_slice(b"\r\n");
}

/// Appends a number in decimal.
fn push_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests;
