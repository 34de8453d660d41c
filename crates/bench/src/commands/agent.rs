//! `larder-bench agent`: one host's part of a fleet's run. A coordinator starts it; people do not.

use super::{Exit, Failure};
use crate::engine::Plan;

/// One host's part of a fleet's run, started by a coordinator.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Serves a coordinator on the standard input and output.
///
/// # Errors
/// The input is malformed, or the output is closed.
pub fn run(_args: Args) -> Result<Exit, Failure> {
    crate::fleet::agent::serve(plan_of).map(|()| Exit::Ok).map_err(Failure::error)
}

/// Reads the arguments of `run` as [`super::run::plan_of`] does, with the error in words.
///
/// # Errors
/// They are malformed, or contradict each other.
pub fn plan_of(arguments: &[String]) -> Result<(Plan, bool), String> {
    super::run::plan_of(arguments).map_err(|failure| failure.message)
}
