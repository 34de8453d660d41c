//! Rate limits on real servers: exact however many ask, and as was chosen while the servers fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use larder_client::limit::{Algorithm, Limit, Limiter, OnFailure};
use larder_client::{Clock, Error, Put};

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
        for threads in [1, 4, 64] {
            for limit in all(100, Duration::from_secs(3600)) {
                let clock = hand();
                let asked = || {
                    // Each thread as a process of its own would be: with its own client.
                    let limiter =
                        Limiter::with_clock(daemon.client(patient()), OnFailure::Closed, clock.clone());
                    let key = format!("{:?} {threads}", limit.algorithm);
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
fn an_item_that_is_no_count_is_a_failure_or_overwritten_and_never_a_panic() {
    for daemon in each(&[]) {
        let client = daemon.client(patient());
        let clock = hand();
        let [fixed, sliding, gcra] = all(5, Duration::from_secs(60));
        let limiter = Limiter::with_clock(client.clone(), OnFailure::Closed, clock.clone());
        for limit in [sliding, gcra] {
            client.set(b"k", b"something else", Put::default()).expect("it is stored");
            assert!(limiter.check(b"k", &limit, 5).expect("the key is good").is_allowed);
            assert!(!limiter.check(b"k", &limit, 1).expect("the key is good").is_allowed);
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
                format!("VA 5 c9 f0{opaque}\r\n0 0 0\r\n")
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
