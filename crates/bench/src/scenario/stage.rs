//! The context of a running scenario: servers to compare, time left, and its part of the document.

use super::folder::Folder;
use super::server::{Listen, Make, Place, Server, Setup};
use super::wanted::Wanted;
use super::{Host, Part, Run as Runner, host};
use crate::engine::{self, Address, Observer, Plan};
use crate::fleet::{Fleet, PlanOf};
use crate::result::Run;
use crate::watch::{Process, Targets};
use std::cell::Cell;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Another process may take a free port before a server does.
const ATTEMPTS: u32 = 3;

/// The options.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Larder's program.
    pub larder: PathBuf,
    /// The peers to compare it with; those that are not installed are skipped by name.
    pub peers: Vec<Peer>,
    /// Servers that run already, to compare with.
    pub given_peers: Vec<GivenPeer>,
    /// Keeps the document's flaws where that means something.
    pub as_seed: bool,
    /// A MongoDB for `counter-shootout`.
    pub mongodb: Option<String>,
    /// The hosts that make the load of `memtier-sweep`, in place of namespaces or processes of this one.
    pub fleet: Option<Fleet>,
    /// Where the servers listen for them, if that is not loopback.
    pub listen: Option<Ipv4Addr>,
    /// What the user chose: servers, sizes, counts.
    pub wanted: Wanted,
}

impl Options {
    /// The servers that run already, those named by `--peer` and the one of `--server`.
    pub fn given(&self) -> Vec<GivenPeer> {
        let server = self.wanted.server.clone();
        let server = server.map(|address| GivenPeer { name: "server".to_string(), address });
        self.given_peers.iter().cloned().chain(server).collect()
    }
}

/// A server that runs already and speaks memcached's text protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenPeer {
    /// Its name in tables.
    pub name: String,
    /// Where it is.
    pub address: Address,
}

/// A peer that Larder is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// memcached, with and without its SSD tier.
    Memcached,
    /// redis.
    Redis,
}

impl Peer {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::Memcached, Self::Redis];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        if self == Self::Memcached { "memcached" } else { "redis" }
    }

    /// Its program.
    pub fn program(self) -> Option<PathBuf> {
        host::program(if self == Self::Memcached { "memcached" } else { "redis-server" }, &[])
    }
}

/// Why a scenario ended before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// It was asked to.
    Stopped,
    /// Nothing could be measured any more; why.
    Failed(String),
}

/// The context of a running scenario.
pub struct Stage<'a> {
    /// The options.
    pub options: &'a Options,
    /// This machine.
    pub host: &'a Host,
    /// Ends it early.
    pub stop: &'a AtomicBool,
    /// Reads the arguments that the hosts of a fleet are given.
    pub plan_of: PlanOf,
    /// Its results so far.
    pub part: Part,
    folder: &'a Path,
    tell: &'a dyn Fn(&str),
    until: Instant,
    number: Cell<u32>,
}

impl<'a> Stage<'a> {
    /// Of a scenario that has so much time.
    pub fn new(name: &'static str, run: Runner<'a>, budget: Duration) -> Self {
        Self {
            options: run.options,
            host: run.host,
            stop: run.stop,
            plan_of: run.plan_of,
            part: Part::new(name),
            folder: run.folder,
            tell: run.tell,
            until: Instant::now() + budget,
            number: Cell::new(0),
        }
    }

    /// Where servers may keep their files.
    pub fn folder(&self) -> &Path {
        self.folder
    }

