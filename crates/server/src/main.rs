//! The command `larder`: with a verb, that of the crate `larder_cli`; without one, the daemon, which reads its
//! configuration and runs. It ends with the exit codes that `--help` lists.

use std::io::Write;
use std::process::ExitCode;

use larder_server::config::{self, Command, Surroundings};
use larder_server::{daemon, log, plan};

/// The exit code of a wrong command line.
const USAGE: u8 = 64;
/// Columns where standard output is no terminal.
const COLUMNS: usize = 80;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    if let Some(code) = larder_cli::run(&args, config::settings_of) {
        return code;
    }
    let code = run();
    log::flush();
    code
}

fn run() -> ExitCode {
    match config::load(&Surroundings::of_this_process()) {
        Ok(Command::Print(text)) => print(&text),
        Ok(Command::Plan(request)) => match plan::answer(&request, columns()) {
            Ok(text) => print(&text),
            Err(problem) => {
                log::complain(&problem);
                ExitCode::from(USAGE)
            }
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

fn print(text: &str) -> ExitCode {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Returns the columns of the terminal, no more than a page has.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.map_or(
        COLUMNS,
        |size| if size.ws_col == 0 { COLUMNS } else { usize::from(size.ws_col).min(COLUMNS) },
    )
}
