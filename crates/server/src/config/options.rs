//! The table of options. The parser, the help pages, the environment, the file, the example file and
//! `--print-config` all use it. Nothing else describes an option, except the rules for its value (`resolve.rs`).

use super::option::{Effect, Fallback, Group, Id, Kind, Opt};

const fn opt(
    id: Id,
    short: Option<char>,
    long: &'static str,
    kind: Kind,
    default: Fallback,
    group: Group,
    help: &'static str,
) -> Opt {
    Opt { id, short, long, kind, default, group, effect: Effect::Honoured, help }
}

const fn ignored(short: char, id: Id, long: &'static str, kind: Kind, default: Fallback) -> Opt {
    let effect = Effect::Ignored;
    Opt { id, short: Some(short), long, kind, default, group: Group::Process, effect, help: "" }
}

const NO: Fallback = Fallback::Is("no");

const fn unset(example: &'static str) -> Fallback {
    Fallback::Unset { example }
}

const fn number(min: i64, max: i64) -> Kind {
    Kind::Number { min, max }
}

const INT_MAX: i64 = i32::MAX as i64;

/// Every option, in the order of the help page.
#[rustfmt::skip]
pub const OPTIONS: &[Opt] = {
    use Group::{Commands, Larder, Memory, Network, Process};
    use Kind::{Bytes, Char, Choice, Count, Decimal, Flag, List, Megabytes, Millis, Octal, Rate, Text};
    use Fallback::{Computed, Is};
    &[
    opt(Id::Ssd, None, "ssd", List("PATH[:SIZE]"),
        Computed {
            how: "1 GiB, or 16 times a smaller memory limit, in ~/.cache/larder/larder.ssd; \
                  none under the name memcached",
            example: "/var/lib/larder/larder.ssd:100g",
        }, Larder,
        "keep items that do not fit in RAM in this file or block device; repeat it to stripe over several, \
         or give none; SIZE may be left out for a device or an existing file"),
    opt(Id::SsdShare, None, "ssd-share", Text("I/N"), Is("1/1"), Larder,
        "use the I-th of N equal parts of each SSD path, so that N processes can share it"),
    opt(Id::SsdFormat, None, "ssd-format", Flag, NO, Larder,
        "start with an empty SSD tier even if it holds other data, which is lost"),
    opt(Id::SsdWriteLimit, None, "ssd-write-limit", Rate, unset("100m"), Larder,
        "write at most this many bytes a second to the SSD, to spare it"),
    opt(Id::SsdEndurance, None, "ssd-endurance", Text("SIZE"), unset("600T"), Larder,
        "the bytes that each SSD may take over its life, from its data sheet, so T is 10^12: statistics and \
         larder doctor then tell how many days that lasts"),
    opt(Id::SsdWriteWait, None, "ssd-write-wait", Millis(60_000), Is("50"), Larder,
        "let a set wait at most this many milliseconds for the SSD before it drops older items instead"),
    opt(Id::SsdAdmission, None, "ssd-admission", Choice(&["all", "returning", "auto"]), Is("all"), Larder,
        "which items that leave RAM go to the SSD: all; returning: once it is full, only those that were \
         read or stored again, as a write limit implies; auto: by shadows of both, the one that misses less"),
    opt(Id::SsdLivePercent, None, "ssd-live-percent", number(0, 90), Is("70"), Larder,
        "keep every live item on the SSD while these take at most this many percent of it, by moving them \
         when their segment is reused; beyond that, and always with 0, the oldest items go"),
    opt(Id::IndexMemory, None, "index-memory", Megabytes,
        Computed { how: "it follows the items; with -M, from the SSD's size and item-size", example: "32m" },
        Larder,
        "RAM for the index at the start, out of the memory limit, a hint: from there it grows and shrinks \
         with the number of items, but with -M"),
    opt(Id::ShadowMemory, None, "shadow-memory", Megabytes,
        Computed { how: "a hundredth of the memory limit, 16m at most; none below 25m", example: "4m" },
        Larder,
        "RAM to estimate what caches of other sizes would miss, out of the memory limit: more gives surer \
         estimates; 0 estimates nothing"),
    opt(Id::ItemSize, None, "item-size", Bytes, Is("512"), Larder,
        "the size of a typical item, a hint: a start tells how many of these fit; it sizes the tables of \
         remembered keys and, where the index keeps its size, the index"),
    opt(Id::ConnMemory, None, "conn-memory", Megabytes, Is("64m"), Larder,
        "RAM for the buffers of all connections together, in addition to the memory limit"),
    opt(Id::LeaseMemory, None, "lease-memory", Megabytes, Is("16m"), Larder,
        "RAM to remember which keys the caches of clients hold and want to be told the changes of, in \
         addition to the memory limit; taken only while a client subscribes; 0 refuses subscriptions"),
    opt(Id::Io, None, "io", Choice(&["auto", "uring", "threads"]), Is("auto"), Larder,
        "how to reach the SSD: uring, threads (a pool of them), or auto, whichever works here"),
    opt(Id::Http, None, "http", Text("ADDRESS"), unset("127.0.0.1:9150"), Larder,
        "serve metrics and figures to operators by HTTP at this HOST[:PORT], or at unix:PATH with the mask \
         of -a; another address than loopback needs a token, or --http-open"),
    opt(Id::HttpTokenFile, None, "http-token-file", Text("FILE"), unset("/etc/larder/http-token"), Larder,
        "answer only HTTP requests with the token in this file (Authorization: Bearer TOKEN); /healthz and \
         /readyz need none; the file is read at each request"),
    opt(Id::HttpOpen, None, "http-open", Flag, NO, Larder,
        "let every host that reaches the address of --http read it without a token"),
    opt(Id::HttpHost, None, "http-host", List("NAME"), unset("cache.example.com"), Larder,
        "a name of this host that HTTP requests may be for; repeat it for several; addresses and localhost \
         always are"),
    opt(Id::Config, None, "config", Text("FILE"), unset(""), Larder,
        "read options from a TOML file whose keys are the long names"),
    opt(Id::PrintConfig, None, "print-config", Flag, NO, Larder,
        "print every value and where it comes from, then exit; --print-config=example prints a \
         commented file for --config"),
    opt(Id::Plan, None, "plan", Text("WORDS"), unset("500GB of 2KB sessions, ttl=24h"), Larder,
        "print what RAM and SSD these items take, what is written and the command line for it, then exit: \
         --plan '500GB of 2KB sessions, 5m pages 30KB, ttl=24h'; --ssd and --ssd-endurance go with it"),
    opt(Id::Json, None, "json", Flag, NO, Larder,
        "print the plan as JSON"),

    opt(Id::Port, Some('p'), "port", number(-1, 65_535), Is("11211"), Network,
        "TCP port; -1 picks a free one, 0 switches TCP off"),
    opt(Id::UdpPort, Some('U'), "udp-port", number(0, 65_535), Is("0"), Network,
        "accepted, but UDP is never served"),
    opt(Id::UnixSocket, Some('s'), "unix-socket", Text("FILE"), unset("/run/larder/larder.sock"), Network,
        "listen on a Unix socket instead of TCP"),
    opt(Id::UnixMask, Some('a'), "unix-mask", Octal, Is("700"), Network,
        "access mask of the Unix socket, octal"),
    opt(Id::Listen, Some('l'), "listen", List("HOST[:PORT]"),
        Computed { how: "127.0.0.1; every interface under the name memcached", example: "127.0.0.1" },
        Network,
        "addresses to listen on, separated by commas; * is every interface, [::1]:11211 an IPv6 address \
         with a port; notls:, btls: or mtls: in front is without TLS, with it, or with clients' \
         certificates too, and proto[ascii]: or proto[binary]: is a protocol of its own"),
    opt(Id::InsecureListen, None, "insecure-listen", Flag, NO, Network,
        "listen on other addresses than loopback without authentication or TLS: every host that reaches \
         the port reads and writes all items"),
    opt(Id::ClusterNodes, None, "cluster-nodes", Text("FILE"), unset("/etc/larder/nodes"), Network,
        "tell clients with auto-discovery, which send config get cluster, that the servers in this file \
         share the keys: HOST:PORT or HOST:PORT ADDRESS a line; SIGHUP reads it again"),
    opt(Id::ClusterSrv, None, "cluster-srv", Text("NAME"), unset("_memcache._tcp.larder.example"), Network,
        "tell clients with auto-discovery that the servers in this name's SRV records share the keys; they \
         are looked up again after their time to live, 2 to 300 seconds, and on SIGHUP"),
    opt(Id::ClusterDns, None, "cluster-dns", Text("ADDRESS[:PORT]"), unset("127.0.0.1:8600"), Network,
        "the DNS server that --cluster-srv asks, instead of those in /etc/resolv.conf"),
    opt(Id::ConnLimit, Some('c'), "conn-limit", number(1, INT_MAX), Is("1024"), Network,
        "most simultaneous connections; the limit on open files is raised to what they need, where that is \
         allowed"),
    opt(Id::ListenBacklog, Some('b'), "listen-backlog", number(1, INT_MAX), Is("1024"), Network,
        "length of the kernel's queue of connections to be accepted"),
    opt(Id::Protocol, Some('B'), "protocol", Choice(&["auto", "ascii", "binary"]), Is("auto"), Network,
        "protocol of all connections: ascii, binary, or auto to tell by the first byte"),
    opt(Id::AuthFile, Some('Y'), "auth-file", Text("FILE"), unset("/etc/larder/users"), Network,
        "let in only the users in this file, with lines of the form user:password behind sections such as \
         [read] or [write shop%3A]; SIGHUP reads it again; binary connections need -S too"),
    opt(Id::EnableSasl, Some('S'), "enable-sasl", Flag, NO, Network,
        "let the users of -Y in over the binary protocol too, by SASL PLAIN"),
    opt(Id::EnableSsl, Some('Z'), "enable-ssl", Flag, NO, Network,
        "speak TLS with every TCP connection, with the certificate of -o ssl_chain_cert; SIGHUP and the \
         command refresh_certs read it again"),
    opt(Id::Threads, Some('t'), "threads", number(1, 1024),
        Computed { how: "the cores this process may use", example: "4" }, Network,
        "event-loop threads"),
    opt(Id::MaxReqsPerEvent, Some('R'), "max-reqs-per-event", number(1, INT_MAX), Is("20"), Network,
        "requests served for one connection before the others get their turn"),

    opt(Id::MemoryLimit, Some('m'), "memory-limit", Megabytes, Is("64m"), Memory,
        "RAM for everything the store keeps: index, write buffers and the RAM tier; a number without a \
         suffix counts megabytes"),
    opt(Id::MaxItemSize, Some('I'), "max-item-size", Bytes,
        Computed { how: "1m, or half a smaller memory limit", example: "1m" }, Memory,
        "largest item, from 1k to 1g and at most half the memory limit; a number without a suffix counts \
         bytes"),
    opt(Id::DisableEvictions, Some('M'), "disable-evictions", Flag, NO, Memory,
        "answer a set with an error when memory is full, instead of evicting"),
    opt(Id::MemoryFile, Some('e'), "memory-file", Text("FILE"), unset("/dev/shm/larder.memory"), Memory,
        "keep the store's RAM in this file, on tmpfs: a daemon started with the same options after this one \
         was stopped, upgraded or killed continues with all items, in RAM and on the SSD; systemd instead of \
         a path: the service manager keeps the RAM and the sockets while the service is restarted"),
    opt(Id::StateFile, None, "state-file", Text("FILE"), unset("/var/lib/larder/state"), Memory,
        "save the store's RAM to this file when the daemon is told to stop, and begin with it the next \
         time, even after the machine was started anew; not with --memory-file"),
    opt(Id::LockMemory, Some('k'), "lock-memory", Flag, NO, Memory,
        "lock all memory, so that it is never swapped out"),
    opt(Id::DisableCas, Some('C'), "disable-cas", Flag, NO, Memory,
        "keep no CAS values; they read as 0"),

    opt(Id::EnableShutdown, Some('A'), "enable-shutdown", Flag, NO, Commands,
        "allow the command shutdown"),
    opt(Id::DisableFlushAll, Some('F'), "disable-flush-all", Flag, NO, Commands,
        "refuse the command flush_all"),
    opt(Id::DisableDumping, Some('X'), "disable-dumping", Flag, NO, Commands,
        "refuse stats cachedump and lru_crawler metadump"),
    opt(Id::DisableWatch, Some('W'), "disable-watch", Flag, NO, Commands,
        "refuse the command watch"),
    opt(Id::PrefixDelimiter, Some('D'), "prefix-delimiter", Char, Is(":"), Commands,
        "the character that ends a key's prefix in stats detail; giving it starts the counting"),

    opt(Id::Daemon, Some('d'), "daemon", Flag, NO, Process,
        "run in the background"),
    opt(Id::User, Some('u'), "user", Text("USER"), unset("larder"), Process,
        "become this user (only when started by root)"),
    opt(Id::Pidfile, Some('P'), "pidfile", Text("FILE"), unset("/run/larder/larder.pid"), Process,
        "write the process id to this file"),
    opt(Id::Verbose, Some('v'), "verbose", Count, Is("0"), Process,
        "log more on standard error; -vv shows requests and replies, without values"),
    opt(Id::Extended, Some('o'), "extended", List("WORD[=VALUE]"), unset("idle_timeout=300"), Process,
        "memcached's extended options, separated by commas; see below"),
    opt(Id::Help, Some('h'), "help", Flag, NO, Process,
        "print this page; --help=ext prints how memcached's names for SSD storage are understood"),
    opt(Id::License, Some('i'), "license", Flag, NO, Process,
        "print the licence"),
    opt(Id::Version, Some('V'), "version", Flag, NO, Process,
        "print the memcached version this is compatible with, then Larder's own"),

    ignored('r', Id::EnableCoredumps, "enable-coredumps", Flag, NO),
    ignored('f', Id::SlabGrowthFactor, "slab-growth-factor", Decimal, Is("1.25")),
    ignored('n', Id::SlabMinSize, "slab-min-size", number(1, INT_MAX), Is("48")),
    ignored('L', Id::EnableLargepages, "enable-largepages", Flag, NO),
    ignored('N', Id::NapiIds, "napi-ids", number(0, INT_MAX), unset("8")),
    ]
};

