//! The highest rate of this generator with a plan's shape, measured against the null server in a process of
//! its own.
//!
//! The shape is the plan's protocol, threads, connections, pipeline, keys, sizes and mix. An open loop is
//! calibrated with one request in flight on a connection, since that is how it sends below its ceiling. A
//! plan with TLS is calibrated without it; the check that quotes the ceiling notes it.

use crate::engine::{Address, Arrival, Ceiling, Error, Load, Plan, Unseen, Verify, WhenFull, cpu, execute};
use crate::latency::Latency;
use crate::result::Run;
use crate::watch;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const WARMUP: Duration = Duration::from_millis(100);
/// How often, and how long each time, a ceiling is measured.
const REPEATS: usize = 3;
const REPEAT: Duration = Duration::from_millis(350);
/// Requests a second at which the host's own latency is measured.
const IDLE_RATE: f64 = 1000.0;

/// The null server's process; it ends with this value.
#[derive(Debug)]
pub struct NullProcess {
    child: Child,
    /// Where it listens.
    pub address: Address,
}

impl NullProcess {
    /// Starts one for a plan, from the program `larder-bench` at `program`, on the CPUs that the plan leaves
    /// free.
    ///
    /// # Errors
    /// It does not come up.
    pub fn start(program: &Path, plan: &Plan) -> Result<Self, Error> {
        let failed = |error| Error::host("starting the null server", error);
        let mut command = Command::new(program);
        command.args(["null-server", "--protocol", plan.protocol.name()]);
        command.args(["--value-bytes", &format!("{:.0}", plan.workload.sizes.mean())]);
        command.args(["--threads", &plan.threads.to_string()]);
        if !plan.cpus.is_empty() {
            let free: Vec<String> = cpu::allowed()
                .into_iter()
                .filter(|cpu| !plan.cpus.contains(cpu))
                .map(|cpu| cpu.to_string())
                .collect();
            if !free.is_empty() {
                command.args(["--cpus", &free.join(",")]);
            }
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
        }
        let port =
            line.trim().parse().map_err(|_| Error::Before("the null server did not start".to_string()));
        let address = |port| Address::Tcp { host: "127.0.0.1".to_string(), port };
        let process = port.map(address);
        if process.is_err() {
            let _ = child.kill();
            let _ = child.wait();
        }
        Ok(Self { address: process?, child })
    }
}

impl Drop for NullProcess {
    fn drop(&mut self) {
        // It ends when its input does; if not, by force.
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The plan as it is run against a null server.
pub fn shape_of(plan: &Plan, address: Address, length: Duration) -> Plan {
    let pipeline = match plan.load {
        Load::Closed { pipeline } => pipeline,
        Load::Open { .. } => 1,
    };
    let mut shape = plan.clone();
    shape.label = "null server".to_string();
    shape.servers = plan.servers.as_ref().map(|servers| servers.all_at(&address));
    shape.address = address;
    shape.load = Load::Closed { pipeline };
    shape.tls = None;
    shape.login = None;
    shape.trace = None;
    shape.warmup = WARMUP;
    shape.duration = length;
    shape.requests = None;
    shape.prefill = false;
    shape.verify = Verify::Off;
    shape.watch = watch::Targets { process: watch::Process::None, ..watch::Targets::default() };
    shape.ceiling = None;
    shape.workload.look_aside = false;
    shape
}

/// Finds the ceiling in about a second, by starting the running program once more as the null server.
///
/// # Errors
/// The null server does not come up, or `stop` was set.
pub fn ceiling(plan: &Plan, stop: &AtomicBool) -> Result<Ceiling, Error> {
    let server = beside(plan)?;
    let shape = shape_of(plan, server.address.clone(), REPEAT);
    let mut rates = Vec::new();
    for _ in 0..REPEATS {
        rates.push(whole(execute(&shape, &Unseen, stop)?)?.rate());
    }
    rates.sort_by(f64::total_cmp);
    Ok(Ceiling::of_repeats(&rates).unwrap_or_default())
}

/// Measures what this host adds to a latency where there is next to no load: `IDLE_RATE` requests a second,
/// evenly, to the null server, for two seconds. A quantile below that of the result cannot be measured here.
///
/// # Errors
/// As of [`ceiling`].
pub fn idle(plan: &Plan, stop: &AtomicBool) -> Result<Latency, Error> {
    let server = beside(plan)?;
    let shape = shape_of(plan, server.address.clone(), Duration::from_secs(2));
    let (arrival, when_full) = (Arrival::Constant, WhenFull::Wait);
    let load = Load::Open { rate: IDLE_RATE, arrival, max_in_flight: 100_000, when_full };
    Ok(whole(execute(&Plan { load, ..shape }, &Unseen, stop)?)?.response())
}

fn beside(plan: &Plan) -> Result<NullProcess, Error> {
    let program = std::env::current_exe().map_err(|e| Error::host("finding this program's file", e))?;
    NullProcess::start(&program, plan)
}

fn whole(run: Run) -> Result<Run, Error> {
    match run.cut_short {
        Some(why) => Err(Error::Before(format!("calibration: {why}"))),
        None => Ok(run),
    }
}
