//! This machine, as far as a scenario needs to know it: the CPUs of servers and load, installed programs, and
//! our privileges.

use crate::engine::cpu;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Servers are often where only root looks for them.
const MORE_PLACES: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/sbin"];

/// This machine.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// CPUs of the servers.
    pub server_cpus: Vec<usize>,
    /// CPUs of the load.
    pub load_cpus: Vec<usize>,
    /// Whether this process runs as root.
    pub is_root: bool,
}

impl Host {
    /// Looks at it. Also allows this process and its children as many open files as it may.
    pub fn look() -> Self {
        let limit = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        let (server_cpus, load_cpus) = divide(&cpu::allowed());
        Self { server_cpus, load_cpus, is_root: rustix::process::geteuid().is_root() }
    }

    /// Returns its facts for a result's environment.
    pub fn facts(&self, folder: &Path) -> Vec<(String, String)> {
        let line = |path: &str, name: &str| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let found = text.lines().find_map(|line| line.strip_prefix(name)?.split_once(':').map(|l| l.1));
            found.unwrap_or("?").trim().to_string()
        };
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let device = folder.to_str().and_then(crate::watch::device::name_of);
        let facts = [
            ("CPU", line("/proc/cpuinfo", "model name")),
            ("CPUs", (self.server_cpus.len() + self.load_cpus.len()).to_string()),
            ("memory", line("/proc/meminfo", "MemTotal")),
            ("kernel", kernel.trim().to_string()),
            ("servers on CPU", list(&self.server_cpus)),
            ("load on CPU", list(&self.load_cpus)),
            ("device of the servers' files", device.unwrap_or_else(|| "none that is known".to_string())),
        ];
        facts.map(|(name, value)| (name.to_string(), value)).into()
    }

    /// Does `start` while this thread may run on `cpus` only, so that a process started by it stays there.
    pub fn pinned<T>(&self, cpus: &[usize], start: impl FnOnce() -> T) -> T {
        let before = sched_getaffinity(None);
        let mut set = CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(*cpu));
        let is_pinned = !cpus.is_empty() && sched_setaffinity(None, &set).is_ok();
        let done = start();
        if let (true, Ok(before)) = (is_pinned, before) {
            let _ = sched_setaffinity(None, &before);
        }
        done
    }
}

/// Half of the CPUs for the servers and half for the load; one CPU has to do for both.
fn divide(cpus: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let (servers, load) = cpus.split_at(cpus.len() / 2);
    if servers.is_empty() { (load.to_vec(), load.to_vec()) } else { (servers.to_vec(), load.to_vec()) }
}

/// Numbers as a list: `0,1`.
pub fn list(numbers: &[usize]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// RAM that processes may still take, in MiB; 0 if it is not known.
pub fn available_mib() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    kib.and_then(|kib| kib.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// Where a program is, if it is anywhere; `more` are folders to look at besides.
pub fn program(name: &str, more: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(MORE_PLACES.map(PathBuf::from)).chain(more.to_vec());
    places.map(|place| place.join(name)).find(|file| file.is_file())
}

/// Returns whether a command succeeds; its output is discarded.
pub fn succeeds(program: &Path, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A user's numbers: of the user and of its group.
pub fn user(name: &str) -> Option<(u32, u32)> {
    numbers_of(&fs::read_to_string("/etc/passwd").ok()?, name)
}

fn numbers_of(passwd: &str, name: &str) -> Option<(u32, u32)> {
    let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_load_do_not_share_a_cpu_unless_there_is_one_only() {
        assert_eq!(divide(&[0, 1]), (vec![0], vec![1]));
        assert_eq!(divide(&[3]), (vec![3], vec![3]));
        assert_eq!(divide(&[0, 1, 2, 3, 4]), (vec![0, 1], vec![2, 3, 4]));
        assert_eq!(list(&[0, 12]), "0,12");
    }

    #[test]
    fn the_available_memory_is_known() {
        assert!(available_mib() > 10);
    }

    #[test]
    fn pinning_ends() {
        let host = Host::look();
        let before = cpu::allowed();
        let first = before[..1].to_vec();
        assert_eq!(host.pinned(&first, cpu::allowed), first);
        assert_eq!(cpu::allowed(), before);
    }

    #[test]
    fn programs_and_users_are_found() {
        assert!(program("sh", &[]).is_some() && program("no-such-program", &[]).is_none());
        let passwd = "root:x:0:0:root:/root:/bin/sh\nmysql:x:106:115:,,,:/nonexistent:/bin/false\n";
        assert_eq!(numbers_of(passwd, "mysql"), Some((106, 115)));
        assert_eq!(numbers_of(passwd, "sql"), None);
    }
}
