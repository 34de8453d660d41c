//! TLS: values of every size, logins, subscriptions and reconnects as without it; a wrong certificate is a clear error,
//! and nothing is ever sent as it is.

mod certificates;
mod peer;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use fork::{Fork, fork, waitpid};
use larder_client::{
    Client, Error, L1Options, Login, Options, Push, Put, Source, Tiered, TieredOptions, Tls, TlsOptions,
    Trust,
};

use crate::fake::{Fake, hang, patient, read_some};
use crate::servers::{Daemon, each};
use certificates::Certificates;

/// A busy machine shakes hands within this time.
const SOON: Duration = Duration::from_secs(20);

fn with(options: &TlsOptions) -> Options {
    Options { tls: Some(Tls::new(options).expect("the files are good")), ..patient() }
}

fn trusting(certificates: &Certificates) -> TlsOptions {
    TlsOptions { trust: Trust::File(certificates.path("ca.pem")), ..TlsOptions::default() }
}

fn servers(certificates: &Certificates, more: &str) -> Vec<Daemon> {
    each(&["-Z", "-o", &certificates.words(more)])
}

fn stat(client: &Client, name: &str) -> u64 {
    let stats = client.stats("").remove(0).expect("the server is up");
    stats.iter().find(|(found, _)| found == name).and_then(|(_, value)| value.parse().ok()).expect("a number")
}

#[test]
fn values_of_every_size_cross_whole() {
    let certificates = Certificates::new();
    for daemon in servers(&certificates, "") {
        let client = daemon.client(with(&trusting(&certificates)));
        for len in [0, 1, 100, 16 << 10, (16 << 10) + 1, 1_000_000] {
            let value: Vec<u8> = (0..len).map(|at: usize| at.wrapping_mul(31) as u8).collect();
            client.set(b"k", &value, Put::default()).expect("stored");
            let found = client.get(b"k").expect("it answers").expect("it is there");
            assert!(found.value == value, "{}: {len} bytes", daemon.name);
        }
    }
}

#[test]
fn batches_cross_whole_on_many_threads() {
    let certificates = Certificates::new();
    for daemon in servers(&certificates, "") {
        let client = daemon.client(with(&trusting(&certificates)));
        for (threads, items, len) in [(1, 1_000, 100), (2, 1_000, 3_000), (4, 10, 500_000), (64, 10, 10)] {
            scope(|scope| {
                for thread in 0..threads {
                    let client = &client;
                    scope.spawn(move || {
                        let value = vec![thread as u8; len];
                        let items: Vec<_> =
                            (0..items).map(|item| (format!("{thread}:{len}:{item}"), &value)).collect();
                        for stored in client.set_many(&items, Put::default()) {
                            stored.expect("stored");
                        }
                        let keys: Vec<_> = items.iter().map(|(key, _)| key).collect();
                        for found in client.get_many(&keys) {
                            assert!(found.expect("it answers").is_some_and(|found| found.value == value));
                        }
                    });
                }
            });
        }
        client.quiet().set(b"quiet", b"v", Put::default()).expect("it is sent");
        assert!(client.get(b"quiet").expect("it answers").is_some(), "{}", daemon.name);
    }
}

#[test]
fn a_wrong_certificate_is_a_clear_error_and_nothing_is_sent() {
    let (certificates, others) = (Certificates::new(), Certificates::new());
    let named = |name: &str| TlsOptions { server_name: Some(name.into()), ..trusting(&certificates) };
    for daemon in servers(&certificates, "") {
        for (options, advice) in [
            (trusting(&others), "trusted authority"),
            (TlsOptions { trust: Trust::System, ..TlsOptions::default() }, "trusted authority"),
            (named("other.test"), "not for other.test"),
        ] {
            let Ok(tls) = Tls::new(&options) else {
                eprintln!("SKIPPED the system's authorities: there are none");
                continue;
            };
            let client = daemon.client(Options { tls: Some(tls), ..patient() });
            for _ in 0..7 {
                let error = client.set(b"k", b"secret", Put::default()).expect_err("it is another's");
                assert!(matches!(error, Error::Tls { .. }), "{error:?}");
                assert!(error.to_string().contains(advice), "{error}");
            }
            assert!(client.is_up(0), "{}: it answered", daemon.name);
        }
        let unverified = TlsOptions { trust: Trust::AnyUnverified, ..named("other.test") };
        for options in [named("cache.test"), unverified] {
            assert_eq!(daemon.client(with(&options)).get(b"k").expect("it is let in"), None);
        }
    }
}

