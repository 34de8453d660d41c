//! The result of parsing: one step for the caller to take.

use crate::login::Login;
use crate::reject::Reject;
use crate::request::{Request, Store};

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
        /// The request.
        request: Request<'a>,
        /// Consume this many bytes.
        len: usize,
    },
    /// The head of a store whose value is not there yet. Either wait for all of it and parse again, or take
    /// `head` bytes off, stream `request.value_len` bytes elsewhere, and check the `tail` bytes that follow
    /// with [`body_tail_is_valid`](crate::body_tail_is_valid) (answer
    /// [`Outcome::BadDataChunk`](crate::Outcome::BadDataChunk) if they are not).
    Body {
        /// The request, with an empty value.
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
    /// A request to authenticate. Consume `len`, then discard `swallow` further bytes.
    Login {
        /// The request.
        login: Login<'a>,
        /// Consume this many bytes.
        len: usize,
        /// Then discard this many.
        swallow: u64,
    },
    /// Close without an answer: this is no client of ours.
    Close,
}
