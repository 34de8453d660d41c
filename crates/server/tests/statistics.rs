//! What tools read: the names, order and form of statistics, and that they count.

mod support;

use support::{Client, Server};

/// What memcached 1.6.45 shows when started without options; `-` marks what goes with `-o
/// no_lru_crawler,no_lru_maintainer`.
const NAMES: &str = "
    pid uptime time version libevent pointer_size rusage_user rusage_system max_connections
    curr_connections total_connections rejected_connections connection_structures response_obj_oom
    response_obj_count response_obj_bytes read_buf_count read_buf_bytes read_buf_bytes_free
    read_buf_oom reserved_fds cmd_get cmd_set cmd_flush cmd_touch cmd_meta get_hits get_misses
    get_expired get_flushed delete_misses delete_hits incr_misses incr_hits decr_misses decr_hits
    cas_misses cas_hits cas_badval touch_hits touch_misses store_too_large store_no_memory auth_cmds
    auth_errors bytes_read bytes_written limit_maxbytes accepting_conns listen_disabled_num
    time_in_listen_disabled_us threads conn_yields hash_power_level hash_bytes hash_is_expanding
    slab_reassign_rescues slab_reassign_chunk_rescues slab_reassign_inline_reclaim
    slab_reassign_busy_items slab_reassign_busy_deletes slab_reassign_busy_nomem
    slab_reassign_last_busy_status slab_reassign_running slabs_moved -lru_crawler_running
    -lru_crawler_starts -lru_maintainer_juggles malloc_fails log_worker_dropped log_worker_written
    log_watcher_skipped log_watcher_sent log_watchers unexpected_napi_ids round_robin_fallback bytes
    curr_items total_items slab_global_page_pool expired_unfetched evicted_unfetched -evicted_active
    evictions reclaimed crawler_reclaimed crawler_items_checked lrutail_reflocked -moves_to_cold
    -moves_to_warm -moves_within_lru -direct_reclaims -lru_bumps_dropped";

/// The lines of a `stats` command, as names with values.
fn stats(server: &Server, command: &str) -> Vec<(String, String)> {
    let answer = Client::new().say(server, format!("{command}\r\n"));
    let lines = answer.strip_suffix("END\r\n").unwrap_or_else(|| panic!("{command} ends with END: {answer}"));
    let line = |line: &str| {
        let (name, value) = line.strip_prefix("STAT ").and_then(|rest| rest.split_once(' ')).expect(line);
        assert!(!name.is_empty() && !value.is_empty(), "{line:?}");
        (name.to_string(), value.to_string())
    };
    lines.split_terminator("\r\n").map(line).collect()
}

fn value(server: &Server, command: &str, name: &str) -> u64 {
    let lines = stats(server, command);
    let (_, value) =
        lines.iter().find(|line| line.0 == name).unwrap_or_else(|| panic!("{command} has no {name}"));
    value.parse().unwrap_or_else(|_| panic!("{name} is a number: {value}"))
}

