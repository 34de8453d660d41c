//! A file or block device, read and written directly. Never how it was found fit for use: that is `open`'s business.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::superblock::{HEADER_BYTES, new_store_id};
use super::{Device, IoBuf, Origin, StoreId, Superblock, check_range, readable, sys, wear};

/// What to open, and what may be done to it.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// A regular file, created with mode 0600 when missing, or a block device.
    pub path: PathBuf,
    /// Bytes to use, for all shares together. A regular file is allocated to this size; a larger one keeps
    /// its size, and bytes beyond it are left alone. Without it: all of an existing file or disk.
    pub size_bytes: Option<u64>,
    /// `(I, N)`: of N equal slices use the I-th, I from 1 to N. Without it: the whole, and no other process may
    /// use it.
    pub share: Option<(u32, u32)>,
    /// Erase the range if it holds anything that is not this store's.
    pub format: bool,
    /// Create missing directories above the file, with mode 0700.
    pub create_parents: bool,
    /// Bytes of a segment, a multiple of the page. Default 16 MiB.
    pub segment_bytes: u64,
}

impl FileOptions {
    /// Bytes of a segment unless something else is said.
    pub const SEGMENT_BYTES: u64 = 16 << 20;

    /// All of `path`, if it is Larder's or empty.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        FileOptions {
            path: path.into(),
            size_bytes: None,
            share: None,
            format: false,
            create_parents: false,
            segment_bytes: Self::SEGMENT_BYTES,
        }
    }
}

/// Byte ranges are locked far beyond any data as well: the last byte guards opening itself.
const LOCKABLE_BYTES: u64 = 1 << 62;

/// The bytes to lock for the use of the whole.
pub(super) fn whole_lock() -> Range<u64> {
    0..LOCKABLE_BYTES
}

pub(super) fn setup_lock() -> Range<u64> {
    LOCKABLE_BYTES..LOCKABLE_BYTES + 1
}

/// A slice of a file or block device that this process alone uses, until the value is dropped.
#[derive(Debug)]
pub struct FileDevice {
    pub(super) file: File,
    pub(super) path: PathBuf,
    /// Offset of the slice, where its superblock is.
    pub(super) start: u64,
    /// Bytes of the data behind the header.
    pub(super) len: u64,
    pub(super) alignment: usize,
    pub(super) direct: bool,
    pub(super) block: bool,
    pub(super) origin: Origin,
    pub(super) superblock: Superblock,
    pub(super) lifetime_written_bytes: u64,
    /// The kernel's promise that the disk is not mounted, for as long as it is open.
    pub(super) _claim: Option<OwnedFd>,
}

impl FileDevice {
    /// The kind of file that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether transfers bypass the page cache. Some file systems (tmpfs) cannot do that.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Whether this is a block device.
    pub fn is_block_device(&self) -> bool {
        self.block
    }

    /// The content that was found. Unless it is [`Origin::Reopened`] the range holds nothing of this store.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The superblock as it is on the device.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// The bytes written to the range over its life, as last [saved](Self::save_lifetime) before it was opened.
    pub fn lifetime_written_bytes(&self) -> u64 {
        self.lifetime_written_bytes
    }

    /// Saves the bytes written to the range over its life. They may not become fewer. The write is not synced: a
    /// power cut may leave the figure before it.
    ///
    /// # Errors
    /// The error of the device.
    pub fn save_lifetime(&self, written_bytes: u64) -> io::Result<()> {
        wear::write(&self.file, self.start, written_bytes)
    }

    /// Gives the range a new store id, so that nothing it holds is ever taken for the store's: for starting
    /// cold on a device whose index is lost.
    ///
    /// # Errors
    /// When the superblock cannot be written; the store must not use the device then.
    pub fn renew(&mut self) -> io::Result<StoreId> {
        let superblock = Superblock { store_id: new_store_id()?, ..self.superblock };
        let mut page = IoBuf::zeroed(super::PAGE_BYTES);
        page.copy_from_slice(&superblock.encode());
        self.file.write_all_at(&page, self.start)?;
        self.file.sync_data()?;
        self.superblock = superblock;
        Ok(superblock.store_id)
    }
}

impl Drop for FileDevice {
    fn drop(&mut self) {
        // Closing would do it, but the kernel may keep the file open a little longer for a ring being torn
        // down.
        let _ = sys::unlock(self.file.as_fd(), whole_lock());
    }
}

impl Device for FileDevice {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let len = readable(self.len, offset, buf.len());
        if len == 0 { Ok(0) } else { self.file.read_at(&mut buf[..len], self.base() + offset) }
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        check_range(self.len, offset, buf.len() as u64)?;
        self.file.write_at(buf, self.base() + offset)
    }

    /// Passed on to block devices. A regular file keeps its blocks: they were allocated so that a write can
    /// never find the disk full.
    fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        check_range(self.len, offset, len)?;
        if self.block && len > 0 {
            sys::discard_blocks(self.file.as_fd(), self.base() + offset, len)?;
        }
        Ok(())
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn alignment(&self) -> usize {
        self.alignment
    }

    fn raw_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn base(&self) -> u64 {
        self.start + HEADER_BYTES
    }
}
