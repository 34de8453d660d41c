//! Every command, on each real server.

use std::time::Duration;

use larder_client::{Cas, Client, Count, Error, Fetch, Fetched, Put};

use crate::fake::patient;
use crate::servers::{each, each_on_unix_socket};

/// Runs a check on a client of each server.
fn on_each(check: impl Fn(&Client)) {
    for daemon in each(&[]) {
        check(&daemon.client(patient()));
    }
}

/// Unwraps an item to its value.
fn value(client: &Client, key: &[u8]) -> Option<Vec<u8>> {
    client.get(key).expect("the server answers").map(|item| item.value)
}

#[test]
fn values_of_every_size_come_back_with_their_flags() {
    on_each(|client| {
        for size in [0, 1, 100, 8191, 8192, 16_384, 65_535, 65_536, 65_537, 700_000, 1_000_000] {
            let put = Put { flags: 0xffff_fff0 + 7, exptime: 0 };
            let bytes: Vec<u8> = (0..size).map(|at| (at * 31 + size) as u8).collect();
            client.set(b"key", &bytes, put).expect("it is stored");
            let item = client.get(b"key").expect("it answers").expect("it is there");
            assert_eq!(item.value.len(), size);
            assert!(item.value == bytes && item.flags == put.flags, "{size}");
        }
        assert_eq!(value(client, b"none"), None);
    });
}

#[test]
fn keys_of_every_kind_are_kept_apart() {
    on_each(|client| {
        let keys: Vec<Vec<u8>> = vec![
            b"plain".to_vec(),
            b"with blank".to_vec(),
            b"line\r\nend".to_vec(),
            vec![0],
            vec![b'k'; 250],
            (0..=185).collect(),
            "caf\u{e9}".into(),
            b"d2l0aCBibGFuaw==".to_vec(),
        ];
        for (number, key) in keys.iter().enumerate() {
            client.set(key, format!("value {number}").as_bytes(), Put::default()).expect("it is stored");
        }
        for (number, key) in keys.iter().enumerate() {
            assert_eq!(value(client, key), Some(format!("value {number}").into_bytes()), "{key:?}");
        }
        for (number, item) in client.get_many(&keys).into_iter().enumerate() {
            let item = item.expect("it answers").expect("it is there");
            assert_eq!(item.value, format!("value {number}").into_bytes());
        }
        assert!(matches!(client.get(b""), Err(Error::Key(_))));
        assert!(matches!(client.get(&[b'k'; 251]), Err(Error::Key(_))));
    });
}

#[test]
fn stores_keep_their_conditions() {
    on_each(|client| {
        let put = Put::default();
        assert!(!client.replace(b"k", b"1", put).expect("it answers"));
        assert!(!client.append(b"k", b"1").expect("it answers"));
        assert!(!client.prepend(b"k", b"1").expect("it answers"));
        assert!(client.add(b"k", b"1", put).expect("it answers"));
        assert!(!client.add(b"k", b"2", put).expect("it answers"));
        assert!(client.append(b"k", b"2").expect("it answers"));
        assert!(client.prepend(b"k", b"0").expect("it answers"));
        assert_eq!(value(client, b"k"), Some(b"012".to_vec()));
        assert!(client.replace(b"k", b"new", put).expect("it answers"));
        assert_eq!(value(client, b"k"), Some(b"new".to_vec()));
        assert!(client.delete(b"k").expect("it answers"));
        assert!(!client.delete(b"k").expect("it answers"));
    });
}

#[test]
fn compare_and_swap_loses_to_a_change() {
    on_each(|client| {
        let put = Put::default();
        assert_eq!(client.cas(b"k", b"1", 7, put).expect("it answers"), Cas::NotFound);
        let stored = client.set(b"k", b"1", put).expect("it is stored");
        let read = client.gets(b"k").expect("it answers").expect("it is there").cas.expect("a cas unique");
        assert_eq!(stored, Some(read));
        assert!(matches!(client.cas(b"k", b"2", read, put).expect("it answers"), Cas::Stored(Some(_))));
        assert_eq!(client.cas(b"k", b"3", read, put).expect("it answers"), Cas::Exists);
        assert_eq!(value(client, b"k"), Some(b"2".to_vec()));
    });
}

