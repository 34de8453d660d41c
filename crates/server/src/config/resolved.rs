//! The resolved configuration: typed fields, bounds checked, ready for the daemon. It opens nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use larder_store::Admission;

use super::cluster::ClusterOptions;
use super::http::HttpOptions;
use super::layer::{Layer, Origin, Setting};
use super::listen::{Listen, Protocol};
use super::option::{Effect, Id};
use super::options::OPTIONS;
use super::ssd::{SsdPath, SsdShare};
use super::tls::TlsOptions;
use super::words::Word;

/// The value of `--memory-file` that is no path: the service manager keeps the memory.
pub(super) const SYSTEMD: &str = "systemd";

/// The program whose defaults apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Personality {
    /// Larder's: loopback only, and an SSD file in the user's cache directory.
    Larder,
    /// memcached's, under the name `memcached` or `memcached-ANYTHING`: every interface, and no SSD.
    Memcached,
}

/// The TCP port of `-p`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpPort {
    /// No TCP.
    Off,
    /// One the kernel picks.
    Ephemeral,
    /// This one.
    Fixed(u16),
}

/// The interface to the SSD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    /// io_uring where it works, else threads.
    Auto,
    /// io_uring, or do not start.
    Uring,
    /// Positional reads and writes on a pool of threads.
    Threads,
}

/// A Unix socket to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixSocket {
    /// Its path.
    pub path: PathBuf,
    /// Its access mask.
    pub mode: u32,
}

