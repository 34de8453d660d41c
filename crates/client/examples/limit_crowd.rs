//! Prints how much of a rate limit passes while many processes ask as fast as they can, and how much of that is beyond
//! the limit's own bound.
//!
//! `cargo run --release -p larder-client --example limit_crowd SERVER fixed|gcra PROCESSES SECONDS`

use std::error::Error;
use std::io::{BufWriter, Write};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, UNIX_EPOCH};

use larder_client::limit::{Limit, Limiter, OnFailure};
use larder_client::{Client, Options};

const COUNT: u64 = 100;
const PERIOD_NS: u64 = 1_000_000_000;
/// Until then all processes are ready.
const START_NS: u64 = 1_500_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ask", server, kind, key, start_ns, seconds] => {
            ask(server, kind, key, start_ns.parse()?, seconds.parse()?)
        }
        [server, kind, processes, seconds] => crowd(server, kind, processes.parse()?, seconds),
        _ => Err("give a server, fixed or gcra, the number of processes, and the seconds".into()),
    }
}

fn now_ns() -> u64 {
    UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u64
}

/// Asks for as long as is said, and prints for each request that passed when it was sent and answered.
fn ask(server: &str, kind: &str, key: &str, start_ns: u64, seconds: u64) -> Result<(), Box<dyn Error>> {
    let limiter = Limiter::new(Client::new([server.parse()?], Options::default())?, OnFailure::Closed);
    let period = Duration::from_nanos(PERIOD_NS);
    let limit = match kind {
        "fixed" => Limit::fixed_window(COUNT, period),
        "gcra" => Limit::gcra(COUNT, period),
        _ => return Err("there are fixed and gcra".into()),
    };
    let left_ns = start_ns.checked_sub(now_ns()).ok_or("this machine starts processes too slowly")?;
    sleep(Duration::from_nanos(left_ns));
    let (since, mut asked, mut failed) = (Instant::now(), 0u64, 0u64);
    let mut out = BufWriter::new(std::io::stdout().lock());
    while since.elapsed() < Duration::from_secs(seconds) {
        let before = now_ns();
        let decision = limiter.check(key.as_bytes(), &limit, 1)?;
        asked += 1;
        failed += u64::from(decision.failure.is_some());
        if decision.is_allowed {
            writeln!(out, "{before} {}", now_ns())?;
        }
    }
    writeln!(out, "asked {asked} {failed}")?;
    Ok(out.flush()?)
}

/// When a request that passed was sent and answered, in nanoseconds. It was decided by a time between the two.
#[derive(Clone, Copy)]
struct Passed {
    sent: u64,
    answered: u64,
}

fn crowd(server: &str, kind: &str, processes: usize, seconds: &str) -> Result<(), Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let start_ns = now_ns() + START_NS;
    let key = format!("crowd-{start_ns}");
    let words = ["ask", server, kind, &key, &start_ns.to_string(), seconds];
    let start = || Command::new(&program).args(words).stdout(Stdio::piped()).spawn();
    let children: Vec<Child> = (0..processes).map(|_| start()).collect::<Result<_, _>>()?;
    let (mut passed, mut asked, mut failed) = (Vec::new(), 0u64, 0u64);
    for child in children {
        let output = child.wait_with_output()?;
        if !output.status.success() {
            return Err("a process has failed".into());
        }
        for line in String::from_utf8(output.stdout)?.lines() {
            match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["asked", all, without] => {
                    asked += all.parse::<u64>()?;
                    failed += without.parse::<u64>()?;
                }
                [sent, answered] => {
                    let (sent, answered): (u64, u64) = (sent.parse()?, answered.parse()?);
                    // A limiter's clock shows whole milliseconds.
                    passed.push(Passed { sent: sent / 1_000_000 * 1_000_000, answered });
                }
                _ => return Err(format!("a process printed {line}").into()),
            }
        }
    }
    let beyond = match kind {
        "fixed" => beyond_of_windows(&passed),
        _ => beyond_of_rate(&mut passed),
    };
    println!("asked {asked} passed {} beyond {beyond} failed {failed}", passed.len());
    Ok(())
}

/// Returns how many passed in any period of the clock beyond the limit. Only those count that were sent and answered in
/// the same period.
fn beyond_of_windows(passed: &[Passed]) -> u64 {
    let mut counts = std::collections::BTreeMap::<u64, u64>::new();
    for one in passed.iter().filter(|one| one.sent / PERIOD_NS == one.answered / PERIOD_NS) {
        *counts.entry(one.sent / PERIOD_NS).or_default() += 1;
    }
    counts.values().map(|&count| count.saturating_sub(COUNT)).sum()
}

/// Returns how many passed beyond the burst and the rate, in the worst of all spans from one sending to one answer.
fn beyond_of_rate(passed: &mut [Passed]) -> u64 {
    passed.sort_by_key(|one| one.answered);
    let mut worst = 0;
    for first in passed.iter() {
        let mut within = 0u64;
        for last in passed.iter().filter(|one| one.sent >= first.sent) {
            within += 1;
            let span_ns = last.answered - first.sent;
            let may_pass = COUNT + (u128::from(span_ns) * u128::from(COUNT) / u128::from(PERIOD_NS)) as u64;
            worst = worst.max(within.saturating_sub(may_pass));
        }
    }
    worst
}
