//! The crate `memcache` through its whole API; see `run_script` in `larder_test.py` for the lines that this speaks.
//!
//! Arguments: `ascii`, `binary` or `meta`, then HOST PORT; or `ring`, a protocol, and the ports of several servers.

mod classic;
mod meta;
mod ring;

use std::error::Error;
use std::io::{self, BufRead};

/// The result of everything that talks to a server.
type Done<T = ()> = Result<T, Box<dyn Error>>;

const HOUR: u32 = 3600;
const SIZES: [usize; 8] = [0, 1, 100, 3 << 10, 20 << 10, 100 << 10, 700 << 10, (1 << 20) - 512];
const BATCHES: [usize; 4] = [1, 2, 50, 1000];
const TAIL: &[u8] = b"\r\n<tail>";

/// Bytes of every kind, the same for the same size.
fn value_of(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 256 * 31 + size) as u8).collect()
}

fn joined(first: &[u8], second: &[u8]) -> Vec<u8> {
    [first, second].concat()
}

fn check<T: PartialEq + std::fmt::Debug>(name: &str, got: T, want: T) {
    if got == want {
        println!("ok {name}");
    } else {
        let short = |value: T| format!("{value:?}").chars().take(100).collect::<String>();
        println!("not ok {name}: got {}, want {}", short(got), short(want));
    }
}

/// Writes a line for the suite, and returns its reply.
fn ask(line: &str) -> Done<String> {
    println!("{line}");
    let mut reply = String::new();
    io::stdin().lock().read_line(&mut reply)?;
    Ok(reply.trim().to_string())
}

fn check_seconds_left(name: &str, key: &str, most: u64) -> Done {
    let left = ask(&format!("ttl {key}"))?;
    let fits = left.parse::<u64>().is_ok_and(|left| left + 100 >= most && left <= most);
    check(&format!("{name}: {left} seconds left"), fits, true);
    Ok(())
}

fn main() -> Done {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ring", protocol, ports @ ..] => ring::run(protocol, ports),
        ["meta", host, port] => meta::run(&format!("{host}:{port}")),
        [protocol, host, port] => classic::run(protocol, &format!("{host}:{port}")),
        _ => Err("PROTOCOL HOST PORT, or ring PROTOCOL PORT...".into()),
    }
}
