//! Reads a placement and servers from words.

use larder_client::Server;
use larder_client::routing::{KeyHash, Placement};

pub fn placement(word: &str) -> Option<Placement> {
    Some(match word {
        "rendezvous" => Placement::Rendezvous,
        "ketama" => Placement::Ketama(KeyHash::OneAtATime),
        "ketama-md5" => Placement::Ketama(KeyHash::Md5),
        "weighted" => Placement::KetamaWeighted,
        "twemproxy" => Placement::Twemproxy(KeyHash::Fnv1a64),
        "twemproxy-md5" => Placement::Twemproxy(KeyHash::Md5),
        _ => return None,
    })
}

/// Reads `ADDRESS`, `ADDRESS,WEIGHT` or `ADDRESS,WEIGHT,NAME`.
pub fn server(word: &str) -> Option<Server> {
    let mut parts = word.split(',');
    let server: Server = parts.next()?.parse().ok()?;
    let server = match parts.next() {
        Some(weight) => server.weighing(weight.parse().ok()?),
        None => server,
    };
    Some(match parts.next() {
        Some(name) => server.named(name),
        None => server,
    })
}

/// Returns the two bytes of a hash tag such as `{}`.
pub fn hash_tag(word: &str) -> Option<(u8, u8)> {
    <[u8; 2]>::try_from(word.as_bytes()).ok().map(|[open, close]| (open, close))
}
