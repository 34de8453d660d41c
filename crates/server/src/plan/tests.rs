//! Plans as they are asked for: words in, figures and command lines out.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::*;
use crate::config::{Command, Config, Surroundings, load};

fn request(words: &str, options: &[&str]) -> PlanRequest {
    let args = [&["larder", "--plan", words], options].concat();
    let args = args.into_iter().map(OsString::from).collect();
    match load(&Surroundings { args, variables: BTreeMap::new(), cores: 1 }) {
        Ok(Command::Plan(request)) => request,
        other => panic!("{words}: {other:?}"),
    }
}

fn plan(words: &str, options: &[&str]) -> figures::Plan {
    let request = request(words, &[&["--ssd", "/ssd"], options].concat());
    let wanted = words::read(&request.words).unwrap_or_else(|problem| panic!("{words}: {problem}"));
    figures::plan(&wanted, &request.config).unwrap_or_else(|problem| panic!("{words}: {problem}"))
}

fn problem(words: &str) -> String {
    answer(&request(words, &["--ssd", "/ssd"]), 80).expect_err(words)
}

/// A kind's name, items, size, TTL and sets a second.
type Read = (String, u64, u64, Option<f64>, Option<f64>);

fn kinds(words: &str) -> Vec<Read> {
    let wanted = words::read(words).unwrap_or_else(|problem| panic!("{words}: {problem}"));
    let kinds = wanted.kinds.into_iter();
    kinds.map(|kind| (kind.name, kind.items, kind.value_bytes, kind.ttl_s, kind.sets_per_s)).collect()
}

#[test]
fn a_sentence_is_read_as_it_is_meant() {
    let day = Some(86_400.0);
    let sessions = ("sessions".to_string(), 125_000_000, 2_000, day, Some(125_000_000.0 / 86_400.0));
    let pages = ("pages".to_string(), 833_333, 300_000, day, Some(833_333.0 / 86_400.0));
    for words in [
        "500 GB of 2 KB sessions and 300 KB pages, TTL 24 h",
        "500GB sessions 2KB ttl=24h, pages 300KB ttl=1d",
        "250GB sessions 2KB; 250GB pages 300KB; ttl = 1440 min",
        "ttl=24h, 2KB sessions 250GB, 300KB pages 250GB.",
        "125m sessions items 2KB, 833333 items pages 300KB, ttl=86400s",
    ] {
        let words = words.replace("125m sessions items", "125m items sessions");
        assert_eq!(kinds(&words), [sessions.clone(), pages.clone()], "{words}");
    }
    let one = kinds("1GiB 1KiB sets=2k/min key=8b");
    assert_eq!(one, [("items".to_string(), 1 << 20, 1024, None, Some(2_000.0 / 60.0))]);
    let shared = kinds("1m items a1 1KB, 3m items b1 1KB, sets=400/s");
    assert_eq!((shared[0].4, shared[1].4), (Some(100.0), Some(300.0)));
}

#[test]
fn words_that_are_not_understood_are_refused_by_name() {
    for (words, named) in [
        (",", "names no items"),
        ("ttl=24h", "names no items"),
        ("1GB 1KB, sessions", "\"sessions\" has no size"),
        ("2KB sessions", "sessions has no total"),
        ("500GB sessions big 2KB", "\"big\" is not understood behind \"sessions\""),
        ("500GB sessions 2KB tll=24h", "\"tll=\" is not understood"),
        ("500GB sessions 2KB 3KB", "three sizes"),
        ("500 sessions 2KB", "\"500\" is not a size"),
        ("500GB sessions 2KB ttl=24", "\"24\" is not a time to live"),
        ("500GB sessions 2KB ttl", "\"ttl\" has no value; write ttl=24h"),
        ("500GB sessions 2KB ttl=0.5s", "ttl 0.5s is out of bounds"),
        ("500GB sessions 2KB ttl=1000y", "out of bounds"),
        ("500GB sessions 2KB ttl=1h ttl=2h", "two ttl="),
        ("500GB sessions 2KB sets=fast", "\"fast\" is not a rate"),
        ("500GB sessions 2KB key=300B", "too long"),
        ("500GB sessions 2KB hot=150%", "\"150%\" is not a part"),
        ("500GB sessions 0KB", "\"0kb\" is out of bounds"),
        ("-5GB sessions 2KB", "\"-5gb\" is not a size"),
        ("9999999999PB sessions 2KB", "out of bounds"),
        ("5m items 2KB, pages 3KB", "counted in items"),
        ("3 items", "need one size"),
        ("500GB sessions $(reboot)", "\"$(reboot)\" is not understood"),
        ("500GB films 2GB", "films are too large"),
        ("1000000 items 1KB ttl=1h sets=10/s", "keep 36000 items at most, not 1000000"),
        ("100TB counters 1B", "more than 64 servers; store small items together"),
        ("100TB 32MiB", "values above 8 MiB"),
    ] {
        let problem = problem(words);
        assert!(problem.contains(named) && problem.starts_with("--plan: "), "{words}: {problem}");
    }
    let many = vec!["1GB 1KB"; 33].join(", ");
    assert!(problem(&many).contains("33 kinds"));
}

