//! Parses the front of a connection's input into one step, by the grammar of its wire.

mod admin;
mod binary;
mod classic;
mod frame;
mod limit;
mod login;
mod meta;
mod meta_flags;
mod number;
mod step;
mod text;

pub use binary::HEADER_LEN as BINARY_HEADER_BYTES;
pub use step::Step;

/// The type of a TLS record with a handshake (RFC 8446, section 5.1), with which a connection over TLS begins.
const TLS_HANDSHAKE: u8 = 22;

/// Which framing a connection speaks. Classic and meta share the text framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Lines.
    Text,
    /// Packets.
    Binary,
    /// TLS, in which the bytes that get here should have been taken off: nothing within it is executed, and the
    /// connection is to be closed.
    Tls,
}

/// What a connection speaks, by its first byte; it stays so for the connection's life.
#[inline]
pub fn detect(first_byte: u8) -> Wire {
    match first_byte {
        binary::MAGIC => Wire::Binary,
        TLS_HANDSHAKE => Wire::Tls,
        _ => Wire::Text,
    }
}

/// Parses the front of `input`. Consumes nothing: the step says what to consume.
#[inline]
pub fn parse(wire: Wire, input: &[u8]) -> Step<'_> {
    match wire {
        Wire::Text => text::parse(input),
        Wire::Binary => binary::parse(input),
        Wire::Tls => Step::Close,
    }
}

/// Parses the front of the input of a connection that must authenticate first: a login, a request that anybody
/// may send, or a refusal of anything else. It reads no key and no value.
pub fn parse_unauthenticated(wire: Wire, input: &[u8]) -> Step<'_> {
    match wire {
        Wire::Text => login::parse_text(input),
        Wire::Binary => login::parse_binary(input),
        Wire::Tls => Step::Close,
    }
}

/// Whether what follows a streamed value is what must follow it. Empty on the binary wire.
#[inline]
pub fn body_tail_is_valid(tail: &[u8]) -> bool {
    matches!(tail, [] | [b'\r', b'\n'])
}
