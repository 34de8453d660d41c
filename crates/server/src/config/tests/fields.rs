//! The values of options: the defaults, and a field for each option.

use std::path::Path;
use std::time::Duration;

use larder_store::Admission;

use super::*;

#[test]
fn without_arguments_it_is_a_small_cache_on_loopback() {
    let config = config(&[]);
    assert_eq!(config.listen, [Listen { host: Some("127.0.0.1".to_string()), ..Listen::ANY }]);
    assert_eq!(config.tcp_port, TcpPort::Fixed(11211));
    assert_eq!((config.memory_limit_bytes, config.item_size_max_bytes), (64 << 20, 1 << 20));
    assert_eq!(config.ssd.len(), 1);
    assert_eq!(config.ssd[0].path, Path::new("/home/cook/.cache/larder/larder.ssd"));
    assert_eq!(config.ssd[0].size_bytes, Some(1 << 30));
    assert_eq!((config.threads, config.conn_limit, config.backlog), (3, 1024, 1024));
    assert_eq!((config.reqs_per_event, config.prefix_delimiter), (20, b':'));
    assert_eq!(config.ssd_write_wait, Duration::from_millis(50));
    assert!(config.evictions && config.cas && config.flush_all && config.dumping);
    assert!(config.conn_limit_fast && config.lru_crawler && config.lru_maintainer);
    assert!(!config.shutdown && !config.daemon && !config.stats_detail);
    assert_eq!((config.idle_timeout, config.ssd_write_limit, config.index_memory_bytes), (None, None, None));
    assert_eq!((config.warnings, config.ignored), (vec![], vec![]));
}

#[test]
fn under_memcacheds_name_it_is_memcached() {
    for name in ["memcached", "/usr/local/bin/memcached", "./memcached-debug"] {
        let mut surroundings = surroundings(&[], &[]);
        surroundings.args[0] = OsString::from(name);
        let Ok(Command::Run(config)) = load(&surroundings) else { panic!("{name}") };
        assert_eq!(
            (config.personality, config.listen.as_slice()),
            (Personality::Memcached, &[Listen::ANY][..])
        );
        assert_eq!(config.ssd, []);
    }
    assert_eq!(config(&[]).personality, Personality::Larder);
}

#[test]
fn the_default_ssd_follows_the_cache_directory_and_the_memory() {
    let ssd = |args: &[&str], variables: &[(&str, &str)]| match try_load(args, variables) {
        Ok(Command::Run(config)) => (config.ssd, config.warnings),
        other => panic!("{other:?}"),
    };
    let path =
        |path: &str, mib: u64| vec![SsdPath { path: PathBuf::from(path), size_bytes: Some(mib << 20) }];
    assert_eq!(ssd(&[], &[("XDG_CACHE_HOME", "/c")]).0, path("/c/larder/larder.ssd", 1024));
    assert_eq!(ssd(&["-m", "16"], &[("XDG_CACHE_HOME", "/c")]).0, path("/c/larder/larder.ssd", 256));
    assert_eq!(ssd(&["-m", "4000"], &[("XDG_CACHE_HOME", "rel")]).0[0].size_bytes, Some(1 << 30));
    assert_eq!(ssd(&["-m", "2"], &[]), (vec![], vec![]));
    let (none, warnings) = ssd(&[], &[("HOME", "")]);
    assert_eq!(none, []);
    assert!(warnings[0].contains("--ssd"), "{warnings:?}");
}

