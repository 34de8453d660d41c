//! The commands, one a file, and how they end.

pub mod ab;
pub mod agent;
pub mod calibrate;
pub mod choices;
pub mod compare;
pub mod counter;
pub mod fleet;
pub mod hosts;
pub mod live;
pub mod load;
mod null_server;
pub mod output;
pub mod pairs;
pub mod repeats;
pub mod replay;
pub mod report;
pub mod run;
pub mod scenario;
pub mod summary;
pub mod sweep;
pub mod tier;
pub mod tls;
pub mod trace;
pub mod workload;

use crate::net::without_secret;
use clap::{CommandFactory, Parser, Subcommand};
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// How a command ended; the status of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything went well.
    Ok = 0,
    /// It could not be done, or was cut short; results so far were kept.
    Error = 1,
    /// The command line was wrong.
    Usage = 2,
    /// A service level was not kept, or a comparison failed.
    Missed = 3,
    /// The server gave a wrong answer.
    Wrong = 4,
    /// The figures cannot be trusted.
    NotCertified = 5,
}

/// Why a command failed, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The line.
    pub message: String,
    /// The status it leads to.
    pub exit: Exit,
}

impl Failure {
    /// It could not be done.
    pub fn error(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), exit: Exit::Error }
    }

    /// It was asked for wrongly.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), exit: Exit::Usage }
    }
}

impl From<crate::engine::Error> for Failure {
    fn from(error: crate::engine::Error) -> Self {
        match error {
            crate::engine::Error::Plan(message) => Self::usage(message),
            error => Self::error(error),
        }
    }
}

/// A cache benchmark that can be trusted.
#[derive(Debug, Parser)]
#[command(name = "larder-bench", version, max_term_width = 100, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "Exit status: 0 ok, 1 run error or cut short, 2 usage, 3 service level or \
    comparison failed, 4 wrong answer from the server, 5 not certified";

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure one workload against one server
    Run(Box<run::Args>),
    /// Make published benchmarks again, their figures beside ours
    Scenario(scenario::Args),
    /// Measure what a cache in two tiers gains in front of a server
    Tier(Box<tier::Args>),
    /// Look the hosts of a fleet over, without any load
    Fleet(fleet::Args),
    /// One host's part of a fleet's run
    #[command(hide = true)]
    Agent(agent::Args),
    /// Measure latency against throughput
    Sweep(Box<sweep::Args>),
    /// Increment one counter from many threads, and prove that every store did it right
    Counter(counter::Args),
    /// Find the highest rate of this generator, against a server that does nothing
    Calibrate(Box<calibrate::Args>),
    /// Measure two servers under one load, in turns, and compare them
    Ab(Box<ab::Args>),
    /// Compare two results, pair by pair, with 95 % intervals
    Compare(Box<compare::Args>),
    /// Make a page, Markdown, CSV and HDR logs of results
    Report(Box<report::Args>),
    /// Replay a trace of requests against a server
    Replay(Box<replay::Args>),
    /// Count what LRU and a cache that knows the future would miss of a trace
    Trace(trace::Args),
    /// List the published workloads, or make a trace of one
    Workload(workload::Args),
    /// Serve a fixed reply to whatever is asked, at once or at a fixed pace
    NullServer(null_server::Args),
}

/// Returns the command line, for man pages and completions.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Reads the command line and runs its command.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // It quotes the word that is wrong, which may be a URL with a password.
            let said = error.render().to_string();
            let shown = without_secret(&said);
            let _ = if shown == said { error.print() } else { io::stderr().write_all(shown.as_bytes()) };
            return ExitCode::from(if error.use_stderr() { Exit::Usage as u8 } else { 0 });
        }
    };
    let ended = match cli.command {
        Command::Run(args) => run::run(*args),
        Command::Scenario(args) => scenario::run(args),
        Command::Tier(args) => tier::run(&args),
        Command::Fleet(args) => fleet::run(args),
        Command::Agent(args) => agent::run(args),
        Command::Sweep(args) => sweep::run(*args),
        Command::Counter(args) => Ok(counter::run(args)),
        Command::Calibrate(args) => calibrate::run(*args),
        Command::Ab(args) => ab::run(*args),
        Command::Compare(args) => compare::run(*args),
        Command::Report(args) => report::run(*args),
        Command::Replay(args) => replay::run(*args),
        Command::Trace(args) => trace::run(&args),
        Command::Workload(args) => workload::run(args),
        Command::NullServer(args) => null_server::run(args),
    };
    let exit = ended.unwrap_or_else(|failure| {
        eprintln!("larder-bench: {}", failure.message);
        failure.exit
    });
    ExitCode::from(exit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_command_has_options_that_go_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn each_side_of_a_comparison_may_be_several_files() {
        let read = |words: &[&str]| Cli::try_parse_from([&["larder-bench", "compare"], words].concat());
        assert!(read(&["a.json,b.json", "c.json"]).is_ok());
        assert!(read(&["a.json"]).is_err() && read(&["a.json", "b.json", "c.json"]).is_err());
    }
}
