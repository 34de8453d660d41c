//! Redis's RESP, version 2. A get of several keys is one MGET.

use super::{Expected, Garbage, Reply, Verb, What, Whose, block, line, number, push_number};
use crate::workload::keys::Names;

fn bulk_head(out: &mut Vec<u8>, bytes: usize) {
    out.push(b'$');
    push_number(out, bytes as u64);
    out.extend_from_slice(b"\r\n");
}

fn bulk_key(out: &mut Vec<u8>, names: &Names, key: u64) {
    bulk_head(out, names.bytes());
    names.write(out, key);
    out.extend_from_slice(b"\r\n");
}

fn bulk_number(out: &mut Vec<u8>, number: u64) {
    bulk_head(out, number.checked_ilog10().unwrap_or(0) as usize + 1);
    push_number(out, number);
    out.extend_from_slice(b"\r\n");
}

pub(super) fn get(out: &mut Vec<u8>, names: &Names, keys: &[u64]) {
    if keys.len() == 1 {
        out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
    } else {
        out.push(b'*');
        push_number(out, keys.len() as u64 + 1);
        out.extend_from_slice(b"\r\n$4\r\nMGET\r\n");
    }
    for key in keys {
        bulk_key(out, names, *key);
    }
}

/// A command of these words.
pub(super) fn command(out: &mut Vec<u8>, words: &[&str]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        bulk_head(out, word.len());
        out.extend_from_slice(word.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// Up to the value; [`set_tail`] closes it. An expiry is two words more, which the head has to count.
pub(super) fn set_head(out: &mut Vec<u8>, names: &Names, key: u64, bytes: u32, expiry_s: u32) {
    out.extend_from_slice(if expiry_s > 0 { b"*5\r\n$3\r\nSET\r\n" } else { b"*3\r\n$3\r\nSET\r\n" });
    bulk_key(out, names, key);
    bulk_head(out, bytes as usize);
}

pub(super) fn set_tail(out: &mut Vec<u8>, expiry_s: u32) {
    out.extend_from_slice(b"\r\n");
    if expiry_s > 0 {
        out.extend_from_slice(b"$2\r\nEX\r\n");
        bulk_number(out, u64::from(expiry_s));
    }
}

pub(super) fn incr(out: &mut Vec<u8>, names: &Names, key: u64) {
    out.extend_from_slice(b"*2\r\n$4\r\nINCR\r\n");
    bulk_key(out, names, key);
}

pub(super) fn delete(out: &mut Vec<u8>, names: &Names, key: u64) {
    out.extend_from_slice(b"*2\r\n$3\r\nDEL\r\n");
    bulk_key(out, names, key);
}

/// An expiry of 0 is for ever, which redis calls PERSIST.
pub(super) fn touch(out: &mut Vec<u8>, names: &Names, key: u64, expiry_s: u32) {
    if expiry_s == 0 {
        out.extend_from_slice(b"*2\r\n$7\r\nPERSIST\r\n");
        return bulk_key(out, names, key);
    }
    out.extend_from_slice(b"*3\r\n$6\r\nEXPIRE\r\n");
    bulk_key(out, names, key);
    bulk_number(out, u64::from(expiry_s));
}

/// Since redis 6.2.
pub(super) fn gat(out: &mut Vec<u8>, names: &Names, key: u64, expiry_s: u32) {
    let is_lasting = expiry_s == 0;
    out.extend_from_slice(if is_lasting { b"*3\r\n$5\r\nGETEX\r\n" } else { b"*4\r\n$5\r\nGETEX\r\n" });
    bulk_key(out, names, key);
    if is_lasting {
        return out.extend_from_slice(b"$7\r\nPERSIST\r\n");
    }
    out.extend_from_slice(b"$2\r\nEX\r\n");
    bulk_number(out, u64::from(expiry_s));
}

/// How far the array of an MGET was read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// The array's head was seen.
    inside: bool,
    /// Its elements that were seen.
    index: u32,
}

impl Progress {
    pub(super) fn next<'a>(
        &mut self,
        expected: Expected,
        input: &'a [u8],
    ) -> Result<Option<Reply<'a>>, Garbage> {
        let Some((line, next)) = line(input)? else { return Ok(None) };
        let garbage = || Garbage::new("not a reply to what was asked", input);
        let (kind, rest) = line.split_first().ok_or_else(garbage)?;
        let several = expected.verb == Verb::Get && expected.keys > 1;
        let is_whole = |what| Ok(Some(Reply { consumed: next, what, is_last: true }));
        match (kind, expected.verb) {
            (b'-', _) if !self.inside => is_whole(What::Error(rest)),
            (b'*', Verb::Get) if several && !self.inside => {
                if number(rest) != Some(u64::from(expected.keys)) {
                    return Err(Garbage::new("an array of another length than was asked for", input));
                }
                *self = Self { inside: true, index: 0 };
                Ok(Some(Reply { consumed: next, what: What::Frame, is_last: false }))
            }
            (b'$', Verb::Get) if several == self.inside => {
                let whose = if several { Whose::Index(self.index) } else { Whose::Only };
                let (what, next) = if rest == b"-1" {
                    (What::Miss, next)
                } else {
                    let bytes = number(rest).ok_or_else(garbage)?;
                    let Some((data, next)) = block(input, next, bytes)? else { return Ok(None) };
                    (What::Value(whose, data, None), next)
                };
                self.index += 1;
                let is_last = !several || self.index == expected.keys;
                if is_last {
                    *self = Self::default();
                }
                Ok(Some(Reply { consumed: next, what, is_last }))
            }
            (b'+', Verb::Connect) if rest == b"PONG" => is_whole(What::Done),
            (b'+', Verb::Set) if rest == b"OK" => is_whole(What::Done),
            (b':', Verb::Incr) => is_whole(What::Count(number(rest).ok_or_else(garbage)?)),
            (b':', Verb::Delete | Verb::Touch) if rest == b"1" => is_whole(What::Done),
            (b':', Verb::Delete | Verb::Touch) if rest == b"0" => is_whole(What::Miss),
            _ => Err(garbage()),
        }
    }
}