#[test]
fn a_server_without_tls_is_told_nothing() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = heard.clone();
    let fake = Fake::start(move |_, mut peer| {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(came @ 1..) = std::io::Read::read(&mut peer, &mut bytes) {
            hears.lock().expect("it is whole").extend_from_slice(&bytes[..came]);
            let _ = peer.write_all(b"ERROR\r\n");
        }
    });
    let login = Some(Login::new("shop", b"correct:horse").expect("it is good"));
    let any = TlsOptions { trust: Trust::AnyUnverified, ..TlsOptions::default() };
    let error = fake.client(Options { login, ..with(&any) }).set(b"key", b"secret", Put::default());
    let error = error.expect_err("it speaks no TLS");
    assert!(matches!(&error, Error::Tls { reason, .. } if reason.contains("speaks TLS")), "{error:?}");
    let heard = heard.lock().expect("it is whole").clone();
    assert_eq!(heard.first(), Some(&22), "a handshake");
    for secret in ["secret", "horse", "version"] {
        assert!(!heard.windows(secret.len()).any(|bytes| bytes == secret.as_bytes()));
    }
}

#[test]
fn a_server_that_wants_a_certificate_gets_one_or_the_error_says_so() {
    let certificates = Certificates::new();
    for daemon in servers(&certificates, ",ssl_verify_mode=2") {
        let none = daemon.client(with(&trusting(&certificates)));
        let error = none.get(b"k").expect_err("it wants one");
        assert!(matches!(&error, Error::Tls { reason, .. } if reason.contains("identity")), "{error:?}");
        let identity = Some((certificates.path("client.pem"), certificates.path("client.key")));
        let client = daemon.client(with(&TlsOptions { identity, ..trusting(&certificates) }));
        // memcached ends a handshake that would resume a session which has a certificate.
        for _ in 0..5 {
            client.set(b"k", b"v", Put::default()).expect("it is let in");
            client.close_idle();
        }
        assert!(client.is_up(0), "{}", daemon.name);
    }
}

#[test]
fn a_handshake_that_hangs_ends_with_the_time_to_connect() {
    let limit = Duration::from_millis(200);
    let fakes = [
        Fake::start(|_, peer| hang(peer)),
        Fake::start(|_, mut peer| {
            // The head of a record that never ends.
            for byte in [22, 3, 3, 64, 0].into_iter().chain(std::iter::repeat_n(2, 1_000)) {
                if peer.write_all(&[byte]).is_err() {
                    return;
                }
                sleep(Duration::from_millis(20));
            }
        }),
        Fake::start(|_, mut peer| _ = read_some(&mut peer)),
    ];
    for (number, fake) in fakes.iter().enumerate() {
        let any = TlsOptions { trust: Trust::AnyUnverified, ..TlsOptions::default() };
        let client = fake.client(Options { connect_timeout: limit, retry_percent: 0, ..with(&any) });
        let began = Instant::now();
        let error = client.get(b"k").expect_err("there is no TLS");
        assert!(began.elapsed() < limit * 20, "server {number}: {:?}", began.elapsed());
        let is_clear = match &error {
            Error::Timeout { doing, .. } => doing.to_string() == "shaking hands for TLS",
            other => other.to_string().contains("speaks TLS"),
        };
        assert!(is_clear, "server {number}: {error}");
    }
}

#[test]
fn a_peer_that_sends_single_bytes_is_understood() {
    let certificates = Certificates::new();
    for version in peer::VERSIONS {
        for (in_records, len) in [(true, 300), (false, 20_000)] {
            let config = certificates.server(version);
            let value = vec![b'v'; len];
            let sent = value.clone();
            let fake = Fake::start(move |_, socket| peer::answer_slowly(socket, &config, &sent, in_records));
            let client = fake.client(with(&trusting(&certificates)));
            for _ in 0..2 {
                let found = client.get(b"k").expect("it answers").expect("it is there");
                assert!(found.value == value, "{version:?}: {len} bytes, single records: {in_records}");
            }
            assert_eq!(fake.connections(), 1, "the connection stays good");
        }
    }
}

