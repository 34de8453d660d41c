//! The pages that `-h`, `--help=ext`, `-V` and `-i` print, at most 80 columns wide.
//!
//! memcached's own test harness reads `-h` to learn what a server can do: the words `ext_path` and
//! `proxy_config` would switch on tests of features that are absent here, or differ on purpose. So SSD
//! storage under memcached's names has a page of its own, and refused options are not listed.

use super::error::ConfigError;
use super::option::{Effect, Group, Opt};
use super::options::OPTIONS;
use super::words::{WORDS, WordKind};

/// The memcached release whose behaviour and strings this server answers with.
pub const COMPATIBLE_VERSION: &str = "1.6.45";
/// Larder's own version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the daemon does without options.
const INTRODUCTION: &str = "Without options it listens on 127.0.0.1:11211 and caches in 64 MiB of RAM and a \
    file of 1 GiB in your cache directory. Under the name memcached it listens on every interface and uses \
    RAM only. Sizes take a suffix k, m, g or t.";
/// Where the value of an option may come from.
pub const SOURCES: &str = "An option goes over the environment, the environment over the file of --config, \
    the file over the default. The variable of --memory-limit is LARDER_MEMORY_LIMIT, its key in the file \
    memory-limit. A switch takes yes or no there. larder --print-config shows what came from where.";
/// The exit codes of the daemon, and what they mean.
pub const EXIT_CODES: [(&str, &str); 4] = [
    ("0", "ended as asked"),
    ("1", "could not start or continue: an address in use, an SSD that fails"),
    ("64", "an option or an environment variable is wrong"),
    ("78", "the file is wrong, or the options exclude each other"),
];

/// The widest line of a page.
pub(super) const WIDTH: usize = 80;
/// The column of the descriptions.
const INDENT: usize = 27;

/// Returns the text of `-V`. Tools parse the first line.
pub fn versions() -> String {
    format!("memcached {COMPATIBLE_VERSION}\nlarder {VERSION}\n")
}

/// Returns the text of `-i`.
pub fn licence() -> String {
    let mut page = versions();
    page.push_str(
        "\nLicensed under either of the Apache License, Version 2.0, or the MIT licence,\n\
         at your option; the texts are the files LICENSE-APACHE and LICENSE-MIT of\n\
         Larder's source. There is no warranty.\n",
    );
    page
}

/// Returns what the daemon does without options.
pub fn help_introduction() -> &'static str {
    INTRODUCTION
}

/// Returns the words of `-o` that have an effect, with the form of their values, and what they do.
pub fn extended_words() -> impl Iterator<Item = (String, &'static str)> {
    let honoured = WORDS.iter().filter(|word| word.effect == Effect::Honoured);
    honoured.map(|word| (format!("{}{}", word.name, value_of(word.kind)), word.help))
}

/// Returns the page of a topic: empty for the page of `-h`.
///
/// # Errors
/// There is no such topic.
pub fn page(topic: &str) -> Result<String, ConfigError> {
    match topic {
        "" => Ok(main_page()),
        "ext" => Ok(ext_page()),
        other => Err(ConfigError::Usage(format!("--help={other}: only --help and --help=ext exist"))),
    }
}

