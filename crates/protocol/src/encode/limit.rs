//! The reply to `ml`: `HD` if the cost passes, `NS` if not, then the flags that were asked for.

use larder_rate::Verdict;

use super::meta::{push_key, push_token};
use super::number;
use crate::token::Tokens;

/// Appends the reply. Nanoseconds are rounded up to milliseconds, so that a caller never comes back too early.
pub(super) fn verdict(out: &mut Vec<u8>, flags: &[u8], base64: bool, key: &[u8], verdict: &Verdict) {
    out.extend_from_slice(if verdict.is_allowed { b"HD" } else { b"NS" });
    for token in Tokens::new(flags) {
        match token.first() {
            Some(b'r') => flag(out, b'r', verdict.remaining),
            Some(b'w') => match verdict.retry_after_ns {
                Some(ns) => flag(out, b'w', milliseconds(ns)),
                None => out.extend_from_slice(b" w-1"),
            },
            Some(b'a') => flag(out, b'a', milliseconds(verdict.reset_after_ns)),
            Some(b'O') => push_token(out, token),
            Some(b'k') => push_key(out, key, base64),
            _ => {}
        }
    }
    out.extend_from_slice(b"\r\n");
}

fn milliseconds(ns: u64) -> u64 {
    ns.div_ceil(1_000_000)
}

fn flag(out: &mut Vec<u8>, letter: u8, value: u64) {
    out.extend_from_slice(&[b' ', letter]);
    number::push(out, value);
}
