//! The table of `-o` words: memcached's extended options, and their effect here.

use super::option::Effect;
use super::values;

/// The form of a word's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordKind {
    /// On or off: `word` or `no_word`.
    Switch,
    /// As `Switch`, but `word=N` is allowed too.
    SwitchOrNumber,
    /// A whole number, required.
    Number,
    /// A decimal fraction, required.
    Decimal,
    /// Any text, required. The word stands for it in the help.
    Text(&'static str),
    /// Any text, or nothing.
    Anything,
}

/// One row of the table.
#[derive(Debug)]
pub struct Word {
    /// Its name, without `no_`.
    pub name: &'static str,
    /// The form of its value.
    pub kind: WordKind,
    /// Its value when not given; `yes` and `no` for switches.
    pub default: &'static str,
    /// The effect of giving it.
    pub effect: Effect,
    /// Its description for the help; empty for a word without effect.
    pub help: &'static str,
}

impl Word {
    /// Returns the row of a name without `no_`.
    pub fn by_name(name: &str) -> Option<&'static Word> {
        WORDS.iter().find(|word| word.name == name)
    }
}

const fn word(name: &'static str, kind: WordKind, default: &'static str, help: &'static str) -> Word {
    Word { name, kind, default, effect: Effect::Honoured, help }
}

const fn ignored(name: &'static str, kind: WordKind, default: &'static str) -> Word {
    Word { name, kind, default, effect: Effect::Ignored, help: "" }
}

const fn refused(name: &'static str, why: &'static str) -> Word {
    Word { name, kind: WordKind::Anything, default: "no", effect: Effect::Refused(why), help: "" }
}

/// The reason why the proxy is refused, for `-l proto[proxy]:` too.
pub const NO_PROXY: &str =
    "the proxy is not part of Larder; put a memcached proxy, mcrouter or twemproxy in front of it";

/// Every `-o` word.
#[rustfmt::skip]
pub const WORDS: &[Word] = {
    use WordKind::{Decimal, Number, Switch, SwitchOrNumber, Text};
    &[
    word("maxconns_fast", Switch, "yes",
        "answer a connection over the limit with an error; no_maxconns_fast lets it wait, at most \
         10 seconds"),
    word("idle_timeout", Number, "0", "close connections idle for this many seconds (0: never)"),
    word("watcher_logbuf_size", Number, "256",
        "kilobytes of lines that wait for a watcher, out of --conn-memory; a line that finds no room is \
         skipped"),
    word("track_sizes", Switch, "no",
        "let stats sizes count the items of both tiers by size, which reads the SSD"),
    word("resp_obj_mem_limit", Number, "0",
        "megabytes for replies: lowers --conn-memory to this (0: does not)"),
    word("read_buf_mem_limit", Number, "0",
        "megabytes for what is received: lowers --conn-memory to this (0: does not)"),
    word("lru_crawler", Switch, "yes", "no_lru_crawler leaves its counters out of stats"),
    word("lru_maintainer", Switch, "yes", "no_lru_maintainer leaves its counters out of stats"),
    word("ext_path", Text("PATH:SIZE"), "",
        "PATH:SIZE, with a unit behind SIZE: the same as --ssd; may be repeated"),

    word("ssl_chain_cert", Text("FILE"), "",
        "the server's certificate and those between it and its root, in PEM; required with -Z"),
    word("ssl_key", Text("FILE"), "",
        "its private key, if that does not stand behind it in the same file"),
    word("ssl_keyformat", Text("FORMAT"), "PEM", "the form of ssl_key: PEM or DER"),
    word("ssl_verify_mode", Number, "0",
        "clients' certificates: 0 none, 1 checked if there is one, 2 required, 3 as 1"),
    word("ssl_ca_cert", Text("FILE"), "",
        "the certificates that clients' have to lead to, in PEM"),
    word("ssl_ciphers", Text("NAMES"), "",
        "the cipher suites to use, by OpenSSL's names, separated by colons"),
    word("ssl_min_version", Number, "2", "the oldest version: 2 is TLS 1.2, 3 is TLS 1.3"),
    word("ssl_session_cache", Switch, "no",
        "keep sessions for clients without tickets too, and count new ones in stats"),

    ignored("ssl_wbuf_size", Number, "16"),
    ignored("ssl_kernel_tls", Switch, "no"),
    ignored("modern", Switch, "no"),
    ignored("hashpower", Number, "0"),
    ignored("hashexpand", Switch, "yes"),
    ignored("hash_algorithm", Text("NAME"), "murmur3"),
    ignored("slab_reassign", Switch, "yes"),
    ignored("slab_automove", SwitchOrNumber, "1"),
    ignored("slab_automove_ratio", Decimal, "0.80"),
    ignored("slab_automove_window", Number, "30"),
    ignored("slab_automove_freeratio", Decimal, "0.010"),
    ignored("slab_sizes", Text("SIZES"), ""),
    ignored("slab_chunk_max", Number, "512"),
    ignored("chunked_items", Switch, "yes"),
    ignored("tail_repair_time", Number, "0"),
    ignored("lru_crawler_sleep", Number, "100"),
    ignored("lru_crawler_tocrawl", Number, "0"),
    ignored("hot_lru_pct", Number, "20"),
    ignored("warm_lru_pct", Number, "40"),
    ignored("hot_max_factor", Decimal, "0.20"),
    ignored("warm_max_factor", Decimal, "2.00"),
    ignored("temporary_ttl", Number, "61"),
    ignored("worker_logbuf_size", Number, "64"),
    ignored("inline_ascii_resp", Switch, "no"),
    ignored("drop_privileges", Switch, "no"),
    ignored("relaxed_privileges", Switch, "no"),
    ignored("sock_cookie_id", Number, "0"),

    ignored("ext_page_size", Number, "64"),
    ignored("ext_wbuf_size", Number, "4"),
    ignored("ext_threads", Number, "1"),
    ignored("ext_io_depth", Number, "1"),
    ignored("ext_item_size", Number, "512"),
    ignored("ext_item_age", Number, "4294967295"),
    ignored("ext_low_ttl", Number, "0"),
    ignored("ext_recache_rate", Number, "2000"),
    ignored("ext_compact_under", Number, "0"),
    ignored("ext_drop_under", Number, "0"),
    ignored("ext_max_sleep", Number, "1000000"),
    ignored("ext_max_frag", Decimal, "0.80"),
    ignored("ext_drop_unread", Switch, "no"),

    refused("proxy_config", NO_PROXY),
    refused("proxy_arg", NO_PROXY),
    refused("proxy_uring", NO_PROXY),
    refused("proxy_memprofile", NO_PROXY),
    ]
};

