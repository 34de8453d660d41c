//! The options that name the hosts of a fleet, for every command that can use several.

use super::Failure;
use crate::engine::Plan;
use crate::fleet::Fleet;
use crate::transport::{Program, Transport, host};
use crate::watch::{self, Targets};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The options that name the hosts of a fleet, and the one of the server.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct Args {
    /// The hosts
    #[command(flatten)]
    pub those: Those,
    /// Watch the server's process and device on this host, by --ssh
    /// (--server-pid and --iostat are that host's then)
    #[arg(long, value_name = "HOST", help_heading = "Checks")]
    pub server_ssh: Option<String>,
}

/// The options that name the hosts of a fleet.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct Those {
    /// Load from these hosts at once: USER@HOST:PORT,HOST,... A host `local` is
    /// this one; HOST*3 takes one three times. -c, -R and -n are totals over
    /// all hosts, -t is each host's
    #[arg(long, value_name = "LIST", help_heading = "Fleet", conflicts_with = "hosts_file")]
    pub hosts: Option<String>,
    /// The same from a file, one or several a line, # begins a comment
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    pub hosts_file: Option<PathBuf>,
    /// The command that leads to a shell on a host. {host} in it stands for the host, as in
    /// 'ip netns exec {host}' or 'docker exec -i {host}'; {port} for its port;
    /// without {host}, it is appended as ssh wants it
    #[arg(long, value_name = "COMMAND", default_value = host::SSH, help_heading = "Fleet")]
    pub ssh: String,
    /// Where larder-bench is on the hosts [default: this program is copied to a
    /// private folder in their $TMPDIR or /tmp, once]
    #[arg(long, value_name = "PATH", help_heading = "Fleet")]
    pub remote: Option<String>,
}

impl Args {
    /// Lets another host's proc_reader watch the server, if the options name one.
    ///
    /// # Errors
    /// They are wrong, or that host cannot be reached, or there is no such process.
    pub fn watch(&self, plan: &mut Plan) -> Result<(), Failure> {
        let Some(spec) = &self.server_ssh else { return Ok(()) };
        let transport = Transport::parse(&self.those.ssh).map_err(Failure::usage)?;
        let hosts = host::parse(spec).map_err(Failure::usage)?;
        let [host] = hosts.as_slice() else {
            return Err(Failure::usage(format!("--server-ssh {spec}: a server has one host")));
        };
        let Targets { process, device, .. } = &plan.watch;
        let proc_reader = watch::Remote::open(&transport, host, *process, device.as_deref(), &plan.address)
            .map_err(|message| Failure::error(format!("--server-ssh {spec}: {message}")))?;
        plan.watch.proc_reader = Some(Arc::new(Mutex::new(proc_reader)));
        Ok(())
    }

    /// The fleet that the options name, if they name one.
    ///
    /// # Errors
    /// They are wrong.
    pub fn fleet(&self) -> Result<Option<Fleet>, Failure> {
        self.those.fleet()
    }
}

impl Those {
    /// Whether the options name hosts.
    pub fn are_given(&self) -> bool {
        self.hosts.is_some() || self.hosts_file.is_some()
    }

    /// The fleet that the options name, if they name one.
    ///
    /// # Errors
    /// They are wrong.
    pub fn fleet(&self) -> Result<Option<Fleet>, Failure> {
        let hosts = match (&self.hosts, &self.hosts_file) {
            (Some(list), _) => host::parse(list),
            (None, Some(file)) => host::parse_file(file),
            (None, None) => return Ok(None),
        };
        let hosts = hosts.map_err(Failure::usage)?;
        let transport = Transport::parse(&self.ssh).map_err(Failure::usage)?;
        let program = Program::new(self.remote.as_deref()).map_err(|error| {
            Failure::error(format!("this program cannot be copied: {error}; use --remote"))
        })?;
        Ok(Some(Fleet { hosts, transport, program }))
    }
}
