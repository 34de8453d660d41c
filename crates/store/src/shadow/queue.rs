//! A queue of a shadow's RAM: the records of items in the order in which they were appended, dead ones included.

use std::collections::VecDeque;

use super::items::POSITIONS;

/// A record: whose, and the bytes that it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub tag: u32,
    pub bytes: u32,
}

/// A queue, oldest record first.
#[derive(Default)]
pub(super) struct Queue {
    records: VecDeque<Record>,
    /// The position of the first record.
    first: u32,
    bytes: u64,
}

impl Queue {
    /// Returns the bytes of all records.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the memory that the queue takes, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.records.capacity() * size_of::<Record>()
    }

    /// Appends a record and returns its position.
    pub(super) fn push(&mut self, record: Record) -> u32 {
        self.bytes += u64::from(record.bytes);
        self.records.push_back(record);
        self.first.wrapping_add(self.records.len() as u32 - 1) % POSITIONS
    }

    /// Returns the first record and its position.
    pub(super) fn front(&self) -> Option<(Record, u32)> {
        self.records.front().map(|record| (*record, self.first))
    }

    /// Takes the first record and its position.
    pub(super) fn pop(&mut self) -> Option<(Record, u32)> {
        let record = self.records.pop_front()?;
        self.bytes -= u64::from(record.bytes);
        let position = self.first;
        self.first = (self.first + 1) % POSITIONS;
        if self.records.len() * 4 < self.records.capacity() {
            self.records.shrink_to(self.records.len() * 2);
        }
        Some((record, position))
    }
}
