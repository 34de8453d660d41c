//! The configuration of the daemon, in two steps: raw values with their origins, then typed and checked fields.
//!
//! ```text
//! options.rs, words.rs    the tables: every option, every -o word (option.rs: the form of a row)
//!    |
//! sources.rs              command line, environment, file  -> layer.rs   raw values with origins
//!    |                                                            |
//! values.rs listen.rs ssd.rs tls.rs http.rs to values               resolve.rs  bounds, conflicts; typed.rs
//!    |                                                            |
//! help.rs show.rs         pages and example, off the tables  resolved.rs `Config`
//!                                                                 |
//!                                                            settings.rs `stats settings`
//! ```
//!
//! Flags override the environment, the environment the file, the file the defaults. No socket or device is opened
//! here.

#![forbid(unsafe_code)]

mod cluster;
mod error;
mod help;
mod http;
mod layer;
mod listen;
mod option;
mod options;
mod plan;
mod resolve;
mod resolved;
mod settings;
mod show;
mod sources;
mod ssd;
mod tls;
mod typed;
mod values;
mod words;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use cluster::ClusterOptions;
pub use error::ConfigError;
pub use help::{COMPATIBLE_VERSION, EXIT_CODES, SOURCES, VERSION, extended_words, help_introduction};
pub use http::{HTTP_PORT, HttpAddress, HttpOptions};
pub use layer::Origin;
pub use listen::{Listen, ListenTls, Protocol};
pub use option::{Effect, Fallback, Group, Id, Kind, Opt};
pub use options::OPTIONS;
pub use plan::PlanRequest;
pub use resolved::{Config, Io, Personality, TcpPort, UnixSocket};
pub use show::{ShownValue, values_of};
pub use ssd::{SsdPath, SsdShare};
pub use tls::{ClientCertificates, KeyFormat, TlsOptions};
pub use values::{rate, show_size, size};

use larder_cli::Setting;
use layer::Layer;
use sources::Asked;

/// Everything outside the process that its configuration depends on.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The command line, the program's name first.
    pub args: Vec<OsString>,
    /// The environment, or the part of it that matters.
    pub variables: BTreeMap<String, String>,
    /// The cores this process may use.
    pub cores: usize,
}

impl Surroundings {
    /// Returns those of this process.
    pub fn of_this_process() -> Surroundings {
        Surroundings {
            args: std::env::args_os().collect(),
            variables: sources::own_variables(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    fn personality(&self) -> Personality {
        let name = self.args.first().map(Path::new).and_then(Path::file_name);
        let name = name.map(|name| name.to_string_lossy()).unwrap_or_default();
        if name == "memcached" || name.starts_with("memcached-") {
            Personality::Memcached
        } else {
            Personality::Larder
        }
    }
}

/// The command line's request.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Serve, with this configuration.
    Run(Box<Config>),
    /// Print this text to standard output and end with exit code 0.
    Print(String),
    /// Print this plan, and end.
    Plan(PlanRequest),
}

/// Reads command line, environment and file, and resolves them.
///
/// # Errors
/// See [`ConfigError`]; print it to standard error and end with its exit code.
pub fn load(surroundings: &Surroundings) -> Result<Command, ConfigError> {
    let mut flags = Layer::default();
    let args = surroundings.args.get(1..).unwrap_or_default();
    let asked = sources::command_line(args, &mut flags)?;
    match &asked {
        Asked::Help(topic) => return help::page(topic).map(Command::Print),
        Asked::Version => return Ok(Command::Print(help::versions())),
        Asked::License => return Ok(Command::Print(help::licence())),
        Asked::PrintExample => return Ok(Command::Print(show::example())),
        Asked::Plan(_) => plan::check(&flags)?,
        Asked::Run | Asked::PrintConfig => plan::check_without(&flags)?,
    }
    let is_json = flags
        .last(layer::Setting::Opt(Id::Json))
        .is_some_and(|given| values::switch(&given.text) == Ok(true));
    let mut environment = Layer::default();
    let warnings = sources::environment(&surroundings.variables, &mut environment)?;
    let given = environment.under(flags);
    let mut file = Layer::default();
    if let Some(path) = given.last(layer::Setting::Opt(Id::Config)) {
        sources::file(&PathBuf::from(&path.text), &mut file)?;
    }
    let merged = Layer::defaults().under(file).under(given);
    let (personality, variables) = (surroundings.personality(), &surroundings.variables);
    let config = resolve::resolve(merged, personality, variables, surroundings.cores, warnings)?;
    if asked == Asked::PrintConfig {
        return Ok(Command::Print(show::config(&config)));
    }
    let config = Box::new(config);
    Ok(match asked {
        Asked::Plan(words) => Command::Plan(PlanRequest { words, is_json, config }),
        _ => Command::Run(config),
    })
}

/// Returns the settings that the daemon would have if it was started with these options, here and now.
///
/// # Errors
/// The options are wrong, or ask for something else than to serve; the text says what.
pub fn settings_of(options: &[OsString]) -> Result<Vec<Setting>, String> {
    let own = Surroundings::of_this_process();
    let program = own.args.first().cloned().into_iter();
    match load(&Surroundings { args: program.chain(options.iter().cloned()).collect(), ..own }) {
        Ok(Command::Run(config)) => Ok(values_of(&config).into_iter().map(Setting::from).collect()),
        Ok(Command::Print(_) | Command::Plan(_)) => {
            Err("these options print something; give those of a start".to_string())
        }
        Err(error) => Err(error.to_string()),
    }
}

impl Config {
    /// Returns the configuration of a command line alone, the program's name first: no environment, one core. For
    /// tests, and for embedding the server.
    ///
    /// # Errors
    /// As [`load`]; and a command line that asks to print something.
    pub fn from_args<A: Into<OsString>>(args: impl IntoIterator<Item = A>) -> Result<Config, ConfigError> {
        let args = args.into_iter().map(Into::into).collect();
        match load(&Surroundings { args, variables: BTreeMap::new(), cores: 1 })? {
            Command::Run(config) => Ok(*config),
            Command::Print(_) | Command::Plan(_) => {
                Err(ConfigError::Usage("this asks to print, not to run".to_string()))
            }
        }
    }
}

#[cfg(test)]
mod tests;
