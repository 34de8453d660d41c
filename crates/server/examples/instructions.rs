//! A server without sockets doing one thing many times, to be counted by callgrind: what is left is parsing,
//! hashing, the store and the encoding of replies. `tests/interop/instructions` runs it and holds the bounds.
//!
//! `instructions CASE COUNT` does the case's work COUNT times. Two counts tell what one more costs.

#[path = "../tests/support/mod.rs"]
mod support;

use std::fmt::Write;

use support::{Client, Server};

/// Items of each case, and bytes of their values.
const ITEMS: u64 = 10_000;
const VALUE_BYTES: usize = 100;
/// Requests in a batch.
const BATCH: u64 = 32;

fn request(case: &str, number: u64) -> String {
    // Far apart, as real keys are.
    let key = number.wrapping_mul(0x9E37_79B9) % ITEMS;
    match case {
        "get" | "ssd-get" => format!("get key-{key:08}\r\n"),
        "set" => format!("set key-{key:08} 0 0 {VALUE_BYTES}\r\n{}\r\n", "v".repeat(VALUE_BYTES)),
        "miss" => format!("get absent-{key:08}\r\n"),
        "get-batch" => (0..BATCH).fold(String::new(), |all, i| all + &request("get", number * BATCH + i)),
        "meta-batch" => (0..BATCH).fold(String::new(), |mut all, i| {
            let key = (number * BATCH + i).wrapping_mul(0x9E37_79B9) % ITEMS;
            write!(all, "mg key-{key:08} v\r\n").expect("memory takes it");
            all
        }),
        "multi-get" => {
            let keys = (0..100).map(|i| (number * 100 + i).wrapping_mul(0x9E37_79B9) % ITEMS);
            keys.fold("get".to_string(), |all, key| format!("{all} key-{key:08}")) + "\r\n"
        }
        other => {
            eprintln!("instructions: there is no case {other}");
            std::process::exit(2);
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, case, count] = &args[..] else {
        eprintln!("usage: instructions CASE COUNT");
        std::process::exit(2);
    };
    let count: u64 = count.parse().expect("a number of times");
    let server = if case == "ssd-get" { Server::ssd() } else { Server::ram() };
    let mut client = Client::new();
    for number in 0..ITEMS {
        client.send(&server, request("set", number).as_bytes());
    }
    if case == "ssd-get" {
        server.push_out();
    }
    client.got.clear();
    // As many different ones as there are items, made before: they cost the same whatever the count.
    let requests: Vec<String> = (0..ITEMS / BATCH).map(|number| request(case, number)).collect();
    let mut answered = 0;
    for request in requests.iter().cycle().take(count as usize) {
        client.send(&server, request.as_bytes());
        while !client.owed.is_empty() {
            client.deliver(&server, 0, true);
        }
        answered += client.got.len();
        client.got.clear();
    }
    println!("{answered}");
}
