//! memcached's binary protocol. A get of several keys is a row of quiet gets, closed by a noop.
//!
//! ```text
//!  0      1       2 3         4       5         6 7           8 .. 11     12 .. 15  16 .. 23
//!  magic  opcode  key length  extras  data type bucket/status total body  opaque    cas
//! ```

use super::{Expected, Garbage, Reply, VALUE_BYTES_MAX, Verb, What, Whose};
use crate::workload::keys::Names;

const HEADER: usize = 24;
const GET: u8 = 0x00;
const SET: u8 = 0x01;
const APPEND: u8 = 0x0e;
const PREPEND: u8 = 0x0f;
const DELETE: u8 = 0x04;
const INCREMENT: u8 = 0x05;
const NOOP: u8 = 0x0a;
const VERSION: u8 = 0x0b;
const GETKQ: u8 = 0x0d;
const SETQ: u8 = 0x11;
const TOUCH: u8 = 0x1c;
const GAT: u8 = 0x1d;
const SASL_AUTH: u8 = 0x21;
const NOT_FOUND: u16 = 1;
const EXISTS: u16 = 2;
const NOT_STORED: u16 = 5;
/// An expiry by which an absent counter is not created.
const NOT_MADE: u32 = u32::MAX;

fn header(out: &mut Vec<u8>, opcode: u8, key: usize, extras: &[u8], value_bytes: u32, opaque: u32) {
    let body = (key + extras.len()) as u32 + value_bytes;
    let mut header = [0; HEADER];
    header[0] = 0x80;
    header[1] = opcode;
    header[2..4].copy_from_slice(&(key as u16).to_be_bytes());
    header[4] = extras.len() as u8;
    header[8..12].copy_from_slice(&body.to_be_bytes());
    header[12..16].copy_from_slice(&opaque.to_be_bytes());
    out.extend_from_slice(&header);
    out.extend_from_slice(extras);
}

pub(super) fn get(out: &mut Vec<u8>, names: &Names, key: u64) {
    header(out, GET, names.bytes(), &[], 0, 0);
    names.write(out, key);
}

pub(super) fn gets(out: &mut Vec<u8>, names: &Names, keys: &[u64]) {
    for (index, key) in keys.iter().enumerate() {
        header(out, GETKQ, names.bytes(), &[], 0, index as u32);
        names.write(out, *key);
    }
    noop(out);
}

/// Closes a row of quiet requests.
pub(super) fn noop(out: &mut Vec<u8>) {
    header(out, NOOP, 0, &[], 0, 0);
}

/// Makes a set that stands in `request` one that is answered by errors only, which name its place.
pub(super) fn quieten(request: &mut [u8], place: u32) {
    request[1] = SETQ;
    request[12..16].copy_from_slice(&place.to_be_bytes());
}

pub(super) fn set_head(out: &mut Vec<u8>, names: &Names, key: u64, bytes: u32, expiry_s: u32) {
    let mut extras = [0; 8];
    extras[..4].copy_from_slice(&names.flags(key).to_be_bytes());
    extras[4..].copy_from_slice(&expiry_s.to_be_bytes());
    header(out, SET, names.bytes(), &extras, bytes, 0);
    names.write(out, key);
}

pub(super) fn cas_head(
    out: &mut Vec<u8>,
    names: &Names,
    key: u64,
    bytes: u32,
    (expiry_s, unique): (u32, u64),
) {
    let begin = out.len();
    set_head(out, names, key, bytes, expiry_s);
    out[begin + 16..begin + HEADER].copy_from_slice(&unique.to_be_bytes());
}

pub(super) fn add_head(out: &mut Vec<u8>, is_front: bool, names: &Names, key: u64, bytes: u32) {
    header(out, if is_front { PREPEND } else { APPEND }, names.bytes(), &[], bytes, 0);
    names.write(out, key);
}

pub(super) fn incr(out: &mut Vec<u8>, names: &Names, key: u64) {
    let mut extras = [0; 20];
    extras[..8].copy_from_slice(&1u64.to_be_bytes());
    extras[16..].copy_from_slice(&NOT_MADE.to_be_bytes());
    header(out, INCREMENT, names.bytes(), &extras, 0, 0);
    names.write(out, key);
}

/// Adds 1, or creates the counter at 1, to live for ever.
pub(super) fn incr_or_create(out: &mut Vec<u8>, names: &Names) {
    let mut extras = [0; 20];
    extras[..8].copy_from_slice(&1u64.to_be_bytes());
    extras[8..16].copy_from_slice(&1u64.to_be_bytes());
    header(out, INCREMENT, names.bytes(), &extras, 0, 0);
    names.write(out, 0);
}

pub(super) fn version(out: &mut Vec<u8>) {
    header(out, VERSION, 0, &[], 0, 0);
}

pub(super) fn delete(out: &mut Vec<u8>, names: &Names, key: u64) {
    header(out, DELETE, names.bytes(), &[], 0, 0);
    names.write(out, key);
}

pub(super) fn touch(out: &mut Vec<u8>, names: &Names, key: u64, expiry_s: u32) {
    header(out, TOUCH, names.bytes(), &expiry_s.to_be_bytes(), 0, 0);
    names.write(out, key);
}

