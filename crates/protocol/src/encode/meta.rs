//! Answers in meta text: a two-letter code, then the flags that were asked for, in the order they were asked.

use super::{classic, number, push_marked_key};
use crate::reply::{ItemInfo, Outcome, Verb};
use crate::token::Tokens;

/// What a meta request asked for.
pub(super) struct MetaReply<'a> {
    pub(super) verb: Verb,
    pub(super) flags: &'a [u8],
    pub(super) quiet: bool,
    pub(super) base64: bool,
    pub(super) value: bool,
}

/// `VA <bytes>` or `HD`, then flags, then the state of the refill race: `Z`, `X`, `W` in this order.
#[inline]
pub(super) fn hit_head(
    out: &mut Vec<u8>,
    flags: &[u8],
    leased: bool,
    key: &[u8],
    item: &ItemInfo,
    with_value: bool,
) {
    if with_value {
        out.extend_from_slice(b"VA ");
        number::push(out, item.value_len);
    } else {
        out.extend_from_slice(b"HD");
    }
    let mut ttl_s = item.ttl_before_s;
    for token in Tokens::new(flags) {
        match token.first() {
            Some(b's') => flag(out, b's', item.value_len),
            Some(b't') => ttl(out, ttl_s),
            Some(b'c') => flag(out, b'c', item.cas),
            Some(b'f') => flag(out, b'f', item.client_flags),
            Some(b'l') => flag(out, b'l', item.idle_s),
            Some(b'h') => flag(out, b'h', u8::from(item.hit_before)),
            // The item says how it shows its key, whatever this request sent.
            Some(b'k') => push_key(out, key, item.key_is_binary),
            Some(b'O') => push_token(out, token),
            // Where these stand says which time to live the `t`s see: before them the old one, after them the
            // new.
            Some(b'T' | b'N') => ttl_s = item.ttl_after_s,
            Some(b'A') if leased => out.extend_from_slice(b" A"),
            _ => {}
        }
    }
    // One that may not win a stale item is told that another client does.
    let is_others = item.win_sent || item.stale && !item.won;
    for (said, letter) in [(is_others, b'Z'), (item.stale, b'X'), (item.won, b'W')] {
        if said {
            out.extend_from_slice(&[b' ', letter]);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// `EN` and what can be said without an item.
pub(super) fn miss(out: &mut Vec<u8>, flags: &[u8], leased: bool, base64: bool, key: &[u8]) {
    out.extend_from_slice(b"EN");
    reflect(out, flags, base64, key);
    if leased {
        out.extend_from_slice(b" A");
    }
    out.extend_from_slice(b"\r\n");
}

/// The answer to `ms`, `md`, `ma`, `mn`, and to what failed.
pub(super) fn outcome(
    out: &mut Vec<u8>,
    wanted: &MetaReply<'_>,
    key: &[u8],
    outcome: Outcome,
    item: &ItemInfo,
) {
    let code = match outcome {
        Outcome::Stored | Outcome::Deleted | Outcome::Touched => "HD",
        Outcome::Number { value } => return counter(out, wanted, key, value, item),
        Outcome::NotStored => "NS",
        Outcome::Exists => "EX",
        Outcome::NotFound => "NF",
        Outcome::Ok if wanted.verb == Verb::Noop => "MN",
        Outcome::Ok => "HD",
        other => return classic::error(out, wanted.verb, other),
    };
    if wanted.quiet && code == "HD" {
        return;
    }
    out.extend_from_slice(code.as_bytes());
    if wanted.verb == Verb::Store {
        for token in Tokens::new(wanted.flags) {
            match token.first() {
                Some(b'O') => push_token(out, token),
                Some(b'k') => push_key(out, key, wanted.base64),
                Some(b'c') => flag(out, b'c', item.cas),
                Some(b's') => flag(out, b's', item.value_len),
                _ => {}
            }
        }
    } else {
        reflect(out, wanted.flags, wanted.base64, key);
    }
    out.extend_from_slice(b"\r\n");
}

/// `ma` that worked: `VA <digits>` or `HD`.
fn counter(out: &mut Vec<u8>, wanted: &MetaReply<'_>, key: &[u8], value: u64, item: &ItemInfo) {
    if wanted.quiet {
        return;
    }
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value).as_bytes();
    if wanted.value {
        out.extend_from_slice(b"VA ");
        number::push(out, digits.len());
    } else {
        out.extend_from_slice(b"HD");
    }
    let mut ttl_s = item.ttl_before_s;
    for token in Tokens::new(wanted.flags) {
        match token.first() {
            Some(b'c') => flag(out, b'c', item.cas),
            Some(b't') => ttl(out, ttl_s),
            Some(b'O') => push_token(out, token),
            Some(b'k') => push_key(out, key, wanted.base64),
            Some(b'T' | b'N') => ttl_s = item.ttl_after_s,
            _ => {}
        }
    }
    out.extend_from_slice(b"\r\n");
    if wanted.value {
        out.extend_from_slice(digits);
        out.extend_from_slice(b"\r\n");
    }
}

/// The flags that need no item: opaque and key.
fn reflect(out: &mut Vec<u8>, flags: &[u8], base64: bool, key: &[u8]) {
    for token in Tokens::new(flags) {
        match token.first() {
            Some(b'O') => push_token(out, token),
            Some(b'k') => push_key(out, key, base64),
            _ => {}
        }
    }
}

#[inline]
fn flag<N: itoa::Integer>(out: &mut Vec<u8>, letter: u8, value: N) {
    out.extend_from_slice(&[b' ', letter]);
    number::push(out, value);
}

#[inline]
fn ttl(out: &mut Vec<u8>, ttl_s: Option<u32>) {
    match ttl_s {
        Some(seconds) => flag(out, b't', seconds),
        None => out.extend_from_slice(b" t-1"),
    }
}

#[inline]
pub(super) fn push_token(out: &mut Vec<u8>, token: &[u8]) {
    out.push(b' ');
    out.extend_from_slice(token);
}

/// ` k<key>`, or ` k<base64> b`: the `b` stands right after the key, wherever it stood in the request.
pub(super) fn push_key(out: &mut Vec<u8>, key: &[u8], binary: bool) {
    out.extend_from_slice(b" k");
    push_marked_key(out, key, binary);
}
