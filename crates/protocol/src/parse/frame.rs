//! One line of the text wires with its place in the input, and the step that a grammar makes of it.

use super::step::Step;
use crate::reject::Reject;
use crate::reply::Reply;
use crate::request::{Request, Store};
use crate::text;

/// A line with its place in the input: all that a grammar needs to say what step it is.
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    /// The line without its end.
    pub(super) line: &'a [u8],
    pub(super) input: &'a [u8],
    /// The length of the line with its end, in bytes.
    pub(super) head: usize,
}

impl<'a> Frame<'a> {
    /// The line is all of a request.
    #[inline]
    pub(super) fn request(self, request: Request<'a>) -> Step<'a> {
        Step::Request { request, len: self.head }
    }

    /// The line is the head of a store; `store.value_len` bytes and CR LF follow.
    #[inline]
    pub(super) fn store(self, store: Store<'a>) -> Step<'a> {
        with_text_body(self.input, self.head, store)
    }

    /// Malformed, nothing follows.
    #[inline]
    pub(super) fn reject(self, line: &'static str, noreply: bool) -> Step<'a> {
        self.reject_data(line, noreply, 0)
    }

    /// Malformed, and so many bytes of data belong to it.
    pub(super) fn reject_data(self, line: &'static str, noreply: bool, swallow: u64) -> Step<'a> {
        Step::Reject { reject: Reject::line(line, noreply), len: self.head, swallow, close: false }
    }
}

/// A store's head is parsed: is its body there?
#[inline]
fn with_text_body<'a>(input: &'a [u8], head: usize, mut store: Store<'a>) -> Step<'a> {
    let value_len = store.value_len as usize;
    let rest = input.get(head..).unwrap_or_default();
    match rest.split_at_checked(value_len) {
        Some((value, [b'\r', b'\n', ..])) => {
            store.value = value;
            Step::Request { request: Request::Store(store), len: head + value_len + 2 }
        }
        Some((_, [_, _, ..])) => {
            let silent = matches!(store.reply, Reply::Classic { noreply: true, .. });
            let reject = Reject::line(text::BAD_DATA_CHUNK, silent);
            Step::Reject { reject, len: head + value_len + 2, swallow: 0, close: false }
        }
        _ => Step::Body { request: store, head, tail: 2 },
    }
}