#[test]
fn other_options_are_refused_beside_a_plan_and_json_without_one() {
    let refused = |args: &[&str]| {
        let args = [&["larder"], args].concat().into_iter().map(OsString::from).collect();
        let loaded = load(&Surroundings { args, variables: BTreeMap::new(), cores: 1 });
        loaded.expect_err("it is refused").to_string()
    };
    assert!(refused(&["--plan", "1GB 1KB", "-m", "64"]).contains("--memory-limit out"));
    assert!(refused(&["--plan", "1GB 1KB", "-o", "modern"]).contains("-o modern out"));
    assert!(refused(&["--json"]).contains("give --plan WORDS too"));
}

/// The sentences whose plans are looked at, from the least to the most.
const MAGNITUDES: [&str; 13] = [
    "1 item 1B",
    "1MB 1B",
    "1MB 1MiB items",
    "100MB 1B ttl=1s",
    "100GB 1MiB ttl=1y",
    "1TB 32MiB sets=10/s",
    "100TB pages 300KB ttl=24h",
    "10TB sessions 2KB ttl=1h",
    "40GB sessions 2KB sets=100k/s",
    "40GB sessions 2KB ttl=1h sets=100k/s, 40GB pages 300KB ttl=1y",
    "60TB pages 1MB ttl=1w",
    "1TB sessions 2KB ttl=1s",
    "5m items 30KB key=250B hot=0%",
];

#[test]
fn every_plan_is_a_command_line_that_is_understood() {
    for words in MAGNITUDES {
        let plan = plan(words, &["--ssd-endurance", "600T"]);
        let parsed = page::json(&plan);
        let list =
            parsed.split("\"command\":[").nth(1).and_then(|rest| rest.split(']').next()).expect("a list");
        let args: Vec<String> = list.split(',').map(|word| word.trim_matches('"').to_string()).collect();
        let config = Config::from_args(args).unwrap_or_else(|error| panic!("{words}: {error}"));
        assert_eq!(config.memory_limit_bytes, plan.memory_bytes, "{words}");
        let sizes = config.ssd.iter().filter_map(|ssd| ssd.size_bytes).sum::<u64>();
        assert_eq!(sizes, plan.ssd_bytes, "{words}");
        assert!(plan.index_bytes + plan.ram_tier_bytes <= plan.memory_bytes, "{words}: {plan:?}");
        assert!(plan.items as f64 * 8.0 <= plan.index_bytes as f64, "{words}: {plan:?}");
        assert!(plan.ssd_live_percent <= 70.0 && plan.write_amplification >= 1.0, "{words}: {plan:?}");
        assert!(plan.servers < 64, "{words}: {plan:?}");
    }
}

#[test]
fn pages_fit_eighty_columns_and_forty() {
    for words in MAGNITUDES {
        for columns in [80, 40] {
            let page =
                answer(&request(words, &["--ssd", "/ssd", "--ssd-endurance", "600T"]), columns).expect(words);
            assert!(
                page.lines().all(|line| line.chars().count() <= columns && !line.ends_with(' ')),
                "{page}"
            );
            assert!(page.contains("\nlarder -m "), "{page}");
        }
    }
}

#[test]
fn what_an_ssd_does_not_take_stays_in_ram() {
    let short = plan("1GB 2KB ttl=1s", &[]);
    assert!(short.ssd_bytes == 0 && short.ram_tier_bytes > 1_000_000_000, "{short:?}");
    let large = plan("1GB 32MiB", &[]);
    assert!(large.ssd_bytes == 0 && large.ram_tier_bytes > 1_000_000_000, "{large:?}");
    let few = plan("1MB 1KB ttl=1h", &[]);
    assert_eq!((few.ssd_bytes, few.memory_bytes), (0, 64 << 20), "{few:?}");
    assert!(plan("1GB 1MiB ttl=1h", &[]).ssd_bytes > 1_400_000_000);
}

#[test]
fn what_is_overwritten_needs_more_room_than_what_expires_as_it_was_written() {
    let expiring = plan("100GB 2KB ttl=1d", &[]);
    let overwritten = plan("100GB 2KB ttl=1d sets=10k/s", &[]);
    assert!(!expiring.is_overwritten && overwritten.is_overwritten);
    assert!((69.0..=70.0).contains(&expiring.ssd_live_percent), "{expiring:?}");
    assert!((49.0..=50.0).contains(&overwritten.ssd_live_percent), "{overwritten:?}");
    assert!(expiring.write_amplification < 1.05 && overwritten.write_amplification > 1.19);
    // 50 million records of 2,062 bytes a day, and 17 times as many with a fifth more.
    assert!((103e9..106e9).contains(&expiring.written_bytes_a_day.expect("known")), "{expiring:?}");
    assert!((2.1e12..2.2e12).contains(&overwritten.written_bytes_a_day.expect("known")), "{overwritten:?}");
    assert!(plan("100GB 2KB", &[]).written_bytes_a_day.is_none());
    assert!(plan("50GB a1 2KB ttl=1d, 50GB b1 2KB ttl=7d", &[]).is_overwritten, "they share segments");
}

#[test]
fn wear_counts_all_paths() {
    let one = plan("100GB 2KB ttl=1d", &["--ssd-endurance", "600T"]);
    let two = plan("100GB 2KB ttl=1d", &["--ssd", "/other:1g", "--ssd-endurance", "600T"]);
    let (one_days, two_days) = (one.wear_days.expect("known"), two.wear_days.expect("known"));
    assert!((5_600.0..5_900.0).contains(&one_days), "{one_days}");
    assert!((two_days / one_days - 2.0).abs() < 0.01 && two.config.ssd.len() == 2, "{two:?}");
}
