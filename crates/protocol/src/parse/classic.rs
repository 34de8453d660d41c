//! The grammar of the classic text commands. `parse/meta.rs` has the meta commands, `parse/admin.rs` the
//! administrative ones.

use super::frame::Frame;
use super::number;
use super::step::Step;
use crate::limits::LIMITS;
use crate::reply::{Reply, Verb};
use crate::request::{Arith, Delete, Exptime, Flush, Get, Key, Keys, Request, Store, StoreMode, Touch};
use crate::text;
use crate::token::{self, Tokens};

/// How to answer a classic command.
#[inline]
pub(super) fn reply<'a>(verb: Verb, noreply: bool) -> Reply<'a> {
    Reply::Classic { verb, noreply, with_cas: false }
}

/// `noreply` is a line's last token, wherever that falls.
#[inline]
pub(super) fn is_noreply(line: &[u8]) -> bool {
    token::last(line) == b"noreply"
}

/// `get|gets <key>*`
#[inline]
pub(super) fn get<'a>(frame: Frame<'a>, tokens: Tokens<'a>, with_cas: bool) -> Step<'a> {
    let Some(keys) = Keys::line(tokens.rest()) else {
        return frame.reject(text::BAD_FORMAT, false);
    };
    frame.request(Request::Get(read(keys, None, with_cas)))
}

/// `gat|gats <exptime> <key>*`
pub(super) fn get_and_touch<'a>(frame: Frame<'a>, mut tokens: Tokens<'a>, with_cas: bool) -> Step<'a> {
    let exptime = tokens.next();
    let keys = tokens.rest();
    let Some(exptime) = exptime.filter(|_| !keys.is_empty()) else {
        return frame.reject(text::BAD_FORMAT, false);
    };
    let Some(exptime) = number::low_signed_32(exptime) else {
        return frame.reject(text::BAD_EXPTIME, false);
    };
    let Some(keys) = Keys::line(keys) else {
        return frame.reject(text::BAD_FORMAT, false);
    };
    frame.request(Request::Get(read(keys, Some(exptime.into()), with_cas)))
}

#[inline]
fn read<'a>(keys: Keys<'a>, touch: Option<Exptime>, with_cas: bool) -> Get<'a> {
    Get {
        keys,
        touch,
        vivify: None,
        recache: None,
        recache_sees_touch: false,
        may_win: false,
        unless_cas: None,
        new_cas: None,
        value: true,
        no_bump: false,
        announce: false,
        reply: Reply::Classic { verb: Verb::Get, noreply: false, with_cas },
    }
}

/// `set|add|replace|append|prepend <key> <flags> <exptime> <bytes> [noreply]`,
/// `cas <key> <flags> <exptime> <bytes> <unique> [noreply]`
///
/// While the length is not known nothing can be swallowed and it is not known whether an answer is wanted; once
/// it is, whatever else is wrong costs the data too, so that it is not taken for commands.
#[inline]
pub(super) fn store<'a>(
    frame: Frame<'a>,
    mut tokens: Tokens<'a>,
    mode: StoreMode,
    compares: bool,
) -> Step<'a> {
    let (Some(key), Some(flags), Some(exptime), Some(value_len)) =
        (tokens.next(), tokens.next(), tokens.next(), tokens.next())
    else {
        return frame.reject(text::BAD_FORMAT, false);
    };
    let Some(value_len) = self::value_len(value_len) else {
        return frame.reject(text::BAD_FORMAT, false);
    };
    let noreply = is_noreply(tokens.rest());
    let malformed = || frame.reject_data(text::BAD_FORMAT, noreply, u64::from(value_len) + 2);
    if key.len() > LIMITS.key_bytes_max {
        return malformed();
    }
    let (Some(flags), Some(exptime)) = (number::low_unsigned_32(flags), number::low_signed_32(exptime))
    else {
        return malformed();
    };
    let compare = if compares {
        let Some(unique) = tokens.next().and_then(number::unsigned) else {
            return malformed();
        };
        Some(unique)
    } else {
        None
    };
    frame.store(Store {
        key: Key::plain(key),
        value_len,
        value: &[],
        mode,
        flags,
        exptime: exptime.into(),
        compare,
        new_cas: None,
        invalidate: false,
        vivify: None,
        reply: reply(Verb::Store, noreply),
    })
}

