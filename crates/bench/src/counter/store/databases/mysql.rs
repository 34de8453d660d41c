//! A counter in a table of MariaDB or MySQL.

use super::session::Session;
use crate::counter::store::statements::MySqlTable;
use crate::counter::store::{Error, Failure, Options, Sql, Store, Worker};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts, OptsBuilder, Statement};

/// A server and a table in it.
pub struct MySql {
    opts: Opts,
    options: Options,
    table: MySqlTable,
}

impl MySql {
    /// At an address that begins with `mysql://` or `mariadb://`.
    pub fn new(address: &str, options: Options, table: MySqlTable) -> Result<Self, Error> {
        let address = address.replacen("mariadb://", "mysql://", 1);
        let opts = Opts::from_url(&address).map_err(|error| Error(error.to_string()))?;
        // The database in the address need not exist; ours is named in every statement. A driver that leaves
        // TCP for the server's socket by itself would measure another transport.
        let opts = OptsBuilder::from_opts(opts).db_name(None::<String>).prefer_socket(false);
        Ok(Self { opts: opts.into(), options, table })
    }

    fn connection(&self) -> Result<(Session, Conn), Error> {
        let session = Session::new(self.options.timeout)?;
        let connection = session.wait(Conn::new(self.opts.clone()), error)?;
        Ok((session, connection))
    }

    fn first(&self, sql: &str) -> Result<Option<String>, Error> {
        let (session, mut connection) = self.connection()?;
        let found = session.wait(connection.query_first(sql), error)?;
        // A server that counts connections cut short would have one more.
        session.wait(connection.disconnect(), error)?;
        Ok(found)
    }
}

impl Store for MySql {
    fn version(&self) -> Result<String, Error> {
        Ok(self.first("SELECT VERSION()")?.unwrap_or_else(|| "unknown".into()))
    }

    fn prepare(&self) -> Result<(), Error> {
        self.table.schema().split("; ").try_for_each(|sql| self.first(sql).map(drop))
    }

    fn reset(&self) -> Result<(), Error> {
        self.first(&self.table.reset()).map(drop)
    }

    fn connect(&self) -> Result<Box<dyn Worker>, Error> {
        let (session, mut connection) = self.connection()?;
        let sql = self.table.statement(self.options.sql);
        Ok(match self.options.sql {
            Sql::AsSeed => Box::new(Locking { session, connection, sql }),
            Sql::Idiomatic => {
                let statement = session.wait(connection.prep(sql), error)?;
                Box::new(Upserting { session, connection, statement })
            }
        })
    }

    fn read(&self) -> Result<u64, Error> {
        match self.first(&self.table.read())? {
            None => Ok(0),
            Some(value) => value.parse().map_err(|_| Error(format!("the counter holds {value:?}"))),
        }
    }
}

/// One prepared statement; the value comes with its acknowledgement.
struct Upserting {
    session: Session,
    connection: Conn,
    statement: Statement,
}

impl Worker for Upserting {
    fn increment(&mut self) -> Result<u64, Failure> {
        self.session.increment(self.connection.exec_drop(&self.statement, ()), |error| match error {
            mysql_async::Error::Server(answer) if is_refusal(answer.code) => {
                Failure::Refused(answer.to_string())
            }
            error => Failure::Lost(error.to_string()),
        })?;
        let value = self.connection.last_insert_id();
        value.ok_or_else(|| Failure::Lost("the acknowledgement holds no value".into()))
    }
}

/// Four statements in one request. An error may come after the update, so it is never a refusal.
struct Locking {
    session: Session,
    connection: Conn,
    sql: String,
}

impl Worker for Locking {
    fn increment(&mut self) -> Result<u64, Failure> {
        let Self { session, connection, sql } = self;
        let answers = async {
            let mut result = connection.query_iter(&*sql).await?;
            let mut values: Vec<u64> = Vec::new();
            while !result.is_empty() {
                values.extend(result.collect::<u64>().await?);
            }
            Ok::<_, mysql_async::Error>(values)
        };
        let values = session.increment(answers, |error| Failure::Lost(error.to_string()))?;
        match values[..] {
            [value] => Ok(value),
            _ => Err(Failure::Lost(format!("{} values instead of one", values.len()))),
        }
    }
}

/// Whether a server's error refuses the one statement, and not the whole connection:
/// not "shutdown in progress", "connection was killed" and "query was interrupted".
pub fn is_refusal(code: u16) -> bool {
    ![1053, 1317, 1927].contains(&code)
}

fn error(error: mysql_async::Error) -> Error {
    Error(error.to_string())
}
