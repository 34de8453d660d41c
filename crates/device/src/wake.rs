//! The descriptor that wakes an event loop. Never what it is woken for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

/// A non-blocking eventfd.
#[derive(Debug)]
pub(super) struct WakeFd(OwnedFd);

impl WakeFd {
    pub(super) fn new() -> io::Result<Self> {
        Ok(WakeFd(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Makes the descriptor readable.
    pub(super) fn raise(&self) {
        // The one failure possible is a full counter, and a full counter is readable.
        while let Err(Errno::INTR) = rustix::io::write(&self.0, &1u64.to_ne_bytes()) {}
    }

    /// Makes the descriptor unreadable until the next `raise`.
    pub(super) fn clear(&self) {
        let mut count = [0u8; 8];
        // The one failure possible is that it was clear already.
        while let Err(Errno::INTR) = rustix::io::read(&self.0, &mut count) {}
    }
}

impl AsFd for WakeFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
