//! `larder-bench tier`: what a tier in front of a user's own server gains.

use super::scenario::{self, Common};
use super::{Exit, Failure, choices, output};
use crate::net::Address;
use crate::scenario::Options;
use crate::scenario::perl_tiers::TIER;
use crate::workload::parse;
use std::time::Duration;

/// Measure what a cache in two tiers gains in front of a server that runs already: gets, sets, and both, by
/// Larder's client, by Perl's and Python's caches, of values of several sizes, at several distances.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server: HOST, HOST:PORT or unix:PATH. One item is stored in it, for an hour
    #[arg(short, long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = choices::address)]
    server: Address,
    /// What to run on it
    #[command(flatten)]
    choices: choices::Args,
    /// How long all loops together may take, about
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = parse::duration)]
    budget: Duration,
    /// Where results go
    #[command(flatten)]
    common: Common,
}

/// Runs the command.
///
/// # Errors
/// Nothing could be run, or the result could not be written.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    let failed = |error: crate::net::Error| Failure::error(error);
    crate::net::reach(&args.server, crate::wire::Protocol::Text, None, None).map_err(failed)?;
    let wanted = args.choices.wanted(Some(args.server.clone()))?;
    let options = Options { wanted, ..Options::default() };
    let title = format!("A tier in front of {}", args.server);
    scenario::play(&args.common, &[TIER], args.budget, &options, title, output::width())
}
