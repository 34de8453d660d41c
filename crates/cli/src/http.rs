//! The way to a daemon's `--http`, which shows figures to programs.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::connect::One;
use crate::exit::{Failure, Outcome};

/// The port of `--http` where an address has none.
const PORT_DEFAULT: u16 = 9150;
const TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes that an answer may have; a daemon's have some tens of thousands.
const ANSWER_BYTES_MAX: u64 = 8 << 20;

/// Where a daemon serves HTTP, if it does.
#[derive(Clone, Debug, Args)]
pub struct HttpSource {
    /// Ask over the daemon's --http, HOST[:PORT] or unix:PATH, instead of over its port
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,
    /// The file with the token of its --http-token-file
    #[arg(long, value_name = "FILE", requires = "http")]
    http_token_file: Option<PathBuf>,
}

impl HttpSource {
    /// Returns the way to HTTP if there is to be no other; `None` without `--http`.
    ///
    /// # Errors
    /// There is `--http` and `--server`.
    pub fn alone(&self, one: &One) -> Outcome<Option<&HttpSource>> {
        match (&self.http, &one.server) {
            (Some(_), Some(_)) => Err(Failure::Usage(
                "--server and --http are two ways to ask; leave one of them out".to_string(),
            )),
            (http, _) => Ok(http.as_ref().map(|_| self)),
        }
    }

    /// Returns whether there is `--http`.
    pub fn is_given(&self) -> bool {
        self.http.is_some()
    }

    /// Returns the address; `None` without `--http`.
    pub fn address(&self) -> Option<&str> {
        self.http.as_deref()
    }

    /// Asks for something that is in JSON.
    ///
    /// # Errors
    /// There is no `--http`, the daemon cannot be asked, or it answers something else.
    pub fn json<T: DeserializeOwned>(&self, path: &str) -> Outcome<T> {
        let text = self.text(path)?;
        serde_json::from_str(&text)
            .map_err(|error| self.failed(&format!("{path} is not as expected: {error}")))
    }

    /// Asks for a text.
    ///
    /// # Errors
    /// There is no `--http`, or the daemon cannot be asked.
    pub fn text(&self, path: &str) -> Outcome<String> {
        let Some(address) = &self.http else {
            return Err(Failure::Usage("give --http ADDRESS, where the daemon serves HTTP".to_string()));
        };
        let token = self.http_token_file.as_ref().map(|path| {
            let token = std::fs::read_to_string(path);
            token.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))
        });
        let answer = get(address, path, token.transpose()?.as_deref());
        let answer = answer.map_err(|error| self.failed(&error.to_string()))?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.lines().next().unwrap_or_default();
        match status.split(' ').nth(1) {
            Some("200") => Ok(body.to_string()),
            Some("401" | "403") => Err(self.failed(&format!(
                "it answers {status:?}; give --http-token-file FILE with the token that the daemon has"
            ))),
            _ => Err(self.failed(&format!("it answers {status:?} to {path}"))),
        }
    }

    fn failed(&self, problem: &str) -> Failure {
        Failure::Failed(format!("--http {}: {problem}", self.http.as_deref().unwrap_or_default()))
    }
}

/// Returns a member of an object as the line of `stats` shows it: a string without its quotes.
pub fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// Returns the answer to a request, with its head.
fn get(address: &str, path: &str, token: Option<&str>) -> std::io::Result<String> {
    let authorization =
        token.map(|token| format!("Authorization: Bearer {}\r\n", token.trim())).unwrap_or_default();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}Connection: close\r\n\r\n");
    match address.strip_prefix("unix:") {
        Some(path) => {
            let socket = UnixStream::connect(path)?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            exchange(socket, &request)
        }
        None => {
            let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
            let address = if has_port { address.to_string() } else { format!("{address}:{PORT_DEFAULT}") };
            let none = || std::io::Error::new(std::io::ErrorKind::NotFound, "the host has no address");
            let address = address.to_socket_addrs()?.next().ok_or_else(none)?;
            let socket = TcpStream::connect_timeout(&address, TIMEOUT)?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            exchange(socket, &request)
        }
    }
}

fn exchange(mut socket: impl Read + Write, request: &str) -> std::io::Result<String> {
    socket.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    socket.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
