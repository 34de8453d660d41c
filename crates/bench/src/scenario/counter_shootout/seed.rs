//! The figures of the document: Ruby clients on 8 hardware threads at 3.4 GHz, ten minutes a point, 2015.

use super::mongodb;
use crate::checks::figure;
use crate::result::Table;
use crate::scenario::part::table;

/// Requests a second of one store with 1 to 10 threads.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// The document's name for it.
    pub name: &'static str,
    /// Which of our stores it is to be compared with.
    store: &'static str,
    /// With 1 to 10 threads.
    pub rates: [f64; 10],
}

impl Line {
    /// The number of threads with the highest rate.
    pub fn best(&self) -> usize {
        let best = self.rates.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        best.map_or(0, |(at, _)| at + 1)
    }
}

static LINES: [Line; 7] = [
    Line {
        name: "memcache",
        store: "memcached",
        rates: [29179.6, 25135.3, 16787.2, 13725.1, 12571.7, 11996.6, 12357.7, 12330.0, 13205.5, 12956.2],
    },
    Line {
        name: "mongo",
        store: "mongodb",
        rates: [3524.0, 3777.4, 2725.8, 2307.4, 2168.9, 2144.9, 2215.8, 2251.5, 2319.5, 2307.0],
    },
    Line {
        name: "mysql",
        store: "mariadb-memory",
        rates: [8927.8, 9680.9, 6644.4, 6750.9, 6714.9, 6559.2, 6591.9, 6539.6, 6566.0, 6546.7],
    },
    Line {
        name: "mysql_active_record",
        store: "mariadb-orm",
        rates: [5287.2, 5249.0, 4009.5, 3897.2, 3772.1, 3833.1, 3935.5, 3862.8, 3749.4, 3853.7],
    },
    Line {
        name: "mysql_innodb",
        store: "mariadb-innodb",
        rates: [22.6, 23.1, 31.8, 37.5, 43.4, 48.7, 53.5, 57.7, 62.0, 65.2],
    },
    Line {
        name: "postgresql",
        store: "postgres-unlogged",
        rates: [7551.9, 12391.4, 15058.6, 16037.5, 15246.0, 13346.3, 11881.9, 11324.4, 11000.7, 10858.9],
    },
    Line {
        name: "redis",
        store: "redis",
        rates: [36835.5, 35974.1, 23178.4, 18584.6, 15858.3, 16500.6, 16161.5, 16496.6, 16851.2, 16858.1],
    },
];

/// The line of one of our stores. Larder stands beside memcached's, and a library of Ruby beside its server's.
pub fn line_of(store: &str) -> Option<&'static Line> {
    let store = match store {
        "larder" | "ruby-dalli" => "memcached",
        "ruby-redis" => "redis",
        "ruby-mysql2" => "mariadb-memory",
        "ruby-pg" => "postgres-unlogged",
        mongodb::LABEL => "mongodb",
        _ => store,
    };
    LINES.iter().find(|line| line.store == store)
}

/// The document's figure as a table.
pub fn tables() -> Vec<Table> {
    let mut columns = vec!["threads".to_string()];
    columns.extend(LINES.iter().map(|line| line.name.replace('_', " ")));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let rows = (0..10).map(|at| {
        let cells = LINES.iter().map(|line| figure(line.rates[at].round()));
        std::iter::once((at + 1).to_string()).chain(cells).collect()
    });
    vec![table("counter-shootout: the document (requests a second, 2015)", &columns, rows.collect())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_belongs_to_a_store_of_ours() {
        for line in &LINES {
            assert!(crate::counter::store::Kind::named(line.store).is_some(), "{}", line.store);
        }
        assert_eq!(line_of("larder").map(|line| line.name), Some("memcache"));
        assert_eq!(line_of("postgres-unlogged").map(Line::best), Some(4));
        assert_eq!(line_of("ruby-pg").map(|line| line.name), Some("postgresql"));
        assert_eq!(line_of(mongodb::LABEL).map(|line| line.name), Some("mongo"));
        assert!(line_of("postgres").is_none() && line_of("rack-attack").is_none());
    }
}
