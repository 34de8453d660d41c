//! Traces of production caches: one form of a request, readers of the field's formats, a form of our own that
//! is read fast, and streams made up from published figures. Nothing here talks to a server.
//!
//! | format | file name | missing |
//! |---|---|---|
//! | Twitter's cache-trace | `.csv` of seven columns | time in whole seconds: see [`spread`] |
//! | CacheLib's kvcache | `.csv` with a header | time, unless it has `op_time`, which is in whole seconds |
//! | oracleGeneral of libCacheSim | `.bin`, `.oracleGeneral` | operations and expiry: all are gets |
//! | ours | `.trace` | nothing: see [`binary`] |

pub mod access;
pub mod belady;
pub mod binary;
pub mod clusters;
pub mod kvcache;
pub mod meta;
pub mod oracle;
pub mod shards;
pub mod spread;
pub mod synth;
pub mod twitter;

use crate::wire::Verb;
use crate::workload;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The operation of a request; memcached's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are the commands")]
pub enum Op {
    #[default]
    Get = 0,
    Gets = 1,
    Set = 2,
    Add = 3,
    Replace = 4,
    Append = 5,
    Prepend = 6,
    Cas = 7,
    Delete = 8,
    Incr = 9,
    Decr = 10,
}

impl Op {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Get,
        Self::Gets,
        Self::Set,
        Self::Add,
        Self::Replace,
        Self::Append,
        Self::Prepend,
        Self::Cas,
        Self::Delete,
        Self::Incr,
        Self::Decr,
    ];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        ["get", "gets", "set", "add", "replace", "append", "prepend", "cas", "delete", "incr", "decr"]
            [self as usize]
    }

    /// By its name, whatever the case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name().eq_ignore_ascii_case(name))
    }

    /// Whether it brings a value.
    pub fn stores(self) -> bool {
        matches!(self, Self::Set | Self::Add | Self::Replace | Self::Append | Self::Prepend | Self::Cas)
    }

    /// Returns the engine's verb for it: storing of any kind is a set, so that a replay fills the cache as
    /// the original did.
    pub fn verb(self) -> Verb {
        match self {
            Self::Get | Self::Gets => Verb::Get,
            Self::Delete => Verb::Delete,
            Self::Incr | Self::Decr => Verb::Incr,
            _ => Verb::Set,
        }
    }
}

/// One request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// When, from the trace's first request.
    pub time_ns: u64,
    /// Which key: its number in the trace, or the hash of its name.
    pub key: u64,
    /// The length of the key's name.
    pub key_bytes: u16,
    /// The length of the value.
    pub value_bytes: u32,
    /// Seconds to live of the item stored, by this request or because this get missed; 0 for ever.
    pub ttl_s: u32,
    /// The operation.
    pub op: Op,
}

impl From<Record> for workload::Record {
    fn from(record: Record) -> Self {
        Self {
            at_ns: record.time_ns,
            key: record.key,
            size: record.value_bytes,
            expiry_s: record.ttl_s.min(workload::trace::EXPIRY_MAX_S),
            verb: record.op.verb(),
        }
    }
}

/// A number for a key's name: 64 bits in which nearby names are far apart.
pub fn key_number(name: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for chunk in name.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = crate::random::spread(hash ^ u64::from_le_bytes(word)).wrapping_add(chunk.len() as u64);
    }
    hash
}

/// A line or a record that is none, with where it stands.
pub(crate) fn invalid(at: u64, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("record {at}: {what}"))
}

/// Requests one after the other, from a file or made up.
pub type Records = Box<dyn Iterator<Item = io::Result<Record>> + Send>;

/// The bytes of a file, unpacked while they are read if it is one of gzip or zstd.
fn unpacked(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
    Ok(match file.fill_buf()? {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(file)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::Decoder::with_buffer(file)?),
        _ => Box::new(file),
    })
}

/// Opens a trace, told apart by its beginning and then by its name; `seed` decides where requests lie within
/// a second when the format knows whole seconds only.
///
/// # Errors
/// The file cannot be read or is of no known form.
pub fn open(path: &Path, seed: u64) -> io::Result<Records> {
    let mut file = unpacked(path)?;
    let mut start = [0; 512];
    let mut length = 0;
    while length < start.len() {
        match file.read(&mut start[length..])? {
            0 => break,
            more => length += more,
        }
    }
    let start = &start[..length];
    let whole = BufReader::with_capacity(1 << 20, unpacked(path)?);
    let is_text =
        !start.is_empty() && start.iter().all(|b| matches!(b, b'\t' | b'\n' | b'\r' | 32..=126 | 128..));
    Ok(if start.starts_with(&binary::MAGIC) {
        Box::new(binary::Reader::new(whole)?)
    } else if is_text && start.starts_with(b"key,") {
        let reader = kvcache::Reader::new(whole)?;
        if reader.has_times() { Box::new(spread::Spread::new(reader, seed)) } else { Box::new(reader) }
    } else if is_text {
        Box::new(spread::Spread::new(twitter::Reader::new(whole), seed))
    } else {
        Box::new(spread::Spread::new(oracle::Reader::new(whole), seed))
    })
}
