//! What the store asks its caller to read, and how the bytes come back.

use crate::index::entry::Entry;
use crate::ssd::PAGE_BYTES;
use crate::ssd::log::PageRead;
use crate::tiers::Tiers;

/// What of an item an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Its header and key.
    Header,
    /// Its value too.
    Value,
}

/// A read of at most so many bytes brings the value even if only the header is needed: it takes a device next to
/// no longer than one page, and other items of the page share it.
const WHOLE_BYTES_MAX: usize = 2 * PAGE_BYTES;

/// One read of the SSD for the caller to perform; then call the same operation again with the bytes read.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    pub(crate) entry: Entry,
    pub(crate) read: PageRead,
    /// What it brings of the item.
    pub(crate) brings: Needs,
    /// The flush epoch when the read was planned.
    pub(crate) epoch: u32,
}

impl ReadPlan {
    /// Plans to read what is needed of the record that `read` covers: header and key lie in its first page.
    pub(crate) fn new(entry: Entry, mut read: PageRead, needs: Needs, epoch: u32) -> ReadPlan {
        let brings = if read.bytes > WHOLE_BYTES_MAX { needs } else { Needs::Value };
        if brings == Needs::Header {
            read.bytes = PAGE_BYTES;
        }
        ReadPlan { entry, read, brings, epoch }
    }

    /// Whether it reads all that the operation needs.
    pub(crate) fn serves(&self, needs: Needs) -> bool {
        needs == Needs::Header || self.brings == Needs::Value
    }

    /// Whether this is the read for what `entry` means now. An entry names only the last bits of its
    /// segment's generation: one that looks the same long after may mean a later filling.
    pub(crate) fn is_of(&self, tiers: &Tiers, entry: Entry) -> bool {
        entry.same_place(self.entry)
            && tiers.log.table.generation(self.read.id.segment) == self.read.id.generation
    }

    /// Which of the store's devices.
    pub fn device(&self) -> usize {
        self.read.device as usize
    }

    /// Where, in bytes; a multiple of 4096.
    pub fn offset(&self) -> u64 {
        self.read.offset
    }

    /// How much, in bytes; a multiple of 4096. A device may answer with less at its very end.
    pub fn bytes(&self) -> usize {
        self.read.bytes
    }
}

/// The outcome of a [`ReadPlan`].
#[derive(Clone, Copy)]
pub struct Loaded<'a> {
    /// The read that was planned.
    pub plan: &'a ReadPlan,
    /// What the device gave; `None` when the read failed.
    pub bytes: Option<&'a [u8]>,
}
