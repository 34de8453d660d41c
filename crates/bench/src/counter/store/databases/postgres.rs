//! A counter in a table of PostgreSQL.

use super::session::Session;
use crate::counter::store::statements::PostgresTable;
use crate::counter::store::{Error, Failure, Options, Store, Worker};
use tokio_postgres::error::Severity;
use tokio_postgres::{Client, Config, NoTls, Row, Statement};

/// A server and a table in it.
pub struct Postgres {
    config: Config,
    options: Options,
    table: PostgresTable,
}

impl Postgres {
    /// At an address that begins with `postgres://` or `postgresql://`.
    pub fn new(address: &str, options: Options, table: PostgresTable) -> Result<Self, Error> {
        let mut config: Config = address.parse().map_err(error)?;
        config.connect_timeout(options.timeout).application_name("larder-bench");
        Ok(Self { config, options, table })
    }

    fn client(&self) -> Result<(Session, Client), Error> {
        let session = Session::new(self.options.timeout)?;
        let (client, connection) = session.wait(self.config.connect(NoTls), error)?;
        session.spawn(async {
            // An error of the connection is also that of the request that waits for it.
            let _ = connection.await;
        });
        Ok((session, client))
    }

    fn batch(&self, sql: &str) -> Result<(), Error> {
        let (session, client) = self.client()?;
        session.wait(client.batch_execute(sql), error)
    }
}

impl Store for Postgres {
    fn version(&self) -> Result<String, Error> {
        let (session, client) = self.client()?;
        let row = session.wait(client.query_one("SHOW server_version", &[]), error)?;
        row.try_get(0).map_err(error)
    }

    fn prepare(&self) -> Result<(), Error> {
        self.batch(&self.table.schema(self.options.sql))
    }

    fn reset(&self) -> Result<(), Error> {
        self.batch(&self.table.reset())
    }

    fn connect(&self) -> Result<Box<dyn Worker>, Error> {
        let (session, client) = self.client()?;
        let statement = session.wait(client.prepare(&self.table.statement(self.options.sql)), error)?;
        Ok(Box::new(Incrementing { session, client, statement }))
    }

    fn read(&self) -> Result<u64, Error> {
        let (session, client) = self.client()?;
        let row = session.wait(client.query_opt(&self.table.read(), &[]), error)?;
        match row {
            None => Ok(0),
            Some(row) => value(&row).map_err(Error),
        }
    }
}

struct Incrementing {
    session: Session,
    client: Client,
    statement: Statement,
}

impl Worker for Incrementing {
    fn increment(&mut self) -> Result<u64, Failure> {
        let row = self.session.increment(self.client.query_one(&self.statement, &[]), failure)?;
        value(&row).map_err(Failure::Lost)
    }
}

fn value(row: &Row) -> Result<u64, String> {
    let value: i32 = row.try_get(0).map_err(|error| error.to_string())?;
    u64::try_from(value).map_err(|_| format!("the counter holds {value}"))
}

/// An error of the statement undid it; one that ends the connection may have come after it.
fn failure(problem: tokio_postgres::Error) -> Failure {
    let answer = problem.as_db_error().filter(|answer| answer.parsed_severity() == Some(Severity::Error));
    let is_refusal = answer.is_some();
    let Error(why) = error(problem);
    if is_refusal { Failure::Refused(why) } else { Failure::Lost(why) }
}

/// The driver's own words name the step only; the server's or the system's say why.
fn error(problem: tokio_postgres::Error) -> Error {
    let mut words = problem.to_string();
    let mut source = std::error::Error::source(&problem);
    while let Some(inner) = source {
        let inner_words = inner.to_string();
        if !words.contains(&inner_words) {
            words = format!("{words}: {inner_words}");
        }
        source = inner.source();
    }
    Error(words)
}
