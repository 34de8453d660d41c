//! One connection that speaks TLS over a socket that may not wait.
//!
//! ```text
//!   read:   socket -> raw (64 KiB a call) -> rustls -> plain bytes
//!   write:  plain bytes -> rustls -> socket; the rest stays in rustls until the socket takes it
//! ```

use super::Tls;
use crate::net::socket::Socket;
use rustls::ClientConnection;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

/// rustls itself would ask the system for 4 KiB at a time.
const RAW_BYTES: usize = 64 << 10;

/// One connection that speaks TLS.
#[derive(Debug)]
pub struct TlsStream {
    /// The socket below.
    pub(in crate::net) socket: Socket,
    connection: ClientConnection,
    raw: Vec<u8>,
    raw_begin: usize,
    raw_end: usize,
    /// Whether the last read filled its buffer, so that there may be more without a word from the socket.
    was_filled: bool,
}

impl TlsStream {
    /// Shakes hands, over a socket that waits.
    ///
    /// # Errors
    /// There is no agreement; [`Tls::in_words`] explains it.
    pub fn handshake(tls: &Tls, mut socket: Socket) -> io::Result<Self> {
        let mut connection = connection(tls)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        let raw = vec![0; RAW_BYTES];
        let mut stream = Self { socket, connection, raw, raw_begin: 0, raw_end: 0, was_filled: false };
        stream.push()?;
        Ok(stream)
    }

    /// Begins over a socket that does not wait: the handshake takes place while bytes are read and written.
    ///
    /// # Errors
    /// The name of the server is none.
    pub fn begin(tls: &Tls, socket: Socket) -> io::Result<Self> {
        let connection = connection(tls)?;
        Ok(Self { socket, connection, raw: vec![0; RAW_BYTES], raw_begin: 0, raw_end: 0, was_filled: false })
    }

    /// The version and the cipher that both sides agreed on.
    pub fn agreed(&self) -> String {
        let version = self.connection.protocol_version().and_then(|version| version.as_str());
        let suite = self.connection.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str());
        let words = [version, suite].map(|word| word.unwrap_or("unknown").replace("TLSv1_", "TLS 1."));
        words.join(", ")
    }

    /// Whether there may be something to read although the socket has nothing.
    pub fn has_more(&self) -> bool {
        self.was_filled || self.raw_begin < self.raw_end
    }

    /// Sends the bytes that the socket did not take before; returns whether all were sent.
    ///
    /// # Errors
    /// The connection broke.
    pub fn push(&mut self) -> io::Result<bool> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut self.socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Gives rustls the raw bytes.
    fn take_in(&mut self) -> io::Result<()> {
        let mut raw = &self.raw[self.raw_begin..self.raw_end];
        self.raw_begin += self.connection.read_tls(&mut raw)?;
        let taken = self.connection.process_new_packets();
        // A reply such as an alert is sent as far as the socket takes it.
        let pushed = self.push();
        taken.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        pushed.map(drop)
    }
}

fn connection(tls: &Tls) -> io::Result<ClientConnection> {
    ClientConnection::new(Arc::clone(&tls.config), tls.name.clone()).map_err(io::Error::other)
}

impl Read for TlsStream {
    /// At most one read of the socket that brings nothing; a close without a word is an `UnexpectedEof`.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(buffer) {
                Ok(read) => {
                    self.was_filled = read == buffer.len();
                    return Ok(read);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.was_filled = false,
                Err(error) => return Err(error),
            }
            if self.raw_begin == self.raw_end {
                self.raw_begin = 0;
                self.raw_end = 0;
                self.raw_end = self.socket.read(&mut self.raw)?;
            }
            self.take_in()?;
        }
    }
}

impl Write for TlsStream {
    /// Takes as many bytes as the socket does in records, and one buffer more.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.push()? {
            return Err(ErrorKind::WouldBlock.into());
        }
        let written = self.connection.writer().write(bytes)?;
        self.push()?;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
