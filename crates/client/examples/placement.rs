//! Prints which server each key belongs to: `placement PLACEMENT ADDRESS[,WEIGHT[,NAME]]...` reads keys from standard
//! input, one a line, and writes the number of a server for each. No server is contacted. The variable `HASH_TAG` may
//! hold two bytes such as `{}`.

use std::io::{self, BufRead, BufWriter, Write};
use std::process::ExitCode;

use larder_client::routing::{KeyHash, Placement};
use larder_client::{Client, Options, Server};

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

/// Reads `ADDRESS`, `ADDRESS,WEIGHT` or `ADDRESS,WEIGHT,NAME`.
fn server(word: &str) -> Option<Server> {
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

fn client() -> Option<Client> {
    let mut words = std::env::args().skip(1);
    let placement = placement(&words.next()?)?;
    let tag: Option<[u8; 2]> = std::env::var("HASH_TAG").ok().and_then(|tag| tag.as_bytes().try_into().ok());
    let hash_tag = tag.map(|[open, close]| (open, close));
    let servers: Option<Vec<Server>> = words.map(|word| server(&word)).collect();
    Client::new(servers?, Options { placement, hash_tag, ..Options::default() }).ok()
}

fn main() -> ExitCode {
    let Some(client) = client() else {
        eprintln!(
            "usage: placement rendezvous|ketama|ketama-md5|weighted|twemproxy|twemproxy-md5 \
             ADDRESS[,WEIGHT[,NAME]]... < KEYS"
        );
        return ExitCode::FAILURE;
    };
    let mut out = BufWriter::new(io::stdout().lock());
    for key in io::stdin().lock().split(b'\n') {
        if key.and_then(|key| writeln!(out, "{}", client.server_of(&key))).is_err() {
            return ExitCode::FAILURE;
        }
    }
    if out.flush().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
