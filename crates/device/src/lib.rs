//! Block devices for an SSD tier (files, disks, memory, and any of these with faults), the queues that reach
//! them, and whose they are. It knows nothing of what the bytes mean.
//!
//! Two axes, so that one test runs over each pair:
//!
//! ```text
//!                 IoQueue (asynchronous, one an event loop)
//!            UringQueue            PoolQueue
//!                 |                    |
//!                 |      Device (blocking, positional; where faults live)
//!                 |     /       |              \
//!              FileDevice   MemoryDevice   FaultDevice<D>
//! ```
//!
//! An io_uring goes to a device's descriptor directly and so needs a [`FileDevice`]; the thread pool calls
//! the trait and serves all three.

#![warn(clippy::missing_errors_doc)]

mod buffer;
mod bytes;
mod error;
mod extents;
mod fault;
mod fault_plan;
mod file;
mod find;
mod memory;
mod open;
mod ownership;
mod pool;
mod provision;
mod queue;
mod room;
mod select;
mod superblock;
mod sys;
mod transfer;
mod uring;
mod wake;
mod wear;

use std::io;
use std::os::fd::BorrowedFd;

pub use buffer::{BufferSlab, IoBuf, SLOT_BYTES};
pub use bytes::Bytes;
pub use error::OpenError;
pub use extents::Extents;
pub use fault::FaultDevice;
pub use fault_plan::{Fault, FaultCounts, FaultRule, OpKind, When};
pub use file::{FileDevice, FileOptions};
pub use memory::MemoryDevice;
pub use ownership::Origin;
pub use pool::PoolQueue;
pub use queue::{Completion, IoOp, IoQueue, QueueOptions, Wake, WriteSource};
pub use room::{allocate, anonymous_file, free_bytes};
pub use select::{IoKind, OpenedQueue, UringUnavailable, choose, open_queue, probe_uring};
pub use superblock::{StoreId, Superblock, SuperblockError};
pub use uring::UringQueue;

/// Bytes of a page: the unit every [`IoBuf`] is a multiple of and aligned to, and the largest alignment a
/// device may ask for.
pub const PAGE_BYTES: usize = 4096;

/// A block store: file, block device, memory, or one of these with faults.
///
/// Calls block. They may be made from several threads at once; two that overlap in range leave either's
/// bytes.
#[expect(clippy::len_without_is_empty, reason = "no device is without a byte")]
pub trait Device: Send + Sync {
    /// Reads into `buf` from `offset`, both in the device's own range. Returns the bytes read, which may be
    /// fewer than asked; 0 at or past the end, or for an empty `buf`.
    ///
    /// `offset`, `buf.len()` and the address of `buf` are multiples of [`alignment`](Self::alignment).
    ///
    /// # Errors
    /// The error that the device reports.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes `buf` at `offset`. Returns the bytes written, which may be fewer than asked. Aligned like
    /// [`read_at`](Self::read_at).
    ///
    /// # Errors
    /// The error that the device reports. [`io::ErrorKind::InvalidInput`] for a range that reaches past the end;
    /// nothing is written then.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize>;

    /// Advises that the bytes of a range are no longer needed. A later read of them may return any bytes. A device
    /// may do nothing.
    ///
    /// # Errors
    /// The error that the device reports. [`io::ErrorKind::InvalidInput`] for a range that reaches past the end.
    fn discard(&self, offset: u64, len: u64) -> io::Result<()>;

    /// Usable bytes, a multiple of [`PAGE_BYTES`]. Constant for the device's life.
    fn len(&self) -> u64;

    /// The alignment in bytes that offsets, lengths and memory must have: a power of two, at most
    /// [`PAGE_BYTES`].
    fn alignment(&self) -> usize;

    /// The descriptor behind the device for callers that submit to the kernel themselves; `None` when every
    /// operation has to go through this trait. It stays open, and the same, for the device's life.
    fn raw_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Where in the descriptor the device's offset 0 lies, in bytes. 0 without a descriptor.
    fn base(&self) -> u64 {
        0
    }
}

impl<D: Device + ?Sized> Device for std::sync::Arc<D> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        (**self).write_at(buf, offset)
    }

    fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        (**self).discard(offset, len)
    }

    fn len(&self) -> u64 {
        (**self).len()
    }

    fn alignment(&self) -> usize {
        (**self).alignment()
    }

    fn raw_fd(&self) -> Option<BorrowedFd<'_>> {
        (**self).raw_fd()
    }

    fn base(&self) -> u64 {
        (**self).base()
    }
}

/// How many of `want` bytes at `offset` lie inside a device of `len` bytes.
fn readable(len: u64, offset: u64, want: usize) -> usize {
    let left = len.saturating_sub(offset);
    usize::try_from(left).map_or(want, |left| want.min(left))
}

/// Refuses a range that reaches past a device of `len` bytes.
fn check_range(len: u64, offset: u64, want: u64) -> io::Result<()> {
    match offset.checked_add(want) {
        Some(end) if end <= len => Ok(()),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{want} bytes at offset {offset} reach past the device's {len} bytes"),
        )),
    }
}
