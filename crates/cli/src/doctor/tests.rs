//! Each check finds what it is for, and nothing on a host and a server that are well.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Instant;

use tempfile::TempDir;

use super::*;

const PID: u64 = 77;

/// A host that is well.
fn host() -> TempDir {
    let root = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
        fs::write(path, text).expect("it is written");
    };
    write("proc/sys/kernel/io_uring_disabled", "0\n");
    write("proc/sys/net/core/somaxconn", "4096\n");
    write("proc/swaps", "Filename\tType\tSize\n");
    write("proc/77/status", "Name:\tlarder\nVmLck:\t 0 kB\nVmRSS:\t 100 kB\n");
    write("proc/77/limits", "Limit  Soft  Hard\nMax open files            2048      4096      files\n");
    write("proc/77/cgroup", "0::/system.slice/larder.service\n");
    write("sys/fs/cgroup/system.slice/larder.service/memory.max", "max\n");
    write(
        "proc/77/mountinfo",
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 259:1 / /data rw - xfs /dev/nvme0n1p1 rw\n",
    );
    write("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    for (disk, part, number) in [("sda", "sda1", "8:1"), ("nvme0n1", "nvme0n1p1", "259:1")] {
        write(&format!("sys/devices/{disk}/queue/rotational"), "0\n");
        write(&format!("sys/devices/{disk}/queue/scheduler"), "[none] mq-deadline\n");
        write(&format!("sys/devices/{disk}/{part}/size"), "1\n");
        fs::create_dir_all(root.path().join("sys/dev/block")).expect("it is made");
        let to = root.path().join(format!("sys/devices/{disk}/{part}"));
        symlink(to, root.path().join(format!("sys/dev/block/{number}"))).expect("it is linked");
    }
    fs::create_dir_all(root.path().join("proc/77/fd")).expect("it is made");
    write("proc/77/fdinfo/2", "pos:\t0\nflags:\t0100001\n");
    write("proc/77/fdinfo/5", "pos:\t0\nflags:\t0140002\n");
    symlink("/var/log/larder.log", root.path().join("proc/77/fd/2")).expect("it is linked");
    symlink("/data/larder.ssd", root.path().join("proc/77/fd/5")).expect("it is linked");
    root
}

fn scene(root: &TempDir, figures: &[(&str, u64)]) -> Scene {
    let well = [
        ("ssd_segments", 64),
        ("total_items", 1_000_000),
        ("memory_limit_bytes", 1 << 30),
        ("max_connections", 1024),
        ("open_files_wanted", 1051),
        ("curr_connections", 10),
    ];
    let settings = [("tcp_backlog", "1024"), ("maxconns", "1024"), ("memory_file", "/dev/shm/larder")];
    Scene {
        figures: Figures::of(Instant::now(), true, &[&well, figures].concat()),
        settings: settings.map(|(name, value)| (name.to_string(), value.to_string())).into(),
        host: Host::of(root.path(), PID),
    }
}

fn found(scene: &Scene) -> Vec<String> {
    let checked = run_checks(scene, server::CHECKS).into_iter().chain(run_checks(scene, host::CHECKS));
    checked.filter(|checked| checked.finding.is_some()).map(|checked| checked.check.into_owned()).collect()
}

#[test]
fn a_server_and_a_host_that_are_well_have_no_findings() {
    assert_eq!(found(&scene(&host(), &[])), Vec::<&str>::new());
}

#[test]
fn each_figure_of_a_server_in_trouble_is_found() {
    let root = host();
    for (check, figures) in [
        ("ssd-off", &[("ssd_is_off", 1)][..]),
        ("ssd-errors", &[("ssd_errors", 3)]),
        ("ssd-behind", &[("ssd_admissions_dropped", 10_001)]),
        ("index", &[("index_evictions", 10_001)]),
        ("connections", &[("curr_connections", 900)]),
        ("refused-connections", &[("listen_disabled_num", 1)]),
        ("connection-memory", &[("conn_memory_kicks", 1)]),
        ("leases", &[("leases_displaced", 60), ("leases_announced", 100)]),
        ("damaged-memory", &[("shards_reset", 1), ("shards", 256)]),
        (
            "wear",
            &[("ssd_wear_days_left", 179), ("ssd_endurance_bytes", 1), ("ssd_lifetime_written_bytes", 1)],
        ),
    ] {
        assert_eq!(found(&scene(&root, figures)), [check]);
    }
    assert_eq!(found(&scene(&root, &[("ssd_is_off", 1), ("ssd_segments", 0)])), Vec::<&str>::new());
    let mut scene = scene(&root, &[("uptime", 90_000)]);
    scene.settings.retain(|(name, _)| name != "memory_file");
    scene.settings.push(("memory_file".to_string(), "(null)".to_string()));
    assert_eq!(found(&scene), ["restart"]);
}

