//! The servers of a cluster, as clients with auto-discovery ask for them (AWS ElastiCache's auto-discovery).

use super::number;

/// A server of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNode {
    /// The name or address, without a blank, a line's end or `|`.
    pub host: String,
    /// The address; empty if it is not known.
    pub ip: String,
    /// The TCP port.
    pub port: u16,
}

/// Appends the reply to `config get cluster`: a version, which grows when the servers change, and the servers.
pub fn cluster_reply(out: &mut Vec<u8>, version: u64, nodes: &[ClusterNode]) {
    let nodes: Vec<String> =
        nodes.iter().map(|node| format!("{}|{}|{}", node.host, node.ip, node.port)).collect();
    let text = format!("{version}\n{}\n", nodes.join(" "));
    out.extend_from_slice(b"CONFIG cluster 0 ");
    number::push(out, text.len() as u64);
    out.extend_from_slice(format!("\r\n{text}\r\nEND\r\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_covers_the_version_and_the_servers_with_their_line_ends() {
        let node = |host: &str, ip: &str| ClusterNode { host: host.into(), ip: ip.into(), port: 11211 };
        let mut reply = Vec::new();
        cluster_reply(&mut reply, 7, &[node("a.example", "10.0.0.1"), node("b.example", "")]);
        let expected = "CONFIG cluster 0 44\r\n7\na.example|10.0.0.1|11211 b.example||11211\n\r\nEND\r\n";
        assert_eq!(reply.escape_ascii().to_string(), expected.as_bytes().escape_ascii().to_string());
    }
}
