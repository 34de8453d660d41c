//! The one error of configuration, and the exit code each kind ends the process with.

use std::fmt;
use std::path::PathBuf;

/// The reason why no configuration could be made. Its text is for the operator: it names the value, where it was
/// given, and a value to give instead.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A flag or an environment variable that does not parse, is out of bounds, or is refused.
    Usage(String),
    /// The configuration file cannot be read, is not TOML, or holds a key or value that does not fit.
    File {
        /// The file named by `--config` or `LARDER_CONFIG`.
        path: PathBuf,
        /// The problem with it.
        message: String,
    },
    /// Every value is valid by itself, but they cannot be had together.
    Impossible(String),
}

impl ConfigError {
    /// Returns the exit code of a process that ends with this error: 64 (`EX_USAGE`) or 78 (`EX_CONFIG`) of
    /// `sysexits.h`, as memcached uses 64 for its options.
    pub fn exit_code(&self) -> u8 {
        match self {
            ConfigError::Usage(_) => 64,
            ConfigError::File { .. } | ConfigError::Impossible(_) => 78,
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Usage(message) | ConfigError::Impossible(message) => f.write_str(message),
            ConfigError::File { path, message } => write!(f, "{}: {message}", path.display()),
        }
    }
}

impl std::error::Error for ConfigError {}
