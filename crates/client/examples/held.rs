//! Prints until when a value whose changes are announced is used without asking its server: a line when that begins,
//! and one when it ends, such as after the link to the server was cut.
//!
//! `cargo run --release -p larder-client --example held SERVER WITHIN_MS`
//!
//! WITHIN_MS is the option `exact_within`; 0 for `None`. Times are those of `CLOCK_MONOTONIC`, in microseconds.

use std::error::Error;
use std::thread::sleep;
use std::time::{Duration, Instant};

use larder_client::{Client, L1Options, Options, Push, Put, Source, Tiered, TieredOptions};
use rustix::time::{ClockId, clock_gettime};

/// Nothing here takes this long.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two reads.
const PAUSE: Duration = Duration::from_micros(500);
/// A value counts as held after so many reads that asked no server.
const HELD: u32 = 200;

fn now_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1_000
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [server, within_ms] = words.as_slice() else { return Err("give SERVER WITHIN_MS".into()) };
    let within = Duration::from_millis(within_ms.parse()?);
    let push = Push { exact_within: Some(within).filter(|within| !within.is_zero()), ..Push::default() };
    // What is not announced is asked for at each read.
    let options = TieredOptions { fresh: Duration::ZERO, push: Some(push), ..TieredOptions::default() };
    let client = Client::new([server.parse()?], Options::default())?;
    let tiered = Tiered::new(L1Options::new().bytes(1 << 20).anonymous()?, client, options);
    tiered.set(b"k", b"value", Put::default())?;
    let since = Instant::now();
    let (mut in_a_row, mut last_us) = (0, 0);
    while since.elapsed() < PATIENCE {
        let began_us = now_us();
        match tiered.get(b"k") {
            Ok(Some(cached)) if cached.source == Source::L1 => {
                (in_a_row, last_us) = (in_a_row + 1, began_us);
                if in_a_row == HELD {
                    println!("held {began_us}");
                }
            }
            // The server still answers: this value was asked for, for once.
            Ok(Some(cached)) if cached.source == Source::Server => in_a_row = in_a_row.min(HELD),
            _ if in_a_row >= HELD => {
                println!("last {last_us}");
                return Ok(());
            }
            _ => in_a_row = 0,
        }
        sleep(PAUSE);
    }
    Err("the value was never held, or held until the end".into())
}
