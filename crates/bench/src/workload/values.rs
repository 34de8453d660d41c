//! Values that carry their key and version, so that a wrong one is recognised.
//!
//! ```text
//!  24 bytes or more:   0 .. 7        8 .. 15   16 .. 19   20 .. 23                 24 ..
//!                      hash of key   version   length     check of those before    from the pool, by hash and version
//!  8 to 23 bytes:      0 .. 3 version   4 ..  bytes made from hash, version and length
//!  0 to 7 bytes:       bytes made from hash and length: there is no room for a version
//! ```
//!
//! Numbers are little-endian. The pool is the same in every run, so that a value of an earlier run is
//! understood, and looks random, so that it does not matter whether a server compresses.

use crate::random::mix;
use std::fmt;

/// Bytes from which on a value tells its length, and can stand in a row of values.
pub const HEADER: usize = 24;
const SHORT_HEADER: usize = 4;
/// From here on a value has a version.
const SHORT: usize = 8;
const POOL_BYTES: usize = 1 << 20;

/// The bytes that values are filled from.
#[derive(Clone)]
pub struct Pool(Vec<u8>);

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({POOL_BYTES} bytes)")
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

/// Why a value is not one that was stored under its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Its head does not hold together: none of ours, or damaged.
    Head,
    /// It was stored under another key.
    Key,
    /// It was stored with this many bytes, and another number came.
    Length(u32),
    /// The byte at this place differs from the stored one.
    Byte(usize),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Head => write!(f, "is no value of larder-bench, or its head is damaged"),
            Self::Key => write!(f, "was stored under another key"),
            Self::Length(stored) => write!(f, "was stored with {stored} bytes"),
            Self::Byte(at) => write!(f, "differs at byte {at}"),
        }
    }
}

impl Wrong {
    /// The same in a value that has `bytes` bytes before.
    fn behind(self, bytes: usize) -> Self {
        match self {
            Self::Byte(at) => Self::Byte(bytes + at),
            other => other,
        }
    }
}

impl Pool {
    /// The pool; always the same.
    pub fn new() -> Self {
        Self((0..POOL_BYTES as u64 / 8).flat_map(|word| mix(word).to_le_bytes()).collect())
    }

    /// Appends the value of `bytes` bytes of a key and version.
    pub fn write(&self, out: &mut Vec<u8>, key_hash: u64, bytes: u32, version: u64) {
        let length = bytes as usize;
        if length < SHORT {
            return out.extend_from_slice(&short(key_hash, 0, bytes)[..length]);
        }
        if length < HEADER {
            out.extend_from_slice(&(version as u32).to_le_bytes());
            let made = short(key_hash, version as u32, bytes);
            return out.extend_from_slice(&made[..length - SHORT_HEADER]);
        }
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&key_hash.to_le_bytes());
        header[8..16].copy_from_slice(&version.to_le_bytes());
        header[16..20].copy_from_slice(&bytes.to_le_bytes());
        header[20..].copy_from_slice(&check(key_hash, version, bytes).to_le_bytes());
        out.extend_from_slice(&header);
        for piece in self.pieces(key_hash, version, length - HEADER) {
            out.extend_from_slice(piece);
        }
    }

    /// The version of a value that was stored under a key, whatever version that is.
    ///
    /// # Errors
    /// It was not stored under that key, or not like this.
    pub fn verify(&self, value: &[u8], key_hash: u64) -> Result<u64, Wrong> {
        let bytes = value.len() as u32;
        if value.len() < SHORT {
            return same(value, &short(key_hash, 0, bytes)[..value.len()], 0).map(|()| 0);
        }
        if value.len() < HEADER {
            let version = u32::from_le_bytes([value[0], value[1], value[2], value[3]]);
            let made = short(key_hash, version, bytes);
            let rest = &value[SHORT_HEADER..];
            same(rest, &made[..rest.len()], SHORT_HEADER).map_err(|_| Wrong::Head)?;
            return Ok(u64::from(version));
        }
        let hash = word(&value[..8]);
        let version = word(&value[8..16]);
        let length = word(&value[16..20]) as u32;
        if word(&value[20..HEADER]) as u32 != check(hash, version, length) {
            return Err(Wrong::Head);
        }
        if hash != key_hash {
            return Err(Wrong::Key);
        }
        if length != bytes {
            return Err(Wrong::Length(length));
        }
        let mut at = HEADER;
        for piece in self.pieces(key_hash, version, value.len() - HEADER) {
            same(&value[at..at + piece.len()], piece, at)?;
            at += piece.len();
        }
        Ok(version)
    }

    /// Passes on the version of each of the values that stand in a row in `value`: that of a set, with those that were
    /// prepended and appended to it.
    ///
    /// # Errors
    /// They are not all values that were stored under that key.
    pub fn verify_row(&self, value: &[u8], key_hash: u64, mut each: impl FnMut(u64)) -> Result<(), Wrong> {
        let mut at = 0;
        while at == 0 || at < value.len() {
            let rest = &value[at..];
            if rest.len() < HEADER {
                return Err(Wrong::Head);
            }
            // A length beyond these bounds fails in `verify`.
            let length = (word(&rest[16..20]) as usize).clamp(HEADER, rest.len());
            each(self.verify(&rest[..length], key_hash).map_err(|wrong| wrong.behind(at))?);
            at += length;
        }
        Ok(())
    }

    /// The parts of the pool that make up a body.
    fn pieces(&self, key_hash: u64, version: u64, bytes: usize) -> impl Iterator<Item = &[u8]> {
        let mut at = (mix(key_hash ^ version) as usize) % POOL_BYTES;
        let mut left = bytes;
        std::iter::from_fn(move || {
            let length = left.min(POOL_BYTES - at);
            let piece = &self.0[at..at + length];
            at = 0;
            left -= length;
            (length > 0).then_some(piece)
        })
    }
}

