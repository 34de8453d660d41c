//! How long entries of the cache in shared memory are used: by prefix, by call, renewed early, and without servers.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::{scope, sleep};
use std::time::Duration;

use larder_client::{
    Client, Error, KEY_BYTES_MAX, L1Options, Options, Put, Source, Tiered, TieredOptions, Times, Unreachable,
};

use crate::fake::{Closed, patient};
use crate::servers::{Daemon, each};

/// For tests in which nothing may become stale, however busy the machine is.
const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_millis(50);

fn host(daemon: &Daemon, options: TieredOptions) -> Tiered {
    tiered(daemon.client(patient()), options)
}

fn tiered(client: Client, options: TieredOptions) -> Tiered {
    Tiered::new(L1Options::new().bytes(4 << 20).anonymous().expect("there is memory"), client, options)
}

fn fresh_for(fresh: Duration) -> Times {
    Times { fresh, stale: LONG, negative: Duration::ZERO }
}

fn source(tiered: &Tiered, key: &[u8]) -> Option<Source> {
    tiered.get(key).expect("the server is up").map(|cached| cached.source)
}

#[test]
fn the_longest_prefix_of_a_key_decides_how_long_it_is_fresh() {
    for daemon in each(&[]) {
        let tiered = host(&daemon, TieredOptions { fresh: LONG, ..TieredOptions::default() })
            .with_prefix(b"news:", fresh_for(SHORT))
            .with_prefix(b"news:old:", fresh_for(LONG));
        let keys: [&[u8]; 3] = [b"page", b"news:1", b"news:old:1"];
        for key in keys {
            tiered.set(key, b"v", Put::default()).expect("stored");
        }
        sleep(SHORT * 2);
        let sources = keys.map(|key| source(&tiered, key));
        assert_eq!(sources, [Source::L1, Source::Server, Source::L1].map(Some), "{}", daemon.name);
    }
}

#[test]
fn an_absence_is_known_for_the_time_of_its_prefix() {
    for daemon in each(&[]) {
        let negative = Times { negative: LONG, ..fresh_for(LONG) };
        let tiered = host(&daemon, TieredOptions::default()).with_prefix(b"rare:", negative);
        let client = tiered.client().clone();
        for key in [&b"rare:1"[..], b"page"] {
            assert_eq!(source(&tiered, key), None);
            client.set(key, b"v", Put::default()).expect("stored");
        }
        assert_eq!(
            source(&tiered, b"rare:1"),
            None,
            "{}: shared memory knows that there is none",
            daemon.name
        );
        assert_eq!(source(&tiered, b"page"), Some(Source::Server));
        let now = tiered.using(Times { negative: Duration::ZERO, ..negative });
        assert_eq!(source(&now, b"rare:1"), Some(Source::Server), "a call may ask nonetheless");
        assert_eq!(source(&tiered, b"rare:1"), Some(Source::L1), "and tells the others");
    }
}

#[test]
fn a_call_may_want_a_fresher_value_or_take_an_older_one() {
    for daemon in each(&[]) {
        let tiered = host(&daemon, TieredOptions { fresh: LONG, ..TieredOptions::default() })
            .with_prefix(b"short:", fresh_for(SHORT));
        let client = tiered.client().clone();
        for key in [&b"k"[..], b"short:k"] {
            tiered.set(key, b"old", Put::default()).expect("stored");
            client.set(key, b"new", Put::default()).expect("stored behind its back");
        }
        sleep(SHORT * 2);
        let lenient = tiered.using(fresh_for(LONG));
        assert_eq!(source(&lenient, b"short:k"), Some(Source::L1), "{}", daemon.name);
        let strict = tiered.using(fresh_for(SHORT));
        let got = strict.get(b"k").expect("the server is up").expect("there is a value");
        assert_eq!((&got.value[..], got.source), (&b"new"[..], Source::Server), "{}", daemon.name);
        assert_eq!(source(&tiered.using(fresh_for(Duration::ZERO)), b"k"), Some(Source::Server));
    }
}

#[test]
fn a_value_that_is_read_often_is_renewed_early_by_one_and_never_stale() {
    let fresh = Duration::from_millis(400);
    for daemon in each(&[]) {
        let options = TieredOptions { fresh, stale: LONG, early_percent: 50, ..TieredOptions::default() };
        let tiered = host(&daemon, options);
        tiered.set(b"k", b"v", Put::default()).expect("stored");
        let [reads, from_server, stale] = [(); 3].map(|()| AtomicUsize::new(0));
        let began = std::time::Instant::now();
        scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while began.elapsed() < fresh * 4 {
                        reads.fetch_add(1, SeqCst);
                        match source(&tiered, b"k").expect("there is a value") {
                            Source::Server => drop(from_server.fetch_add(1, SeqCst)),
                            Source::Stale => drop(stale.fetch_add(1, SeqCst)),
                            _ => {}
                        }
                        sleep(Duration::from_millis(1));
                    }
                });
            }
        });
        let took = began.elapsed();
        let asked = from_server.load(SeqCst);
        // One renewal after each half of the time at most, and after the whole of it at least.
        let most = took.as_millis() as usize / 200 + 2;
        assert!((2..=most).contains(&asked), "{}: asked {asked} times in {took:?}", daemon.name);
        // A machine that stops all readers for 200 ms may make it so.
        assert!(stale.load(SeqCst) * 20 < reads.load(SeqCst), "{stale:?} stale of {reads:?}");
    }
}

