//! Why a cache could not be opened, and the remedy.

use std::io;
use std::path::PathBuf;

/// Why a cache could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum L1Error {
    /// The name is empty, longer than 64 bytes, begins with a dot or has other bytes than letters, digits, `.`, `-`,
    /// `_`.
    #[error(
        "the cache name {0:?} is not usable: give 1 to 64 letters, digits, '.', '-' or '_', not '.' first"
    )]
    Name(String),
    /// The size is out of bounds.
    #[error("a cache of {bytes} bytes cannot be made: give at least {min} and at most {max}")]
    Size {
        /// The size asked for.
        bytes: u64,
        /// The smallest size.
        min: u64,
        /// The largest size.
        max: u64,
    },
    /// The file system has no room.
    #[error(
        "{path} needs {bytes} bytes, and its file system has not as many free ({free}): free some, give a \
         smaller size, or another directory (in a container, a larger /dev/shm)"
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// Bytes needed.
        bytes: u64,
        /// Bytes free in the file system.
        free: u64,
    },
    /// Other users could change the files in the directory.
    #[error("the directory {path} is not safe: {reason}; make one with mode 0700, or give another")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The reason.
        reason: &'static str,
    },
    /// The file is not this user's alone.
    #[error("{path} is not safe to use: {reason}; remove it, or give another name")]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: &'static str,
    },
    /// Another process keeps the directory locked for longer than opening a cache takes.
    #[error("{0} stays locked by another process that opens a cache there: end that process if it hangs")]
    Busy(PathBuf),
    /// The system reported an error.
    #[error("{path}: {error}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}
