//! The sources of values: command line, environment, file. Each fills a layer and interprets nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use lexopt::Arg;
use toml::{Table, Value};

use super::error::ConfigError;
use super::layer::{Layer, Origin};
use super::option::{Id, Kind, Opt};
use super::options::OPTIONS;

/// The request of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// To run.
    Run,
    /// A help page: `""` the page of `-h`, `"ext"` the page of memcached's names for SSD storage.
    Help(String),
    /// The versions.
    Version,
    /// The licence.
    License,
    /// Every value with its origin.
    PrintConfig,
    /// The commented example file.
    PrintExample,
    /// A plan for the items that these words describe.
    Plan(String),
}

/// Reads the command line, without the program's name, into `layer`.
///
/// # Errors
/// An unknown option, a missing or superfluous value, or one that [`Layer::add`] refuses.
pub fn command_line(args: &[OsString], layer: &mut Layer) -> Result<Asked, ConfigError> {
    let mut parser = lexopt::Parser::from_args(args);
    // `-D=` gives the delimiter `=`: a letter's value begins right behind it, as with getopt.
    parser.set_short_equals(false);
    let mut asked = Asked::Run;
    while let Some(arg) = parser.next().map_err(usage)? {
        let (opt, flag, long) = match arg {
            Arg::Short(letter) => (Opt::by_short(letter), format!("-{letter}"), false),
            Arg::Long(name) => (Opt::by_long(name), format!("--{name}"), true),
            Arg::Value(text) => {
                let text = text.to_string_lossy();
                return Err(ConfigError::Usage(format!(
                    "unexpected argument \"{text}\"; options begin with a -"
                )));
            }
        };
        let Some(opt) = opt else {
            return Err(ConfigError::Usage(format!("unknown option {flag}; see --help for the known ones")));
        };
        let takes_value = !matches!(opt.kind, Kind::Flag | Kind::Count);
        let text = if takes_value {
            Some(parser.value().map_err(|_| ConfigError::Usage(format!("{flag} needs a value")))?)
        } else if long {
            parser.optional_value()
        } else {
            None
        };
        let text = text.map(OsString::into_string).transpose();
        let text = text.map_err(|_| ConfigError::Usage(format!("the value of {flag} is not UTF-8")))?;
        match (opt.id, text) {
            (Id::Help, topic) => return Ok(Asked::Help(topic.unwrap_or_default())),
            (Id::Version, _) => return Ok(Asked::Version),
            (Id::License, _) => return Ok(Asked::License),
            (Id::PrintConfig, None) => asked = Asked::PrintConfig,
            (Id::PrintConfig, Some(what)) if what == "example" => asked = Asked::PrintExample,
            (Id::PrintConfig, Some(what)) => {
                let message = format!("{flag}={what}: only --print-config and --print-config=example exist");
                return Err(ConfigError::Usage(message));
            }
            (Id::Plan, Some(words)) => {
                layer.add(opt, &words, Origin::Flag(flag))?;
                asked = Asked::Plan(words);
            }
            (_, Some(text)) => layer.add(opt, &text, Origin::Flag(flag))?,
            (_, None) if opt.kind == Kind::Count => layer.add(opt, "1", Origin::Flag(flag))?,
            (_, None) => layer.add(opt, "yes", Origin::Flag(flag))?,
        }
    }
    Ok(asked)
}

fn usage(error: lexopt::Error) -> ConfigError {
    ConfigError::Usage(format!("{error}; see --help"))
}

/// Options that keep others out: an empty variable of theirs is most likely one that was meant to be set.
const SECURING: [Id; 4] = [Id::AuthFile, Id::EnableSasl, Id::EnableSsl, Id::HttpTokenFile];