impl Opt {
    /// Returns the row of a long name. memcached's spelling `napi_ids` is known too.
    pub fn by_long(name: &str) -> Option<&'static Opt> {
        let name = if name == "napi_ids" { "napi-ids" } else { name };
        OPTIONS.iter().find(|opt| opt.long == name)
    }

    /// Returns the row of a letter.
    pub fn by_short(letter: char) -> Option<&'static Opt> {
        OPTIONS.iter().find(|opt| opt.short == Some(letter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_name_is_used_once() {
        let ids: HashSet<_> = OPTIONS.iter().map(|o| o.id).collect();
        let longs: HashSet<_> = OPTIONS.iter().map(|o| o.long).collect();
        let letters: Vec<_> = OPTIONS.iter().filter_map(|o| o.short).collect();
        assert_eq!(ids.len(), OPTIONS.len());
        assert_eq!(longs.len(), OPTIONS.len());
        assert_eq!(letters.iter().collect::<HashSet<_>>().len(), letters.len());
    }

    #[test]
    fn memcacheds_letters_are_all_there() {
        for letter in "pUsaAldrumMckvhiVPfnLDtRCbBISFXWYeZoN".chars() {
            assert!(Opt::by_short(letter).is_some(), "-{letter}");
        }
    }

    #[test]
    fn only_what_has_an_effect_is_described() {
        for opt in OPTIONS {
            assert_eq!(opt.help.is_empty(), opt.effect != Effect::Honoured, "{}", opt.long);
            assert!(!opt.help.ends_with('.'), "{}", opt.long);
        }
    }

    #[test]
    fn the_environment_name_follows_from_the_long_name() {
        assert_eq!(Opt::by_long("memory-limit").map(Opt::env_name).as_deref(), Some("LARDER_MEMORY_LIMIT"));
        assert_eq!(Opt::by_long("napi_ids").map(|o| o.id), Some(Id::NapiIds));
    }
}
