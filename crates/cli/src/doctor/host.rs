//! Checks of the host that a server runs on, from its `proc` and `sys`.

use std::path::{Path, PathBuf};

use super::{Check, Finding, Scene, error, read, warning};
use crate::units::show_bytes;

/// Clocks that are read without a system call.
const CLOCKS: [&str; 4] = ["tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page"];

/// Where the host's files are, and the server's process.
#[derive(Debug)]
pub(super) struct Host {
    root: PathBuf,
    pid: u64,
}

/// The checks.
pub(super) const CHECKS: &[Check] = &[
    ("io-uring", |scene| {
        let disabled = scene.host.as_ref()?.number("proc/sys/kernel/io_uring_disabled")?;
        let finding = format!("kernel.io_uring_disabled is {disabled}");
        let why = "the SSD is reached by threads instead, which costs context switches";
        (disabled > 0 && scene.has_ssd())
            .then(|| warning(finding, why, "sysctl -w kernel.io_uring_disabled=0"))?
    }),
    ("listen-backlog", |scene| {
        let kernel = scene.host.as_ref()?.number("proc/sys/net/core/somaxconn")?;
        let wanted = scene.setting("tcp_backlog")?.parse::<u64>().ok()?;
        let finding = format!("net.core.somaxconn is {kernel}, less than the {wanted} of -b");
        let why = "the kernel shortens the queue of new connections, so a rush of clients is refused";
        (kernel < wanted).then(|| warning(finding, why, format!("sysctl -w net.core.somaxconn={wanted}")))?
    }),
    ("open-files", |scene| {
        let limit = scene.host.as_ref()?.open_files()?;
        // As the daemon counted at its start, for the same warning.
        let wanted = scene.figures.get("open_files_wanted")?;
        let finding = format!("the daemon may open {limit} files, and -c asks for {wanted}");
        let why = "connections beyond the limit are not accepted";
        (limit < wanted).then(|| {
            warning(finding, why, format!("ulimit -n {wanted}, or LimitNOFILE={wanted} in its unit"))
        })?
    }),
    ("swap", |scene| {
        let swaps = scene.host.as_ref()?.read("proc/swaps")?;
        let is_on = swaps.lines().skip(1).any(|line| !line.trim().is_empty());
        let finding = "swap is on".to_string();
        let why = "items in RAM that were swapped out are read from the swap, slower than from the SSD";
        (is_on && !scene.host.as_ref()?.is_locked())
            .then(|| warning(finding, why, "start with -k, or swapoff -a"))?
    }),
    ("memory-limit", memory_limit),
    ("clock", |scene| {
        let clock =
            scene.host.as_ref()?.read("sys/devices/system/clocksource/clocksource0/current_clocksource")?;
        let clock = clock.trim().to_string();
        let finding = format!("the clock is {clock}");
        let why = "each look at the time is a system call, several for a request";
        let fix = "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource";
        (!CLOCKS.contains(&clock.as_str())).then(|| warning(finding, why, fix))?
    }),
    ("disk", |scene| {
        // Of virtual disks the kernel only supposes it.
        let is_slow = |disk: &Disk| disk.is_rotational && !disk.name.starts_with(['v', 'x']);
        let (path, disk) = scene.host.as_ref()?.disks().into_iter().find(|(_, disk)| is_slow(disk))?;
        let finding = format!("{} is on {}, a disk that rotates", path.display(), disk.name);
        let why = "a read takes some 10 ms there, and a hundred a second are the most";
        warning(finding, why, "give --ssd a path on an SSD")
    }),
    ("scheduler", |scene| {
        let is_slow = |disk: &Disk| disk.name.starts_with("nvme") && !disk.scheduler.contains("[none]");
        let (_, disk) = scene.host.as_ref()?.disks().into_iter().find(|(_, disk)| is_slow(disk))?;
        let finding = format!("{} has the scheduler {}", disk.name, disk.scheduler);
        let why = "an NVMe device orders requests itself; a scheduler in front costs time for each";
        warning(finding, why, format!("echo none > /sys/block/{}/queue/scheduler", disk.name))
    }),
    ("file-system", |scene| {
        let slow = ["btrfs", "zfs", "overlay", "nfs", "nfs4", "fuse"];
        let (path, kind) = scene
            .host
            .as_ref()?
            .file_systems()
            .into_iter()
            .find(|(_, kind)| slow.contains(&kind.as_str()))?;
        let finding = format!("{} is on {kind}", path.display());
        let why = "it copies what is overwritten, or has no direct I/O: writes are multiplied";
        warning(finding, why, "give --ssd a block device, or a path on ext4 or XFS")
    }),
];

fn memory_limit(scene: &Scene) -> Option<Finding> {
    let limit = scene.host.as_ref()?.memory_max()?;
    let wanted = scene.figures.get("memory_limit_bytes")?;
    let finding =
        format!("the control group may use {}, and -m asks for {}", show_bytes(limit), show_bytes(wanted));
    let why =
        "the kernel ends the daemon when the group's memory is used up; connections need some besides -m";
    // An eighth is for connections and the process itself.
    let fix =
        format!("raise memory.max to {} or more, or give a smaller -m", show_bytes(wanted + wanted / 8));
    (limit < wanted + wanted / 8).then(|| error(finding, why, fix))?
}