#[test]
fn counters_count_and_are_made_with_a_time_to_live_in_one_round_trip() {
    on_each(|client| {
        assert_eq!(client.incr(b"n", 1).expect("it answers"), None);
        let count = Count { delta: 5, initial: Some((100, 60)), ..Count::default() };
        let made = client.count(b"n", count).expect("it answers").expect("it is made");
        assert_eq!((made.value, made.ttl_s), (100, Some(60)));
        let counted = client.count(b"n", count).expect("it answers").expect("it is there");
        assert_eq!(counted.value, 105);
        assert!(counted.ttl_s.is_some_and(|ttl_s| (58..=60).contains(&ttl_s)));
        assert_eq!(client.decr(b"n", 6).expect("it answers"), Some(99));
        assert_eq!(client.decr(b"n", 1000).expect("it answers"), Some(0));
        client.set(b"n", u64::MAX.to_string().as_bytes(), Put::default()).expect("it is stored");
        assert_eq!(client.incr(b"n", 2).expect("it answers"), Some(1));
        client.set(b"n", b"text", Put::default()).expect("it is stored");
        let refused = client.incr(b"n", 1).expect_err("it is no number");
        assert!(matches!(&refused, Error::Refused { line, .. } if line.contains("non-numeric")), "{refused}");
        // A refusal costs no connection and no trust.
        assert_eq!(value(client, b"n"), Some(b"text".to_vec()));
    });
}

#[test]
fn expiry_is_set_read_and_changed() {
    on_each(|client| {
        client.set(b"k", b"v", Put::for_seconds(100)).expect("it is stored");
        let ttl = |client: &Client| match client.fetch(b"k", &Fetch::default()).expect("it answers") {
            Fetched::Found(item) => item.ttl_s,
            other => panic!("{other:?}"),
        };
        assert!(ttl(client).is_some_and(|ttl_s| (98..=100).contains(&ttl_s)));
        assert!(client.touch(b"k", 1000).expect("it answers"));
        assert!(ttl(client).is_some_and(|ttl_s| (998..=1000).contains(&ttl_s)));
        let item = client.gat(b"k", 0).expect("it answers").expect("it is there");
        assert_eq!(item.value, b"v");
        assert_eq!(ttl(client), Some(-1));
        assert!(!client.touch(b"none", 1).expect("it answers"));
        client.set(b"k", b"v", Put::for_seconds(-1)).expect("it is stored");
        assert_eq!(value(client, b"k"), None);
    });
}

#[test]
fn one_client_has_the_lease_and_its_late_fill_loses_to_a_delete() {
    on_each(|client| {
        let fetch = Fetch { vivify: Some(30), ..Fetch::default() };
        let Fetched::Found(first) = client.fetch(b"k", &fetch).expect("it answers") else { panic!("a miss") };
        assert!(first.lease.is_mine && !first.lease.is_taken && first.value.is_empty());
        let Fetched::Found(second) = client.fetch(b"k", &fetch).expect("it answers") else {
            panic!("a miss")
        };
        assert!(!second.lease.is_mine && second.lease.is_taken);
        let cas = first.cas.expect("a cas unique");
        assert!(matches!(client.fill(b"k", b"made", cas, Put::default()), Ok(Cas::Stored(_))));
        assert_eq!(value(client, b"k"), Some(b"made".to_vec()));

        let Fetched::Found(third) = client.fetch(b"j", &fetch).expect("it answers") else { panic!("a miss") };
        assert!(client.delete(b"j").expect("it answers"));
        let late = client.fill(b"j", b"old", third.cas.expect("a cas unique"), Put::default());
        assert_eq!(late.expect("it answers"), Cas::NotFound);
        assert_eq!(value(client, b"j"), None);
    });
}

