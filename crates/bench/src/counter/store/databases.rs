//! Stores whose drivers are libraries: the one folder that the feature `drivers` builds.

mod mongodb;
mod mysql;
mod orm;
mod postgres;
mod redis;
mod session;

use super::statements::{MySqlTable, PostgresTable};
use super::{Error, Kind, Options, Store};

/// Returns the store at an address; none for a kind that needs no driver.
///
/// # Errors
/// The address is malformed.
pub fn open(kind: Kind, address: &str, options: Options) -> Result<Option<Box<dyn Store>>, Error> {
    Ok(Some(match kind {
        Kind::Redis => Box::new(redis::Redis::new(address, options)?),
        Kind::MariadbMemory => Box::new(mysql::MySql::new(address, options, MySqlTable::MEMORY)?),
        Kind::MariadbInnodb => Box::new(mysql::MySql::new(address, options, MySqlTable::INNODB)?),
        Kind::MariadbOrm => Box::new(orm::Orm::new(address, options)?),
        Kind::Postgres => Box::new(postgres::Postgres::new(address, options, PostgresTable::LOGGED)?),
        Kind::PostgresUnlogged => {
            Box::new(postgres::Postgres::new(address, options, PostgresTable::UNLOGGED)?)
        }
        Kind::Mongodb => Box::new(mongodb::MongoDb::new(address, options)?),
        Kind::Memcached
        | Kind::MemcachedBinary
        | Kind::MemcachedMeta
        | Kind::MemoryStore
        | Kind::Ruby(_)
        | Kind::BrokenRmw => return Ok(None),
    }))
}
