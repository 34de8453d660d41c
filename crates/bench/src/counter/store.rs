//! The stores that can hold a counter, and the interface each implements, in one file a store.

mod broken;
#[cfg(feature = "drivers")]
mod databases;
mod memcached;
mod memory;
mod ruby;
mod statements;

use crate::wire::Protocol;
use memcached::Memcached;
pub use ruby::Library;
use ruby::OfRuby;
use statements::{MySqlTable, PostgresTable};
use std::fmt;
use std::time::Duration;

/// The name of the counter, wherever a store wants a key.
pub const KEY: &str = "larder-bench-counter";

/// Why a build cannot open a database.
pub const NO_DRIVERS: &str = "this larder-bench was built without drivers; build it with --features drivers";

/// A store with one counter in it.
pub trait Store: Send + Sync {
    /// The server's name and version as it reports them. It fails, in one line, when the server cannot be
    /// reached.
    fn version(&self) -> Result<String, Error>;

    /// Creates the counter's table or function. Called once.
    fn prepare(&self) -> Result<(), Error>;

    /// Puts the counter back to where the next increment answers 1.
    fn reset(&self) -> Result<(), Error>;

    /// A connection of its own.
    fn connect(&self) -> Result<Box<dyn Worker>, Error>;

    /// The counter's value; 0 when it does not exist.
    fn read(&self) -> Result<u64, Error>;
}

/// One connection that increments.
pub trait Worker: Send {
    /// Adds 1 and returns the value the store answered.
    fn increment(&mut self) -> Result<u64, Failure>;
}

/// Why an increment has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The store answered with an error: nothing was done.
    Refused(String),
    /// No answer, or none that tells: it may have happened. The connection is of no use any more.
    Lost(String),
}

/// Why a store cannot be used, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Drivers like to say it on several lines.
        f.write_str(&self.0.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl std::error::Error for Error {}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(why) | Failure::Lost(why) => Self(why),
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Which of a database's ways to increment is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Sql {
    /// One statement that the database has for it
    #[default]
    Idiomatic,
    /// The statements of the document of 2015
    AsSeed,
}

/// How to talk to the stores.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which statements.
    pub sql: Sql,
    /// How long an answer may take before it counts as lost.
    pub timeout: Duration,
}

/// The kinds of stores there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// memcached's text protocol.
    Memcached,
    /// memcached's binary protocol.
    MemcachedBinary,
    /// memcached's meta commands.
    MemcachedMeta,
    /// redis.
    Redis,
    /// MariaDB or MySQL, a table of the MEMORY engine.
    MariadbMemory,
    /// MariaDB or MySQL, a table of the InnoDB engine.
    MariadbInnodb,
    /// The MEMORY table through an object-relational mapper.
    MariadbOrm,
    /// PostgreSQL, an ordinary table.
    Postgres,
    /// PostgreSQL, an unlogged table.
    PostgresUnlogged,
    /// MongoDB, or a server that speaks its protocol.
    Mongodb,
    /// A table in this process.
    MemoryStore,
    /// A library of Ruby, each connection a process.
    Ruby(Library),
    /// A counter that is wrong on purpose.
    BrokenRmw,
}

impl Kind {
    /// All, in the order to show them.
    pub const ALL: [Self; 17] = [
        Self::Memcached,
        Self::MemcachedBinary,
        Self::MemcachedMeta,
        Self::Redis,
        Self::MariadbMemory,
        Self::MariadbInnodb,
        Self::MariadbOrm,
        Self::Postgres,
        Self::PostgresUnlogged,
        Self::Mongodb,
        Self::MemoryStore,
        Self::Ruby(Library::RackAttack),
        Self::Ruby(Library::Dalli),
        Self::Ruby(Library::Redis),
        Self::Ruby(Library::Mysql2),
        Self::Ruby(Library::Pg),
        Self::BrokenRmw,
    ];

    /// Those of the document of 2015, and the two that are told from theirs by durability alone: a run
    /// without one of them notes it.
    pub const EXPECTED: [Self; 8] = [
        Self::Memcached,
        Self::Redis,
        Self::MariadbMemory,
        Self::MariadbInnodb,
        Self::MariadbOrm,
        Self::Postgres,
        Self::PostgresUnlogged,
        Self::Mongodb,
    ];

    /// The protocol in which a server that does nothing can take its place; none for a driver's own.
    pub fn null_protocol(self) -> Option<Protocol> {
        match self {
            Self::Memcached => Some(Protocol::Text),
            Self::MemcachedMeta => Some(Protocol::Meta),
            Self::MemcachedBinary => Some(Protocol::Binary),
            _ => None,
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memcached => "memcached",
            Self::MemcachedBinary => "memcached-binary",
            Self::MemcachedMeta => "memcached-meta",
            Self::Redis => "redis",
            Self::MariadbMemory => "mariadb-memory",
            Self::MariadbInnodb => "mariadb-innodb",
            Self::MariadbOrm => "mariadb-orm",
            Self::Postgres => "postgres",
            Self::PostgresUnlogged => "postgres-unlogged",
            Self::Mongodb => "mongodb",
            Self::MemoryStore => "memory-store",
            Self::Ruby(library) => library.name(),
            Self::BrokenRmw => "broken-rmw",
        }
    }

