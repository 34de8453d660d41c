//! Prints how soon a change is seen by all processes of several hosts while changes are announced, and how old the
//! values are that these processes read beside many changes. A host is here a cache in shared memory of its own.
//!
//! `cargo run --release -p larder-client --example pushed \
//!     SERVER PROCESSES HOSTS ROUNDS MILLIONS DELAY_US WITHIN [COMMAND ...]`
//!
//! WITHIN is the option `exact_within`: `none`, microseconds, or `trips` for two round trips, as measured before. It is
//! also the bound beyond which a read is late; without it, that is two round trips.
//!
//! With a delay, all requests, replies and announcements take so much longer, each way, through a relay at every
//! address of this machine. A command starts the processes, such as `ip netns exec host{}` with the host's number
//! in place of `{}`; then SERVER must be an address that they reach.
//!
//! The parent changes values of 100 B. A change counts from the moment at which its reply was received: a read that
//! begins later and returns an older value is late by the time in between. All times are of the same clock.

mod relay;

use std::error::Error;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread::sleep;
use std::time::{Duration, Instant};

use larder_client::{Client, L1, L1Options, Options, Push, Put, Source, Tiered, TieredOptions, now_ms};
use rustix::time::{ClockId, clock_gettime};

/// Keys that are read and changed.
const KEYS: u64 = 32;
/// Words of a key in the ledger: the version that was written last, and the times of the last seven.
const WORDS: usize = 8;
const TIMES: u64 = WORDS as u64 - 1;
/// The words of the ledger that are not a key's: whether the rounds are over, and how many processes are ready.
const OVER: usize = 500;
const READY: usize = 501;
const VALUE_BYTES: usize = 100;
/// Pauses: between two changes, of a process that waits for one, and between bursts of reads.
const CHANGE_PAUSE: Duration = Duration::from_millis(5);
const LOOK_PAUSE: Duration = Duration::from_micros(20);
const BURST_PAUSE: Duration = Duration::from_millis(1);
const BURST: u64 = 1_000;
/// Nothing here takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["read", server, ledger, host, rounds, reads, within_ns] => {
            let within = Some(Duration::from_nanos(within_ns.parse()?)).filter(|within| !within.is_zero());
            read(server, ledger, host, (rounds.parse()?, reads.parse()?), within)
        }
        [server, processes, hosts, rounds, millions, delay_us, within, command @ ..] => {
            let millions: f64 = millions.parse()?;
            let crowd = Crowd {
                server: distant(server, Duration::from_micros(delay_us.parse()?))?,
                processes: processes.parse()?,
                hosts: hosts.parse()?,
                rounds: rounds.parse()?,
                reads: (millions * 1e6) as u64,
                within: within.to_string(),
                command: command.iter().map(|word| word.to_string()).collect(),
            };
            crowd.run()
        }
        _ => Err("give SERVER PROCESSES HOSTS ROUNDS MILLIONS DELAY_US WITHIN, and perhaps a command".into()),
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// What was written, in shared memory that all processes have open.
struct Ledger(L1);

impl Ledger {
    fn open(name: &str) -> Result<Ledger> {
        Ok(Ledger(L1Options::new().bytes(512 << 10).open(name)?))
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.0.shared_words()[at]
    }

    /// Notes that a version has been written.
    fn note(&self, key: u64, version: u64) {
        let at = key as usize * WORDS;
        self.word(at + 1 + (version % TIMES) as usize).store(now_ns(), Release);
        self.word(at).store(version, Release);
    }

    /// Returns the version that was written last, and when.
    fn last(&self, key: u64) -> (u64, u64) {
        let version = self.word(key as usize * WORDS).load(Acquire);
        (version, self.time(key, version))
    }

    fn time(&self, key: u64, version: u64) -> u64 {
        self.word(key as usize * WORDS + 1 + (version % TIMES) as usize).load(Acquire)
    }
}

fn name_of(key: u64) -> Vec<u8> {
    format!("pushed-{key}").into_bytes()
}

fn value_of(version: u64) -> Vec<u8> {
    let mut value = vec![b'x'; VALUE_BYTES];
    value[..8].copy_from_slice(&version.to_le_bytes());
    value
}

fn version_of(value: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*value.first_chunk()?))
}

fn joined(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

fn percentile(sorted: &[u64], percent: usize) -> f64 {
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).map_or(f64::NAN, |nanos| *nanos as f64 / 1e3)
}

/// Prints how long a small request takes, and returns the median in nanoseconds.
fn median_trip_ns(client: &Client, name: &str) -> Result<u64> {
    let mut took = Vec::new();
    for _ in 0..2_000 {
        let began = now_ns();
        client.get(b"pushed-absent")?;
        took.push(now_ns() - began);
    }
    took.sort_unstable();
    println!("{name} p50 {:.0} p99 {:.0}", percentile(&took, 50), percentile(&took, 99));
    Ok(took[took.len() / 2])
}

