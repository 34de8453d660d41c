//! The exact statements that databases and redis are sent, as text: they are listed in builds without drivers
//! too.

use super::Sql;

/// Increments the counter of redis.
pub const REDIS: &str = "INCR larder-bench-counter";

/// A table of MariaDB or MySQL, and its engine.
#[derive(Clone, Copy, Debug)]
pub struct MySqlTable {
    name: &'static str,
    engine: &'static str,
}

impl MySqlTable {
    /// In memory, with a lock for the table.
    pub const MEMORY: Self = Self { name: "larder_bench.cache", engine: "MEMORY" };
    /// Durable, with locks for rows.
    pub const INNODB: Self = Self { name: "larder_bench.cache_innodb", engine: "InnoDB" };

    /// Returns the statements that create it.
    pub fn schema(self) -> String {
        let Self { name, engine } = self;
        format!(
            "CREATE DATABASE IF NOT EXISTS larder_bench; DROP TABLE IF EXISTS {name}; \
             CREATE TABLE {name} (`key` varchar(255) NOT NULL, `value` int(11) NOT NULL, \
             PRIMARY KEY (`key`) USING HASH) ENGINE={engine} DEFAULT CHARSET=utf8"
        )
    }

    /// Returns the statement that increments the counter.
    pub fn statement(self, sql: Sql) -> String {
        let name = self.name;
        match sql {
            Sql::Idiomatic => format!(
                "INSERT INTO {name} VALUES ('counter', LAST_INSERT_ID(1)) \
                 ON DUPLICATE KEY UPDATE `value` = LAST_INSERT_ID(`value` + 1)"
            ),
            Sql::AsSeed => format!(
                "LOCK TABLES {name} WRITE; INSERT INTO {name} VALUES ('counter', 1) \
                 ON DUPLICATE KEY UPDATE `value` = `value` + 1; \
                 SELECT `value` FROM {name} WHERE `key` = 'counter'; UNLOCK TABLES"
            ),
        }
    }

    /// Returns the statement that empties it.
    pub fn reset(self) -> String {
        format!("TRUNCATE TABLE {}", self.name)
    }

    /// Returns the statement that reads the counter.
    pub fn read(self) -> String {
        format!("SELECT `value` FROM {} WHERE `key` = 'counter'", self.name)
    }
}

/// A table of PostgreSQL, and whether it survives a crash.
#[derive(Clone, Copy, Debug)]
pub struct PostgresTable {
    name: &'static str,
    is_logged: bool,
}

impl PostgresTable {
    /// Durable.
    pub const LOGGED: Self = Self { name: "larder_bench_cache", is_logged: true };
    /// Empty after a crash, as in the document of 2015.
    pub const UNLOGGED: Self = Self { name: "larder_bench_cache_unlogged", is_logged: false };

    /// Returns the statements that create it.
    pub fn schema(self, sql: Sql) -> String {
        let Self { name, is_logged } = self;
        let unlogged = if is_logged { "" } else { "UNLOGGED " };
        let table = format!(
            "DROP TABLE IF EXISTS {name}; \
             CREATE {unlogged}TABLE {name} (key varchar(1024) PRIMARY KEY, value integer NOT NULL)"
        );
        match sql {
            Sql::Idiomatic => table,
            Sql::AsSeed => format!(
                "{table}; CREATE OR REPLACE FUNCTION {name}_upsertism(k text) RETURNS integer \
                 LANGUAGE plpgsql AS $$ DECLARE v integer; BEGIN \
                 INSERT INTO {name} VALUES (k, 1) RETURNING value INTO v; RETURN v; \
                 EXCEPTION WHEN unique_violation THEN \
                 UPDATE {name} SET value = value + 1 WHERE key = k RETURNING value INTO v; RETURN v; \
                 END $$"
            ),
        }
    }

    /// Returns the statement that increments the counter.
    pub fn statement(self, sql: Sql) -> String {
        let name = self.name;
        match sql {
            Sql::Idiomatic => format!(
                "INSERT INTO {name} AS c VALUES ('counter', 1) \
                 ON CONFLICT (key) DO UPDATE SET value = c.value + 1 RETURNING value"
            ),
            Sql::AsSeed => format!("SELECT {name}_upsertism('counter')"),
        }
    }

    /// Returns the statement that empties it.
    pub fn reset(self) -> String {
        format!("TRUNCATE TABLE {}", self.name)
    }

    /// Returns the statement that reads the counter.
    pub fn read(self) -> String {
        format!("SELECT value FROM {} WHERE key = 'counter'", self.name)
    }
}

/// Empties the collection of MongoDB.
pub const MONGODB_RESET: &str = "larder_bench.cache.deleteMany({})";

/// Increments the counter of MongoDB.
pub fn mongodb(sql: Sql) -> &'static str {
    match sql {
        Sql::Idiomatic => {
            "larder_bench.cache.findOneAndUpdate({_id: 'counter'}, {$inc: {counter: 1}}, {upsert: true, \
             returnDocument: 'after'})"
        }
        Sql::AsSeed => {
            "larder_bench.cache.findOneAndUpdate({}, {$inc: {counter: 1}}, {upsert: true, \
             returnDocument: 'after'})"
        }
    }
}

/// Increments the counter through the mapper, in its own words.
pub fn orm(sql: Sql) -> String {
    match sql {
        Sql::Idiomatic => "Query::insert().into_table(Entity).columns([Key, Value]).values(['counter', \
                           LAST_INSERT_ID(1)]).on_conflict(Key: Value = LAST_INSERT_ID(value + 1)), rendered \
                           for each increment, run as a prepared statement; its last_insert_id()"
            .into(),
        Sql::AsSeed => "LOCK TABLES larder_bench.cache WRITE; INSERT INTO larder_bench.cache VALUES \
                        ('counter', 1) ON DUPLICATE KEY UPDATE `value` = `value` + 1 in one request, \
                        Entity::find_by_id('counter'), UNLOCK TABLES"
            .into(),
    }
}
