//! The command lines as clap knows them: that of the daemon is made out of its table of options.

use clap::builder::{PossibleValuesParser, ValueHint};
use clap::{Arg, ArgAction, Command};
use larder_server::config::{self, Effect, Group, Kind, Opt};

/// Returns the command line of `larder`: the daemon's options, and the verbs.
pub fn larder() -> Command {
    let about = "a memcached for data bigger than memory";
    let command = Command::new("larder")
        .version(config::VERSION)
        .about(about)
        .long_about(config::help_introduction())
        .max_term_width(100)
        // The table has rows for these.
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .args(config::OPTIONS.iter().map(argument));
    let verbs = larder_cli::command();
    command.subcommands(verbs.get_subcommands().cloned())
}

/// Returns the command line of `larder-bench`.
pub fn larder_bench() -> Command {
    larder_bench::commands::command().disable_help_subcommand(true)
}

fn argument(opt: &'static Opt) -> Arg {
    let argument = Arg::new(opt.long)
        .long(opt.long)
        .short(opt.short)
        .help(opt.described())
        .help_heading(opt.group.title())
        .hide(opt.effect != Effect::Honoured);
    match opt.kind {
        Kind::Flag => argument.action(ArgAction::SetTrue),
        Kind::Count => argument.action(ArgAction::Count),
        Kind::Choice(words) => argument
            .value_name(opt.kind.hint())
            .value_parser(PossibleValuesParser::new(words.iter().copied())),
        Kind::List(hint) => {
            argument.value_name(hint).action(ArgAction::Append).value_hint(kind_of_value(hint))
        }
        kind => argument.value_name(kind.hint()).value_hint(kind_of_value(kind.hint())),
    }
}

/// Returns what a shell may offer for a value.
fn kind_of_value(hint: &str) -> ValueHint {
    match hint {
        "FILE" => ValueHint::FilePath,
        "PATH[:SIZE]" => ValueHint::AnyPath,
        "USER" => ValueHint::Username,
        _ => ValueHint::Other,
    }
}

/// The groups of the daemon's options, in the order of its help.
pub const GROUPS: [Group; 5] =
    [Group::Larder, Group::Network, Group::Memory, Group::Commands, Group::Process];
