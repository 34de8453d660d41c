//! memcached's options and `-o` words, each honoured, ignored or refused as users of memcached have to expect.

use super::*;

/// What becomes of an option or a word.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Honoured,
    Ignored,
    Refused,
}

use Fate::{Honoured, Ignored, Refused};

/// Each option of memcached 1.6.45: its letter, its long name, a value, and what becomes of it.
const OPTIONS_OF_MEMCACHED: &[(char, &str, Option<&str>, Fate)] = &[
    ('p', "port", Some("11311"), Honoured),
    ('U', "udp-port", Some("0"), Honoured),
    ('s', "unix-socket", Some("/tmp/s"), Honoured),
    ('a', "unix-mask", Some("0750"), Honoured),
    ('A', "enable-shutdown", None, Honoured),
    ('l', "listen", Some("127.0.0.1"), Honoured),
    ('d', "daemon", None, Honoured),
    ('r', "enable-coredumps", None, Ignored),
    ('u', "user", Some("11211"), Honoured),
    ('m', "memory-limit", Some("128"), Honoured),
    ('M', "disable-evictions", None, Honoured),
    ('c', "conn-limit", Some("100"), Honoured),
    ('k', "lock-memory", None, Honoured),
    ('v', "verbose", None, Honoured),
    ('P', "pidfile", Some("/tmp/p"), Honoured),
    ('f', "slab-growth-factor", Some("1.5"), Ignored),
    ('n', "slab-min-size", Some("64"), Ignored),
    ('L', "enable-largepages", None, Ignored),
    ('D', "prefix-delimiter", Some("/"), Honoured),
    ('t', "threads", Some("2"), Honoured),
    ('R', "max-reqs-per-event", Some("5"), Honoured),
    ('C', "disable-cas", None, Honoured),
    ('b', "listen-backlog", Some("64"), Honoured),
    ('B', "protocol", Some("ascii"), Honoured),
    ('I', "max-item-size", Some("2m"), Honoured),
    ('S', "enable-sasl", None, Refused),
    ('F', "disable-flush-all", None, Honoured),
    ('X', "disable-dumping", None, Honoured),
    ('W', "disable-watch", None, Honoured),
    ('Y', "auth-file", Some("/tmp/y"), Honoured),
    ('e', "memory-file", Some("/dev/shm/e"), Honoured),
    ('Z', "enable-ssl", None, Refused),
    ('o', "extended", Some("modern"), Honoured),
    ('N', "napi_ids", Some("1"), Ignored),
];

/// Each `-o` word of memcached 1.6.45, with a value where it takes one.
const WORDS_OF_MEMCACHED: &[(&str, Fate)] = &[
    ("maxconns_fast", Honoured),
    ("no_maxconns_fast", Honoured),
    ("hashpower=20", Ignored),
    ("no_hashexpand", Ignored),
    ("slab_reassign", Ignored),
    ("no_slab_reassign", Ignored),
    ("slab_automove", Ignored),
    ("slab_automove=2", Ignored),
    ("no_slab_automove", Ignored),
    ("slab_automove_ratio=0.8", Ignored),
    ("slab_automove_window=30", Ignored),
    ("slab_automove_freeratio=0.01", Ignored),
    ("tail_repair_time=0", Ignored),
    ("hash_algorithm=xxh3", Ignored),
    ("lru_crawler", Honoured),
    ("no_lru_crawler", Honoured),
    ("lru_crawler_sleep=100", Ignored),
    ("lru_crawler_tocrawl=5", Ignored),
    ("lru_maintainer", Honoured),
    ("no_lru_maintainer", Honoured),
    ("hot_lru_pct=20", Ignored),
    ("warm_lru_pct=40", Ignored),
    ("hot_max_factor=0.2", Ignored),
    ("warm_max_factor=2.0", Ignored),
    ("temporary_ttl=61", Ignored),
    ("idle_timeout=30", Honoured),
    ("watcher_logbuf_size=256", Honoured),
    ("worker_logbuf_size=64", Ignored),
    ("slab_sizes=100-200", Ignored),
    ("slab_chunk_max=512", Ignored),
    ("no_chunked_items", Ignored),
    ("track_sizes", Honoured),
    ("inline_ascii_resp", Ignored),
    ("no_inline_ascii_resp", Ignored),
    ("modern", Ignored),
    ("no_modern", Ignored),
    ("drop_privileges", Ignored),
    ("no_drop_privileges", Ignored),
    ("relaxed_privileges", Ignored),
    ("resp_obj_mem_limit=16", Honoured),
    ("read_buf_mem_limit=16", Honoured),
    ("sock_cookie_id=7", Ignored),
    ("ssl_chain_cert=/c", Honoured),
    ("ssl_key=/k", Honoured),
    ("ssl_verify_mode=0", Honoured),
    ("ssl_keyformat=PEM", Honoured),
    ("ssl_ciphers=ECDHE-RSA-AES256-GCM-SHA384", Honoured),
    ("ssl_ca_cert=/a", Honoured),
    ("ssl_wbuf_size=16", Ignored),
    ("ssl_session_cache", Honoured),
    ("ssl_kernel_tls", Ignored),
    ("ssl_min_version=2", Honoured),
    ("ext_path=/d/f:9G", Honoured),
    ("ext_path=/d/g:9G:coldcompact", Honoured),
    ("ext_page_size=64", Ignored),
    ("ext_wbuf_size=4", Ignored),
    ("ext_threads=1", Ignored),
    ("ext_io_depth=1", Ignored),
    ("ext_item_size=512", Ignored),
    ("ext_item_age=60", Ignored),
    ("ext_low_ttl=60", Ignored),
    ("ext_recache_rate=2000", Ignored),
    ("ext_compact_under=4", Ignored),
    ("ext_drop_under=4", Ignored),
    ("ext_max_sleep=1000", Ignored),
    ("ext_max_frag=0.8", Ignored),
    ("ext_drop_unread", Ignored),
    ("proxy_config=/p.lua", Refused),
    ("proxy_arg=x", Refused),
    ("proxy_uring", Refused),
    ("proxy_memprofile", Refused),
];

