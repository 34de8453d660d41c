//! Pages on their way to the device: jobs to perform, the memory they hold, and the place of a large record.

use std::sync::Arc;

use larder_device::IoBuf;

use super::write_buffer::WriteBuffer;
use crate::index::entry::{Entry, SsdPlace};
use crate::index::hash::KeyHash;
use crate::ram::pool::Pin;

/// Pages on their way to the device.
#[derive(Clone)]
pub(super) struct Work {
    pub(super) id: u64,
    pub(super) segment: u32,
    pub(super) generation: u32,
    pub(super) first_page: u32,
    pub(super) bytes: usize,
    pub(super) source: WriteSource,
}

/// Memory that is being written; it stays as it is until every clone is gone.
#[derive(Clone)]
pub(super) enum WriteSource {
    WriteBuffer(Arc<WriteBuffer>),
    Large(Arc<Pin>, u32),
    /// Bytes of a copy from this offset on.
    Copy(Arc<IoBuf>, usize),
}

/// A record that is being written from where it lies, in several writes.
pub(super) struct Large {
    pub(super) id: u64,
    pub(super) parts_left: u32,
    pub(super) failed: bool,
    pub(super) demotion: Demotion,
}

/// A record of which every part has been written: its index entry may now move, if it still is `from`.
pub(crate) struct Demotion {
    pub hash: KeyHash,
    pub from: Entry,
    /// Its place on the SSD; `None` if a part of it could not be written.
    pub to: Option<SsdPlace>,
    /// Of a record in RAM: until the entry has moved, the memory under `from` must not become another record.
    /// Its copy on its way is the only hold on a record that was read back from the SSD.
    pub(super) pin: Option<Arc<Pin>>,
    /// Bytes that are written.
    pub(super) bytes: usize,
}

/// One write for the caller to perform: all of `data()` to `offset` of `device`, then
/// [`Store::complete_write`](crate::Store::complete_write).
pub struct WriteJob {
    /// Which of the store's devices.
    pub device: usize,
    /// Where, in bytes; a multiple of 4096.
    pub offset: u64,
    pub(super) work: Work,
}

impl WriteJob {
    /// The bytes to write, at most a few MiB, a multiple of 4096 long and so aligned.
    pub fn data(&self) -> &[u8] {
        self.work.data()
    }

    /// A handle on the same bytes that keeps them valid and unchanged. Drop it before completing the job.
    pub fn share(&self) -> SharedWrite {
        SharedWrite(self.work.clone())
    }
}

/// A hold on the bytes of a [`WriteJob`], while the write is performed.
pub struct SharedWrite(Work);

impl AsRef<[u8]> for SharedWrite {
    fn as_ref(&self) -> &[u8] {
        self.0.data()
    }
}

impl Work {
    pub(super) fn data(&self) -> &[u8] {
        match &self.source {
            WriteSource::WriteBuffer(write_buffer) => &write_buffer.memory[..self.bytes],
            WriteSource::Large(pin, segment) => pin.segment(*segment).unwrap_or(&[]),
            WriteSource::Copy(copy, at) => &copy[*at..*at + self.bytes],
        }
    }
}
