//! Keys as the wire carries them: plain, or in base64 where a plain key would break the line.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;

/// The most bytes that a key takes on the wire.
pub const KEY_BYTES_MAX: usize = 250;

/// A key that was checked and can be sent.
///
/// A key of visible ASCII and bytes above 127 is sent as it is. A key with blanks or control bytes is sent in base64,
/// which a server decodes, so it may have 186 bytes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    bytes: &'a [u8],
    is_base64: bool,
}

/// Why a key cannot be sent to any server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BadKey {
    /// It has no bytes.
    #[error("the key is empty; use at least one byte")]
    Empty,
    /// It takes more than [`KEY_BYTES_MAX`] bytes on the wire.
    #[error("the key takes {wire_bytes} bytes on the wire, more than {KEY_BYTES_MAX}; hash long keys first")]
    TooLong {
        /// What it would take, after base64 where that is needed.
        wire_bytes: usize,
    },
}

impl<'a> Key<'a> {
    /// Checks a key.
    ///
    /// # Errors
    /// When it is empty, or takes more than [`KEY_BYTES_MAX`] bytes on the wire.
    pub fn new(bytes: &'a [u8]) -> Result<Self, BadKey> {
        let is_base64 = bytes.iter().any(|byte| *byte <= b' ' || *byte == 0x7f);
        let wire_bytes = if is_base64 { bytes.len().div_ceil(3) * 4 } else { bytes.len() };
        match wire_bytes {
            0 => Err(BadKey::Empty),
            1..=KEY_BYTES_MAX => Ok(Key { bytes, is_base64 }),
            _ => Err(BadKey::TooLong { wire_bytes }),
        }
    }

    /// Returns the key's bytes as the caller gave them.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns whether the key is sent in base64, with the flag `b`.
    pub fn is_base64(&self) -> bool {
        self.is_base64
    }

    /// Appends the key as it is sent.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        if !self.is_base64 {
            out.extend_from_slice(self.bytes);
            return;
        }
        let start = out.len();
        out.resize(start + self.bytes.len().div_ceil(3) * 4, 0);
        let room = out.get_mut(start..).unwrap_or_default();
        let written = STANDARD.encode_slice(self.bytes, room);
        debug_assert_eq!(written.ok(), Some(self.bytes.len().div_ceil(3) * 4));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(bytes: &[u8]) -> Vec<u8> {
        let mut out = b"mg ".to_vec();
        Key::new(bytes).expect("the key is good").encode(&mut out);
        out
    }

    #[test]
    fn only_keys_that_would_break_the_line_are_sent_in_base64() {
        assert_eq!(encoded(b"plain:key/1"), b"mg plain:key/1");
        assert_eq!(encoded("caf\u{e9}".as_bytes()), "mg caf\u{e9}".as_bytes());
        assert_eq!(encoded(b"a b"), b"mg YSBi");
        assert_eq!(encoded(b"\0"), b"mg AA==");
        assert_eq!(encoded(b"a\x7f"), b"mg YX8=");
    }

    #[test]
    fn keys_are_bounded_as_they_are_sent() {
        assert_eq!(Key::new(b""), Err(BadKey::Empty));
        assert!(Key::new(&[b'k'; 250]).is_ok());
        assert_eq!(Key::new(&[b'k'; 251]), Err(BadKey::TooLong { wire_bytes: 251 }));
        assert!(Key::new(&[b' '; 186]).is_ok());
        assert_eq!(Key::new(&[b' '; 187]), Err(BadKey::TooLong { wire_bytes: 252 }));
    }
}
