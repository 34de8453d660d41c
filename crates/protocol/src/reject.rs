//! The answer to what could not be parsed, or is not permitted.

use crate::encode::binary;
use crate::reply::Reply;
use crate::status;
use crate::text;

/// Why a request was refused, ready to be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject(Repr);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Repr {
    Silent,
    Line(&'static str),
    Binary { opcode: u8, opaque: u32, status: u16 },
}

impl Reject {
    /// A line, unless the request asked for silence.
    pub(crate) fn line(line: &'static str, noreply: bool) -> Self {
        Reject(if noreply { Repr::Silent } else { Repr::Line(line) })
    }

    /// A binary status with its words.
    pub(crate) fn binary(opcode: u8, opaque: u32, status: u16) -> Self {
        Reject(Repr::Binary { opcode, opaque, status })
    }

    /// The refusal of a request for which the user lacks the right. A text request that asked for silence gets it;
    /// a quiet binary or meta request is told, as of every error.
    pub fn denial(reply: &Reply<'_>) -> Self {
        match reply {
            Reply::Classic { noreply, .. } => Reject::line(text::PERMISSION_DENIED, *noreply),
            Reply::Meta { .. } => Reject::line(text::PERMISSION_DENIED, false),
            Reply::Binary { opcode, opaque, .. } => Reject::binary(*opcode, *opaque, status::AUTH),
        }
    }

    /// Appends the answer; nothing where the request asked for silence.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Silent => {}
            Repr::Line(line) => {
                out.extend_from_slice(line.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
            Repr::Binary { opcode, opaque, status } => {
                binary::error(out, *opcode, *opaque, *status, status::words(*status));
            }
        }
    }
}
