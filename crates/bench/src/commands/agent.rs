//! `larder-bench agent`: one host's part of a fleet's run. A coordinator starts it; people do not.

use super::{Exit, Failure};

/// One host's part of a fleet's run, started by a coordinator.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Serves a coordinator on the standard input and output.
///
/// # Errors
/// What comes in is no message, or nothing can be said any more.
pub fn run(_args: Args) -> Result<Exit, Failure> {
    crate::fleet::agent::serve().map(|()| Exit::Ok).map_err(Failure::error)
}