fn fate(args: &[&str]) -> Fate {
    let name = ["memcached"].iter().chain(args).copied();
    match Config::from_args(name) {
        Err(_) => Refused,
        Ok(config) if config.ignored.is_empty() => Honoured,
        Ok(_) => Ignored,
    }
}

#[test]
fn every_option_of_memcached_is_honoured_ignored_or_refused_in_each_of_its_forms() {
    for (letter, long, value, expected) in OPTIONS_OF_MEMCACHED {
        // What an option is given with must not be ignored itself.
        let expected = if *letter == 'o' { &Ignored } else { expected };
        let (short, long) = (format!("-{letter}"), format!("--{long}"));
        match value {
            None => {
                assert_eq!(fate(&[&short]), *expected, "{short}");
                assert_eq!(fate(&[&long]), *expected, "{long}");
            }
            Some(value) => {
                for one in [format!("{short}{value}"), format!("{short} {value}"), format!("{long}={value}")]
                {
                    assert_eq!(fate(&[&one]), *expected, "{one}");
                }
                assert_eq!(fate(&[&short, value]), *expected, "{short}");
                assert_eq!(fate(&[&long, value]), *expected, "{long}");
            }
        }
    }
    for page in ["-h", "--help", "-V", "--version", "-i", "--license"] {
        assert!(!printed(&[page], &[]).is_empty(), "{page}");
    }
}

#[test]
fn every_word_of_memcached_is_honoured_ignored_or_refused() {
    for (word, expected) in WORDS_OF_MEMCACHED {
        assert_eq!(fate(&["-o", word]), *expected, "-o {word}");
        assert_eq!(fate(&[&format!("--extended={word}")]), *expected, "--extended={word}");
    }
    let all: Vec<&str> =
        WORDS_OF_MEMCACHED.iter().filter(|(_, fate)| *fate != Refused).map(|(word, _)| *word).collect();
    assert_eq!(fate(&["-o", &all.join(",")]), Ignored, "all of them at once");
}

#[test]
fn the_help_pages_name_every_option_and_every_honoured_word_of_memcached() {
    let (page, ext) = (help::page("").expect("a page"), help::page("ext").expect("a page"));
    for (letter, long, _, fate) in OPTIONS_OF_MEMCACHED {
        assert!(page.contains(&format!("-{letter}")), "-{letter}");
        assert!(*fate == Ignored || page.contains(&format!("--{long}")), "--{long}");
    }
    for (word, fate) in WORDS_OF_MEMCACHED {
        let name = word.split('=').next().expect("a name").trim_start_matches("no_");
        match fate {
            Honoured => assert!(page.contains(name) || ext.contains(name), "{name}"),
            Ignored if name.starts_with("ext_") => assert!(ext.contains(name), "{name}"),
            Ignored | Refused => {}
        }
    }
}

#[test]
fn memcacheds_limits_of_buffers_lower_that_of_all_of_them() {
    let limit = |args: &[&str]| config(args).conn_memory_bytes >> 20;
    assert_eq!(limit(&[]), 64);
    assert_eq!(limit(&["-o", "resp_obj_mem_limit=16"]), 16);
    assert_eq!(limit(&["-o", "read_buf_mem_limit=8,resp_obj_mem_limit=16"]), 8);
    assert_eq!(limit(&["-o", "read_buf_mem_limit=0,resp_obj_mem_limit=100"]), 64);
    assert_eq!(limit(&["--conn-memory", "32m", "-o", "read_buf_mem_limit=100"]), 32);
}
