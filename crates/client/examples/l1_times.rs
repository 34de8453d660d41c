//! Prints the median time of the cache's calls, for values of several sizes; with a number, how many reads that many
//! processes do a second together while one call in a hundred stores.
//!
//! `cargo run --release -p larder-client --example l1_times [PROCESSES]`

use std::hint::black_box;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use larder_client::{Entry, L1, L1Options, now_ms};

const ROUNDS: usize = 101;
const HOT_KEYS: usize = 100;
const NAME: &str = "l1_times";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        [] => times(),
        ["load", millis] => load(Duration::from_millis(millis.parse()?)),
        [processes] => together(processes.parse()?),
        _ => Err("give nothing, or a number of processes".into()),
    }
}

fn open() -> Result<L1, larder_client::L1Error> {
    L1Options::new().bytes(64 << 20).open(NAME)
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

fn load(time: Duration) -> Result<(), Box<dyn std::error::Error>> {
    let l1 = open()?;
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

fn together(processes: usize) -> Result<(), Box<dyn std::error::Error>> {
    let l1 = open()?;
    keys().iter().for_each(|key| _ = l1.set(key, &entry(&[7; 64])));
    let program = std::env::current_exe()?;
    let start = || Command::new(&program).args(["load", "1000"]).stdout(Stdio::piped()).spawn();
    let children: Vec<Child> = (0..processes).map(|_| start()).collect::<Result<_, _>>()?;
    let mut sum = 0.0;
    for child in children {
        let output = String::from_utf8(child.wait_with_output()?.stdout)?;
        sum += output.split(' ').next().unwrap_or_default().parse::<f64>()?;
    }
    println!("{processes} processes: {sum:.0} calls a second, 99 in 100 of them reads");
    L1Options::new().remove(NAME)?;
    Ok(())
}
