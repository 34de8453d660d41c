//! The cache in shared memory in front of servers.

use std::io::Write;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use larder_client::{
    Client, Error, Fetch, Fetched, L1, L1Options, Options, Push, Put, Source, Tiered, TieredOptions,
};

use crate::fake::{Fake, read_line};
use crate::servers::{Daemon, each};

const FRESH: Duration = Duration::from_millis(300);
/// For tests in which nothing may become stale, however busy the machine is.
const LONG: Duration = Duration::from_secs(600);

fn l1() -> L1 {
    L1Options::new().bytes(4 << 20).anonymous().expect("there is memory")
}

fn options() -> TieredOptions {
    TieredOptions { fresh: FRESH, stale: Duration::from_secs(60), ..TieredOptions::default() }
}

/// A host: a cache of its own in front of the server.
fn host(daemon: &Daemon, options: TieredOptions) -> Tiered {
    Tiered::new(l1(), daemon.client(Options::default()), options)
}

fn value_of(tiered: &Tiered, key: &[u8]) -> Option<(Vec<u8>, Source)> {
    tiered.get(key).expect("the server is up").map(|cached| (cached.value, cached.source))
}

fn found(value: &[u8], source: Source) -> Option<(Vec<u8>, Source)> {
    Some((value.to_vec(), source))
}

fn stat(client: &Client, name: &str) -> u64 {
    let stats = client.stats("").remove(0).expect("the server is up");
    stats.iter().find(|(found, _)| found == name).and_then(|(_, value)| value.parse().ok()).expect("a number")
}

#[test]
fn a_fresh_value_asks_no_server() {
    for daemon in each(&[]) {
        let tiered = host(&daemon, TieredOptions { fresh: LONG, ..options() });
        let other = daemon.client(Options::default());
        other.set(b"k", b"v", Put { flags: 7, exptime: 0 }).expect("stored");
        assert_eq!(value_of(&tiered, b"k"), found(b"v", Source::Server), "{}", daemon.name);
        let gets = stat(&other, "cmd_get");
        for _ in 0..100 {
            assert_eq!(value_of(&tiered, b"k"), found(b"v", Source::L1));
        }
        assert_eq!(stat(&other, "cmd_get"), gets, "{}: shared memory has it", daemon.name);
    }
}

#[test]
fn a_hit_takes_the_memory_of_the_buffer_and_nothing_of_its_contents() {
    for daemon in each(&[]) {
        let tiered = host(&daemon, TieredOptions { fresh: LONG, ..options() });
        let mut buffer = Vec::with_capacity(10_000);
        for len in [0, 1, 9_000, 100] {
            tiered.set(b"k", &vec![b'v'; len], Put::default()).expect("stored");
            // From the server, and then from shared memory.
            assert_eq!(tiered.get_reusing(b"k", vec![b'x'; 200]).unwrap().unwrap().value, vec![b'v'; len]);
            let memory = buffer.as_ptr();
            buffer = tiered.get_reusing(b"k", buffer).unwrap().unwrap().value;
            assert_eq!((&buffer[..], buffer.as_ptr()), (&vec![b'v'; len][..], memory), "{}", daemon.name);
        }
        assert_eq!(tiered.get_reusing(b"none", buffer).unwrap(), None);
    }
}

