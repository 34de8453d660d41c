//! The system calls that no safe wrapper offers: byte-range locks and block discard. Never policy.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `_IO(0x12, 119)` of `linux/fs.h`.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// What a lock call does when someone else holds a byte of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// Fails at once.
    None,
    /// Waits.
    Endless,
}

/// Locks a byte range exclusively on behalf of the open file description, until it is closed or the range is
/// unlocked. Returns false when someone else holds a byte of it.
pub(super) fn lock(fd: BorrowedFd<'_>, bytes: Range<u64>, patience: Patience) -> io::Result<bool> {
    let command = if patience == Patience::Endless { libc::F_OFD_SETLKW } else { libc::F_OFD_SETLK };
    match set_lock(fd, bytes, libc::F_WRLCK, command) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Gives a byte range back.
pub(super) fn unlock(fd: BorrowedFd<'_>, bytes: Range<u64>) -> io::Result<()> {
    set_lock(fd, bytes, libc::F_UNLCK, libc::F_OFD_SETLK)
}

fn set_lock(fd: BorrowedFd<'_>, bytes: Range<u64>, kind: i32, command: i32) -> io::Result<()> {
    let offset = |n: u64| libc::off_t::try_from(n).map_err(|_| io::ErrorKind::InvalidInput);
    // SAFETY: flock is integers throughout, for which zero is a value.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = offset(bytes.start)?;
    range.l_len = offset(bytes.end - bytes.start)?;
    loop {
        // SAFETY: the descriptor is open while borrowed; these commands read one flock, which outlives the
        // call.
        let result = unsafe { libc::fcntl(fd.as_raw_fd(), command, &raw const range) };
        if result == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Tells a block device that a range of it is no longer needed.
pub(super) fn discard_blocks(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    let range = [offset, len];
    // SAFETY: the descriptor is open while borrowed; the command reads two u64, which outlive the call.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), BLKDISCARD, range.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
