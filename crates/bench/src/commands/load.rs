//! The options that describe a load, for every command that makes one.

use super::{Failure, tls};
use crate::engine::servers::Layout;
use crate::engine::{Address, Arrival, Load, Part, Plan, Servers, Verify, WhenFull};
use crate::net::without_secret;
use crate::watch::{Process, Targets};
use crate::wire::{Login, Protocol};
use crate::workload::{Mix, Pattern, Preset, Sizes, Workload, parse};
use clap::ArgMatches;
use clap::parser::ValueSource;
use std::path::PathBuf;
use std::time::Duration;

/// A window, unless told otherwise.
const USUAL: Duration = Duration::from_secs(10);
/// A window that ends with its requests.
pub const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// The options that describe a load.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Where the server is
    #[arg(
        help = "The server: HOST[:PORT], [IPV6]:PORT, unix:PATH or redis://HOST[:PORT]; several, with commas \
                  between, share the keys"
    )]
    #[arg(short, long, default_value = "127.0.0.1", value_delimiter = ',', help_heading = "Server")]
    pub server: Vec<String>,
    /// How several servers share the keys: ketama, ketama-unweighted (libmemcached's), twemproxy or rendezvous
    /// (pymemcache's)
    #[arg(long, value_name = "NAME", default_value = "ketama", help_heading = "Server")]
    pub placement: Layout,
    /// Its port, unless the address has one [default: 11211, redis 6379]
    #[arg(short, long, help_heading = "Server")]
    pub port: Option<u16>,
    /// text, meta, binary (memcached's) or resp2 (redis)
    #[arg(short = 'P', long, default_value = "text", help_heading = "Server")]
    pub protocol: Protocol,
    /// A file whose first line is USER:PASSWORD, for a server that asks for a login (redis takes :PASSWORD too)
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub auth_file: Option<PathBuf>,
    /// Whether and how it is encrypted
    #[command(flatten)]
    pub tls: tls::Args,

    /// Threads, each with an event loop of its own
    #[arg(short, long, default_value_t = 1, help_heading = "Load")]
    pub threads: usize,
    /// Connections: the total over all threads
    #[arg(short, long, default_value_t = 16, help_heading = "Load", conflicts_with = "clients_per_thread")]
    pub connections: usize,
    /// Connections of each thread, as memtier counts them
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub clients_per_thread: Option<usize>,
    /// Requests in flight on a connection, in a closed loop
    #[arg(long, default_value_t = 1, help_heading = "Load")]
    pub pipeline: u32,
    /// Open loop: requests a second over all connections, such as 50k
    #[arg(short = 'R', long, value_name = "RATE", value_parser = parse::count, help_heading = "Load")]
    pub rate: Option<u64>,
    /// Open loop: const, poisson or burst:N
    #[arg(long, default_value = "poisson", help_heading = "Load")]
    pub arrival: Arrival,
    /// Open loop: requests in flight on a thread at most
    #[arg(long, value_name = "N", default_value_t = 100_000, help_heading = "Load")]
    pub max_in_flight: u32,
    /// Open loop: the fate of a due request while that many are in flight:
    /// wait (it counts from when it was due) or drop (it is counted)
    #[arg(long, value_name = "HOW", default_value = "wait", value_parser = when_full, help_heading = "Load")]
    pub when_full: WhenFull,
    /// Replace a connection by a new one after N requests on it; the new one counts as a `connect`
    #[arg(long, visible_alias = "reconnect-interval", value_name = "N", help_heading = "Load")]
    pub reconnect: Option<u32>,
    /// How long to measure, such as 10s or 2m [default: 10s, without end with -n]
    #[arg(short, long, visible_alias = "test-time", value_name = "TIME", value_parser = parse::duration)]
    #[arg(help_heading = "Load")]
    pub duration: Option<Duration>,
    /// Load without measuring before
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse::duration)]
    #[arg(help_heading = "Load")]
    pub warmup: Duration,
    /// End after this many requests
    #[arg(short = 'n', long, value_name = "N", value_parser = parse::count, help_heading = "Load")]
    pub requests: Option<u64>,
    /// CPUs to pin the threads to, such as 1 or 2,3
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Load")]
    pub cpus: Vec<usize>,
    /// Wait for the next request's time by asking the clock: exact, and a whole CPU
    #[arg(long, help_heading = "Load")]
    pub spin: bool,

    /// How many keys
    #[arg(short, long, default_value = "1m", value_parser = parse::count, help_heading = "Workload")]
    pub keys: u64,
    /// A workload of YCSB: ycsb-a, ycsb-b, ycsb-c or ycsb-d, with its verbs, key pattern and values of 1000 bytes
    #[arg(long, value_name = "NAME", help_heading = "Workload")]
    #[arg(conflicts_with_all = ["mix", "ratio", "key_pattern", "value_size"])]
    pub preset: Option<Preset>,
    /// uniform, zipf:EXP, gauss, seq, latest or hot:SHARE/WEIGHT (hot:20/80)
    #[arg(long, value_name = "PATTERN", default_value = "uniform", help_heading = "Workload")]
    pub key_pattern: Pattern,
    /// The beginning of every key
    #[arg(long, value_name = "TEXT", default_value = "key:", help_heading = "Workload")]
    pub key_prefix: String,
    /// Bytes of a key, with its prefix [default: as many as needed]
    #[arg(long, value_name = "BYTES", help_heading = "Workload")]
    pub key_size: Option<usize>,
    /// BYTES, uFROM,TO, list:SIZE:WEIGHT,... or file:CSV (size,weight)
    #[arg(long, value_name = "SIZES", default_value = "100", help_heading = "Workload")]
    pub value_size: Sizes,
    /// Seconds that values live: N or FROM-TO
    #[arg(long, value_name = "RANGE", default_value = "0", value_parser = parse::expiry)]
    #[arg(help_heading = "Workload")]
    pub expiry_range: (u32, u32),
    /// Verbs by weight, such as get=90,set=10 (incr, delete, touch, gat, cas, append,
    /// prepend), or connect=1: new connections alone
    #[arg(long, help_heading = "Workload", conflicts_with = "ratio")]
    pub mix: Option<Mix>,
    /// SETS:GETS, in memtier's order
    #[arg(long, default_value = "1:10", value_parser = parse::ratio, help_heading = "Workload")]
    pub ratio: Mix,
    /// Keys in one get
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Workload")]
    pub multi_key_get: u32,
    /// Sets in a row of which only the last is answered (noreply, quiet); all are read back at the end
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Workload")]
    pub noreply: u32,
    /// Store a key that a get missed
    #[arg(long, help_heading = "Workload")]
    pub look_aside: bool,
    /// Store every key once before
    #[arg(long, help_heading = "Workload")]
    pub prefill: bool,
    /// Where the random streams begin (each connection has its own)
    #[arg(long, default_value_t = 1, help_heading = "Workload")]
    pub seed: u64,
    /// Which values to verify: off, sample (1 in 64) or full
    #[arg(long, default_value = "full", help_heading = "Checks")]
    pub verify: Verify,
    /// It is right that nearly every get misses
    #[arg(long, help_heading = "Checks")]
    pub expect_misses: bool,
    /// The server's process: a number, auto (a local server's) or none
    #[arg(long, value_name = "PID", default_value = "auto", value_parser = process, help_heading = "Checks")]
    pub server_pid: Process,
    /// A block device to watch: a name such as vda, or a path on it
    #[arg(long, value_name = "DEVICE", help_heading = "Checks")]
    pub iostat: Option<String>,
}

