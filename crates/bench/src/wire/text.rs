//! memcached's classic text protocol.

use super::{Expected, Garbage, Reply, Verb, What, Whose, block, line, number, push_number};
use crate::workload::keys::Names;

pub(super) fn get(out: &mut Vec<u8>, names: &Names, keys: &[u64]) {
    out.extend_from_slice(b"get");
    for key in keys {
        out.push(b' ');
        names.write(out, *key);
    }
    out.extend_from_slice(b"\r\n");
}

pub(super) fn set_head(out: &mut Vec<u8>, names: &Names, key: u64, bytes: u32, expiry_s: u32) {
    out.extend_from_slice(b"set ");
    names.write(out, key);
    out.extend_from_slice(b" 0 ");
    push_number(out, u64::from(expiry_s));
    out.push(b' ');
    push_number(out, u64::from(bytes));
    out.extend_from_slice(b"\r\n");
}

/// A whole request that stores a short value for ever, by `set` or `add`.
pub(super) fn store(out: &mut Vec<u8>, command: &str, names: &Names, value: &str) {
    out.extend_from_slice(command.as_bytes());
    out.push(b' ');
    names.write(out, 0);
    out.extend_from_slice(format!(" 0 0 {}\r\n{value}\r\n", value.len()).as_bytes());
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

pub(super) fn next(expected: Expected, input: &[u8]) -> Result<Option<Reply<'_>>, Garbage> {
    let Some((line, next)) = line(input)? else { return Ok(None) };
    if expected.verb == Verb::Get && line.starts_with(b"VALUE ") {
        return value(expected, input, &line[b"VALUE ".len()..], next);
    }
    let what = match (expected.verb, line) {
        (Verb::Get, b"END") => What::Miss,
        (Verb::Set, b"STORED") | (Verb::Delete, b"DELETED") | (Verb::Touch, b"TOUCHED") => What::Done,
        (Verb::Incr | Verb::Delete | Verb::Touch, b"NOT_FOUND") => What::Miss,
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
    let (name, _flags, bytes) = (words.next(), words.next(), words.next().and_then(number));
    let (Some(name), Some(bytes)) = (name, bytes) else {
        return Err(Garbage::new("a value without its length", input));
    };
    let Some((data, next)) = block(input, next, bytes)? else { return Ok(None) };
    let what = What::Value(Whose::Name(name), data);
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
