//! `--print-config`, every value with its origin; and the example file. Both are read off the tables.

use super::help::{self, WIDTH};
use super::layer::{Origin, Setting};
use super::option::{Effect, Fallback, Group, Id, Kind, Opt};
use super::options::OPTIONS;
use super::resolved::Config;
use super::values::{self, MIB};
use super::words::Word;
use crate::budget::{HTTP_BYTES, fixed_bytes};

/// The column of the values, behind the longest name.
const VALUE_COLUMN: usize = 21;
/// The column of the origins, if the value leaves room.
const ORIGIN_COLUMN: usize = 46;

/// A value in use, as `--print-config` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownValue {
    /// The long name of its option, or a word of `-o`.
    pub name: &'static str,
    /// Its text: sizes in their largest unit, any other value as given.
    pub value: String,
    /// Where it comes from, as `flag -m`; and whether it has no effect.
    pub origin: String,
}

impl From<ShownValue> for larder_cli::Setting {
    fn from(ShownValue { name, value, origin }: ShownValue) -> larder_cli::Setting {
        larder_cli::Setting { name: name.to_string(), value, origin }
    }
}

/// Returns the text of `--print-config`. Long values and origins take a line of their own.
pub fn config(config: &Config) -> String {
    let mut page = String::new();
    values_of(config).iter().for_each(|shown| line(&mut page, shown));
    page.push_str(&bound(config));
    page
}

/// Returns every value in use, those of a list each by itself. Ignored options are there only if they were given.
pub fn values_of(config: &Config) -> Vec<ShownValue> {
    let mut found = Vec::new();
    let mut add = |name, value, origin: &Origin, is_ignored| {
        let effect = if is_ignored { ", no effect" } else { "" };
        found.push(ShownValue { name, value, origin: format!("{origin}{effect}") });
    };
    for opt in OPTIONS {
        let given = config.raw.is_given(Setting::Opt(opt.id));
        let shown = match opt.effect {
            Effect::Honoured => {
                opt.in_environment() && opt.id != Id::Extended && (given || opt.id != Id::Config)
            }
            Effect::Ignored => given,
            Effect::Refused(_) => false,
        };
        if !shown {
            continue;
        }
        let all = config.raw.all(Setting::Opt(opt.id));
        let count = all.iter().filter_map(|given| given.text.parse::<u64>().ok()).sum::<u64>();
        let is_ignored = opt.effect == Effect::Ignored;
        match (all, opt.kind) {
            ([], _) => add(opt.long, absent(opt).to_string(), &Origin::Default, is_ignored),
            ([.., last], Kind::Count) => add(opt.long, count.to_string(), &last.origin, is_ignored),
            (all, _) => {
                for given in all {
                    add(opt.long, value(opt.kind, &given.text), &given.origin, is_ignored);
                }
            }
        }
    }
    for (name, given) in config.raw.words() {
        let is_ignored = Word::by_name(name).is_some_and(|word| word.effect == Effect::Ignored);
        add(name, given.text.clone(), &given.origin, is_ignored);
    }
    found
}

/// Returns the bound on the daemon's memory, as a comment.
fn bound(config: &Config) -> String {
    let http = if config.http.is_some() { HTTP_BYTES } else { 0 };
    let fixed = fixed_bytes(config.threads, config.conn_limit, config.tls.is_some()) + http;
    let fixed = fixed.next_multiple_of(MIB);
    let sum = config.memory_limit_bytes + config.conn_memory_bytes + config.lease_memory_bytes;
    format!(
        "# resident memory: at most 1.1 x (memory-limit + conn-memory +\n\
         #                  lease-memory) + {}\n#                  = {} MiB\n",
        values::show_size(fixed),
        (sum + sum / 10 + fixed).div_ceil(MIB)
    )
}

/// Returns the text for a value that was not given: most are off, the others are computed later.
fn absent(opt: &Opt) -> &'static str {
    if matches!(opt.default, Fallback::Computed { .. }) { "automatic" } else { "none" }
}

fn line(page: &mut String, shown: &ShownValue) {
    let mut line = format!("{:<width$} = {}", shown.name, shown.value, width = VALUE_COLUMN - 3);
    let origin = format!("({})", shown.origin);
    let used = line.chars().count();
    let start = if used < ORIGIN_COLUMN { ORIGIN_COLUMN } else { used + 2 };
    if start + origin.chars().count() > WIDTH {
        line.push('\n');
        line.extend(std::iter::repeat_n(' ', VALUE_COLUMN));
    } else {
        line.extend(std::iter::repeat_n(' ', start - used));
    }
    page.push_str(&line);
    page.push_str(&origin);
    page.push('\n');
}

/// Returns the text of a value: sizes in their largest unit, any other value as given.
fn value(kind: Kind, text: &str) -> String {
    match kind {
        Kind::Megabytes => values::size(text, MIB).map(values::show_size),
        Kind::Bytes => values::size(text, 1).map(values::show_size),
        Kind::Millis(_) => Ok(format!("{text} ms")),
        Kind::Rate => values::rate(text).map(|n| format!("{}/s", values::show_size(n))),
        Kind::Flag => values::switch(text).map(|yes| if yes { "yes" } else { "no" }.to_string()),
        _ => Ok(text.to_string()),
    }
    .unwrap_or_else(|_| text.to_string())
}

/// Returns the commented example file, `docs/larder.example.toml`: every key that has an effect, commented out,
/// with its default or, where it has none, with an example.
pub fn example() -> String {
    let mut page = String::from(
        "# An example configuration for larder: every key, commented out, with its\n\
         # default. Use it with larder --config FILE. Environment variables, such as\n\
         # LARDER_MEMORY_LIMIT for memory-limit, and flags go over what stands here;\n\
         # larder --print-config shows what came from where. Sizes are numbers, or texts\n\
         # such as \"64m\".\n\
         #\n\
         # This file is the output of larder --print-config=example.\n",
    );
    let groups = [
        (Group::Larder, "RAM and SSD"),
        (Group::Network, "Network"),
        (Group::Memory, "Memory and items"),
        (Group::Commands, "Commands"),
        (Group::Process, "Process"),
    ];
    for (group, title) in groups {
        page.push_str(&format!("\n# ---- {title} ----\n"));
        for opt in OPTIONS {
            if opt.group == group && opt.in_file() && opt.effect == Effect::Honoured {
                page.push('\n');
                key(&mut page, opt);
            }
        }
    }
    page
}

fn key(page: &mut String, opt: &Opt) {
    let (note, text) = match opt.default {
        Fallback::Is(text) => (String::new(), text),
        Fallback::Computed { how, example } => (format!(" (default: {how})"), example),
        Fallback::Unset { example } => (" (default: none; an example:)".to_string(), example),
    };
    help::wrap(page, "# ", &format!("{}{note}", opt.help));
    page.push_str(&format!("#{} = {}\n", opt.long, toml_value(opt.kind, text)));
}

fn toml_value(kind: Kind, text: &str) -> String {
    match kind {
        Kind::Flag => (values::switch(text) == Ok(true)).to_string(),
        Kind::Count | Kind::Number { .. } | Kind::Decimal | Kind::Millis(_) => text.to_string(),
        Kind::Bytes if text.bytes().all(|b| b.is_ascii_digit()) => text.to_string(),
        Kind::List(_) => format!("[\"{text}\"]"),
        _ => format!("\"{text}\""),
    }
}
