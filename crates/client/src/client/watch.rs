//! What a server does, as its command `watch` shows it.

use std::time::Duration;

use super::Client;
use super::lines::{Lines, field, uri_decode};
use crate::error::{Error, Result};
use crate::wire::Request;

/// The most bytes of the words of a `watch`.
const CLASSES_BYTES_MAX: usize = 200;

/// The lines that a server shows to one watcher, until it is dropped.
#[derive(Debug)]
pub struct Watch {
    lines: Lines,
}

/// One line of a [`Watch`], such as `ts=1.2 gid=1 type=item_get key=k status=found cfd=20`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchLine(Vec<u8>);

impl Client {
    /// Watches the server with this number. `classes` are words such as `fetchers mutations`.
    ///
    /// # Errors
    /// The words are no such words, or no connection can be made. That the server refuses comes with the first line.
    pub fn watch(&self, server: usize, classes: &str) -> Result<Watch> {
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte == b' ';
        if classes.len() > CLASSES_BYTES_MAX || !classes.bytes().all(is_word) {
            return Err(Error::Argument(classes.chars().take(CLASSES_BYTES_MAX).collect()));
        }
        Ok(Watch { lines: self.lines(server, &Request::Watch(classes))? })
    }
}

impl Watch {
    /// Returns the next line, or none if none came within `wait`.
    ///
    /// # Errors
    /// The connection broke, or the server refuses to be watched.
    pub fn next(&mut self, wait: Duration) -> Result<Option<WatchLine>> {
        loop {
            match self.lines.next(wait)? {
                None => return Ok(None),
                Some(line) if line == b"OK" => {}
                Some(line) if line.starts_with(b"ts=") || line.starts_with(b"skipped=") => {
                    return Ok(Some(WatchLine(line)));
                }
                Some(line) => return Err(self.lines.refused(&line)),
            }
        }
    }
}

impl WatchLine {
    /// Returns the text behind `name=`.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        field(&self.0, name)
    }

    /// Returns the key that the line is about.
    pub fn key(&self) -> Option<Vec<u8>> {
        uri_decode(self.field("key")?)
    }

    /// Returns how many lines the server left out before this one, because they came faster than they were taken.
    pub fn skipped(&self) -> u64 {
        let text = self.field("skipped").and_then(|digits| std::str::from_utf8(digits).ok());
        text.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_its_fields() {
        let line =
            WatchLine(b"ts=1.2 gid=3 type=item_get key=a%20b status=not_found clsid=0 cfd=26".to_vec());
        assert_eq!(line.key().as_deref(), Some(&b"a b"[..]));
        assert_eq!(line.field("cfd"), Some(&b"26"[..]));
        assert_eq!(line.skipped(), 0);
        assert_eq!(WatchLine(b"skipped=12".to_vec()).skipped(), 12);
    }
}
