//! File descriptors: as many as `-c` asks for, or fewer connections and a warning.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;

/// Descriptors of one worker: its loop, timer, inbox, and I/O queue with its own.
const PER_WORKER: u64 = 8;
/// Descriptors opened now and then: state, pid and port files, `/proc`, a connection on its way to be refused.
const SPARE: u64 = 16;
/// Descriptors of the HTTP interface: its own and its connections, with room for some that are on their way.
const HTTP: u64 = 80;
/// Descriptors of one SSD path.
const PER_FILE: u64 = 2;

/// Raises the process's limit on open files to the number that the configuration needs, the hard limit too if that
/// is allowed. If not, lowers the configuration's limit of connections to the number that can be served, and warns.
pub fn raise(config: &mut Config) {
    let open = fs::read_dir("/proc/self/fd").map_or(16, |entries| entries.count() as u64);
    let reserved = open + config.threads as u64 * PER_WORKER + config.ssd.len() as u64 * PER_FILE + SPARE;
    let reserved = reserved + if config.http.is_some() { HTTP } else { 0 };
    let wanted = u64::from(config.conn_limit) + reserved;
    config.open_files_wanted = wanted;
    let may_open = raise_to(wanted);
    let served = may_open.saturating_sub(reserved).max(1);
    if served < u64::from(config.conn_limit) {
        config.warnings.push(format!(
            "-c {}: the process may open {may_open} files, which is enough for {served} connections; raise \
             ulimit -n to {wanted}, or lower -c",
            config.conn_limit
        ));
        config.conn_limit = served as u32;
    }
}

/// Raises the limit on open files to `wanted`, or as far as it goes. Returns the limit.
fn raise_to(wanted: u64) -> u64 {
    let limit = || getrlimit(Resource::Nofile);
    let Rlimit { current, maximum } = limit();
    if current.is_none_or(|current| current >= wanted) {
        return u64::MAX;
    }
    let hard = maximum.map(|maximum| maximum.max(wanted));
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: hard });
    if raised.is_err() {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
    limit().current.unwrap_or(u64::MAX)
}
