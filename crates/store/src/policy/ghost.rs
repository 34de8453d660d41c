//! Keys that left RAM not long ago: a new item of such a key begins in the main queue.

use std::ops::DerefMut;

use crate::index::hash::KeyHash;

/// A byte for each key, in a table that keys share: a key that left is forgotten when another one takes its
/// place. It may be empty, and remembers nothing then.
pub(crate) struct Ghost<M> {
    fingerprints: M,
}

impl<M: DerefMut<Target = [u8]>> Ghost<M> {
    pub(crate) fn new(fingerprints: M) -> Ghost<M> {
        Ghost { fingerprints }
    }

    fn place(&mut self, hash: KeyHash) -> Option<&mut u8> {
        let len = self.fingerprints.len() as u32;
        let at = (len > 0).then(|| hash.bucket(len) as usize)?;
        Some(&mut self.fingerprints[at])
    }

    /// Remembers a key that left.
    pub(crate) fn remember(&mut self, hash: KeyHash) {
        if let Some(place) = self.place(hash) {
            *place = hash.fingerprint();
        }
    }

    /// Returns whether the key left not long ago, and forgets that it did.
    pub(crate) fn recall(&mut self, hash: KeyHash) -> bool {
        match self.place(hash) {
            Some(place) if *place == hash.fingerprint() => {
                *place = 0;
                true
            }
            _ => false,
        }
    }
}
