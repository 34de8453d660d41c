//! Servers under test: how each is started, on a port of its own, and that it answers.

use super::Host;
use super::child::Child;
use crate::engine::Address;
use crate::watch::counters;
use crate::wire::Protocol;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);
const MIB: u64 = 1 << 20;
/// memcached's page of its SSD file; small, so that a small file has several.
const EXTSTORE_PAGE_MIB: u64 = 8;

/// The kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Make {
    /// Larder.
    Larder,
    /// memcached, in RAM only.
    Memcached,
    /// memcached with its SSD tier.
    Extstore,
    /// redis.
    Redis,
}

impl Make {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Larder => "larder",
            Self::Memcached => "memcached",
            Self::Extstore => "memcached-extstore",
            Self::Redis => "redis",
        }
    }

    /// The protocol that a plain client of it speaks.
    pub fn protocol(self) -> Protocol {
        if self == Self::Redis { Protocol::Resp2 } else { Protocol::Text }
    }
}

/// Where it listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A free port of an address.
    Tcp(Ipv4Addr),
    /// A Unix socket in the folder of its files.
    Unix,
}

/// A share of a file for the SSD tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ssd {
    /// The file.
    pub path: PathBuf,
    /// The whole file's size.
    pub bytes: u64,
    /// Which of how many parts, from 1.
    pub share: (u32, u32),
}

/// How to start a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The kind of server.
    pub make: Make,
    /// Where it listens.
    pub listen: Listen,
    /// RAM for items, as its option `-m` counts it.
    pub memory_mib: u64,
    /// Its SSD tier.
    pub ssd: Option<Ssd>,
    /// The size of a typical item, when it is worth saying.
    pub item_bytes: Option<u32>,
    /// Connections at most.
    pub connections: usize,
    /// Threads.
    pub threads: usize,
}

impl Setup {
    /// On a loopback port, in RAM of 64 MiB.
    pub fn new(make: Make) -> Self {
        let listen = Listen::Tcp(Ipv4Addr::LOCALHOST);
        Self { make, listen, memory_mib: 64, ssd: None, item_bytes: None, connections: 1024, threads: 4 }
    }

    /// Its arguments.
    fn arguments(&self, port: u16, socket: &Path, is_root: bool) -> Vec<String> {
        let mut words = Vec::new();
        let mut add = |more: &[String]| words.extend(more.iter().cloned());
        let of = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (memory, port, socket) =
            (self.memory_mib.to_string(), port.to_string(), socket.display().to_string());
        if self.make == Make::Redis {
            add(&of(&["--save", "", "--appendonly", "no", "--loglevel", "warning"]));
            add(&of(&["--maxmemory", &format!("{memory}mb"), "--maxmemory-policy", "allkeys-lru"]));
            add(&of(&["--maxclients", &self.connections.to_string()]));
            match &self.listen {
                Listen::Tcp(at) => {
                    add(&of(&["--port", &port, "--bind", &at.to_string(), "--protected-mode", "no"]))
                }
                Listen::Unix => add(&of(&["--port", "0", "--unixsocket", &socket])),
            }
            return words;
        }
        add(&of(&["-m", &memory, "-c", &self.connections.to_string(), "-t", &self.threads.to_string()]));
        match &self.listen {
            Listen::Tcp(at) => {
                add(&of(&["-p", &port, "-l", &at.to_string()]));
                if self.make == Make::Larder && !at.is_loopback() {
                    add(&of(&["--insecure-listen"]));
                }
            }
            Listen::Unix => add(&of(&["-s", &socket])),
        }
        if is_root {
            add(&of(&["-u", "root"]));
        }
        match (self.make, &self.ssd) {
            (Make::Larder, None) => add(&of(&["--ssd", "none"])),
            (Make::Larder, Some(Ssd { path, bytes, share: (part, parts) })) => {
                add(&of(&["--ssd", &format!("{}:{}k", path.display(), bytes >> 10)]));
                add(&of(&["--ssd-share", &format!("{part}/{parts}")]));
            }
            (Make::Extstore, Some(Ssd { path, bytes, .. })) => {
                let size = format!("{}:{}m", path.display(), bytes / MIB);
                // By default it writes no values as small as 100 bytes to its SSD.
                let pages = format!("ext_page_size={EXTSTORE_PAGE_MIB},ext_wbuf_size=2");
                let options =
                    format!("{pages},ext_path={size},ext_item_size=64,ext_item_age=1,ext_threads=8");
                add(&of(&["-o", &options]));
            }
            _ => {}
        }
        if let (Make::Larder, Some(bytes)) = (self.make, self.item_bytes) {
            add(&of(&["--item-size", &bytes.to_string()]));
        }
        words
    }
}