/// Returns the address of a server, or of a relay to it.
fn distant(server: &str, delay: Duration) -> Result<String> {
    if delay.is_zero() {
        return Ok(server.to_string());
    }
    let host = server.rsplit_once(':').ok_or("give the server as host:port")?.0;
    Ok(format!("{host}:{}", relay::start(server.to_string(), delay)?))
}

/// The processes of a run, and what they do.
struct Crowd {
    server: String,
    processes: u64,
    hosts: u64,
    rounds: u64,
    /// The reads of all processes together.
    reads: u64,
    /// The bound of the reads: `none`, `trips` or microseconds.
    within: String,
    /// Starts a process; empty for no command.
    command: Vec<String>,
}

impl Crowd {
    /// Starts the readers, changes values, and prints what they report.
    fn run(&self) -> Result<()> {
        let client = Client::new([self.server.parse()?], Options::default())?;
        let id = format!("pushed-{}", std::process::id());
        let ledger = Ledger::open(&id)?;
        for key in 0..KEYS {
            client.set(&name_of(key), &value_of(1), Put::default())?;
            ledger.note(key, 1);
        }
        let trip_ns = median_trip_ns(&client, "round_trip_us")?;
        let within_ns = match self.within.as_str() {
            "none" => 0,
            "trips" => 2 * trip_ns,
            micros => micros.parse::<u64>()? * 1_000,
        };
        let start = |nth| self.start(&id, nth, within_ns);
        let children: Vec<Child> = (0..self.processes).map(start).collect::<Result<_>>()?;
        let result = change(&client, &ledger, self.processes, self.rounds);
        // A word of the ledger ends the children, whatever happened.
        ledger.word(OVER).store(2, Release);
        let reports = report(children);
        let names = (0..self.hosts).map(|host| format!("{id}-{host}")).chain([id.clone()]);
        names.for_each(|name| _ = L1Options::new().remove(&name));
        result?;
        median_trip_ns(&client, "round_trip_after_us")?;
        print_reports(&reports?, if within_ns > 0 { within_ns } else { 2 * trip_ns });
        Ok(())
    }

    fn start(&self, id: &str, nth: u64, within_ns: u64) -> Result<Child> {
        let host = nth % self.hosts;
        let numbers = [self.rounds, self.reads / self.processes, within_ns].map(|number| number.to_string());
        let name = format!("{id}-{host}");
        let own =
            std::env::current_exe()?.into_os_string().into_string().map_err(|_| "a path that is no text")?;
        let command = self.command.iter().map(|word| word.replace("{}", &host.to_string()));
        let reader = [&own, "read", &self.server, id, &name, &numbers[0], &numbers[1], &numbers[2]];
        let reader = reader.map(str::to_string);
        let words: Vec<String> = command.chain(reader).collect();
        Ok(Command::new(&words[0]).args(&words[1..]).stdout(Stdio::piped()).spawn()?)
    }
}

/// Changes one key a round, until all have seen it; then all keys, until the readers have read enough.
fn change(client: &Client, ledger: &Ledger, processes: u64, rounds: u64) -> Result<()> {
    let since = Instant::now();
    let wait = |word: usize, wanted: u64| {
        while ledger.word(word).load(Acquire) < wanted {
            if since.elapsed() > PATIENCE * 10 {
                return Err("the readers do not come to their end");
            }
            sleep(CHANGE_PAUSE);
        }
        Ok(())
    };
    wait(READY, processes)?;
    for version in 2..rounds + 2 {
        client.set(&name_of(0), &value_of(version), Put::default())?;
        ledger.note(0, version);
        wait(READY, processes * version)?;
    }
    let mut version = rounds + 2;
    while ledger.word(READY).load(Acquire) < processes * (rounds + 2) {
        let key = version % KEYS;
        client.set(&name_of(key), &value_of(version), Put::default())?;
        ledger.note(key, version);
        version += 1;
        if since.elapsed() > PATIENCE * 10 {
            return Err("the readers do not come to their end".into());
        }
        sleep(BURST_PAUSE);
    }
    println!("changes {}", version - rounds - 2);
    Ok(())
}

/// What a process has read. Times are in nanoseconds.
struct Report {
    reads: u64,
    of_l1: u64,
    marked_stale: u64,
    /// How late the reads were that returned an older value than had been written.
    late: Vec<u64>,
    /// How long it took to see the change of each round.
    seen: Vec<u64>,
}

/// Takes what each child has printed.
fn report(children: Vec<Child>) -> Result<Vec<Report>> {
    let outputs: Vec<_> = children.into_iter().map(Child::wait_with_output).collect();
    outputs.into_iter().map(|output| parse(&String::from_utf8(output?.stdout)?)).collect()
}

