//! The hosts that make the load: those of the user, seven network namespaces, seven processes, or one process that
//! stands for all.

use super::{HOSTS, THREADS};
use crate::fleet::Fleet;
use crate::scenario::netns::Netns;
use crate::scenario::{Halt, Stage};
use crate::transport::host::{self, Place};
use crate::transport::{Program, Transport};
use std::net::Ipv4Addr;

/// The hosts that make the load.
#[derive(Debug)]
pub struct Hosts {
    fleet: Option<Fleet>,
    /// Kept for its end.
    _netns: Option<Netns>,
    listen: Ipv4Addr,
    /// Whether all of them are this machine.
    are_here: bool,
}

impl Hosts {
    /// As many hosts as there can be here; which these are is noted.
    pub fn new(stage: &mut Stage<'_>) -> Result<Self, Halt> {
        if stage.options.as_seed {
            stage.part.note(format!(
                "one process with 4 threads stands for {HOSTS} hosts of 4 threads: the shared stream of keys \
                 has to be made in one place"
            ));
            return Ok(Self { fleet: None, _netns: None, listen: Ipv4Addr::LOCALHOST, are_here: true });
        }
        if let Some(fleet) = stage.options.fleet.clone() {
            stage.part.note(format!("{} hosts of --hosts make the load; {HOSTS} there", fleet.hosts.len()));
            let are_here = fleet.hosts.iter().all(|host| host.place == Place::Local);
            let listen = stage.options.listen.unwrap_or(Ipv4Addr::LOCALHOST);
            return Ok(Self { fleet: Some(fleet), _netns: None, listen, are_here });
        }
        let here =
            std::env::current_exe().map_err(|error| Halt::Failed(format!("this program's path: {error}")))?;
        let program = Program::There(here.display().to_string());
        let made = match stage.options.given().is_empty() {
            true => Netns::new(stage.host, HOSTS as u8),
            false => Err("they would not reach a server that runs already".to_string()),
        };
        let netns = match made {
            Ok(netns) => {
                stage
                    .part
                    .note(format!("{HOSTS} network namespaces around a bridge stand for {HOSTS} hosts"));
                Some(netns)
            }
            Err(why) => {
                stage
                    .part
                    .note(format!("{HOSTS} local processes stand for {HOSTS} hosts: no namespaces ({why})"));
                None
            }
        };
        let (list, transport) = match &netns {
            Some(netns) => (netns.hosts.join(","), netns.transport()),
            None => (format!("local*{HOSTS}"), host::SSH.to_string()),
        };
        let hosts = host::parse(&list).map_err(Halt::Failed)?;
        let transport = Transport::parse(&transport).map_err(Halt::Failed)?;
        let listen = netns.as_ref().map_or(Ipv4Addr::LOCALHOST, |netns| netns.middle);
        Ok(Self { fleet: Some(Fleet { hosts, transport, program }), _netns: netns, listen, are_here: true })
    }

    /// The fleet; none when this process does it alone.
    pub fn fleet(&self) -> Option<&Fleet> {
        self.fleet.as_ref()
    }

    /// Where a server has to listen for them.
    pub fn server(&self) -> Ipv4Addr {
        self.listen
    }

    /// Whether all of them are this machine, so that they have its CPUs.
    pub fn are_here(&self) -> bool {
        self.are_here
    }

    /// Connections of all hosts, with `n` on each thread.
    pub fn connections(&self, n: usize) -> usize {
        self.fleet.as_ref().map_or(HOSTS, |fleet| fleet.hosts.len()) * THREADS * n
    }
}
