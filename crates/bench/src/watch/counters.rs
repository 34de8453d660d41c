//! A server's own counters, asked for over its own protocol on a connection of their own.

use crate::net::{Address, Stream, Tls};
use crate::wire::{Login, Protocol};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_millis(500);
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// A server's version and counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Its name and version.
    pub server: String,
    /// Its counters and gauges; larder's own begin with `larder.`.
    pub values: BTreeMap<String, String>,
}

/// Asks a server. memcached's relatives answer text on any connection, whatever else they speak.
///
/// # Errors
/// It does not answer, answers in another protocol, or refuses the login.
pub fn ask(
    address: &Address,
    protocol: Protocol,
    tls: Option<&Tls>,
    login: Option<&Login>,
) -> io::Result<Counters> {
    let mut stream = Stream::connect_waiting(address, tls, PATIENCE).map_err(io::Error::other)?;
    if let Some(login) = login {
        let spoken = if protocol == Protocol::Resp2 { protocol } else { Protocol::Text };
        stream.log_in(login, spoken).map_err(io::Error::other)?;
    }
    if protocol == Protocol::Resp2 {
        stream.write_all(b"*1\r\n$4\r\nINFO\r\n")?;
        return Ok(redis(&until(&mut stream, is_whole_bulk)?));
    }
    stream.write_all(b"version\r\n")?;
    let version = until(&mut stream, |text| text.ends_with("\r\n"))?;
    stream.write_all(b"stats\r\n")?;
    let general = until(&mut stream, is_closed)?;
    stream.write_all(b"stats larder\r\n")?;
    // A server without it may reply with any error, or not at all.
    let own = until(&mut stream, is_closed).unwrap_or_default();
    Ok(memcached(&version, &general, &own))
}

fn until(stream: &mut Stream, is_whole: impl Fn(&str) -> bool) -> io::Result<String> {
    let mut text = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        let read = stream.read(&mut piece)?;
        if read == 0 || text.len() > ANSWER_BYTES_MAX {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        text.extend_from_slice(&piece[..read]);
        let so_far = String::from_utf8_lossy(&text);
        if is_whole(&so_far) {
            return Ok(so_far.into_owned());
        }
    }
}

fn is_closed(text: &str) -> bool {
    let last = text.trim_end().lines().next_back().unwrap_or_default();
    text.ends_with("\r\n") && (last == "END" || last == "RESET" || last.contains("ERROR"))
}

fn is_whole_bulk(text: &str) -> bool {
    let Some((head, rest)) = text.split_once("\r\n") else { return false };
    match head.strip_prefix('$').and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => rest.len() >= length + 2,
        None => true,
    }
}

fn stats(text: &str) -> impl Iterator<Item = (String, String)> + '_ {
    text.lines().filter_map(|line| {
        let (name, value) = line.trim_end().strip_prefix("STAT ")?.split_once(' ')?;
        Some((name.to_string(), value.to_string()))
    })
}

fn memcached(version: &str, general: &str, own: &str) -> Counters {
    let mut values: BTreeMap<String, String> = stats(general).collect();
    values.extend(stats(own).map(|(name, value)| (format!("larder.{name}"), value)));
    let version = version.trim_end().strip_prefix("VERSION ").unwrap_or("of unknown version");
    let server = match values.get("larder.version") {
        Some(version) => format!("larder {version}"),
        None => format!("memcached {version}"),
    };
    Counters { server, values }
}

fn redis(info: &str) -> Counters {
    let lines = info.lines().filter(|line| !line.starts_with(['#', '$', '-']));
    let pairs = lines.filter_map(|line| line.trim_end().split_once(':'));
    let values: BTreeMap<String, String> =
        pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let name = if values.contains_key("valkey_version") { "valkey" } else { "redis" };
    let version = values.get(&format!("{name}_version")).map_or("", String::as_str);
    Counters { server: format!("{name} {version}").trim_end().to_string(), values }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_apart() {
        let plain = memcached("VERSION 1.6.18\r\n", "STAT cmd_get 5\r\nEND\r\n", "ERROR\r\n");
        assert_eq!(plain.server, "memcached 1.6.18");
        assert_eq!(plain.values.get("cmd_get").map(String::as_str), Some("5"));
        let own = memcached("VERSION 1.6.45\r\n", "END\r\n", "STAT version 0.1.0\r\nSTAT io none\r\nEND\r\n");
        assert_eq!(own.server, "larder 0.1.0");
        assert!(own.values.contains_key("larder.io"));
        let redis = redis("$60\r\n# Server\r\nredis_version:7.0.15\r\nused_memory:100\r\n\r\n");
        assert_eq!(redis.server, "redis 7.0.15");
        assert_eq!(redis.values.len(), 2);
    }

    #[test]
    fn an_answer_is_read_to_its_end() {
        assert!(!is_closed("STAT a 1\r\nEN") && is_closed("STAT a 1\r\nEND\r\n") && is_closed("ERROR\r\n"));
        assert!(!is_whole_bulk("$5\r\nabc") && is_whole_bulk("$3\r\nabc\r\n") && is_whole_bulk("-ERR x\r\n"));
    }
}
