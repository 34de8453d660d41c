//! The verbs of the command `larder`: they look into a running server, and move keys between servers and files.
//!
//! They are clients: all that they know of a server comes over its ordinary port, so most of them also work with
//! memcached, or over the daemon's `--http`. `larder` without a verb is the daemon, which this crate knows nothing of.
//!
//! ```text
//!   arguments     the command line
//!     |
//!   copy, dump, restore, keys, hist, top, stat, advise, what_if, config   one file a verb
//!     |        |                            |
//!     |     transfer, spool, verify      figures, latencies, prefixes, http   the list of keys; a server's counts
//!     |        |
//!     |     items, dump_file, server_clock                items of a server, of a file; when they expire
//!     v        v
//!   connect, counts, pace, screen, units, exit            what they share
//! ```

#![forbid(unsafe_code)]
// Comments of options are their help, in which [:PORT] is no link.
#![allow(rustdoc::broken_intra_doc_links)]

mod advise;
mod arguments;
mod config;
mod connect;
mod copy;
mod counts;
mod doctor;
mod dump;
mod dump_file;
mod exit;
mod figures;
mod hist;
mod http;
mod items;
mod keys;
mod latencies;
mod pace;
mod prefixes;
mod restore;
mod screen;
mod server_clock;
mod spool;
mod stat;
mod top;
mod transfer;
mod units;
mod verify;
mod what_if;

pub use config::{Setting, SettingsOf};
pub use doctor::{Checked, Finding, Weight, examine_own};
pub use prefixes::is_out_of_proportion;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Runs the verb of a command line, the program's name first, and returns the exit code to end with. Returns `None`
/// if the command line has no verb, or if the program was started under the name memcached, which has none.
/// `settings_of` returns the settings that the daemon would have with some options.
pub fn run(args: &[OsString], settings_of: SettingsOf) -> Option<ExitCode> {
    let program = args.first().map(Path::new)?.file_name()?.to_string_lossy();
    let is_memcached = program == "memcached" || program.starts_with("memcached-");
    let has_verb = args.get(1)?.to_str().is_some_and(arguments::is_verb);
    (has_verb && !is_memcached).then(|| arguments::run(args, settings_of))
}

/// Returns each verb with one line about it, for the daemon's help page.
pub fn verbs() -> Vec<(String, String)> {
    arguments::verbs()
}

/// Returns the command line of all verbs, for man pages and completions.
pub fn command() -> clap::Command {
    arguments::command()
}