#[test]
fn an_early_renewal_that_fails_uses_the_value_that_is_there() {
    for mut daemon in each(&[]) {
        let options = TieredOptions { fresh: LONG, early_percent: 100, ..TieredOptions::default() };
        let tiered = host(&daemon, options);
        tiered.set(b"k", b"v", Put::default()).expect("stored");
        assert_eq!(source(&tiered, b"k"), Some(Source::Server), "{}: it is due at once", daemon.name);
        daemon.kill();
        assert_eq!(source(&tiered, b"k"), Some(Source::L1));
        let created = tiered.get_or_create(b"k", Put::default(), || Err("it is there"));
        assert_eq!(created.map(|cached| cached.source), Ok(Source::L1));
    }
}

#[test]
fn without_servers_a_read_is_an_error_a_miss_or_a_value_of_the_callers() {
    let closed = Closed::new();
    let read = |unreachable| {
        let client = Client::new([closed.server()], Options::default()).expect("there is a server");
        tiered(client, TieredOptions { unreachable, ..TieredOptions::default() })
    };
    let error = read(Unreachable::Error);
    assert!(matches!(error.get(b"k"), Err(Error::Connect { .. } | Error::Down { .. })));
    assert_eq!(error.get_or(b"k", || b"instead".to_vec()), b"instead");
    let miss = read(Unreachable::Miss);
    for _ in 0..10 {
        assert_eq!(miss.get(b"k").expect("no error was asked for"), None);
    }
    assert!(
        matches!(miss.get(&[b'k'; KEY_BYTES_MAX + 1]), Err(Error::Key(_))),
        "the caller's own fault is told"
    );
}

#[test]
fn a_stale_value_is_used_no_longer_than_a_call_allows() {
    for mut daemon in each(&[]) {
        let tiered = host(&daemon, TieredOptions { fresh: SHORT, stale: LONG, ..TieredOptions::default() });
        tiered.set(b"k", b"v", Put::default()).expect("stored");
        daemon.kill();
        sleep(SHORT * 3);
        assert_eq!(source(&tiered, b"k"), Some(Source::Stale), "{}", daemon.name);
        let strict = tiered.using(Times { stale: SHORT, ..fresh_for(SHORT) });
        assert!(strict.get(b"k").is_err(), "{}", daemon.name);
        let created = strict.get_or_create(b"k", Put::default(), || Ok::<_, ()>(b"new".to_vec()));
        assert_eq!(
            created.map(|cached| (cached.value, cached.source)),
            Ok((b"new".to_vec(), Source::Created))
        );
    }
}

#[test]
fn a_creation_that_creates_nothing_is_remembered() {
    for daemon in each(&[]) {
        let options = TieredOptions { negative: LONG, ..TieredOptions::default() };
        let tiered = host(&daemon, options);
        let calls = AtomicUsize::new(0);
        let nothing = || {
            calls.fetch_add(1, SeqCst);
            sleep(SHORT);
            Ok::<_, ()>(None)
        };
        scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let found = tiered.get_or_create_optional(b"k", Put::default(), nothing);
                    assert_eq!(found, Ok(None), "{}", daemon.name);
                });
            }
        });
        assert_eq!(calls.load(SeqCst), 1, "{}: the others know that there is none", daemon.name);
        assert_eq!(source(&tiered, b"k"), None);
        assert_eq!(
            tiered.client().get(b"k").expect("the server is up"),
            None,
            "nothing is left at the server"
        );
        // One that must have a value creates it nonetheless.
        let made = tiered.get_or_create(b"k", Put::default(), || Ok::<_, ()>(b"v".to_vec()));
        assert_eq!(made.map(|cached| cached.value), Ok(b"v".to_vec()));
        let found = tiered.get_or_create_optional(b"k", Put::default(), nothing).expect("no error");
        assert_eq!(found.map(|cached| cached.source), Some(Source::L1));
        let failed = tiered.get_or_create_optional(b"other", Put::default(), || Err("failed"));
        assert_eq!(failed, Err("failed"));
    }
}
