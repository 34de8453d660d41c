//! Authentication of a new connection, before anything else is sent: by a `set` whose value is user and password.

use std::io;
use std::time::{Duration, Instant};

use memchr::memchr;

use super::Connection;
use crate::login::Login;
use crate::wire::{LINE_BYTES_MAX, Outbox, Request};

/// How an authentication that was answered ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LoggedIn {
    /// The server accepted the login, or asks for none.
    Yes,
    /// The server's line that refuses it.
    No(String),
}

/// Authenticates, within `limit` altogether. First asks whether the server wants a login at all: one without users
/// would store the password as an item.
///
/// # Errors
/// When the connection breaks, or the answer takes too long.
pub(super) fn log_in(connection: &mut Connection, login: &Login, limit: Duration) -> io::Result<LoggedIn> {
    let until = Instant::now() + limit;
    let answer = exchange(connection, &Request::Version, until)?;
    if answer.starts_with("VERSION ") {
        return Ok(LoggedIn::Yes);
    }
    if answer != "CLIENT_ERROR unauthenticated" {
        return Ok(LoggedIn::No(answer));
    }
    let answer = exchange(connection, &Request::Login(login), until)?;
    Ok(if answer == "STORED" { LoggedIn::Yes } else { LoggedIn::No(answer) })
}

/// Sends a request that fits the socket's buffer, and returns the line that answers it.
fn exchange(connection: &mut Connection, request: &Request<'_>, until: Instant) -> io::Result<String> {
    let mut out = Outbox::default();
    request.encode(None, &mut out);
    out.close_lines();
    while !connection.has_sent(&out) {
        match connection.send(&mut out) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            sent => drop(sent?),
        }
    }
    loop {
        if let Some(end) = memchr(b'\n', connection.unused()) {
            let line = connection.unused().get(..end).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let text = String::from_utf8_lossy(line).into_owned();
            connection.consume(end + 1);
            return match connection.unused() {
                [] => Ok(text),
                _ => Err(io::Error::new(io::ErrorKind::InvalidData, "more than was asked for")),
            };
        }
        if connection.unused().len() > LINE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line without an end"));
        }
        if Instant::now() >= until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match connection.receive(true) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
