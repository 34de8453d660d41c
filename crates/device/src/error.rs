//! Why a device cannot be opened, and the remedy, for the operator. Never errors of reads or writes.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::SuperblockError;
use crate::bytes::Bytes;

/// Why a device cannot be opened. Each message names the path and the next step.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory to hold a new file is missing.
    MissingParent {
        /// The file.
        path: PathBuf,
        /// The directory.
        parent: PathBuf,
    },
    /// The process may not open the file, or not create it.
    Permission {
        /// The file.
        path: PathBuf,
    },
    /// The file system is mounted read-only, or the disk is write-protected.
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// A directory.
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// Neither a regular file nor a block device.
    NotStorage {
        /// The kind of file named.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// A new or empty file, and nothing said how large it should be.
    SizeMissing {
        /// The file.
        path: PathBuf,
    },
    /// Not enough room for four segments and the header.
    TooSmall {
        /// The file.
        path: PathBuf,
        /// Bytes of the slice asked for.
        bytes: u64,
        /// Fewest bytes of a slice.
        bytes_min: u64,
        /// Slices the size was divided into.
        share_count: u32,
    },
    /// A block device of fewer bytes than asked for.
    BeyondDevice {
        /// The device.
        path: PathBuf,
        /// Bytes asked for.
        wanted_bytes: u64,
        /// Bytes it has.
        device_bytes: u64,
    },
    /// A share that cannot be: index 0, beyond the count, or too many.
    BadShare {
        /// Index asked for.
        index: u32,
        /// Count asked for.
        count: u32,
    },
    /// Another process holds the range.
    InUse {
        /// The file.
        path: PathBuf,
        /// The share asked for: index and count.
        share: Option<(u32, u32)>,
    },
    /// The block device is mounted, or part of something else that the kernel runs.
    Claimed {
        /// The device.
        path: PathBuf,
    },
    /// The file system has no room.
    DiskFull {
        /// The file.
        path: PathBuf,
        /// Bytes that had to be allocated.
        wanted_bytes: u64,
        /// Bytes free.
        free_bytes: u64,
    },
    /// It holds something, and that is not Larder's.
    NotOurs {
        /// The file.
        path: PathBuf,
        /// Where the something is.
        what: &'static str,
    },
    /// A disk that is not Larder's yet. It may be empty; only reading all of it would tell.
    Unmarked {
        /// The disk.
        path: PathBuf,
    },
    /// It was Larder's, and is of another version or damaged.
    Superblock {
        /// The file.
        path: PathBuf,
        /// The problem.
        source: SuperblockError,
    },
    /// It is Larder's, and divided otherwise.
    OtherShare {
        /// The file.
        path: PathBuf,
        /// The share it was made for: index and count.
        found: (u32, u32),
        /// The share asked for.
        asked: (u32, u32),
    },
    /// It is Larder's, and its shares have another size.
    OtherSize {
        /// The file.
        path: PathBuf,
        /// Bytes of a share there.
        found_bytes: u64,
        /// Bytes of a share as asked for.
        asked_bytes: u64,
    },
    /// The system refused something that should work.
    Io {
        /// The file.
        path: PathBuf,
        /// The step that failed.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use OpenError::*;
        match self {
            MissingParent { path, parent } => {
                let (path, parent) = (path.display(), parent.display());
                write!(f, "cannot create {path}: the directory {parent} does not exist; create it first")
            }
            Permission { path } => {
                let path = path.display();
                write!(
                    f,
                    "permission denied: {path}; this user must be able to read and write it, \
                           and to create it if it does not exist"
                )
            }
            ReadOnly { path } => write!(f, "{} is read-only; Larder needs to write to it", path.display()),
            Directory { path } => {
                write!(f, "{0} is a directory; name a file in it, such as {0}/larder.ssd", path.display())
            }
            NotStorage { path, kind } => {
                write!(f, "{} is a {kind}; name a regular file or a block device", path.display())
            }
            SizeMissing { path } => {
                let path = path.display();
                write!(f, "{path} is new or empty: say how large it should be, as in {path}:100g")
            }
            TooSmall { path, bytes, bytes_min, share_count } => {
                write!(f, "{}: {} ", path.display(), Bytes(*bytes))?;
                if *share_count > 1 {
                    write!(f, "for each of {share_count} shares ")?;
                }
                write!(f, "is too small; the least is {} (four segments and a header)", Bytes(*bytes_min))
            }
            BeyondDevice { path, wanted_bytes, device_bytes } => {
                let (wanted, has) = (Bytes(*wanted_bytes), Bytes(*device_bytes));
                write!(
                    f,
                    "{} has {has}, fewer than the {wanted} asked for; ask for less, or name no size",
                    path.display()
                )
            }
            BadShare { index, count } => {
                write!(
                    f,
                    "there is no share {index}/{count}; shares run from 1/N to N/N, N at most {}",
                    super::file::SHARES_MAX
                )
            }
            InUse { path, share: None } => {
                write!(
                    f,
                    "{} is in use by another process; stop that one, or name another file",
                    path.display()
                )
            }
            InUse { path, share: Some((index, count)) } => {
                let path = path.display();
                write!(
                    f,
                    "share {index}/{count} of {path} is in use by another process; give each process its own"
                )
            }
            Claimed { path } => {
                let path = path.display();
                write!(
                    f,
                    "{path} is mounted, or used by another process or by the kernel (RAID, LVM, swap); \
                           free it, or name another disk"
                )
            }
            DiskFull { path, wanted_bytes, free_bytes } => {
                let (wanted, free) = (Bytes(*wanted_bytes), Bytes(*free_bytes));
                write!(
                    f,
                    "not enough room for {}: {wanted} wanted, {free} free; ask for less, or free some",
                    path.display()
                )
            }
            NotOurs { path, what } => {
                let path = path.display();
                write!(
                    f,
                    "{path} is not empty, and what it holds is not Larder's ({what}); nothing was touched. \
                           Name another, or give --ssd-format to ERASE it"
                )
            }
            Unmarked { path } => {
                let path = path.display();
                write!(
                    f,
                    "{path} is a disk without Larder's mark, and whether it is empty cannot be told; nothing \
                     was touched. Give --ssd-format to ERASE it and use it from then on"
                )
            }
            Superblock { path, source } => {
                let path = path.display();
                write!(
                    f,
                    "{path} has {source}; nothing was touched. Give --ssd-format to empty it and start afresh"
                )
            }
            OtherShare { path, found: (fi, fc), asked: (ai, ac) } => {
                let path = path.display();
                write!(
                    f,
                    "{path} was made for share {fi}/{fc}, and {ai}/{ac} was asked for; nothing was touched. \
                           Ask for the former, or give --ssd-format to empty this share and start afresh"
                )
            }
            OtherSize { path, found_bytes, asked_bytes } => {
                let (path, found, asked) = (path.display(), Bytes(*found_bytes), Bytes(*asked_bytes));
                write!(
                    f,
                    "{path} is divided into shares of {found}, and the size asked for makes shares of \
                     {asked}; nothing was touched. Give every process the same size, or stop them all and \
                     give each --ssd-format to start afresh"
                )
            }
            Io { path, doing, source } => write!(f, "{}: {doing}: {source}", path.display()),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Io { source, .. } => Some(source),
            OpenError::Superblock { source, .. } => Some(source),
            _ => None,
        }
    }
}
