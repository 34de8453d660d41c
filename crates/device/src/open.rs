//! From a file to a device: locked, looked at, judged. Never how it was found, or how room is made for it.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::error::at;
use super::extents::Extents;
use super::file::{setup_lock, whole_lock};
use super::find::{Found, find, is_still};
use super::ownership::{Content, Slices, Source, examine};
use super::provision::{allocate, go_direct, mark};
use super::superblock::{HEADER_BYTES, SEGMENTS_MIN, SHARES_MAX, new_store_id};
use super::sys::{self, Patience};
use super::{FileDevice, FileOptions, OpenError, Origin, PAGE_BYTES, Superblock, wear};

/// Slices begin at multiples of this, so that no two share an erase block of common drives' mapping units.
const SLICE_BYTES: u64 = 1 << 20;

/// Opening is tried anew this often when the file is replaced meanwhile.
const REPLACEMENTS_MAX: u32 = 8;

/// How long to wait for a range in use: a process just killed holds it until what it had under way is over
/// and the kernel has torn its rings down.
const LINGER_STEPS: u32 = 150;
const LINGER_STEP: Duration = Duration::from_millis(20);

impl FileDevice {
    /// Opens, creates and allocates as `options` say, and locks the range for this process.
    ///
    /// Nothing is written to a range that is neither Larder's nor empty, unless `options.format` is set.
    /// After an error a file that did not exist does not exist, and one that did has the size it had.
    ///
    /// # Errors
    /// See [`OpenError`].
    ///
    /// # Panics
    /// When `options.segment_bytes` is 0 or no multiple of the page.
    pub fn open(options: &FileOptions) -> Result<Self, OpenError> {
        open(options)
    }
}

fn open(options: &FileOptions) -> Result<FileDevice, OpenError> {
    let (index, count) = options.share.unwrap_or((1, 1));
    if index == 0 || index > count || count > SHARES_MAX {
        return Err(OpenError::BadShare { index, count });
    }
    let segment_bytes = options.segment_bytes;
    assert!(
        segment_bytes > 0 && segment_bytes.is_multiple_of(PAGE_BYTES as u64),
        "no segment size: {segment_bytes}"
    );
    let path = &options.path;
    for _ in 0..REPLACEMENTS_MAX {
        let Some(found) = find(options)? else { continue };
        // One process at a time from here on: two shares that start together must not both create the file.
        sys::lock(found.file.as_fd(), setup_lock(), Patience::Endless).map_err(at(path, "locking"))?;
        if is_still(path, &found.file) {
            return found.finish(options);
        }
    }
    let source = io::Error::other("it is being replaced again and again, or is a dangling symbolic link");
    Err(at(path, "opening")(source))
}

/// What there is to know of a device beyond its file.
struct Prepared {
    slices: Slices,
    claim: Option<OwnedFd>,
    origin: Origin,
    superblock: Superblock,
    lifetime_written_bytes: u64,
    alignment: Option<usize>,
}

impl Found {
    fn finish(mut self, options: &FileOptions) -> Result<FileDevice, OpenError> {
        let path = &options.path;
        let held_bytes = self.file.seek(SeekFrom::End(0)).map_err(at(path, "finding its size"))?;
        let prepared = match self.prepare(options, held_bytes) {
            Ok(prepared) => prepared,
            Err(error) => {
                if self.created && held_bytes == 0 {
                    // Still under the lock on opening, so no other process relies on it.
                    let _ = std::fs::remove_file(path);
                }
                return Err(error);
            }
        };
        sys::unlock(self.file.as_fd(), setup_lock()).map_err(at(path, "unlocking"))?;
        let Slices { bytes, .. } = prepared.slices;
        Ok(FileDevice {
            file: self.file,
            path: path.clone(),
            start: prepared.slices.range().start,
            len: (bytes - HEADER_BYTES) / PAGE_BYTES as u64 * PAGE_BYTES as u64,
            alignment: prepared.alignment.unwrap_or(PAGE_BYTES),
            direct: prepared.alignment.is_some(),
            block: self.block,
            origin: prepared.origin,
            superblock: prepared.superblock,
            lifetime_written_bytes: prepared.lifetime_written_bytes,
            _claim: prepared.claim,
        })
    }

    fn prepare(&self, options: &FileOptions, held_bytes: u64) -> Result<Prepared, OpenError> {
        let path = &options.path;
        let slices = self.divide(options, held_bytes)?;
        let start = slices.range().start;
        lock_range(&self.file, options, slices.range())?;
        let claim = if self.block { claim(options)? } else { None };
        let content = examine(&self.file, slices, held_bytes).map_err(at(path, "reading"))?;
        let kept = judge(options, slices, content)?;
        if !self.block {
            let total = options.size_bytes.unwrap_or(held_bytes);
            allocate(&self.file, path, total, held_bytes)?;
        }
        let fresh = Superblock {
            store_id: new_store_id().map_err(at(path, "getting random bytes"))?,
            share_index: slices.index,
            share_count: slices.count,
            range_bytes: slices.bytes,
            segment_bytes: options.segment_bytes,
            created_unix_s: unix_now_s(),
        };
        let (origin, superblock) = match kept {
            Kept::Store(found) if has_shape_of(&found, &fresh) => (Origin::Reopened, found),
            Kept::Store(_) => (Origin::Reshaped, fresh),
            Kept::Nothing if self.created => (Origin::Created, fresh),
            Kept::Nothing => (Origin::Empty, fresh),
            Kept::Erased => (Origin::Formatted, fresh),
        };
        // The drive has written them, whatever becomes of the content.
        let lifetime_written_bytes = wear::read(&self.file, start);
        if origin != Origin::Reopened {
            mark(&self.file, start, &superblock).map_err(at(path, "writing the superblock"))?;
            if lifetime_written_bytes > 0 {
                wear::write(&self.file, start, lifetime_written_bytes)
                    .map_err(at(path, "writing the bytes written so far"))?;
            }
        }
        let alignment = go_direct(&self.file, start);
        Ok(Prepared { slices, claim, origin, superblock, lifetime_written_bytes, alignment })
    }

