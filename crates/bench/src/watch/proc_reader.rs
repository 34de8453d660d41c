//! Where the kernel's texts about a process and its devices come from.

use super::process;
use std::fs;
use std::io;

/// The kernel's texts at one moment. A text that was not asked for is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// `/proc/PID/stat`.
    pub stat: String,
    /// `/proc/PID/task/*/status`, one after the other.
    pub task_status: String,
    /// `/proc/diskstats`.
    pub diskstats: String,
}

/// Reads a host's `/proc`.
pub trait ProcReader: std::fmt::Debug + Send {
    /// Returns the kernel's texts now.
    ///
    /// # Errors
    /// The process is gone, or the host cannot be reached.
    fn look(&mut self) -> io::Result<Texts>;

    /// Returns the source's name for the result: `local pid 4711`.
    fn source(&self) -> String;

    /// The name of the device to look for, when this proc_reader found it.
    fn device(&self) -> Option<String> {
        None
    }

    /// In which units the texts count.
    fn units(&self) -> Units {
        Units::default()
    }
}

/// In which units a kernel counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// A clock tick, in microseconds.
    pub tick_us: u64,
    /// A page of memory.
    pub page_bytes: u64,
}

impl Default for Units {
    /// Those of this host.
    fn default() -> Self {
        Self {
            tick_us: 1_000_000 / rustix::param::clock_ticks_per_second(),
            page_bytes: rustix::param::page_size() as u64,
        }
    }
}

/// Reads this host's `/proc`.
#[derive(Clone, Debug)]
pub struct Local {
    pid: Option<u32>,
    sees_devices: bool,
}

impl Local {
    /// Reads a process, or the devices, or both.
    pub fn new(pid: Option<u32>, sees_devices: bool) -> Self {
        Self { pid, sees_devices }
    }
}

impl ProcReader for Local {
    fn look(&mut self) -> io::Result<Texts> {
        let mut texts = Texts::default();
        if let Some(pid) = self.pid {
            texts.stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
            texts.task_status = process::task_status(pid)?;
        }
        if self.sees_devices {
            texts.diskstats = fs::read_to_string("/proc/diskstats")?;
        }
        Ok(texts)
    }

    fn source(&self) -> String {
        self.pid.map_or_else(|| "local".to_string(), |pid| format!("local pid {pid}"))
    }
}
