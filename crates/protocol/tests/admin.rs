//! The administrative commands: what they parse to, and what their grammar refuses.

mod support;

use larder_protocol::{Admin, Automove, Clock, Crawler, Lru, Request, ShutdownMode, Slabs, WatchClasses};
use support::{request, said};

#[track_caller]
fn admin(line: &str) -> String {
    let input = format!("{line}\r\n");
    match request(input.as_bytes()) {
        Request::Admin(admin) => match admin {
            Admin::MemoryLimit(megabytes, _) => format!("memory {megabytes}"),
            Admin::Shutdown(mode, _) => format!("{mode:?}"),
            Admin::Lru(lru, _) => format!("{lru:?}"),
            Admin::Slabs(slabs, _) => format!("{slabs:?}"),
            Admin::Crawler(crawler, _) => format!("{crawler:?}"),
            Admin::Watch(classes, _) => format!("{classes:?}"),
            Admin::Extstore(option, value, _) => {
                format!("{} = {}", option.escape_ascii(), value.escape_ascii())
            }
            Admin::RefreshCerts(_) => "refresh".into(),
            Admin::Cluster(_) => "cluster".into(),
            Admin::DebugTime(clock, _) => format!("{clock:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(line: &str, answer: &str) {
    let (said, closes) = said(format!("{line}\r\n").as_bytes());
    assert_eq!(String::from_utf8_lossy(&said), format!("{answer}\r\n"), "{line}");
    assert!(!closes);
}

#[test]
fn memory_limit() {
    assert_eq!(admin("cache_memlimit 8"), "memory 8");
    assert_eq!(admin("cache_memlimit 1000000000 noreply"), "memory 1000000000");
    refused("cache_memlimit", "ERROR");
    refused("cache_memlimit abc", "ERROR");
    refused("cache_memlimit 7", "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m");
    refused("cache_memlimit 1000000001", "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes");
    assert_eq!(said(b"cache_memlimit 7 noreply\r\n").0, b"");
}

#[test]
fn shutdown() {
    assert_eq!(admin("shutdown"), format!("{:?}", ShutdownMode::Now));
    assert_eq!(admin("shutdown graceful "), format!("{:?}", ShutdownMode::Graceful));
    assert_eq!(admin("shutdown now"), format!("{:?}", ShutdownMode::Invalid));
    assert_eq!(admin("shutdown graceful now"), format!("{:?}", ShutdownMode::Invalid));
}

#[test]
fn lru() {
    let tune = Lru::Tune { hot_percent: 10, warm_percent: 25, hot_factor: 0.1, warm_factor: 2.0 };
    assert_eq!(admin("lru tune 10 25 0.1 2.0"), format!("{tune:?}"));
    assert_eq!(admin("lru mode flat"), format!("{:?}", Lru::Mode { segmented: false }));
    assert_eq!(admin("lru mode segmented"), format!("{:?}", Lru::Mode { segmented: true }));
    assert_eq!(admin("lru temp_ttl 61"), format!("{:?}", Lru::TempTtl(Some(61))));
    assert_eq!(admin("lru temp_ttl -1"), format!("{:?}", Lru::TempTtl(None)));
    refused("lru tune 41 40 1 1", "ERROR hot and warm pcts must not exceed 80");
    refused("lru tune 4294967295 4294967295 1 1", "ERROR hot and warm pcts must not exceed 80");
    refused("lru tune 10 25 0 1", "ERROR hot/warm age factors must be greater than 0");
    for nonsense in ["lru", "lru foo", "lru tune 1 2 3", "lru tune 1 2 nan 1", "lru mode", "lru temp_ttl x"] {
        refused(nonsense, "ERROR");
    }
}

#[test]
fn slabs() {
    assert_eq!(admin("slabs reassign 1 2"), format!("{:?}", Slabs::Reassign { source: 1, destination: 2 }));
    assert_eq!(admin("slabs reassign -1 2"), format!("{:?}", Slabs::Reassign { source: -1, destination: 2 }));
    assert_eq!(admin("slabs automove 1"), format!("{:?}", Slabs::Automove(Automove::Level(1))));
    for tuning in ["ratio 0.8", "freeratio 0.01", "window 30"] {
        let line = format!("slabs automove {tuning}");
        assert_eq!(admin(&line), format!("{:?}", Slabs::Automove(Automove::Tuning)));
    }
    refused("slabs reassign x 2", "CLIENT_ERROR bad command line format");
    refused("slabs automove invalid", "CLIENT_ERROR bad command line format");
    for nonsense in ["slabs", "slabs foo", "slabs reassign 1", "slabs automove", "slabs automove 3"] {
        refused(nonsense, "ERROR");
    }
}

#[test]
fn crawler() {
    assert_eq!(admin("lru_crawler enable"), format!("{:?}", Crawler::Enable));
    assert_eq!(admin("lru_crawler disable"), format!("{:?}", Crawler::Disable));
    assert_eq!(admin("lru_crawler sleep 1000000"), format!("{:?}", Crawler::Sleep(1_000_000)));
    assert_eq!(admin("lru_crawler tocrawl 5"), format!("{:?}", Crawler::ToCrawl(5)));
    assert_eq!(admin("lru_crawler crawl 1,2"), format!("{:?}", Crawler::Crawl(b"1,2")));
    assert_eq!(admin("lru_crawler metadump all"), format!("{:?}", Crawler::Metadump(b"all")));
    assert_eq!(admin("lru_crawler mgdump hash"), format!("{:?}", Crawler::Mgdump(b"hash")));
    refused("lru_crawler sleep 1000001", "CLIENT_ERROR sleep must be one second or less");
    refused("lru_crawler sleep x", "CLIENT_ERROR bad command line format");
    refused("lru_crawler tocrawl -1", "CLIENT_ERROR bad command line format");
    for nonsense in ["lru_crawler", "lru_crawler foo", "lru_crawler metadump", "lru_crawler metadump all 1"] {
        refused(nonsense, "ERROR");
    }
}

#[test]
fn watch() {
    assert_eq!(admin("watch"), format!("{:?}", Some(WatchClasses::FETCHERS)));
    let Request::Admin(Admin::Watch(Some(classes), _)) = request(b"watch mutations evictions deletions\r\n")
    else {
        panic!("not a watch")
    };
    assert!(classes.contains(WatchClasses::MUTATIONS) && classes.contains(WatchClasses::DELETIONS));
    assert!(!classes.contains(WatchClasses::FETCHERS));
    assert_eq!(admin("watch fetchers foo"), "None");
    assert_eq!(admin("watch f"), "None", "no abbreviations");
}

#[test]
fn the_rest() {
    assert_eq!(admin("extstore item_age 5"), "item_age = 5");
    assert_eq!(admin("extstore free_memchunks 63 100"), "free_memchunks = 63 100");
    assert_eq!(admin("extstore max_frag 0.8"), "max_frag = 0.8");
    for nonsense in ["extstore", "extstore item_age", "extstore item_age x", "extstore free_memchunks 64 1"] {
        refused(nonsense, "ERROR");
    }
    assert_eq!(admin("refresh_certs"), "refresh");
    assert_eq!(admin("config get cluster"), "cluster");
    for line in ["config", "config get", "config get nodes", "config set cluster", "config get cluster 1"] {
        refused(line, "ERROR");
    }
    assert_eq!(admin("debugtime p"), format!("{:?}", Clock::Pause));
    assert_eq!(admin("debugtime r"), format!("{:?}", Clock::Resume));
    assert_eq!(admin("debugtime -30"), format!("{:?}", Clock::Shift(-30)));
    assert_eq!(admin("debugtime 30"), format!("{:?}", Clock::Shift(30)));
    refused("debugtime", "ERROR");
    refused("misbehave", "ERROR");
}
