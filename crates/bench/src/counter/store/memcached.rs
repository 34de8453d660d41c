//! A counter in any server that speaks memcached's text, meta or binary protocol.

use super::{Error, Failure, KEY, Options, Store, Worker};
use crate::net::{self, Address, Stream};
use crate::wire::{Counting, Decoder, Expected, Protocol, Verb, What};
use std::io::{self, Read as _, Write as _};

/// An increment in the text protocol; the `add` is sent only while the counter does not exist.
pub const TEXT_STATEMENT: &str = "incr larder-bench-counter 1; on NOT_FOUND: add larder-bench-counter \
                                  0 0 1 / 1; on NOT_STORED: incr again";
/// An increment by a meta command.
pub const META_STATEMENT: &str = "ma larder-bench-counter N0 J1 v";
/// An increment in the binary protocol, with an initial value, as the document of 2015 sent it.
pub const BINARY_STATEMENT: &str = "Increment (0x05) key larder-bench-counter, delta 1, initial 1, \
                                    expiration 0; on status Not stored (0x0005): again";

/// How often in a row another connection may be first to create the counter; then the increment is refused.
const RACES_MAX: u32 = 1000;
/// Bytes that are read at once; the replies about a counter are shorter.
const READ_BYTES: usize = 4096;

/// A server.
pub struct Memcached {
    address: String,
    options: Options,
    protocol: Protocol,
}

impl Memcached {
    /// Returns the server at an address; nothing is sent yet.
    pub fn new(address: &str, options: Options, protocol: Protocol) -> Self {
        Self { address: address.into(), options, protocol }
    }

    /// Opens a connection of its own.
    ///
    /// # Errors
    /// The address is malformed, or the server is unreachable.
    pub fn connection(&self) -> Result<Connection, Error> {
        let (address, _) = Address::parse(&self.address, None, self.protocol).map_err(Error)?;
        let stream =
            Stream::connect_waiting(&address, None, self.options.timeout).map_err(|error| match error {
                net::Error::Connect { source, .. } => Error::from(source),
                error => Error(error.to_string()),
            })?;
        let (counter, decoder) = (Counting::new(self.protocol, KEY), Decoder::new(self.protocol));
        Ok(Connection { stream, counter, decoder, output: Vec::new(), input: Vec::new() })
    }
}

impl Store for Memcached {
    fn version(&self) -> Result<String, Error> {
        Ok(self.connection()?.version()?)
    }

    fn prepare(&self) -> Result<(), Error> {
        Ok(())
    }

    fn reset(&self) -> Result<(), Error> {
        match self.connection()?.ask(Verb::Delete, Counting::delete)? {
            Answer::Done | Answer::Miss => Ok(()),
            answer => Err(answer.unexpected("delete").into()),
        }
    }

    fn connect(&self) -> Result<Box<dyn Worker>, Error> {
        Ok(Box::new(self.connection()?))
    }

    fn read(&self) -> Result<u64, Error> {
        Ok(self.connection()?.get()?.unwrap_or(0))
    }
}

/// A reply, owned.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The text of a value.
    Value(String),
    /// The counter's new value.
    Count(u64),
    /// Stored or removed.
    Done,
    /// There is no counter.
    Miss,
    /// Another connection created the counter first.
    NotStored,
    /// The server refused, in its own words.
    Error(String),
}

impl Answer {
    fn of(what: &What<'_>) -> Option<Self> {
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some(match what {
            What::Value(_, value, _) | What::Unique(_, value, _, _) => Self::Value(words(value)),
            What::Count(value) => Self::Count(*value),
            What::Done => Self::Done,
            What::Miss => Self::Miss,
            What::NotStored(_) | What::Exists => Self::NotStored,
            What::Error(error) => Self::Error(words(error)),
            What::Frame => return None,
        })
    }

    /// Returns the failure of a request that this reply does not fit. An error means that nothing was done;
    /// after anything else it is unknown.
    pub fn unexpected(self, request: &str) -> Failure {
        match self {
            Self::Error(words) => Failure::Refused(words),
            other => Failure::Lost(format!("unexpected reply to {request}: {other:?}")),
        }
    }
}

/// A connection on which each request waits for its reply.
pub struct Connection {
    stream: Stream,
    counter: Counting,
    decoder: Decoder,
    output: Vec<u8>,
    input: Vec<u8>,
}

impl Connection {
    /// Sends a request and returns its reply.
    ///
    /// # Errors
    /// [`Failure::Lost`]: no reply came in time, or bytes that are no reply.
    pub fn ask(
        &mut self,
        verb: Verb,
        request: impl FnOnce(&Counting, &mut Vec<u8>),
    ) -> Result<Answer, Failure> {
        self.send(request)?;
        let mut answer = None;
        loop {
            let reply = self.decoder.next(Expected { verb, keys: 1 }, &self.input);
            let Some(reply) = reply.map_err(|garbage| Failure::Lost(garbage.message))? else {
                self.receive()?;
                continue;
            };
            answer = answer.or(Answer::of(&reply.what));
            let (consumed, is_last) = (reply.consumed, reply.is_last);
            self.input.drain(..consumed);
            if is_last {
                return answer.ok_or_else(|| Failure::Lost("an empty reply".into()));
            }
        }
    }

