//! The hosts that make the load: seven network namespaces, or seven processes, or one process that stands for
//! all.

use super::HOSTS;
use crate::fleet::Fleet;
use crate::scenario::netns::Netns;
use crate::scenario::{Halt, Stage};
use crate::transport::{Program, Transport, host};
use std::net::Ipv4Addr;

/// The hosts that make the load.
#[derive(Debug)]
pub struct Hosts {
    fleet: Option<Fleet>,
    /// Kept for its end.
    netns: Option<Netns>,
}

impl Hosts {
    /// As many hosts as there can be here; which these are is noted.
    pub fn new(stage: &mut Stage<'_>) -> Result<Self, Halt> {
        if stage.options.as_seed {
            stage.part.note(format!(
                "one process with 4 threads stands for {HOSTS} hosts of 4 threads: the shared stream of keys \
                 has to be made in one place"
            ));
            return Ok(Self { fleet: None, netns: None });
        }
        let here =
            std::env::current_exe().map_err(|error| Halt::Failed(format!("this program's path: {error}")))?;
        let program = Program::There(here.display().to_string());
        let netns = match Netns::new(stage.host, HOSTS as u8) {
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
        Ok(Self { fleet: Some(Fleet { hosts, transport, program }), netns })
    }

    /// The fleet; none when this process does it alone.
    pub fn fleet(&self) -> Option<&Fleet> {
        self.fleet.as_ref()
    }

    /// Where a server has to listen for them.
    pub fn server(&self) -> Ipv4Addr {
        self.netns.as_ref().map_or(Ipv4Addr::LOCALHOST, |netns| netns.middle)
    }
}