    /// Creates a folder for a server's files.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new_folder(&self) -> Result<Folder, Halt> {
        Folder::new(self.folder).map_err(|e| Halt::Failed(e.to_string()))
    }

    /// Another number each time, for names of files.
    pub fn next_number(&self) -> u32 {
        self.number.set(self.number.get() + 1);
        self.number.get()
    }

    /// Returns the rest of the budget.
    pub fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Returns the share `units` of `units_left` of the rest, but not less than `least`.
    pub fn share(&self, units: f64, units_left: f64, least: Duration) -> Duration {
        self.left().mul_f64((units / units_left).clamp(0.0, 1.0)).max(least)
    }

    /// Reports the current step, with the time that the scenario has left.
    pub fn tell(&self, what: &str) {
        (self.tell)(&progress(self.part.name, None, self.left(), what));
    }

    /// Reports the step with number `number` of `of`, the first of which is 1.
    pub fn step(&self, number: usize, of: usize, what: &str) {
        (self.tell)(&progress(self.part.name, Some((number, of)), self.left(), what));
    }

    /// Whether it was asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// An error when it was asked to stop.
    ///
    /// # Errors
    /// It was.
    pub fn go_on(&self) -> Result<(), Halt> {
        if self.is_stopped() { Err(Halt::Stopped) } else { Ok(()) }
    }

    /// The program of a server.
    pub fn program(&self, make: Make) -> Option<PathBuf> {
        match make {
            Make::Larder => Some(self.options.larder.clone()),
            Make::Memcached | Make::Extstore => Peer::Memcached.program(),
            Make::Redis => Peer::Redis.program(),
        }
    }

    /// Larder, and those of `makes` that were asked for and are installed; the others are noted.
    pub fn makes(&mut self, makes: &[Make]) -> Vec<Make> {
        let mut there = vec![Make::Larder];
        for make in makes {
            let peer = if *make == Make::Redis { Peer::Redis } else { Peer::Memcached };
            match peer.program() {
                _ if !self.options.peers.contains(&peer) => {
                    self.part.note(format!("{} skipped: it was not asked for (--peers)", make.name()));
                }
                None => self.part.note(format!("{} skipped: it is not installed", make.name())),
                Some(_) => there.push(*make),
            }
        }
        there
    }

    /// Starts a server, on another port if its own was taken meanwhile.
    ///
    /// # Errors
    /// It does not start, or a stop was asked for.
    pub fn start(&self, setup: Setup) -> Result<Server, Halt> {
        let failed = |why: String| Halt::Failed(format!("{}: {why}", setup.make.name()));
        let program = self.program(setup.make).ok_or_else(|| failed("it is not installed".to_string()))?;
        let mut why = String::new();
        for _ in 0..ATTEMPTS {
            let number = self.next_number();
            let (host, stop, folder) = (self.host, self.stop, self.folder);
            match Server::start(&Place { host, stop, folder, number, program: &program }, &setup) {
                Ok(server) => return Ok(server),
                Err(said) => why = said,
            }
            if self.is_stopped() {
                return Err(Halt::Stopped);
            }
            if setup.listen == Listen::Unix || !why.to_lowercase().contains("in use") {
                break;
            }
        }
        Err(failed(why))
    }

    /// Starts a server; one that does not start is noted, and there is none.
    ///
    /// # Errors
    /// It was asked to stop, or Larder did not start.
    pub fn server(&mut self, setup: Setup) -> Result<Option<Server>, Halt> {
        let make = setup.make;
        match self.start(setup) {
            Ok(server) => Ok(Some(server)),
            Err(Halt::Failed(why)) if make != Make::Larder => {
                self.part.note(format!("{} skipped: {why}", make.name()));
                Ok(None)
            }
            Err(halt) => Err(halt),
        }
    }

    /// A plan against a server, with the load on its own CPUs and the server watched.
    pub fn plan(&self, label: &str, server: &Server) -> Plan {
        Plan {
            label: format!("{} {label}", self.part.name),
            address: server.address.clone(),
            protocol: server.setup.make.protocol(),
            cpus: self.host.load_cpus.clone(),
            watch: Targets { process: Process::Pid(server.pid()), ..Targets::default() },
            ..Plan::default()
        }
    }

    /// The same against a server that runs already, whose process is found where it is on this host.
    pub fn plan_of_peer(&self, label: &str, address: Address) -> Plan {
        Plan {
            label: format!("{} {label}", self.part.name),
            address,
            cpus: self.host.load_cpus.clone(),
            ..Plan::default()
        }
    }

    /// Measures. A run that a stop cut short is kept and ends the scenario.
    ///
    /// # Errors
    /// It was asked to stop, or nothing was measured.
    pub fn measure(&mut self, plan: &Plan, observer: &dyn Observer) -> Result<Run, Halt> {
        self.go_on()?;
        let run = engine::execute(plan, observer, self.stop);
        self.ended(run)
    }

    /// The same for a run that was measured elsewhere.
    ///
    /// # Errors
    /// It was asked to stop, or nothing was measured.
    pub fn ended(&mut self, run: Result<Run, engine::Error>) -> Result<Run, Halt> {
        match run {
            Ok(run) if self.is_stopped() => {
                self.part.runs.push(run);
                Err(Halt::Stopped)
            }
            Ok(run) => Ok(run),
            Err(_) if self.is_stopped() => Err(Halt::Stopped),
            Err(error) => Err(Halt::Failed(error.to_string())),
        }
    }
}

/// The line of a step: the scenario, which step of how many, the time left, and what it does. What matters least comes
/// last, since a narrow terminal cuts the line.
fn progress(name: &str, number: Option<(usize, usize)>, left: Duration, what: &str) -> String {
    let number = number.map(|(number, of)| format!(" {number} of {of},")).unwrap_or_default();
    format!("{name}:{number} {} s left: {what}", left.as_secs())
}

impl std::fmt::Debug for Stage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").field("part", &self.part.name).field("left", &self.left()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_tells_its_number_and_the_time_left() {
        let left = Duration::from_millis(61_900);
        assert_eq!(progress("php-loop", Some((2, 9)), left, "larder"), "php-loop: 2 of 9, 61 s left: larder");
        assert_eq!(progress("php-loop", None, left, "starting"), "php-loop: 61 s left: starting");
    }
}