/// The configuration of one daemon. Sizes are in bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The program whose defaults apply.
    pub personality: Personality,
    /// The addresses to listen on for TCP; empty if a Unix socket is given, which replaces TCP as in memcached.
    pub listen: Vec<Listen>,
    /// The port of the entries of `listen` that have none of their own.
    pub tcp_port: TcpPort,
    /// The Unix socket to listen on, instead of TCP.
    pub unix_socket: Option<UnixSocket>,
    /// The file for the ports in use, from `MEMCACHED_PORT_FILENAME`: lines `TCP INET: 11211` or `UNIX: path`,
    /// written to a neighbouring file that is then renamed.
    pub port_file: Option<PathBuf>,
    /// The kernel's queue of connections to be accepted.
    pub backlog: u32,
    /// The most connections at once.
    pub conn_limit: u32,
    /// Whether a connection over the limit is answered with an error and closed, rather than left waiting.
    pub conn_limit_fast: bool,
    /// Bound of all connections' buffers together.
    pub conn_memory_bytes: u64,
    /// Bound of subscriptions and leases together; 0 for none.
    pub lease_memory_bytes: u64,
    /// The time after which an idle connection is closed; `None` is never.
    pub idle_timeout: Option<Duration>,
    /// The users; `None` lets everybody in. With users, `protocol` is text alone unless binary connections can
    /// authenticate.
    pub auth_file: Option<PathBuf>,
    /// How to speak TLS; `None` is without.
    pub tls: Option<TlsOptions>,
    /// The access mask of Unix sockets.
    pub unix_mask: u32,
    /// The HTTP interface; `None` is without.
    pub http: Option<HttpOptions>,
    /// Where the servers that share the keys come from; `None`: clients are told of none.
    pub cluster: Option<ClusterOptions>,
    /// Whether everybody may be let in on other addresses than loopback.
    pub insecure_listen: bool,
    /// The protocol of connections to listeners that do not say otherwise.
    pub protocol: Protocol,
    /// Event-loop threads, 1 or more.
    pub threads: usize,
    /// Requests served for one connection before the others get their turn, 1 or more.
    pub reqs_per_event: u32,

    /// RAM for all the store keeps.
    pub memory_limit_bytes: u64,
    /// RAM for the index, out of `memory_limit_bytes`; `None`: it follows the items.
    pub index_memory_bytes: Option<u64>,
    /// RAM for shadows, out of `memory_limit_bytes`; `None`: a part of it.
    pub shadow_memory_bytes: Option<u64>,
    /// The size of a typical item.
    pub item_size_bytes: u64,
    /// The largest item.
    pub item_size_max_bytes: u64,
    /// Whether a full memory evicts; if not, sets fail.
    pub evictions: bool,
    /// The file that holds the store's RAM, if it is to outlive the process; see
    /// [`keeps_memory_in_service`](Config::keeps_memory_in_service) for `systemd`.
    pub memory_file: Option<PathBuf>,
    /// The file to which it is saved at a stop, if it is to outlive a restart of the machine. Never together with
    /// `memory_file`.
    pub state_file: Option<PathBuf>,
    /// Whether to lock all memory.
    pub lock_memory: bool,

    /// The files and devices of the SSD tier; empty: RAM only.
    pub ssd: Vec<SsdPath>,
    /// The part of them that is this process's.
    pub ssd_share: SsdShare,
    /// Whether to start with an empty SSD tier whatever it holds.
    pub ssd_format: bool,
    /// Bound of writes to the SSD, bytes a second; `None` is none.
    pub ssd_write_limit: Option<u64>,
    /// The bytes that each path may take over its life; `None` if that was not said.
    pub ssd_endurance_bytes: Option<u64>,
    /// The longest time that a set waits for the SSD.
    pub ssd_write_wait: Duration,
    /// The items evicted from RAM that are written to the SSD.
    pub ssd_admission: Admission,
    /// Whether that is the first one only, and shadows choose the one that misses less.
    pub chooses_admission: bool,
    /// The percentage of the SSD's bytes up to which all live items are kept there.
    pub ssd_live_percent: u32,
    /// The interface to the SSD.
    pub io: Io,

    /// Whether items have CAS values.
    pub cas: bool,
    /// Whether `flush_all` is allowed.
    pub flush_all: bool,
    /// Whether `stats cachedump` and `lru_crawler metadump` are allowed.
    pub dumping: bool,
    /// Whether `watch` is allowed.
    pub watching: bool,
    /// Bound of the lines that wait for one watcher.
    pub watcher_queue_bytes: usize,
    /// Whether `stats sizes` counts items by size from the start.
    pub track_sizes: bool,
    /// Whether `shutdown` is allowed.
    pub shutdown: bool,
    /// The character that separates a key's prefix from its rest in `stats detail`.
    pub prefix_delimiter: u8,
    /// Whether `stats detail` counts from the start.
    pub stats_detail: bool,
    /// Whether `stats` shows the keys of memcached's LRU crawler.
    pub lru_crawler: bool,
    /// Whether `stats` shows the keys of memcached's LRU maintainer.
    pub lru_maintainer: bool,

    /// Whether to run in the background.
    pub daemon: bool,
    /// The user to become, if started by root.
    pub user: Option<String>,
    /// The file for the process id.
    pub pidfile: Option<PathBuf>,
    /// The verbosity of the log, 0 to 3.
    pub verbosity: u8,

    /// Open files that all connections of `-c` and the daemon itself need; 0 until the start has counted them.
    pub open_files_wanted: u64,
    /// To be printed at start, one a line.
    pub warnings: Vec<String>,
    /// Options given without effect, as `-f` or `-o hashpower`; for one line at `-v`.
    pub ignored: Vec<String>,
    /// All values as given, with their origins.
    pub(super) raw: Layer,
}

impl Config {
    /// Returns whether the store's RAM and the listening sockets are kept by the service manager while no daemon runs.
    pub fn keeps_memory_in_service(&self) -> bool {
        self.memory_file.as_deref() == Some(Path::new(SYSTEMD))
    }

    /// Returns the source of an option's value.
    pub fn origin(&self, id: Id) -> &Origin {
        self.raw.last(Setting::Opt(id)).map_or(&Origin::Default, |given| &given.origin)
    }

    /// Returns the value of an `-o` word: as given, or its default; empty for a name that is no word.
    pub fn word(&self, name: &str) -> &str {
        self.raw.word(name)
    }

    /// Options given without effect, with their origins.
    pub(super) fn without_effect(raw: &Layer) -> Vec<String> {
        let mut names = Vec::new();
        for opt in OPTIONS.iter().filter(|opt| opt.effect == Effect::Ignored) {
            if raw.is_given(Setting::Opt(opt.id)) {
                names
                    .push(opt.short.map_or_else(|| format!("--{}", opt.long), |letter| format!("-{letter}")));
            }
        }
        for (name, _) in raw.words() {
            if Word::by_name(name).is_some_and(|word| word.effect == Effect::Ignored) {
                names.push(format!("-o {name}"));
            }
        }
        names
    }
}
