//! The verbs of the text wires, told apart by length and bytes, and the grammar of the classic ones. The meta verbs
//! are in `meta.rs`, the administrative ones in `admin.rs`.

use crate::key::{Key, Keys};
use crate::limits::LIMITS;
use crate::parse::Line;
use crate::reply::{Reply, Verb};
use crate::request::{Arith, Delete, Exptime, Flush, Get, Request, Store, StoreMode, Touch};
use crate::token::{self, Tokens};
use crate::{admin, meta, number, text};

/// Parses a line that has lost its line end.
#[inline]
pub(crate) fn parse(line: &[u8]) -> Line<'_> {
    let mut tokens = Tokens::new(line);
    let Some(verb) = tokens.next() else {
        return Line::reject(text::ERROR, false);
    };
    match verb {
        b"get" => get(tokens, false),
        b"set" => store(tokens, StoreMode::Set, false),
        b"mg" => meta::get(tokens),
        b"ms" => meta::store(tokens),
        b"gets" => get(tokens, true),
        b"gat" => get_and_touch(tokens, false),
        b"gats" => get_and_touch(tokens, true),
        b"delete" => delete(line, tokens),
        b"incr" => arith(line, tokens, false),
        b"decr" => arith(line, tokens, true),
        b"touch" => touch(line, tokens),
        b"add" => store(tokens, StoreMode::Add, false),
        b"replace" => store(tokens, StoreMode::Replace, false),
        b"append" => store(tokens, StoreMode::Append, false),
        b"prepend" => store(tokens, StoreMode::Prepend, false),
        b"cas" => store(tokens, StoreMode::Set, true),
        b"md" => meta::delete(tokens),
        b"ma" => meta::arith(tokens),
        b"mn" => meta::noop(),
        b"me" => meta::debug(tokens),
        b"version" => Line::Request(Request::Version(reply(Verb::Version, false))),
        b"quit" => Line::Request(Request::Quit(reply(Verb::Quit, false))),
        b"stats" => Line::Request(Request::Stats(
            token::trim_end(tokens.rest()),
            reply(Verb::Stats, false),
        )),
        b"flush_all" => flush(line, tokens),
        b"verbosity" => verbosity(line, tokens),
        _ => admin::parse(line, verb, tokens),
    }
}

/// How to answer a classic command.
#[inline]
pub(crate) fn reply<'a>(verb: Verb, noreply: bool) -> Reply<'a> {
    Reply::Classic {
        verb,
        noreply,
        with_cas: false,
    }
}

/// `noreply` is a line's last token, wherever that falls.
#[inline]
pub(crate) fn is_noreply(line: &[u8]) -> bool {
    token::last(line) == b"noreply"
}

/// `get|gets <key>*`
#[inline]
fn get(tokens: Tokens<'_>, with_cas: bool) -> Line<'_> {
    let Some(keys) = Keys::line(tokens.rest()) else {
        return Line::reject(text::BAD_FORMAT, false);
    };
    Line::Request(Request::Get(read(keys, None, with_cas)))
}

/// `gat|gats <exptime> <key>*`
fn get_and_touch(mut tokens: Tokens<'_>, with_cas: bool) -> Line<'_> {
    let exptime = tokens.next();
    let keys = tokens.rest();
    let Some(exptime) = exptime.filter(|_| !keys.is_empty()) else {
        return Line::reject(text::BAD_FORMAT, false);
    };
    let Some(exptime) = number::signed_32(exptime) else {
        return Line::reject(text::BAD_EXPTIME, false);
    };
    let Some(keys) = Keys::line(keys) else {
        return Line::reject(text::BAD_FORMAT, false);
    };
    Line::Request(Request::Get(read(keys, Some(Exptime(exptime)), with_cas)))
}

#[inline]
fn read<'a>(keys: Keys<'a>, touch: Option<Exptime>, with_cas: bool) -> Get<'a> {
    Get {
        keys,
        touch,
        vivify: None,
        recache: None,
        unless_cas: None,
        new_cas: None,
        value: true,
        no_bump: false,
        reply: Reply::Classic {
            verb: Verb::Get,
            noreply: false,
            with_cas,
        },
    }
}

