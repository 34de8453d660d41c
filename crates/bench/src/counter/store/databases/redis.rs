//! A counter in redis, or in a server that speaks its protocol.

use crate::counter::store::{Error, Failure, KEY, Options, Store, Worker};
use redis::{Client, Connection, RedisError, cmd};

/// A server.
pub struct Redis {
    client: Client,
    options: Options,
}

impl Redis {
    /// At `host:port` or at an address that begins with `redis://` or `unix://`.
    pub fn new(address: &str, options: Options) -> Result<Self, Error> {
        let address = match address.strip_prefix("unix:") {
            Some(path) => format!("redis+unix://{}", path.strip_prefix("//").unwrap_or(path)),
            None if address.contains("://") => address.into(),
            None => format!("redis://{address}/"),
        };
        Ok(Self { client: Client::open(address).map_err(error)?, options })
    }

    fn connection(&self) -> Result<Connection, Error> {
        let connection = self.client.get_connection_with_timeout(self.options.timeout).map_err(error)?;
        connection.set_read_timeout(Some(self.options.timeout)).map_err(error)?;
        connection.set_write_timeout(Some(self.options.timeout)).map_err(error)?;
        Ok(connection)
    }
}

impl Store for Redis {
    fn version(&self) -> Result<String, Error> {
        let info: String = cmd("INFO").arg("server").query(&mut self.connection()?).map_err(error)?;
        let fact = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        Ok(match (fact("valkey_version"), fact("redis_version")) {
            (Some(version), _) => format!("valkey {version}"),
            (None, Some(version)) => version.into(),
            (None, None) => "unknown".into(),
        })
    }

    fn prepare(&self) -> Result<(), Error> {
        Ok(())
    }

    fn reset(&self) -> Result<(), Error> {
        cmd("DEL").arg(KEY).exec(&mut self.connection()?).map_err(error)
    }

    fn connect(&self) -> Result<Box<dyn Worker>, Error> {
        Ok(Box::new(Incrementing(self.connection()?)))
    }

    fn read(&self) -> Result<u64, Error> {
        let value: Option<u64> = cmd("GET").arg(KEY).query(&mut self.connection()?).map_err(error)?;
        Ok(value.unwrap_or(0))
    }
}

struct Incrementing(Connection);

impl Worker for Incrementing {
    fn increment(&mut self) -> Result<u64, Failure> {
        cmd("INCR").arg(KEY).query(&mut self.0).map_err(|error| {
            // Only the server's own errors have a code, and they mean that nothing was done.
            let is_answer = error.code().is_some() && !error.is_unrecoverable_error();
            if is_answer { Failure::Refused(error.to_string()) } else { Failure::Lost(error.to_string()) }
        })
    }
}

fn error(error: RedisError) -> Error {
    Error(error.to_string())
}
