//! What an event loop sees of I/O: operations, completions, the queue. Never how they are carried out.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Device, IoBuf, PAGE_BYTES, check_range, readable};

/// Memory to write from. It is owned by the operation until its completion is reaped, and may not change in
/// between: the kernel may read it at any moment of that time.
pub trait WriteSource: Send {
    /// The bytes: the same ones at each call, at an address with the device's alignment.
    fn bytes(&self) -> &[u8];
}

impl<T: AsRef<[u8]> + Send + ?Sized> WriteSource for T {
    fn bytes(&self) -> &[u8] {
        self.as_ref()
    }
}

/// One operation. `device` is the index in the list that the queue was opened with; `offset` is in the
/// device's own range, in bytes, and aligned as the device asks.
pub enum IoOp {
    /// Fill `buf` from `offset`.
    Read {
        /// Index of the device.
        device: usize,
        /// Offset in bytes.
        offset: u64,
        /// What to fill; its length is the length of the read.
        buf: IoBuf,
    },
    /// Write the first `len` bytes of `source` at `offset`.
    Write {
        /// Index of the device.
        device: usize,
        /// Offset in bytes.
        offset: u64,
        /// The bytes to write.
        source: Box<dyn WriteSource>,
        /// How many of them; at most all.
        len: usize,
    },
}

impl IoOp {
    /// Bytes to move.
    pub fn byte_len(&self) -> usize {
        match self {
            IoOp::Read { buf, .. } => buf.len(),
            IoOp::Write { len, .. } => *len,
        }
    }

    /// Index of the device, and the offset in it.
    pub fn place(&self) -> (usize, u64) {
        match self {
            IoOp::Read { device, offset, .. } | IoOp::Write { device, offset, .. } => (*device, *offset),
        }
    }

    /// Whether this is a write.
    pub fn is_write(&self) -> bool {
        matches!(self, IoOp::Write { .. })
    }

    /// The memory of this operation: where it is, and how many bytes of it there are. Only a read's may be
    /// written.
    pub(super) fn memory(&mut self) -> (*mut u8, usize) {
        match self {
            IoOp::Read { buf, .. } => (buf.as_mut_ptr(), buf.len()),
            IoOp::Write { source, .. } => {
                let bytes = source.bytes();
                (bytes.as_ptr().cast_mut(), bytes.len())
            }
        }
    }

    /// Refuses what no device can do: an unknown device, a range past the end, a source shorter than `len`,
    /// or something misaligned. Every queue asks here, because past this point a wrong offset would land in a
    /// neighbour's share of the file. Returns how many of the bytes the device has.
    pub(super) fn check(&self, device: Option<&dyn Device>, memory: (*mut u8, usize)) -> io::Result<usize> {
        let invalid = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        let (index, offset) = self.place();
        let Some(device) = device else {
            return invalid(format!("there is no device {index}"));
        };
        let (address, available) = memory;
        let (len, alignment) = (self.byte_len(), device.alignment());
        if available < len {
            return invalid(format!("a write of {len} bytes from a source of {available}"));
        }
        let aligned = |n: usize| n.is_multiple_of(alignment);
        if !aligned(address.addr()) || !aligned(len) || !offset.is_multiple_of(alignment as u64) {
            return invalid(format!(
                "{len} bytes at offset {offset}, memory {} into its page: not aligned to {alignment}",
                address.addr() % PAGE_BYTES
            ));
        }
        if self.is_write() {
            check_range(device.len(), offset, len as u64)?;
        }
        Ok(readable(device.len(), offset, len))
    }
}

impl fmt::Debug for IoOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.is_write() { "Write" } else { "Read" };
        let (device, offset) = self.place();
        write!(f, "{name}(device {device}, offset {offset}, {} bytes)", self.byte_len())
    }
}

/// An operation that is over.
#[derive(Debug)]
pub struct Completion {
    /// What the submitter called it.
    pub token: u64,
    /// The operation given back, its buffer or source with it.
    pub op: IoOp,
    /// Bytes moved in all. Of a read fewer than asked only where the device ends; of a write always all.
    /// After an error any part may have been moved.
    pub result: io::Result<usize>,
}