    /// Which bytes are this process's.
    fn divide(&self, options: &FileOptions, held_bytes: u64) -> Result<Slices, OpenError> {
        let path = &options.path;
        let total = match options.size_bytes {
            Some(wanted_bytes) if self.block && wanted_bytes > held_bytes => {
                return Err(OpenError::BeyondDevice {
                    path: path.clone(),
                    wanted_bytes,
                    device_bytes: held_bytes,
                });
            }
            Some(wanted) => wanted,
            None if held_bytes == 0 && !self.block => {
                return Err(OpenError::SizeMissing { path: path.clone() });
            }
            None => held_bytes,
        };
        let (index, count) = options.share.unwrap_or((1, 1));
        let bytes = slice_bytes(total, count);
        let bytes_min = HEADER_BYTES.saturating_add(SEGMENTS_MIN.saturating_mul(options.segment_bytes));
        if bytes < bytes_min {
            return Err(OpenError::TooSmall { path: path.clone(), bytes, bytes_min, share_count: count });
        }
        Ok(Slices { index, count, bytes })
    }
}

impl FileOptions {
    /// Returns the bytes of data behind the header of this process's slice of `total_bytes`.
    pub fn data_bytes(&self, total_bytes: u64) -> u64 {
        let count = self.share.map_or(1, |(_, count)| count);
        slice_bytes(total_bytes, count).saturating_sub(HEADER_BYTES)
    }

    /// Returns the bytes of a file of one process that has `data_bytes` of data behind its header.
    pub fn total_bytes(data_bytes: u64) -> u64 {
        data_bytes.next_multiple_of(PAGE_BYTES as u64) + HEADER_BYTES
    }
}

/// Returns the bytes of one of `count` equal slices.
fn slice_bytes(total_bytes: u64, count: u32) -> u64 {
    let step = if count == 1 { PAGE_BYTES as u64 } else { SLICE_BYTES };
    total_bytes / u64::from(count.max(1)) / step * step
}

fn lock_range(file: &File, options: &FileOptions, range: Range<u64>) -> Result<(), OpenError> {
    let path = &options.path;
    let bytes = if options.share.is_some() { range } else { whole_lock() };
    for _ in 0..LINGER_STEPS {
        if sys::lock(file.as_fd(), bytes.clone(), Patience::None).map_err(at(path, "locking"))? {
            return Ok(());
        }
        sleep(LINGER_STEP);
    }
    Err(OpenError::InUse { path: path.clone(), share: options.share })
}

/// Asks the kernel for the disk as a whole, which it refuses while the disk is mounted. Shares cannot each
/// have it, so for them it is only asked for.
fn claim(options: &FileOptions) -> Result<Option<OwnedFd>, OpenError> {
    let path = &options.path;
    let how = OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
    match rustix::fs::open(path, how, rustix::fs::Mode::empty()) {
        Ok(fd) => Ok(options.share.is_none().then_some(fd)),
        Err(Errno::BUSY) => Err(OpenError::Claimed { path: path.clone() }),
        Err(error) => Err(at(path, "claiming the disk")(error.into())),
    }
}

/// What stays of a range's content.
enum Kept {
    /// All of it: it is this store's.
    Store(Superblock),
    /// There was nothing.
    Nothing,
    /// What there was may be erased.
    Erased,
}

/// Whether what the range holds may be kept, and else whether it may be erased.
fn judge(options: &FileOptions, slices: Slices, content: Content) -> Result<Kept, OpenError> {
    let path = options.path.clone();
    let asked = (slices.index, slices.count);
    match content {
        Content::Ours(found) => Ok(Kept::Store(found)),
        Content::Empty => Ok(Kept::Nothing),
        _ if options.format => Ok(Kept::Erased),
        Content::Unusable(source) => Err(OpenError::Superblock { path, source }),
        Content::OtherShare(index, count) => {
            Err(OpenError::OtherShare { path, found: (index, count), asked })
        }
        Content::OtherSize(found_bytes) => {
            Err(OpenError::OtherSize { path, found_bytes, asked_bytes: slices.bytes })
        }
        Content::Foreign(what) => Err(OpenError::NotOurs { path, what }),
        Content::Unmarked => Err(OpenError::Unmarked { path }),
    }
}

/// Whether segments lie where they did.
fn has_shape_of(found: &Superblock, fresh: &Superblock) -> bool {
    (found.range_bytes, found.segment_bytes) == (fresh.range_bytes, fresh.segment_bytes)
}

fn unix_now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Source for File {
    fn extents(&self, range: Range<u64>) -> io::Result<Extents> {
        Extents::of(self, range)
    }

    fn read_padded(&self, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            match self.read_at(buf, offset) {
                Ok(0) => {
                    buf.fill(0);
                    break;
                }
                Ok(n) => {
                    buf = &mut buf[n..];
                    offset += n as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_differ() {
        assert_ne!(new_store_id().expect("random bytes"), new_store_id().expect("random bytes"));
    }
}
