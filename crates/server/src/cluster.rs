//! The servers that share the keys, from a file or from DNS, as clients with auto-discovery ask for them. Servers do
//! not know each other otherwise.

mod lookups;
mod message;
mod resolver;
mod srv;

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use larder_protocol::{ClusterNode, cluster_reply};

pub use lookups::LookupCounts;

use crate::small_file;
use lookups::Lookups;
use resolver::Resolver;

/// The most servers.
const NODES_MAX: usize = 1_000;
/// The most bytes of the file: every server with the longest name that there is, and its address.
const BYTES_MAX: u64 = NODES_MAX as u64 * 320;
/// The reply before DNS has answered. With `ERROR`, clients would take the server for one without discovery.
const UNKNOWN: &[u8] = b"SERVER_ERROR the servers of the cluster are not known yet\r\n";

/// The servers that a file or DNS lists.
pub struct Cluster {
    source: Source,
    known: Mutex<Known>,
    lookups: Lookups,
    /// Whether the servers are to be looked up now.
    is_due: Mutex<bool>,
    due: Condvar,
}

enum Source {
    File(PathBuf),
    Srv { name: String, server: Option<SocketAddr> },
}

struct Known {
    nodes: Vec<ClusterNode>,
    /// Grows when the servers change, also over a restart.
    version: u64,
    reply: Arc<[u8]>,
}

impl Default for Known {
    fn default() -> Known {
        Known { nodes: Vec::new(), version: 0, reply: UNKNOWN.into() }
    }
}

/// A look-up in DNS.
pub struct Renewal {
    /// The number of servers, if they have changed; or the problem, with which they stay as they were.
    pub result: Result<Option<usize>, String>,
    /// The time until the next look-up.
    pub next: Duration,
}

impl Cluster {
    /// Returns a cluster whose file has not been read.
    pub fn new(path: &Path) -> Cluster {
        Cluster::from(Source::File(path.to_path_buf()))
    }

    /// Returns a cluster whose name has not been looked up; by `server`, or by those of the host.
    pub fn of_srv(name: &str, server: Option<SocketAddr>) -> Cluster {
        Cluster::from(Source::Srv { name: name.to_string(), server })
    }

    fn from(source: Source) -> Cluster {
        Cluster {
            source,
            known: Mutex::default(),
            lookups: Lookups::new(),
            is_due: Mutex::new(false),
            due: Condvar::new(),
        }
    }

    /// Reads the file, and returns the number of servers in it; `None` without a file. Names without an address are
    /// looked up, which may take as long as the host's resolver allows. Servers from DNS become due to be looked up.
    ///
    /// # Errors
    /// The problem with the file and its remedy. The servers are the same as before then.
    pub fn load(&self) -> Result<Option<usize>, String> {
        let Source::File(path) = &self.source else {
            *self.is_due.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.due.notify_all();
            return Ok(None);
        };
        let shown = path.display();
        let file = small_file::read(path, BYTES_MAX).map_err(|problem| format!("{shown}: {problem}"))?;
        let nodes =
            parse(&String::from_utf8_lossy(&file.bytes)).map_err(|problem| format!("{shown}: {problem}"))?;
        let count = nodes.len();
        self.known().change(nodes, file.changed_s);
        Ok(Some(count))
    }

    /// Looks the servers up in DNS, for at most 20 seconds; `None` if they come from a file. The caller's thread
    /// serves no requests.
    pub fn renew(&self) -> Option<Renewal> {
        let Source::Srv { name, server } = &self.source else { return None };
        let resolver = server.map_or_else(Resolver::of_host, |server| Ok(Resolver::at(server)));
        let before = self.known().nodes.clone();
        let found = resolver.and_then(|resolver| srv::look_up(&resolver, name, &before));
        self.lookups.count(found.is_ok());
        Some(match found {
            Ok(found) => {
                let count = (found.nodes != before).then_some(found.nodes.len());
                let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
                self.known().change(found.nodes, now);
                Renewal { result: Ok(count), next: found.renew }
            }
            Err(problem) => Renewal { result: Err(problem), next: srv::RETRY },
        })
    }

