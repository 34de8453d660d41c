//! The command `larder-bench`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    larder_bench::commands::main()
}
