//! The framing that the classic and meta commands share: the end of a line, and the verb that picks its grammar.

use memchr::memchr;

use super::frame::Frame;
use super::step::Step;
use super::{admin, classic, limit, meta};
use crate::limits::LIMITS;
use crate::reject::Reject;
use crate::reply::{Reply, Verb};
use crate::request::{Request, StoreMode};
use crate::text;
use crate::token::{self, Tokens};

/// Parses the front of `input`.
#[inline]
pub(super) fn parse(input: &[u8]) -> Step<'_> {
    let Some(newline) = memchr(b'\n', input) else {
        return unterminated(input);
    };
    let head = newline + 1;
    if head > LIMITS.get_line_bytes_max {
        return Step::Close;
    }
    let line = input.get(..newline).unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if head < 4 {
        return shortest(line, head);
    }
    by_verb(Frame { line, input, head })
}

/// Parses a line by the grammar of its verb.
#[inline]
fn by_verb(frame: Frame<'_>) -> Step<'_> {
    let mut tokens = Tokens::new(frame.line);
    let Some(verb) = tokens.next() else {
        return frame.reject(text::ERROR, false);
    };
    match verb {
        b"get" => classic::get(frame, tokens, false),
        b"set" => classic::store(frame, tokens, StoreMode::Set, false),
        b"mg" => meta::get(frame, tokens),
        b"ms" => meta::store(frame, tokens),
        b"gets" => classic::get(frame, tokens, true),
        b"gat" => classic::get_and_touch(frame, tokens, false),
        b"gats" => classic::get_and_touch(frame, tokens, true),
        b"delete" => classic::delete(frame, tokens),
        b"incr" => classic::arith(frame, tokens, false),
        b"decr" => classic::arith(frame, tokens, true),
        b"touch" => classic::touch(frame, tokens),
        b"add" => classic::store(frame, tokens, StoreMode::Add, false),
        b"replace" => classic::store(frame, tokens, StoreMode::Replace, false),
        b"append" => classic::store(frame, tokens, StoreMode::Append, false),
        b"prepend" => classic::store(frame, tokens, StoreMode::Prepend, false),
        b"cas" => classic::store(frame, tokens, StoreMode::Set, true),
        b"md" => meta::delete(frame, tokens),
        b"ma" => meta::arith(frame, tokens),
        b"mn" => meta::noop(frame),
        b"me" => meta::debug(frame, tokens),
        b"ml" => limit::parse(frame, tokens),
        b"mi" => meta::subscribe(frame),
        b"version" => frame.request(Request::Version(classic::reply(Verb::Version, false))),
        b"quit" => frame.request(Request::Quit(classic::reply(Verb::Quit, false))),
        b"stats" => {
            frame.request(Request::Stats(token::trim_end(tokens.rest()), classic::reply(Verb::Stats, false)))
        }
        b"flush_all" => classic::flush(frame, tokens),
        b"verbosity" => classic::verbosity(frame, tokens),
        _ => admin::parse(frame, verb, tokens),
    }
}

/// A line of fewer than four bytes, its end included: malformed whatever it says, but for `mn` and a bare LF,
/// which did work for long.
fn shortest(line: &[u8], len: usize) -> Step<'_> {
    if line == b"mn" {
        let reply = Reply::Meta {
            verb: Verb::Noop,
            flags: &[],
            quiet: false,
            base64: false,
            value: false,
            leased: false,
        };
        return Step::Request { request: Request::Noop(reply), len };
    }
    Step::Reject { reject: Reject::line(text::BAD_FORMAT, false), len, swallow: 0, close: false }
}

/// No line end yet: wait, unless this is longer than a line of its kind may get.
fn unterminated(input: &[u8]) -> Step<'_> {
    let wait = Step::Incomplete { need: input.len() + 1 };
    if input.len() <= LIMITS.line_bytes_max {
        return wait;
    }
    let command = token::trim_start(input);
    let blanks = input.len() - command.len();
    let multi_get = command.starts_with(b"get ") || command.starts_with(b"gets ");
    if multi_get && blanks <= LIMITS.leading_blanks_max && input.len() < LIMITS.get_line_bytes_max {
        wait
    } else {
        Step::Close
    }
}