fn when_full(text: &str) -> Result<WhenFull, String> {
    match text {
        "wait" => Ok(WhenFull::Wait),
        "drop" => Ok(WhenFull::Drop),
        _ => Err("is one of wait, drop".to_string()),
    }
}

fn process(text: &str) -> Result<Process, String> {
    match text {
        "auto" => Ok(Process::Auto),
        "none" => Ok(Process::None),
        pid => pid.parse().map(Process::Pid).map_err(|_| "is a number, auto or none".to_string()),
    }
}

/// The options of a load that were given on a command line, each as one word of its long name and value, but
/// for those of `except`.
pub fn given(matches: &ArgMatches, except: &[&str]) -> Vec<String> {
    let all = <Args as clap::Args>::augment_args(clap::Command::new("load"));
    let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let word = |option: &clap::Arg| {
        let (id, name) = (option.get_id().as_str(), option.get_long()?);
        if !is_given(id) || except.contains(&id) {
            return None;
        }
        if !option.get_action().takes_values() {
            return Some(format!("--{name}"));
        }
        let values: Vec<_> = matches.get_raw(id)?.map(|value| value.to_string_lossy()).collect();
        Some(format!("--{name}={}", values.join(",")))
    };
    all.get_arguments().filter_map(word).collect()
}

impl Args {
    /// An open loop with the bounds that the options set.
    pub fn open(&self, rate: f64, arrival: Arrival) -> Load {
        Load::Open { rate, arrival, max_in_flight: self.max_in_flight, when_full: self.when_full }
    }

