//! The grammar of the meta commands `mg ms md ma mn me`: a key, then flags, which `meta_flags.rs` reads.

use super::classic;
use super::frame::Frame;
use super::meta_flags::{self, Flags};
use super::step::Step;
use crate::limits::LIMITS;
use crate::reply::{Reply, Verb};
use crate::request::{Arith, Debug, Delete, Exptime, Get, Key, Keys, Request, Store, StoreMode};
use crate::text;
use crate::token::Tokens;

/// Reads the flags behind a key, and the key in their light.
fn key_and_flags<'a>(
    key: &'a [u8],
    tokens: Tokens<'a>,
    before: usize,
) -> Result<(Key<'a>, Flags), &'static str> {
    if key.len() > LIMITS.key_bytes_max {
        return Err(text::BAD_FORMAT);
    }
    let found = meta_flags::read(tokens, before);
    let key = match &found {
        Ok(found) if found.base64 => Key::decode(key).ok_or(text::META_BAD_KEY)?,
        _ => Key::plain(key),
    };
    Ok((key, found?))
}

fn reply<'a>(verb: Verb, flags: Tokens<'a>, found: &Flags) -> Reply<'a> {
    Reply::Meta {
        verb,
        flags: flags.rest(),
        quiet: found.quiet,
        base64: found.base64,
        value: found.value,
        leased: false,
    }
}

/// Returns key and flags of `md` and `ma`, which have one line for whatever is wrong with a single flag.
fn key_and_flags_alike<'a>(key: &'a [u8], tokens: Tokens<'a>) -> Result<(Key<'a>, Flags), &'static str> {
    if key.len() > LIMITS.key_bytes_max {
        return Err(text::BAD_FORMAT);
    }
    key_and_flags(key, tokens, 2)
        .map_err(|line| if line == text::META_TOO_MANY { line } else { text::META_INVALID_OR_DUPLICATE })
}

/// `mg <key> <flag>*`
#[inline]
pub(super) fn get<'a>(frame: Frame<'a>, mut tokens: Tokens<'a>) -> Step<'a> {
    let Some(key) = tokens.next() else {
        return frame.reject(text::BAD_FORMAT, false);
    };
    let (key, found) = match key_and_flags(key, tokens, 2) {
        Ok(read) => read,
        Err(line) => return frame.reject(line, false),
    };
    if found.opaque_too_long {
        return frame.reject(text::META_OPAQUE_TOO_LONG, false);
    }
    frame.request(Request::Get(Get {
        keys: Keys::one(key),
        touch: found.touch,
        vivify: found.created(),
        recache: found.recache,
        recache_sees_touch: found.recache_sees_touch,
        may_win: true,
        unless_cas: found.compare,
        new_cas: found.new_cas,
        value: found.value,
        no_bump: found.no_bump,
        announce: found.announce,
        reply: reply(Verb::Get, tokens, &found),
    }))
}

/// `ms <key> <bytes> <flag>*`
pub(super) fn store<'a>(frame: Frame<'a>, mut tokens: Tokens<'a>) -> Step<'a> {
    let (Some(key), Some(value_len)) = (tokens.next(), tokens.next()) else {
        return frame.reject(text::BAD_FORMAT, false);
    };
    let Some(value_len) = classic::value_len(value_len) else {
        return frame.reject(text::BAD_FORMAT, false);
    };
    let malformed = |line| frame.reject_data(line, false, u64::from(value_len) + 2);
    let (key, found) = match key_and_flags(key, tokens, 3) {
        Ok(read) => read,
        Err(line) => return malformed(line),
    };
    let mode = match found.mode {
        None | Some(b'S') => StoreMode::Set,
        Some(b'E') => StoreMode::Add,
        Some(b'A') => StoreMode::Append,
        Some(b'P') => StoreMode::Prepend,
        Some(b'R') => StoreMode::Replace,
        Some(_) => return malformed(text::META_STORE_MODE),
    };
    if found.opaque_too_long {
        return malformed(text::META_OPAQUE_TOO_LONG);
    }
    let concatenates = matches!(mode, StoreMode::Append | StoreMode::Prepend);
    // A compare turns set and replace into one and the same thing; add ignores it; for append and prepend
    // zero stands for none.
    let (mode, compare) = match (mode, found.compare) {
        (StoreMode::Set | StoreMode::Replace, Some(cas)) => (StoreMode::Set, Some(cas)),
        (StoreMode::Add, _) => (StoreMode::Add, None),
        (mode, compare) => (mode, compare.filter(|cas| *cas != 0)),
    };
    let vivify = found.vivify.filter(|_| concatenates);
    frame.store(Store {
        key,
        value_len,
        value: &[],
        mode,
        flags: found.client_flags,
        exptime: vivify.or(found.touch).unwrap_or(Exptime::NEVER),
        compare,
        new_cas: found.new_cas,
        invalidate: found.stale && compare.is_some() && mode == StoreMode::Set,
        vivify,
        reply: reply(Verb::Store, tokens, &found),
    })
}

