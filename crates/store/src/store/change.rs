//! A shard while it changes: whoever comes after a process that ended meanwhile can tell.

use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;

use super::Store;
use crate::shard::Shard;

/// A locked shard whose part of the arena may look half done until this is dropped. If it is dropped by a
/// panic, that is said for good.
pub(crate) struct Change<'a> {
    shard: MutexGuard<'a, Shard>,
    was_torn: bool,
}

impl Store {
    /// Locks a shard to change it.
    #[inline]
    pub(crate) fn change(&self, shard: u32) -> Change<'_> {
        let mut shard = self.lock(shard);
        let was_torn = shard.begin_change();
        Change { shard, was_torn }
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
        if !self.was_torn && !std::thread::panicking() {
            self.shard.end_change();
        }
    }
}