fn names(server: &Server, command: &str) -> Vec<String> {
    stats(server, command).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn stats_has_memcacheds_names_in_memcacheds_order() {
    let all: Vec<&str> = NAMES.split_whitespace().map(|name| name.trim_start_matches('-')).collect();
    assert_eq!(all.len(), 93);
    for server in Server::both() {
        assert_eq!(names(&server, "stats"), all);
        assert_eq!(names(&server, "stats "), all);
    }
    let fewer: Vec<&str> = NAMES.split_whitespace().filter(|name| !name.starts_with('-')).collect();
    assert_eq!(fewer.len(), 84);
    assert_eq!(names(&Server::start(&["-o", "no_lru_crawler,no_lru_maintainer"], 0), "stats"), fewer);
}

#[test]
fn some_names_come_with_their_options() {
    let with = names(&Server::start(&["-o", "idle_timeout=3"], 0), "stats");
    assert!(with.contains(&"idle_kicks".to_string()) && with.len() == 94);
    let without = names(&Server::start(&["-o", "no_maxconns_fast"], 0), "stats");
    assert!(!without.contains(&"rejected_connections".to_string()) && without.len() == 92);
}

#[test]
fn times_have_six_decimals_and_the_version_three_numbers() {
    let lines = stats(&Server::ram(), "stats");
    for (name, value) in &lines {
        if name.starts_with("rusage_") {
            let (seconds, micros) = value.split_once('.').expect("seconds and microseconds");
            assert!(seconds.parse::<u64>().is_ok() && micros.len() == 6, "{name} {value}");
        } else if name == "version" {
            assert_eq!(value, "1.6.45");
        } else if name != "libevent" {
            assert!(value.parse::<u64>().is_ok(), "{name} {value}");
        }
    }
}

/// memcached_exporter reports a server as down without these.
#[test]
fn the_exporter_finds_what_it_needs() {
    for server in Server::both() {
        let mut client = Client::new();
        client.ask(&server, "set a 0 0 1\r\nx\r\nget a\r\n");
        server.push_out();
        client.ask(&server, "set b 0 0 1\r\nx\r\nget b\r\n");
        let slabs = names(&server, "stats slabs");
        for name in [
            "1:chunk_size",
            "1:used_chunks",
            "1:cmd_set",
            "1:cas_hits",
            "1:cas_badval",
            "active_slabs",
            "total_malloced",
        ] {
            assert!(slabs.contains(&name.to_string()), "{name}");
        }
        assert!(
            !slabs.iter().any(|name| name.ends_with(":mem_requested")),
            "the exporter would find it twice"
        );
        let items = names(&server, "stats items");
        let numbers = [
            "number",
            "age",
            "evicted",
            "evicted_unfetched",
            "expired_unfetched",
            "outofmemory",
            "reclaimed",
        ];
        for name in numbers {
            assert!(items.contains(&format!("items:1:{name}")), "{name}");
        }
        let settings = stats(&server, "stats settings");
        for (name, expected) in [
            ("maxconns", "1024"),
            ("lru_crawler", "yes"),
            ("maxbytes", "67108864"),
            ("item_size_max", "1048576"),
            ("client_flags_size", "4"),
        ] {
            let found = settings.iter().find(|line| line.0 == name).map(|line| line.1.as_str());
            assert_eq!(found, Some(expected), "{name}");
        }
        let extstore = |name: &String| name.starts_with("extstore_");
        assert!(!names(&server, "stats").iter().any(extstore), "the exporter would want all of them");
    }
}

#[test]
fn counts_count_and_reset_starts_them_anew() {
    let server = Server::ram();
    let mut client = Client::new();
    client.ask(
        &server,
        "set a 0 0 1\r\n1\r\nset b 0 0 1\r\nx\r\nget a b nope\r\nmg a v\r\nincr a 1\r\nincr nope 1\r\n",
    );
    client.ask(&server, "decr a 1\r\ndelete nope\r\ndelete b\r\ncas nope 0 0 1 1\r\nx\r\ncas a 0 0 1 9999\r\nx\r\ntouch a 0\r\n");
    client.ask(&server, "flush_all 1000\r\n");
    let expected = [
        ("cmd_get", 4),
        ("get_hits", 3),
        ("get_misses", 1),
        ("cmd_set", 4),
        ("cmd_meta", 1),
        ("incr_hits", 1),
        ("incr_misses", 1),
        ("decr_hits", 1),
        ("decr_misses", 0),
        ("delete_hits", 1),
        ("delete_misses", 1),
        ("cas_misses", 1),
        ("cas_badval", 1),
        ("cas_hits", 0),
        ("cmd_touch", 1),
        ("touch_hits", 1),
        ("cmd_flush", 1),
        ("total_items", 2),
        ("curr_items", 1),
    ];
    for (name, count) in expected {
        assert_eq!(value(&server, "stats", name), count, "{name}");
    }
    assert_eq!(client.say(&server, "stats reset\r\n"), "RESET\r\n");
    for (name, _) in expected.iter().filter(|(name, _)| *name != "curr_items") {
        assert_eq!(value(&server, "stats", name), 0, "{name}");
    }
    assert_eq!(value(&server, "stats", "curr_items"), 1, "what there is stays");
    client.ask(&server, "get a\r\n");
    assert_eq!(value(&server, "stats", "get_hits"), 1);
}

#[test]
fn hot_warm_and_cold_items_and_their_ages_are_counted() {
    let server = Server::ssd();
    let mut client = Client::new();
    for number in 0..10 {
        client.ask(&server, format!("set k{number} 0 0 1\r\nx\r\n"));
    }
    server.push_out();
    server.pass(30);
    server.shared.store.upkeep(server.now());
    client.ask(&server, "set new 0 0 1\r\nx\r\nget k1\r\n");
    server.pass(12);
    let item = |name: &str| value(&server, "stats items", &format!("items:{name}"));
    assert_eq!(
        (item("1:number"), item("1:number_hot"), item("1:number_warm"), item("1:number_cold")),
        (1, 1, 0, 0)
    );
    assert_eq!((item("1:age_hot"), item("1:age_warm"), item("1:age")), (12, 0, 12));
    assert_eq!(
        (item("2:number"), item("2:number_hot"), item("2:number_warm"), item("2:number_cold")),
        (10, 0, 0, 10)
    );
    assert_eq!((item("2:age"), item("2:hits_to_cold")), (12, 1));
    // Two more reads, and the item moves up to the items in RAM that were read.
    client.ask(&server, "get k1\r\nget k1\r\nget k1\r\n");
    assert_eq!((item("1:number_hot"), item("1:number_warm"), item("2:number_cold")), (1, 1, 9));
}

#[test]
fn gets_of_expired_and_of_flushed_items_are_counted_and_flushed_items_are_not() {
    let server = Server::ram();
    let mut client = Client::new();
    client.ask(&server, "set a 0 5 1\r\nx\r\nset b 0 0 1\r\nx\r\n");
    server.pass(5);
    client.ask(&server, "get a\r\nget a\r\nflush_all\r\n");
    let stat = |name: &str| value(&server, "stats", name);
    assert_eq!((stat("curr_items"), stat("bytes")), (0, 0));
    client.ask(&server, "get b\r\nget b\r\n");
    assert_eq!((stat("get_expired"), stat("get_flushed"), stat("get_misses")), (1, 1, 4));
    client.ask(&server, "stats reset\r\n");
    assert_eq!((stat("get_expired"), stat("get_flushed"), stat("reclaimed")), (0, 0, 0));
}

#[test]
fn a_memory_limit_that_was_changed_is_shown() {
    let server = Server::ram();
    let mut client = Client::new();
    let mut limit = |mib: u32| client.say(&server, format!("cache_memlimit {mib}\r\n"));
    let failed = "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n";
    assert_eq!(limit(65), failed, "the memory was set aside at start");
    assert_eq!(value(&server, "stats", "limit_maxbytes"), 64 << 20);
    assert_eq!(limit(16), "OK\r\n");
    for (command, name) in
        [("stats", "limit_maxbytes"), ("stats settings", "maxbytes"), ("stats larder", "memory_limit_bytes")]
    {
        assert_eq!(value(&server, command, name), 16 << 20, "{command}");
    }
    assert_eq!(limit(64), "OK\r\n");
    assert_eq!(value(&server, "stats", "limit_maxbytes"), 64 << 20);
}

#[test]
fn both_tiers_items_are_current_items() {
    let server = Server::ssd();
    let mut client = Client::new();
    for number in 0..10 {
        client.ask(&server, format!("set k{number} 0 0 1\r\nx\r\n"));
    }
    server.push_out();
    client.ask(&server, "set k10 0 0 1\r\nx\r\n");
    assert_eq!(value(&server, "stats", "curr_items"), 11);
    assert_eq!(
        (value(&server, "stats larder", "ram_items"), value(&server, "stats larder", "ssd_items")),
        (1, 10)
    );
    assert_eq!(
        (value(&server, "stats items", "items:1:number"), value(&server, "stats items", "items:2:number")),
        (1, 10)
    );
}

#[test]
fn a_prefix_of_a_subcommand_is_no_subcommand() {
    let server = Server::ram();
    let mut client = Client::new();
    for request in ["stats r\r\n", "stats foo\r\n", "stats noreply\r\n"] {
        assert_eq!(client.say(&server, request), "ERROR\r\n", "{request:?}");
    }
}

#[test]
fn sizes_are_counted_in_both_tiers_while_that_is_turned_on() {
    for server in Server::both() {
        let mut client = Client::new();
        for (number, bytes) in [(0, 0), (1, 0), (2, 100), (3, 1000), (4, 200_000)] {
            client.ask(&server, support::set(&format!("k{number}"), &vec![b'x'; bytes]));
        }
        server.push_out();
        client.ask(&server, "get k3\r\nget k3\r\n");
        let disabled = "STAT sizes_status disabled\r\n";
        assert_eq!(client.say(&server, "stats sizes\r\n"), format!("{disabled}END\r\n"));
        assert_eq!(client.say(&server, "stats sizes_enable\r\n"), "STAT sizes_status enabled\r\n");
        let sizes = "STAT 64 2\r\nSTAT 160 1\r\nSTAT 1056 1\r\nSTAT 200064 1\r\nEND\r\n";
        assert_eq!(client.say(&server, "stats sizes\r\n"), sizes);
        assert_eq!(client.say(&server, "stats sizes_disable\r\n"), disabled);
        assert_eq!(client.say(&server, "stats sizes\r\n"), format!("{disabled}END\r\n"));
    }
    let server = Server::start(&["-o", "track_sizes"], 0);
    assert_eq!(Client::new().say(&server, "stats sizes\r\n"), "END\r\n");
}

#[test]
fn sizes_are_counted_for_one_client_at_a_time() {
    let server = Server::start(&["-o", "track_sizes"], 8);
    let mut first = Client::new();
    first.ask(&server, support::set("k", b"x"));
    server.push_out();
    first.send(&server, b"stats sizes\r\n");
    assert!(!first.owed.is_empty(), "it waits for the SSD");
    let busy = "BUSY currently processing crawler request\r\n";
    assert_eq!(Client::new().say(&server, "stats sizes\r\n"), busy);
    assert_eq!(first.say(&server, ""), "STAT 64 1\r\nEND\r\n");
    assert_eq!(Client::new().say(&server, "stats sizes\r\n"), "STAT 64 1\r\nEND\r\n");
}

#[test]
fn without_workers_no_connections_are_listed() {
    assert_eq!(Client::new().say(&Server::ram(), "stats conns\r\nstats conns x\r\n"), "END\r\nEND\r\n");
}