#[test]
fn an_invalidated_item_is_served_stale_and_renewed_by_one() {
    on_each(|client| {
        client.set(b"k", b"old", Put::default()).expect("it is stored");
        assert!(client.invalidate(b"k", 30).expect("it answers"));
        let fetch = || match client.fetch(b"k", &Fetch::default()).expect("it answers") {
            Fetched::Found(item) => item,
            other => panic!("{other:?}"),
        };
        let first = fetch();
        assert!(first.lease.is_stale && first.lease.is_mine && first.value == b"old");
        let second = fetch();
        assert!(second.lease.is_stale && second.lease.is_taken && !second.lease.is_mine);
        let filled = client.fill(b"k", b"new", first.cas.expect("a cas unique"), Put::default());
        assert!(matches!(filled, Ok(Cas::Stored(_))), "{filled:?}");
        let third = fetch();
        assert!(!third.lease.is_stale && third.value == b"new");
        assert!(!client.invalidate(b"none", 30).expect("it answers"));
    });
}

#[test]
fn an_early_renewal_is_one_clients() {
    on_each(|client| {
        client.set(b"k", b"v", Put::for_seconds(10)).expect("it is stored");
        let fetch = Fetch { recache: Some(30), ..Fetch::default() };
        let mine = |found: Fetched| matches!(found, Fetched::Found(item) if item.lease.is_mine);
        assert!(mine(client.fetch(b"k", &fetch).expect("it answers")));
        assert!(!mine(client.fetch(b"k", &fetch).expect("it answers")));
    });
}

#[test]
fn a_current_copy_costs_no_value_and_an_old_server_sends_it_again() {
    for daemon in each(&[]) {
        let client = daemon.client(patient());
        let cas =
            client.set(b"k", b"value", Put { flags: 3, exptime: 50 }).expect("stored").expect("a cas unique");
        let fetch = Fetch { unless_cas: Some(cas), ..Fetch::default() };
        match client.fetch(b"k", &fetch).expect("it answers") {
            Fetched::Unchanged(item) => {
                assert!(item.value.is_empty() && item.flags == 3 && item.cas == Some(cas));
                assert!(item.ttl_s.is_some_and(|ttl_s| (48..=50).contains(&ttl_s)));
            }
            // memcached before 1.6.40 takes no notice.
            Fetched::Found(item) => assert!(daemon.name == "memcached" && item.value == b"value"),
            Fetched::Miss => panic!("it is there"),
        }
        client.set(b"k", b"other", Put::default()).expect("it is stored");
        let found = client.fetch(b"k", &fetch).expect("it answers");
        assert!(matches!(found, Fetched::Found(item) if item.value == b"other" && item.cas != Some(cas)));
        client.delete(b"k").expect("it answers");
        assert_eq!(client.fetch(b"k", &fetch).expect("it answers"), Fetched::Miss);
    }
}

#[test]
fn quiet_writes_take_effect_and_their_refusals_are_nobody_elses() {
    on_each(|client| {
        let quiet = client.quiet();
        quiet.set(b"n", b"1", Put::default()).expect("it is sent");
        for _ in 0..200 {
            quiet.count(b"n", Count::default()).expect("it is sent");
            quiet.count(b"none", Count::default()).expect("it is sent");
            quiet.touch(b"n", 100).expect("it is sent");
            quiet.delete(b"none").expect("it is sent");
            quiet.add(b"n", b"x", Put::default()).expect("it is sent");
        }
        assert_eq!(value(client, b"n"), Some(b"201".to_vec()));
        // The server refuses these, with a line each.
        quiet.set(b"text", b"x", Put::default()).expect("it is sent");
        (0..200).for_each(|_| quiet.count(b"text", Count::default()).expect("it is sent"));
        assert_eq!(value(client, b"text"), Some(b"x".to_vec()));
        quiet.append(b"text", b"y").expect("it is sent");
        quiet.prepend(b"text", b"w").expect("it is sent");
        quiet.replace(b"none", b"z", Put::default()).expect("it is sent");
        assert_eq!(value(client, b"text"), Some(b"wxy".to_vec()));
        let items: Vec<(String, Vec<u8>)> = (0..1000).map(|at| (format!("q{at}"), vec![7; at])).collect();
        assert!(quiet.set_many(&items, Put::default()).iter().all(Result::is_ok));
        assert_eq!(value(client, b"q999"), Some(vec![7; 999]));
        let keys: Vec<&String> = items.iter().map(|(key, _)| key).collect();
        assert!(quiet.delete_many(&keys).iter().all(Result::is_ok));
        assert!(client.get_many(&keys).into_iter().all(|item| matches!(item, Ok(None))));
    });
}

