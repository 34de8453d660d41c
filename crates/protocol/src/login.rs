//! Authentication: what a client asks for, and the replies of both wires.
//!
//! The text wires authenticate with a `set` whose value is `USER PASSWORD`, the binary wire with SASL's mechanism
//! PLAIN. A text connection asks only before it is authenticated, a binary one at any time.

use crate::encode::binary;
use crate::status;
use crate::text;

/// A request to authenticate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login<'a> {
    /// What the client asks for.
    pub wish: Wish<'a>,
    /// How to answer it.
    pub reply: LoginReply,
}

/// What a client that authenticates asks for.
#[derive(Clone, PartialEq, Eq)]
pub enum Wish<'a> {
    /// The names of the mechanisms.
    Mechanisms,
    /// To send the credentials in a second step.
    Begin,
    /// To be known by these credentials.
    Check {
        /// The user's name: any bytes but a blank on the text wires and NUL on the binary one.
        user: &'a [u8],
        /// The password: any bytes but NUL on the binary wire.
        password: &'a [u8],
        /// This is the second step, valid only after [`Wish::Begin`].
        is_step: bool,
    },
    /// A mechanism that does not exist, or a message without credentials: a failure.
    Invalid,
}

// Credentials must not reach a log by accident.
impl std::fmt::Debug for Wish<'_> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            Wish::Mechanisms => "Mechanisms",
            Wish::Begin => "Begin",
            Wish::Check { .. } => "Check",
            Wish::Invalid => "Invalid",
        })
    }
}

/// The server's answer to a [`Login`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The credentials are right.
    Accepted,
    /// They are not.
    Refused,
    /// Send the credentials.
    Continue,
    /// The names of the mechanisms.
    Mechanisms,
    /// This server does not know the command.
    Unknown,
}

/// How to answer a [`Login`]. It holds nothing of the input, so the answer may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginReply(Repr);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repr {
    Text,
    Binary { opcode: u8, opaque: u32 },
}

impl LoginReply {
    pub(crate) const TEXT: LoginReply = LoginReply(Repr::Text);

    pub(crate) fn binary(opcode: u8, opaque: u32) -> LoginReply {
        LoginReply(Repr::Binary { opcode, opaque })
    }

    /// Appends the answer.
    pub fn encode(&self, out: &mut Vec<u8>, verdict: Verdict) {
        match self.0 {
            Repr::Text => {
                let line = match verdict {
                    Verdict::Accepted => "STORED",
                    Verdict::Refused => text::AUTH_FAILED,
                    Verdict::Continue | Verdict::Mechanisms | Verdict::Unknown => text::AUTH_REQUIRED,
                };
                out.extend_from_slice(line.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
            Repr::Binary { opcode, opaque } => {
                let (status, words) = match verdict {
                    Verdict::Accepted => (status::OK, "Authenticated"),
                    Verdict::Refused => (status::AUTH, status::words(status::AUTH)),
                    Verdict::Continue => (status::AUTH_CONTINUE, ""),
                    Verdict::Mechanisms => (status::OK, MECHANISM),
                    Verdict::Unknown => (status::UNKNOWN, status::words(status::UNKNOWN)),
                };
                binary::error(out, opcode, opaque, status, words);
            }
        }
    }
}

/// The one SASL mechanism there is.
pub(crate) const MECHANISM: &str = "PLAIN";

/// Reads the value of the text wires' `set`: the user, a blank, the password, which may hold blanks.
pub(crate) fn text_credentials(value: &[u8]) -> Option<Wish<'_>> {
    let at = value.iter().position(|byte| *byte == b' ')?;
    let (user, password) = (value.get(..at)?, value.get(at + 1..)?);
    Some(Wish::Check { user, password, is_step: false })
}

/// Reads a message of the mechanism PLAIN: `[IDENTITY] NUL USER NUL PASSWORD`. No user may act for another, so an
/// identity has to be the user's own.
pub(crate) fn plain_credentials(message: &[u8], is_step: bool) -> Wish<'_> {
    let mut fields = message.split(|byte| *byte == 0);
    match (fields.next(), fields.next(), fields.next(), fields.next()) {
        (Some(identity), Some(user), Some(password), None) if identity.is_empty() || identity == user => {
            Wish::Check { user, password, is_step }
        }
        _ => Wish::Invalid,
    }
}