/// Reads the `LARDER_*` variables among `variables` into `layer`. Returns warnings about names that no option has.
/// An empty variable counts as absent, unless its option keeps others out, and commas separate several SSD paths.
/// Variables that Kubernetes sets for a service called `larder` are ignored.
///
/// # Errors
/// A value that [`Layer::add`] refuses.
pub fn environment(
    variables: &BTreeMap<String, String>,
    layer: &mut Layer,
) -> Result<Vec<String>, ConfigError> {
    let mut warnings = Vec::new();
    for (name, text) in variables.iter().filter(|(name, _)| name.starts_with("LARDER_")) {
        let option = OPTIONS.iter().find(|opt| opt.in_environment() && opt.env_name() == *name);
        let may_be_empty = option.is_none_or(|opt| !SECURING.contains(&opt.id));
        if text.is_empty() && may_be_empty || is_service_link(name, text) {
            continue;
        }
        let origin = || Origin::Environment(name.clone());
        match option {
            Some(opt) if opt.id == Id::Ssd => {
                text.split(',').try_for_each(|path| layer.add(opt, path, origin()))?;
            }
            Some(opt) => layer.add(opt, text, origin())?,
            None => warnings.push(format!("{name} is set in the environment, but no option has that name")),
        }
    }
    Ok(warnings)
}

/// Returns whether a variable is set by Kubernetes. In a namespace with a service `larder`, it sets
/// `LARDER_PORT=tcp://10.0.0.7:11211` and names such as `LARDER_SERVICE_HOST` and `LARDER_PORT_11211_TCP_ADDR` in
/// every container.
fn is_service_link(name: &str, text: &str) -> bool {
    let url = text.starts_with("tcp://") || text.starts_with("udp://");
    (name == "LARDER_PORT" && url) || name.starts_with("LARDER_SERVICE_") || name.starts_with("LARDER_PORT_")
}

/// Reads the TOML file at `path` into `layer`.
///
/// # Errors
/// It cannot be read, is not TOML, has a key that is no option, or a value that is not of the option's form.
pub fn file(path: &Path, layer: &mut Layer) -> Result<(), ConfigError> {
    let error = |message: String| ConfigError::File { path: path.to_path_buf(), message };
    let text = std::fs::read_to_string(path).map_err(|e| error(format!("cannot be read: {e}")))?;
    let table =
        text.parse::<Table>().map_err(|e| error(format!("is not TOML: {}", e.to_string().trim_end())))?;
    for (key, value) in &table {
        let opt = Opt::by_long(key).filter(|opt| opt.in_file()).ok_or_else(|| {
            error(format!("unknown key {key}; --print-config=example prints a file with all the keys"))
        })?;
        let texts = texts(opt, value).map_err(|message| error(format!("{key}: {message}")))?;
        for text in texts {
            layer.add(opt, &text, Origin::File(path.to_path_buf()))?;
        }
    }
    Ok(())
}

fn texts(opt: &Opt, value: &Value) -> Result<Vec<String>, String> {
    match (value, opt.kind) {
        (Value::Array(values), Kind::List(_)) => values.iter().map(scalar).collect(),
        (Value::Boolean(_), Kind::Flag) => Ok(vec![scalar(value)?]),
        (_, Kind::Flag) => Err("must be true or false".to_string()),
        // TOML's 700 is decimal, its 0o700 is octal, and the two cannot be told apart once they are numbers.
        (Value::Integer(_), Kind::Octal) => Err("write it in quotes, such as \"700\"".to_string()),
        (Value::Boolean(_), _) => Err("takes a value, not true or false".to_string()),
        _ => Ok(vec![scalar(value)?]),
    }
}

fn scalar(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(n) => Ok(n.to_string()),
        Value::Float(x) => Ok(x.to_string()),
        Value::Boolean(yes) => Ok(if *yes { "yes" } else { "no" }.to_string()),
        other => Err(format!("must be a text or a number, not a {}", other.type_str())),
    }
}

/// Returns the variables of this process that matter: ours, the cache directory's, and the one that asks for a file
/// with the ports. One that is not UTF-8 is read with replacement characters, and fails where it is used.
pub fn own_variables() -> BTreeMap<String, String> {
    const OTHERS: [&str; 3] = ["XDG_CACHE_HOME", "HOME", "MEMCACHED_PORT_FILENAME"];
    let text = |s: OsString| s.to_string_lossy().into_owned();
    std::env::vars_os()
        .map(|(name, value)| (text(name), text(value)))
        .filter(|(name, _)| name.starts_with("LARDER_") || OTHERS.contains(&name.as_str()))
        .collect()
}
