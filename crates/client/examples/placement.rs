//! Prints which server each key belongs to: `placement PLACEMENT NAME[,WEIGHT]...` reads keys from standard input, one
//! a line, and writes the number of a server for each. The variable `HASH_TAG` may hold two bytes such as `{}`.

use std::io::{self, BufRead, BufWriter, Write};
use std::process::ExitCode;

use larder_client::routing::{KeyHash, Node, Placement, Router};

fn placement(word: &str) -> Option<Placement> {
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

fn node(word: &str) -> Option<Node> {
    let (name, weight) = word.split_once(',').unwrap_or((word, "1"));
    Some(Node { name: name.to_string(), weight: weight.parse().ok()? })
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let placement = words.next().as_deref().and_then(placement);
    let hash_tag = std::env::var("HASH_TAG").ok().and_then(|tag| tag.as_bytes().try_into().ok());
    let nodes: Option<Vec<Node>> = words.map(|word| node(&word)).collect();
    let (Some(placement), Some(nodes)) = (placement, nodes.filter(|nodes| !nodes.is_empty())) else {
        eprintln!(
            "usage: placement rendezvous|ketama|ketama-md5|weighted|twemproxy|twemproxy-md5 \
             NAME[,WEIGHT]... < KEYS"
        );
        return ExitCode::FAILURE;
    };
    let router = Router::new(placement, &nodes, hash_tag.map(|tag: [u8; 2]| (tag[0], tag[1])));
    let mut out = BufWriter::new(io::stdout().lock());
    for key in io::stdin().lock().split(b'\n') {
        let placed = key.map(|key| router.pick(&key, |_| true));
        let written = placed.and_then(|at| writeln!(out, "{}", at.unwrap_or_default()));
        if written.is_err() {
            return ExitCode::FAILURE;
        }
    }
    if out.flush().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
