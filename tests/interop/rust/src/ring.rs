//! One client that spreads its keys over several servers.

use crate::{Done, HOUR, check, value_of};
use memcache::Client;
use std::collections::HashMap;

const KEYS: usize = 3000;

/// Stores and reads keys on servers of the loopback.
pub fn run(protocol: &str, ports: &[&str]) -> Done {
    let url = |port: &&str| format!("memcache://127.0.0.1:{port}?protocol={protocol}&timeout=60");
    let client = Client::connect(ports.iter().map(url).collect::<Vec<String>>())?;
    let keys: Vec<String> = (0..KEYS).map(|at| format!("ring:{at}")).collect();
    for (at, key) in keys.iter().enumerate() {
        client.set(key, value_of(at).as_slice(), HOUR)?;
    }
    let names: Vec<&str> = keys.iter().map(String::as_str).collect();
    let found: HashMap<String, Vec<u8>> = client.gets(&names)?;
    let same = keys.iter().enumerate().all(|(at, key)| found.get(key) == Some(&value_of(at)));
    check(&format!("ring, {protocol}: a get of all keys"), (found.len(), same), (KEYS, true));
    let one_by_one = keys
        .iter()
        .enumerate()
        .all(|(at, key)| client.get::<Vec<u8>>(key).is_ok_and(|value| value == Some(value_of(at))));
    check(&format!("ring, {protocol}: each key"), one_by_one, true);
    check(&format!("ring, {protocol}: versions"), client.version()?.len(), ports.len());
    Ok(())
}
