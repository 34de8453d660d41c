//! The grammar of a connection that has not authenticated: what it may ask, and the refusal of everything else.

use memchr::memchr;

use super::frame::Frame;
use super::number;
use super::step::Step;
use super::{binary, classic};
use crate::limits::LIMITS;
use crate::login::{Login, LoginReply, text_credentials};
use crate::reject::Reject;
use crate::text;
use crate::token::Tokens;

/// Parses the front of a text connection's input: a `set` whose key, flags and expiry mean nothing. A line of fewer
/// than three bytes is answered at once, where memcached waits for a third byte.
pub(super) fn parse_text(input: &[u8]) -> Step<'_> {
    let Some(newline) = memchr(b'\n', input) else {
        return match input.len() {
            0..=LINE_MAX => Step::Incomplete { need: input.len() + 1 },
            _ => Step::Close,
        };
    };
    let head = newline + 1;
    let line = input.get(..newline).unwrap_or_default();
    let frame = Frame { line: line.strip_suffix(b"\r").unwrap_or(line), input, head };
    match value_len(frame.line) {
        Some(value_len) => credentials(frame, value_len),
        None => frame.reject(text::AUTH_REQUIRED, false),
    }
}

const LINE_MAX: usize = LIMITS.line_bytes_max;

/// Returns the announced length of the value if the line is a `set`. `noreply` means nothing either.
fn value_len(line: &[u8]) -> Option<u64> {
    // A verb behind blanks is none here, as in memcached.
    let rest = line.strip_prefix(b"set ")?;
    let bytes = Tokens::new(rest).nth(3)?;
    number::digits(bytes).filter(|len| *len <= u64::from(u32::MAX))
}

/// Takes the credentials behind a `set` of so many bytes.
fn credentials(frame: Frame<'_>, value_len: u64) -> Step<'_> {
    if value_len > u64::from(classic::VALUE_BYTES_MAX) {
        let reject = Reject::line(text::AUTH_TOO_LONG, false);
        return Step::Reject { reject, len: frame.head, swallow: 0, close: true };
    }
    if value_len > LIMITS.login_bytes_max as u64 {
        return frame.reject_data(text::AUTH_TOO_LONG, false, value_len + 2);
    }
    let end = frame.head + value_len as usize;
    let len = end + 2;
    let refuse = |line| Step::Reject { reject: Reject::line(line, false), len, swallow: 0, close: false };
    match (frame.input.get(frame.head..end), frame.input.get(end..len)) {
        (Some(value), Some(b"\r\n")) => match text_credentials(value) {
            Some(wish) => Step::Login { login: Login { wish, reply: LoginReply::TEXT }, len, swallow: 0 },
            None => refuse(text::AUTH_BAD_FORMAT),
        },
        (Some(_), Some(_)) => refuse(text::AUTH_BAD_END),
        _ => Step::Incomplete { need: len },
    }
}

/// Parses the front of a binary connection's input. SASL and `version` are allowed; anything else closes.
pub(super) fn parse_binary(input: &[u8]) -> Step<'_> {
    binary::unauthenticated(input).unwrap_or_else(|| binary::parse(input))
}
