//! Two shadows that see the same requests, and differ in their rules or in how the cache is divided.

use super::scale::Scale;
use super::{Rules, Shadow};
use crate::sample::{Event, is_sampled};
use crate::store::Geometry;

/// A cache, imagined: how it is divided and its rules.
pub(super) type Imagined = (Geometry, Rules);

/// Two shadows.
pub(super) struct Pair {
    pub shadows: [Shadow; 2],
    scale: Scale,
}

impl Pair {
    pub(super) fn new(imagined: [Imagined; 2], scale: Scale) -> Pair {
        Pair { shadows: imagined.map(|(geometry, rules)| Shadow::new(geometry, rules, scale.keys)), scale }
    }

    /// Returns one key of how many they look at.
    pub(super) fn scale(&self) -> u32 {
        self.scale.keys
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.shadows.iter().map(Shadow::memory_bytes).sum()
    }

    /// Takes a request into account, and returns which of them miss it; `None` if its key is not in the sample.
    pub(super) fn feed(&mut self, event: &Event) -> Option<[bool; 2]> {
        if !is_sampled(event.hash, self.scale.keys) {
            return None;
        }
        let misses = self.shadows.each_mut().map(|shadow| shadow.feed(event));
        let memory_bytes = || self.shadows.iter().map(Shadow::memory_bytes).sum();
        if self.scale.is_too_large(memory_bytes) {
            self.halve();
        }
        Some(misses)
    }

    /// Looks at every second key of the sample from now on, unless it is as small as it becomes.
    pub(super) fn halve(&mut self) {
        if self.scale.halve() {
            self.shadows.iter_mut().for_each(Shadow::halve);
        }
    }

    pub(super) fn flush(&mut self) {
        self.shadows.iter_mut().for_each(Shadow::flush);
    }
}
