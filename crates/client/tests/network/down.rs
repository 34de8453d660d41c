//! Servers that are down: which servers are asked, how often, and the fate of their keys.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use larder_client::{Client, Clock, Error, OnDown, Options, Put, Thresholds, Word};

use crate::fake::{Closed, Fake, hasty, opaque, patient, read_line};
use crate::servers::{client_of, fleets};

/// A clock that moves when the test says so.
#[derive(Debug, Default)]
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now_ms(&self) -> u64 {
        self.0.load(SeqCst)
    }
}

fn simulated(clock: &Arc<Hand>, on_down: OnDown) -> Options {
    let breaker = Thresholds { failures: 3, open_ms: 1000, open_ms_max: 4000, probe_ms: 500 };
    Options { clock: clock.clone(), breaker, on_down, retry_percent: 0, ..patient() }
}

/// A memcached of a kind: every get is a miss, unless it is told to hang up. Counts requests.
fn missing(is_broken: Arc<AtomicBool>, asked: Arc<AtomicUsize>) -> Fake {
    Fake::start(move |_, mut peer| {
        while let Some(line) = read_line(&mut peer) {
            asked.fetch_add(1, SeqCst);
            if is_broken.load(SeqCst) {
                return;
            }
            let _ = write!(peer, "EN{}\r\n", opaque(&line));
        }
    })
}

#[test]
fn a_server_is_left_alone_after_failures_and_probed_by_the_clock() {
    let clock = Arc::new(Hand::default());
    let (is_broken, asked) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let fake = missing(is_broken.clone(), asked.clone());
    let client = fake.client(simulated(&clock, OnDown::Fail));
    for _ in 0..3 {
        assert!(client.is_up(0));
        assert!(matches!(client.get(b"k"), Err(Error::Lost { .. })));
    }
    for _ in 0..100 {
        assert!(matches!(client.get(b"k"), Err(Error::Down { retry_in_ms: 1000, .. })));
    }
    assert!(!client.is_up(0));
    assert_eq!(asked.load(SeqCst), 3);
    // The probe fails, and the next one comes twice as late.
    clock.0.store(1000, SeqCst);
    assert!(client.is_up(0));
    assert!(matches!(client.get(b"k"), Err(Error::Lost { .. })));
    assert!(matches!(client.get(b"k"), Err(Error::Down { retry_in_ms: 2000, .. })));
    assert_eq!(asked.load(SeqCst), 4);
    is_broken.store(false, SeqCst);
    clock.0.store(3000, SeqCst);
    for _ in 0..10 {
        assert_eq!(client.get(b"k").expect("it is back"), None);
    }
    assert_eq!(asked.load(SeqCst), 14);
}

#[test]
fn one_client_learns_for_all_that_share_the_word() {
    let clock = Arc::new(Hand::default());
    let (is_broken, asked) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let fake = missing(is_broken, asked.clone());
    let word: Arc<AtomicU64> = Arc::default();
    let shared = move |_: &str| -> Arc<dyn Word> { word.clone() };
    let options = Options { breaker_word: Some(Arc::new(shared)), ..simulated(&clock, OnDown::Fail) };
    let (one, other) = (fake.client(options.clone()), fake.client(options));
    (0..3).for_each(|_| drop(one.get(b"k")));
    assert!(matches!(other.get(b"k"), Err(Error::Down { .. })));
    clock.0.store(1000, SeqCst);
    assert!(matches!(other.get(b"k"), Err(Error::Lost { .. })), "the probe");
    assert!(matches!(one.get(b"k"), Err(Error::Down { .. })));
    assert_eq!(asked.load(SeqCst), 4);
}

#[test]
fn reads_are_repeated_within_the_budget_and_writes_never() {
    let asked = Arc::new(AtomicUsize::new(0));
    let fake = missing(Arc::new(AtomicBool::new(true)), asked.clone());
    let options = |retry_percent| Options {
        retry_percent,
        breaker: Thresholds { failures: 0, ..Thresholds::default() },
        ..hasty()
    };
    let client = fake.client(options(10));
    (0..1000).for_each(|_| assert!(client.get(b"k").is_err()));
    let reads = asked.swap(0, SeqCst);
    assert!((1100..=1111).contains(&reads), "{reads}");
    let client = fake.client(options(10));
    (0..100).for_each(|_| assert!(client.incr(b"k", 1).is_err()));
    assert_eq!(asked.swap(0, SeqCst), 100);
    let client = fake.client(options(0));
    (0..100).for_each(|_| assert!(client.get(b"k").is_err()));
    assert_eq!(asked.load(SeqCst), 100);
}

