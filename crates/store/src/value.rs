//! A value as the store lends it: one slice, or a large one in pieces that outlive the shard's lock.

use std::sync::Arc;

use crate::ram::pool::{LogParts, Pin};

/// An item's value while the store lends it.
#[derive(Clone)]
pub enum Value<'a> {
    /// All of it in one piece, valid for the call.
    Slice(&'a [u8]),
    /// All of it in several pieces, valid for the call.
    Parts(ValueParts<'a>),
    /// A large value in several pieces, which can be kept and read after the call.
    Large(LargeValue),
}

impl Value<'_> {
    /// Length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Value::Slice(bytes) => bytes.len(),
            Value::Parts(parts) => parts.len(),
            Value::Large(large) => large.len(),
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a copy of it.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = Vec::with_capacity(self.len());
        self.append_to(&mut copy);
        copy
    }

    /// Appends the whole value to `out`.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            Value::Slice(bytes) => out.extend_from_slice(bytes),
            Value::Parts(parts) => parts.append_to(out),
            Value::Large(large) => large.parts().for_each(|part| out.extend_from_slice(part)),
        }
    }
}

/// A value of a record that lies over the end of a RAM segment.
#[derive(Clone)]
pub struct ValueParts<'a>(LogParts<'a>);

impl<'a> ValueParts<'a> {
    pub(crate) fn new(parts: LogParts<'a>) -> Self {
        ValueParts(parts)
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the whole value to `out`.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        self.0.clone().for_each(|part| out.extend_from_slice(part));
    }
}

/// A hold on a large value in the RAM tier. It stays readable and unchanged, whatever happens to the item;
/// its memory stays in use as long.
#[derive(Clone)]
pub struct LargeValue {
    pin: Arc<Pin>,
    key_len: usize,
    len: usize,
}

impl LargeValue {
    pub(crate) fn new(pin: Pin, key_len: usize, len: usize) -> Self {
        LargeValue { pin: Arc::new(pin), key_len, len }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value's pieces, in order.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let mut skip = self.key_len;
        self.pin.parts().map(move |part| {
            let from = skip.min(part.len());
            skip -= from;
            &part[from..]
        })
    }

    /// The value's bytes from `offset` to the end of the piece that holds it; empty at the end.
    pub fn part_at(&self, mut offset: usize) -> &[u8] {
        for part in self.parts() {
            if offset < part.len() {
                return &part[offset..];
            }
            offset -= part.len();
        }
        &[]
    }
}
