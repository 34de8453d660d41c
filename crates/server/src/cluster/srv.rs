//! The servers that SRV records name, with their addresses.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use larder_protocol::ClusterNode;

use super::NODES_MAX;
use super::message::Kind;
use super::resolver::Resolver;

/// The time that all queries of one renewal may take.
const RENEWAL: Duration = Duration::from_secs(15);
/// The bounds of the time between two renewals, whatever the records allow.
const TTL_MIN: Duration = Duration::from_secs(2);
const TTL_MAX: Duration = Duration::from_secs(300);

/// The servers, in the order of their names, and when to look again.
pub struct Found {
    /// The servers.
    pub nodes: Vec<ClusterNode>,
    /// The time until the next renewal.
    pub renew: Duration,
}

/// Returns the servers that a name's records name. A server whose address cannot be found has that which it had
/// `before`, or none.
///
/// # Errors
/// DNS fails, or names no server or too many.
pub fn look_up(resolver: &Resolver, name: &str, before: &[ClusterNode]) -> Result<Found, String> {
    let deadline = Instant::now() + RENEWAL;
    let answer = resolver.search(name, Kind::Srv, deadline)?;
    let mut targets = answer.targets;
    targets.sort();
    targets.dedup();
    match targets.len() {
        0 => return Err(format!("the SRV records of {name} name no server")),
        count if count > NODES_MAX => {
            return Err(format!("the SRV records of {name} name {count} servers, more than {NODES_MAX}"));
        }
        _ => {}
    }
    let mut addresses: HashMap<&str, IpAddr> = HashMap::new();
    for (host, address) in &answer.addresses {
        addresses.entry(host).and_modify(|known| *known = (*known).min(*address)).or_insert(*address);
    }
    let mut asked: HashMap<&str, String> = HashMap::new();
    let mut nodes = Vec::new();
    for (host, port) in &targets {
        let ip = match (addresses.get(host.as_str()), asked.get(host.as_str())) {
            (Some(address), _) => address.to_string(),
            (None, Some(known)) => known.clone(),
            (None, None) => {
                let known = before.iter().find(|node| node.host == *host).map(|node| node.ip.clone());
                let ip = address(resolver, host, deadline).map(|address| address.to_string());
                let ip = ip.or(known).unwrap_or_default();
                asked.insert(host, ip.clone());
                ip
            }
        };
        nodes.push(ClusterNode { host: host.clone(), ip, port: *port });
    }
    Ok(Found { nodes, renew: renewal(answer.ttl_s) })
}

/// Returns the lowest address of a host, IPv4 before IPv6, so that it does not change with the order of answers.
fn address(resolver: &Resolver, host: &str, deadline: Instant) -> Option<IpAddr> {
    [Kind::A, Kind::Aaaa].into_iter().find_map(|kind| {
        let answer = resolver.ask(&format!("{host}."), kind, deadline).ok()??;
        answer.addresses.into_iter().map(|(_, address)| address).min()
    })
}

/// Returns the time until the next renewal.
fn renewal(ttl_s: Option<u32>) -> Duration {
    Duration::from_secs(u64::from(ttl_s.unwrap_or(0))).clamp(TTL_MIN, TTL_MAX)
}

/// The time until the next try after a failure.
pub const RETRY: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_records_is_bounded_below_and_above() {
        let seconds = |ttl_s| renewal(ttl_s).as_secs();
        assert_eq!([seconds(None), seconds(Some(0)), seconds(Some(30))], [2, 2, 30]);
        assert_eq!(seconds(Some(u32::MAX)), 300);
    }
}
