//! A counter in any server that speaks memcached's binary protocol: one Increment with an initial value, as
//! the document of 2015 sent it.

use super::memcached::RACES_MAX;
use super::wire::Wire;
use super::{Error, Failure, KEY, Options, Store, Worker};

/// An increment.
pub const STATEMENT: &str = "Increment (0x05) key larder-bench-counter, delta 1, initial 1, expiration 0; on \
                             status Not stored (0x0005): again";

const GET: u8 = 0x00;
const DELETE: u8 = 0x04;
const INCREMENT: u8 = 0x05;
const VERSION: u8 = 0x0b;
const HEADER_BYTES: usize = 24;
const NO_ERROR: u16 = 0x0000;
const KEY_NOT_FOUND: u16 = 0x0001;
const NOT_STORED: u16 = 0x0005;
/// A body may have this many bytes: a counter's or an error message's.
const BODY_BYTES_MAX: usize = 4096;

/// A server.
pub struct Binary {
    address: String,
    options: Options,
}

impl Binary {
    /// At an address.
    pub fn new(address: &str, options: Options) -> Self {
        Self { address: address.into(), options }
    }

    fn ask(&self, opcode: u8, key: &str) -> Result<(u16, Vec<u8>), Error> {
        let mut wire = Wire::connect(&self.address, self.options.timeout)?;
        Ok(ask(&mut wire, &request(opcode, &[], key))?)
    }
}

impl Store for Binary {
    fn version(&self) -> Result<String, Error> {
        match self.ask(VERSION, "")? {
            (NO_ERROR, body) => Ok(String::from_utf8_lossy(&body).into_owned()),
            (status, _) => Err(Error(format!("it answers status {status:#06x} to Version"))),
        }
    }

    fn prepare(&self) -> Result<(), Error> {
        Ok(())
    }

    fn reset(&self) -> Result<(), Error> {
        match self.ask(DELETE, KEY)? {
            (NO_ERROR | KEY_NOT_FOUND, _) => Ok(()),
            (status, _) => Err(Error(format!("it answers status {status:#06x} to Delete"))),
        }
    }

    fn connect(&self) -> Result<Box<dyn Worker>, Error> {
        // Delta, initial value, expiration.
        let extras = [&1_u64.to_be_bytes()[..], &1_u64.to_be_bytes(), &0_u32.to_be_bytes()].concat();
        let wire = Wire::connect(&self.address, self.options.timeout)?;
        Ok(Box::new(Incrementing { wire, request: request(INCREMENT, &extras, KEY) }))
    }

    fn read(&self) -> Result<u64, Error> {
        match self.ask(GET, KEY)? {
            (KEY_NOT_FOUND, _) => Ok(0),
            // Four bytes of flags precede the value.
            (NO_ERROR, body) => {
                let text = String::from_utf8_lossy(body.get(4..).unwrap_or_default()).into_owned();
                text.trim().parse().map_err(|_| Error(format!("the counter holds {text:?}")))
            }
            (status, _) => Err(Error(format!("it answers status {status:#06x} to Get"))),
        }
    }
}

struct Incrementing {
    wire: Wire,
    request: Vec<u8>,
}

impl Worker for Incrementing {
    fn increment(&mut self) -> Result<u64, Failure> {
        let mut answer = ask(&mut self.wire, &self.request)?;
        // memcached found no counter, and then that another connection was first to create one.
        for _ in 0..RACES_MAX {
            if answer.0 != NOT_STORED {
                break;
            }
            answer = ask(&mut self.wire, &self.request)?;
        }
        match answer {
            (NO_ERROR, body) => match <[u8; 8]>::try_from(body) {
                Ok(value) => Ok(u64::from_be_bytes(value)),
                Err(body) => Err(Failure::Lost(format!("a counter of {} bytes", body.len()))),
            },
            (status, body) => {
                Err(Failure::Refused(format!("status {status:#06x}: {}", String::from_utf8_lossy(&body))))
            }
        }
    }
}

/// Magic, opcode, lengths of key, extras and body; the rest is 0.
fn request(opcode: u8, extras: &[u8], key: &str) -> Vec<u8> {
    let mut request = vec![0; HEADER_BYTES];
    request[0] = 0x80;
    request[1] = opcode;
    request[2..4].copy_from_slice(&(key.len() as u16).to_be_bytes());
    request[4] = extras.len() as u8;
    request[8..12].copy_from_slice(&((extras.len() + key.len()) as u32).to_be_bytes());
    request.extend_from_slice(extras);
    request.extend_from_slice(key.as_bytes());
    request
}

/// Sends, and returns status and body of the answer.
fn ask(wire: &mut Wire, request: &[u8]) -> Result<(u16, Vec<u8>), Failure> {
    wire.send(request)?;
    let mut header = [0; HEADER_BYTES];
    wire.exactly(&mut header)?;
    let status = u16::from_be_bytes([header[6], header[7]]);
    let body_bytes = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
    if header[0] != 0x81 || body_bytes > BODY_BYTES_MAX {
        return Err(Failure::Lost("it does not speak memcached's binary protocol".into()));
    }
    let mut body = vec![0; body_bytes];
    wire.exactly(&mut body)?;
    Ok((status, body))
}
