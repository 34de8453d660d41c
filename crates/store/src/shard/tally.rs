//! Counts of a shard's items in RAM, by queue, with those apart that a flush made invisible.
//!
//! A flush visits no shard. The first change or look after it finds the epoch risen and moves all counts to the
//! flushed side, since everything counted so far is of an earlier epoch.

use crate::policy::s3fifo::RamQueue;
use crate::record::RecordHeader;

/// Items and bytes of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub items: u64,
    pub bytes: u64,
}

impl Counts {
    fn add(&mut self, header: &RecordHeader) {
        self.items += 1;
        self.bytes += header.bytes() as u64;
    }

    fn take(&mut self, header: &RecordHeader) {
        self.items -= 1;
        self.bytes -= header.bytes() as u64;
    }
}

/// A shard's counts, by [`RamQueue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    epoch: u32,
    visible: [Counts; 2],
    flushed: [Counts; 2],
}

impl Tally {
    /// Moves everything to the flushed side if the epoch has risen.
    fn reach(&mut self, epoch: u32) {
        if self.epoch == epoch {
            return;
        }
        self.epoch = epoch;
        for (flushed, visible) in self.flushed.iter_mut().zip(&mut self.visible) {
            flushed.items += visible.items;
            flushed.bytes += visible.bytes;
            *visible = Counts::default();
        }
    }

    fn side(&mut self, queue: RamQueue, header: &RecordHeader, epoch: u32) -> &mut Counts {
        self.reach(epoch);
        let side = if header.epoch < epoch { &mut self.flushed } else { &mut self.visible };
        &mut side[queue as usize]
    }

    /// Counts a record that was added.
    #[inline]
    pub(crate) fn add(&mut self, queue: RamQueue, header: &RecordHeader, epoch: u32) {
        self.side(queue, header, epoch).add(header);
    }

    /// Discounts a record that is removed.
    #[inline]
    pub(crate) fn take(&mut self, queue: RamQueue, header: &RecordHeader, epoch: u32) {
        self.side(queue, header, epoch).take(header);
    }

    /// Returns what a client can see of a queue.
    pub(crate) fn visible(&self, queue: RamQueue, epoch: u32) -> Counts {
        if self.epoch == epoch { self.visible[queue as usize] } else { Counts::default() }
    }

    /// Returns all counts as they are at `epoch`, to compare.
    pub(crate) fn at(&self, epoch: u32) -> Tally {
        let mut tally = self.clone();
        tally.reach(epoch);
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_moves_all_counts_and_what_comes_later_is_visible() {
        let header = |epoch| RecordHeader { epoch, value_len: 100, key_len: 3, ..RecordHeader::default() };
        let bytes = header(1).bytes() as u64;
        let mut tally = Tally::default();
        tally.add(RamQueue::Small, &header(1), 1);
        tally.add(RamQueue::Main, &header(1), 1);
        assert_eq!(tally.visible(RamQueue::Small, 1), Counts { items: 1, bytes });
        assert_eq!(tally.visible(RamQueue::Small, 2), Counts::default(), "flushed, and nothing was visited");
        tally.add(RamQueue::Small, &header(2), 2);
        tally.add(RamQueue::Small, &header(1), 2);
        tally.take(RamQueue::Small, &header(1), 2);
        assert_eq!(tally.visible(RamQueue::Small, 2), Counts { items: 1, bytes });
        assert_eq!(tally.visible(RamQueue::Main, 2), Counts::default());
        tally.take(RamQueue::Main, &header(1), 2);
        tally.take(RamQueue::Small, &header(1), 2);
        tally.take(RamQueue::Small, &header(2), 2);
        assert_eq!(tally, Tally { epoch: 2, ..Tally::default() });
    }
}
