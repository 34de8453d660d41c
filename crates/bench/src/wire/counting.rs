//! Requests for one counter of a memcached server, which is created when it is absent. [`super::Decoder`]
//! reads the replies, but for that of [`Counting::version`].

use super::{Garbage, Protocol, binary, line, meta, text};
use crate::workload::keys::Names;

/// Writes requests for one counter.
#[derive(Clone, Debug)]
pub struct Counting {
    protocol: Protocol,
    name: Names,
}

impl Counting {
    /// Returns the requests for the counter `name` in one of memcached's protocols.
    pub fn new(protocol: Protocol, name: &str) -> Self {
        debug_assert!(protocol != Protocol::Resp2, "redis has a driver");
        Self { protocol, name: Names::one(name) }
    }

    /// Adds 1. An absent counter becomes 1, except in the text protocol, where that is a miss and
    /// [`Self::create`] has to follow.
    pub fn increment(&self, out: &mut Vec<u8>) {
        match self.protocol {
            Protocol::Binary => binary::incr_or_create(out, &self.name),
            Protocol::Meta => meta::incr_or_create(out, &self.name),
            Protocol::Text | Protocol::Resp2 => text::incr(out, &self.name, 0),
        }
    }

    /// Creates the counter at 1 unless it exists (`Verb::Set`).
    pub fn create(&self, out: &mut Vec<u8>) {
        text::store(out, "add", &self.name, "1");
    }

    /// Overwrites the counter, in the text protocol (`Verb::Set`).
    pub fn set(&self, out: &mut Vec<u8>, value: u64) {
        text::store(out, "set", &self.name, &value.to_string());
    }

    /// Reads the counter (`Verb::Get`).
    pub fn get(&self, out: &mut Vec<u8>) {
        match self.protocol {
            Protocol::Binary => binary::get(out, &self.name, 0),
            Protocol::Meta => meta::get(out, &self.name, 0),
            Protocol::Text | Protocol::Resp2 => text::get(out, &self.name, &[0]),
        }
    }

    /// Removes the counter (`Verb::Delete`).
    pub fn delete(&self, out: &mut Vec<u8>) {
        match self.protocol {
            Protocol::Binary => binary::delete(out, &self.name, 0),
            Protocol::Meta => meta::delete(out, &self.name, 0),
            Protocol::Text | Protocol::Resp2 => text::delete(out, &self.name, 0),
        }
    }

    /// Asks for the server's version; [`Self::read_version`] reads the reply.
    pub fn version(&self, out: &mut Vec<u8>) {
        match self.protocol {
            Protocol::Binary => binary::version(out),
            _ => out.extend_from_slice(b"version\r\n"),
        }
    }

    /// Returns the version from the reply in `input`, if all of it is there.
    ///
    /// # Errors
    /// It is not a reply to a request for a version.
    pub fn read_version(&self, input: &[u8]) -> Result<Option<String>, Garbage> {
        let version = match self.protocol {
            Protocol::Binary => binary::read_version(input)?,
            _ => match line(input)? {
                None => None,
                Some((line, _)) => match line.strip_prefix(b"VERSION ") {
                    Some(version) => Some(version),
                    None => return Err(Garbage::new("no version of a memcached", input)),
                },
            },
        };
        Ok(version.map(|version| String::from_utf8_lossy(version).into_owned()))
    }
}
