//! The series of the sweep: which servers, asked in which protocol, and how each is started for a point.

use super::hosts::Hosts;
use super::point::Aim;
use super::{TEXT_S, memory_mib};
use crate::scenario::server::{Listen, Make, Server, Setup};
use crate::scenario::{GivenPeer, Halt, Stage, Target};
use crate::wire::Protocol;

/// Connections of a server besides those of the load.
const MORE_CONNECTIONS: usize = 64;

/// A server and the protocol it is asked in.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub target: Target,
    pub protocol: Protocol,
}

impl Series {
    /// Its name in tables.
    pub fn name(&self) -> String {
        format!("{} {}", self.target.name(), self.protocol.name())
    }

    /// Starts its server for a point, or names the one that runs already. There is none if a peer does not start.
    ///
    /// # Errors
    /// It was asked to stop, or Larder does not start.
    pub fn aim(&self, stage: &mut Stage<'_>, hosts: &Hosts, n: usize) -> Result<Option<Aim>, Halt> {
        let label = format!("{} {} n={n}", stage.part.name, self.name());
        let prefix = "memtier-".to_string();
        let make = match &self.target {
            Target::Ours(make) => *make,
            Target::Given(peer) => {
                // Without a prefill, a point must not find what the one before it has stored.
                let prefix = match stage.options.as_seed {
                    true => format!("memtier-{}-{n}-", std::process::id()),
                    false => prefix,
                };
                let (addresses, started) = (vec![peer.address.clone()], Vec::new());
                return Ok(Some(Aim { label, protocol: self.protocol, addresses, prefix, started }));
            }
        };
        let Some(server) = stage.server(setup(make, hosts, n))? else { return Ok(None) };
        let (addresses, started) = (vec![server.address.clone()], vec![server]);
        Ok(Some(Aim { label, protocol: self.protocol, addresses, prefix, started }))
    }
}

/// How a server is started for `n` connections a thread.
pub(super) fn setup(make: Make, hosts: &Hosts, n: usize) -> Setup {
    Setup {
        listen: Listen::Tcp(hosts.server()),
        memory_mib: memory_mib(),
        connections: hosts.connections(n) + MORE_CONNECTIONS,
        ..Setup::new(make)
    }
}

/// The protocol of the document's sweep, or redis's own.
pub(super) fn usual(make: Make) -> Protocol {
    if make == Make::Redis { Protocol::Resp2 } else { Protocol::Binary }
}

/// The series to measure. Servers that run already are asked in text, which all of them speak, and then the others are,
/// too; without such servers text is left out when time is short.
pub(super) fn all(stage: &mut Stage<'_>, makes: &[Make], given: &[GivenPeer]) -> Vec<Series> {
    let ours = |make: &Make, protocol| Series { target: Target::Ours(*make), protocol };
    let mut series: Vec<Series> = makes.iter().map(|make| ours(make, usual(*make))).collect();
    let text = makes.iter().filter(|make| **make != Make::Redis);
    let text: Vec<Series> = text.map(|make| ours(make, Protocol::Text)).collect();
    let each_s = stage.left().as_secs_f64() / (series.len() + text.len()) as f64;
    if each_s >= TEXT_S || !given.is_empty() {
        series.extend(text);
    } else {
        stage.part.note("text protocol skipped: the budget is for the binary one, which the document used");
    }
    let theirs = |peer: &GivenPeer| Series { target: Target::Given(peer.clone()), protocol: Protocol::Text };
    series.extend(given.iter().map(theirs));
    series
}

/// Starts `count` servers of one thread, which share the keys and the RAM; none if a peer does not start.
///
/// # Errors
/// It was asked to stop, or Larder does not start.
pub(super) fn several(
    stage: &mut Stage<'_>,
    hosts: &Hosts,
    make: Make,
    n: usize,
    count: usize,
) -> Result<Option<Vec<Server>>, Halt> {
    let mut servers = Vec::new();
    for _ in 0..count {
        let whole = setup(make, hosts, n);
        let memory_mib = (whole.memory_mib / count as u64).max(64);
        match stage.server(Setup { memory_mib, threads: 1, ..whole })? {
            Some(server) => servers.push(server),
            None => return Ok(None),
        }
    }
    Ok(Some(servers))
}
