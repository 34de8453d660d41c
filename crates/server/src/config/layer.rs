//! Raw values, each with its origin, not interpreted yet: the first of the two steps.
//!
//! ```text
//! command line --+
//! environment  --+-> one layer each -> merged: the highest layer that gives an option gives all of it
//! file         --+                             (a list is replaced, never mixed)
//! defaults     --+
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::error::ConfigError;
use super::option::{Fallback, Id, Kind, Opt};
use super::options::OPTIONS;
use super::{ssd, values, words};

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It was not given.
    Default,
    /// The configuration file.
    File(PathBuf),
    /// An environment variable, by name.
    Environment(String),
    /// The command line, as it was written: `-m`, `--memory-limit`, `-o ext_path`.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path) => write!(f, "file {}", path.display()),
            Origin::Environment(name) => write!(f, "environment {name}"),
            Origin::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

/// The option or `-o` word that a value is given for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// An option of the table.
    Opt(Id),
    /// A word of the table of `-o` words.
    Word(&'static str),
}

/// One value as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The text, without leading blanks; `yes` or `no` for a flag.
    pub text: String,
    /// Its source.
    pub origin: Origin,
}

impl Given {
    /// Returns an error about this value, naming where it was given.
    pub fn error(&self, long: &str, message: &str) -> ConfigError {
        match &self.origin {
            Origin::Default => ConfigError::Usage(format!("--{long} {}: {message}", self.text)),
            Origin::Flag(flag) => ConfigError::Usage(format!("{flag} {}: {message}", self.text)),
            Origin::Environment(name) => ConfigError::Usage(format!("{name}={}: {message}", self.text)),
            Origin::File(path) => {
                let message = format!("{long} = {}: {message}", self.text);
                ConfigError::File { path: path.clone(), message }
            }
        }
    }
}

/// The values of one source, or of all sources merged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layer {
    entries: BTreeMap<Setting, Vec<Given>>,
}

impl Layer {
    /// Adds one value. A list grows, a count counts, any other value is replaced by a later one, as in getopt. `-o`
    /// is split into its words here; its `ext_path` is another name for `--ssd`.
    ///
    /// # Errors
    /// The value is not of the option's form, or a word of `-o` is refused or not known.
    pub fn add(&mut self, opt: &Opt, text: &str, origin: Origin) -> Result<(), ConfigError> {
        let text = text.trim_start().to_string();
        let given = Given { text, origin };
        if opt.id == Id::Extended {
            return self.add_words(opt, &given);
        }
        check(opt, &given.text).map_err(|message| given.error(opt.long, &message))?;
        let list = self.entries.entry(Setting::Opt(opt.id)).or_default();
        let repeats =
            matches!(opt.kind, Kind::List(_)) || (opt.kind == Kind::Count && is_flag(&given.origin));
        if !repeats {
            list.clear();
        }
        list.push(given);
        Ok(())
    }

    fn add_words(&mut self, opt: &Opt, given: &Given) -> Result<(), ConfigError> {
        let words = words::parse(&given.text).map_err(|message| match &given.origin {
            Origin::Environment(name) => ConfigError::Usage(format!("{name}: {message}")),
            Origin::File(path) => ConfigError::File { path: path.clone(), message },
            Origin::Default | Origin::Flag(_) => ConfigError::Usage(message),
        })?;
        for (word, value) in words {
            let origin = match &given.origin {
                Origin::Flag(flag) => Origin::Flag(format!("{flag} {}", word.name)),
                other => other.clone(),
            };
            let value = Given { text: value, origin };
            if word.name == "ext_path" {
                let text = ssd::ext_path(&value.text).map_err(|m| value.error(opt.long, &m))?.to_string();
                let list = self.entries.entry(Setting::Opt(Id::Ssd)).or_default();
                list.push(Given { text, ..value });
            } else {
                self.entries.insert(Setting::Word(word.name), vec![value]);
            }
        }
        Ok(())
    }

    /// Puts `higher` over this layer: its values replace those of this one.
    #[must_use]
    pub fn under(mut self, higher: Layer) -> Layer {
        self.entries.extend(higher.entries);
        self
    }

