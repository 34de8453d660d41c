//! A counter that a library of Ruby increments. Each connection is a Ruby process, which is asked over a socket: so the
//! rates are below those inside of an application.

use super::statements::{MySqlTable, PostgresTable};
use super::{Error, Failure, Options, Sql, Store, Worker};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long Ruby may take to load a library and to connect.
const START: Duration = Duration::from_secs(60);
const SCRIPT: &str = include_str!("ruby.rb");

/// A library of Ruby that increments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// Rack::Attack's counter, with Dalli.
    RackAttack,
    /// Dalli, for memcached's protocols.
    Dalli,
    /// redis-rb.
    Redis,
    /// mysql2, on a table in memory.
    Mysql2,
    /// pg, on an unlogged table.
    Pg,
}

/// The table of mysql2, and that of pg: the document's.
const MYSQL: MySqlTable = MySqlTable::MEMORY;
const POSTGRES: PostgresTable = PostgresTable::UNLOGGED;

impl Library {
    /// Its name, on the command line and in the script.
    pub fn name(self) -> &'static str {
        match self {
            Self::RackAttack => "rack-attack",
            Self::Dalli => "ruby-dalli",
            Self::Redis => "ruby-redis",
            Self::Mysql2 => "ruby-mysql2",
            Self::Pg => "ruby-pg",
        }
    }

    /// Returns a description in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::RackAttack => "Rack::Attack with Dalli, each connection in a Ruby process, over memcached",
            Self::Dalli => "Ruby's Dalli, each connection a process, over memcached",
            Self::Redis => "Ruby's redis, each connection a process",
            Self::Mysql2 => "Ruby's mysql2, each connection a process, a table ENGINE=MEMORY",
            Self::Pg => "Ruby's pg, each connection a process, an unlogged table",
        }
    }

    /// The statements before the first increment, if any.
    pub fn schema(self, sql: Sql) -> Option<String> {
        match self {
            Self::Mysql2 => Some(MYSQL.schema()),
            Self::Pg => Some(POSTGRES.schema(sql)),
            _ => None,
        }
    }

    /// An increment.
    pub fn statement(self, sql: Sql) -> String {
        match self {
            Self::RackAttack => "Rack::Attack.cache.count('larder-bench-counter', 1000000000)".into(),
            Self::Dalli => "Dalli::Client#incr('larder-bench-counter', 1, nil, 1); on false: again".into(),
            Self::Redis => "Redis#incr('larder-bench-counter')".into(),
            Self::Mysql2 => MYSQL.statement(sql),
            Self::Pg => POSTGRES.statement(sql),
        }
    }

    /// The removal of the counter.
    pub fn reset(self) -> String {
        match self {
            Self::RackAttack => "Rack::Attack.cache.reset_count('larder-bench-counter', 1000000000)".into(),
            Self::Dalli => "Dalli::Client#delete('larder-bench-counter')".into(),
            Self::Redis => "Redis#del('larder-bench-counter')".into(),
            Self::Mysql2 => MYSQL.reset(),
            Self::Pg => POSTGRES.reset(),
        }
    }

    fn read(self) -> String {
        match self {
            Self::Mysql2 => MYSQL.read(),
            Self::Pg => POSTGRES.read(),
            _ => String::new(),
        }
    }
}

/// The server, and the library that asks it. Processes that no connection uses are kept for the next.
pub struct OfRuby {
    library: Library,
    address: String,
    options: Options,
    idle: Arc<Mutex<Vec<Ruby>>>,
}

impl OfRuby {
    /// Returns the counter at a server's address; nothing is started yet.
    pub fn new(library: Library, address: &str, options: Options) -> Self {
        Self { library, address: address.into(), options, idle: Arc::default() }
    }

    fn connection(&self) -> Result<Connection, Error> {
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let ruby = kept.map_or_else(|| Ruby::start(self.library, &self.address, self.options), Ok)?;
        Ok(Connection { ruby: Some(ruby), idle: self.idle.clone() })
    }
}

impl Store for OfRuby {
    fn version(&self) -> Result<String, Error> {
        Ok(self.connection()?.ask("version")?)
    }

    fn prepare(&self) -> Result<(), Error> {
        if self.library.schema(self.options.sql).is_some() {
            self.connection()?.ask("prepare")?;
        }
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
    library: Library,
    process: Child,
    socket: BufReader<UnixStream>,
}

impl Ruby {
    fn start(library: Library, address: &str, options: Options) -> Result<Self, Error> {
        let (mut ours, theirs) = UnixStream::pair()?;
        let other = theirs.try_clone()?;
        let process = Command::new("ruby")
            .args(["-e", SCRIPT, library.name(), &library.statement(options.sql)])
            .args([library.read(), library.reset(), library.schema(options.sql).unwrap_or_default()])
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(OwnedFd::from(other)))
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| Error(format!("ruby cannot be started: {error}")))?;
        ours.write_all(format!("{address}\n").as_bytes())?;
        ours.set_read_timeout(Some(START))?;
        let mut ruby = Self { library, process, socket: BufReader::new(ours) };
        // On a busy machine Ruby takes longer to load a library than an answer may take.
        ruby.ask("version")?;
        ruby.socket.get_ref().set_read_timeout(Some(options.timeout))?;
        Ok(ruby)
    }

    fn ask(&mut self, word: &str) -> Result<String, Failure> {
        let library = self.library.name();
        let lost = |why: String| Failure::Lost(format!("Ruby, with {library}, does not answer: {why}"));
        self.socket
            .get_mut()
            .write_all(format!("{word}\n").as_bytes())
            .map_err(|error| lost(error.to_string()))?;
        let mut line = String::new();
        match self.socket.read_line(&mut line) {
            Ok(0) => Err(lost("it has ended".into())),
            Ok(_) => match line.trim().strip_prefix("! ") {
                Some(why) => Err(Failure::Lost(why.to_string())),
                None => Ok(line.trim().to_string()),
            },
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(lost("no answer in time".into())),
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
        answer.parse().map_err(|_| Failure::Lost(format!("Ruby answers {answer:?}")))
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