/// A disk below a path of `--ssd`.
#[derive(Clone, Debug)]
struct Disk {
    name: String,
    is_rotational: bool,
    scheduler: String,
}

impl Host {
    /// Returns the host of a process; `None` if it has no such process.
    pub(super) fn of(root: &Path, pid: u64) -> Option<Host> {
        let host = Host { root: root.to_path_buf(), pid };
        host.read(&format!("proc/{pid}/status")).map(|_| host)
    }

    fn read(&self, path: &str) -> Option<String> {
        read(&self.root, path)
    }

    fn number(&self, path: &str) -> Option<u64> {
        self.read(path)?.trim().parse().ok()
    }

    fn open_files(&self) -> Option<u64> {
        let limits = self.read(&format!("proc/{}/limits", self.pid))?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        line.split_whitespace().next()?.parse().ok()
    }

    /// Returns whether most of the process's memory is locked.
    fn is_locked(&self) -> bool {
        let status = self.read(&format!("proc/{}/status", self.pid)).unwrap_or_default();
        let kilobytes = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        kilobytes("VmLck:") * 2 > kilobytes("VmRSS:")
    }

    /// Returns the memory that the process's control group may use, if that is limited.
    fn memory_max(&self) -> Option<u64> {
        let groups = self.read(&format!("proc/{}/cgroup", self.pid))?;
        let mut group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?.to_string();
        let mut least = None;
        // The groups around it limit it, too.
        loop {
            let folder = if group.is_empty() { String::new() } else { format!("{group}/") };
            let max = self.number(&format!("sys/fs/cgroup/{folder}memory.max"));
            least = least.into_iter().chain(max).min();
            if group.is_empty() {
                return least;
            }
            group = group.rsplit_once('/').map_or(String::new(), |(parent, _)| parent.to_string());
        }
    }

    /// Returns the files and devices that the process has open to be read and written: those of its SSD.
    fn ssd_paths(&self) -> Vec<PathBuf> {
        let folder = format!("proc/{}/fd", self.pid);
        let links = std::fs::read_dir(self.root.join(&folder)).into_iter().flatten().flatten();
        let is_read_and_written = |name: &str| {
            let info = self.read(&format!("{folder}info/{name}")).unwrap_or_default();
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
            flags.is_some_and(|flags| flags.trim().ends_with('2'))
        };
        let links = links.filter(|link| is_read_and_written(&link.file_name().to_string_lossy()));
        let mut paths: Vec<PathBuf> = links.filter_map(|link| std::fs::read_link(link.path()).ok()).collect();
        let is_data = |path: &PathBuf| {
            let other = ["/dev/null", "/dev/pts/", "/dev/tty", "/proc/", "/sys/", "/dev/shm/"];
            path.is_absolute() && !other.iter().any(|other| path.to_string_lossy().starts_with(other))
        };
        paths.retain(is_data);
        paths.sort();
        paths.dedup();
        paths
    }

    /// Returns the mount of each path: its device and its file system.
    fn mounts(&self) -> Vec<(PathBuf, String, String)> {
        let mounts = self.read(&format!("proc/{}/mountinfo", self.pid)).unwrap_or_default();
        let mount = |line: &str| -> Option<(PathBuf, String, String)> {
            let (front, back) = line.split_once(" - ")?;
            let mut words = front.split(' ').skip(2);
            let device = words.next()?.to_string();
            let point = words.nth(1)?;
            Some((PathBuf::from(point), device, back.split(' ').next()?.to_string()))
        };
        let mounts: Vec<_> = mounts.lines().filter_map(mount).collect();
        let of = |path: PathBuf| {
            let around = mounts.iter().filter(|(point, ..)| path.starts_with(point));
            let (_, device, kind) = around.max_by_key(|(point, ..)| point.components().count())?;
            Some((path, device.clone(), kind.clone()))
        };
        self.ssd_paths().into_iter().filter(|path| !path.starts_with("/dev")).filter_map(of).collect()
    }

    fn file_systems(&self) -> Vec<(PathBuf, String)> {
        self.mounts().into_iter().map(|(path, _, kind)| (path, kind)).collect()
    }

    fn disks(&self) -> Vec<(PathBuf, Disk)> {
        let of_mounts =
            self.mounts().into_iter().map(|(path, device, _)| (path, format!("sys/dev/block/{device}")));
        let of_devices = self.ssd_paths().into_iter().filter_map(|path| {
            let name = path.strip_prefix("/dev").ok()?.to_str()?.to_string();
            Some((path, format!("sys/class/block/{name}")))
        });
        of_mounts.chain(of_devices).filter_map(|(path, folder)| Some((path, self.disk(&folder)?))).collect()
    }

    /// Returns the disk of a folder of `sys`, which may be a partition's.
    fn disk(&self, folder: &str) -> Option<Disk> {
        let folder = std::fs::canonicalize(self.root.join(folder)).ok()?;
        let folder = folder.ancestors().take(2).find(|folder| folder.join("queue").is_dir())?;
        let queue =
            |name: &str| read(folder, &format!("queue/{name}")).unwrap_or_default().trim().to_string();
        Some(Disk {
            name: folder.file_name()?.to_str()?.to_string(),
            is_rotational: queue("rotational") == "1",
            scheduler: queue("scheduler"),
        })
    }
}
