//! The figures of a server at one time: what `stats` and `stats larder` show.

use std::collections::BTreeMap;
use std::time::Instant;

use larder_client::{Client, Error};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::exit::Outcome;
use crate::http::{HttpSource, text_of};

/// The names and values of `stats`, and of `stats larder` where the server has it.
#[derive(Clone, Debug)]
pub struct Figures {
    /// When they were asked for.
    pub at: Instant,
    /// Whether the server is Larder.
    pub is_larder: bool,
    values: BTreeMap<String, String>,
}

impl Figures {
    /// Asks a server.
    ///
    /// # Errors
    /// It cannot be asked.
    pub fn ask(client: &Client) -> Outcome<Figures> {
        let at = Instant::now();
        let larder = match stats(client, "larder") {
            // memcached has no such statistics.
            Err(Error::Refused { .. }) => Vec::new(),
            larder => larder?,
        };
        Ok(Figures::new(at, stats(client, "")?, larder))
    }

    /// Asks a daemon over HTTP.
    ///
    /// # Errors
    /// It cannot be asked.
    pub fn over_http(http: &HttpSource) -> Outcome<Figures> {
        #[derive(Deserialize)]
        struct Stats {
            stats: Map<String, Value>,
            larder: Map<String, Value>,
        }
        let lines = |values: Map<String, Value>| {
            values.into_iter().map(|(name, value)| (name, text_of(&value))).collect()
        };
        let at = Instant::now();
        let Stats { stats, larder } = http.json("/api/v1/stats")?;
        Ok(Figures::new(at, lines(stats), lines(larder)))
    }

    /// Returns the figures of the lines of `stats` and of `stats larder`, of which memcached has none.
    pub fn new(at: Instant, general: Vec<(String, String)>, larder: Vec<(String, String)>) -> Figures {
        let is_larder = !larder.is_empty();
        // The names of `stats larder` that `stats` has too are put in the end.
        let own = larder.into_iter().map(|(name, value)| match name.as_str() {
            "version" => ("larder_version".to_string(), value),
            _ => (name, value),
        });
        Figures { at, is_larder, values: general.into_iter().chain(own).collect() }
    }

    /// Returns a value as it was sent.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Returns a number; `None` if the server has none of that name.
    pub fn get(&self, name: &str) -> Option<u64> {
        // Some versions show whole numbers with a fraction.
        let whole = self.text(name)?.split('.').next().unwrap_or_default();
        whole.parse().ok()
    }

    /// Returns the sum of those of some numbers that the server has.
    pub fn sum(&self, names: &[&str]) -> u64 {
        names.iter().filter_map(|name| self.get(name)).sum()
    }

    /// Makes figures without a server.
    #[cfg(test)]
    pub fn of(at: Instant, is_larder: bool, values: &[(&str, u64)]) -> Figures {
        let values = values.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Figures { at, is_larder, values }
    }
}

/// Returns the statistics of one kind.
pub fn stats(client: &Client, kind: &str) -> larder_client::Result<Vec<(String, String)>> {
    client.stats(kind).into_iter().next().unwrap_or(Err(Error::NoServers))
}
