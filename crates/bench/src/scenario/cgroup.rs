//! A limit of memory for a process and the pages of files that it brings into memory, where the system lets
//! us set one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Version 1 has a tree for memory alone, version 2 one for everything.
const VERSION_1: &str = "/sys/fs/cgroup/memory";
const VERSION_2: &str = "/sys/fs/cgroup";
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A group with a limit; it goes when it is dropped, which has to be after its processes.
#[derive(Debug)]
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// Puts a process into a group of its own that may use this many bytes.
    ///
    /// # Errors
    /// The system does not let us; in words.
    pub fn limit(pid: u32, bytes: u64) -> Result<Self, String> {
        let is_version_1 = Path::new(VERSION_1).join("memory.limit_in_bytes").exists();
        let controllers =
            fs::read_to_string(Path::new(VERSION_2).join("cgroup.subtree_control")).unwrap_or_default();
        let (place, limit) = match is_version_1 {
            true => (VERSION_1, "memory.limit_in_bytes"),
            false if controllers.split_whitespace().any(|name| name == "memory") => (VERSION_2, "memory.max"),
            false => return Err("there are no control groups of memory".to_string()),
        };
        let name = format!("larder-bench-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(place).join(name);
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        fs::create_dir(&path).map_err(failed)?;
        let group = Self(path.clone());
        fs::write(path.join(limit), bytes.to_string()).map_err(failed)?;
        fs::write(path.join("cgroup.procs"), pid.to_string()).map_err(failed)?;
        Ok(group)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
