//! Rate limits on real servers: exact however many ask, and as was chosen while the servers fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use larder_client::limit::{Algorithm, Limit, Limiter, OnFailure};
use larder_client::{Clock, Error, L1, L1Options, Put};

use crate::fake::{Fake, patient};
use crate::servers::{Daemon, client_of, each, fleets};

/// A clock that moves when the test says so; the time of day of some day in milliseconds.
#[derive(Debug)]
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now_ms(&self) -> u64 {
        self.0.load(SeqCst)
    }
}

fn hand() -> Arc<Hand> {
    Arc::new(Hand(AtomicU64::new(1_800_000_000_000)))
}

fn all(count: u64, period: Duration) -> [Limit; 3] {
    [Limit::fixed_window(count, period), Limit::sliding_window(count, period), Limit::gcra(count, period)]
}

#[test]
fn however_many_ask_at_once_exactly_the_limit_passes() {
    for daemon in each(&[]) {
        for (threads, is_by_server) in
            [1, 4, 64].into_iter().flat_map(|threads| [(threads, false), (threads, true)])
        {
            // Of real time no window may end meanwhile.
            for limit in all(100, Duration::from_secs(300 * 86_400)) {
                let clock = hand();
                let asked = || {
                    // Each thread as a process of its own would be: with its own client.
                    let client = daemon.client(patient());
                    let limiter = match is_by_server {
                        true => Limiter::new(client, OnFailure::Closed),
                        false => Limiter::with_clock(client, OnFailure::Closed, clock.clone()),
                    };
                    let key = format!("{:?} {threads} {is_by_server}", limit.algorithm);
                    let one = |_: &u64| {
                        let decision = limiter.check(key.as_bytes(), &limit, 1).expect("the key is good");
                        assert!(decision.failure.is_none(), "{:?}", decision.failure);
                        decision.is_allowed
                    };
                    (0..256 / threads + 8).filter(one).count()
                };
                let passed: usize = std::thread::scope(|scope| {
                    let threads: Vec<_> = (0..threads).map(|_| scope.spawn(asked)).collect();
                    threads.into_iter().map(|thread| thread.join().expect("it asks")).sum()
                });
                assert_eq!(passed, 100, "{} {threads} threads, {limit:?}", daemon.name);
            }
        }
    }
}

#[test]
fn a_denial_names_a_wait_after_which_it_passes() {
    for daemon in each(&[]) {
        for limit in all(5, Duration::from_secs(10)) {
            let clock = hand();
            let limiter = Limiter::with_clock(daemon.client(patient()), OnFailure::Closed, clock.clone());
            let key = format!("{:?}", limit.algorithm);
            let check = |cost| limiter.check(key.as_bytes(), &limit, cost).expect("the key is good");
            for left in (0..5).rev() {
                let decision = check(1);
                assert!(decision.is_allowed && decision.remaining == left, "{decision:?}");
                assert_eq!(decision.retry_after, Some(Duration::ZERO));
            }
            let denied = check(1);
            let wait = denied.retry_after.expect("it may pass later");
            assert!(
                !denied.is_allowed && wait > Duration::ZERO && wait <= Duration::from_secs(20),
                "{denied:?}"
            );
            clock.0.fetch_add(wait.as_millis() as u64 + 1, SeqCst);
            assert!(check(1).is_allowed, "{limit:?}");
            // What can never pass says so, and is not counted.
            let never = check(6);
            assert!(!never.is_allowed && never.retry_after.is_none() && never.failure.is_none());
        }
    }
}

#[test]
fn keys_and_costs_are_counted_apart() {
    for fleet in fleets(2, &[]) {
        let limiter = Limiter::with_clock(client_of(&fleet, patient()), OnFailure::Closed, hand());
        let burst =
            Limit { count: 1, period: Duration::from_secs(60), algorithm: Algorithm::Gcra { burst: 10 } };
        for user in 0..20 {
            let key = format!("user {user}");
            let check = |cost| limiter.check(key.as_bytes(), &burst, cost).expect("the key is good");
            assert_eq!(check(0).remaining, 10);
            assert!(check(7).is_allowed);
            assert!(!check(4).is_allowed);
            assert!(check(3).is_allowed);
            assert_eq!(check(0).remaining, 0);
        }
        assert!(matches!(limiter.check(b"", &burst, 1), Err(Error::Key(_))));
        assert!(matches!(limiter.check(&[b'k'; 251], &burst, 1), Err(Error::Key(_))));
    }
}

