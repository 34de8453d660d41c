//! Labels of a shadow's items, by which the items are accounted for: what is held and written under each.

use super::items::Place;
use super::prefixes::Parts;
use super::{Shadow, mixed, tag_of};
use crate::index::hash::KeyHash;

/// An item of a shadow, to be accounted for.
pub(super) struct Held {
    pub tag: u32,
    pub label: u16,
    pub bytes: u32,
    pub is_in_ram: bool,
}

impl Shadow {
    /// Returns the bytes of RAM that are emptied at once, of all keys.
    pub(super) fn emptied_bytes(&self) -> f64 {
        self.segment_bytes() as f64 * f64::from(self.scale)
    }

    /// Returns how many segments its SSD has.
    pub(super) fn ssd_segments(&self) -> usize {
        self.log.segments()
    }

    /// Returns the tag of a key's item.
    pub(super) fn tag(&self, hash: KeyHash) -> u32 {
        tag_of(hash, mixed(hash), self.first_scale)
    }

    /// Accounts for an item under a label from now on, if it is there.
    pub(super) fn label(&mut self, tag: u32, label: u16) {
        if let Some(item) = self.items.get_mut(tag) {
            item.label = label;
        }
    }

    /// Gives all items other labels.
    pub(super) fn relabel(&mut self, label_of: impl Fn(u16) -> u16) {
        self.items.iter_mut().for_each(|item| item.label = label_of(item.label));
    }

    /// Returns the bytes that were written to the SSD, not multiplied by the scale, by labels below `labels`, to be
    /// taken. They are counted from the first call on.
    pub(super) fn written_by_label(&mut self, labels: usize) -> &mut [Parts] {
        self.log.written_by_label.resize(labels, Parts::default());
        &mut self.log.written_by_label
    }

    /// Returns all items, also those that have expired and take room until they are removed.
    pub(super) fn held(&self) -> impl Iterator<Item = Held> {
        self.items.iter().map(|item| Held {
            tag: item.tag(),
            label: item.label,
            bytes: item.bytes,
            is_in_ram: matches!(item.place(), Place::Ram { .. }),
        })
    }
}