pub(super) fn gat(out: &mut Vec<u8>, names: &Names, key: u64, expiry_s: u32) {
    header(out, GAT, names.bytes(), &expiry_s.to_be_bytes(), 0, 0);
    names.write(out, key);
}

/// A login by SASL's PLAIN.
pub(super) fn login(out: &mut Vec<u8>, words: &str) {
    const MECHANISM: &str = "PLAIN";
    header(out, SASL_AUTH, MECHANISM.len(), &[], words.len() as u32, 0);
    out.extend_from_slice(MECHANISM.as_bytes());
    out.extend_from_slice(words.as_bytes());
}

/// Whether a reply to [`login`] lets us in; none while it is not whole.
pub(super) fn login_reply(input: &[u8]) -> Option<Result<(), String>> {
    match Head::read(input) {
        Ok(Some(head)) if head.opcode == SASL_AUTH && head.status == 0 => Some(Ok(())),
        Ok(Some(head)) => Some(Err(format!("status {}", head.status))),
        Ok(None) => None,
        Err(garbage) => Some(Err(garbage.to_string())),
    }
}

/// The head of a reply.
struct Head {
    opcode: u8,
    status: u16,
    opaque: u32,
    unique: u64,
    /// The flags of a value, if it comes with some.
    flags: Option<u32>,
    /// Where the value begins and ends.
    value: std::ops::Range<usize>,
}

impl Head {
    /// Reads the head of a reply that is there as a whole.
    fn read(input: &[u8]) -> Result<Option<Self>, Garbage> {
        if input.first().is_some_and(|magic| *magic != 0x81) {
            return Err(Garbage::new("not a binary reply", input));
        }
        if input.len() < HEADER {
            return Ok(None);
        }
        let key = usize::from(u16::from_be_bytes([input[2], input[3]]));
        let extras = usize::from(input[4]);
        let number = |at: usize| u32::from_be_bytes([input[at], input[at + 1], input[at + 2], input[at + 3]]);
        let body = number(8);
        if u64::from(body) > VALUE_BYTES_MAX || (body as usize) < key + extras {
            return Err(Garbage::new("a length that cannot be", input));
        }
        let end = HEADER + body as usize;
        Ok((input.len() >= end).then(|| Self {
            opcode: input[1],
            status: u16::from_be_bytes([input[6], input[7]]),
            opaque: number(12),
            unique: input[16..HEADER].iter().fold(0, |unique, byte| unique << 8 | u64::from(*byte)),
            flags: (extras == 4).then(|| number(HEADER)),
            value: HEADER + extras + key..end,
        }))
    }
}

/// The version in a reply to [`version`].
pub(super) fn read_version(input: &[u8]) -> Result<Option<&[u8]>, Garbage> {
    match Head::read(input)? {
        Some(head) if head.opcode == VERSION && head.status == 0 => Ok(Some(&input[head.value])),
        Some(_) => Err(Garbage::new("no version of a memcached", input)),
        None => Ok(None),
    }
}

pub(super) fn next(expected: Expected, input: &[u8]) -> Result<Option<Reply<'_>>, Garbage> {
    let Some(head) = Head::read(input)? else { return Ok(None) };
    let consumed = head.value.end;
    let value = &input[head.value];
    let several = expected.keys > 1;
    if head.opcode != asked_for(expected.verb, several) {
        if several && head.opcode == NOOP {
            let what = if expected.verb == Verb::Set { What::Done } else { What::Frame };
            return Ok(Some(Reply { consumed, what, is_last: true }));
        }
        return Err(Garbage::new("a reply to another opcode", input));
    }
    let places = if several { expected.keys } else { 1 };
    if head.opaque >= places {
        return Err(Garbage::new("an opaque that was not sent", input));
    }
    let what = match (head.status, expected.verb) {
        (0, Verb::Get) if several => What::Value(Whose::Index(head.opaque), value, head.flags),
        (0, Verb::Gets) => What::Unique(Whose::Only, value, head.flags, head.unique),
        (0, Verb::Get | Verb::Gat) => What::Value(Whose::Only, value, head.flags),
        (0, Verb::Incr) => {
            value.try_into().map_or(What::Done, |value| What::Count(u64::from_be_bytes(value)))
        }
        (0, _) => What::Done,
        (NOT_FOUND, verb) if verb != Verb::Set => What::Miss,
        (NOT_STORED, Verb::Append | Verb::Prepend) => What::Miss,
        (EXISTS, Verb::Cas) => What::Exists,
        (NOT_STORED, _) => What::NotStored(value),
        _ => What::Error(value),
    };
    Ok(Some(Reply { consumed, what, is_last: !several }))
}

fn asked_for(verb: Verb, several: bool) -> u8 {
    match verb {
        Verb::Get if several => GETKQ,
        Verb::Set if several => SETQ,
        Verb::Get | Verb::Gets => GET,
        Verb::Set | Verb::Cas => SET,
        Verb::Append => APPEND,
        Verb::Prepend => PREPEND,
        Verb::Connect => VERSION,
        Verb::Incr => INCREMENT,
        Verb::Delete => DELETE,
        Verb::Touch => TOUCH,
        Verb::Gat => GAT,
    }
}