#[test]
fn the_login_is_sent_inside_of_tls() {
    let certificates = Certificates::new();
    let users = certificates.users("shop:correct:horse\n");
    for daemon in each(&["-Z", "-o", &certificates.words(""), "-Y", &users]) {
        let client_with = |password: &[u8]| {
            let login = Some(Login::new("shop", password).expect("it is good"));
            daemon.client(Options { login, ..with(&trusting(&certificates)) })
        };
        let client = client_with(b"correct:horse");
        client.set(b"k", b"v", Put::default()).expect("it is let in");
        assert!(client.get(b"k").expect("it is let in").is_some(), "{}", daemon.name);
        assert!(matches!(client_with(b"wrong").get(b"k"), Err(Error::Login { .. })));
    }
}

#[test]
fn a_reconnect_resumes_the_session() {
    let certificates = Certificates::new();
    for daemon in servers(&certificates, ",ssl_session_cache") {
        let client = daemon.client(with(&trusting(&certificates)));
        client.set(b"k", b"v", Put::default()).expect("stored");
        if daemon.name == "larder" {
            let before = stat(&client, "ssl_new_sessions");
            for _ in 0..20 {
                client.close_idle();
                assert!(client.get(b"k").expect("it answers").is_some());
            }
            assert_eq!(stat(&client, "ssl_new_sessions"), before, "each resumed the first");
        }
    }
}

#[test]
fn a_child_shakes_hands_for_itself() {
    let certificates = Certificates::new();
    for daemon in servers(&certificates, "") {
        let client = daemon.client(with(&trusting(&certificates)));
        let is_over = AtomicBool::new(false);
        scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !is_over.load(SeqCst) {
                        // Handshakes take the lock of the tickets.
                        client.close_idle();
                        assert!(client.get(b"missing").expect("it answers").is_none());
                    }
                });
            }
            client.set(b"k", b"v", Put::default()).expect("stored");
            for _ in 0..10 {
                match fork().expect("a child") {
                    Fork::Child => {
                        let is_right = matches!(client.get(b"k"), Ok(Some(item)) if item.value == b"v");
                        std::process::exit(i32::from(!is_right));
                    }
                    Fork::Parent(child) => assert_eq!(waitpid(child).expect("it ends"), 0),
                }
            }
            is_over.store(true, SeqCst);
        });
    }
}

#[test]
fn a_server_that_died_is_left_alone_and_used_again_when_it_is_back() {
    let certificates = Certificates::new();
    for mut daemon in servers(&certificates, "") {
        let client = daemon.client(with(&trusting(&certificates)));
        client.set(b"k", b"v", Put::default()).expect("stored");
        daemon.kill();
        let began = Instant::now();
        while !matches!(client.get(b"k"), Err(Error::Down { .. })) {
            assert!(began.elapsed() < SOON, "{}: it is still asked", daemon.name);
        }
        daemon.restart();
        while client.get(b"k").is_err() {
            assert!(began.elapsed() < SOON, "{}: it is not asked again", daemon.name);
            sleep(Duration::from_millis(20));
        }
        client.set(b"k", b"v", Put::default()).expect("stored");
    }
}

#[test]
fn changes_are_announced_over_tls() {
    let certificates = Certificates::new();
    for daemon in servers(&certificates, "").into_iter().filter(|daemon| daemon.name == "larder") {
        let l1 = L1Options::new().bytes(4 << 20).anonymous().expect("there is memory");
        let options = TieredOptions {
            fresh: Duration::ZERO,
            push: Some(Push { exact_within: None, ..Push::default() }),
            ..TieredOptions::default()
        };
        let tiered = Tiered::new(l1, daemon.client(with(&trusting(&certificates))), options);
        let other = daemon.client(with(&trusting(&certificates)));
        let get = || tiered.get(b"k").expect("it answers").map(|found| (found.value, found.source));
        for len in [1, 16 << 10, 1_000_000] {
            let value = vec![b'v'; len];
            other.set(b"k", &value, Put::default()).expect("stored");
            let began = Instant::now();
            while get() != Some((value.clone(), Source::L1)) {
                assert!(began.elapsed() < SOON, "{len} bytes: the value is never held");
                sleep(Duration::from_millis(1));
            }
        }
    }
}