    /// Returns all values given for `key`, in the order they were given.
    pub fn all(&self, key: Setting) -> &[Given] {
        self.entries.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Returns the value given for `key`; the last one of a list.
    pub fn last(&self, key: Setting) -> Option<&Given> {
        self.all(key).last()
    }

    /// Returns whether anything but a default is given for `key`.
    pub fn is_given(&self, key: Setting) -> bool {
        self.last(key).is_some_and(|given| given.origin != Origin::Default)
    }

    /// Returns the value of an `-o` word: as given, or its default; empty for a name that is no word.
    pub fn word(&self, name: &str) -> &str {
        match words::Word::by_name(name) {
            Some(word) => self.last(Setting::Word(word.name)).map_or(word.default, |given| &given.text),
            None => "",
        }
    }

    /// Returns the `-o` words given, with their values, in the order of their names.
    pub fn words(&self) -> impl Iterator<Item = (&'static str, &Given)> {
        self.entries.iter().filter_map(|(key, list)| match key {
            Setting::Word(name) => list.last().map(|given| (*name, given)),
            Setting::Opt(_) => None,
        })
    }

    /// Returns the layer of all fixed defaults.
    pub fn defaults() -> Layer {
        let mut layer = Layer::default();
        for opt in OPTIONS {
            if let Fallback::Is(text) = opt.default {
                layer.set_default(opt.id, text);
            }
        }
        layer
    }

    /// Adds a default that was worked out.
    pub fn set_default(&mut self, id: Id, text: &str) {
        let given = Given { text: text.to_string(), origin: Origin::Default };
        self.entries.insert(Setting::Opt(id), vec![given]);
    }
}

fn is_flag(origin: &Origin) -> bool {
    matches!(origin, Origin::Flag(_))
}

/// Returns whether `text` is of the form of the option.
fn check(opt: &Opt, text: &str) -> Result<(), String> {
    match opt.kind {
        Kind::Flag => values::switch(text).map(drop),
        Kind::Count => values::number(text, 0, 255).map(drop),
        Kind::Number { min, max } => values::number(text, min, max).map(drop),
        Kind::Decimal => values::decimal(text).map(drop),
        Kind::Millis(max) => values::number(text, 0, max).map(drop),
        Kind::Megabytes => values::size(text, values::MIB).map(drop),
        Kind::Bytes => values::size(text, 1).map(drop),
        Kind::Rate => values::rate(text).map(drop),
        Kind::Octal => values::octal(text).map(drop),
        Kind::Char => values::delimiter(text).map(drop),
        Kind::Choice(words) if words.contains(&text) => Ok(()),
        Kind::Choice(words) => Err(format!("must be one of {}", words.join(", "))),
        Kind::Text(hint) | Kind::List(hint) if text.is_empty() => Err(format!("needs a value, {hint}")),
        Kind::Text(_) | Kind::List(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flag(layer: &mut Layer, long: &str, text: &str) -> Result<(), ConfigError> {
        layer.add(Opt::by_long(long).unwrap(), text, Origin::Flag(format!("--{long}")))
    }

    #[test]
    fn a_later_value_replaces_and_a_list_grows() {
        let mut layer = Layer::default();
        flag(&mut layer, "memory-limit", "1").unwrap();
        flag(&mut layer, "memory-limit", " 2").unwrap();
        flag(&mut layer, "listen", "a").unwrap();
        flag(&mut layer, "listen", "b").unwrap();
        assert_eq!(layer.all(Setting::Opt(Id::MemoryLimit)).len(), 1);
        assert_eq!(layer.last(Setting::Opt(Id::MemoryLimit)).unwrap().text, "2");
        assert_eq!(layer.all(Setting::Opt(Id::Listen)).len(), 2);
    }

    #[test]
    fn ext_path_is_ssd_by_another_name() {
        let mut layer = Layer::default();
        flag(&mut layer, "ssd", "/a:1g").unwrap();
        flag(&mut layer, "extended", "modern,ext_path=/b:2G:lowttl").unwrap();
        let texts: Vec<_> = layer.all(Setting::Opt(Id::Ssd)).iter().map(|g| g.text.as_str()).collect();
        assert_eq!(texts, ["/a:1g", "/b:2G"]);
        let origin = &layer.last(Setting::Opt(Id::Ssd)).unwrap().origin;
        assert_eq!(origin.to_string(), "flag --extended ext_path");
        assert!(layer.last(Setting::Word("modern")).is_some());
    }

    #[test]
    fn a_higher_layer_replaces_a_list_whole() {
        let (mut low, mut high) = (Layer::default(), Layer::default());
        flag(&mut low, "listen", "a").unwrap();
        flag(&mut low, "threads", "2").unwrap();
        flag(&mut high, "listen", "b").unwrap();
        let merged = low.under(high);
        assert_eq!(merged.all(Setting::Opt(Id::Listen)).len(), 1);
        assert_eq!(merged.last(Setting::Opt(Id::Threads)).unwrap().text, "2");
    }

    #[test]
    fn an_error_names_where_the_value_came_from() {
        let given = |origin| Given { text: "0".to_string(), origin };
        let text = |origin| given(origin).error("conn-limit", "must be 1 or more").to_string();
        assert_eq!(text(Origin::Flag("-c".to_string())), "-c 0: must be 1 or more");
        let environment = Origin::Environment("LARDER_CONN_LIMIT".to_string());
        assert_eq!(text(environment), "LARDER_CONN_LIMIT=0: must be 1 or more");
        let file = Origin::File(PathBuf::from("/etc/larder.toml"));
        assert_eq!(text(file.clone()), "/etc/larder.toml: conn-limit = 0: must be 1 or more");
        assert_eq!(given(file).error("x", "y").exit_code(), 78);
    }

    #[test]
    fn refused_words_say_what_to_do() {
        let error = flag(&mut Layer::default(), "extended", "proxy_config=/p").unwrap_err();
        assert!(error.to_string().contains("in front of it"), "{error}");
        assert_eq!(error.exit_code(), 64);
    }
}
