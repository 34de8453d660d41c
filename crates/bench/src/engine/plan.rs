//! The plan of a run.

use super::{Arrival, Servers};
use crate::net::{Address, Tls};
use crate::result::Generator;
use crate::watch::{self, Watcher};
use crate::wire::{Login, Protocol};
use crate::workload::verb::Verb;
use crate::workload::{Trace, Workload};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The plan of a run. Every field has a default that is ready to use.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The name of the run in a document.
    pub label: String,
    /// Where the server is.
    pub address: Address,
    /// Servers that share the keys, if there are several; the first of them is at [`Self::address`].
    pub servers: Option<Servers>,
    /// The protocol.
    pub protocol: Protocol,
    /// How it is encrypted, if it is.
    pub tls: Option<Tls>,
    /// The login of every connection, for a server that asks for one.
    pub login: Option<Login>,
    /// How requests are offered.
    pub load: Load,
    /// Threads, each with an event loop of its own.
    pub threads: usize,
    /// Connections, over all threads; at least one a thread.
    pub connections: usize,
    /// The requests.
    pub workload: Workload,
    /// Recorded requests instead of drawn ones. Their times count with [`Arrival::Trace`]; in a closed loop
    /// only their order does.
    pub trace: Option<Arc<dyn Trace>>,
    /// Under load before the window begins.
    pub warmup: Duration,
    /// The window's length; with [`Self::requests`] its most.
    pub duration: Duration,
    /// Ends the window after this many requests.
    pub requests: Option<u64>,
    /// Stores every key once before the load.
    pub prefill: bool,
    /// Replaces a connection by a new one after this many requests on it.
    pub reconnect: Option<u32>,
    /// Which values are verified.
    pub verify: Verify,
    /// CPUs to pin the threads to, in turn; none lets them run anywhere.
    pub cpus: Vec<usize>,
    /// Waits for the time of the next request by asking the clock over and over, instead of sleeping. More
    /// exact, and costs a whole CPU.
    pub spin: bool,
    /// The process, device and counters to watch besides.
    pub watch: watch::Targets,
    /// The generator's ceiling with this shape, when it is known (see [`crate::calibrate`]).
    pub ceiling: Option<Ceiling>,
    /// Whether it is right that nearly all gets miss.
    pub expect_misses: bool,
    /// Which part this is of a plan that several processes run together.
    pub part: Part,
}

/// The rate of a generator against a null server with a plan's shape.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ceiling {
    /// Requests a second; the median of the repeats.
    pub rate: f64,
    /// The highest repeat less the lowest, as a share of the rate; 0 when it was given and not measured.
    pub spread: f64,
}

impl Ceiling {
    /// A ceiling that was given.
    pub fn known(rate: f64) -> Self {
        Self { rate, spread: 0.0 }
    }

    /// The ceiling of measured rates in rising order: their median; none without any.
    pub fn of_repeats(rates: &[f64]) -> Option<Self> {
        let (least, most, rate) = (rates.first()?, rates.last()?, *rates.get(rates.len() / 2)?);
        Some(Self { rate, spread: (most - least) / rate.max(1.0) })
    }

    /// The ceiling that a run was held against, if there was one.
    pub fn of(generator: &Generator) -> Option<Self> {
        let spread = generator.ceiling_spread;
        generator.ceiling.map(|rate| Self { rate, spread })
    }
}

/// One process's part of a plan that several run together. Connections, rate and requests of the plan are
/// this part's own; keys and seed are common to all, and every process does something else with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which one this is, from 0.
    pub index: usize,
    /// How many there are, each with as many threads.
    pub of: usize,
    /// Connections of the parts before it.
    pub first_connection: usize,
}

impl Default for Part {
    fn default() -> Self {
        Self { index: 0, of: 1, first_connection: 0 }
    }
}

/// How requests are offered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Every connection keeps this many requests in flight.
    Closed {
        /// Requests in flight on a connection.
        pipeline: u32,
    },
    /// Requests become due at times of their own.
    Open {
        /// Requests a second over all connections.
        rate: f64,
        /// How they are spread.
        arrival: Arrival,
        /// Requests in flight on all connections of a thread, at most.
        max_in_flight: u32,
        /// The treatment of a request that is due while this many are in flight.
        when_full: WhenFull,
    },
}

/// The treatment of a request of an open loop that is due while too many are in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It goes out as soon as there is room, and its time runs from when it was due.
    Wait,
    /// It is dropped and counted.
    Drop,
}

/// Which values are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// None.
    Off,
    /// One in 64.
    Sample,
    /// All.
    Full,
}

impl Verify {
    /// Its name on the command line and in a result.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Sample => "sample",
            Self::Full => "full",
        }
    }
}

impl FromStr for Verify {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            "sample" => Ok(Self::Sample),
            "full" => Ok(Self::Full),
            _ => Err("is one of off, sample, full".to_string()),
        }
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            label: String::new(),
            address: Address::Tcp { host: "127.0.0.1".to_string(), port: 11211 },
            servers: None,
            protocol: Protocol::Text,
            tls: None,
            login: None,
            load: Load::Closed { pipeline: 1 },
            threads: 1,
            connections: 16,
            workload: Workload::default(),
            trace: None,
            warmup: Duration::ZERO,
            duration: Duration::from_secs(10),
            requests: None,
            prefill: false,
            reconnect: None,
            verify: Verify::Full,
            cpus: Vec::new(),
            spin: false,
            watch: watch::Targets::default(),
            ceiling: None,
            expect_misses: false,
            part: Part::default(),
        }
    }
}