fn parse(text: &str) -> Result<Report> {
    let lines: std::result::Result<Vec<Vec<u64>>, _> =
        text.lines().map(|line| line.split_whitespace().map(str::parse).collect()).collect();
    match <[Vec<u64>; 3]>::try_from(lines?) {
        Ok([counts, late, seen]) if counts.len() == 3 => {
            Ok(Report { reads: counts[0], of_l1: counts[1], marked_stale: counts[2], late, seen })
        }
        _ => Err("a process has failed".into()),
    }
}

/// Prints how soon changes were seen and how late reads were, of all processes together. Those are counted that were
/// later than `bound_ns`.
fn print_reports(reports: &[Report], bound_ns: u64) {
    let sorted = |of: fn(&Report) -> &Vec<u64>| {
        let mut all: Vec<u64> = reports.iter().flat_map(of).copied().collect();
        all.sort_unstable();
        all
    };
    let sum = |of: fn(&Report) -> u64| reports.iter().map(of).sum::<u64>();
    let seen = sorted(|report| &report.seen);
    println!("seen_us p50 {:.0} p99 {:.0}", percentile(&seen, 50), percentile(&seen, 99));
    // Of each round, the process that saw the change last.
    let rounds = seen.len() / reports.len().max(1);
    let of_round = |round: usize| reports.iter().filter_map(|report| report.seen.get(round)).max().copied();
    let mut last: Vec<u64> = (0..rounds).filter_map(of_round).collect();
    last.sort_unstable();
    println!("seen_by_all_us p50 {:.0} p99 {:.0}", percentile(&last, 50), percentile(&last, 99));
    let late = sorted(|report| &report.late);
    let beyond = late.iter().filter(|nanos| **nanos > bound_ns).count();
    println!("bound_us {}", bound_ns / 1_000);
    println!(
        "reads {} of_shared_memory {} marked_stale {} late {} beyond {beyond}",
        sum(|report| report.reads),
        sum(|report| report.of_l1),
        sum(|report| report.marked_stale),
        late.len(),
    );
    let latest = late.last().map_or(0.0, |nanos| *nanos as f64 / 1e3);
    println!("late_us p50 {:.0} p99 {:.0} most {latest:.0}", percentile(&late, 50), percentile(&late, 99));
}

/// Reads as one process of a host: first waits for each change of a round, then reads all keys again and again.
fn read(
    server: &str,
    ledger: &str,
    host: &str,
    (rounds, reads): (u64, u64),
    exact_within: Option<Duration>,
) -> Result<()> {
    let ledger = Ledger::open(ledger)?;
    let client = Client::new([server.parse()?], Options::default())?;
    // What is not announced is asked for at each read, so no value is from shared memory that is not announced.
    let push = Some(Push { exact_within, ..Push::default() });
    let options = TieredOptions { fresh: Duration::ZERO, push, ..TieredOptions::default() };
    let tiered = Tiered::new(L1Options::new().bytes(8 << 20).open(host)?, client, options);
    let is_over = || ledger.word(OVER).load(Acquire) == 2;
    let since_ms = now_ms();
    while !tiered.is_pushed(b"k") {
        if now_ms() > since_ms + PATIENCE.as_millis() as u64 {
            return Err("the server announces nothing".into());
        }
        sleep(CHANGE_PAUSE);
    }
    let version = |key: u64| -> Result<(u64, Source)> {
        let cached = tiered.get(&name_of(key))?.ok_or("a value is lost")?;
        Ok((version_of(&cached.value).ok_or("a value of another length")?, cached.source))
    };
    let mut seen_ns = Vec::new();
    version(0)?;
    ledger.word(READY).fetch_add(1, Release);
    for wanted in 2..rounds + 2 {
        while version(0)?.0 < wanted && !is_over() {
            sleep(LOOK_PAUSE);
        }
        let now = now_ns();
        // The reply may not have been noted yet: then it was seen at once.
        let done = if ledger.last(0).0 >= wanted { ledger.time(0, wanted) } else { now };
        seen_ns.push(now.saturating_sub(done));
        ledger.word(READY).fetch_add(1, Release);
    }
    let (mut of_l1, mut marked, mut late) = (0_u64, 0_u64, Vec::new());
    for nth in 0..reads {
        let key = nth % KEYS;
        let (written, done) = ledger.last(key);
        let began = now_ns();
        let (found, source) = version(key)?;
        of_l1 += u64::from(source == Source::L1);
        marked += u64::from(source == Source::Stale);
        // Marked values may be older only where no bound is asked for.
        if found < written && (source != Source::Stale || exact_within.is_some()) {
            late.push(began.saturating_sub(done));
        }
        if nth % BURST == 0 {
            sleep(BURST_PAUSE);
        }
        if is_over() {
            break;
        }
    }
    ledger.word(READY).fetch_add(1, Release);
    // One that listens for its host stays until the others have read, too.
    while !is_over() {
        sleep(CHANGE_PAUSE);
    }
    println!("{reads} {of_l1} {marked}\n{}\n{}", joined(&late), joined(&seen_ns));
    Ok(())
}