#[test]
fn a_stale_value_is_sent_again_only_if_it_changed() {
    for daemon in each(&[]) {
        let (tiered, other) = (host(&daemon, options()), daemon.client(Options::default()));
        let large = vec![b'x'; 1_000_000];
        other.set(b"k", &large, Put { flags: 7, exptime: 0 }).expect("stored");
        assert_eq!(value_of(&tiered, b"k"), found(&large, Source::Server), "{}", daemon.name);
        // A connection that is younger than the copy is not believed, and cas uniques are told by the second.
        sleep(Duration::from_millis(2000));
        assert_eq!(tiered.get(b"k").expect("up").map(|cached| cached.flags), Some(7));
        sleep(FRESH);
        let before = stat(&other, "bytes_written");
        assert_eq!(value_of(&tiered, b"k"), found(&large, Source::Server));
        let written = stat(&other, "bytes_written") - before;
        let knows_it = daemon.name == "larder";
        assert_eq!(
            written < 100_000,
            knows_it,
            "{}: {written} bytes for a value that is current",
            daemon.name
        );
        other.set(b"k", b"new", Put::default()).expect("stored");
        sleep(FRESH);
        assert_eq!(value_of(&tiered, b"k"), found(b"new", Source::Server), "{}", daemon.name);
        other.delete(b"k").expect("deleted");
        sleep(FRESH);
        assert_eq!(value_of(&tiered, b"k"), None, "{}", daemon.name);
    }
}

#[test]
fn a_change_is_seen_at_once_on_its_host_and_in_time_on_others() {
    for daemon in each(&[]) {
        let (one, two) = (host(&daemon, options()), host(&daemon, options()));
        one.set(b"k", b"1", Put::default()).expect("stored");
        let value = |tiered: &Tiered| value_of(tiered, b"k").map(|(value, _)| value);
        assert_eq!((value(&one), value(&two)), (Some(b"1".to_vec()), Some(b"1".to_vec())));
        one.set(b"k", b"2", Put::default()).expect("stored");
        let changed = Instant::now();
        assert_eq!(value(&one), Some(b"2".to_vec()));
        loop {
            let asked = changed.elapsed();
            if value(&two) == Some(b"2".to_vec()) {
                break;
            }
            // The clock is coarse.
            assert!(asked < FRESH + Duration::from_millis(20), "{}: {asked:?} after the change", daemon.name);
        }
        assert!(two.delete(b"k").expect("deleted"));
        assert_eq!(value_of(&two, b"k"), None);
        sleep(FRESH + Duration::from_millis(50));
        assert_eq!(value_of(&one, b"k"), None, "{}", daemon.name);
        // An item that expires is not used beyond that.
        one.set(b"k", b"short", Put::for_seconds(1)).expect("stored");
        sleep(Duration::from_millis(2100));
        assert_eq!(value_of(&one, b"k"), None, "{}: expired", daemon.name);
    }
}

#[test]
fn an_old_value_does_not_come_back_from_a_read_that_was_under_way() {
    for daemon in each(&[]) {
        let tiered = host(&daemon, TieredOptions { fresh: Duration::from_secs(60), ..options() });
        let (stop, written) = (AtomicUsize::new(0), AtomicUsize::new(0));
        tiered.set(b"k", b"0", Put::default()).expect("stored");
        scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| {
                    while stop.load(SeqCst) == 0 {
                        let least = written.load(SeqCst);
                        let value = value_of(&tiered, b"k");
                        let number = value.map(|(value, _)| String::from_utf8(value).expect("text"));
                        let number = number.map(|text| text.parse::<usize>().expect("a number"));
                        assert!(number.is_none_or(|number| number >= least), "{number:?} after {least}");
                    }
                });
            }
            for number in 1..2_000_usize {
                if number.is_multiple_of(3) {
                    tiered.delete(b"k").expect("deleted");
                }
                tiered.set(b"k", number.to_string().as_bytes(), Put::default()).expect("stored");
                written.store(number, SeqCst);
            }
            stop.store(1, SeqCst);
        });
    }
}

