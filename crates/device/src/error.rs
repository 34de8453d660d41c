//! Why a device cannot be opened, and the remedy, for the operator. Never errors of reads or writes.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::bytes::Bytes;
use crate::superblock::{SHARES_MAX, SuperblockError};

/// Why a device cannot be opened. Each message names the path and the next step.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory to hold a new file is missing.
    #[error("cannot create {path}: the directory {parent} does not exist; create it first")]
    MissingParent {
        /// The file.
        path: PathBuf,
        /// The directory.
        parent: PathBuf,
    },
    /// The process may not open the file, or not create it.
    #[error(
        "permission denied: {path}; this user must be able to read and write it, and to create it \
         if it does not exist"
    )]
    Permission {
        /// The file.
        path: PathBuf,
    },
    /// The file system is mounted read-only, or the disk is write-protected.
    #[error("{path} is read-only; Larder needs to write to it")]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// A directory.
    #[error("{path} is a directory; name a file in it, such as {path}/larder.ssd")]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// Neither a regular file nor a block device.
    #[error("{path} is a {kind}; name a regular file or a block device")]
    NotStorage {
        /// The kind of file named.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// A new or empty file, and nothing said how large it should be.
    #[error("{path} is new or empty: say how large it should be, as in {path}:100g")]
    SizeMissing {
        /// The file.
        path: PathBuf,
    },
    /// Not enough room for four segments and the header.
    #[error(
        "{path}: {} {}is too small; the least is {} (four segments and a header)",
        Bytes(*bytes),
        of_shares(*share_count),
        Bytes(*bytes_min)
    )]
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
    #[error(
        "{path} has {}, fewer than the {} asked for; ask for less, or name no size",
        Bytes(*device_bytes),
        Bytes(*wanted_bytes)
    )]
    BeyondDevice {
        /// The device.
        path: PathBuf,
        /// Bytes asked for.
        wanted_bytes: u64,
        /// Bytes it has.
        device_bytes: u64,
    },
    /// A share that cannot be: index 0, beyond the count, or too many.
    #[error("there is no share {index}/{count}; shares run from 1/N to N/N, N at most {}", SHARES_MAX)]
    BadShare {
        /// Index asked for.
        index: u32,
        /// Count asked for.
        count: u32,
    },
    /// Another process holds the range.
    #[error("{}", in_use(path, *share))]
    InUse {
        /// The file.
        path: PathBuf,
        /// The share asked for: index and count.
        share: Option<(u32, u32)>,
    },
    /// The block device is mounted, or part of something else that the kernel runs.
    #[error(
        "{path} is mounted, or used by another process or by the kernel (RAID, LVM, swap); free \
         it, or name another disk"
    )]
    Claimed {
        /// The device.
        path: PathBuf,
    },
    /// The file system has no room.
    #[error(
        "not enough room for {path}: {} wanted, {} free; ask for less, or free some",
        Bytes(*wanted_bytes),
        Bytes(*free_bytes)
    )]
    DiskFull {
        /// The file.
        path: PathBuf,
        /// Bytes that had to be allocated.
        wanted_bytes: u64,
        /// Bytes free.
        free_bytes: u64,
    },
    /// It holds something, and that is not Larder's.
    #[error(
        "{path} is not empty, and what it holds is not Larder's ({what}); nothing was touched. \
         Name another, or give --ssd-format to ERASE it"
    )]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// Where the something is.
        what: &'static str,
    },
    /// A disk that is not Larder's yet. It may be empty; only reading all of it would tell.
    #[error(
        "{path} is a disk without Larder's mark, and whether it is empty cannot be told; nothing \
         was touched. Give --ssd-format to ERASE it and use it from then on"
    )]
    Unmarked {
        /// The disk.
        path: PathBuf,
    },
    /// It was Larder's, and is of another version or damaged.
    #[error("{path} has {source}; nothing was touched. Give --ssd-format to empty it and start afresh")]
    Superblock {
        /// The file.
        path: PathBuf,
        /// The problem.
        source: SuperblockError,
    },
    /// It is Larder's, and divided otherwise.
    #[error(
        "{path} was made for share {}/{}, and {}/{} was asked for; nothing was touched. Ask for \
         the former, or give --ssd-format to empty this share and start afresh",
        found.0,
        found.1,
        asked.0,
        asked.1
    )]
    OtherShare {
        /// The file.
        path: PathBuf,
        /// The share it was made for: index and count.
        found: (u32, u32),
        /// The share asked for.
        asked: (u32, u32),
    },
    /// It is Larder's, and its shares have another size.
    #[error(
        "{path} is divided into shares of {}, and the size asked for makes shares of {}; nothing \
         was touched. Give every process the same size, or stop them all and give each \
         --ssd-format to start afresh",
        Bytes(*found_bytes),
        Bytes(*asked_bytes)
    )]
    OtherSize {
        /// The file.
        path: PathBuf,
        /// Bytes of a share there.
        found_bytes: u64,
        /// Bytes of a share as asked for.
        asked_bytes: u64,
    },
    /// The system refused something that should work.
    #[error("{path}: {doing}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The step that failed.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

fn in_use(path: &Path, share: Option<(u32, u32)>) -> String {
    let path = path.display();
    match share {
        None => format!("{path} is in use by another process; stop that one, or name another file"),
        Some((index, count)) => {
            format!("share {index}/{count} of {path} is in use by another process; give each process its own")
        }
    }
}

fn of_shares(count: u32) -> String {
    if count > 1 { format!("for each of {count} shares ") } else { String::new() }
}

/// Wraps a system error met while `doing` something.
pub(crate) fn at(path: &Path, doing: &'static str) -> impl Fn(io::Error) -> OpenError {
    let path = path.to_path_buf();
    move |source| OpenError::Io { path: path.clone(), doing, source }
}
