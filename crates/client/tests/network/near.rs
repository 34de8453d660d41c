//! A memcached on the host in front of the servers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use larder_client::{Client, Near, NearOptions, Put, Source};

use crate::fake::{Closed, patient};
use crate::servers::{Daemon, each, fleets};

/// For tests in which nothing may become stale, however busy the machine is.
const LONG: NearOptions = NearOptions { fresh_s: 600, stale_s: 600, wait: Duration::from_secs(20) };

fn near(fleet: &[Daemon], options: NearOptions) -> (Near, Client) {
    let far = fleet[1].client(patient());
    (Near::new(fleet[0].client(patient()), far.clone(), options), far)
}

fn found(near: &Near, key: &[u8]) -> Option<(Vec<u8>, Source)> {
    near.get(key).expect("a server is up").map(|cached| (cached.value, cached.source))
}

#[test]
fn the_second_read_of_a_value_finds_it_nearby() {
    for fleet in fleets(2, &[]) {
        let (near, far) = near(&fleet, LONG);
        far.set(b"k", b"v", Put { flags: 7, exptime: 0 }).expect("stored");
        assert_eq!(found(&near, b"k"), Some((b"v".to_vec(), Source::Server)), "{}", fleet[0].name);
        far.set(b"k", b"changed behind its back", Put::default()).expect("stored");
        for _ in 0..100 {
            let cached = near.get(b"k").expect("up").expect("there");
            assert_eq!((&cached.value[..], cached.flags, cached.source), (&b"v"[..], 7, Source::L1));
        }
        assert_eq!(found(&near, b"missing"), None);
        far.set(b"missing", b"no more", Put::default()).expect("stored");
        assert_eq!(found(&near, b"missing"), Some((b"no more".to_vec(), Source::Server)), "no lease is left");
    }
}

#[test]
fn a_value_is_asked_for_again_once_it_is_not_fresh_and_used_while_its_server_is_down() {
    for mut fleet in fleets(2, &[]) {
        let (near, far) = near(&fleet, NearOptions { fresh_s: 2, ..LONG });
        near.set(b"k", b"old", Put::default()).expect("stored");
        assert_eq!(found(&near, b"k"), Some((b"old".to_vec(), Source::Server)));
        far.set(b"k", b"new", Put::default()).expect("stored");
        sleep(Duration::from_millis(2100));
        assert_eq!(found(&near, b"k"), Some((b"new".to_vec(), Source::Server)), "{}", fleet[0].name);
        sleep(Duration::from_millis(2100));
        fleet[1].kill();
        for _ in 0..3 {
            assert_eq!(found(&near, b"k"), Some((b"new".to_vec(), Source::Stale)), "{}", fleet[0].name);
        }
        assert!(near.get(b"other").is_err());
    }
}

#[test]
fn a_change_ends_reads_that_were_under_way() {
    for fleet in fleets(2, &[]) {
        let (near, _) = near(&fleet, LONG);
        let (version, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        near.set(b"k", b"0", Put::default()).expect("stored");
        let began = Instant::now();
        scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !is_over.load(SeqCst) {
                        let least = version.load(SeqCst);
                        let (value, _) = found(&near, b"k").expect("there is a value");
                        let read: u64 = String::from_utf8_lossy(&value).parse().expect("a number");
                        assert!(read >= least, "{}: {read} after {least}", fleet[0].name);
                    }
                });
            }
            for number in 1..=500 {
                near.set(b"k", number.to_string().as_bytes(), Put::default()).expect("stored");
                version.store(number, SeqCst);
                if began.elapsed() > Duration::from_secs(10) {
                    break;
                }
            }
            is_over.store(true, SeqCst);
        });
        assert!(near.delete(b"k").expect("up"));
        assert_eq!(found(&near, b"k"), None);
    }
}

#[test]
fn without_a_near_server_reads_go_far() {
    for daemon in each(&[]) {
        let closed = Closed::new();
        let nobody = Client::new([closed.server()], patient()).expect("there is a server");
        let near = Near::new(nobody, daemon.client(patient()), LONG);
        near.set(b"k", b"v", Put::default()).expect("stored");
        for _ in 0..10 {
            assert_eq!(found(&near, b"k"), Some((b"v".to_vec(), Source::Server)), "{}", daemon.name);
        }
    }
}