#[test]
fn each_server_tells_its_version_and_statistics_and_forgets() {
    on_each(|client| {
        let versions = client.version();
        assert!(matches!(versions.as_slice(), [Ok(version)] if version.starts_with("1.6")), "{versions:?}");
        client.set(b"k", b"v", Put::default()).expect("it is stored");
        for argument in ["", "settings"] {
            let stats = client.stats(argument).remove(0).expect("it answers");
            assert!(stats.len() > 20 && stats.iter().all(|(name, _)| !name.is_empty()), "{argument}");
        }
        assert!(client.stats("reset").remove(0).is_ok());
        assert!(matches!(client.stats("a\r\nflush_all").remove(0), Err(Error::Argument(_))));
        assert!(matches!(client.stats("nonsense").remove(0), Err(Error::Refused { .. })));
        assert_eq!(value(client, b"k"), Some(b"v".to_vec()));
        std::thread::sleep(Duration::from_millis(1100));
        assert!(client.flush_all(0).iter().all(Result::is_ok));
        assert_eq!(value(client, b"k"), None);
        let shown = client.debug(b"k").expect("it answers");
        assert_eq!(shown, None);
        client.set(b"k", b"v", Put::default()).expect("it is stored");
        assert!(client.debug(b"k").expect("it answers").is_some_and(|facts| facts.contains("exp=-1")));
    });
}

#[test]
fn a_value_too_large_is_refused_and_the_connection_stays() {
    on_each(|client| {
        let refused = client.set(b"k", &vec![0; 3 << 20], Put::default()).expect_err("it is too large");
        assert!(matches!(&refused, Error::Refused { line, .. } if line.contains("too large")), "{refused}");
        client.set(b"k", b"v", Put::default()).expect("it is stored");
        let bytes = client.options().value_bytes_max + 1;
        let refused = client.set(b"k", &vec![0; bytes], Put::default()).expect_err("it is not even sent");
        assert!(matches!(refused, Error::ValueTooLarge { .. }));
        assert_eq!(value(client, b"k"), Some(b"v".to_vec()));
    });
}

#[test]
fn a_unix_socket_serves_as_well() {
    for daemon in each_on_unix_socket() {
        let client = daemon.client(patient());
        client.set(b"k", b"v", Put::default()).expect("it is stored");
        assert_eq!(value(&client, b"k"), Some(b"v".to_vec()));
    }
}

#[test]
fn threads_share_a_client_and_no_increment_is_lost() {
    for daemon in each(&[]) {
        for threads in [1, 2, 4, 64] {
            let client = daemon.client(patient());
            client.set(b"n", b"0", Put::default()).expect("it is stored");
            let one = || client.incr(b"n", 1).expect("it answers").expect("it is there");
            let count = || (0..500).map(|_| one()).collect::<Vec<u64>>();
            let seen: Vec<u64> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..threads).map(|_| scope.spawn(count)).collect();
                threads.into_iter().flat_map(|thread| thread.join().expect("it counts")).collect()
            });
            let mut sorted = seen;
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(1..=threads * 500), "{} with {threads} threads", daemon.name);
        }
    }
}