#[test]
fn an_item_that_is_no_count_is_a_failure_and_stays_as_it_is() {
    for daemon in each(&[]) {
        let client = daemon.client(patient());
        let clock = hand();
        let [fixed, sliding, gcra] = all(5, Duration::from_secs(60));
        let limiter = Limiter::with_clock(client.clone(), OnFailure::Closed, clock.clone());
        for limit in [sliding, gcra] {
            client.set(b"k", b"something else", Put::default()).expect("it is stored");
            let decision = limiter.check(b"k", &limit, 5).expect("the key is good");
            assert!(!decision.is_allowed && decision.failure.is_some(), "{decision:?}");
            let item = client.get(b"k").expect("it answers").expect("it is there");
            assert_eq!(item.value, b"something else");
        }
        let period = clock.now_ms() / 60_000;
        client.set(format!("k:{period}").as_bytes(), b"text", Put::default()).expect("it is stored");
        let decision = limiter.check(b"k", &fixed, 1).expect("the key is good");
        assert!(!decision.is_allowed && matches!(decision.failure, Some(Error::Refused { .. })));
    }
}

#[test]
fn while_servers_fail_the_choice_decides_and_after_that_the_servers() {
    for mut daemons in fleets(1, &[]) {
        let mut daemon: Daemon = daemons.remove(0);
        let client = daemon.client(patient());
        let limiters = [OnFailure::Open, OnFailure::Closed, OnFailure::Local]
            .map(|choice| Limiter::with_clock(client.clone(), choice, hand()));
        let passed = |limiter: &Limiter, limit: &Limit, key: &str| {
            let checks = (0..20).map(|_| limiter.check(key.as_bytes(), limit, 1).expect("the key is good"));
            checks.filter(|decision| decision.is_allowed).count()
        };
        for (number, limit) in all(5, Duration::from_secs(3600)).iter().enumerate() {
            assert_eq!(passed(&limiters[0], limit, &format!("before {number}")), 5);
        }
        daemon.kill();
        for (number, limit) in all(5, Duration::from_secs(3600)).iter().enumerate() {
            let counts = [0, 1, 2].map(|at| passed(&limiters[at], limit, &format!("after {number}")));
            assert_eq!(counts, [20, 0, 5], "{limit:?}");
            let decision = limiters[1].check(b"k", limit, 1).expect("the key is good");
            assert!(decision.failure.is_some() && decision.retry_after.is_some());
        }
    }
}

#[test]
fn swaps_that_are_always_lost_end() {
    // Every read finds an item, and every swap is refused.
    let fake = Fake::start(|_, mut peer| {
        use std::io::{Read, Write};
        while let Some(line) = crate::fake::read_line(&mut peer) {
            let opaque = crate::fake::opaque(&line);
            let answer = if line.starts_with("mg") {
                format!("VA 3 c9 f0{opaque}\r\nG 0\r\n")
            } else {
                let len: usize = line.split(' ').nth(2).and_then(|len| len.parse().ok()).expect("a length");
                peer.read_exact(&mut vec![0; len + 2]).expect("the value comes");
                format!("EX{opaque}\r\n")
            };
            let _ = peer.write_all(answer.as_bytes());
        }
    });
    let limiter = Limiter::new(fake.client(patient()), OnFailure::Closed);
    let decision = limiter.check(b"k", &Limit::gcra(5, Duration::from_secs(1)), 1).expect("the key is good");
    assert!(!decision.is_allowed && decision.failure.is_some());
}

/// A server that knows no limits, as memcached, and counts what it is asked: `ml`, and additions, to each of which it
/// answers with the number of those before.
fn without_limits() -> (Fake, Arc<[AtomicU64; 2]>) {
    let asked = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let counts = asked.clone();
    let fake = Fake::start(move |_, mut peer| {
        use std::io::Write;
        while let Some(line) = crate::fake::read_line(&mut peer) {
            let answer = if line.starts_with("ml ") {
                counts[0].fetch_add(1, SeqCst);
                "ERROR\r\n".to_string()
            } else {
                let value = (counts[1].fetch_add(1, SeqCst) + 1).to_string();
                format!("VA {}{}\r\n{value}\r\n", value.len(), crate::fake::opaque(&line))
            };
            let _ = peer.write_all(answer.as_bytes());
        }
    });
    (fake, asked)
}

#[test]
fn a_server_that_knows_no_limits_is_asked_once_a_minute() {
    let (fake, asked) = without_limits();
    let clock = hand();
    let client = fake.client(larder_client::Options { clock: clock.clone(), ..patient() });
    let limiter = Limiter::new(client, OnFailure::Closed);
    let limit = Limit::fixed_window(1000, Duration::from_secs(60));
    for minute in 1..=3 {
        for _ in 0..100 {
            let decision = limiter.check(b"k", &limit, 1).expect("the key is good");
            assert!(decision.is_allowed && decision.failure.is_none(), "{decision:?}");
        }
        assert_eq!((asked[0].load(SeqCst), asked[1].load(SeqCst)), (minute, minute * 100));
        clock.0.fetch_add(60_000, SeqCst);
    }
}

