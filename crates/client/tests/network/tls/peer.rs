//! A server that sends its replies byte by byte.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection, SupportedProtocolVersion, version};

use crate::fake::opaque;

pub const VERSIONS: [&SupportedProtocolVersion; 2] = [&version::TLS12, &version::TLS13];

/// Answers each request with a value: each byte in a record of its own, or each byte of a record in a packet of its
/// own.
pub fn answer_slowly(mut socket: TcpStream, config: &Arc<ServerConfig>, value: &[u8], in_records: bool) {
    socket.set_nodelay(true).expect("a socket");
    let mut session = ServerConnection::new(config.clone()).expect("a server");
    while let Some(line) = read_line(&mut session, &mut socket) {
        let mut reply = format!("VA {} c7 f0{}\r\n", value.len(), opaque(&line)).into_bytes();
        reply.extend_from_slice(value);
        reply.extend_from_slice(b"\r\n");
        let sent = if in_records {
            reply.iter().try_for_each(|byte| send(&mut session, &mut socket, &[*byte]))
        } else {
            reply.chunks(8_000).try_for_each(|part| send(&mut session, &mut socket, part))
        };
        if sent.is_err() {
            return;
        }
    }
}

fn send(session: &mut ServerConnection, socket: &mut TcpStream, plain: &[u8]) -> std::io::Result<()> {
    session.writer().write_all(plain)?;
    let mut records = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut records)?;
    }
    records.iter().try_for_each(|byte| socket.write_all(&[*byte]))
}

fn read_line(session: &mut ServerConnection, socket: &mut TcpStream) -> Option<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    while rustls::Stream::new(session, socket).read(&mut byte).ok()? == 1 {
        line.push(byte[0]);
        if line.ends_with(b"\r\n") {
            return String::from_utf8(line).ok().map(|line| line.trim_end().to_string());
        }
    }
    None
}
