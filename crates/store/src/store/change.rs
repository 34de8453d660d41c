//! Marks a shard as being changed, so that the next process repairs it if this one ends meanwhile.

use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;

use super::Store;
use crate::shard::Shard;

/// A locked shard whose part of the arena may look half done until this is dropped. If it is dropped by a
/// panic, the shard is marked as given up.
pub(crate) struct Change<'a> {
    shard: MutexGuard<'a, Shard>,
}

impl Store {
    /// Locks a shard to change it.
    #[inline]
    pub(crate) fn change(&self, shard: u32) -> Change<'_> {
        let mut shard = self.lock(shard);
        shard.begin_change();
        Change { shard }
    }
}

impl Deref for Change<'_> {
    type Target = Shard;
    fn deref(&self) -> &Shard {
        &self.shard
    }
}

impl DerefMut for Change<'_> {
    fn deref_mut(&mut self) -> &mut Shard {
        &mut self.shard
    }
}

impl Drop for Change<'_> {
    #[inline]
    fn drop(&mut self) {
        match std::thread::panicking() {
            false => self.shard.end_change(),
            true => self.shard.give_up(),
        }
    }
}