#[test]
fn a_worn_ssd_is_found_with_the_limit_that_makes_it_last() {
    let root = host();
    let fix = |per_day: u64| {
        let figures = [
            ("ssd_wear_days_left", 100),
            ("ssd_endurance_bytes", 1),
            ("ssd_lifetime_written_bytes", 1),
            ("ssd_bytes_written_per_day", per_day),
        ];
        let checked = run_checks(&scene(&root, &figures), server::CHECKS);
        let found = checked.into_iter().find(|checked| checked.check == "wear").expect("it is checked");
        found.finding.expect("it is found").fix
    };
    // 10 TB a day for 100 days are 1,000 TB, which last 1,095 days at 10.57 MB/s.
    assert_eq!(fix(10_000_000_000_000), "--ssd-write-limit 10m/s makes it last 1095 days at least");
    assert_eq!(fix(100_000_000_000), "--ssd-write-limit 103k/s makes it last 1095 days at least");
    assert!(fix(0).starts_with("give --ssd-admission returning"));
}

#[test]
fn each_setting_of_a_host_in_trouble_is_found() {
    for (check, path, text) in [
        ("io-uring", "proc/sys/kernel/io_uring_disabled", "2\n"),
        ("listen-backlog", "proc/sys/net/core/somaxconn", "128\n"),
        ("swap", "proc/swaps", "Filename\n/swapfile file 1 0 -2\n"),
        ("open-files", "proc/77/limits", "Max open files            1024  1024  files\n"),
        ("memory-limit", "sys/fs/cgroup/system.slice/memory.max", "1073741824\n"),
        ("clock", "sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
        ("disk", "sys/devices/nvme0n1/queue/rotational", "1\n"),
        ("scheduler", "sys/devices/nvme0n1/queue/scheduler", "none [mq-deadline]\n"),
        ("file-system", "proc/77/mountinfo", "2 1 259:1 / /data rw - btrfs /dev/nvme0n1p1 rw\n"),
    ] {
        let root = host();
        fs::write(root.path().join(path), text).expect("it is written");
        assert_eq!(found(&scene(&root, &[])), [check], "{path}");
    }
}

#[test]
fn findings_fit_the_terminal_and_say_what_to_do() {
    let scene = scene(&host(), &[("ssd_errors", 3), ("conn_memory_kicks", 1)]);
    let checked = run_checks(&scene, server::CHECKS);
    for columns in [40, 80] {
        let shown = text(&checked, false, columns);
        assert!(shown.lines().all(|line| line.len() <= columns), "{shown}");
        assert_eq!(shown.matches("  do: ").count(), 2);
    }
    assert!(
        text(&checked, true, 80).ends_with(&format!("findings: 2, in {} checks\n", server::CHECKS.len()))
    );
}

#[test]
fn only_an_address_of_this_host_is_local() {
    for local in ["127.0.0.1:11211", "localhost", "/run/larder.sock", "unix:s", "[::1]:1", "tls:127.0.0.1"] {
        assert!(is_local(local), "{local}");
    }
    for other in ["cache1", "10.0.0.1:11211", "tls:cache:1"] {
        assert!(!is_local(other), "{other}");
    }
}

#[test]
fn open_files_are_asked_for_in_the_number_that_the_daemon_counted() {
    let root = host();
    let limit = |files| {
        let text = format!("Max open files            {files}  {files}  files\n");
        fs::write(root.path().join("proc/77/limits"), text).expect("it is written");
        let checked = run_checks(&scene(&root, &[]), host::CHECKS);
        checked.into_iter().find_map(|checked| checked.finding.filter(|_| checked.check == "open-files"))
    };
    assert!(limit(1051).is_none());
    assert_eq!(limit(1050).expect("a finding").fix, "ulimit -n 1051, or LimitNOFILE=1051 in its unit");
}

#[test]
fn a_dns_that_fails_is_found_after_some_look_ups() {
    let root = host();
    let failing = |failed, servers| {
        let figures = [
            ("cluster_lookups_failed_in_a_row", failed),
            ("cluster_servers", servers),
            ("cluster_answer_age_seconds", 90),
        ];
        let checked = run_checks(&scene(&root, &figures), server::CHECKS);
        let finding = checked
            .into_iter()
            .find_map(|checked| checked.finding.filter(|_| checked.check == "cluster-dns"));
        finding.map(|finding| (finding.weight, finding.finding))
    };
    assert_eq!(failing(0, 3), None);
    assert_eq!(failing(2, 3), None);
    let (weight, finding) = failing(3, 3).expect("a finding");
    assert!(weight == Weight::Warning && finding.contains("ago: 3 look-ups failed since"), "{finding}");
    let (weight, finding) = failing(4, 0).expect("a finding");
    assert!(weight == Weight::Error && finding.contains("not named"), "{finding}");
}