#[test]
fn a_server_that_is_down_leaves_stale_values_for_a_while_and_then_an_error() {
    for mut daemon in each(&[]) {
        let stale = Duration::from_millis(1200);
        let tiered = host(&daemon, TieredOptions { stale, ..options() });
        tiered.set(b"k", b"old", Put::default()).expect("stored");
        daemon.kill();
        let killed = Instant::now();
        sleep(FRESH + Duration::from_millis(20));
        match tiered.get(b"k") {
            Ok(Some(cached)) => assert_eq!((&cached.value[..], cached.source), (&b"old"[..], Source::Stale)),
            other => assert!(killed.elapsed() > stale, "{}: {other:?}", daemon.name),
        }
        sleep(FRESH + stale);
        let ended = tiered.get(b"k");
        assert!(
            matches!(ended, Err(Error::Connect { .. } | Error::Down { .. } | Error::Lost { .. })),
            "{ended:?}"
        );
        assert!(tiered.set(b"k", b"new", Put::default()).is_err());
        let made = tiered.get_or_create(b"k", Put::default(), || Ok::<_, ()>(b"made".to_vec()));
        assert_eq!(made.map(|cached| (cached.value, cached.source)), Ok((b"made".to_vec(), Source::Created)));
    }
}

#[test]
fn a_missing_value_is_created_once_by_all_threads_of_all_hosts() {
    for daemon in each(&[]) {
        let hosts: Vec<Tiered> = (0..3).map(|_| host(&daemon, options())).collect();
        let (created, begin) = (AtomicUsize::new(0), Barrier::new(24));
        for round in 0..5 {
            let key = format!("key-{round}");
            scope(|threads| {
                for at in 0..24 {
                    let (tiered, key, created, begin) = (&hosts[at % 3], key.as_bytes(), &created, &begin);
                    threads.spawn(move || {
                        begin.wait();
                        let made = tiered.get_or_create(key, Put::for_seconds(60), || {
                            created.fetch_add(1, SeqCst);
                            sleep(Duration::from_millis(50));
                            Ok::<_, ()>(b"made".to_vec())
                        });
                        assert_eq!(made.map(|cached| cached.value), Ok(b"made".to_vec()));
                    });
                }
            });
            assert_eq!(created.load(SeqCst), round + 1, "{}: creations", daemon.name);
        }
    }
}

#[test]
fn of_all_that_wait_for_a_creator_that_was_killed_one_creates() {
    for daemon in each(&[]) {
        // Its server may end a lease later than those that wait have counted.
        let (held, lease) = (Some(2), Duration::from_secs(1));
        let killed = daemon.client(Options::default());
        let taken = killed.fetch(b"k", &Fetch { vivify: held, ..Fetch::default() });
        assert!(matches!(taken, Ok(Fetched::Found(item)) if item.lease.is_mine));
        let hosts: Vec<Tiered> =
            (0..3).map(|_| host(&daemon, TieredOptions { lease, ..options() })).collect();
        let created = AtomicUsize::new(0);
        scope(|threads| {
            for at in 0..12 {
                let (tiered, created) = (&hosts[at % 3], &created);
                threads.spawn(move || {
                    let made = tiered.get_or_create(b"k", Put::for_seconds(60), || {
                        created.fetch_add(1, SeqCst);
                        sleep(Duration::from_millis(50));
                        Ok::<_, ()>(b"made".to_vec())
                    });
                    assert_eq!(made.map(|cached| cached.value), Ok(b"made".to_vec()));
                });
            }
        });
        assert_eq!(created.load(SeqCst), 1, "{}: creations", daemon.name);
    }
}

#[test]
fn a_value_that_is_over_when_it_is_stored_is_not_found() {
    for daemon in each(&[]) {
        // With a bound, reads and writes take clocks of which one lags.
        for push in [None, Some(Push::default())] {
            let tiered = host(&daemon, TieredOptions { push, ..options() });
            let over = Put { exptime: -1, ..Put::default() };
            for _ in 0..50 {
                tiered.set(b"k", b"over", over).expect("stored");
                assert_eq!(value_of(&tiered, b"k"), None, "{}", daemon.name);
                let made = tiered.get_or_create(b"k", over, || Ok::<_, ()>(b"over".to_vec()));
                assert_eq!(made.map(|cached| cached.source), Ok(Source::Created));
                assert_eq!(value_of(&tiered, b"k"), None, "{}", daemon.name);
            }
        }
    }
}

