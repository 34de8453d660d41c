//! The options with which a user runs the loops of `perl-tiers` on own servers, values and programs.

use super::Failure;
use crate::net::Address;
use crate::scenario::Wanted;
use crate::wire::Protocol;
use crate::workload::parse;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to run instead of the document's values and counts.
#[derive(Debug, Default, clap::Args)]
#[group(skip)]
pub struct Args {
    /// A local server that runs already, for the rows with one: HOST, HOST:PORT or unix:PATH
    #[arg(long, value_name = "ADDRESS", value_parser = address, help_heading = "Loops")]
    near: Option<Address>,
    /// Bytes of the values, such as 28579,100,4k; the first is reported in full
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse::bytes)]
    #[arg(help_heading = "Loops")]
    sizes: Vec<u32>,
    /// A file with the value
    #[arg(long, value_name = "FILE", conflicts_with = "sizes", help_heading = "Loops")]
    value: Option<PathBuf>,
    /// Iterations of a loop, in all rounds together [default: 50k]; items of php-loop, keys of memtier-sweep and of
    /// each server of fatcache-ssd, increments of counter-shootout at each number of threads
    #[arg(long, value_name = "N", value_parser = count, help_heading = "Loops")]
    count: Option<u64>,
    /// Times to add to a round trip to the remote server [default: 0,0.5ms,2ms]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse::duration)]
    #[arg(help_heading = "Loops")]
    distances: Vec<Duration>,
    /// The program of Larder's client [default: examples/tier_loops beside this one]
    #[arg(long, value_name = "PATH", help_heading = "Loops")]
    driver: Option<PathBuf>,
    /// A Python that has the modules to measure [default: python3]
    #[arg(long, value_name = "PATH", help_heading = "Loops")]
    python: Option<PathBuf>,
}

/// Reads the address of a server that speaks memcached's protocols.
///
/// # Errors
/// It is none.
pub fn address(text: &str) -> Result<Address, String> {
    match Address::parse(text, None, Protocol::Text)? {
        (address, Protocol::Text) => Ok(address),
        _ => Err("the loops speak memcached's protocols only".to_string()),
    }
}

fn count(text: &str) -> Result<u64, String> {
    match parse::count(text)? {
        0 => Err("a loop has one iteration at least".to_string()),
        count => Ok(count),
    }
}

impl Args {
    /// Returns the choices, with the user's own remote server if there is one.
    ///
    /// # Errors
    /// A file or program is not there.
    pub fn wanted(&self, server: Option<Address>) -> Result<Wanted, Failure> {
        Ok(Wanted {
            server,
            near: self.near.clone(),
            sizes: self.sizes.clone(),
            value: self.value.as_deref().map(|path| whole("--value", path)).transpose()?,
            count: self.count,
            distances: self.distances.clone(),
            driver: self.driver.as_deref().map(|path| whole("--driver", path)).transpose()?,
            python: self.python.as_deref().map(|path| named("--python", path)).transpose()?,
            ..Wanted::default()
        })
    }

    /// The options that were given, with `--server` or without.
    pub fn given(&self, server: Option<&Address>) -> Vec<&'static str> {
        let given = [
            ("--server", server.is_some()),
            ("--near", self.near.is_some()),
            ("--sizes", !self.sizes.is_empty()),
            ("--value", self.value.is_some()),
            ("--count", self.count.is_some()),
            ("--distances", !self.distances.is_empty()),
            ("--driver", self.driver.is_some()),
            ("--python", self.python.is_some()),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect()
    }
}

/// The whole path of a file, since workers run in another folder.
fn whole(option: &str, path: &Path) -> Result<PathBuf, Failure> {
    match path.canonicalize() {
        Ok(path) if path.is_file() => Ok(path),
        _ => Err(Failure::usage(format!("{option} {}: there is no such file", path.display()))),
    }
}

/// The path of a program, which may be a link that must not be followed: a virtual environment's Python is one.
fn named(option: &str, path: &Path) -> Result<PathBuf, Failure> {
    whole(option, path)?;
    std::path::absolute(path).map_err(|e| Failure::error(format!("{option} {}: {e}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_whole_paths_and_have_to_be_there() {
        let of = |path: &str| Args { value: Some(path.into()), ..Args::default() }.wanted(None);
        let wanted = of("Cargo.toml").expect("tests run beside it");
        assert!(wanted.value.is_some_and(|path| path.is_absolute()));
        assert!(of("/nowhere").is_err_and(|failure| failure.message.contains("--value /nowhere")));
    }

    #[test]
    fn what_was_given_is_named() {
        let some = Args { count: Some(7), ..Args::default() };
        let address = address("h:7").expect("it is one");
        assert_eq!(some.given(Some(&address)), ["--server", "--count"]);
        assert!(Args::default().given(None).is_empty());
        assert!(super::address("redis://h").is_err() && count("0").is_err());
    }
}
