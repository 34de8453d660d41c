//! Man pages of commands: one for the program and one for each verb, as `larder-copy(1)`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};
use larder_server::config;

use crate::completions::tidied;

/// Adds the page of a command and those of its subcommands.
pub fn of(command: &Command, files: &mut BTreeMap<PathBuf, String>) {
    let mut command = command.clone();
    command.build();
    add(&command, command.get_name(), command.get_name(), files);
}

fn add(command: &Command, name: &str, words: &str, files: &mut BTreeMap<PathBuf, String>) {
    // A page's name is one word, and the command in its synopsis is several.
    let shown = command.clone().display_name(name.to_string()).bin_name(words.to_string());
    let mut text = Vec::new();
    let man = Man::new(shown)
        .title(name)
        .section("1")
        .source(format!("larder {}", config::VERSION))
        .manual("Larder");
    // Writing into memory does not fail.
    let _ = man.render(&mut text);
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if name == "larder" {
        text = with_short_synopsis(&text);
        text.push_str(&daemon_sections());
    }
    files.insert(PathBuf::from(format!("man/{name}.1")), tidied(&text));
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let (name, words) = (format!("{name}-{}", verb.get_name()), format!("{words} {}", verb.get_name()));
        add(verb, &name, &words, files);
    }
}

/// Returns the daemon's page with a synopsis that does not name each of its options.
fn with_short_synopsis(page: &str) -> String {
    let mut synopsis = Roff::new();
    synopsis.control("SH", ["SYNOPSIS"]);
    synopsis.text([bold("larder"), roman(" ["), italic("OPTION"), roman("]...")]);
    synopsis.control("br", []);
    synopsis.text([bold("larder "), italic("VERB"), roman(" ["), italic("OPTION"), roman("]...")]);
    let (before, rest) = page.split_once(".SH SYNOPSIS").unwrap_or((page, ""));
    let (_, after) = rest.split_once(".SH DESCRIPTION").unwrap_or(("", rest));
    let synopsis = synopsis.to_roff();
    format!("{before}{}.SH DESCRIPTION{after}", synopsis.trim_start_matches(|c| c != '.'))
}

/// Returns the sections that only the daemon's page has: the words of `-o`, and what its help says behind the
/// options.
fn daemon_sections() -> String {
    let mut page = Roff::new();
    page.control("SH", ["EXTENDED OPTIONS"]);
    page.text([roman("The words of -o, separated by commas:")]);
    for (word, about) in config::extended_words() {
        page.control("TP", []);
        page.text([bold(word)]);
        page.text([roman(about)]);
    }
    page.control("SH", ["ENVIRONMENT AND FILES"]);
    page.text([roman(config::SOURCES)]);
    page.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in config::EXIT_CODES {
        page.control("TP", []);
        page.text([bold(code)]);
        page.text([roman(meaning)]);
    }
    page.control("SH", ["SIGNALS"]);
    for (signal, meaning) in [
        ("SIGTERM, SIGINT, SIGUSR1", "finish the requests that have come, and end"),
        ("SIGHUP", "read the users, the certificates and the nodes of a cluster again"),
    ] {
        page.control("TP", []);
        page.text([bold(signal)]);
        page.text([roman(meaning)]);
    }
    page.control("SH", ["SEE ALSO"]);
    page.text([bold("larder.toml"), roman("(5), "), bold("larder-bench"), roman("(1)")]);
    page.to_roff()
}
