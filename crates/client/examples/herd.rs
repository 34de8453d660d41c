//! Prints how often a missing value is created that all processes of several hosts want at once. A host is here a
//! cache in shared memory of its own. The creations are counted by the server.
//!
//! `cargo run --release -p larder-client --example herd SERVER PROCESSES HOSTS ROUNDS`

use std::convert::Infallible;
use std::error::Error;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use larder_client::{Client, Count, L1Options, Options, Put, Tiered, TieredOptions, now_ms};

/// How long a creation takes.
const CREATION: Duration = Duration::from_millis(50);
/// Until then all processes of a round are ready.
const START_MS: u64 = 1_500;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["want", server, host, key, start_ms] => want(server, host, key, start_ms.parse()?),
        [server, processes, hosts, rounds] => {
            let (processes, hosts) = (processes.parse()?, hosts.parse()?);
            (0..rounds.parse()?).try_for_each(|_| round(server, processes, hosts))
        }
        _ => Err("give a server, the number of processes, of hosts, and of rounds".into()),
    }
}

fn connect(server: &str) -> Result<Client, Box<dyn Error>> {
    Ok(Client::new([server.parse()?], Options::default())?)
}

fn name_of(host: usize) -> String {
    format!("herd-{}-{host}", std::process::id())
}

/// Lets the processes of a round want one key at once.
fn round(server: &str, processes: usize, hosts: usize) -> Result<(), Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let start_ms = now_ms() + START_MS;
    let key = format!("herd-{start_ms}");
    let start = |nth: usize| {
        let words = ["want", server, &name_of(nth % hosts), &key, &start_ms.to_string()];
        Command::new(&program).args(words).stdout(Stdio::piped()).spawn()
    };
    let children: Vec<Child> = (0..processes).map(start).collect::<Result<_, _>>()?;
    let mut longest_ms = 0.0f64;
    for child in children {
        let output = child.wait_with_output()?;
        if !output.status.success() {
            return Err("a process has failed".into());
        }
        longest_ms = longest_ms.max(String::from_utf8(output.stdout)?.trim().parse()?);
    }
    for host in 0..hosts {
        L1Options::new().remove(&name_of(host))?;
    }
    let creations =
        connect(server)?.get(format!("{key}-creations").as_bytes())?.ok_or("nothing was created")?;
    let creations = String::from_utf8(creations.value)?;
    println!("creations {creations} longest_ms {longest_ms:.1} creation_ms {}", CREATION.as_millis());
    Ok(())
}

/// Waits for the common moment, wants the key, and prints how long that took in milliseconds.
fn want(server: &str, host: &str, key: &str, start_ms: u64) -> Result<(), Box<dyn Error>> {
    let client = connect(server)?;
    let tiered = Tiered::new(L1Options::new().open(host)?, client.clone(), TieredOptions::default());
    let counter = format!("{key}-creations");
    let left_ms = start_ms.checked_sub(now_ms()).ok_or("this machine starts processes too slowly")?;
    sleep(Duration::from_millis(left_ms));
    let since = Instant::now();
    let created = tiered.get_or_create(key.as_bytes(), Put::for_seconds(60), || {
        let count = Count { initial: Some((1, 60)), ..Count::default() };
        let _ = client.count(counter.as_bytes(), count);
        sleep(CREATION);
        Ok::<_, Infallible>(vec![b'x'; 1_000])
    });
    let took = since.elapsed();
    if created?.value != vec![b'x'; 1_000] {
        return Err("another value".into());
    }
    println!("{}", took.as_secs_f64() * 1e3);
    Ok(())
}
