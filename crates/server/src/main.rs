//! The daemon `larder`: reads its configuration and serves. It ends with the exit codes that `--help` lists.

use std::io::Write;
use std::process::ExitCode;

use larder_server::config::{self, Command, Surroundings};

fn main() -> ExitCode {
    match config::load(&Surroundings::of_this_process()) {
        Ok(Command::Print(text)) => match std::io::stdout().lock().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Ok(Command::Run(config)) => {
            for warning in &config.warnings {
                eprintln!("larder: {warning}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("larder: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