    /// The kind of that name. Larder speaks memcached, so `larder` is the same as `memcached`.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.replacen("larder", "memcached", 1);
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns a description in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Memcached => "any memcached server, text protocol",
            Self::MemcachedBinary => "any memcached server, binary protocol",
            Self::MemcachedMeta => "any memcached server, meta commands",
            Self::Redis => "redis, or what speaks its protocol",
            Self::MariadbMemory => "MariaDB, a table ENGINE=MEMORY",
            Self::MariadbInnodb => "MariaDB, a table ENGINE=InnoDB",
            Self::MariadbOrm => "MariaDB, ENGINE=MEMORY, through the ORM sea-orm",
            Self::Postgres => "PostgreSQL, a logged table",
            Self::PostgresUnlogged => "PostgreSQL, an unlogged table",
            Self::Mongodb => "MongoDB, or what speaks its wire",
            Self::MemoryStore => "a table in this process, as an application of one process has it",
            Self::Ruby(library) => library.about(),
            Self::BrokenRmw => "wrong on purpose: get, then set, over memcached; must be caught",
        }
    }

    /// An address as it may be given.
    pub fn example(self) -> &'static str {
        match self {
            Self::Memcached
            | Self::MemcachedBinary
            | Self::MemcachedMeta
            | Self::Ruby(Library::RackAttack | Library::Dalli)
            | Self::BrokenRmw => "127.0.0.1:11211",
            Self::MemoryStore => "here",
            Self::Redis | Self::Ruby(Library::Redis) => "redis://127.0.0.1:6379/15",
            Self::MariadbMemory | Self::MariadbInnodb | Self::MariadbOrm | Self::Ruby(Library::Mysql2) => {
                "mysql://user:password@127.0.0.1:3306/"
            }
            Self::Postgres | Self::PostgresUnlogged | Self::Ruby(Library::Pg) => {
                "postgres://user:password@127.0.0.1:5432/database"
            }
            Self::Mongodb => "mongodb://127.0.0.1:27017/",
        }
    }

    /// Returns the statements that run before the first increment, if any.
    pub fn schema(self, sql: Sql) -> Option<String> {
        match self {
            Self::MariadbMemory | Self::MariadbOrm => Some(MySqlTable::MEMORY.schema()),
            Self::MariadbInnodb => Some(MySqlTable::INNODB.schema()),
            Self::Postgres => Some(PostgresTable::LOGGED.schema(sql)),
            Self::PostgresUnlogged => Some(PostgresTable::UNLOGGED.schema(sql)),
            Self::Ruby(library) => library.schema(sql),
            _ => None,
        }
    }

    /// The exact request or statement of one increment.
    pub fn statement(self, sql: Sql) -> String {
        match self {
            Self::Memcached => memcached::TEXT_STATEMENT.into(),
            Self::MemcachedMeta => memcached::META_STATEMENT.into(),
            Self::MemcachedBinary => memcached::BINARY_STATEMENT.into(),
            Self::Redis => statements::REDIS.into(),
            Self::MariadbMemory => MySqlTable::MEMORY.statement(sql),
            Self::MariadbInnodb => MySqlTable::INNODB.statement(sql),
            Self::MariadbOrm => statements::orm(sql),
            Self::Postgres => PostgresTable::LOGGED.statement(sql),
            Self::PostgresUnlogged => PostgresTable::UNLOGGED.statement(sql),
            Self::Mongodb => statements::mongodb(sql).into(),
            Self::MemoryStore => memory::STATEMENT.into(),
            Self::Ruby(library) => library.statement(sql),
            Self::BrokenRmw => broken::STATEMENT.into(),
        }
    }

    /// Returns the request that removes the counter.
    pub fn reset(self) -> String {
        match self {
            Self::Memcached | Self::MemcachedBinary | Self::MemcachedMeta | Self::BrokenRmw => {
                format!("delete {KEY}")
            }
            Self::MemoryStore => memory::RESET.into(),
            Self::Ruby(library) => library.reset(),
            Self::Redis => format!("DEL {KEY}"),
            Self::MariadbMemory | Self::MariadbOrm => MySqlTable::MEMORY.reset(),
            Self::MariadbInnodb => MySqlTable::INNODB.reset(),
            Self::Postgres => PostgresTable::LOGGED.reset(),
            Self::PostgresUnlogged => PostgresTable::UNLOGGED.reset(),
            Self::Mongodb => statements::MONGODB_RESET.into(),
        }
    }

    /// The store at an address. Nothing is sent yet; an address that cannot be understood is an error.
    pub fn open(self, address: &str, options: Options) -> Result<Box<dyn Store>, Error> {
        Ok(match self {
            Self::Memcached => Box::new(Memcached::new(address, options, Protocol::Text)),
            Self::MemcachedMeta => Box::new(Memcached::new(address, options, Protocol::Meta)),
            Self::MemcachedBinary => Box::new(Memcached::new(address, options, Protocol::Binary)),
            Self::MemoryStore => Box::new(memory::Memory::default()),
            Self::Ruby(library) => Box::new(OfRuby::new(library, address, options)),
            Self::BrokenRmw => Box::new(broken::Broken::new(address, options)),
            _ => return self.open_database(address, options),
        })
    }

    /// Whether this build can open it: databases and redis need the feature `drivers`.
    pub fn is_built(self) -> bool {
        let needs_driver = !matches!(
            self,
            Self::Memcached
                | Self::MemcachedBinary
                | Self::MemcachedMeta
                | Self::MemoryStore
                | Self::Ruby(_)
                | Self::BrokenRmw
        );
        cfg!(feature = "drivers") || !needs_driver
    }

    #[cfg(feature = "drivers")]
    fn open_database(self, address: &str, options: Options) -> Result<Box<dyn Store>, Error> {
        let store = databases::open(self, address, options)?;
        store.ok_or_else(|| Error(format!("{} has no driver", self.name())))
    }

    #[cfg(not(feature = "drivers"))]
    fn open_database(self, _address: &str, _options: Options) -> Result<Box<dyn Store>, Error> {
        Err(Error(NO_DRIVERS.into()))
    }
}