#[test]
fn memcacheds_switches_become_fields() {
    let config = config(&[
        "-d",
        "-r",
        "-M",
        "-k",
        "-L",
        "-C",
        "-F",
        "-X",
        "-W",
        "-A",
        "-u",
        "11211",
        "-P",
        "/p",
        "-e",
        "/m",
        "-f",
        "1.1",
        "-n",
        "64",
        "-N",
        "2",
        "-R",
        "5",
        "-b",
        "8675",
        "-B",
        "ascii",
        "-D",
        "/",
        "-c",
        "7",
        "-t",
        "2",
        "-m",
        "4",
        "-o",
        "relaxed_privileges,no_maxconns_fast,no_lru_crawler,no_lru_maintainer",
    ]);
    assert!(config.daemon && config.lock_memory && config.shutdown && config.stats_detail);
    assert!(!(config.evictions || config.cas || config.flush_all || config.dumping));
    assert!(!(config.conn_limit_fast || config.lru_crawler || config.lru_maintainer));
    assert_eq!((config.user.as_deref(), config.pidfile), (Some("11211"), Some(PathBuf::from("/p"))));
    assert_eq!(config.memory_file, Some(PathBuf::from("/m")));
    assert_eq!((config.reqs_per_event, config.backlog, config.protocol), (5, 8675, Protocol::Ascii));
    assert_eq!(config.ignored, ["-r", "-f", "-n", "-L", "-N", "-o relaxed_privileges"]);
}

#[test]
fn larders_options_become_fields() {
    let config = config(&[
        "--ssd",
        "/a:1g",
        "--ssd=/dev/b",
        "--ssd-share=2/4",
        "--ssd-format",
        "--ssd-write-limit=100m/s",
        "--ssd-endurance=600T",
        "--ssd-write-wait=7",
        "--ssd-admission=returning",
        "--ssd-live-percent=50",
        "--index-memory=9",
        "--item-size=100",
        "--conn-memory=8m",
        "--lease-memory=2m",
        "--io=threads",
        "--memory-file=/dev/shm/x",
    ]);
    let paths: Vec<_> = config.ssd.iter().map(|ssd| (ssd.path.to_str().unwrap(), ssd.size_bytes)).collect();
    assert_eq!(paths, [("/a", Some(1 << 30)), ("/dev/b", None)]);
    assert_eq!((config.ssd_share.part, config.ssd_share.parts, config.ssd_format), (2, 4, true));
    assert_eq!((config.ssd_write_limit, config.ssd_write_wait), (Some(100 << 20), Duration::from_millis(7)));
    assert_eq!(config.ssd_endurance_bytes, Some(600_000_000_000_000));
    assert_eq!(config.ssd_admission, Admission::Returning);
    assert_eq!(super::config(&[]).ssd_admission, Admission::All);
    let chosen = super::config(&["--ssd-admission=auto"]);
    assert_eq!((chosen.ssd_admission, chosen.chooses_admission), (Admission::All, true));
    assert!(!config.chooses_admission && !super::config(&[]).chooses_admission);
    assert_eq!((config.ssd_live_percent, super::config(&[]).ssd_live_percent), (50, 70));
    assert_eq!((config.index_memory_bytes, config.item_size_bytes), (Some(9 << 20), 100));
    assert_eq!((config.conn_memory_bytes, config.io), (8 << 20, Io::Threads));
    assert_eq!((config.lease_memory_bytes, super::config(&[]).lease_memory_bytes), (2 << 20, 16 << 20));
    assert!(config.memory_file.is_some() && config.state_file.is_none());
    assert_eq!(super::config(&["--state-file=/s"]).state_file, Some(PathBuf::from("/s")));
}

#[test]
fn a_unix_socket_replaces_tcp() {
    let config = config(&["-s", "/s", "-a", "777", "-p", "0"]);
    assert_eq!(config.unix_socket, Some(UnixSocket { path: PathBuf::from("/s"), mode: 0o777 }));
    assert_eq!(config.listen, []);
}

#[test]
fn bounds_of_memcacheds_item_size() {
    assert_eq!(config(&["-I", "1024"]).item_size_max_bytes, 1024);
    assert_eq!(config(&["-m", "2"]).item_size_max_bytes, 1 << 20);
    assert_eq!(config(&["-m", "1"]).item_size_max_bytes, 1 << 19);
    assert_eq!(config(&["-m", "256", "-I", "32m"]).item_size_max_bytes, 32 << 20);
    assert_eq!(config(&["-m", "2048", "-I", "1g"]).item_size_max_bytes, 1 << 30);
}

#[test]
fn udp_is_accepted_with_a_warning() {
    let config = config(&["-U", "11211"]);
    assert!(config.warnings[0].contains("UDP is not served"), "{:?}", config.warnings);
    assert!(config.settings().contains(&("udpport", "0".to_string())));
}
