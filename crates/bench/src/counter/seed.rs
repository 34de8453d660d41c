//! The figures of the document that this comparison follows: a Ruby client of 2015 on an i7-4770, ten minutes
//! a point.

/// Increments a second of one store with 1 to 10 threads.
pub type Row = (&'static str, [f64; 10]);

/// The document's own names and figures, in its order.
pub const RATES: [Row; 7] = [
    ("memcache", [29179.6, 25135.3, 16787.2, 13725.1, 12571.7, 11996.6, 12357.7, 12330.0, 13205.5, 12956.2]),
    ("mongo", [3524.0, 3777.4, 2725.8, 2307.4, 2168.9, 2144.9, 2215.8, 2251.5, 2319.5, 2307.0]),
    ("mysql", [8927.8, 9680.9, 6644.4, 6750.9, 6714.9, 6559.2, 6591.9, 6539.6, 6566.0, 6546.7]),
    ("mysql_active_record", [5287.2, 5249.0, 4009.5, 3897.2, 3772.1, 3833.1, 3935.5, 3862.8, 3749.4, 3853.7]),
    ("mysql_innodb", [22.6, 23.1, 31.8, 37.5, 43.4, 48.7, 53.5, 57.7, 62.0, 65.2]),
    ("postgresql", [7551.9, 12391.4, 15058.6, 16037.5, 15246.0, 13346.3, 11881.9, 11324.4, 11000.7, 10858.9]),
    ("redis", [36835.5, 35974.1, 23178.4, 18584.6, 15858.3, 16500.6, 16161.5, 16496.6, 16851.2, 16858.1]),
];

/// The row that corresponds to a row of the document, with `--sql as-seed`. Its PostgreSQL table was
/// unlogged.
pub fn ours(theirs: &str) -> Option<&'static str> {
    Some(match theirs {
        "memcache" => "memcached-binary",
        "mongo" => "mongodb",
        "mysql" => "mariadb-memory",
        "mysql_active_record" => "mariadb-orm",
        "mysql_innodb" => "mariadb-innodb",
        "postgresql" => "postgres-unlogged",
        "redis" => "redis",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::store::Kind;

    #[test]
    fn each_of_their_rows_has_one_of_ours() {
        assert!(RATES.iter().all(|(theirs, _)| ours(theirs).and_then(Kind::named).is_some()));
    }
}
