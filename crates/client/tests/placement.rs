//! Placement against golden data that pymemcache, libmemcached and twemproxy themselves have made.

#[path = "../examples/placement/setting.rs"]
mod setting;

use larder_client::{Client, Options};

fn client(setting: &str) -> Client {
    let mut words = setting.split(' ');
    let placement = setting::placement(words.next().expect("a placement")).expect("a known placement");
    let hash_tag = setting::hash_tag(words.next().expect("a hash tag or a dash"));
    let servers = words.map(|word| setting::server(word).expect("a server"));
    Client::new(servers, Options { placement, hash_tag, ..Options::default() }).expect("servers")
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