fn main_page() -> String {
    let mut page = format!(
        "memcached {COMPATIBLE_VERSION}\n\
         larder {VERSION} \u{2014} a memcached for data bigger than memory\n\n\
         Usage: larder [OPTION]...\n       larder VERB [OPTION]...\n\n"
    );
    wrap(&mut page, "", INTRODUCTION);
    page.push_str("\nVerbs, which ask a running server; each has a --help of its own\n");
    for (verb, about) in larder_cli::verbs() {
        item(&mut page, &format!("  larder {verb}"), &about);
    }
    for group in [Group::Larder, Group::Network, Group::Memory, Group::Commands, Group::Process] {
        page.push_str(&format!("\n{}\n", group.title()));
        for opt in OPTIONS.iter().filter(|opt| opt.group == group && opt.effect == Effect::Honoured) {
            item(&mut page, &synopsis(opt), &opt.described());
        }
    }
    page.push_str("\nExtended options (-o)\n");
    for (word, about) in extended_words().filter(|(word, _)| !word.starts_with("ext_")) {
        item(&mut page, &format!("      {word}"), about);
    }
    page.push('\n');
    wrap(
        &mut page,
        "  ",
        "memcached's other words for -o are accepted and change nothing; so are these options:",
    );
    wrap(&mut page, "    ", &without_effect());
    page.push_str("\nWhere a value may come from\n");
    wrap(&mut page, "  ", SOURCES);
    page.push_str("\nExit codes\n");
    for (code, meaning) in EXIT_CODES {
        page.push_str(&format!("  {code:>2}  {meaning}\n"));
    }
    page
}

fn ext_page() -> String {
    let mut page = String::from("SSD storage under memcached's names (-o, --extended)\n\n");
    for (word, about) in extended_words().filter(|(word, _)| word.starts_with("ext_")) {
        item(&mut page, &format!("  {word}"), about);
    }
    page.push('\n');
    wrap(
        &mut page,
        "",
        "A memcached command line with extstore works as it is: -o ext_path=/data/file:9G gives the SSD \
         tier that file and size. A bucket behind the size (compact, lowttl, chunked, default, coldcompact, \
         old) is read and has no effect, since one ring holds all items.",
    );
    page.push('\n');
    wrap(
        &mut page,
        "",
        "These words are accepted and have no effect; there is nothing to tune in their place:",
    );
    let names: Vec<_> = WORDS.iter().filter(|w| w.effect == Effect::Ignored).map(|w| w.name).collect();
    let names: Vec<_> = names.into_iter().filter(|name| name.starts_with("ext_")).collect();
    wrap(&mut page, "  ", &names.join(" "));
    page.push('\n');
    wrap(
        &mut page,
        "",
        "The largest item (-I) does not depend on ext_wbuf_size. Items of any size go to the SSD, whatever \
         ext_item_size says; --item-size is the typical size, a hint.",
    );
    page
}

fn without_effect() -> String {
    let ignored = OPTIONS.iter().filter(|opt| opt.effect == Effect::Ignored);
    let names: Vec<_> = ignored.map(|o| o.short.map_or(o.long.to_string(), |s| format!("-{s}"))).collect();
    names.join(" ")
}

fn value_of(kind: WordKind) -> String {
    let hint = match kind {
        WordKind::Switch | WordKind::SwitchOrNumber | WordKind::Anything => "",
        WordKind::Number | WordKind::Decimal => "=N",
        WordKind::Text(hint) => return format!("={hint}"),
    };
    hint.to_string()
}

fn synopsis(opt: &Opt) -> String {
    let letter = opt.short.map_or("    ".to_string(), |letter| format!("-{letter}, "));
    match opt.kind.hint() {
        "" => format!("  {letter}--{}", opt.long),
        hint => format!("  {letter}--{}={hint}", opt.long),
    }
}

fn item(page: &mut String, name: &str, text: &str) {
    page.push_str(name);
    let used = name.chars().count();
    let mut block = String::new();
    wrap(&mut block, &" ".repeat(INDENT), text);
    // Two blanks at least between a name and its text; else the text begins on a line of its own.
    if used + 2 > INDENT {
        page.push('\n');
        page.push_str(&block);
    } else {
        page.push_str(block.get(used..).unwrap_or_default());
    }
}

/// Appends `text`, broken at blanks so that no line is wider than a page, each line behind `prefix`.
pub(super) fn wrap(page: &mut String, prefix: &str, text: &str) {
    let mut column = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column == 0 || column + 1 + width > WIDTH {
            if column != 0 {
                page.push('\n');
            }
            page.push_str(prefix);
            column = prefix.chars().count();
        } else {
            page.push(' ');
            column += 1;
        }
        page.push_str(word);
        column += width;
    }
    page.push('\n');
}
