//! The printed pages: help, `--print-config`, the example file.

use super::super::option::{Effect, Fallback, Kind};
use super::super::options::OPTIONS;
use super::*;

#[test]
fn the_help_page_is_what_memcacheds_harness_reads() {
    for args in [&["-h"], &["--help"]] {
        let page = printed(args, &[]);
        let mut lines = page.lines();
        assert_eq!(lines.next(), Some("memcached 1.6.45"));
        assert!(lines.next().is_some_and(|line| line.starts_with(&format!("larder {VERSION} "))));
        assert!(page.contains("unix-socket"));
        for word in ["ext_path", "proxy_config", "no_drop_privileges"] {
            assert!(!page.to_ascii_lowercase().contains(word), "{word}");
        }
    }
    assert!(printed(&["--help=ext"], &[]).contains("ext_path=PATH:SIZE"));
    assert_eq!(printed(&["-V"], &[]), format!("memcached 1.6.45\nlarder {VERSION}\n"));
    assert!(printed(&["-i"], &[]).contains("Apache"));
}

#[test]
fn pages_fit_a_terminal_of_80_columns() {
    let config = ["--print-config", "-o", "ext_path=/a/rather/long/path/to/the/file/of/the/ssd:9G", "-f1.2"];
    let pages: [&[&str]; 5] = [&["-h"], &["--help=ext"], &["-i"], &["--print-config=example"], &config];
    for args in pages {
        for line in printed(args, &[]).lines() {
            assert!(line.chars().count() <= 80, "{args:?}: {line}");
        }
    }
}

#[test]
fn every_option_with_an_effect_is_on_the_help_page() {
    let page = printed(&["-h"], &[]);
    for opt in OPTIONS.iter().filter(|opt| opt.effect == Effect::Honoured) {
        assert!(page.contains(&format!("--{}", opt.long)), "{}", opt.long);
    }
}

#[test]
fn print_config_shows_values_and_origins() {
    let page =
        printed(&["--print-config", "-m", "128", "-o", "idle_timeout=5", "-f2"], &[("LARDER_IO", "uring")]);
    let line = |name: &str| {
        let found = page.lines().find(|line| line.starts_with(name));
        found.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("memory-limit "), "memory-limit = 128 MiB (flag -m)");
    assert_eq!(line("io "), "io = uring (environment LARDER_IO)");
    assert_eq!(line("conn-limit "), "conn-limit = 1024 (default)");
    assert_eq!(line("ssd-write-wait "), "ssd-write-wait = 50 ms (default)");
    assert_eq!(line("index-memory "), "index-memory = automatic (default)");
    assert_eq!(line("idle_timeout "), "idle_timeout = 5 (flag -o idle_timeout)");
    assert_eq!(line("slab-growth-factor "), "slab-growth-factor = 2 (flag -f, no effect)");
    assert_eq!(line("ssd "), "ssd = /home/cook/.cache/larder/larder.ssd:1GiB (default)");
}

#[test]
fn each_line_of_the_example_can_be_used() {
    let example = printed(&["--print-config=example"], &[]);
    let defaults = config(&[]);
    let mut keys = 0;
    for line in
        example.lines().filter_map(|line| line.strip_prefix('#')).filter(|line| !line.starts_with([' ', '#']))
    {
        if line.is_empty() {
            continue;
        }
        keys += 1;
        let key = line.split(" = ").next().unwrap_or_default();
        let file = TempFile::new(&format!("line-{key}"), line);
        let mut got = config(&["--config", file.path()]);
        let opt = OPTIONS.iter().find(|opt| opt.long == key).expect(key);
        assert!(matches!(got.origin(opt.id), Origin::File(_)) || opt.long == "extended", "{line}");
        if matches!(opt.default, Fallback::Is(_)) && opt.kind != Kind::Char {
            got.raw = defaults.raw.clone();
            assert_eq!(got, defaults, "{line}");
        }
    }
    let expected = OPTIONS.iter().filter(|opt| opt.in_file() && opt.effect == Effect::Honoured).count();
    assert_eq!(keys, expected);
}

#[test]
fn the_example_file_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/larder.example.toml");
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        stored == printed(&["--print-config=example"], &[]),
        "docs/larder.example.toml is not current; write it with cargo run -- --print-config=example"
    );
}
