//! `--print-config`, every value with its origin; and the example file. Both are read off the tables.

use super::help::{self, WIDTH};
use super::layer::{Origin, Setting};
use super::option::{Effect, Fallback, Group, Id, Kind, Opt};
use super::options::OPTIONS;
use super::resolved::Config;
use super::values::{self, MIB};
use super::words::Word;
use crate::budget::fixed_bytes;

/// The column of the values, behind the longest name.
const VALUE_COLUMN: usize = 21;
/// The column of the origins, if the value leaves room.
const ORIGIN_COLUMN: usize = 46;

/// Returns the text of `--print-config`. Ignored options are shown only if they were given. Long values and origins
/// take a line of their own.
pub fn config(config: &Config) -> String {
    let mut page = String::new();
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
        let effect = if opt.effect == Effect::Ignored { ", no effect" } else { "" };
        match (all, opt.kind) {
            ([], _) => line(&mut page, opt.long, absent(opt), &Origin::Default, effect),
            ([.., last], Kind::Count) => line(&mut page, opt.long, &count.to_string(), &last.origin, effect),
            (all, _) => {
                for given in all {
                    line(&mut page, opt.long, &value(opt.kind, &given.text), &given.origin, effect);
                }
            }
        }
    }
    for (name, given) in config.raw.words() {
        let ignored = Word::by_name(name).is_some_and(|word| word.effect == Effect::Ignored);
        line(&mut page, name, &given.text, &given.origin, if ignored { ", no effect" } else { "" });
    }
    page.push_str(&bound(config));
    page
}

/// Returns the bound on the daemon's memory, as a comment.
fn bound(config: &Config) -> String {
    let fixed = fixed_bytes(config.threads, config.conn_limit).next_multiple_of(MIB);
    let sum = config.memory_limit_bytes + config.conn_memory_bytes;
    format!(
        "# resident memory: at most 1.1 x (memory-limit + conn-memory) + {}\n#                  = {} MiB\n",
        values::show_size(fixed),
        (sum + sum / 10 + fixed).div_ceil(MIB)
    )
}

/// Returns the text for a value that was not given: most are off, the others are computed later.
fn absent(opt: &Opt) -> &'static str {
    if matches!(opt.default, Fallback::Computed { .. }) { "automatic" } else { "none" }
}

fn line(page: &mut String, name: &str, value: &str, origin: &Origin, effect: &str) {
    let mut line = format!("{name:<width$} = {value}", width = VALUE_COLUMN - 3);
    let origin = format!("({origin}{effect})");
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
