//! Keys as a request carries them: borrowed from the input, or decoded beside it. Each is checked already.

use std::fmt;

use memchr::memchr;

use crate::base64;
use crate::limits::LIMITS;
use crate::token::trim_start;

/// What the longest base64 token decodes to.
const DECODED_BYTES_MAX: usize = LIMITS.key_bytes_max / 4 * 3;

/// One key: 1 to 250 bytes, any but blank, CR and LF on the text wires unless sent as base64.
#[derive(Clone)]
pub struct Key<'a>(KeyRepr<'a>);

/// A decoded key is kept inline, so that decoding allocates nothing.
#[derive(Clone)]
enum KeyRepr<'a> {
    Plain(&'a [u8]),
    Decoded { len: u8, bytes: [u8; DECODED_BYTES_MAX] },
}

impl<'a> Key<'a> {
    /// A key as it is. The caller has checked its length.
    #[inline]
    pub(crate) fn plain(bytes: &'a [u8]) -> Self {
        Key(KeyRepr::Plain(bytes))
    }

    /// A key that was sent as base64; None when it is none.
    pub(crate) fn decode(encoded: &[u8]) -> Option<Self> {
        let mut bytes = [0; DECODED_BYTES_MAX];
        let len = u8::try_from(base64::decode(encoded, &mut bytes)?).ok()?;
        Some(Key(KeyRepr::Decoded { len, bytes }))
    }

    /// The key's bytes, decoded where it was sent as base64.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            KeyRepr::Plain(bytes) => bytes,
            KeyRepr::Decoded { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
        }
    }

    /// Whether it was sent as base64 (meta flag `b`). An item stored so shows its key so, also to others.
    #[inline]
    pub fn is_base64(&self) -> bool {
        matches!(self.0, KeyRepr::Decoded { .. })
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes() && self.is_base64() == other.is_base64()
    }
}

impl Eq for Key<'_> {}

impl fmt::Debug for Key<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base64 = if self.is_base64() { " b" } else { "" };
        write!(to, "Key({}{base64})", self.bytes().escape_ascii())
    }
}

/// The keys of a read, in request order, duplicates kept. An iterator; cloning it starts over from where it
/// stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys<'a>(KeysRepr<'a>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum KeysRepr<'a> {
    None,
    One(Key<'a>),
    /// Two or more keys (fewer once iteration has begun), with blanks between, in a line that is checked.
    Line(&'a [u8]),
}

impl<'a> Keys<'a> {
    /// Just this key.
    #[inline]
    pub(crate) fn one(key: Key<'a>) -> Self {
        Keys(KeysRepr::One(key))
    }

    /// The keys of the rest of a line, blanks around them; None when there is no key or one is too long.
    #[inline]
    pub(crate) fn line(line: &'a [u8]) -> Option<Self> {
        let line = trim_start(line);
        let Some(end) = memchr(b' ', line) else {
            return checked(line).then(|| Keys::one(Key::plain(line)));
        };
        let (first, rest) = line.split_at_checked(end)?;
        if !checked(first) {
            return None;
        }
        let mut more = trim_start(rest);
        if more.is_empty() {
            return Some(Keys::one(Key::plain(first)));
        }
        while !more.is_empty() {
            let (key, rest) = more.split_at_checked(memchr(b' ', more).unwrap_or(more.len()))?;
            if !checked(key) {
                return None;
            }
            more = trim_start(rest);
        }
        Some(Keys(KeysRepr::Line(line)))
    }

    /// The key when there is exactly one (as there always is on the meta and binary wires).
    #[inline]
    pub fn single(&self) -> Option<&Key<'a>> {
        match &self.0 {
            KeysRepr::One(key) => Some(key),
            KeysRepr::None | KeysRepr::Line(_) => None,
        }
    }

    /// Whether there is exactly one key.
    #[inline]
    pub fn is_single(&self) -> bool {
        matches!(self.0, KeysRepr::One(_))
    }
}

impl<'a> Iterator for Keys<'a> {
    type Item = Key<'a>;

    #[inline]
    fn next(&mut self) -> Option<Key<'a>> {
        match std::mem::replace(&mut self.0, KeysRepr::None) {
            KeysRepr::None => None,
            KeysRepr::One(key) => Some(key),
            KeysRepr::Line(line) => {
                let line = trim_start(line);
                let (key, rest) = line.split_at_checked(memchr(b' ', line).unwrap_or(line.len()))?;
                if key.is_empty() {
                    return None;
                }
                self.0 = KeysRepr::Line(rest);
                Some(Key::plain(key))
            }
        }
    }
}

#[inline]
fn checked(key: &[u8]) -> bool {
    !key.is_empty() && key.len() <= LIMITS.key_bytes_max
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(line: &[u8]) -> Option<Vec<Vec<u8>>> {
        Keys::line(line).map(|keys| keys.map(|key| key.bytes().to_vec()).collect())
    }

    #[test]
    fn order_and_duplicates_are_kept() {
        assert_eq!(all(b"b a  b c ").unwrap(), [b"b", b"a", b"b", b"c"]);
        assert_eq!(all(b" a ").unwrap(), [b"a"]);
        assert!(Keys::line(b" a ").unwrap().is_single());
        assert_eq!(Keys::line(b"a b").unwrap().single(), None);
        assert_eq!(all(b"   "), None);
        assert_eq!(all(b""), None);
    }

    #[test]
    fn one_long_key_voids_them_all() {
        let longest = [b'k'; 250];
        let too_long = [b'k'; 251];
        assert!(all(&longest).is_some());
        assert!(all(&too_long).is_none());
        assert!(all(&[b"a ", &too_long[..]].concat()).is_none());
        assert!(all(&[&too_long[..], b" a"].concat()).is_none());
        assert!(all(&[&longest[..], b" ", &longest].concat()).is_some());
    }

    #[test]
    fn a_decoded_key_is_not_the_plain_one() {
        let decoded = Key::decode(b"YWJj").unwrap();
        assert_eq!(decoded.bytes(), b"abc");
        assert!(decoded.is_base64());
        assert_ne!(decoded, Key::plain(b"abc"));
        let longest = "AAAA".repeat(62);
        assert_eq!(Key::decode(longest.as_bytes()).unwrap().bytes().len(), DECODED_BYTES_MAX);
        assert!(Key::decode("AAAA".repeat(63).as_bytes()).is_none());
    }
}