/// Where a server is started.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// This machine.
    pub host: &'a Host,
    /// Ends the wait for it early.
    pub stop: &'a AtomicBool,
    /// The folder of its socket and its log.
    pub folder: &'a Path,
    /// Tells its files from those of other servers.
    pub number: u32,
    /// Its program.
    pub program: &'a Path,
}

/// A server that answers. It ends when it is dropped.
#[derive(Debug)]
pub struct Server {
    /// Where it is.
    pub address: Address,
    /// Its name and version, as it reports them.
    pub version: String,
    /// How it was started.
    pub setup: Setup,
    child: Child,
}

impl Server {
    /// Starts one, and waits until it answers.
    ///
    /// # Errors
    /// It does not start, its port is taken, or a stop was asked for; in words.
    pub fn start(place: &Place<'_>, setup: &Setup) -> Result<Self, String> {
        let Place { host, stop, folder, number, program } = *place;
        let (address, port) = match &setup.listen {
            Listen::Tcp(at) => {
                let port = free_port(*at).map_err(|e| format!("no free port at {at}: {e}"))?;
                (Address::Tcp { host: at.to_string(), port }, port)
            }
            Listen::Unix => (Address::Unix(folder.join(format!("{number}.sock"))), 0),
        };
        let socket = match &address {
            Address::Unix(path) => path.clone(),
            Address::Tcp { .. } => PathBuf::new(),
        };
        let mut words = vec![program.display().to_string()];
        words.extend(setup.arguments(port, &socket, host.is_root));
        let log = folder.join(format!("{number}-{}.log", setup.make.name()));
        let mut child = Child::start(host, &host.server_cpus, &words, &log, None)?;
        let mut version = String::new();
        child.wait_until(PATIENCE, stop, || {
            match counters::ask(&address, setup.make.protocol(), None, None) {
                Ok(found) if !found.server.is_empty() => {
                    version = found.server;
                    true
                }
                _ => false,
            }
        })?;
        Ok(Self { address, version, setup: setup.clone(), child })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// One of its counters as a number; 0 when it has none of that name.
    pub fn counter(&self, name: &str) -> f64 {
        let found = counters::ask(&self.address, self.setup.make.protocol(), None, None).unwrap_or_default();
        found.values.get(name).and_then(|value| value.parse().ok()).unwrap_or(0.0)
    }

    /// Its port; 0 when it has none.
    pub fn port(&self) -> u16 {
        match &self.address {
            Address::Tcp { port, .. } => *port,
            Address::Unix(_) => 0,
        }
    }
}

/// Returns a port that is free now.
///
/// # Errors
/// There is none, or no such address.
pub fn free_port(at: Ipv4Addr) -> std::io::Result<u16> {
    Ok(TcpListener::bind((at, 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_gets_its_own_words() {
        let words = |setup: &Setup| setup.arguments(7, Path::new("/s"), true).join(" ");
        let larder = words(&Setup::new(Make::Larder));
        assert!(larder.contains("-p 7 -l 127.0.0.1 -u root --ssd none"), "{larder}");
        let other = Setup { listen: Listen::Tcp(Ipv4Addr::new(10, 0, 0, 1)), ..Setup::new(Make::Larder) };
        assert!(words(&other).contains("-l 10.0.0.1 --insecure-listen"), "{}", words(&other));
        let ssd = Ssd { path: "/f".into(), bytes: 640 * MIB, share: (3, 8) };
        let shared =
            words(&Setup { ssd: Some(ssd.clone()), item_bytes: Some(150), ..Setup::new(Make::Larder) });
        assert!(shared.contains("--ssd /f:655360k --ssd-share 3/8 --item-size 150"), "{shared}");
        let extstore = words(&Setup { ssd: Some(ssd), ..Setup::new(Make::Extstore) });
        assert!(extstore.contains("ext_page_size=8,ext_wbuf_size=2,ext_path=/f:640m,"), "{extstore}");
        let redis = words(&Setup { listen: Listen::Unix, ..Setup::new(Make::Redis) });
        assert!(redis.contains("--port 0 --unixsocket /s") && !redis.contains("-u root"), "{redis}");
    }
}
