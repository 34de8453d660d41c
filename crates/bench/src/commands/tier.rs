//! `larder-bench tier`: holds the place of a measurement that needs a client with a tier of its own.

use super::{Exit, Failure};

/// Measure a cache in the client before one on the network. It needs the tiered client (the crate `client`),
/// which is not there yet; it says so and ends with 2
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Whatever it will understand
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<String>,
}

/// Says that it is not there.
///
/// # Errors
/// Always: it can not be asked for yet.
pub fn run(_: &Args) -> Result<Exit, Failure> {
    Err(Failure::usage("tier measures the tiered client (the crate `client`), which is not there yet"))
}
