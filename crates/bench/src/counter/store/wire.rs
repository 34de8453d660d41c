//! A blocking connection to a memcached server: lines and bytes, each answer within a bound of time.

use super::{Error, Failure};
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// An answer's line may have this many bytes; memcached's are far shorter.
const LINE_BYTES_MAX: u64 = 4096;

trait Duplex: Read + Write + Send {}
impl<T: Read + Write + Send> Duplex for T {}

/// A connection.
pub struct Wire {
    stream: BufReader<Box<dyn Duplex>>,
}

impl Wire {
    /// Connects to `host:port`, `host` (at memcached's port) or `unix:/path`.
    pub fn connect(address: &str, timeout: Duration) -> Result<Self, Error> {
        let stream: Box<dyn Duplex> = match address.strip_prefix("unix:") {
            Some(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))?;
                Box::new(stream)
            }
            None => Box::new(Self::tcp(address, timeout)?),
        };
        Ok(Self { stream: BufReader::with_capacity(4096, stream) })
    }

    fn tcp(address: &str, timeout: Duration) -> Result<TcpStream, Error> {
        let address = address.strip_prefix("memcached://").unwrap_or(address).trim_end_matches('/');
        let mut last = Error("the name has no address".into());
        let resolved = match address.to_socket_addrs() {
            Ok(resolved) => resolved,
            // Without a port; should the name be wrong, the second error says so.
            Err(_) => (address, 11211).to_socket_addrs()?,
        };
        for address in resolved {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(timeout))?;
                    stream.set_write_timeout(Some(timeout))?;
                    return Ok(stream);
                }
                Err(error) => last = error.into(),
            }
        }
        Err(last)
    }

    /// Sends, and returns the line that is answered, without its end.
    pub fn ask(&mut self, request: &[u8]) -> Result<String, Failure> {
        self.send(request)?;
        self.line()
    }

    /// Sends all of it.
    pub fn send(&mut self, request: &[u8]) -> Result<(), Failure> {
        self.stream.get_mut().write_all(request).map_err(lost)
    }

    /// The next line, without its end.
    pub fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        let mut bounded = (&mut self.stream).take(LINE_BYTES_MAX);
        bounded.read_line(&mut line).map_err(lost)?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_string()),
            None if line.is_empty() => Err(Failure::Lost("the server closed the connection".into())),
            None => Err(Failure::Lost(format!("an answer without an end: {line:?}"))),
        }
    }

    /// Exactly as many bytes as `buffer` holds.
    pub fn exactly(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        self.stream.read_exact(buffer).map_err(lost)
    }
}

fn lost(error: io::Error) -> Failure {
    Failure::Lost(match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".into(),
        io::ErrorKind::UnexpectedEof => "the server closed the connection".into(),
        _ => error.to_string(),
    })
}
