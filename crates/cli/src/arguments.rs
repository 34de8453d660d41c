//! The command line of the verbs.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::config::SettingsOf;
use crate::exit::{EXIT_CODES, Failure, report};
use crate::{advise, config, copy, doctor, dump, hist, keys, restore, stat, top, what_if};

/// The exit code of a wrong command line, as the daemon has it.
const USAGE: u8 = 64;

/// Looks into servers, and moves their keys. Without a verb, larder is the server: see larder --help
#[derive(Debug, Parser)]
#[command(name = "larder", max_term_width = 100, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    #[command(after_help = EXIT_CODES)]
    Copy(Box<copy::CopyArguments>),
    #[command(after_help = EXIT_CODES)]
    Dump(dump::DumpArguments),
    #[command(after_help = EXIT_CODES)]
    Restore(restore::RestoreArguments),
    #[command(after_help = EXIT_CODES)]
    Stat(stat::StatArguments),
    #[command(after_help = EXIT_CODES)]
    Top(top::TopArguments),
    #[command(after_help = EXIT_CODES)]
    Keys(keys::KeysArguments),
    #[command(after_help = EXIT_CODES)]
    Hist(hist::HistArguments),
    #[command(after_help = EXIT_CODES)]
    Advise(advise::AdviseArguments),
    #[command(after_help = EXIT_CODES)]
    WhatIf(what_if::WhatIfArguments),
    #[command(after_help = EXIT_CODES)]
    Doctor(doctor::DoctorArguments),
    #[command(after_help = EXIT_CODES)]
    Config(config::ConfigArguments),
}

/// Returns whether a word is a verb.
pub fn is_verb(word: &str) -> bool {
    Arguments::command().find_subcommand(word).is_some()
}

/// Returns the command line of all verbs.
pub fn command() -> clap::Command {
    Arguments::command()
}

/// Returns each verb with one line about it.
pub fn verbs() -> Vec<(String, String)> {
    let command = Arguments::command();
    let about = |verb: &clap::Command| verb.get_about().map(ToString::to_string).unwrap_or_default();
    command.get_subcommands().map(|verb| (verb.get_name().to_string(), about(verb))).collect()
}

/// Runs the verb of a command line, and returns its exit code.
pub fn run(args: &[OsString], settings_of: SettingsOf) -> ExitCode {
    match Arguments::try_parse_from(args) {
        Ok(Arguments { verb }) => report(match verb {
            Verb::Copy(arguments) => copy::run(&arguments),
            Verb::Dump(arguments) => dump::run(&arguments),
            Verb::Restore(arguments) => restore::run(&arguments),
            Verb::Stat(arguments) => stat::run(&arguments),
            Verb::Top(arguments) => top::run(&arguments),
            Verb::Keys(arguments) => keys::run(&arguments),
            Verb::Hist(arguments) => hist::run(&arguments),
            Verb::Advise(arguments) => advise::run(&arguments),
            Verb::WhatIf(arguments) => what_if::run(&arguments),
            Verb::Doctor(arguments) => doctor::run(&arguments),
            Verb::Config(arguments) => config::run(&arguments, settings_of),
        }),
        Err(error) => {
            let is_wrong = error.use_stderr();
            match error.print() {
                Ok(()) if is_wrong => ExitCode::from(USAGE),
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => report(Err(Failure::of(error))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn only_verbs_are_verbs() {
        assert!(is_verb("copy"));
        for other in ["", "help", "-m", "--http", "COPY"] {
            assert!(!is_verb(other), "{other}");
        }
        assert!(verbs().iter().all(|(_, about)| !about.is_empty()));
    }
}
