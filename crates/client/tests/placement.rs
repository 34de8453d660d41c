//! Placement against golden data that pymemcache, libmemcached and twemproxy themselves have made.

use larder_client::routing::{KeyHash, Placement};
use larder_client::{Client, Options, Server};

fn placement(word: &str) -> Placement {
    match word {
        "rendezvous" => Placement::Rendezvous,
        "ketama" => Placement::Ketama(KeyHash::OneAtATime),
        "ketama-md5" => Placement::Ketama(KeyHash::Md5),
        "weighted" => Placement::KetamaWeighted,
        "twemproxy" => Placement::Twemproxy(KeyHash::Fnv1a64),
        "twemproxy-md5" => Placement::Twemproxy(KeyHash::Md5),
        other => panic!("an unknown placement: {other}"),
    }
}

/// Reads `ADDRESS`, `ADDRESS,WEIGHT` or `ADDRESS,WEIGHT,NAME`.
fn server(word: &str) -> Server {
    let parts: Vec<&str> = word.split(',').collect();
    let server: Server = parts[0].parse().expect("an address");
    let weight = parts.get(1).map_or(1, |weight| weight.parse().expect("a weight"));
    let server = server.weighing(weight);
    parts.get(2).map_or(server.clone(), |name| server.named(*name))
}

fn client(setting: &str) -> Client {
    let mut words = setting.split(' ');
    let placement = placement(words.next().expect("a placement"));
    let tag = words.next().expect("a hash tag or a dash").as_bytes();
    let hash_tag = <[u8; 2]>::try_from(tag).ok().map(|[open, close]| (open, close));
    Client::new(words.map(server), Options { placement, hash_tag, ..Options::default() }).expect("servers")
}

#[test]
fn keys_are_placed_as_the_golden_data_has_them() {
    let mut now = None;
    let (mut settings, mut keys) = (0, 0);
    for line in include_str!("data/placement.txt").lines() {
        if let Some(setting) = line.strip_prefix("@ ") {
            now = Some((client(setting), setting));
            settings += 1;
        } else if !line.starts_with('#') {
            let (number, key) = line.split_once(' ').expect("a number and a key");
            let (client, setting) = now.as_ref().expect("a setting goes before keys");
            let placed = client.server_of(key.as_bytes());
            assert_eq!(Some(placed), number.parse().ok(), "{key} by {setting}");
            keys += 1;
        }
    }
    assert!(settings >= 35 && keys >= 1800, "{settings} settings, {keys} keys");
}