    /// The plan that the options describe.
    ///
    /// # Errors
    /// They contradict each other.
    pub fn plan(&self) -> Result<Plan, Failure> {
        let (address, protocol, servers) = self.addresses()?;
        let tls = self.tls.tls(&address)?;
        let login = self.login()?;
        let load = match self.rate {
            None => Load::Closed { pipeline: self.pipeline },
            Some(_) if self.pipeline > 1 => {
                let message = "--pipeline is of a closed loop; with --rate, see --max-in-flight";
                return Err(Failure::usage(message));
            }
            Some(rate) => self.open(rate as f64, self.arrival),
        };
        let connections = self.clients_per_thread.map_or(self.connections, |each| each * self.threads);
        let plan = Plan {
            label: servers
                .as_ref()
                .map_or_else(|| format!("{address} {load}"), |all| format!("{all} {load}")),
            address,
            servers,
            protocol,
            tls,
            login,
            load,
            threads: self.threads,
            connections,
            workload: self.workload(),
            trace: None,
            warmup: self.warmup,
            duration: self.length(),
            requests: self.requests,
            prefill: self.prefill,
            reconnect: self.reconnect,
            verify: self.verify,
            cpus: self.cpus.clone(),
            spin: self.spin,
            watch: Targets { process: self.server_pid, device: self.iostat.clone(), proc_reader: None },
            ceiling: None,
            expect_misses: self.expect_misses,
            part: Part::default(),
        };
        plan.check().map_err(Failure::usage)?;
        Ok(plan)
    }

    /// The first server, its protocol, and all servers if there are several.
    fn addresses(&self) -> Result<(Address, Protocol, Option<Servers>), Failure> {
        let read = |server: &String| {
            Address::parse(server, self.port, self.protocol)
                .map_err(|message| Failure::usage(format!("--server {}: {message}", without_secret(server))))
        };
        let all: Vec<(Address, Protocol)> = self.server.iter().map(read).collect::<Result<_, _>>()?;
        let Some((first, protocol)) = all.first().cloned() else {
            return Err(Failure::usage("--server: there is none"));
        };
        if all.iter().any(|(_, other)| *other != protocol) {
            return Err(Failure::usage("--server: several servers speak one protocol"));
        }
        let several = all.len() > 1;
        let servers = Servers::new(all.into_iter().map(|(address, _)| address).collect(), self.placement);
        let servers = if several { Some(servers.map_err(Failure::usage)?) } else { None };
        Ok((first, protocol, servers))
    }

    /// The login that the options name. The file is read here and now.
    fn login(&self) -> Result<Option<Login>, Failure> {
        let Some(path) = &self.auth_file else { return Ok(None) };
        let wrong = |message: String| Failure::error(format!("--auth-file {}: {message}", path.display()));
        let content = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        Login::parse(&content).map(Some).map_err(wrong)
    }

    /// The window's length; with a number of requests, one that is never reached.
    fn length(&self) -> Duration {
        let usual = if self.requests.is_some() { LONGEST } else { USUAL };
        self.duration.unwrap_or(usual)
    }

    fn workload(&self) -> Workload {
        let mut workload = Workload {
            keys: self.keys,
            pattern: self.key_pattern.clone(),
            prefix: self.key_prefix.clone(),
            key_bytes: self.key_size,
            sizes: self.value_size.clone(),
            expiry_s: self.expiry_range,
            mix: self.mix.clone().unwrap_or_else(|| self.ratio.clone()),
            multi_get: self.multi_key_get,
            quiet_sets: self.noreply,
            look_aside: self.look_aside,
            seed: self.seed,
        };
        if let Some(preset) = self.preset {
            preset.apply(&mut workload);
        }
        workload
    }
}
