//! Answers in classic text.

use super::number;
use crate::reply::{ItemInfo, Outcome, Verb};
use crate::text::{self, VERSION};

/// `VALUE <key> <flags> <bytes>[ <cas>]`.
#[inline]
pub(super) fn hit_head(out: &mut Vec<u8>, key: &[u8], item: &ItemInfo, with_cas: bool) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.push(b' ');
    number::push(out, item.client_flags);
    out.push(b' ');
    number::push(out, item.value_len);
    if with_cas {
        out.push(b' ');
        number::push(out, item.cas);
    }
    out.extend_from_slice(b"\r\n");
}

/// The line for an outcome.
pub(super) fn outcome(out: &mut Vec<u8>, verb: Verb, outcome: Outcome) {
    let line = match outcome {
        Outcome::Number { value } => {
            number::push(out, value);
            ""
        }
        Outcome::Stored => "STORED",
        Outcome::NotStored => "NOT_STORED",
        Outcome::Exists => "EXISTS",
        Outcome::NotFound => "NOT_FOUND",
        Outcome::Deleted => "DELETED",
        Outcome::Touched => "TOUCHED",
        Outcome::Ok => match verb {
            Verb::Quit => return,
            Verb::Noop => "MN",
            Verb::Version => {
                out.extend_from_slice(b"VERSION ");
                VERSION
            }
            _ => "OK",
        },
        other => return error(out, verb, other),
    };
    out.extend_from_slice(line.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The line for an outcome that reads the same in classic and meta text.
pub(super) fn error(out: &mut Vec<u8>, verb: Verb, outcome: Outcome) {
    let line = match outcome {
        Outcome::NonNumeric => text::NON_NUMERIC,
        Outcome::TooLarge => text::TOO_LARGE,
        Outcome::OutOfMemory => match verb {
            Verb::Store => text::OUT_OF_MEMORY_STORING,
            Verb::Get => text::OUT_OF_MEMORY_READING,
            _ => text::OUT_OF_MEMORY,
        },
        Outcome::BadDataChunk => text::BAD_DATA_CHUNK,
        Outcome::Reset => "RESET",
        Outcome::FlushNotAllowed => text::FLUSH_NOT_ALLOWED,
        Outcome::Failed { reason } => {
            out.extend_from_slice(b"SERVER_ERROR ");
            reason
        }
        Outcome::Stored
        | Outcome::NotStored
        | Outcome::Exists
        | Outcome::NotFound
        | Outcome::Deleted
        | Outcome::Touched
        | Outcome::Number { .. }
        | Outcome::Ok => "OK",
    };
    out.extend_from_slice(line.as_bytes());
    out.extend_from_slice(b"\r\n");
}
