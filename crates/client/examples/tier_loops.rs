//! Sets a value once and runs a loop over it, for `larder-bench`, which runs the same loops with other clients:
//! `tier_loops STORE LOOP ITERATIONS SECONDS FILE FOLDER KEY NEAR FAR`.
//!
//! The store is `client` (the server FAR alone), `l1` (shared memory in FOLDER alone) or `tiered` (both). The loop is
//! `get`, `set` or `set+get`. The value is FILE's content; NEAR is not used. It ends after so many iterations or
//! seconds, whichever comes first, and prints one line: iterations, seconds, misses, wrong values, values that came
//! from shared memory, gets that went to the server.

use std::error::Error;
use std::fs;
use std::time::{Duration, Instant};

use larder_client::{
    Client, Entry, L1, L1Options, Options, Put, Server, Source, Stored, Tiered, TieredOptions, now_ms,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The value lives on a server for so long, if nothing removes it.
const LIVES_S: i32 = 3600;
const LIVES_MS: u64 = 3_600_000;
/// Iterations between two looks at the clock.
const CLOCK_EVERY: u64 = 16;

enum Store {
    Client(Client),
    L1(L1),
    Tiered(Box<Tiered>),
}

#[derive(Default)]
struct Counts {
    misses: u64,
    wrong: u64,
    near: u64,
    far: u64,
}

fn client(far: &str) -> Result<Client> {
    // As patient as the loops in Perl: a busy host is no failure of the server.
    let (connect_timeout, timeout) = (Duration::from_secs(5), Duration::from_secs(10));
    let options = Options { connect_timeout, timeout, ..Options::default() };
    Ok(Client::new([far.parse::<Server>()?], options)?)
}

fn l1(folder: &str) -> Result<L1> {
    Ok(L1Options::new().directory(format!("{folder}/l1")).open("tier_loops")?)
}

impl Store {
    fn open(name: &str, folder: &str, far: &str) -> Result<Store> {
        Ok(match name {
            "client" => Store::Client(client(far)?),
            "l1" => Store::L1(l1(folder)?),
            "tiered" => {
                let tiered = Tiered::new(l1(folder)?, client(far)?, TieredOptions::default());
                Store::Tiered(Box::new(tiered))
            }
            _ => return Err("the store is client, l1 or tiered".into()),
        })
    }

    fn set(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let put = Put::for_seconds(LIVES_S);
        match self {
            Store::Client(client) => client.set(key, value, put).map(drop)?,
            Store::Tiered(tiered) => tiered.set(key, value, put)?,
            Store::L1(l1) => {
                let until_ms = now_ms() + LIVES_MS;
                let entry =
                    Entry { value, fresh_until_ms: until_ms, stale_until_ms: until_ms, ..Entry::default() };
                if l1.set(key, &entry) != Stored::Yes {
                    return Err("it does not fit".into());
                }
            }
        }
        Ok(())
    }

    /// Gets the value into `buffer` and returns whether there is one.
    fn get(&self, key: &[u8], buffer: &mut Vec<u8>, counts: &mut Counts) -> Result<bool> {
        let found = match self {
            Store::Client(client) => {
                counts.far += 1;
                client.get(key)?.map(|item| item.value)
            }
            Store::L1(l1) => {
                let is_hit = l1.get(key, buffer).is_some();
                counts.near += u64::from(is_hit);
                return Ok(is_hit);
            }
            Store::Tiered(tiered) => {
                let found = tiered.get_reusing(key, std::mem::take(buffer))?;
                match found.as_ref().map(|cached| cached.source) {
                    Some(Source::L1) => counts.near += 1,
                    Some(Source::Stale) => return Err("the server did not answer".into()),
                    _ => counts.far += 1,
                }
                found.map(|cached| cached.value)
            }
        };
        let is_hit = found.is_some();
        *buffer = found.unwrap_or_default();
        Ok(is_hit)
    }
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [store, name, iterations, seconds, file, folder, key, _near, far] = words[..] else {
        return Err("usage: tier_loops STORE LOOP ITERATIONS SECONDS FILE FOLDER KEY NEAR FAR".into());
    };
    let (is_get, is_set) = match name {
        "get" => (true, false),
        "set" => (false, true),
        "set+get" => (true, true),
        _ => return Err("the loop is get, set or set+get".into()),
    };
    let (iterations, limit) = (iterations.parse::<u64>()?, Duration::try_from_secs_f64(seconds.parse()?)?);
    let (key, value) = (key.as_bytes(), fs::read(file)?);
    let store = Store::open(store, folder, far)?;
    store.set(key, &value).map_err(|error| format!("the value cannot be set: {error}"))?;
    let (mut counts, mut buffer, mut done) = (Counts::default(), Vec::new(), 0);
    let start = Instant::now();
    while done < iterations && !(done % CLOCK_EVERY == CLOCK_EVERY - 1 && start.elapsed() > limit) {
        if is_set {
            store.set(key, &value)?;
        }
        if is_get {
            if !store.get(key, &mut buffer, &mut counts)? {
                counts.misses += 1;
                store.set(key, &value)?;
            } else if buffer != value {
                counts.wrong += 1;
            }
        }
        done += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    let Counts { misses, wrong, near, far } = counts;
    println!("{done} {seconds:.6} {misses} {wrong} {near} {far}");
    Ok(())
}
