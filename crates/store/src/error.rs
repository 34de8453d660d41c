//! Why a store could not be opened.

use std::fmt;

use larder_device::Bytes;

use crate::header::MadeFor;

/// Why a store could not be opened. The messages are for an operator and say what to do next.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The index and buffers that the SSD needs leave too little of the memory limit for items.
    MemoryTooSmall {
        /// The configured limit, in bytes.
        limit: u64,
        /// Of which the index, in bytes.
        index: u64,
        /// Of which other tables and write buffers, in bytes.
        other: u64,
        /// What the RAM tier needs at least, in bytes.
        ram_min: u64,
        /// The size of the SSD tier, in bytes.
        ssd: u64,
        /// The expected item size the index was computed from, in bytes.
        item: u64,
    },
    /// A limit or size is beyond what an index entry can address.
    TooLarge {
        /// The limit that was exceeded, in words.
        what: &'static str,
        /// As configured, in bytes.
        bytes: u64,
        /// The most that works, in bytes.
        max: u64,
    },
    /// The memory file holds something that no store has made.
    NotMemory,
    /// The memory file is of use with the options it was made for, which are not these.
    OtherOptions(MadeFor),
    /// The memory file's file system has too little room.
    NoRoom {
        /// How much is needed, in bytes.
        bytes: u64,
        /// What the system said.
        source: std::io::Error,
    },
    /// The memory could not be had from the system.
    Map {
        /// How much, in bytes.
        bytes: u64,
        /// What the system said.
        source: std::io::Error,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::MemoryTooSmall { limit, index, other, ram_min, ssd, item } => write!(
                f,
                "a memory limit of {} is too small: the index takes {} ({} of SSD at {item} bytes an item), \
                 tables and write buffers {}, and items in RAM need {} at least",
                Bytes(*limit),
                Bytes(*index),
                Bytes(*ssd),
                Bytes(*other),
                Bytes(*ram_min),
            ),
            OpenError::TooLarge { what, bytes, max } => {
                write!(
                    f,
                    "{what} of {} is more than the {} that can be addressed",
                    Bytes(*bytes),
                    Bytes(*max)
                )
            }
            OpenError::NotMemory => f.write_str(
                "the memory file holds something that is not a store's memory, and is left as it is: \
                 remove it, or name another",
            ),
            OpenError::OtherOptions(_) => f.write_str("the memory file was made with other options"),
            OpenError::NoRoom { bytes, source } => {
                write!(f, "no room for the {} of memory: {source}", Bytes(*bytes))
            }
            OpenError::Map { bytes, source } => write!(f, "cannot get {} of memory: {source}", Bytes(*bytes)),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Map { source, .. } | OpenError::NoRoom { source, .. } => Some(source),
            _ => None,
        }
    }
}
