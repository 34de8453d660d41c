//! Makes a file that may be written to ready: blocks, header, direct I/O. Never decides whether it may.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::fs::{AtFlags, OFlags, StatxFlags};
use rustix::io::Errno;

use super::error::at;
use super::room;
use super::superblock::HEADER_BYTES;
use super::{IoBuf, OpenError, PAGE_BYTES, Superblock};

/// Gives a regular file its blocks, so that no later write finds the disk full.
pub(super) fn allocate(file: &File, path: &Path, total: u64, held_bytes: u64) -> Result<(), OpenError> {
    let meta = file.metadata().map_err(at(path, "finding its size"))?;
    let missing = total.saturating_sub(meta.blocks() * 512);
    let room = room::free_bytes(file).map_err(at(path, "finding the free room"))?;
    let free_bytes = room.unwrap_or(0);
    let full = || OpenError::DiskFull { path: path.into(), wanted_bytes: missing, free_bytes };
    // Asked first, so as not to take all room from others for a moment.
    if room.is_some_and(|room| room < missing) {
        return Err(full());
    }
    let error = match room::fallocate(file, total) {
        Ok(()) => return Ok(()),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) if held_bytes >= total => return Ok(()),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            return file.set_len(total).map_err(at(path, "setting its size"));
        }
        Err(error) => error,
    };
    if held_bytes < total {
        // The error to report is the one that led here.
        let _ = file.set_len(held_bytes);
    }
    Err(match error {
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => full(),
        error => at(path, "allocating")(error.into()),
    })
}

/// Writes the header: the superblock, and zeros over what may have been someone's boot block.
pub(super) fn mark(file: &File, start: u64, superblock: &Superblock) -> io::Result<()> {
    let mut header = vec![0; HEADER_BYTES as usize];
    header[..PAGE_BYTES].copy_from_slice(&superblock.encode());
    file.write_all_at(&header, start)?;
    file.sync_data()
}

/// Switches the page cache off, and returns the alignment that takes; `None` where it cannot be done.
pub(super) fn go_direct(file: &File, start: u64) -> Option<usize> {
    let told = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok();
    let told = told.filter(|told| told.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
    let alignment = match told {
        // 0 says that the file system has no direct I/O for this file.
        Some(told) if told.stx_dio_mem_align == 0 || told.stx_dio_offset_align == 0 => return None,
        Some(told) => told.stx_dio_mem_align.max(told.stx_dio_offset_align) as usize,
        // These accept the flag and go through memory all the same.
        None if in_memory(file) => return None,
        None => PAGE_BYTES,
    };
    if !alignment.is_power_of_two() || alignment > PAGE_BYTES {
        return None;
    }
    let flags = rustix::fs::fcntl_getfl(file).ok()?;
    rustix::fs::fcntl_setfl(file, flags | OFlags::DIRECT).ok()?;
    let mut page = IoBuf::zeroed(PAGE_BYTES);
    if file.read_at(&mut page, start).is_ok() {
        return Some(alignment);
    }
    rustix::fs::fcntl_setfl(file, flags).ok()?;
    None
}

fn in_memory(file: &File) -> bool {
    const TMPFS: u32 = 0x0102_1994;
    const RAMFS: u32 = 0x8584_58f6;
    rustix::fs::fstatfs(file).is_ok_and(|told| [TMPFS, RAMFS].contains(&(told.f_type as u32)))
}
