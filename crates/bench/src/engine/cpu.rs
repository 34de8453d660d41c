//! The calling thread's CPUs, and its CPU time.

use super::Error;
use crate::result::Generator;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// CPU time of a thread so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    /// Ran, in nanoseconds.
    pub ran_ns: u64,
    /// Could have run, and had to wait for a CPU.
    pub waited_ns: u64,
    /// In user space, in clock ticks.
    user_ticks: u64,
    /// In the kernel, in clock ticks.
    system_ticks: u64,
}

impl Used {
    /// Returns the CPU time that the calling thread used until now.
    pub fn now() -> Self {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let waited = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let waited_ns = waited.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
        let (user_ticks, system_ticks) = crate::watch::process::ticks(&stat).unwrap_or((0, 0));
        let ran_ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        Self { ran_ns, waited_ns, user_ticks, system_ticks }
    }

    /// User and system time in microseconds since `before`: the exact sum, split as the kernel's ticks are.
    pub fn split_us(&self, before: &Self) -> (u64, u64) {
        let total_us = (self.ran_ns - before.ran_ns) / 1000;
        let user = self.user_ticks - before.user_ticks;
        let system = self.system_ticks - before.system_ticks;
        let user_us = match user + system {
            0 => total_us / 2,
            ticks => total_us * user / ticks,
        };
        (user_us, total_us - user_us)
    }
}

/// Adds what a thread used from `at_begin` to `at_end`, a window of so many seconds in which it waited for so long by
/// asking the clock, to the cost of all threads.
pub fn add_thread(generator: &mut Generator, (at_begin, at_end): (Used, Used), idle_ns: u64, seconds: f64) {
    let (user_us, system_us) = at_end.split_us(&at_begin);
    generator.cpu_user_us += user_us;
    generator.cpu_system_us += system_us;
    if seconds <= 0.0 {
        return;
    }
    let share = |ns: u64| ns as f64 / 1e9 / seconds;
    let ran_ns = at_end.ran_ns - at_begin.ran_ns;
    let waited_ns = at_end.waited_ns.saturating_sub(at_begin.waited_ns);
    let busiest = &mut generator.busiest_thread;
    *busiest = busiest.max(share(ran_ns.saturating_sub(idle_ns)));
    let waiting = &mut generator.most_waiting_thread;
    *waiting = waiting.max(share(waited_ns));
    // The idle time runs by the clock, so that it has the waiting between two looks at it too.
    let occupied = &mut generator.most_occupied_thread;
    *occupied = occupied.max(share((ran_ns + waited_ns).saturating_sub(idle_ns)));
}

/// Lets the calling thread run on one CPU only.
///
/// # Errors
/// There is no such CPU, or it is not ours.
pub fn pin(cpu: usize) -> Result<(), Error> {
    let allowed = allowed();
    if !allowed.contains(&cpu) {
        let all: Vec<String> = allowed.iter().map(usize::to_string).collect();
        return Err(Error::Plan(format!("--cpus {cpu}: this process may use the CPUs {}", all.join(","))));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|e| Error::host(&format!("--cpus {cpu}"), e))
}

/// The CPUs that the calling thread may use.
pub fn allowed() -> Vec<usize> {
    sched_getaffinity(None)
        .map_or_else(|_| Vec::new(), |set| (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}
