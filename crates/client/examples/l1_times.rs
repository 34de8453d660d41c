//! Prints the median time of the cache's calls, for values of several sizes; with a number, how many reads that many
//! processes do a second together while one call in a hundred stores, in one cache or, with `apart`, in one each; with
//! `held` and a server, the median time of a read of a value whose changes that server announces, exact within so many
//! milliseconds, or 0 for no such bound.
//!
//! `cargo run --release -p larder-client --example l1_times [PROCESSES | apart PROCESSES | held SERVER WITHIN_MS]`

use std::hint::black_box;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use larder_client::{
    Client, Entry, L1, L1Options, Options, Push, Put, Source, Tiered, TieredOptions, now_ms,
};

const ROUNDS: usize = 101;
const HOT_KEYS: usize = 100;
const NAME: &str = "l1_times";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        [] => times(),
        ["load", name, millis] => load(name, Duration::from_millis(millis.parse()?)),
        ["held", server, within_ms] => {
            let within = Duration::from_millis(within_ms.parse()?);
            println!("held {:.1} ns", held(server, Some(within).filter(|within| !within.is_zero()))?);
            Ok(())
        }
        [processes] => together(&vec![NAME.to_string(); processes.parse()?]),
        ["apart", processes] => {
            together(&(0..processes.parse()?).map(|nth: usize| format!("{NAME}-{nth}")).collect::<Vec<_>>())
        }
        _ => {
            Err("give nothing, a number of processes, `apart` and one, or `held`, a server and milliseconds"
                .into())
        }
    }
}

fn open(name: &str) -> Result<L1, larder_client::L1Error> {
    L1Options::new().bytes(64 << 20).open(name)
}

fn entry(value: &[u8]) -> Entry<'_> {
    Entry {
        value,
        fresh_until_ms: now_ms() + 600_000,
        stale_until_ms: now_ms() + 600_000,
        ..Entry::default()
    }
}

fn keys() -> Vec<Vec<u8>> {
    (0..HOT_KEYS).map(|nth| format!("key:{nth:06}").into_bytes()).collect()
}

/// Returns the median over all rounds of the nanoseconds that one of `calls` calls takes.
fn median(calls: usize, mut call: impl FnMut(usize)) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let since = Instant::now();
            (0..calls).for_each(&mut call);
            since.elapsed().as_nanos() as f64 / calls as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn times() -> Result<(), Box<dyn std::error::Error>> {
    let l1 = L1Options::new().anonymous()?;
    let keys = keys();
    let mut value = Vec::new();
    println!("{:>9} {:>10} {:>10}", "bytes", "get, ns", "set, ns");
    for bytes in [0, 64, 1_000, 9_000, 28_579, 100_000, 1_000_000] {
        let stored = vec![7u8; bytes];
        let calls = (4_000_000 / (bytes + 1_000)).max(4);
        let set = median(calls, |nth| {
            let _ = black_box(l1.set(&keys[nth % HOT_KEYS], &entry(&stored)));
        });
        let hot = &keys[..HOT_KEYS.min(1 + (1 << 20) / (bytes + 1))];
        hot.iter().for_each(|key| _ = l1.set(key, &entry(&stored)));
        let mut hits = 0;
        let get = median(calls, |nth| {
            hits += usize::from(l1.get(black_box(&hot[nth % hot.len()]), &mut value).is_some());
        });
        if hits != ROUNDS * calls {
            return Err(format!("{} of {} reads were misses", ROUNDS * calls - hits, ROUNDS * calls).into());
        }
        println!("{bytes:>9} {get:>10.1} {set:>10.1}");
    }
    let miss = median(10_000, |_| {
        black_box(l1.get(b"not there", &mut value));
    });
    println!("{:>9} {miss:>10.1}", "miss");
    Ok(())
}

/// Returns the median time of a read of 64 B in nanoseconds, once its server announces changes.
fn held(server: &str, exact_within: Option<Duration>) -> Result<f64, Box<dyn std::error::Error>> {
    let client = Client::new([server.parse()?], Options::default())?;
    let push = Some(Push { exact_within, ..Push::default() });
    let options = TieredOptions { fresh: Duration::ZERO, push, ..TieredOptions::default() };
    let tiered = Tiered::new(L1Options::new().anonymous()?, client, options);
    let keys = keys();
    keys.iter().try_for_each(|key| tiered.set(key, &[7; 64], Put::default()))?;
    let since = Instant::now();
    let is_held = |key: &Vec<u8>| Ok::<_, larder_client::Error>(source_of(&tiered, key)? == Some(Source::L1));
    while !keys.iter().map(is_held).collect::<Result<Vec<_>, _>>()?.into_iter().all(|is_held| is_held) {
        if since.elapsed() > Duration::from_secs(10) {
            return Err("the server announces nothing".into());
        }
    }
    let (mut hits, calls) = (0, 10_000);
    let get = median(calls, |nth| hits += hit(&tiered, &keys[nth % HOT_KEYS]));
    // A beat may be late, for once.
    if hits < ROUNDS * calls / 100 * 99 {
        return Err(format!("{hits} of {} reads were hits", ROUNDS * calls).into());
    }
    Ok(get)
}

fn source_of(tiered: &Tiered, key: &[u8]) -> larder_client::Result<Option<Source>> {
    Ok(tiered.get(key)?.map(|cached| cached.source))
}

/// One read; by this name its instructions can be counted.
#[inline(never)]
fn hit(tiered: &Tiered, key: &[u8]) -> usize {
    usize::from(tiered.peek(black_box(key), |_, value| black_box(value).len()).is_some())
}

fn load(name: &str, time: Duration) -> Result<(), Box<dyn std::error::Error>> {
    let l1 = open(name)?;
    let keys = keys();
    let mut value = Vec::new();
    let (since, mut calls, mut hits) = (Instant::now(), 0usize, 0usize);
    while since.elapsed() < time {
        for nth in 0..1_000 {
            let key = &keys[(calls + nth * 7) % HOT_KEYS];
            if nth % 100 == 0 {
                let _ = l1.set(key, &entry(&[7; 64]));
            } else {
                hits += usize::from(l1.get(key, &mut value).is_some());
            }
        }
        calls += 1_000;
    }
    println!("{} {hits}", calls as f64 / since.elapsed().as_secs_f64());
    Ok(())
}

/// Runs a process for each name, which is that of its cache.
fn together(names: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let program = std::env::current_exe()?;
    let mut children: Vec<Child> = Vec::new();
    for name in names {
        let l1 = open(name)?;
        keys().iter().for_each(|key| _ = l1.set(key, &entry(&[7; 64])));
        children.push(Command::new(&program).args(["load", name, "1000"]).stdout(Stdio::piped()).spawn()?);
    }
    let mut sum = 0.0;
    for child in children {
        let output = String::from_utf8(child.wait_with_output()?.stdout)?;
        sum += output.split(' ').next().unwrap_or_default().parse::<f64>()?;
    }
    println!("{} processes: {sum:.0} calls a second, 99 in 100 of them reads", names.len());
    Ok(names.iter().try_for_each(|name| L1Options::new().remove(name).map(drop))?)
}