/// The longest value that a line may announce.
pub(super) const VALUE_BYTES_MAX: u32 = LIMITS.value_bytes_max;

/// The announced length of a value, if it can be one.
#[inline]
pub(super) fn value_len(token: &[u8]) -> Option<u32> {
    number::digits(token).and_then(|len| u32::try_from(len).ok()).filter(|len| *len <= VALUE_BYTES_MAX)
}

/// `delete <key> [anything] [noreply]`: old clients send a time, which means nothing.
pub(super) fn delete<'a>(frame: Frame<'a>, mut tokens: Tokens<'a>) -> Step<'a> {
    let Some(key) = tokens.next() else {
        return frame.reject(text::BAD_FORMAT, false);
    };
    let noreply = is_noreply(frame.line);
    if key.len() > LIMITS.key_bytes_max {
        return frame.reject(text::BAD_FORMAT, noreply);
    }
    frame.request(Request::Delete(Delete {
        key: Key::plain(key),
        compare: None,
        new_cas: None,
        invalidate: false,
        touch: None,
        empty_value: false,
        reply: reply(Verb::Delete, noreply),
    }))
}

/// `incr|decr <key> <delta> [noreply]`
pub(super) fn arith<'a>(frame: Frame<'a>, mut tokens: Tokens<'a>, decrement: bool) -> Step<'a> {
    let (Some(key), Some(delta)) = (tokens.next(), tokens.next()) else {
        return frame.reject(text::BAD_FORMAT, false);
    };
    let noreply = is_noreply(frame.line);
    if key.len() > LIMITS.key_bytes_max {
        return frame.reject(text::BAD_FORMAT, noreply);
    }
    let Some(delta) = number::unsigned(delta) else {
        return frame.reject(text::BAD_DELTA, noreply);
    };
    frame.request(Request::Arith(Arith {
        key: Key::plain(key),
        delta,
        decrement,
        initial: None,
        compare: None,
        new_cas: None,
        touch: None,
        reply: reply(Verb::Arith, noreply),
    }))
}

/// `touch <key> <exptime> [noreply]`
pub(super) fn touch<'a>(frame: Frame<'a>, mut tokens: Tokens<'a>) -> Step<'a> {
    let (Some(key), Some(exptime)) = (tokens.next(), tokens.next()) else {
        return frame.reject(text::BAD_FORMAT, false);
    };
    let noreply = is_noreply(frame.line);
    if key.len() > LIMITS.key_bytes_max {
        return frame.reject(text::BAD_FORMAT, noreply);
    }
    let Some(exptime) = number::low_signed_32(exptime) else {
        return frame.reject(text::BAD_EXPTIME, noreply);
    };
    let exptime = exptime.into();
    frame.request(Request::Touch(Touch { key: Key::plain(key), exptime, reply: reply(Verb::Touch, noreply) }))
}

/// `flush_all [delay] [noreply]`
pub(super) fn flush<'a>(frame: Frame<'a>, mut tokens: Tokens<'a>) -> Step<'a> {
    let noreply = is_noreply(frame.line);
    let rest = tokens.rest();
    let alone = rest.is_empty() || (noreply && token::trim_end(rest) == b"noreply");
    let delay = if alone { Some(0) } else { tokens.next().and_then(number::low_signed_32) };
    match delay {
        Some(delay) => {
            frame.request(Request::Flush(Flush { delay: delay.into(), reply: reply(Verb::Flush, noreply) }))
        }
        None => frame.reject(text::BAD_EXPTIME, noreply),
    }
}

/// `verbosity <level> [noreply]`
pub(super) fn verbosity<'a>(frame: Frame<'a>, mut tokens: Tokens<'a>) -> Step<'a> {
    let noreply = is_noreply(frame.line);
    match tokens.next().and_then(number::digits).and_then(|level| u32::try_from(level).ok()) {
        Some(level) => frame.request(Request::Verbosity(level, reply(Verb::Verbosity, noreply))),
        None => frame.reject(text::BAD_FORMAT, noreply),
    }
}
