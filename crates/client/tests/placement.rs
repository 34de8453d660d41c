//! Placement against golden data that pymemcache, libmemcached and twemproxy themselves have made.

use larder_client::routing::{KeyHash, Node, Placement, Router};

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

fn router(setting: &str) -> Router {
    let mut words = setting.split(' ');
    let placement = placement(words.next().expect("a placement"));
    let tag = words.next().expect("a hash tag or a dash").as_bytes();
    let tag = <[u8; 2]>::try_from(tag).ok().map(|[open, close]| (open, close));
    let nodes = words.map(|word| {
        let (name, weight) = word.split_once(',').unwrap_or((word, "1"));
        Node { name: name.to_string(), weight: weight.parse().expect("a weight") }
    });
    Router::new(placement, &nodes.collect::<Vec<_>>(), tag)
}

#[test]
fn keys_are_placed_as_the_golden_data_has_them() {
    let mut router_now = None;
    let (mut settings, mut keys) = (0, 0);
    for line in include_str!("data/placement.txt").lines() {
        if let Some(setting) = line.strip_prefix("@ ") {
            router_now = Some((router(setting), setting));
            settings += 1;
        } else if !line.starts_with('#') {
            let (number, key) = line.split_once(' ').expect("a number and a key");
            let (router, setting) = router_now.as_ref().expect("a setting goes before keys");
            let placed = router.pick(key.as_bytes(), |_| true);
            assert_eq!(placed, number.parse().ok(), "{key} by {setting}");
            keys += 1;
        }
    }
    assert!(settings >= 40 && keys >= 2000, "{settings} settings, {keys} keys");
}
