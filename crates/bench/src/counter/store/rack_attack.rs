//! A counter of Rack::Attack, with Dalli, in a memcached server. Each connection is a Ruby process, which is asked
//! over a socket: so the rates are below those inside of an application.

use super::{Error, Failure, Options, Store, Worker};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// An increment.
pub const STATEMENT: &str = "Rack::Attack.cache.count('larder-bench-counter', 1000000000)";
/// The removal of the counter.
pub const RESET: &str = "Rack::Attack.cache.reset_count('larder-bench-counter', 1000000000)";

const SCRIPT: &str = include_str!("rack_attack.rb");

/// The server. Processes that no connection uses are kept for the next.
pub struct RackAttack {
    address: String,
    options: Options,
    idle: Arc<Mutex<Vec<Ruby>>>,
}

impl RackAttack {
    /// Returns the counter at a server's address; nothing is started yet.
    pub fn new(address: &str, options: Options) -> Self {
        Self { address: address.into(), options, idle: Arc::default() }
    }

    fn connection(&self) -> Result<Connection, Error> {
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let ruby = kept.map_or_else(|| Ruby::start(&self.address, self.options), Ok)?;
        Ok(Connection { ruby: Some(ruby), idle: self.idle.clone() })
    }
}

impl Store for RackAttack {
    fn version(&self) -> Result<String, Error> {
        Ok(self.connection()?.ask("version")?)
    }

    fn prepare(&self) -> Result<(), Error> {
        Ok(())
    }

    fn reset(&self) -> Result<(), Error> {
        self.connection()?.ask("reset")?;
        Ok(())
    }

    fn connect(&self) -> Result<Box<dyn Worker>, Error> {
        Ok(Box::new(self.connection()?))
    }

    fn read(&self) -> Result<u64, Error> {
        Ok(self.connection()?.number("read")?)
    }
}

/// A process that counts, and the socket to it. It ends with its owner.
struct Ruby {
    process: Child,
    socket: BufReader<UnixStream>,
}

impl Ruby {
    fn start(address: &str, options: Options) -> Result<Self, Error> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(options.timeout))?;
        let other = theirs.try_clone()?;
        let process = Command::new("ruby")
            .args(["-e", SCRIPT, address])
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(OwnedFd::from(other)))
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| Error(format!("ruby cannot be started: {error}")))?;
        Ok(Self { process, socket: BufReader::new(ours) })
    }

    fn ask(&mut self, word: &str) -> Result<String, Failure> {
        let lost =
            |why: String| Failure::Lost(format!("Ruby, with Rack::Attack and Dalli, does not answer: {why}"));
        self.socket
            .get_mut()
            .write_all(format!("{word}\n").as_bytes())
            .map_err(|error| lost(error.to_string()))?;
        let mut line = String::new();
        match self.socket.read_line(&mut line) {
            Ok(0) => Err(lost("it has ended".into())),
            Ok(_) => Ok(line.trim().to_string()),
            Err(error) => Err(lost(error.to_string())),
        }
    }
}

impl Drop for Ruby {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A process in use.
struct Connection {
    /// There until it fails.
    ruby: Option<Ruby>,
    idle: Arc<Mutex<Vec<Ruby>>>,
}

impl Connection {
    fn ask(&mut self, word: &str) -> Result<String, Failure> {
        let ruby = self.ruby.as_mut().ok_or_else(|| Failure::Lost("the process has ended".into()))?;
        let answer = ruby.ask(word);
        if answer.is_err() {
            // Its answer may still come, and would be taken for that to the next word.
            self.ruby = None;
        }
        answer
    }

    fn number(&mut self, word: &str) -> Result<u64, Failure> {
        let answer = self.ask(word)?;
        answer.parse().map_err(|_| Failure::Lost(format!("Rack::Attack answers {answer:?}")))
    }
}

impl Worker for Connection {
    fn increment(&mut self) -> Result<u64, Failure> {
        self.number("count")
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(ruby) = self.ruby.take() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(ruby);
        }
    }
}