impl Plan {
    /// Prepares to watch this plan's server.
    pub fn watcher(&self) -> Watcher {
        let others: Vec<Address> = (1..self.server_count()).map(|at| self.address_of(at).clone()).collect();
        let access = (self.tls.as_ref(), self.login.as_ref());
        Watcher::prepare(&self.watch, &self.address, self.protocol, access).with_others(others)
    }

    /// The plan is impossible, in one line.
    ///
    /// # Errors
    /// That line.
    pub fn check(&self) -> Result<(), String> {
        self.workload.check()?;
        self.check_servers()?;
        if self.threads == 0 || self.connections < self.threads {
            return Err(format!(
                "-c {}: it is the total, and every one of the {} threads needs a connection",
                self.connections, self.threads
            ));
        }
        if self.duration.is_zero() {
            return Err("--duration has to be longer than nothing".to_string());
        }
        if self.trace.is_some() && self.prefill {
            return Err("a trace cannot be prefilled: its keys are not known before".to_string());
        }
        if self.protocol == Protocol::Resp2
            && let Some(verb) = Verb::ALL.into_iter().find(|verb| verb.is_change() && self.mix(*verb))
        {
            return Err(format!("--mix {}: it is measured over memcached's protocols only", verb.name()));
        }
        if self.protocol == Protocol::Resp2 && self.workload.quiet_sets > 1 {
            return Err("--noreply: it is measured over memcached's protocols only".to_string());
        }
        if self.renews() && self.login.is_some() {
            return Err("--reconnect, --mix connect: not with --auth-file".to_string());
        }
        if self.reconnect == Some(0) {
            return Err("--reconnect: after 1 request or more".to_string());
        }
        if self.connects_only()
            && (self.reconnect.is_some() || matches!(self.load, Load::Closed { pipeline: 2.. }))
        {
            return Err(
                "--mix connect: every request is a new connection, without --pipeline and --reconnect"
                    .to_string(),
            );
        }
        match self.load {
            Load::Closed { pipeline: 1..=100_000 } => Ok(()),
            Load::Closed { .. } => Err("--pipeline: 1 to 100000 requests in flight".to_string()),
            Load::Open { arrival: Arrival::Trace, .. } if self.trace.is_none() => {
                Err("arrivals of a trace need the trace".to_string())
            }
            Load::Open { rate, max_in_flight, .. } => {
                if !rate.is_finite() || rate <= 0.0 || rate > 1e9 {
                    return Err("--rate: requests a second, more than 0".to_string());
                }
                if max_in_flight == 0 {
                    return Err("--max-in-flight: at least 1".to_string());
                }
                Ok(())
            }
        }
    }

    /// How many servers there are.
    pub fn server_count(&self) -> usize {
        self.servers.as_ref().map_or(1, |servers| servers.addresses().len())
    }

    /// The address of a server by its number.
    pub fn address_of(&self, server: usize) -> &Address {
        let of_several = self.servers.as_ref().and_then(|servers| servers.addresses().get(server));
        of_several.unwrap_or(&self.address)
    }

    /// The address, or all of several.
    pub fn place(&self) -> String {
        self.servers.as_ref().map_or_else(|| self.address.to_string(), Servers::to_string)
    }

    /// With several servers, a connection of a plan is one to each, and the keys of a request are split among them.
    fn check_servers(&self) -> Result<(), String> {
        let is_of_several_keys = self.workload.multi_get > 1 || self.workload.quiet_sets > 1;
        let is_pipelined = matches!(self.load, Load::Closed { pipeline: 2.. });
        if self.servers.is_some() && is_of_several_keys && is_pipelined {
            let message = "several servers: --multi-key-get and --noreply are split among them, not with \
                           --pipeline";
            return Err(message.to_string());
        }
        Ok(())
    }

    fn mix(&self, verb: Verb) -> bool {
        self.workload.mix.weight(verb) > 0
    }

    /// Whether every request is a new connection.
    pub fn connects_only(&self) -> bool {
        self.mix(Verb::Connect)
    }

    /// Whether connections are replaced by new ones under load.
    pub fn renews(&self) -> bool {
        self.connects_only() || self.reconnect.is_some()
    }

    /// Which of all threads of all processes a thread of this one is, and how many there are.
    pub fn thread_of_all(&self, thread: usize) -> (usize, usize) {
        (self.part.index * self.threads + thread, self.part.of * self.threads)
    }

    /// The workload in words.
    pub fn words(&self) -> String {
        self.trace.as_ref().map_or_else(|| self.workload.words(), |trace| trace.words())
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed { pipeline: 1 } => write!(f, "closed loop"),
            Self::Closed { pipeline } => write!(f, "closed loop, pipeline {pipeline}"),
            Self::Open { arrival: Arrival::Trace, .. } => write!(f, "open loop at a trace's times"),
            Self::Open { rate, arrival, .. } => {
                write!(f, "open loop {} {arrival}", crate::show::rate(*rate))
            }
        }
    }
}