fn same(value: &[u8], stored: &[u8], from: usize) -> Result<(), Wrong> {
    if value == stored {
        return Ok(());
    }
    let at = value.iter().zip(stored).position(|(a, b)| a != b).unwrap_or(0);
    Err(Wrong::Byte(from + at))
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn check(key_hash: u64, version: u64, bytes: u32) -> u32 {
    (mix(mix(key_hash ^ mix(version)) ^ u64::from(bytes)) >> 32) as u32
}

fn short(key_hash: u64, version: u32, bytes: u32) -> [u8; HEADER] {
    let mut made = [0; HEADER];
    let mut seed = mix(key_hash ^ mix(u64::from(version) << 32 | u64::from(bytes)));
    for piece in made.chunks_exact_mut(8) {
        piece.copy_from_slice(&seed.to_le_bytes());
        seed = mix(seed);
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [u32; 9] = [0, 1, 7, 8, 23, 24, 25, 1000, 2_500_000];

    fn value(pool: &Pool, key_hash: u64, bytes: u32, version: u64) -> Vec<u8> {
        let mut value = Vec::new();
        pool.write(&mut value, key_hash, bytes, version);
        assert_eq!(value.len(), bytes as usize);
        value
    }

    #[test]
    fn any_version_of_any_run_is_accepted() {
        for bytes in SIZES {
            for version in [0, 1, 1 << 31] {
                let stored = value(&Pool::new(), 77, bytes, version);
                let want = if bytes < 8 { 0 } else { version };
                assert_eq!(Pool::new().verify(&stored, 77), Ok(want), "{bytes} bytes");
            }
        }
    }

    #[test]
    fn another_keys_value_is_refused() {
        let pool = Pool::new();
        for bytes in SIZES.into_iter().filter(|bytes| *bytes >= 7) {
            assert!(pool.verify(&value(&pool, 78, bytes, 5), 77).is_err(), "{bytes} bytes");
        }
        assert_eq!(pool.verify(&value(&pool, 78, 100, 5), 77), Err(Wrong::Key));
    }

    #[test]
    fn a_truncation_is_refused() {
        let pool = Pool::new();
        for bytes in [16, 24, 100, 2000] {
            let stored = value(&pool, 77, bytes, 5);
            for kept in 7..bytes as usize {
                assert!(pool.verify(&stored[..kept], 77).is_err(), "{kept} of {bytes} bytes");
            }
        }
        assert_eq!(pool.verify(&value(&pool, 77, 100, 5)[..90], 77), Err(Wrong::Length(100)));
    }

    #[test]
    fn a_flipped_bit_anywhere_is_refused() {
        let pool = Pool::new();
        for bytes in [7, 12, 24, 200] {
            let stored = value(&pool, 77, bytes, 5);
            for bit in 0..bytes as usize * 8 {
                let mut flipped = stored.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert!(pool.verify(&flipped, 77).is_err(), "bit {bit} of {bytes} bytes");
            }
        }
    }

    #[test]
    fn values_in_a_row_are_told_apart() {
        let pool = Pool::new();
        let row = [(24, 5), (100, 6), (3_000, 7)].map(|(bytes, version)| value(&pool, 77, bytes, version));
        let versions = |value: &[u8]| {
            let mut versions = Vec::new();
            pool.verify_row(value, 77, |version| versions.push(version)).map(|()| versions)
        };
        assert_eq!(versions(&row.concat()), Ok(vec![5, 6, 7]));
        assert_eq!(versions(&row[1]), Ok(vec![6]));
        let whole = row.concat();
        for kept in (0..whole.len()).filter(|kept| ![24, 124].contains(kept)) {
            assert!(versions(&whole[..kept]).is_err(), "{kept} bytes");
        }
        let mut flipped = whole;
        flipped[130] ^= 1;
        assert!(versions(&flipped).is_err());
    }

    #[test]
    fn what_others_stored_is_refused() {
        let pool = Pool::new();
        assert_eq!(pool.verify(&[b'x'; 100], 77), Err(Wrong::Head));
        assert_eq!(pool.verify(&[0; 12], 77), Err(Wrong::Head));
    }
}
