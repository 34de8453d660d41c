//! A counter in any server that speaks memcached's text protocol, by classic or by meta commands.

use super::wire::Wire;
use super::{Error, Failure, KEY, Options, Store, Worker};

/// An increment by classic commands; the `add` is sent only while the counter does not exist.
pub const TEXT_STATEMENT: &str = "incr larder-bench-counter 1; on NOT_FOUND: add larder-bench-counter \
                                  0 0 1 / 1; on NOT_STORED: incr again";
/// An increment by a meta command.
pub const META_STATEMENT: &str = "ma larder-bench-counter N0 J1 v";

/// How often in a row another connection may be first to create the counter; a server that says so for ever
/// is refused.
pub const RACES_MAX: u32 = 1000;

/// Which commands are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `incr` and `add`.
    Text,
    /// `ma`.
    Meta,
}

/// A server.
pub struct Memcached {
    address: String,
    options: Options,
    dialect: Dialect,
}

impl Memcached {
    /// At an address.
    pub fn new(address: &str, options: Options, dialect: Dialect) -> Self {
        Self { address: address.into(), options, dialect }
    }

    fn wire(&self) -> Result<Wire, Error> {
        Wire::connect(&self.address, self.options.timeout)
    }
}

impl Store for Memcached {
    fn version(&self) -> Result<String, Error> {
        version(&mut self.wire()?)
    }

    fn prepare(&self) -> Result<(), Error> {
        Ok(())
    }

    fn reset(&self) -> Result<(), Error> {
        delete(&mut self.wire()?)
    }

    fn connect(&self) -> Result<Box<dyn Worker>, Error> {
        let wire = self.wire()?;
        Ok(match self.dialect {
            Dialect::Text => Box::new(Text(wire)),
            Dialect::Meta => Box::new(Meta(wire)),
        })
    }

    fn read(&self) -> Result<u64, Error> {
        Ok(get(&mut self.wire()?)?.unwrap_or(0))
    }
}

/// What the server calls itself.
pub fn version(wire: &mut Wire) -> Result<String, Error> {
    let answer = wire.ask(b"version\r\n")?;
    let version = answer.strip_prefix("VERSION ");
    version
        .map(str::to_string)
        .ok_or_else(|| Error(format!("no memcached: it answers {answer:?} to `version`")))
}

/// Removes the counter.
pub fn delete(wire: &mut Wire) -> Result<(), Error> {
    let answer = wire.ask(format!("delete {KEY}\r\n").as_bytes())?;
    match answer.as_str() {
        "DELETED" | "NOT_FOUND" => Ok(()),
        _ => Err(Error(format!("it answers {answer:?} to `delete`"))),
    }
}

/// The counter, if it exists.
pub fn get(wire: &mut Wire) -> Result<Option<u64>, Failure> {
    let first = wire.ask(format!("get {KEY}\r\n").as_bytes())?;
    if first == "END" {
        return Ok(None);
    }
    if !first.starts_with("VALUE ") {
        return Err(unexpected(&first));
    }
    let value = wire.line()?;
    match (value.trim().parse(), wire.line()?.as_str()) {
        (Ok(value), "END") => Ok(Some(value)),
        _ => Err(Failure::Lost(format!("the counter holds {value:?}"))),
    }
}

/// Error lines say that nothing was done; anything else is no answer to rely on.
pub fn unexpected(answer: &str) -> Failure {
    let is_error = ["ERROR", "CLIENT_ERROR ", "SERVER_ERROR "].iter().any(|start| answer.starts_with(start));
    if is_error { Failure::Refused(answer.into()) } else { Failure::Lost(format!("it answers {answer:?}")) }
}

struct Text(Wire);

impl Worker for Text {
    fn increment(&mut self) -> Result<u64, Failure> {
        for _ in 0..RACES_MAX {
            let answer = self.0.ask(b"incr larder-bench-counter 1\r\n")?;
            if let Ok(value) = answer.parse() {
                return Ok(value);
            }
            if answer != "NOT_FOUND" {
                return Err(unexpected(&answer));
            }
            match self.0.ask(b"add larder-bench-counter 0 0 1\r\n1\r\n")?.as_str() {
                "STORED" => return Ok(1),
                // Another connection was first.
                "NOT_STORED" => {}
                answer => return Err(unexpected(answer)),
            }
        }
        Err(Failure::Refused("there is neither a counter nor room for one".into()))
    }
}

struct Meta(Wire);

impl Worker for Meta {
    fn increment(&mut self) -> Result<u64, Failure> {
        let answer = self.0.ask(b"ma larder-bench-counter N0 J1 v\r\n")?;
        if !answer.starts_with("VA ") {
            return Err(unexpected(&answer));
        }
        let value = self.0.line()?;
        value.trim().parse().map_err(|_| Failure::Lost(format!("it answers {value:?} to `ma`")))
    }
}
