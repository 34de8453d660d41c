//! From a key to its place: which shard, which bucket, which tag. Seeded per store, so no client can aim keys at
//! one bucket.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

/// The seed of one store's hash.
#[derive(Clone)]
pub struct Hasher {
    secrets: RapidSecrets,
}

/// A key's 64 hash bits.
///
/// ```text
///  63        48 47                              16 15         0
/// +------------+----------------------------------+------------+
/// |   shard    |              bucket              |    tag     |
/// +------------+----------------------------------+------------+
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyHash(pub(crate) u64);

impl KeyHash {
    /// Returns the bits, for a caller's own table by keys. Clients must not learn them: they tell of the seed.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }
}

impl Hasher {
    /// A hasher for `seed`; the same seed gives the same hashes on every machine and version.
    pub fn new(seed: u64) -> Self {
        Hasher { secrets: RapidSecrets::seed(seed) }
    }

    /// Hashes a key.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        KeyHash(rapidhash_v3_seeded(key, &self.secrets))
    }
}

impl KeyHash {
    /// Which of `shards` (at most 65,536) owns the key.
    #[inline]
    pub(crate) fn shard(self, shards: u32) -> u32 {
        (((self.0 >> 48) * u64::from(shards)) >> 16) as u32
    }

    /// The key's first bucket of `buckets`.
    #[inline]
    pub(crate) fn bucket(self, buckets: u32) -> u32 {
        ((((self.0 >> 16) & 0xFFFF_FFFF) * u64::from(buckets)) >> 32) as u32
    }

    /// The hash bits kept in the index entry.
    #[inline]
    pub(crate) fn tag(self) -> u16 {
        self.0 as u16
    }

    /// Six bits that choose among the buckets which one of a small index has become: the last ones of those
    /// that chose the bucket, of which an index that grows has used the first.
    #[inline]
    pub(crate) fn part(self) -> u8 {
        (self.0 >> 16) as u8 & 0x3F
    }

    /// A byte, never 0, that is independent of the bucket: it recognises the key in a ghost table, and takes
    /// one in 255 others for it.
    #[inline]
    pub(crate) fn fingerprint(self) -> u8 {
        (self.0 as u8).max(1)
    }
}
