//! memcached's meta commands. A get of several keys is a row of quiet gets with opaques, closed by `mn`.

use super::{
    Expected, Garbage, Reply, Verb, What, Whose, block, flag, flags_of, line, number, push_number, text,
};
use crate::workload::keys::Names;

pub(super) fn get(out: &mut Vec<u8>, names: &Names, key: u64) {
    out.extend_from_slice(b"mg ");
    names.write(out, key);
    out.extend_from_slice(b" v f\r\n");
}

pub(super) fn get_unique(out: &mut Vec<u8>, names: &Names, key: u64) {
    out.extend_from_slice(b"mg ");
    names.write(out, key);
    out.extend_from_slice(b" v f c\r\n");
}

pub(super) fn gets(out: &mut Vec<u8>, names: &Names, keys: &[u64]) {
    for (index, key) in keys.iter().enumerate() {
        out.extend_from_slice(b"mg ");
        names.write(out, *key);
        out.extend_from_slice(b" v f q O");
        push_number(out, index as u64);
        out.extend_from_slice(b"\r\n");
    }
    noop(out);
}

/// The line before a value, without its end: the key and the length.
fn storage_line(out: &mut Vec<u8>, names: &Names, key: u64, bytes: u32) {
    out.extend_from_slice(b"ms ");
    names.write(out, key);
    out.push(b' ');
    push_number(out, u64::from(bytes));
}

pub(super) fn set_head(out: &mut Vec<u8>, names: &Names, key: u64, bytes: u32, expiry_s: u32) {
    storage_line(out, names, key, bytes);
    out.extend_from_slice(b" F");
    push_number(out, u64::from(names.flags(key)));
    if expiry_s > 0 {
        out.extend_from_slice(b" T");
        push_number(out, u64::from(expiry_s));
    }
    out.extend_from_slice(b"\r\n");
}

pub(super) fn cas_head(
    out: &mut Vec<u8>,
    names: &Names,
    key: u64,
    bytes: u32,
    (expiry_s, unique): (u32, u64),
) {
    set_head(out, names, key, bytes, expiry_s);
    flag(out, format!(" C{unique}").as_bytes());
}

pub(super) fn add_head(out: &mut Vec<u8>, is_front: bool, names: &Names, key: u64, bytes: u32) {
    storage_line(out, names, key, bytes);
    out.extend_from_slice(if is_front { b" MP\r\n" } else { b" MA\r\n" });
}

/// Closes a row of quiet requests.
pub(super) fn noop(out: &mut Vec<u8>) {
    out.extend_from_slice(b"mn\r\n");
}

pub(super) fn incr(out: &mut Vec<u8>, names: &Names, key: u64) {
    out.extend_from_slice(b"ma ");
    names.write(out, key);
    out.extend_from_slice(b"\r\n");
}

/// Adds 1, or creates the counter at 1; the new value comes back.
pub(super) fn incr_or_create(out: &mut Vec<u8>, names: &Names) {
    out.extend_from_slice(b"ma ");
    names.write(out, 0);
    out.extend_from_slice(b" N0 J1 v\r\n");
}

pub(super) fn delete(out: &mut Vec<u8>, names: &Names, key: u64) {
    out.extend_from_slice(b"md ");
    names.write(out, key);
    out.extend_from_slice(b"\r\n");
}

pub(super) fn touch(out: &mut Vec<u8>, names: &Names, key: u64, expiry_s: u32) {
    out.extend_from_slice(b"mg ");
    names.write(out, key);
    out.extend_from_slice(b" T");
    push_number(out, u64::from(expiry_s));
    out.extend_from_slice(b"\r\n");
}

pub(super) fn gat(out: &mut Vec<u8>, names: &Names, key: u64, expiry_s: u32) {
    out.extend_from_slice(b"mg ");
    names.write(out, key);
    out.extend_from_slice(b" v f T");
    push_number(out, u64::from(expiry_s));
    out.extend_from_slice(b"\r\n");
}

pub(super) fn next(expected: Expected, input: &[u8]) -> Result<Option<Reply<'_>>, Garbage> {
    let Some((line, next)) = line(input)? else { return Ok(None) };
    if let (Verb::Get | Verb::Gets, Some(rest)) = (expected.verb, line.strip_prefix(b"VA ")) {
        return value(expected, input, rest, next);
    }
    if let (Verb::Incr, Some(rest)) = (expected.verb, line.strip_prefix(b"VA ")) {
        return count(input, rest, next);
    }
    let several = expected.keys > 1;
    let (what, is_last) = match (expected.verb, first_word(line)) {
        (Verb::Get, b"MN") if several => (What::Frame, true),
        (Verb::Get | Verb::Gets, b"EN") => (What::Miss, !several),
        (Verb::Set, b"MN") if several => (What::Done, true),
        (verb, b"HD") if !verb.is_read() && !several => (What::Done, true),
        (Verb::Touch, b"EN") | (Verb::Incr | Verb::Delete | Verb::Cas, b"NF") => (What::Miss, true),
        (Verb::Append | Verb::Prepend, b"NS") => (What::Miss, true),
        (Verb::Cas, b"EX") => (What::Exists, true),
        (Verb::Set | Verb::Incr, b"NS") => (What::NotStored(line), !several),
        _ if text::is_error(line) => (What::Error(line), !several),
        _ => return Err(Garbage::new("not a reply to what was asked", input)),
    };
    Ok(Some(Reply { consumed: next, what, is_last }))
}

/// The value that an increment was asked to return.
fn count<'a>(input: &'a [u8], rest: &[u8], next: usize) -> Result<Option<Reply<'a>>, Garbage> {
    let garbage = || Garbage::new("a counter that is no number", input);
    let bytes = number(rest.split(|byte| *byte == b' ').next().unwrap_or_default()).ok_or_else(garbage)?;
    let Some((data, next)) = block(input, next, bytes)? else { return Ok(None) };
    let value = number(data.trim_ascii_end()).ok_or_else(garbage)?;
    Ok(Some(Reply { consumed: next, what: What::Count(value), is_last: true }))
}

fn first_word(line: &[u8]) -> &[u8] {
    line.split(|byte| *byte == b' ').next().unwrap_or_default()
}

fn value<'a>(
    expected: Expected,
    input: &'a [u8],
    rest: &'a [u8],
    next: usize,
) -> Result<Option<Reply<'a>>, Garbage> {
    let mut words = rest.split(|byte| *byte == b' ');
    let Some(bytes) = words.next().and_then(number) else {
        return Err(Garbage::new("a value without its length", input));
    };
    let given = |sign: &[u8]| words.clone().find_map(|word: &[u8]| word.strip_prefix(sign));
    let flags = given(b"f").and_then(flags_of);
    let given = |sign: &[u8]| given(sign).and_then(number);
    if expected.verb == Verb::Gets {
        let unique = given(b"c").ok_or_else(|| Garbage::new("a value without its unique number", input))?;
        let Some((data, next)) = block(input, next, bytes)? else { return Ok(None) };
        let what = What::Unique(Whose::Only, data, flags, unique);
        return Ok(Some(Reply { consumed: next, what, is_last: true }));
    }
    let whose = if expected.keys > 1 {
        let opaque = given(b"O");
        match opaque {
            Some(index) if index < u64::from(expected.keys) => Whose::Index(index as u32),
            _ => return Err(Garbage::new("a value without the opaque that was asked for", input)),
        }
    } else {
        Whose::Only
    };
    let Some((data, next)) = block(input, next, bytes)? else { return Ok(None) };
    Ok(Some(Reply { consumed: next, what: What::Value(whose, data, flags), is_last: expected.keys == 1 }))
}
