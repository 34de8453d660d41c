//! The command `larder`: with a verb, that of the crate `larder_cli`; without one, the daemon, which reads its
//! configuration and runs. It ends with the exit codes that `--help` lists.

use std::io::Write;
use std::process::ExitCode;

use larder_server::config::{self, Command, Surroundings};
use larder_server::{daemon, log};

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    if let Some(code) = larder_cli::run(&args) {
        return code;
    }
    let code = run();
    log::flush();
    code
}

fn run() -> ExitCode {
    match config::load(&Surroundings::of_this_process()) {
        Ok(Command::Print(text)) => match std::io::stdout().lock().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Ok(Command::Run(config)) => daemon::run(*config).unwrap_or_else(|problem| {
            log::complain(&problem);
            ExitCode::FAILURE
        }),
        Err(error) => {
            log::complain(&error.to_string());
            ExitCode::from(error.exit_code())
        }
    }
}