#[test]
fn a_creation_that_fails_leaves_the_next_one_to_others_and_a_delete_meanwhile_wins() {
    for daemon in each(&[]) {
        let (one, two) = (host(&daemon, options()), host(&daemon, options()));
        let failed = one.get_or_create(b"k", Put::default(), || Err::<Vec<u8>, _>("no"));
        assert_eq!(failed, Err("no"));
        assert_eq!(value_of(&two, b"k"), None, "{}: nothing is left", daemon.name);
        let began = Instant::now();
        let made = two.get_or_create(b"k", Put::default(), || {
            one.delete(b"k").expect("deleted");
            Ok::<_, ()>(b"before the delete".to_vec())
        });
        assert_eq!(made.map(|cached| cached.source), Ok(Source::Created));
        assert!(began.elapsed() < Duration::from_secs(5), "it waits for nobody");
        assert_eq!(
            (value_of(&one, b"k"), value_of(&two, b"k")),
            (None, None),
            "{}: it is not stored",
            daemon.name
        );
    }
}

#[test]
fn that_a_key_is_absent_is_known_for_a_while_if_asked_for() {
    for daemon in each(&[]) {
        let long = host(&daemon, TieredOptions { negative: LONG, ..options() });
        let short = host(&daemon, TieredOptions { negative: Duration::from_millis(50), ..options() });
        let other = daemon.client(Options::default());
        assert_eq!((value_of(&long, b"k"), value_of(&short, b"k")), (None, None));
        let gets = stat(&other, "cmd_get");
        assert_eq!(value_of(&long, b"k"), None);
        assert_eq!(stat(&other, "cmd_get"), gets, "{}", daemon.name);
        other.set(b"k", b"there", Put::default()).expect("stored");
        sleep(Duration::from_millis(100));
        assert_eq!(value_of(&short, b"k"), found(b"there", Source::Server), "{}", daemon.name);
        assert_eq!(value_of(&long, b"k"), None, "{}", daemon.name);
    }
}

#[test]
fn a_restarted_server_that_gives_out_the_same_cas_uniques_is_not_believed() {
    // The first connection is a server with one value, all others lead to its successor, with another.
    let fake = Fake::start(|number, mut peer| {
        while let Some(line) = read_line(&mut peer) {
            let opaque = line.split(' ').find(|word| word.starts_with('O')).unwrap_or("O0").to_string();
            let value = if number == 0 { "old" } else { "new" };
            let reply = match line.split(' ').any(|word| word == "C1") {
                true => format!("HD c1 f0 t-1 {opaque}\r\n"),
                false => format!("VA 3 c1 f0 t-1 {opaque}\r\n{value}\r\n"),
            };
            if peer.write_all(reply.as_bytes()).is_err() || number == 0 {
                return;
            }
        }
    });
    let tiered = Tiered::new(l1(), fake.client(Options::default()), options());
    assert_eq!(value_of(&tiered, b"k"), found(b"old", Source::Server));
    sleep(FRESH + Duration::from_millis(50));
    assert_eq!(value_of(&tiered, b"k"), found(b"new", Source::Server));
}