#[test]
fn a_connection_that_the_server_closed_while_idle_costs_nothing() {
    // Closes each connection after its first answer.
    let fake = Fake::start(|_, mut peer| {
        if let Some(line) = read_line(&mut peer) {
            let _ = write!(peer, "VA 1 t-1 c9{}\r\n7\r\n", opaque(&line));
        }
    });
    let client = fake.client(hasty());
    for asked in 1..=5 {
        assert_eq!(client.incr(b"k", 1).expect("a fresh connection is made"), Some(7));
        assert_eq!(fake.connections(), asked);
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn keys_of_a_dead_server_fail_or_move_as_was_asked() {
    for fleet in fleets(2, &[]) {
        let closed = Closed::new();
        let servers = || fleet.iter().map(|daemon| daemon.server()).chain([closed.server()]);
        let keys: Vec<String> = (0..100).map(|number| format!("key:{number}")).collect();
        for on_down in [OnDown::Fail, OnDown::Eject] {
            let clock = Arc::new(Hand::default());
            let client = Client::new(servers(), simulated(&clock, on_down)).expect("there are servers");
            let dead = |key: &String| client.server_of(key.as_bytes()) == 2;
            assert!(keys.iter().any(dead) && !keys.iter().all(dead));
            for round in 0..5 {
                for key in &keys {
                    let stored = client.set(key.as_bytes(), b"v", Put::default());
                    let must_fail = dead(key) && on_down == OnDown::Fail;
                    assert!(!must_fail || stored.is_err());
                    assert!(dead(key) || stored.is_ok(), "{stored:?}");
                    // By then the breaker knows.
                    assert!(must_fail || round == 0 || stored.is_ok(), "{stored:?}");
                }
            }
            let found = client.get_many(&keys);
            for (item, key) in found.iter().zip(&keys) {
                let must_fail = dead(key) && on_down == OnDown::Fail;
                assert_eq!(matches!(item, Err(Error::Down { .. })), must_fail, "{item:?}");
                assert_eq!(matches!(item, Ok(Some(_))), !must_fail);
            }
            // A probe costs one key of a batch its server, not the call.
            clock.0.store(100_000, SeqCst);
            let failed = client.get_many(&keys).iter().filter(|item| item.is_err()).count();
            assert!(failed <= keys.iter().filter(|key| dead(key)).count());
        }
    }
}

#[test]
fn with_all_servers_down_the_error_says_so() {
    let clock = Arc::new(Hand::default());
    let closed = [Closed::new(), Closed::new()];
    let servers = closed.iter().map(Closed::server);
    let client = Client::new(servers, simulated(&clock, OnDown::Eject)).expect("there are servers");
    let mut kinds = Vec::new();
    for number in 0..20 {
        kinds.push(client.get(format!("{number}").as_bytes()).expect_err("nothing is up"));
    }
    assert!(matches!(kinds[0], Error::Connect { .. }), "{:?}", kinds[0]);
    assert!(matches!(kinds[19], Error::Down { .. }), "{:?}", kinds[19]);
    assert!(client.get_many(&["a", "b"]).iter().all(|item| matches!(item, Err(Error::Down { .. }))));
    assert!(client.version().iter().all(Result::is_err));
    assert!(matches!(Client::new([], Options::default()), Err(Error::NoServers)));
}

#[test]
fn all_connections_in_use_is_an_error_after_a_wait() {
    let fake = Fake::start(|_, mut peer| {
        while let Some(line) = read_line(&mut peer) {
            std::thread::sleep(Duration::from_millis(1500));
            let _ = write!(peer, "EN{}\r\n", opaque(&line));
        }
    });
    let options = Options {
        connections_max: 1,
        connect_timeout: Duration::from_millis(100),
        timeout: Duration::from_secs(5),
        ..hasty()
    };
    let client = fake.client(options);
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| client.get(b"k"));
        while fake.connections() == 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(matches!(client.get(b"k"), Err(Error::Busy { max: 1, .. })));
        assert!(matches!(slow.join().expect("it asks"), Ok(None)));
        // Once it is free it is used again.
        assert!(matches!(client.get(b"k"), Ok(None)));
    });
    assert_eq!(fake.connections(), 1);
}

#[test]
fn a_server_killed_under_load_gives_errors_and_never_a_wrong_value() {
    for mut fleet in fleets(3, &[]) {
        // Longer than the test takes: the request that probes a server may fail.
        let breaker = Thresholds { open_ms: 60_000, open_ms_max: 60_000, ..Thresholds::default() };
        let options = Options {
            on_down: OnDown::Eject,
            breaker,
            timeout: Duration::from_secs(5),
            ..Options::default()
        };
        let client = client_of(&fleet, options);
        let (wrong, answered) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let end = Instant::now() + Duration::from_secs(2);
        let work = |thread: usize| {
            let mut turn = 0usize;
            while Instant::now() < end {
                turn += 1;
                let keys: Vec<String> =
                    (0..20).map(|at| format!("{thread}:{}", (turn + at * 17) % 500)).collect();
                let items: Vec<(&String, String)> = keys.iter().map(|key| (key, key.repeat(50))).collect();
                client.set_many(&items, Put::default());
                for (item, (_, value)) in client.get_many(&keys).into_iter().zip(&items) {
                    if let Ok(Some(item)) = item {
                        answered.fetch_add(1, SeqCst);
                        wrong.fetch_add(usize::from(item.value != value.as_bytes()), SeqCst);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            (0..4).for_each(|thread| drop(scope.spawn(move || work(thread))));
            std::thread::sleep(Duration::from_millis(700));
            fleet[1].kill();
        });
        assert_eq!(wrong.load(SeqCst), 0);
        assert!(answered.load(SeqCst) > 1000);
        // What is left serves all keys.
        assert!(!client.is_up(1));
        for number in 0..100 {
            client.set(format!("after {number}").as_bytes(), b"v", Put::default()).expect("two are left");
        }
    }
}
