//! Prints which server each key belongs to: `placement PLACEMENT ADDRESS[,WEIGHT[,NAME]]...` reads keys from standard
//! input, one a line, and writes the number of a server for each. No server is contacted. The variable `HASH_TAG` may
//! hold two bytes such as `{}`.

use std::io::{self, BufRead, BufWriter, Write};
use std::process::ExitCode;

use larder_client::{Client, Options, Server};

mod setting;

fn client() -> Option<Client> {
    let mut words = std::env::args().skip(1);
    let placement = setting::placement(&words.next()?)?;
    let hash_tag = std::env::var("HASH_TAG").ok().and_then(|tag| setting::hash_tag(&tag));
    let servers: Option<Vec<Server>> = words.map(|word| setting::server(&word)).collect();
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