/// Splits one `-o` value into its words and their checked values.
///
/// # Errors
/// An unknown word (`Illegal suboption "word"`, as memcached says), a value that is missing, superfluous
/// or of the wrong form, or a word that is refused.
pub fn parse(text: &str) -> Result<Vec<(&'static Word, String)>, String> {
    text.split(',').map(str::trim).filter(|piece| !piece.is_empty()).map(piece).collect()
}

fn piece(text: &str) -> Result<(&'static Word, String), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.trim())),
        None => (text, None),
    };
    if let Some(word) = Word::by_name(name) {
        return Ok((word, checked(word, value)?));
    }
    let negated = name.strip_prefix("no_").and_then(Word::by_name);
    match negated.filter(|word| matches!(word.kind, WordKind::Switch | WordKind::SwitchOrNumber)) {
        Some(word) if value.is_none() => Ok((word, off(word).to_string())),
        Some(_) => Err(format!("-o {name} takes no value; leave out the =")),
        None => Err(format!("Illegal suboption \"{name}\"; see --help and --help=ext for the known ones")),
    }
}

/// Returns the value that `no_word` sets: the one numeric switch counts from 0.
fn off(word: &Word) -> &'static str {
    if word.kind == WordKind::SwitchOrNumber { "0" } else { "no" }
}

fn checked(word: &'static Word, value: Option<&str>) -> Result<String, String> {
    let name = word.name;
    if let Effect::Refused(why) = word.effect {
        return Err(format!("-o {name}: {why}"));
    }
    let at = |message: String| format!("-o {name}: {message}");
    match (word.kind, value) {
        (WordKind::Switch, None) => Ok("yes".to_string()),
        (WordKind::SwitchOrNumber, None) => Ok("1".to_string()),
        // memcached's own parser lets a switch have a value and does not look at it.
        (WordKind::Switch, Some(_)) => Ok("yes".to_string()),
        (WordKind::Anything, value) => Ok(value.unwrap_or_default().to_string()),
        (_, None | Some("")) => Err(format!("-o {name} needs a value; write {name}=VALUE")),
        (WordKind::Text(_), Some(value)) => Ok(value.to_string()),
        (WordKind::Number | WordKind::SwitchOrNumber, Some(value)) => {
            values::number(value, 0, i64::from(u32::MAX)).map(|n| n.to_string()).map_err(at)
        }
        (WordKind::Decimal, Some(value)) => values::decimal(value).map(|_| value.to_string()).map_err(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(&'static str, String)> {
        parse(text).unwrap().into_iter().map(|(word, value)| (word.name, value)).collect()
    }

    #[test]
    fn words_are_split_and_switched() {
        let got =
            pairs("modern,ext_path=/d/f:9G, idle_timeout=3,no_lru_crawler,slab_automove,no_slab_automove");
        let want = [
            ("modern", "yes"),
            ("ext_path", "/d/f:9G"),
            ("idle_timeout", "3"),
            ("lru_crawler", "no"),
            ("slab_automove", "1"),
            ("slab_automove", "0"),
        ];
        assert_eq!(got, want.map(|(name, value)| (name, value.to_string())));
    }

    #[test]
    fn an_unknown_word_is_illegal() {
        for text in ["modren", "no_idle_timeout", "no_", "ext_paths=/d:1g", "=3"] {
            assert!(parse(text).unwrap_err().starts_with("Illegal suboption \""), "{text}");
        }
    }

    #[test]
    fn values_are_checked() {
        assert!(parse("idle_timeout").unwrap_err().contains("needs a value"));
        assert!(parse("idle_timeout=").unwrap_err().contains("needs a value"));
        assert!(parse("idle_timeout=soon").unwrap_err().contains("is not a number"));
        assert!(parse("idle_timeout=-1").unwrap_err().contains("0 or more"));
        assert!(parse("hot_max_factor=x").unwrap_err().contains("is not a number"));
        assert!(parse("no_lru_crawler=1").unwrap_err().contains("takes no value"));
    }

    #[test]
    fn the_proxy_is_refused_with_a_way_out() {
        assert!(parse("proxy_config=/p.lua").unwrap_err().contains("mcrouter"));
    }

    #[test]
    fn names_are_unique_and_defaults_are_valid() {
        for (at, word) in WORDS.iter().enumerate() {
            assert!(WORDS[..at].iter().all(|other| other.name != word.name), "{}", word.name);
            if !matches!(word.kind, WordKind::Switch | WordKind::Anything) && !word.default.is_empty() {
                assert_eq!(checked(word, Some(word.default)).as_deref(), Ok(word.default));
            }
            assert_eq!(word.help.is_empty(), word.effect != Effect::Honoured, "{}", word.name);
        }
    }
}