    /// Waits for that long, or until the servers are to be looked up now.
    pub fn wait(&self, next: Duration) {
        let is_due = self.is_due.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.due.wait_timeout_while(is_due, next, |is_due| !*is_due);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    /// Returns the reply to `config get cluster`.
    pub fn reply(&self) -> Arc<[u8]> {
        self.known().reply.clone()
    }

    /// Returns the number of servers that clients are told; 0 before they are known.
    pub fn servers(&self) -> usize {
        self.known().nodes.len()
    }

    /// Returns the look-ups in DNS; `None` if the servers come from a file.
    pub fn lookups(&self) -> Option<LookupCounts> {
        matches!(self.source, Source::Srv { .. }).then(|| self.lookups.counts())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn change(&mut self, nodes: Vec<ClusterNode>, changed_s: u64) {
        if nodes == self.nodes {
            return;
        }
        // The time of the change: servers with the same file agree, and it grows over a restart.
        self.version = changed_s.max(self.version + 1);
        let mut reply = Vec::new();
        cluster_reply(&mut reply, self.version, &nodes);
        (self.nodes, self.reply) = (nodes, reply.into());
    }
}

/// Parses lines of the form `HOST:PORT` or `HOST:PORT ADDRESS`. Blank lines and those that begin with `#` are
/// skipped.
fn parse(text: &str) -> Result<Vec<ClusterNode>, String> {
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    let nodes: Result<Vec<_>, String> = lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            node(line).ok_or_else(|| {
                format!("line {number} is not of the form HOST:PORT or HOST:PORT ADDRESS: {line:?}")
            })
        })
        .collect();
    match nodes? {
        nodes if nodes.is_empty() => Err("lists no server".into()),
        nodes if nodes.len() > NODES_MAX => Err(format!("lists more than {NODES_MAX} servers")),
        nodes => Ok(nodes),
    }
}

fn node(line: &str) -> Option<ClusterNode> {
    let mut words = line.split_ascii_whitespace();
    let (name, address) = (words.next()?, words.next());
    let (host, port) = name.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let port = port.parse().ok().filter(|port| *port > 0)?;
    // A name is a word of the reply.
    let is_name = (1..=255).contains(&host.len()) && host.bytes().all(|b| b.is_ascii_graphic() && b != b'|');
    if !is_name || words.next().is_some() {
        return None;
    }
    let ip = match address {
        Some(address) => Some(address.parse::<IpAddr>().ok()?),
        None => {
            (host, port).to_socket_addrs().ok().and_then(|mut found| found.next()).map(|found| found.ip())
        }
    };
    let ip = ip.map_or_else(String::new, |ip| ip.to_string());
    Some(ClusterNode { host: host.into(), ip, port })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<String, String> {
        let nodes = parse(text)?;
        let shown = nodes.iter().map(|node| format!("{}|{}|{}", node.host, node.ip, node.port));
        Ok(shown.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn each_line_is_a_server() {
        let text = "# the west\n\nlarder-0.example:11211 10.0.0.1\n  10.0.0.2:11212  \n[::1]:11213\r\n";
        let expected = "larder-0.example|10.0.0.1|11211 10.0.0.2|10.0.0.2|11212 ::1|::1|11213";
        assert_eq!(shown(text).as_deref(), Ok(expected));
        assert_eq!(shown("name.invalid:1").as_deref(), Ok("name.invalid||1"), "a name that nobody knows");
    }

    #[test]
    fn what_is_no_server_is_refused_with_its_line() {
        let long = format!("{}:1", "x".repeat(256));
        let bad = ["a", "a:", ":1", "a:0", "a:65536", "a|b:1", "a:1 b", "a:1 ::1 c", "\u{e9}:1", &long];
        for line in bad {
            let why = shown(&format!("10.0.0.1:1\n{line}\n")).expect_err(line);
            assert!(why.contains("line 2"), "{why}");
        }
        assert!(shown("# nothing\n").is_err_and(|why| why.contains("no server")));
        assert!(shown(&"10.0.0.1:1\n".repeat(1_001)).is_err_and(|why| why.contains("1000")));
        assert!(shown("\u{fffd}:1").is_err(), "bytes that are no text");
    }

    #[test]
    fn the_version_grows_when_the_servers_change() {
        let nodes = |text| parse(text).expect("servers");
        let mut known = Known::default();
        let mut version = |text, changed_s| {
            known.change(nodes(text), changed_s);
            known.version
        };
        assert_eq!(version("10.0.0.1:1", 1_000), 1_000);
        assert_eq!(version("10.0.0.1:1 10.0.0.1", 2_000), 1_000, "the same servers");
        assert_eq!(version("10.0.0.2:1", 1_000), 1_001, "twice in a second");
        assert_eq!(version("10.0.0.1:1", 500), 1_002, "a clock that was set back");
    }
}
