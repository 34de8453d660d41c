//! Many keys at once, over several servers, in both directions.

use std::io::{Read, Write};
use std::time::Duration;

use larder_client::{Client, Error, Options, Put};

use crate::fake::{Fake, hang, opaque, patient, read_line};
use crate::servers::{client_of, fleets};

/// Values that differ by key, of one size.
fn items(count: usize, size: usize) -> Vec<(String, Vec<u8>)> {
    let value = |number: usize| (0..size).map(|at| (at * 7 + number * 13 + at / 251) as u8).collect();
    (0..count).map(|number| (format!("key:{number}"), value(number))).collect()
}

fn round_trip(client: &Client, items: &[(String, Vec<u8>)]) {
    let stored = client.set_many(items, Put { flags: 9, exptime: 0 });
    assert_eq!(stored.len(), items.len());
    for result in stored {
        assert!(matches!(result, Ok(Some(_))), "{result:?}");
    }
    let keys: Vec<&str> = items.iter().map(|(key, _)| key.as_str()).collect();
    let found = client.gets_many(&keys);
    assert_eq!(found.len(), items.len());
    for (item, (key, value)) in found.into_iter().zip(items) {
        let item = item.expect("it answers").unwrap_or_else(|| panic!("{key} is missing"));
        assert!(item.value == *value && item.flags == 9 && item.cas.is_some(), "{key}");
    }
}

#[test]
fn batches_of_all_shapes_pass_in_both_directions() {
    for fleet in fleets(3, &["-I", "4m"]) {
        for servers in 1..=3 {
            let client = client_of(&fleet[..servers], patient());
            for (count, size) in
                [(0, 0), (1, 0), (1, 1), (7, 100), (1000, 100), (10_000, 3000), (100, 1_000_000)]
            {
                round_trip(&client, &items(count, size));
            }
        }
    }
}

#[test]
fn a_batch_holds_hits_misses_and_bad_keys_each_in_its_place() {
    for fleet in fleets(3, &[]) {
        let client = client_of(&fleet, patient());
        let items = items(300, 10);
        client.set_many(&items, Put::default());
        let mut keys: Vec<String> = Vec::new();
        for (key, _) in &items {
            keys.extend([key.clone(), format!("no {key}"), String::new()]);
        }
        for (at, result) in client.get_many(&keys).into_iter().enumerate() {
            match at % 3 {
                0 => assert_eq!(result.expect("it answers").expect("it is there").value, items[at / 3].1),
                1 => assert_eq!(result.expect("it answers"), None),
                _ => assert!(matches!(result, Err(Error::Key(_)))),
            }
        }
        let removed = client.delete_many(&keys);
        assert!(removed.iter().step_by(3).all(|removed| matches!(removed, Ok(true))));
        assert!(removed.iter().skip(1).step_by(3).all(|removed| matches!(removed, Ok(false))));
    }
}

#[test]
fn a_batch_refused_in_parts_stores_the_rest() {
    for fleet in fleets(2, &[]) {
        let client = client_of(&fleet, patient());
        let mut items = items(20, 10);
        items[3].1 = vec![0; 2 << 20];
        items[11].0 = String::new();
        for (at, result) in client.set_many(&items, Put::default()).into_iter().enumerate() {
            match at {
                3 => assert!(matches!(result, Err(Error::Refused { .. })), "{result:?}"),
                11 => assert!(matches!(result, Err(Error::Key(_)))),
                _ => assert!(result.is_ok(), "{result:?}"),
            }
        }
    }
}

#[test]
fn a_server_that_hangs_fails_its_own_keys_only() {
    for fleet in fleets(2, &[]) {
        let hung = Fake::start(|_, peer| hang(peer));
        let servers = fleet.iter().map(|daemon| daemon.server()).chain([hung.server()]);
        let timeout = Duration::from_secs(1);
        let client = Client::new(servers, Options { timeout, ..patient() }).expect("servers");
        let items = items(300, 1000);
        for (result, (key, _)) in client.set_many(&items, Put::default()).into_iter().zip(&items) {
            let is_hung = client.server_of(key.as_bytes()) == 2;
            assert_eq!(matches!(result, Err(Error::Timeout { .. })), is_hung, "{key}: {result:?}");
            assert_eq!(result.is_ok(), !is_hung);
        }
    }
}

#[test]
fn threads_with_batches_over_the_same_servers_do_not_wait_for_each_other_for_ever() {
    for fleet in fleets(3, &[]) {
        let limits = Options { connections_max: 2, ..patient() };
        let client = client_of(&fleet, limits);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..20).for_each(|_| round_trip(&client, &items(100, 500))));
            }
        });
    }
}

/// 30 MB each way, which no socket's buffers hold: a client that writes everything before it reads would wait for a
/// server that waits for it.
#[test]
fn a_server_that_answers_at_length_while_it_is_written_to_is_no_deadlock() {
    let fake = Fake::start(move |_, mut peer| {
        let letters = "y".repeat(3000);
        while let Some(line) = read_line(&mut peer) {
            let len: usize = line.split(' ').nth(2).and_then(|len| len.parse().ok()).expect("a length");
            peer.read_exact(&mut vec![0; len + 2]).expect("the value comes");
            // A letter that a later version might have, with a long token.
            peer.write_all(format!("HD c1 {letters}{}\r\n", opaque(&line)).as_bytes()).expect("it is taken");
        }
    });
    let client = fake.client(Options { timeout: Duration::from_secs(5), ..patient() });
    let stored = client.set_many(&items(10_000, 3000), Put::default());
    assert!(stored.iter().all(|stored| matches!(stored, Ok(Some(1)))), "{:?}", stored.last());
}