/// Asynchronous I/O for one event loop.
///
/// A turn of the loop: `submit` what is wanted, `flush` once, sleep on [`wake_fd`](Self::wake_fd) among the
/// sockets unless [`is_ready`](Self::is_ready), `reap`. Short and interrupted transfers are continued inside;
/// completions come in any order.
///
/// Dropping a queue returns once no operation can touch its memory any more. Operations not yet begun may be
/// dropped undone, and completions not reaped are lost.
pub trait IoQueue {
    /// Queues an operation; it may not begin before [`flush`](Self::flush). An operation that cannot be valid
    /// is accepted, and completes with `InvalidInput`.
    ///
    /// # Errors
    /// The operation itself when [`depth`](Self::depth) operations are in flight. Reap, then try again.
    fn submit(&mut self, token: u64, op: IoOp) -> Result<(), IoOp>;

    /// Starts everything submitted, with one system call or fewer. What the kernel will not take for the
    /// moment is started by a later `flush` or `reap`, and the wake-up descriptor is raised for it.
    ///
    /// # Errors
    /// Only when the queue is broken and nothing more can be done with it.
    fn flush(&mut self) -> io::Result<()>;

    /// Moves finished operations to the end of `out`, without waiting. Continued operations are flushed.
    fn reap(&mut self, out: &mut Vec<Completion>);

    /// Whether there is something to reap already, asked after `flush` and before sleeping: the descriptor
    /// may not tell of what finished before `flush` returned.
    fn is_ready(&mut self) -> bool;

    /// Becomes readable when something finishes after `flush`. See [`Wake`] for how to watch it.
    fn wake_fd(&self) -> BorrowedFd<'_>;

    /// Resets the wake-up descriptor. `reap` does it under [`Wake::Level`]; under [`Wake::Edge`] no caller needs
    /// to.
    fn clear_wake(&mut self);

    /// Operations accepted and not yet reaped.
    fn in_flight(&self) -> usize;

    /// The most operations in flight at once.
    fn depth(&self) -> usize;

    /// A buffer of `len` bytes for a read: from the queue's slab when it fits a slot and one is free (the
    /// fast path), else from the heap. Dropping it gives it back.
    ///
    /// # Panics
    /// When `len` is 0 or no multiple of [`PAGE_BYTES`].
    fn alloc(&mut self, len: usize) -> IoBuf;

    /// Flushes, then waits until at least one operation has been reaped or `timeout_ms` (-1: none) is over,
    /// for callers without an event loop. Returns at once when nothing is in flight.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    fn wait(&mut self, out: &mut Vec<Completion>, timeout_ms: i32) -> io::Result<()> {
        let before = out.len();
        self.flush()?;
        while self.in_flight() > 0 {
            self.clear_wake();
            self.reap(out);
            if out.len() > before {
                break;
            }
            self.flush()?;
            if self.is_ready() {
                continue;
            }
            let timeout = Timespec {
                tv_sec: i64::from(timeout_ms / 1000),
                tv_nsec: i64::from(timeout_ms % 1000) * 1_000_000,
            };
            let limit = (timeout_ms >= 0).then_some(&timeout);
            match poll(&mut [PollFd::from_borrowed_fd(self.wake_fd(), PollFlags::IN)], limit) {
                Ok(0) => break,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// How the wake-up descriptor is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wake {
    /// Level-triggered (plain epoll, poll, select): each `reap` clears the descriptor, at one system call.
    #[default]
    Level,
    /// Edge-triggered (`EPOLLET`, which is what mio uses): the descriptor is never cleared, which saves
    /// `reap` a system call. The loop must reap after every wake-up.
    Edge,
}

/// Sizes of a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueOptions {
    /// Most operations in flight, 1 to 4096. Default 256.
    pub depth: u32,
    /// Buffers of [`SLOT_BYTES`](super::SLOT_BYTES) in the slab; 0 means twice the depth, so that a batch
    /// can be worked on while the next one is read.
    pub slab_slots: u32,
    /// Threads of the pool, where there is one; 0 means one for each operation in flight, at most 16.
    pub threads: u32,
    /// How the wake-up descriptor is watched.
    pub wake: Wake,
}

impl Default for QueueOptions {
    fn default() -> Self {
        QueueOptions { depth: 256, slab_slots: 0, threads: 0, wake: Wake::Level }
    }
}

impl QueueOptions {
    /// The largest depth.
    pub const DEPTH_MAX: u32 = 4096;

    /// These options with every default filled in and every bound applied.
    pub(super) fn resolved(self) -> Self {
        let depth = self.depth.clamp(1, Self::DEPTH_MAX);
        QueueOptions {
            depth,
            slab_slots: if self.slab_slots == 0 { depth * 2 } else { self.slab_slots },
            threads: if self.threads == 0 { depth.min(16) } else { self.threads.min(256) },
            wake: self.wake,
        }
    }
}
