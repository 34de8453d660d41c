//! What a user may choose of a scenario: servers that run already, sizes, counts, and programs to measure with.

use crate::net::Address;
use std::path::PathBuf;
use std::time::Duration;

/// The choices; what is empty is as in the document.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// A server that runs already, in place of those that are started as the remote ones.
    pub server: Option<Address>,
    /// The same for the local ones.
    pub near: Option<Address>,
    /// Sizes of values in bytes; the first one is reported in full.
    pub sizes: Vec<u32>,
    /// A file whose content is the value, in place of generated ones of some size.
    pub value: Option<PathBuf>,
    /// Iterations of a loop, its keys, or increments of a counter.
    pub count: Option<u64>,
    /// Numbers of connections a thread.
    pub per_thread: Vec<usize>,
    /// Numbers of threads that increment a counter.
    pub threads: Vec<u32>,
    /// Numbers of threads of a server, to see how it scales with them.
    pub server_threads: Vec<usize>,
    /// Numbers of server processes of one thread that share the keys, to see how they scale.
    pub processes: Vec<usize>,
    /// Times that a round trip to the remote server is made longer by; zero for the way as it is.
    pub distances: Vec<Duration>,
    /// The program that drives Larder's client.
    pub driver: Option<PathBuf>,
    /// A Python with the modules to measure.
    pub python: Option<PathBuf>,
}
