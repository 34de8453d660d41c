//! The memory that this process may use: the machine's, or the rest that its control groups allow.

use std::fs;
use std::path::Path;

/// Returns the memory in bytes, as far as the system tells.
pub fn memory_bytes() -> Option<u64> {
    memory_below(Path::new("/"))
}

/// Returns [`memory_bytes`] with the system's files below `root`.
fn memory_below(root: &Path) -> Option<u64> {
    let machine = machine_bytes(root);
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().flat_map(|line| group_limits(root, line));
    limits.chain(machine).min()
}

fn machine_bytes(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the limits of a control group, given as `0::PATH` or `N:CONTROLLERS:PATH`, and of the groups it lies in.
fn group_limits(root: &Path, line: &str) -> Vec<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (base, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        names if names.split(',').any(|name| name == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let base = root.join(base);
    // A path outside of the tree that this process sees counts as the top.
    let group = Path::new(path.trim_start_matches('/'));
    let read = |group: &Path| fs::read_to_string(base.join(group).join(file)).ok()?.trim().parse().ok();
    group.ancestors().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_the_machine_and_its_control_groups_counts() {
        let root = std::env::temp_dir().join(format!("larder-host-{}", std::process::id()));
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("room");
            fs::write(path, text).expect("room");
        };
        assert_eq!(memory_below(&root), None);
        put("proc/meminfo", "MemTotal:       24683660 kB\nMemFree: 1 kB\n");
        assert_eq!(memory_below(&root), Some(24_683_660 * 1024));
        put("proc/self/cgroup", "0::/system.slice/larder.service\n");
        put("sys/fs/cgroup/system.slice/larder.service/memory.max", "max\n");
        put("sys/fs/cgroup/system.slice/memory.max", "1073741824\n");
        put("sys/fs/cgroup/memory.max", "2147483648\n");
        assert_eq!(memory_below(&root), Some(1 << 30));
        put("proc/self/cgroup", "5:cpu,memory:/docker/1\n4:devices:/\n0::/\n");
        put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        put("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "536870912\n");
        assert_eq!(memory_below(&root), Some(512 << 20));
        let _ = fs::remove_dir_all(&root);
    }
}
