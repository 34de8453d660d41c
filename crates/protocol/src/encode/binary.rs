//! Answers on the binary wire: a header of 24 bytes, then extras, key and value.
//!
//! ```text
//!  0      1       2     4       5         6       8       12      16    24
//!  | 0x81 | opcode | key | extras | datatype | status | body  | opaque | cas |
//!                    len   len      0                   len
//! ```

use crate::opcode as op;
use crate::reply::{ItemInfo, Outcome, Verb};
use crate::status;
use crate::text::VERSION;

/// First byte of an answer.
const MAGIC: u8 = 0x81;

/// What a header says beyond its opcode and opaque.
#[derive(Clone, Copy, Default)]
pub(super) struct ReplyHeader {
    pub(super) status: u16,
    pub(super) extras_len: u8,
    pub(super) key_len: u16,
    pub(super) body_len: u32,
    pub(super) cas: u64,
}

/// Appends a header.
pub(super) fn header(out: &mut Vec<u8>, opcode: u8, opaque: u32, header: ReplyHeader) {
    let mut bytes = [0u8; 24];
    {
        let mut at = bytes.as_mut_slice();
        let mut put = |field: &[u8]| {
            if let Some((to, rest)) = std::mem::take(&mut at).split_at_mut_checked(field.len()) {
                to.copy_from_slice(field);
                at = rest;
            }
        };
        put(&[MAGIC, opcode]);
        put(&header.key_len.to_be_bytes());
        put(&[header.extras_len, 0]);
        put(&header.status.to_be_bytes());
        put(&header.body_len.to_be_bytes());
        put(&opaque.to_be_bytes());
        put(&header.cas.to_be_bytes());
    }
    out.extend_from_slice(&bytes);
}

/// An answer that is a status and words.
pub(crate) fn error(out: &mut Vec<u8>, opcode: u8, opaque: u32, status: u16, words: &str) {
    header(
        out,
        opcode,
        opaque,
        ReplyHeader { status, body_len: words.len() as u32, ..ReplyHeader::default() },
    );
    out.extend_from_slice(words.as_bytes());
}

/// Header, flags and, for the opcodes that ask for it, key of an item that was found.
pub(super) fn hit_head(
    out: &mut Vec<u8>,
    opcode: u8,
    opaque: u32,
    key: &[u8],
    item: &ItemInfo,
    with_value: bool,
) {
    let key = if op::wants_key(opcode) { key } else { &[] };
    let value_len = if with_value { item.value_len } else { 0 };
    header(
        out,
        opcode,
        opaque,
        ReplyHeader {
            status: status::OK,
            extras_len: 4,
            key_len: key.len() as u16,
            body_len: value_len.saturating_add(4 + key.len() as u32),
            cas: item.cas,
        },
    );
    out.extend_from_slice(&item.client_flags.to_be_bytes());
    out.extend_from_slice(key);
}

/// A read that found nothing. Where the key was asked for it is the body, in place of the words.
pub(super) fn miss(out: &mut Vec<u8>, opcode: u8, opaque: u32, key: &[u8]) {
    if op::wants_key(opcode) && !key.is_empty() {
        let fields = ReplyHeader {
            status: status::NOT_FOUND,
            key_len: key.len() as u16,
            body_len: key.len() as u32,
            ..ReplyHeader::default()
        };
        header(out, opcode, opaque, fields);
        out.extend_from_slice(key);
    } else {
        error(out, opcode, opaque, status::NOT_FOUND, status::words(status::NOT_FOUND));
    }
}

/// The answer to everything that does not read a value, and to what failed.
pub(super) fn outcome(
    out: &mut Vec<u8>,
    opcode: u8,
    opaque: u32,
    quiet: bool,
    outcome: Outcome,
    item: &ItemInfo,
) {
    let mut success = |cas: u64, extras_len: u8, body: &[u8]| {
        if !quiet {
            let fields =
                ReplyHeader { extras_len, body_len: body.len() as u32, cas, ..ReplyHeader::default() };
            header(out, opcode, opaque, fields);
            out.extend_from_slice(body);
        }
    };
    let (status, text) = match outcome {
        Outcome::Stored => return success(item.cas, 0, &[]),
        Outcome::Deleted | Outcome::Reset => return success(0, 0, &[]),
        Outcome::Touched => return success(item.cas, 4, &item.client_flags.to_be_bytes()),
        Outcome::Number { value } => return success(item.cas, 0, &value.to_be_bytes()),
        Outcome::Ok if Verb::of_opcode(opcode) == Verb::Version => return success(0, 0, VERSION.as_bytes()),
        Outcome::Ok => return success(0, 0, &[]),
        Outcome::NotStored => match op::loud(opcode) {
            op::ADD => (status::EXISTS, None),
            op::REPLACE => (status::NOT_FOUND, None),
            _ => (status::NOT_STORED, None),
        },
        Outcome::Exists => (status::EXISTS, None),
        Outcome::NotFound => (status::NOT_FOUND, None),
        Outcome::NonNumeric => (status::NON_NUMERIC, None),
        Outcome::TooLarge => (status::TOO_LARGE, None),
        Outcome::OutOfMemory => match Verb::of_opcode(opcode) {
            Verb::Store => (status::OUT_OF_MEMORY, Some("Out of memory allocating item")),
            Verb::Arith => (status::OUT_OF_MEMORY, Some("Out of memory incrementing value")),
            _ => (status::OUT_OF_MEMORY, None),
        },
        Outcome::BadDataChunk => (status::INVALID, None),
        Outcome::FlushNotAllowed => (status::AUTH, None),
        Outcome::Failed { reason } => (status::INTERNAL, Some(reason)),
    };
    error(out, opcode, opaque, status, text.unwrap_or_else(|| status::words(status)));
}
