//! The daemon `larder`: reads its configuration. It ends with the exit codes that `--help` lists.

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
            eprintln!("larder: this build has no server; only the options that print something work");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("larder: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
