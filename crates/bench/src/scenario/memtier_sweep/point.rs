//! One point of the sweep: servers, one or several that share the keys, under the load of all hosts.

use super::hosts::Hosts;
use super::{GETS, THREADS, WARMUP_S, keys, value_bytes};
use crate::engine::{Address, Unseen};
use crate::fleet;
use crate::result::Run;
use crate::scenario::server::Server;
use crate::scenario::trace::SharedStream;
use crate::scenario::{Halt, Stage};
use crate::wire::Protocol;
use std::sync::Arc;
use std::time::Duration;

/// Servers under load.
#[derive(Debug)]
pub(super) struct Aim {
    /// The name of the run.
    pub label: String,
    /// The protocol they are asked in.
    pub protocol: Protocol,
    /// Where they are. Several share the keys.
    pub addresses: Vec<Address>,
    /// The beginning of every key.
    pub prefix: String,
    /// Those that were started for this point; they end with it.
    pub started: Vec<Server>,
}

impl Aim {
    /// The process of the first server, if it was started here.
    fn pid(&self) -> Option<u32> {
        self.started.first().map(Server::pid)
    }
}

/// Measures `n` connections a thread.
///
/// # Errors
/// It was asked to stop, or nothing was measured.
pub(super) fn measure(
    stage: &mut Stage<'_>,
    hosts: &Hosts,
    aim: &Aim,
    n: usize,
    window: Duration,
) -> Result<Run, Halt> {
    stage.go_on()?;
    match hosts.fleet() {
        Some(fleet) => {
            let words = arguments(stage, hosts, aim, n, window);
            let (mut plan, _) = (stage.plan_of)(&words).map_err(Halt::Failed)?;
            plan.label.clone_from(&aim.label);
            let run = fleet::execute(fleet, &plan, &words, &Unseen, stage.stop);
            stage.ended(run)
        }
        None => {
            let address = aim.addresses.first().cloned();
            let address = address.ok_or_else(|| Halt::Failed("there is no server".to_string()))?;
            let mut plan = match aim.started.first() {
                Some(server) => stage.plan("", server),
                None => stage.plan_of_peer("", address),
            };
            plan.label.clone_from(&aim.label);
            plan.protocol = aim.protocol;
            (plan.threads, plan.connections) = (THREADS, hosts.connections(n));
            plan.duration = window;
            let stream = SharedStream {
                keys: keys(stage),
                size: value_bytes(stage),
                gets: GETS,
                connections: hosts.connections(n) / THREADS,
                seed: 1,
            };
            plan.workload.keys = keys(stage);
            plan.workload.prefix.clone_from(&aim.prefix);
            plan.trace = Some(Arc::new(stream));
            stage.measure(&plan, &Unseen)
        }
    }
}

/// The arguments of `larder-bench run` for one point.
fn arguments(stage: &Stage<'_>, hosts: &Hosts, aim: &Aim, n: usize, window: Duration) -> Vec<String> {
    let mut words: Vec<String> =
        ["--no-calibrate", "--prefill", "--ratio", "1:10"].map(str::to_string).into();
    let mut add = |name: &str, value: String| words.extend([name.to_string(), value]);
    let addresses: Vec<String> = aim.addresses.iter().map(Address::to_string).collect();
    add("--server", addresses.join(","));
    add("--protocol", aim.protocol.name().to_string());
    if let Some(pid) = aim.pid() {
        add("--server-pid", pid.to_string());
    }
    add("--key-prefix", aim.prefix.clone());
    add("--threads", THREADS.to_string());
    add("--connections", hosts.connections(n).to_string());
    add("--keys", keys(stage).to_string());
    add("--value-size", value_bytes(stage).to_string());
    add("--warmup", format!("{}ms", (WARMUP_S * 1000.0) as u64));
    add("--duration", format!("{}ms", window.as_millis()));
    if hosts.are_here() {
        add("--cpus", crate::scenario::host::list(&stage.host.load_cpus));
    }
    words
}
