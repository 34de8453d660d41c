//! The counter of the MEMORY table, through an object-relational mapper.

use super::mysql::{MySql, is_refusal};
use super::session::Session;
use crate::counter::store::statements::MySqlTable;
use crate::counter::store::{Error, Failure, Options, Sql, Store, Worker};
use sea_orm::sea_query::{Expr, ExprTrait as _, Func, InsertStatement, OnConflict, Query};
use sea_orm::{
    ConnectOptions, ConnectionTrait as _, Database, DatabaseConnection, DbErr, EntityName as _,
    EntityTrait as _, RuntimeErr,
};

/// The table as the mapper sees it.
mod cache {
    use sea_orm::entity::prelude::*;

    /// A row.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(schema_name = "larder_bench", table_name = "cache")]
    pub struct Model {
        /// The counter's name.
        #[sea_orm(primary_key, auto_increment = false)]
        pub key: String,
        /// Its value.
        pub value: i32,
    }

    /// It stands alone.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

const LOCK_AND_INSERT: &str = "LOCK TABLES larder_bench.cache WRITE; INSERT INTO larder_bench.cache VALUES \
                               ('counter', 1) ON DUPLICATE KEY UPDATE `value` = `value` + 1";

/// A server.
pub struct Orm {
    address: String,
    plain: MySql,
    options: Options,
}

impl Orm {
    /// At an address that begins with `mysql://` or `mariadb://`.
    pub fn new(address: &str, options: Options) -> Result<Self, Error> {
        let plain = MySql::new(address, options, MySqlTable::MEMORY)?;
        Ok(Self { address: address.replacen("mariadb://", "mysql://", 1), plain, options })
    }
}

impl Store for Orm {
    fn version(&self) -> Result<String, Error> {
        Ok(format!("{}, sea-orm", self.plain.version()?))
    }

    fn prepare(&self) -> Result<(), Error> {
        self.plain.prepare()
    }

    fn reset(&self) -> Result<(), Error> {
        self.plain.reset()
    }

    fn connect(&self) -> Result<Box<dyn Worker>, Error> {
        let session = Session::new(self.options.timeout)?;
        let mut options = ConnectOptions::new(self.address.as_str());
        // One connection a thread, as for the others, and no other requests than the increments.
        options.max_connections(1).min_connections(1).test_before_acquire(false).sqlx_logging(false);
        options.connect_timeout(self.options.timeout).acquire_timeout(self.options.timeout);
        let database = session.wait(Database::connect(options), |error| Error(error.to_string()))?;
        Ok(match self.options.sql {
            Sql::Idiomatic => Box::new(Upserting { session, database, insert: insert() }),
            Sql::AsSeed => Box::new(Locking { session, database }),
        })
    }

    fn read(&self) -> Result<u64, Error> {
        self.plain.read()
    }
}

/// The mapper renders the statement each time, as it does for an application; the value comes with its
/// acknowledgement.
struct Upserting {
    session: Session,
    database: DatabaseConnection,
    insert: InsertStatement,
}

impl Worker for Upserting {
    fn increment(&mut self) -> Result<u64, Failure> {
        let result = self.session.increment(self.database.execute(&self.insert), failure)?;
        Ok(result.last_insert_id())
    }
}

fn insert() -> InsertStatement {
    use cache::Column::{Key, Value};
    let last_insert_id = |value: Expr| Func::cust("LAST_INSERT_ID").arg(value);
    let mut insert = Query::insert();
    insert.into_table(cache::Entity.table_ref()).columns([Key, Value]);
    insert.values_panic([Expr::val("counter"), last_insert_id(Expr::val(1)).into()]);
    let next = last_insert_id(Expr::col(Value).add(1));
    insert.on_conflict(OnConflict::column(Key).value(Value, next).to_owned());
    insert
}

struct Locking {
    session: Session,
    database: DatabaseConnection,
}

impl Worker for Locking {
    fn increment(&mut self) -> Result<u64, Failure> {
        let Self { session, database } = self;
        let done = async {
            database.execute_unprepared(LOCK_AND_INSERT).await?;
            let row = cache::Entity::find_by_id("counter").one(&*database).await?;
            database.execute_unprepared("UNLOCK TABLES").await?;
            Ok(row)
        };
        // An error may come after the update, so it is never a refusal.
        let row = session.increment(done, |error: DbErr| Failure::Lost(error.to_string()))?;
        let value = row.and_then(|row| u64::try_from(row.value).ok());
        value.ok_or_else(|| Failure::Lost("the counter is gone".into()))
    }
}

fn failure(error: DbErr) -> Failure {
    let code = match &error {
        DbErr::Exec(RuntimeErr::SqlxError(error)) | DbErr::Query(RuntimeErr::SqlxError(error)) => error
            .as_database_error()
            .and_then(|answer| answer.try_downcast_ref::<sea_orm::sqlx::mysql::MySqlDatabaseError>())
            .map(|answer| answer.number()),
        _ => None,
    };
    match code {
        Some(code) if is_refusal(code) => Failure::Refused(error.to_string()),
        _ => Failure::Lost(error.to_string()),
    }
}
