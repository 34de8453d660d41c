//! `process_*`: the metrics that every exporter has of its own process, from `/proc`.

use std::fs;

use rustix::process::{Resource, getrlimit};

use super::text::{Exposition, Kind};
use crate::process::cpu_time;

/// Adds them. What the system does not show is left out.
pub(super) fn add(text: &mut Exposition, started_unix_s: f64) {
    let (user, system) = cpu_time();
    let cpu = (user + system).as_secs_f64();
    text.single("process_cpu_seconds_total", Kind::Counter, "Processor time used.", cpu);
    let help = "When the process started, in seconds since 1970.";
    text.single("process_start_time_seconds", Kind::Gauge, help, started_unix_s);
    let [virtual_bytes, resident_bytes] = memory_bytes().unwrap_or([None, None]);
    if let Some(bytes) = virtual_bytes {
        text.single("process_virtual_memory_bytes", Kind::Gauge, "Virtual memory.", bytes);
    }
    if let Some(bytes) = resident_bytes {
        text.single("process_resident_memory_bytes", Kind::Gauge, "Resident memory.", bytes);
    }
    if let Some(files) = open_files() {
        text.single("process_open_fds", Kind::Gauge, "Open file descriptors.", files);
    }
    if let Some(most) = getrlimit(Resource::Nofile).current {
        text.single("process_max_fds", Kind::Gauge, "The limit on open file descriptors.", most);
    }
}

/// Returns the virtual and the resident memory.
fn memory_bytes() -> Option<[Option<u64>; 2]> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = statm.split(' ').map(|pages| pages.parse::<u64>().ok());
    let mut bytes = || Some(pages.next()?? * rustix::param::page_size() as u64);
    Some([bytes(), bytes()])
}

/// Returns the number of open descriptors, from the size of their folder: listing ten thousand of them would take a
/// scrape too long.
fn open_files() -> Option<u64> {
    let metadata = fs::metadata("/proc/self/fd").ok()?;
    match std::os::unix::fs::MetadataExt::size(&metadata) {
        // Kernels before 6.2 do not tell.
        0 => fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as u64),
        files => Some(files),
    }
}
