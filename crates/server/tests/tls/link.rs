//! A client and one connection's records, without a socket.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Instant;

use larder_server::config::ListenTls;
use larder_server::tls::{INCOMING_BYTES_MAX, PIECE_BYTES, Piece, PieceBuffers, Tls, TlsStream};
use rustls::{ClientConfig, ClientConnection};

use super::certificates::connection;

/// A client and a server's end, and the bytes between them.
pub struct Link {
    pub client: ClientConnection,
    pub server: TlsStream,
    pub buffers: PieceBuffers,
    /// The plain bytes that each end got.
    pub at_server: Vec<u8>,
    pub at_client: Vec<u8>,
    /// The most memory that the server's end held between two steps.
    pub most_bytes: usize,
}

impl Link {
    pub fn new(tls: &Tls, listener: ListenTls, config: &Arc<ClientConfig>) -> Link {
        Link {
            client: connection(config),
            server: tls.begin(listener, Instant::now()).expect("it speaks TLS"),
            buffers: PieceBuffers::new(),
            at_server: Vec::new(),
            at_client: Vec::new(),
            most_bytes: 0,
        }
    }

    /// Gives the server what the client has to send, `step` bytes at a time, changed by `change`.
    pub fn deliver_to_server(
        &mut self,
        step: usize,
        change: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Result<(), rustls::Error> {
        let mut bytes = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut bytes).expect("memory takes all");
        }
        change(&mut bytes);
        let mut buffer = vec![0; INCOMING_BYTES_MAX + (64 << 10)];
        for fresh in bytes.chunks(step) {
            let kept = self.server.copy_incoming(&mut buffer);
            buffer[kept..kept + fresh.len()].copy_from_slice(fresh);
            let at_server = &mut self.at_server;
            self.server
                .receive(&mut buffer[..kept + fresh.len()], |plain| at_server.extend_from_slice(plain))?;
            self.most_bytes = self.most_bytes.max(self.server.memory_bytes());
        }
        Ok(())
    }

    /// Gives the client what the server has queued.
    pub fn deliver_to_client(&mut self) -> Result<(), rustls::Error> {
        let bytes = self.server.unsent().to_vec();
        self.server.note_sent(bytes.len());
        self.deliver(&bytes)
    }

    pub fn deliver(&mut self, mut bytes: &[u8]) -> Result<(), rustls::Error> {
        while !bytes.is_empty() {
            self.client.read_tls(&mut bytes).expect("there is something");
            self.client.process_new_packets()?;
            match self.client.reader().read_to_end(&mut self.at_client) {
                Ok(_) => {}
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
            }
        }
        Ok(())
    }

    pub fn shake_hands(&mut self, step: usize) -> Result<(), rustls::Error> {
        for _ in 0..10 {
            self.deliver_to_server(step, &mut |_| {})?;
            self.deliver_to_client()?;
            if !self.client.is_handshaking() && !self.server.is_handshaking() {
                return Ok(());
            }
        }
        panic!("the handshake does not end");
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.client.set_buffer_limit(None);
        self.client.writer().write_all(bytes).expect("memory takes all");
    }

    /// Sends replies to the client in pieces.
    pub fn reply(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let mut piece = Piece::new(&mut self.server, &mut self.buffers, PIECE_BYTES);
            let mut taken = 0;
            while let Ok(more @ 1..) = piece.take(&bytes[taken..]) {
                taken += more;
            }
            let records = piece.finish().expect("it can send");
            bytes = &bytes[taken..];
            let records = self.buffers.records(records).to_vec();
            self.deliver(&records).expect("the client understands");
        }
    }
}
