//! The hash functions that placement needs, as the clients that it agrees with compute them.

use md5::{Digest, Md5};

/// How libmemcached (its behaviour `HASH`) and twemproxy (its setting `hash`) hash a key to a place on the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyHash {
    /// `one_at_a_time`, libmemcached's default.
    OneAtATime,
    /// `fnv1a_64`, twemproxy's default.
    Fnv1a64,
    /// `md5`.
    Md5,
}

impl KeyHash {
    pub(super) fn hash(self, key: &[u8]) -> u32 {
        match self {
            KeyHash::OneAtATime => one_at_a_time(key),
            KeyHash::Fnv1a64 => fnv1a_64(key),
            KeyHash::Md5 => md5_points(key)[0],
        }
    }
}

/// A byte as C on x86 has it: a `char` there has a sign, which it keeps when it becomes 32 bits.
fn signed(byte: u8) -> u32 {
    i32::from(byte.cast_signed()).cast_unsigned()
}

/// What libmemcached and twemproxy call by this name: it has the low halves of FNV-1a's 64-bit constants.
fn fnv1a_64(key: &[u8]) -> u32 {
    key.iter().fold(0x8422_2325, |hash: u32, byte| (hash ^ signed(*byte)).wrapping_mul(0x1b3))
}

/// Bob Jenkins' one-at-a-time hash.
fn one_at_a_time(key: &[u8]) -> u32 {
    let hash = key.iter().fold(0, |hash: u32, byte| {
        let hash = hash.wrapping_add(signed(*byte));
        let hash = hash.wrapping_add(hash << 10);
        hash ^ hash >> 6
    });
    let hash = hash.wrapping_add(hash << 3);
    let hash = hash ^ hash >> 11;
    hash.wrapping_add(hash << 15)
}

/// Returns the four places on the ring that one MD5 gives, each little-endian.
pub(super) fn md5_points(bytes: &[u8]) -> [u32; 4] {
    let digest: [u8; 16] = Md5::digest(bytes).into();
    let (words, _) = digest.as_chunks::<4>();
    let mut points = [0; 4];
    for (point, word) in points.iter_mut().zip(words) {
        *point = u32::from_le_bytes(*word);
    }
    points
}

/// Returns the 32-bit MurmurHash3 (x86) of bytes.
pub fn murmur3_32(bytes: &[u8], seed: u32) -> u32 {
    let (blocks, tail) = bytes.as_chunks::<4>();
    let mut hash = seed;
    for block in blocks {
        hash ^= scrambled(u32::from_le_bytes(*block));
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    if !tail.is_empty() {
        let last = tail.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        hash ^= scrambled(last);
    }
    // Lengths are taken modulo 2^32, as the algorithm says.
    hash ^= bytes.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

fn scrambled(block: u32) -> u32 {
    block.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn murmur3_has_its_published_values() {
        for (text, seed, hash) in [
            ("", 0, 0),
            ("", 1, 0x514e_28b7),
            ("test", 0, 0xba6b_d213),
            ("Hello, world!", 0x9747_b28c, 0x2488_4cba),
            ("The quick brown fox jumps over the lazy dog", 0x9747_b28c, 0x2fa8_26cd),
        ] {
            assert_eq!(murmur3_32(text.as_bytes(), seed), hash, "{text}");
        }
    }

    #[test]
    fn md5_is_read_as_four_little_endian_words() {
        // MD5 of the empty string is d41d8cd98f00b204e9800998ecf8427e.
        assert_eq!(md5_points(b""), [0xd98c_1dd4, 0x04b2_008f, 0x9809_80e9, 0x7e42_f8ec]);
    }
}
