//! The list of a server's keys, with what `lru_crawler metadump` tells about each item.

use std::time::Duration;

use super::Client;
use super::lines::{Lines, field, uri_decode};
use crate::error::{Error, Result};
use crate::wire::Request;

/// One item of a [`KeyList`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedKey {
    /// The key.
    pub key: Vec<u8>,
    /// When the item expires, in Unix seconds; never if there is none.
    pub expires_unix_s: Option<u64>,
    /// When it was last read or stored, in Unix seconds.
    pub accessed_unix_s: u64,
    /// Whether it has been read since it was stored.
    pub was_read: bool,
    /// The cas unique; 0 from a server that keeps none.
    pub cas: u64,
    /// The slab class; Larder has 1 for RAM and 2 for the SSD.
    pub class: u32,
    /// What the item takes, its key and header included, in bytes.
    pub bytes: u64,
}

/// The keys of one server as they are sent: an iterator that ends after the last key, or after an error. Keys that are
/// stored, deleted or moved meanwhile may be absent, and those that move may come twice.
#[derive(Debug)]
pub struct KeyList {
    /// None once the list has ended.
    lines: Option<Lines>,
    silence_max: Duration,
}

impl Client {
    /// Begins to list the keys of the server with this number. Servers list for one client at a time, and memcached
    /// waits for a client that reads slowly; so take the keys quickly.
    ///
    /// # Errors
    /// No connection can be made. That the server refuses comes as the list's first element.
    pub fn list_keys(&self, server: usize) -> Result<KeyList> {
        let lines = self.lines(server, &Request::Metadump)?;
        Ok(KeyList { lines: Some(lines), silence_max: self.options().call_timeout })
    }
}

impl Iterator for KeyList {
    type Item = Result<ListedKey>;

    fn next(&mut self) -> Option<Result<ListedKey>> {
        loop {
            let lines = self.lines.as_mut()?;
            let line = lines.next(self.silence_max);
            let line = line.and_then(|line| line.ok_or_else(|| lines.timeout(self.silence_max)));
            let item = match line {
                // memcached has sent this line first since 1.6.40.
                Ok(line) if line == b"OK" => continue,
                Ok(line) if line == b"END" => None,
                Ok(line) => Some(parse(&line).ok_or_else(|| lines.refused(&line))),
                Err(error) => Some(Err(error)),
            };
            if !matches!(item, Some(Ok(_))) {
                self.lines = None;
            }
            return item;
        }
    }
}

/// Parses `key=K exp=E la=A cas=C fetch=yes cls=N size=S`. Fields of later versions are skipped.
fn parse(line: &[u8]) -> Option<ListedKey> {
    let key = uri_decode(line.strip_prefix(b"key=")?.split(|byte| *byte == b' ').next()?)?;
    Some(ListedKey {
        key,
        expires_unix_s: match number::<i64>(line, "exp")? {
            ..=0 => None,
            seconds => Some(seconds.cast_unsigned()),
        },
        accessed_unix_s: number(line, "la")?,
        was_read: field(line, "fetch") == Some(b"yes"),
        cas: number(line, "cas").unwrap_or(0),
        class: number(line, "cls").unwrap_or(0),
        bytes: number(line, "size").unwrap_or(0),
    })
}

fn number<N: std::str::FromStr>(line: &[u8], name: &str) -> Option<N> {
    std::str::from_utf8(field(line, name)?).ok()?.parse().ok()
}

impl KeyList {
    /// Returns whether an error says that the server lists for another client; asking again later helps.
    pub fn is_busy(error: &Error) -> bool {
        matches!(error, Error::Refused { line, .. } if line.starts_with("BUSY"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_memcached_and_larder_write_it() {
        let line = b"key=a%20b exp=1795392307 la=1795392257 cas=2 fetch=yes cls=1 size=68";
        let expected = ListedKey {
            key: b"a b".to_vec(),
            expires_unix_s: Some(1_795_392_307),
            accessed_unix_s: 1_795_392_257,
            was_read: true,
            cas: 2,
            class: 1,
            bytes: 68,
        };
        assert_eq!(parse(line), Some(expected));
        let never = parse(b"key=k exp=-1 la=7 cas=2 fetch=no cls=2 size=68 flags=3").expect("it is an item");
        assert_eq!((never.expires_unix_s, never.was_read, never.class), (None, false, 2));
        for bad in
            [&b"BUSY currently processing crawler request"[..], b"ERROR", b"key=a%2 exp=1 la=1", b"key=a"]
        {
            assert_eq!(parse(bad), None);
        }
    }
}
