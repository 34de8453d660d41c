//! A connection of its own, on which a server sends lines after one command.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use memchr::memchr;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Client;
use crate::error::{Doing, Error, Result};
use crate::pool::Connection;
use crate::wire::{LINE_BYTES_MAX, Malformed, Outbox, Request};

/// The lines that follow one command. Dropping it closes the connection, which ends the command.
#[derive(Debug)]
pub(super) struct Lines {
    connection: Connection,
    server: Arc<str>,
}

impl Client {
    /// Sends `command` to the server with this number, on a connection apart from the pool.
    pub(super) fn lines(&self, server: usize, command: &Request<'_>) -> Result<Lines> {
        let upstream = self.inner.servers.get(server).ok_or(Error::NoServers)?;
        let mut lines = Lines { connection: upstream.pool.connect()?, server: upstream.name.clone() };
        let mut outbox = Outbox::default();
        command.encode(None, &mut outbox);
        outbox.close_lines();
        while !lines.connection.has_sent(&outbox) {
            // A socket without room for one line is that of a server which takes nothing.
            let sent = lines.connection.send(&mut outbox);
            sent.map_err(|source| lines.lost(Doing::Sending, source))?;
        }
        Ok(lines)
    }
}

impl Lines {
    /// Returns the next line without its end, or none if it did not come within `wait`.
    ///
    /// # Errors
    /// The connection broke, or a line is longer than a server's may be.
    pub(super) fn next(&mut self, wait: Duration) -> Result<Option<Vec<u8>>> {
        let until = Instant::now() + wait;
        loop {
            let unused = self.connection.unused();
            if let Some(end) = memchr(b'\n', unused) {
                let line = unused.get(..end).unwrap_or_default();
                let line = line.strip_suffix(b"\r").unwrap_or(line).to_vec();
                self.connection.consume(end + 1);
                return Ok(Some(line));
            }
            if unused.len() > LINE_BYTES_MAX {
                return Err(Error::Protocol { server: self.server.clone(), source: Malformed::LineTooLong });
            }
            if !self.wait(until)? {
                return Ok(None);
            }
            match self.connection.receive(false) {
                Ok(0) => return Err(self.lost(Doing::Receiving, io::ErrorKind::UnexpectedEof.into())),
                Err(error) if is_passing(&error) => {}
                came => drop(came.map_err(|source| self.lost(Doing::Receiving, source))?),
            }
        }
    }

    /// Waits for bytes. Returns false when the time is over.
    fn wait(&self, until: Instant) -> Result<bool> {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let mut fds = [PollFd::from_borrowed_fd(self.connection.fd(), PollFlags::IN)];
        match poll(&mut fds, Some(&left)) {
            Ok(0) => Ok(false),
            // After a signal there is less left to wait; a caller that wants to stop asks for a short wait.
            Err(rustix::io::Errno::INTR) => Ok(Instant::now() < until),
            Ok(_) => Ok(true),
            Err(error) => Err(self.lost(Doing::Receiving, error.into())),
        }
    }

    /// Returns the error for a silence of `limit`.
    pub(super) fn timeout(&self, limit: Duration) -> Error {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        Error::Timeout { server: self.server.clone(), doing: Doing::Receiving, limit_ms }
    }

    /// Returns the error for a line that refuses the command.
    pub(super) fn refused(&self, line: &[u8]) -> Error {
        let line = String::from_utf8_lossy(line).into_owned();
        Error::Refused { server: self.server.clone(), line }
    }

    fn lost(&self, doing: Doing, source: io::Error) -> Error {
        Error::Lost { server: self.server.clone(), doing, source: Arc::new(source) }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Decodes a key as it is listed and watched: `%` and two hexadecimal digits for each byte that is not plain. Returns
/// none for what no server writes.
pub(super) fn uri_decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut key = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == b'%' {
            let digits = after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
            key.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after.get(2..).unwrap_or_default();
        } else {
            key.push(*byte);
        }
    }
    Some(key)
}

/// Returns the value of `name=value` in a line of such words.
pub(super) fn field<'l>(line: &'l [u8], name: &str) -> Option<&'l [u8]> {
    let value = |word: &'l [u8]| word.strip_prefix(name.as_bytes())?.strip_prefix(b"=");
    line.split(|byte| *byte == b' ').find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_decoded_as_servers_encode_them() {
        assert_eq!(uri_decode(b"a%20b%00%fF").as_deref(), Some(&b"a b\0\xff"[..]));
        assert_eq!(uri_decode(b"").as_deref(), Some(&b""[..]));
        for bad in [&b"%"[..], b"a%2", b"%zz", b"%+1"] {
            assert_eq!(uri_decode(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let line = b"key=size=1 exp=-1 cls=2 size=70";
        assert_eq!(field(line, "size"), Some(&b"70"[..]));
        assert_eq!(field(line, "key"), Some(&b"size=1"[..]));
        assert_eq!(field(line, "ize"), None);
    }
}
