//! From the front of a connection's input to one step: which wire, where a line ends, whether a body is
//! there.

use memchr::memchr;

use crate::binary;
use crate::classic;
use crate::limits::LIMITS;
use crate::reject::Reject;
use crate::reply::{Reply, Verb};
use crate::request::{Request, Store};
use crate::text;
use crate::token;

/// Which of the two framings a connection speaks. Classic and meta share the text framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Lines.
    Text,
    /// Packets.
    Binary,
}

/// What a connection speaks, by its first byte; it stays so for the connection's life.
#[inline]
pub fn detect(first_byte: u8) -> Wire {
    if first_byte == binary::MAGIC { Wire::Binary } else { Wire::Text }
}

/// What the front of the input is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// More bytes are needed.
    Incomplete {
        /// The total input length worth waiting for: a lower bound, always more than there is.
        need: usize,
    },
    /// A whole request, its data included.
    Request {
        /// What is asked.
        request: Request<'a>,
        /// Consume this many bytes.
        len: usize,
    },
    /// The head of a store whose value is not there yet. Either wait for all of it and parse again, or take
    /// `head` bytes off, stream `request.value_len` bytes elsewhere, and check the `tail` bytes that follow
    /// with [`body_tail_is_valid`] (answer [`Outcome::BadDataChunk`](crate::Outcome::BadDataChunk) if
    /// they are not).
    Body {
        /// What is asked; its value is empty.
        request: Store<'a>,
        /// The bytes before the value.
        head: usize,
        /// The bytes after the value: 2 on the text wires, 0 on the binary one.
        tail: usize,
    },
    /// Malformed. Say `reject`, consume `len`, then discard `swallow` further bytes, which need not be there
    /// yet.
    Reject {
        /// What to answer.
        reject: Reject,
        /// Consume this many bytes.
        len: usize,
        /// Then discard this many.
        swallow: u64,
        /// Close once the answer is sent.
        close: bool,
    },
    /// Close without an answer: this is no client of ours.
    Close,
}

/// Parses the front of `input`. Consumes nothing: the step says what to consume.
#[inline]
pub fn parse(wire: Wire, input: &[u8]) -> Step<'_> {
    match wire {
        Wire::Text => parse_text(input),
        Wire::Binary => binary::parse(input),
    }
}

/// Whether what follows a streamed value is what must follow it. Empty on the binary wire.
#[inline]
pub fn body_tail_is_valid(tail: &[u8]) -> bool {
    matches!(tail, [] | [b'\r', b'\n'])
}

/// A line with its place in the input: all that a grammar needs to say what step it is.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    /// The line without its end.
    pub(crate) line: &'a [u8],
    input: &'a [u8],
    /// How long the line is with its end.
    head: usize,
}

impl<'a> Frame<'a> {
    /// The line is all of a request.
    #[inline]
    pub(crate) fn request(self, request: Request<'a>) -> Step<'a> {
        Step::Request { request, len: self.head }
    }

    /// The line is the head of a store; `store.value_len` bytes and CR LF follow.
    #[inline]
    pub(crate) fn store(self, store: Store<'a>) -> Step<'a> {
        with_text_body(self.input, self.head, store)
    }

    /// Malformed, nothing follows.
    #[inline]
    pub(crate) fn reject(self, line: &'static str, noreply: bool) -> Step<'a> {
        self.reject_data(line, noreply, 0)
    }

    /// Malformed, and so many bytes of data belong to it.
    pub(crate) fn reject_data(self, line: &'static str, noreply: bool, swallow: u64) -> Step<'a> {
        Step::Reject { reject: Reject::line(line, noreply), len: self.head, swallow, close: false }
    }
}

#[inline]
fn parse_text(input: &[u8]) -> Step<'_> {
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
    classic::parse(Frame { line, input, head })
}

/// A line of fewer than four bytes, its end included: malformed whatever it says, but for `mn` and a bare LF,
/// which did work for long.
fn shortest(line: &[u8], len: usize) -> Step<'_> {
    if line == b"mn" {
        let reply = Reply::Meta { verb: Verb::Noop, flags: &[], quiet: false, base64: false, value: false };
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
