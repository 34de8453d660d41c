//! `stats settings` against the lines memcached prints.

use super::*;

#[test]
fn settings_have_memcacheds_names_order_and_formats() {
    let lines = config(&["-l", "127.0.0.1", "-t4", "-m64"]).settings();
    let text: String = lines.iter().map(|(name, value)| format!("{name} {value}\n")).collect();
    assert_eq!(text, include_str!("settings.expected"));
    let names: std::collections::HashSet<_> = lines.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), lines.len());
}

#[test]
fn settings_echo_what_was_given() {
    let args = [
        "-s",
        "/s",
        "-a777",
        "-M",
        "-C",
        "-A",
        "-F",
        "-X",
        "-c",
        "9",
        "-b",
        "8675",
        "-B",
        "binary",
        "-D",
        "/",
        "-n",
        "96",
        "-f",
        "1.5",
        "-o",
        "slab_chunk_max=16,idle_timeout=3,no_lru_crawler,hot_max_factor=0.3,temporary_ttl=9",
    ];
    let settings: BTreeMap<_, _> = config(&args).settings().into_iter().collect();
    let expected = [
        ("inter", "NULL"),
        ("domain_socket", "/s"),
        ("umask", "777"),
        ("evictions", "off"),
        ("cas_enabled", "no"),
        ("shutdown_command", "yes"),
        ("flush_enabled", "no"),
        ("dump_enabled", "no"),
        ("maxconns", "9"),
        ("tcp_backlog", "8675"),
        ("binding_protocol", "binary"),
        ("stat_key_prefix", "/"),
        ("detail_enabled", "yes"),
        ("chunk_size", "96"),
        ("growth_factor", "1.50"),
        ("slab_chunk_max", "16384"),
        ("idle_timeout", "3"),
        ("lru_crawler", "no"),
        ("hot_max_factor", "0.30"),
        ("temp_lru", "yes"),
        ("temporary_ttl", "9"),
        ("ignored_options", "-f,-n,-ohot_max_factor,-oslab_chunk_max,-otemporary_ttl"),
    ];
    for (name, value) in expected {
        assert_eq!(settings.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(settings.values().all(|value| !value.is_empty()));
}
