//! Several hosts on this machine: network namespaces, each with a cable of its own to one bridge. They need
//! root and the program `ip`, and go when they are dropped.
//!
//! ```text
//!   host 1 (10.x.y.11) --+
//!   host 2 (10.x.y.12) --+-- bridge (10.x.y.1), where the server listens
//!   ...                --+
//! ```

use super::Host;
use super::host;
use rustix::fd::AsFd;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// Names of interfaces have 15 letters at most.
const NUMBER_MAX: u32 = 100_000;
/// Where `ip` keeps the names of namespaces.
const NAMES: &str = "/var/run/netns";

/// Namespaces around a bridge.
#[derive(Debug)]
pub struct Netns {
    ip: PathBuf,
    bridge: String,
    /// The namespaces' names.
    pub hosts: Vec<String>,
    /// The bridge's own address.
    pub middle: Ipv4Addr,
}

impl Netns {
    /// Creates `count` hosts around a bridge.
    ///
    /// # Errors
    /// Namespaces cannot be made here; in words. Those made until then are removed.
    pub fn new(host: &Host, count: u8) -> Result<Self, String> {
        if !host.is_root {
            return Err("namespaces need root".to_string());
        }
        let ip = host::program("ip", &[]).ok_or("there is no program `ip`")?;
        let number = std::process::id() % NUMBER_MAX;
        let [_, _, x, y] = number.to_be_bytes();
        let mut netns =
            Self { ip, bridge: format!("lb{number}"), hosts: Vec::new(), middle: Ipv4Addr::new(10, x, y, 1) };
        let bridge = netns.bridge.clone();
        netns.ip(&["link", "add", &bridge, "type", "bridge"])?;
        netns.ip(&["addr", "add", &format!("{}/24", netns.middle), "dev", &bridge])?;
        netns.ip(&["link", "set", &bridge, "up"])?;
        for at in 0..count {
            let name = format!("lb{number}h{at}");
            let cable = format!("lb{number}v{at}");
            netns.ip(&["netns", "add", &name])?;
            netns.hosts.push(name.clone());
            let there = ["type", "veth", "peer", "name", "eth0", "netns", &name];
            netns.ip(&[&["link", "add", &cable], &there[..]].concat())?;
            netns.ip(&["link", "set", &cable, "master", &bridge, "up"])?;
            let address = format!("{}/24", Ipv4Addr::new(10, x, y, 11 + at));
            netns.ip(&["-n", &name, "addr", "add", &address, "dev", "eth0"])?;
            netns.ip(&["-n", &name, "link", "set", "eth0", "up"])?;
            netns.ip(&["-n", &name, "link", "set", "lo", "up"])?;
        }
        Ok(netns)
    }

    fn ip(&self, words: &[&str]) -> Result<(), String> {
        let done = Command::new(&self.ip).args(words).stdin(Stdio::null()).output();
        match done {
            Ok(done) if done.status.success() => Ok(()),
            Ok(done) => {
                Err(format!("ip {}: {}", words.join(" "), String::from_utf8_lossy(&done.stderr).trim()))
            }
            Err(error) => Err(format!("ip: {error}")),
        }
    }

    /// The words of a command that runs another in the first host.
    pub fn words(&self) -> Vec<String> {
        let host = self.hosts.first().map_or("", String::as_str);
        self.transport().replace("{host}", host).split(' ').map(str::to_string).collect()
    }

    /// Does `what` in a host's namespace, in a thread of its own.
    ///
    /// # Errors
    /// There is no such host, or its namespace cannot be entered; in words.
    pub fn inside<T: Send>(&self, at: usize, what: impl FnOnce() -> T + Send) -> Result<T, String> {
        let name = self.hosts.get(at).ok_or("there is no such host")?;
        let path = Path::new(NAMES).join(name);
        let space = File::open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let enter = move || {
            move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|e| format!("setns: {e}"))?;
            Ok(what())
        };
        let ended = thread::scope(|scope| scope.spawn(enter).join());
        ended.unwrap_or_else(|_| Err("the thread in the namespace ended badly".to_string()))
    }

    /// The command that runs another in a host; `{host}` stands for the host.
    pub fn transport(&self) -> String {
        format!("{} netns exec {{host}}", self.ip.display())
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        // With its namespace, a cable goes at both ends; but the kernel takes its time for that.
        for at in 0..self.hosts.len() {
            let cable = self.bridge.clone() + &format!("v{at}");
            let _ = self.ip(&["link", "del", &cable]);
        }
        for name in &self.hosts {
            let _ = self.ip(&["netns", "del", name]);
        }
        let _ = self.ip(&["link", "del", &self.bridge]);
    }
}