/// `md <key> <flag>*`
pub(super) fn delete<'a>(frame: Frame<'a>, mut tokens: Tokens<'a>) -> Step<'a> {
    let Some(key) = tokens.next() else {
        return frame.reject(text::BAD_FORMAT, false);
    };
    let (key, found) = match key_and_flags_alike(key, tokens) {
        Ok(read) => read,
        Err(line) => return frame.reject(line, false),
    };
    if found.opaque_too_long {
        return frame.reject(text::META_OPAQUE_TOO_LONG, false);
    }
    frame.request(Request::Delete(Delete {
        key,
        compare: found.compare,
        new_cas: found.new_cas,
        invalidate: found.stale,
        touch: found.touch,
        empty_value: found.empty_value,
        reply: reply(Verb::Delete, tokens, &found),
    }))
}

/// `ma <key> <flag>*`
pub(super) fn arith<'a>(frame: Frame<'a>, mut tokens: Tokens<'a>) -> Step<'a> {
    let Some(key) = tokens.next() else {
        return frame.reject(text::BAD_FORMAT, false);
    };
    let (key, found) = match key_and_flags_alike(key, tokens) {
        Ok(read) => read,
        Err(line) => return frame.reject(line, false),
    };
    let decrement = match found.mode {
        None | Some(b'I' | b'+') => false,
        Some(b'D' | b'-') => true,
        Some(_) => return frame.reject(text::META_ARITH_MODE, false),
    };
    if found.opaque_too_long {
        return frame.reject(text::META_OPAQUE_TOO_LONG, false);
    }
    frame.request(Request::Arith(Arith {
        key,
        delta: found.delta.unwrap_or(1),
        decrement,
        initial: found.created().map(|exptime| (found.initial, exptime)),
        compare: found.compare.filter(|cas| *cas != 0),
        new_cas: found.new_cas,
        touch: found.touch,
        reply: reply(Verb::Arith, tokens, &found),
    }))
}

/// `mn`, whatever follows.
pub(super) fn noop(frame: Frame<'_>) -> Step<'_> {
    frame.request(Request::Noop(reply(Verb::Noop, Tokens::new(&[]), &Flags::default())))
}

/// `mi`, whatever follows.
pub(super) fn subscribe(frame: Frame<'_>) -> Step<'_> {
    frame.request(Request::Subscribe(classic::reply(Verb::Admin, false)))
}

/// `me <key> [b]`
pub(super) fn debug<'a>(frame: Frame<'a>, mut tokens: Tokens<'a>) -> Step<'a> {
    let key = tokens.next().filter(|key| key.len() <= LIMITS.key_bytes_max);
    let base64 = tokens.next() == Some(b"b");
    let Some(key) = key.and_then(|key| if base64 { Key::decode(key) } else { Some(Key::plain(key)) }) else {
        return frame.reject(text::BAD_FORMAT, false);
    };
    let found = Flags { base64, ..Flags::default() };
    frame.request(Request::Debug(Debug { key, reply: reply(Verb::Debug, Tokens::new(&[]), &found) }))
}
