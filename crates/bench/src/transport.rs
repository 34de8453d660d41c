//! Ways to another host: a command that leads to a shell there, a script for that shell, and framed messages.

pub mod frame;
pub mod host;
pub mod remote;
pub mod shell_words;
mod stripped;

pub use host::{Host, Transport};
pub use remote::Program;

/// The version of this program; an agent must have the same.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