    /// Returns the counter; none if it does not exist.
    ///
    /// # Errors
    /// There is no reply, or the value is not a number.
    pub fn get(&mut self) -> Result<Option<u64>, Failure> {
        match self.ask(Verb::Get, Counting::get)? {
            Answer::Miss => Ok(None),
            Answer::Value(value) => match value.trim().parse() {
                Ok(value) => Ok(Some(value)),
                Err(_) => Err(Failure::Lost(format!("the counter holds {value:?}"))),
            },
            answer => Err(answer.unexpected("get")),
        }
    }

    fn version(&mut self) -> Result<String, Failure> {
        self.send(Counting::version)?;
        loop {
            let version = self.counter.read_version(&self.input);
            if let Some(version) = version.map_err(|garbage| Failure::Lost(garbage.message))? {
                return Ok(version);
            }
            self.receive()?;
        }
    }

    fn send(&mut self, request: impl FnOnce(&Counting, &mut Vec<u8>)) -> Result<(), Failure> {
        self.output.clear();
        request(&self.counter, &mut self.output);
        self.stream.write_all(&self.output).map_err(lost)
    }

    fn receive(&mut self) -> Result<(), Failure> {
        let mut piece = [0; READ_BYTES];
        match self.stream.read(&mut piece).map_err(lost)? {
            0 => Err(Failure::Lost("the server closed the connection".into())),
            read => {
                self.input.extend_from_slice(&piece[..read]);
                Ok(())
            }
        }
    }
}

impl Worker for Connection {
    fn increment(&mut self) -> Result<u64, Failure> {
        for _ in 0..RACES_MAX {
            match self.ask(Verb::Incr, Counting::increment)? {
                Answer::Count(value) => return Ok(value),
                // The binary protocol creates the counter itself, and reports that another connection was
                // first.
                Answer::NotStored => continue,
                Answer::Miss => {}
                answer => return Err(answer.unexpected("an increment")),
            }
            match self.ask(Verb::Set, Counting::create)? {
                Answer::Done => return Ok(1),
                Answer::NotStored => {}
                answer => return Err(answer.unexpected("add")),
            }
        }
        Err(Failure::Refused("there is neither a counter nor room for one".into()))
    }
}

fn lost(error: io::Error) -> Failure {
    Failure::Lost(match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".into(),
        io::ErrorKind::UnexpectedEof => "the server closed the connection".into(),
        _ => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;
    use std::time::Duration;

    /// Starts a server that sends the replies one after the other, a request each; returns its address.
    fn server(replies: Vec<Vec<u8>>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it listens").to_string();
        thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("a client");
            for reply in replies {
                let read = peer.read(&mut [0; 512]).expect("a request");
                assert!(read > 0, "the client left early");
                peer.write_all(&reply).expect("it reads");
            }
        });
        address
    }

    fn increments(protocol: Protocol, replies: &[&[u8]]) -> Vec<Result<u64, Failure>> {
        let options = Options { sql: super::super::Sql::Idiomatic, timeout: Duration::from_secs(20) };
        let address = server(replies.iter().map(|reply| reply.to_vec()).collect());
        let mut connection = Memcached::new(&address, options, protocol).connection().expect("it listens");
        let mut all = vec![connection.increment()];
        while all.last().is_some_and(Result::is_ok) {
            all.push(connection.increment());
        }
        all
    }

    fn binary(status: u8, value: &[u8]) -> Vec<u8> {
        let mut reply = vec![0; 24];
        (reply[0], reply[1], reply[7], reply[11]) = (0x81, 5, status, value.len() as u8);
        reply.extend_from_slice(value);
        reply
    }

    #[test]
    fn an_absent_counter_is_created_and_a_lost_race_is_tried_again() {
        let text: [&[u8]; 5] =
            [b"NOT_FOUND\r\n", b"NOT_STORED\r\n", b"2\r\n", b"NOT_FOUND\r\n", b"STORED\r\n"];
        let found = increments(Protocol::Text, &text);
        assert_eq!(found[..2], [Ok(2), Ok(1)]);
        let (race, five) = (binary(5, b"Not stored."), binary(0, &5_u64.to_be_bytes()));
        assert_eq!(increments(Protocol::Binary, &[&race, &five])[0], Ok(5));
        assert_eq!(increments(Protocol::Meta, &[b"VA 1\r\n7\r\n"])[0], Ok(7));
    }

    #[test]
    fn a_refusal_is_told_from_a_loss() {
        let full = increments(Protocol::Text, &[b"SERVER_ERROR out of memory\r\n"]);
        assert_eq!(full[0], Err(Failure::Refused("SERVER_ERROR out of memory".into())));
        let full = increments(Protocol::Binary, &[&binary(0x82, b"Out of memory")]);
        assert_eq!(full[0], Err(Failure::Refused("Out of memory".into())));
        for garbage in [&b"STORED\r\n"[..], b"VALUE\r\n"] {
            assert!(matches!(increments(Protocol::Text, &[garbage])[0], Err(Failure::Lost(_))));
        }
        assert!(matches!(increments(Protocol::Meta, &[b"VA 1\r\nx\r\n"])[0], Err(Failure::Lost(_))));
    }
}
