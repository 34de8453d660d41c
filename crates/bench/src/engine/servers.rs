//! Several servers that share the keys of a run, each key on one of them.

use crate::net::Address;
use larder_placement::{KeyHash, Node, Placement, Router, ketama_name};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// How keys are placed, by the name of whose users place them so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout(Placement);

impl FromStr for Layout {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "ketama" => Ok(Self(Placement::KetamaWeighted)),
            "ketama-unweighted" => Ok(Self(Placement::Ketama(KeyHash::OneAtATime))),
            "twemproxy" => Ok(Self(Placement::Twemproxy(KeyHash::Fnv1a64))),
            "rendezvous" => Ok(Self(Placement::Rendezvous)),
            _ => Err("is one of ketama, ketama-unweighted, twemproxy, rendezvous".to_string()),
        }
    }
}

/// Servers that share the keys of a run.
#[derive(Clone, Debug)]
pub struct Servers {
    addresses: Vec<Address>,
    router: Arc<Router>,
}

impl Servers {
    /// Places keys on servers by their addresses.
    ///
    /// # Errors
    /// One is a Unix socket, which clients call by different names.
    pub fn new(addresses: Vec<Address>, Layout(placement): Layout) -> Result<Self, String> {
        let name = |address: &Address| match address {
            Address::Unix(_) => Err("several servers have a host and a port each".to_string()),
            Address::Tcp { .. } if placement == Placement::Rendezvous => Ok(address.to_string()),
            Address::Tcp { host, port } => Ok(ketama_name(host, *port)),
        };
        let names: Vec<String> = addresses.iter().map(name).collect::<Result<_, _>>()?;
        let nodes: Vec<Node> = names.into_iter().map(|name| Node { name, weight: 1 }).collect();
        Ok(Self { addresses, router: Arc::new(Router::new(placement, &nodes, None)) })
    }

    /// The addresses, in the order in which servers have their numbers.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// As many servers that are all in one place; keys belong to the same numbers.
    pub fn all_at(&self, address: &Address) -> Self {
        let addresses = vec![address.clone(); self.addresses.len()];
        Self { addresses, router: Arc::clone(&self.router) }
    }

    /// The number of the server that a key belongs to.
    pub fn pick(&self, key: &[u8]) -> usize {
        self.router.pick(key, |_| true).unwrap_or(0)
    }
}

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.addresses.iter().map(Address::to_string).collect();
        f.write_str(&all.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(layout: &str) -> Servers {
        let address = |port| Address::Tcp { host: "10.0.0.1".to_string(), port };
        let layout = layout.parse().expect("it is one");
        Servers::new([11211, 11212, 11213].map(address).to_vec(), layout).expect("they have ports")
    }

    #[test]
    fn every_layout_uses_all_servers_and_each_its_own_way() {
        let mut all = Vec::new();
        for layout in ["ketama", "ketama-unweighted", "twemproxy", "rendezvous"] {
            let servers = servers(layout);
            let placed: Vec<usize> = (0..3000).map(|n| servers.pick(format!("key:{n}").as_bytes())).collect();
            let counts = [0, 1, 2].map(|server| placed.iter().filter(|at| **at == server).count());
            assert!(counts.iter().all(|count| *count > 500), "{layout}: {counts:?}");
            assert!(!all.contains(&placed), "{layout}");
            all.push(placed);
        }
        assert!("modula".parse::<Layout>().is_err());
    }

    #[test]
    fn in_one_place_keys_keep_their_numbers() {
        let servers = servers("ketama");
        let alike = servers.all_at(&Address::Tcp { host: "null".to_string(), port: 1 });
        assert!((0..100u8).all(|n| servers.pick(&[n]) == alike.pick(&[n])));
        assert_eq!(alike.to_string(), "null:1,null:1,null:1");
    }
}