/// `set|add|replace|append|prepend <key> <flags> <exptime> <bytes> [noreply]`,
/// `cas <key> <flags> <exptime> <bytes> <unique> [noreply]`
///
/// While the length is not known nothing can be swallowed and nobody knows whether an answer is wanted; once it is,
/// whatever else is wrong costs the data too, so that it is not taken for commands.
#[inline]
fn store(mut tokens: Tokens<'_>, mode: StoreMode, compares: bool) -> Line<'_> {
    let (Some(key), Some(flags), Some(exptime), Some(value_len)) =
        (tokens.next(), tokens.next(), tokens.next(), tokens.next())
    else {
        return Line::reject(text::BAD_FORMAT, false);
    };
    let Some(value_len) = self::value_len(value_len) else {
        return Line::reject(text::BAD_FORMAT, false);
    };
    let noreply = is_noreply(tokens.rest());
    let malformed = Line::Reject {
        line: text::BAD_FORMAT,
        noreply,
        swallow: u64::from(value_len) + 2,
    };
    if key.len() > LIMITS.key_bytes_max {
        return malformed;
    }
    let (Some(flags), Some(exptime)) = (number::unsigned_32(flags), number::signed_32(exptime)) else {
        return malformed;
    };
    let compare = if compares {
        let Some(unique) = tokens.next().and_then(number::unsigned) else {
            return malformed;
        };
        Some(unique)
    } else {
        None
    };
    Line::Store(Store {
        key: Key::plain(key),
        value_len,
        value: &[],
        mode,
        flags,
        exptime: Exptime(exptime),
        compare,
        new_cas: None,
        invalidate: false,
        vivify: None,
        reply: reply(Verb::Store, noreply),
    })
}

/// The announced length of a value, if it can be one.
#[inline]
pub(crate) fn value_len(token: &[u8]) -> Option<u32> {
    number::digits(token)
        .and_then(|len| u32::try_from(len).ok())
        .filter(|len| *len <= LIMITS.value_bytes_max)
}

/// `delete <key> [anything] [noreply]`: old clients send a time, which means nothing.
fn delete<'a>(line: &'a [u8], mut tokens: Tokens<'a>) -> Line<'a> {
    let Some(key) = tokens.next() else {
        return Line::reject(text::BAD_FORMAT, false);
    };
    let noreply = is_noreply(line);
    if key.len() > LIMITS.key_bytes_max {
        return Line::reject(text::BAD_FORMAT, noreply);
    }
    Line::Request(Request::Delete(Delete {
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
fn arith<'a>(line: &'a [u8], mut tokens: Tokens<'a>, decrement: bool) -> Line<'a> {
    let (Some(key), Some(delta)) = (tokens.next(), tokens.next()) else {
        return Line::reject(text::BAD_FORMAT, false);
    };
    let noreply = is_noreply(line);
    if key.len() > LIMITS.key_bytes_max {
        return Line::reject(text::BAD_FORMAT, noreply);
    }
    let Some(delta) = number::unsigned(delta) else {
        return Line::reject(text::BAD_DELTA, noreply);
    };
    Line::Request(Request::Arith(Arith {
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
fn touch<'a>(line: &'a [u8], mut tokens: Tokens<'a>) -> Line<'a> {
    let (Some(key), Some(exptime)) = (tokens.next(), tokens.next()) else {
        return Line::reject(text::BAD_FORMAT, false);
    };
    let noreply = is_noreply(line);
    if key.len() > LIMITS.key_bytes_max {
        return Line::reject(text::BAD_FORMAT, noreply);
    }
    let Some(exptime) = number::signed_32(exptime) else {
        return Line::reject(text::BAD_EXPTIME, noreply);
    };
    let exptime = Exptime(exptime);
    Line::Request(Request::Touch(Touch {
        key: Key::plain(key),
        exptime,
        reply: reply(Verb::Touch, noreply),
    }))
}

/// `flush_all [delay] [noreply]`
fn flush<'a>(line: &'a [u8], mut tokens: Tokens<'a>) -> Line<'a> {
    let noreply = is_noreply(line);
    let rest = tokens.rest();
    let alone = rest.is_empty() || (noreply && token::trim_end(rest) == b"noreply");
    let delay = if alone {
        Some(0)
    } else {
        tokens.next().and_then(number::signed_32)
    };
    match delay {
        Some(delay) => Line::Request(Request::Flush(Flush {
            delay: Exptime(delay),
            reply: reply(Verb::Flush, noreply),
        })),
        None => Line::reject(text::BAD_EXPTIME, noreply),
    }
}

/// `verbosity <level> [noreply]`
fn verbosity<'a>(line: &'a [u8], mut tokens: Tokens<'a>) -> Line<'a> {
    let noreply = is_noreply(line);
    match tokens
        .next()
        .and_then(number::digits)
        .and_then(|level| u32::try_from(level).ok())
    {
        Some(level) => Line::Request(Request::Verbosity(level, reply(Verb::Verbosity, noreply))),
        None => Line::reject(text::BAD_FORMAT, noreply),
    }
}