#[test]
fn many_keys_take_one_request_of_those_that_shared_memory_lacks() {
    for daemon in each(&[]) {
        let (tiered, other) =
            (host(&daemon, TieredOptions { fresh: LONG, ..options() }), daemon.client(Options::default()));
        let items: Vec<(String, Vec<u8>)> = (0..50u8).map(|n| (format!("k{n}"), vec![n; 100])).collect();
        assert!(other.set_many(&items, Put { flags: 3, exptime: 0 }).iter().all(Result::is_ok));
        let keys: Vec<&str> = items.iter().map(|(key, _)| key.as_str()).chain(["none"]).collect();
        let mut asked = 0;
        for turn in 0..2 {
            let found = tiered.get_many(&keys);
            for ((_, value), found) in items.iter().zip(&found) {
                let found = found.as_ref().expect("up").as_ref().expect("it is there");
                assert_eq!((&found.value, found.flags), (value, 3), "{}", daemon.name);
                asked += u64::from(found.source == Source::Server);
            }
            assert!(matches!(found.last(), Some(Ok(None))), "{}", daemon.name);
            // Some keys refuse each other's fills.
            assert!(asked >= 50 && asked <= 50 + turn * 15, "{}: {asked} asked", daemon.name);
        }
        assert_eq!(stat(&other, "get_hits"), asked, "{}", daemon.name);
        assert!(tiered.delete_many(&keys).iter().take(50).all(|was_there| matches!(was_there, Ok(true))));
        assert!(tiered.get_many(&keys).iter().all(|found| matches!(found, Ok(None))), "{}", daemon.name);
        assert!(tiered.set_many(&items, Put::default()).iter().all(Result::is_ok));
        let kept = keys.iter().filter(|key| tiered.peek(key.as_bytes(), |_, _| ()).is_some()).count();
        assert!(kept > 35, "{}: {kept} kept", daemon.name);
    }
}

#[test]
fn any_change_is_seen_at_once_on_its_host() {
    for daemon in each(&[]) {
        let tiered = host(&daemon, TieredOptions { fresh: LONG, ..options() });
        tiered.set(b"k", b"1", Put::default()).expect("stored");
        assert_eq!(tiered.peek(b"k", |_, value| value.to_vec()), Some(b"1".to_vec()), "{}", daemon.name);
        tiered.change(b"k", |client| client.append(b"k", b"2")).expect("appended");
        assert_eq!(tiered.peek(b"k", |_, value| value.to_vec()), None, "{}", daemon.name);
        assert_eq!(value_of(&tiered, b"k"), found(b"12", Source::Server), "{}", daemon.name);
    }
}

#[test]
fn a_created_value_brings_its_own_flags() {
    for daemon in each(&[]) {
        let tiered = host(&daemon, TieredOptions { fresh: LONG, ..options() });
        let create = || Ok::<_, ()>((b"v".to_vec(), 9));
        for source in [Source::Created, Source::L1] {
            let made = tiered.get_or_create_with(b"k", 0, create).expect("created");
            assert_eq!((made.flags, made.source), (9, source), "{}", daemon.name);
        }
        assert_eq!(tiered.client().get(b"k").expect("up").map(|item| item.flags), Some(9), "{}", daemon.name);
    }
}

#[test]
fn a_client_that_closed_its_idle_connections_makes_new_ones() {
    for daemon in each(&[]) {
        let (client, other) = (daemon.client(Options::default()), daemon.client(Options::default()));
        client.set(b"k", b"v", Put::default()).expect("stored");
        let open = stat(&other, "curr_connections");
        client.close_idle();
        let closed = || stat(&other, "curr_connections") < open;
        assert!(
            (0..200).any(|_| closed() || {
                sleep(Duration::from_millis(10));
                false
            }),
            "{}",
            daemon.name
        );
        assert!(client.get(b"k").expect("up").is_some(), "{}", daemon.name);
    }
}

#[test]
fn readers_leave_the_lease_of_a_stale_item_to_those_that_create() {
    for daemon in each(&[]) {
        let (reader, other) = (host(&daemon, options()), daemon.client(Options::default()));
        for (key, is_batch) in [(b"one", false), (b"two", true)] {
            other.set(key, b"old", Put::default()).expect("stored");
            other.invalidate(key, 60).expect("marked");
            for _ in 0..3 {
                let read = match is_batch {
                    true => reader.get_many(&[key]).remove(0),
                    false => reader.get(key),
                };
                assert_eq!(read.expect("it answers").map(|cached| cached.value), Some(b"old".to_vec()));
            }
            let created = reader.get_or_create(key, Put::default(), || Ok::<_, ()>(b"new".to_vec()));
            let created = created.map(|cached| (cached.value, cached.source));
            assert_eq!(created, Ok((b"new".to_vec(), Source::Created)), "{}", daemon.name);
        }
    }
}
