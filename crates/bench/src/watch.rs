//! Watching a server from outside while it is under load: its process, its device, its own counters, all on
//! the time axis of the run.
//!
//! The kernel's figures come as text through a [`ProcReader`]: on this host from `/proc`, elsewhere over the
//! command that leads to that host. The server's own counters come over its own protocol.

pub mod counters;
pub mod device;
pub mod proc_reader;
pub mod process;
pub mod remote;
mod sampler;

pub use proc_reader::{Local, ProcReader, Texts, Units};
pub use remote::Remote;
pub use sampler::Sampler;

use crate::clock::Clock;
use crate::net::{Address, Tls};
use crate::result::Watch;
use crate::wire::{Login, Protocol};
use counters::Counters;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The process, device and counters to watch besides the load.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// The server's process.
    pub process: Process,
    /// The block device, by its name such as `vda` or by any path on it.
    pub device: Option<String>,
    /// Reads in place of this host's own `/proc`; then it chooses the process and the device.
    pub proc_reader: Option<SharedProcReader>,
}

/// An proc_reader that a plan can carry around.
pub type SharedProcReader = Arc<Mutex<dyn ProcReader>>;

/// memcached's name of the counter of evictions, and its relatives'; and redis's.
const EVICTIONS: [&str; 2] = ["evictions", "evicted_keys"];

/// Which process is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Process {
    /// The one that listens at the server's address, when that is on this host.
    #[default]
    Auto,
    /// This one.
    Pid(u32),
    /// None.
    None,
}

/// Watches during a run.
#[derive(Debug)]
pub struct Watcher {
    address: Address,
    protocol: Protocol,
    tls: Option<Tls>,
    login: Option<Login>,
    sampler: Option<Sampler>,
    proc_reader: Option<SharedProcReader>,
    device: Option<String>,
    /// Other servers of the same keys, whose evictions count too, with those at first.
    others: Vec<(Address, Option<u64>)>,
    /// Read when it was prepared.
    first: Counters,
    /// Read at the window's begin.
    before: Counters,
}

/// The samples and counters that a watcher read.
#[derive(Debug, Default)]
pub struct Watched {
    /// The server's name and version.
    pub server: String,
    /// Its process, device and counters.
    pub watch: Option<Watch>,
    /// Items that the server counts as evicted since the watcher was prepared; none when it does not count them.
    pub evicted: Option<u64>,
}

impl Watcher {
    /// Finds the process and the device to watch.
    pub fn prepare(
        targets: &Targets,
        address: &Address,
        protocol: Protocol,
        (tls, login): (Option<&Tls>, Option<&Login>),
    ) -> Self {
        let device = match &targets.proc_reader {
            Some(proc_reader) => proc_reader.lock().ok().and_then(|proc_reader| proc_reader.device()),
            None => targets.device.as_deref().and_then(device::name_of),
        };
        let proc_reader = targets.proc_reader.clone().or_else(|| {
            let pid = match targets.process {
                Process::None => None,
                Process::Pid(pid) => Some(pid),
                Process::Auto => process::listening(address),
            };
            let sees_something = pid.is_some() || device.is_some();
            sees_something
                .then(|| Arc::new(Mutex::new(Local::new(pid, device.is_some()))) as SharedProcReader)
        });
        let mut watcher = Self {
            address: address.clone(),
            protocol,
            tls: tls.cloned(),
            login: login.cloned(),
            sampler: None,
            proc_reader,
            device,
            others: Vec::new(),
            first: Counters::default(),
            before: Counters::default(),
        };
        watcher.first = watcher.ask();
        watcher
    }

    /// Counts the evictions of other servers too.
    pub fn with_others(mut self, addresses: Vec<Address>) -> Self {
        self.others =
            addresses.into_iter().map(|address| (address.clone(), self.evictions_of(&address))).collect();
        self
    }

    /// Items that a server has evicted until now, if it counts them.
    fn evictions_of(&self, address: &Address) -> Option<u64> {
        let (tls, login) = (self.tls.as_ref(), self.login.as_ref());
        let counters = counters::ask(address, self.protocol, tls, login).ok()?;
        EVICTIONS.iter().find_map(|name| counters.values.get(*name)?.parse().ok())
    }

    /// Begins, for a window that begins at `begin_ns` of the run's clock.
    pub fn start(&mut self, clock: Clock, begin_ns: u64) {
        if let Some(proc_reader) = self.proc_reader.clone() {
            self.sampler = Some(Sampler::start(proc_reader, self.device.clone(), clock, begin_ns));
        }
    }

    /// Reads the server's counters; as near to the window's begin as can be.
    pub fn at_begin(&mut self) {
        self.before = self.ask();
    }

    /// A server that does not answer has no counters.
    fn ask(&self) -> Counters {
        counters::ask(&self.address, self.protocol, self.tls.as_ref(), self.login.as_ref())
            .unwrap_or_default()
    }

    /// Ends, and returns the samples.
    pub fn finish(mut self) -> Watched {
        let (process, device) = self.sampler.take().map(Sampler::finish).unwrap_or_default();
        let after = self.ask();
        let source = self
            .proc_reader
            .as_ref()
            .and_then(|proc_reader| proc_reader.lock().ok().map(|proc_reader| proc_reader.source()));
        let server = if after.server.is_empty() { self.before.server.clone() } else { after.server.clone() };
        let stats_growth = growth(&self.before.values, &after.values);
        let mut evicted = evicted(&self.first.values, &after.values);
        for (address, first) in &self.others {
            let grown =
                self.evictions_of(address).zip(*first).map(|(after, first)| after.saturating_sub(first));
            evicted = evicted.zip(grown).map(|(sum, grown)| sum + grown);
        }
        let is_empty = process.is_empty() && device.is_empty() && after.values.is_empty();
        let watch = (!is_empty).then(|| Watch {
            source: source.unwrap_or_else(|| "its own counters".to_string()),
            process,
            device_name: self.device.clone().filter(|_| !device.is_empty()),
            device,
            stats_growth,
            stats_end: after.values,
        });
        Watched { server, watch, evicted }
    }
}

/// How many items were evicted meanwhile.
fn evicted(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Option<u64> {
    let grown = growth(before, after);
    EVICTIONS.iter().find_map(|name| grown.get(*name)).map(|count| count.max(0.0) as u64)
}

/// How much each counter that is a number grew.
fn growth(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> BTreeMap<String, f64> {
    let number = |text: &String| text.parse::<f64>().ok().filter(|number| number.is_finite());
    let grown = after.iter().filter_map(|(name, value)| {
        Some((name.clone(), number(value)? - before.get(name).and_then(number)?))
    });
    grown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_of_numbers_only() {
        let of = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        let before: BTreeMap<_, _> = of(&[("gets", "10"), ("version", "1.6"), ("name", "x")]);
        let after: BTreeMap<_, _> = of(&[("gets", "25"), ("version", "1.6"), ("name", "x"), ("new", "1")]);
        let grown = growth(&before, &after);
        assert_eq!(grown.get("gets"), Some(&15.0));
        assert!(!grown.contains_key("name") && !grown.contains_key("new"));
    }
}
