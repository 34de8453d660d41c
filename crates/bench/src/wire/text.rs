//! memcached's classic text protocol.

use super::{Expected, Garbage, Reply, Verb, What, Whose, block, flags_of, line, number, push_number};
use crate::workload::keys::Names;

pub(super) fn get(out: &mut Vec<u8>, names: &Names, keys: &[u64]) {
    read(out, b"get", names, keys);
}

pub(super) fn gets(out: &mut Vec<u8>, names: &Names, key: u64) {
    read(out, b"gets", names, &[key]);
}

fn read(out: &mut Vec<u8>, command: &[u8], names: &Names, keys: &[u64]) {
    out.extend_from_slice(command);
    for key in keys {
        out.push(b' ');
        names.write(out, *key);
    }
    out.extend_from_slice(b"\r\n");
}

pub(super) fn set_head(out: &mut Vec<u8>, names: &Names, key: u64, bytes: u32, expiry_s: u32) {
    storage_line(out, b"set ", names, key, (expiry_s, bytes));
    out.extend_from_slice(b"\r\n");
}

pub(super) fn cas_head(
    out: &mut Vec<u8>,
    names: &Names,
    key: u64,
    bytes: u32,
    (expiry_s, unique): (u32, u64),
) {
    storage_line(out, b"cas ", names, key, (expiry_s, bytes));
    out.push(b' ');
    push_number(out, unique);
    out.extend_from_slice(b"\r\n");
}

pub(super) fn add_head(out: &mut Vec<u8>, is_front: bool, names: &Names, key: u64, bytes: u32) {
    storage_line(out, if is_front { b"prepend " } else { b"append " }, names, key, (0, bytes));
    out.extend_from_slice(b"\r\n");
}

/// The line before a value, without its end: the command with its blank, the key, its flags, expiry and length.
fn storage_line(out: &mut Vec<u8>, command: &[u8], names: &Names, key: u64, (expiry_s, bytes): (u32, u32)) {
    out.extend_from_slice(command);
    names.write(out, key);
    for number in [names.flags(key), expiry_s, bytes] {
        out.push(b' ');
        push_number(out, u64::from(number));
    }
}

/// A whole request that stores a short value for ever, by `set` or `add`.
pub(super) fn store(out: &mut Vec<u8>, command: &str, names: &Names, value: &str) {
    out.extend_from_slice(command.as_bytes());
    out.push(b' ');
    names.write(out, 0);
    out.extend_from_slice(format!(" 0 0 {}\r\n{value}\r\n", value.len()).as_bytes());
}

/// The store that logs a connection in.
pub(super) fn login(out: &mut Vec<u8>, key: &str, words: &str) {
    out.extend_from_slice(format!("set {key} 0 0 {}\r\n{words}\r\n", words.len()).as_bytes());
}

pub(super) fn incr(out: &mut Vec<u8>, names: &Names, key: u64) {
    out.extend_from_slice(b"incr ");
    names.write(out, key);
    out.extend_from_slice(b" 1\r\n");
}

pub(super) fn delete(out: &mut Vec<u8>, names: &Names, key: u64) {
    out.extend_from_slice(b"delete ");
    names.write(out, key);
    out.extend_from_slice(b"\r\n");
}

pub(super) fn touch(out: &mut Vec<u8>, names: &Names, key: u64, expiry_s: u32) {
    out.extend_from_slice(b"touch ");
    names.write(out, key);
    out.push(b' ');
    push_number(out, u64::from(expiry_s));
    out.extend_from_slice(b"\r\n");
}

pub(super) fn gat(out: &mut Vec<u8>, names: &Names, key: u64, expiry_s: u32) {
    out.extend_from_slice(b"gat ");
    push_number(out, u64::from(expiry_s));
    out.push(b' ');
    names.write(out, key);
    out.extend_from_slice(b"\r\n");
}

pub(super) fn next(expected: Expected, input: &[u8]) -> Result<Option<Reply<'_>>, Garbage> {
    let Some((line, next)) = line(input)? else { return Ok(None) };
    let is_read = expected.verb.is_read();
    if is_read && line.starts_with(b"VALUE ") {
        return value(expected, input, &line[b"VALUE ".len()..], next);
    }
    let what = match (expected.verb, line) {
        (_, b"END") if is_read => What::Miss,
        (Verb::Set | Verb::Cas | Verb::Append | Verb::Prepend, b"STORED")
        | (Verb::Delete, b"DELETED")
        | (Verb::Touch, b"TOUCHED") => What::Done,
        (Verb::Incr | Verb::Delete | Verb::Touch | Verb::Cas, b"NOT_FOUND") => What::Miss,
        (Verb::Append | Verb::Prepend, b"NOT_STORED") => What::Miss,
        (Verb::Cas, b"EXISTS") => What::Exists,
        (Verb::Connect, said) if said.starts_with(b"VERSION ") => What::Done,
        // memcached pads a counter that became shorter with spaces.
        (Verb::Incr, digits) if number(digits.trim_ascii_end()).is_some() => {
            What::Count(number(digits.trim_ascii_end()).unwrap_or_default())
        }
        (_, b"NOT_STORED") => What::NotStored(line),
        (_, said) if is_error(said) => What::Error(said),
        _ => return Err(Garbage::new("not a reply to what was asked", input)),
    };
    Ok(Some(Reply { consumed: next, what, is_last: true }))
}

/// Whether a line refuses a request, in any of the ways that servers do.
pub(super) fn is_error(line: &[u8]) -> bool {
    let starts = |word: &[u8]| line.starts_with(word);
    starts(b"ERROR") || starts(b"CLIENT_ERROR") || starts(b"SERVER_ERROR")
}

fn value<'a>(
    expected: Expected,
    input: &'a [u8],
    rest: &'a [u8],
    next: usize,
) -> Result<Option<Reply<'a>>, Garbage> {
    let mut words = rest.split(|byte| *byte == b' ');
    let (name, flags, bytes) = (words.next(), words.next(), words.next().and_then(number));
    let flags = flags.and_then(flags_of);
    let (Some(name), Some(bytes)) = (name, bytes) else {
        return Err(Garbage::new("a value without its length", input));
    };
    let Some((data, next)) = block(input, next, bytes)? else { return Ok(None) };
    let what = match (expected.verb, words.next().and_then(number)) {
        (Verb::Gets, Some(unique)) => What::Unique(Whose::Name(name), data, flags, unique),
        (Verb::Gets, None) => return Err(Garbage::new("a value without its unique number", input)),
        _ => What::Value(Whose::Name(name), data, flags),
    };
    if expected.keys > 1 {
        return Ok(Some(Reply { consumed: next, what, is_last: false }));
    }
    // The only value of a reply is taken together with its end: one step less for the common request.
    const END: &[u8] = b"END\r\n";
    let rest = &input[next..];
    if rest.starts_with(END) {
        Ok(Some(Reply { consumed: next + END.len(), what, is_last: true }))
    } else if END.starts_with(rest) {
        Ok(None)
    } else {
        Err(Garbage::new("more than one value for one key", rest))
    }
}