#[test]
fn larder_decides_in_one_round_trip_by_its_own_clock() {
    for daemon in each(&[]).iter().filter(|daemon| daemon.name == "larder") {
        let client = daemon.client(patient());
        let limiter = Limiter::new(client.clone(), OnFailure::Closed);
        for limit in all(5, Duration::from_secs(300 * 86_400)) {
            let key = format!("{:?}", limit.algorithm);
            for left in (0..5).rev() {
                let decision = limiter.check(key.as_bytes(), &limit, 1).expect("the key is good");
                assert!(decision.is_allowed && decision.remaining == left, "{decision:?}");
                assert_eq!(decision.retry_after, Some(Duration::ZERO));
                assert!(decision.reset_after > Duration::ZERO);
            }
            let denied = limiter.check(key.as_bytes(), &limit, 2).expect("the key is good");
            assert!(
                !denied.is_allowed && denied.failure.is_none() && denied.retry_after > Some(Duration::ZERO)
            );
            let never = limiter.check(key.as_bytes(), &limit, 6).expect("the key is good");
            assert!(!never.is_allowed && never.retry_after.is_none());
        }
        let stats = client.stats("larder").remove(0).expect("it answers");
        let stat = |name: &str| stats.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
        assert_eq!(stat("limits_allowed").as_deref(), Some("15"));
        assert_eq!(stat("limits_denied").as_deref(), Some("3"), "what never passes asks no server");
        let general = client.stats("").remove(0).expect("it answers");
        let gets = general.iter().find(|(name, _)| name == "cmd_get").map(|(_, value)| value.as_str());
        assert_eq!(gets, Some("0"), "no state was read");
    }
}

fn l1() -> L1 {
    L1Options::new().bytes(4 << 20).anonymous().expect("there is memory")
}

#[test]
fn a_denied_key_asks_no_server_before_its_cost_could_pass() {
    const MAX: Duration = Duration::from_secs(60);
    for daemon in each(&[]) {
        // Two processes of a host.
        let l1 = l1();
        let client = daemon.client(patient());
        let limiter = || Limiter::new(client.clone(), OnFailure::Closed).with_denials_in(l1.clone(), MAX);
        let (one, other) = (limiter(), limiter());
        // One passes every half second.
        let limit =
            Limit { count: 2, period: Duration::from_secs(1), algorithm: Algorithm::Gcra { burst: 1 } };
        assert!(one.check(b"k", &limit, 1).expect("the key is good").is_allowed);
        let began = Instant::now();
        let mut waits = Vec::new();
        for limiter in [&one, &other, &one, &other] {
            let denied = limiter.check(b"k", &limit, 1).expect("the key is good");
            if began.elapsed() < Duration::from_millis(400) {
                assert!(!denied.is_allowed && denied.failure.is_none(), "{denied:?}");
                waits.push(denied.retry_after.expect("it can pass"));
            }
            // Where the state was, nothing is: a server that is asked would let it pass.
            client.delete(b"k").expect("it answers");
        }
        let half = Duration::from_millis(500);
        assert!(waits.iter().all(|wait| *wait <= half && *wait > Duration::ZERO), "{waits:?}");
        let stays = |limit: &Limit, cost| !one.check(b"k", limit, cost).expect("the key is good").is_allowed;
        // Another limit is asked for at once, and so is what counts nothing.
        assert!(!stays(&Limit { count: 4, ..limit }, 1) || began.elapsed() > half, "{}", daemon.name);
        assert!(!stays(&limit, 0));
        client.delete(b"k").expect("it answers");
        std::thread::sleep(half);
        assert!(!stays(&limit, 1), "{}: the wait is over", daemon.name);
    }
}

#[test]
fn a_denial_is_kept_no_longer_than_was_said() {
    for daemon in each(&[]) {
        let client = daemon.client(patient());
        let limit = Limit::gcra(1, Duration::from_secs(3600));
        for (max, stays) in
            [(Duration::ZERO, false), (Duration::from_millis(200), false), (Duration::from_secs(60), true)]
        {
            let limiter = Limiter::new(client.clone(), OnFailure::Closed).with_denials_in(l1(), max);
            let is_allowed = || limiter.check(b"k", &limit, 1).expect("the key is good").is_allowed;
            assert!(is_allowed());
            assert!(!is_allowed());
            if stays {
                let again = limiter.check(b"k", &limit, 1).expect("the key is good");
                assert!(
                    again.retry_after > Some(Duration::from_secs(3000)),
                    "the wait is the limit's: {again:?}"
                );
            }
            client.delete(b"k").expect("it answers");
            std::thread::sleep(max.min(Duration::from_millis(300)));
            assert_eq!(is_allowed(), !stays, "{}: kept for {max:?}", daemon.name);
            client.delete(b"k").expect("it answers");
        }
    }
}

#[test]
fn a_decision_without_servers_is_not_kept_as_a_denial() {
    let closed = crate::fake::Closed::new();
    let client = larder_client::Client::new([closed.server()], patient()).expect("there is a server");
    let l1 = l1();
    let limiter =
        Limiter::new(client, OnFailure::Closed).with_denials_in(l1.clone(), Duration::from_secs(60));
    let limit = Limit::gcra(1, Duration::from_secs(3600));
    assert!(limiter.check(b"k", &limit, 1).expect("the key is good").failure.is_some());
    assert!(l1.is_empty());
}
