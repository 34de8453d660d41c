//! Announced changes: a cache in shared memory that holds values for minutes and has each change at once; what happens
//! to it when a server, a connection or the process that listens hangs or dies.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use fork::{Fork, fork, waitpid};
use larder_client::{Address, Client, L1, L1Options, Options, Push, Put, Source, Tiered, TieredOptions};
use rustix::process::{Pid, Signal, kill_process};

use crate::servers::{Daemon, each};

/// Without announcements, a change would go unseen for so long.
const FRESH: Duration = Duration::from_secs(600);
/// A busy machine runs a thread at last within this time.
const SOON: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_millis(400);

fn l1() -> L1 {
    L1Options::new().bytes(4 << 20).anonymous().expect("there is memory")
}

/// Values that are not announced are asked for at each read, so that all that shared memory has is announced.
fn options() -> TieredOptions {
    let push = Some(Push { keep: FRESH, silence: SILENCE, exact_within: None });
    TieredOptions { fresh: Duration::ZERO, stale: Duration::from_secs(60), push, ..TieredOptions::default() }
}

fn host(daemon: &Daemon) -> Tiered {
    Tiered::new(l1(), daemon.client(Options::default()), options())
}

fn larder() -> Option<Daemon> {
    each(&["-t", "4"]).into_iter().find(|daemon| daemon.name == "larder")
}

/// Waits until something is so.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < SOON, "never: {what}");
        sleep(Duration::from_millis(1));
    }
}

fn wait_until_pushed(tiered: &Tiered) {
    wait_until("changes are announced", || tiered.is_pushed(b"k"));
}

fn value(tiered: &Tiered, key: &[u8]) -> Option<Vec<u8>> {
    tiered.get(key).expect("the server is up").map(|cached| cached.value)
}

fn is_held(tiered: &Tiered, key: &[u8]) -> bool {
    tiered.get(key).is_ok_and(|cached| cached.is_some_and(|cached| cached.source == Source::L1))
}

/// Reads a key until shared memory has it.
fn hold(tiered: &Tiered, key: &[u8]) {
    wait_until("the value is held", || is_held(tiered, key));
}

fn stat(client: &Client, argument: &str, name: &str) -> u64 {
    let stats = client.stats(argument).remove(0).expect("the server is up");
    stats.iter().find(|(found, _)| found == name).and_then(|(_, value)| value.parse().ok()).expect("a number")
}

#[test]
fn a_value_stays_until_its_change_is_announced() {
    let Some(daemon) = larder() else { return };
    let (hosts, other) = ([host(&daemon), host(&daemon)], daemon.client(Options::default()));
    hosts.iter().for_each(wait_until_pushed);
    for len in [0, 1, 28_579, 1_000_000] {
        let (old, new) = (vec![b'o'; len], vec![b'n'; len + 1]);
        other.set(b"k", &old, Put::default()).expect("stored");
        hosts.iter().for_each(|host| hold(host, b"k"));
        // The last change may be announced once more, to a read that began before it.
        sleep(Duration::from_millis(50));
        hosts.iter().for_each(|host| hold(host, b"k"));
        let gets = stat(&other, "", "cmd_get");
        sleep(Duration::from_millis(50));
        assert!(hosts.iter().all(|host| is_held(host, b"k") && value(host, b"k").as_ref() == Some(&old)));
        assert_eq!(stat(&other, "", "cmd_get"), gets, "no server is asked");
        other.set(b"k", &new, Put::default()).expect("stored");
        for host in &hosts {
            wait_until("the change is seen", || value(host, b"k").as_ref() == Some(&new));
        }
    }
    assert_eq!(stat(&other, "larder", "subscriptions"), 2, "one for each host");
}

fn connect(daemon: &Daemon) -> BufReader<TcpStream> {
    let Address::Tcp { host, port } = &daemon.address else { panic!("it listens on TCP") };
    let stream = TcpStream::connect((host.as_str(), *port)).expect("it listens");
    stream.set_read_timeout(Some(SOON)).expect("a timeout");
    BufReader::new(stream)
}

fn line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).expect("a line comes");
    line
}

/// Returns the number of the subscription.
fn subscribe(listener: &mut BufReader<TcpStream>) -> String {
    listener.get_mut().write_all(b"mi\r\n").expect("sent");
    line(listener).trim_end().strip_prefix("MI ").expect("a number").to_string()
}

#[test]
fn an_old_value_that_comes_with_a_lease_is_followed_by_its_announcement() {
    // Gets and sets of the same keys run towards each other, on two of the server's threads, and meet in each round.
    const KEYS: usize = 200;
    const ROUNDS: usize = 500;
    let Some(daemon) = larder() else { return };
    let (mut listener, mut reader, mut writer) = (connect(&daemon), connect(&daemon), connect(&daemon));
    let number = subscribe(&mut listener);
    let sets = |value: &str| {
        (0..KEYS).rev().map(|key| format!("ms race-{key} 1\r\n{value}\r\n")).collect::<String>()
    };
    let (old, new) = (sets("o"), sets("n"));
    let (mut met, mut was_told) = (0, 0);
    for round in 0..ROUNDS {
        writer.get_mut().write_all(old.as_bytes()).expect("sent");
        (0..KEYS).for_each(|_| assert_eq!(line(&mut writer), "HD\r\n"));
        let token = |key: usize| (round * KEYS + key + 1).to_string();
        let gets: String =
            (0..KEYS).map(|key| format!("mg race-{key} v A{number}:{}\r\n", token(key))).collect();
        reader.get_mut().write_all(gets.as_bytes()).expect("sent");
        writer.get_mut().write_all(new.as_bytes()).expect("sent");
        let mut owed = Vec::new();
        for key in 0..KEYS {
            assert_eq!(line(&mut reader), "VA 1 A\r\n");
            if line(&mut reader) == "o\r\n" {
                owed.push(token(key));
            }
        }
        (0..KEYS).for_each(|_| assert_eq!(line(&mut writer), "HD\r\n"));
        listener.get_mut().write_all(b"mn\r\n").expect("sent");
        let mut told = Vec::new();
        while let Some(("IN", tokens)) = line(&mut listener).trim_end().split_once(' ') {
            told.extend(tokens.split(' ').map(str::to_string));
        }
        met += usize::from((1..KEYS).contains(&owed.len()));
        was_told += owed.len();
        owed.retain(|token| !told.contains(token));
        assert!(owed.is_empty(), "round {round}: nothing tells that {owed:?} have changed");
    }
    println!("{was_told} old values in {ROUNDS} rounds, of which {met} had new ones too");
    assert!(met > 0, "they never meet");
}

#[test]
fn a_burst_of_changes_is_announced_without_being_asked_for() {
    const KEYS: usize = 3_000;
    let Some(daemon) = larder() else { return };
    let (mut listener, mut other) = (connect(&daemon), connect(&daemon));
    let number = subscribe(&mut listener);
    let leases = (0..KEYS).map(|key| format!("mg burst-{key} A{number}:{}\r\n", u64::MAX - key as u64));
    other.get_mut().write_all(leases.collect::<String>().as_bytes()).expect("sent");
    (0..KEYS).for_each(|_| assert_eq!(line(&mut other), "EN A\r\n"));
    let changes: String = (0..KEYS).map(|key| format!("ms burst-{key} 1 q\r\nx\r\n")).collect();
    other.get_mut().write_all(changes.as_bytes()).expect("sent");
    let mut announced = 0;
    while announced < KEYS {
        let told = line(&mut listener);
        announced += told.trim_end().strip_prefix("IN ").expect("changes").split(' ').count();
    }
    assert_eq!(announced, KEYS);
}

#[test]
fn a_change_by_each_command_is_seen() {
    let Some(daemon) = larder() else { return };
    let (host, other) = (host(&daemon), daemon.client(Options::default()));
    wait_until_pushed(&host);
    type Change = fn(&Client);
    let changes: [(Change, Option<&[u8]>); 7] = [
        (|other| _ = other.set(b"k", b"7", Put::default()).expect("stored"), Some(b"7")),
        (|other| assert!(other.replace(b"k", b"8", Put::default()).expect("stored")), Some(b"8")),
        (|other| assert!(other.append(b"k", b"1").expect("stored")), Some(b"51")),
        (|other| _ = other.incr(b"k", 4).expect("counted"), Some(b"9")),
        (|other| assert!(other.delete(b"k").expect("deleted")), None),
        (|other| assert!(other.touch(b"k", -1).expect("touched")), None),
        (|other| assert!(other.flush_all(0).iter().all(Result::is_ok)), None),
    ];
    for (nth, (change, after)) in changes.into_iter().enumerate() {
        other.set(b"k", b"5", Put::default()).expect("stored");
        hold(&host, b"k");
        change(&other);
        wait_until(&format!("change {nth}"), || value(&host, b"k").as_deref() == after);
    }
}

#[test]
fn own_changes_are_seen_at_once_and_what_others_change_after_them_soon() {
    let Some(daemon) = larder() else { return };
    let (host, other) = (host(&daemon), daemon.client(Options::default()));
    wait_until_pushed(&host);
    for round in 0..200 {
        let (own, others) = (format!("own {round}").into_bytes(), format!("others' {round}").into_bytes());
        host.set(b"k", &own, Put::default()).expect("stored");
        assert_eq!(value(&host, b"k"), Some(own));
        other.set(b"k", &others, Put::default()).expect("stored");
        wait_until("the change is seen", || value(&host, b"k").as_ref() == Some(&others));
    }
    assert!(host.delete(b"k").expect("deleted"));
    assert_eq!(value(&host, b"k"), None);
}

#[test]
fn a_created_value_is_announced_too() {
    let Some(daemon) = larder() else { return };
    let hosts = [host(&daemon), host(&daemon)];
    hosts.iter().for_each(wait_until_pushed);
    let create = |host: &Tiered| {
        let made = host.get_or_create(b"k", Put::default(), || Ok::<_, ()>(b"made".to_vec()));
        made.expect("created").value
    };
    assert!(hosts.iter().all(|host| create(host) == b"made"));
    hosts.iter().for_each(|host| hold(host, b"k"));
    hosts[1].set(b"k", b"changed", Put::default()).expect("stored");
    wait_until("the change is seen", || create(&hosts[0]) == b"changed");
}

#[test]
fn an_item_is_not_used_beyond_its_own_time_to_live() {
    let Some(daemon) = larder() else { return };
    let (host, other) = (host(&daemon), daemon.client(Options::default()));
    wait_until_pushed(&host);
    other.set(b"k", b"v", Put::for_seconds(3)).expect("stored");
    hold(&host, b"k");
    sleep(Duration::from_millis(3100));
    assert_eq!(value(&host, b"k"), None);
}

#[test]
fn a_memcached_announces_nothing_and_is_asked_as_ever() {
    for daemon in each(&[]).into_iter().filter(|daemon| daemon.name == "memcached") {
        let options = TieredOptions { fresh: Duration::from_millis(100), ..options() };
        let tiered = Tiered::new(l1(), daemon.client(Options::default()), options);
        let other = daemon.client(Options::default());
        for round in 0..8 {
            let new = format!("{round}").into_bytes();
            other.set(b"k", &new, Put::default()).expect("stored");
            wait_until("the change is seen", || value(&tiered, b"k").as_ref() == Some(&new));
            assert!(!tiered.is_pushed(b"k"));
            sleep(SILENCE / 4);
        }
    }
}

#[test]
fn after_a_server_was_killed_nothing_that_it_announced_is_believed() {
    let Some(mut daemon) = larder() else { return };
    let (tiered, other) = (host(&daemon), daemon.client(Options::default()));
    wait_until_pushed(&tiered);
    for _ in 0..2 {
        other.set(b"k", b"old", Put::default()).expect("stored");
        hold(&tiered, b"k");
        daemon.kill();
        wait_until("the loss is noticed", || !tiered.is_pushed(b"k"));
        let stale = tiered.get(b"k").expect("a value that may be stale").expect("it is there");
        assert_eq!((stale.value, stale.source), (b"old".to_vec(), Source::Stale));
        daemon.restart();
        wait_until("the new server is asked", || tiered.get(b"k").is_ok_and(|value| value.is_none()));
        wait_until_pushed(&tiered);
    }
}

#[test]
fn a_server_that_hangs_is_not_believed_for_longer_than_its_silence() {
    let Some(daemon) = larder() else { return };
    let (tiered, other) = (host(&daemon), daemon.client(Options::default()));
    wait_until_pushed(&tiered);
    other.set(b"k", b"v", Put::default()).expect("stored");
    hold(&tiered, b"k");
    daemon.signal(Signal::STOP);
    sleep(SILENCE + Duration::from_millis(50));
    assert!(!tiered.is_pushed(b"k") && !is_held(&tiered, b"k"));
    daemon.signal(Signal::CONT);
    wait_until_pushed(&tiered);
    hold(&tiered, b"k");
}

/// A process of the same host, which listens for all of them.
struct Listener(i32);

impl Listener {
    /// Forks a process that uses the cache, and waits until it listens.
    fn start(tiered: &Tiered) -> Listener {
        let pid = match fork().expect("the process forks") {
            Fork::Child => {
                let since = Instant::now();
                while since.elapsed() < Duration::from_secs(60) {
                    let _ = tiered.get(b"of the child");
                    sleep(Duration::from_millis(5));
                }
                std::process::abort();
            }
            Fork::Parent(pid) => pid,
        };
        // Not by asking the cache whether it is pushed: that would start to listen here.
        sleep(Duration::from_millis(600));
        Listener(pid)
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.0).expect("a process");
        kill_process(pid, signal).expect("it runs");
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _ = waitpid(self.0);
    }
}

#[test]
fn when_the_process_that_listens_is_killed_or_stopped_another_takes_its_turn() {
    let Some(daemon) = larder() else { return };
    for (how, seen_within) in [(Signal::KILL, SILENCE), (Signal::STOP, SILENCE)] {
        let (tiered, other) = (host(&daemon), daemon.client(Options::default()));
        let listener = Listener::start(&tiered);
        assert!(tiered.is_pushed(b"k"), "the child listens for the host");
        other.set(b"k", b"old", Put::default()).expect("stored");
        hold(&tiered, b"k");
        listener.signal(how);
        other.set(b"k", b"new", Put::default()).expect("stored");
        sleep(seen_within + Duration::from_millis(50));
        assert_eq!(value(&tiered, b"k").as_deref(), Some(&b"new"[..]), "{how:?}");
        wait_until_pushed(&tiered);
        hold(&tiered, b"k");
        other.set(b"k", b"newer", Put::default()).expect("stored");
        wait_until("the next change is seen", || value(&tiered, b"k").as_deref() == Some(b"newer"));
        if how == Signal::STOP {
            listener.signal(Signal::CONT);
            wait_until("the earlier one gives up", || stat(&other, "larder", "subscriptions") == 1);
            hold(&tiered, b"k");
            other.set(b"k", b"newest", Put::default()).expect("stored");
            wait_until("it is seen", || value(&tiered, b"k").as_deref() == Some(b"newest"));
        }
    }
}

/// As [`host`], with reads that are exact within a time.
fn exact_host(daemon: &Daemon, within: Duration) -> Tiered {
    let push = options().push.map(|push| Push { exact_within: Some(within), ..push });
    Tiered::new(l1(), daemon.client(Options::default()), TieredOptions { push, ..options() })
}

#[test]
fn while_the_process_that_listens_is_stopped_reads_are_exact_within_their_bound() {
    const WITHIN: Duration = Duration::from_millis(20);
    let Some(daemon) = larder() else { return };
    let (tiered, other) = (exact_host(&daemon, WITHIN), daemon.client(Options::default()));
    let listener = Listener::start(&tiered);
    assert!(tiered.is_pushed(b"k"), "the child listens for the host");
    let (began, is_over) = (Instant::now(), AtomicBool::new(false));
    // The version, and when it had been written.
    let written: [AtomicU64; 2] = Default::default();
    other.set(b"k", &u64::to_le_bytes(0), Put::default()).expect("stored");
    scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut reads, mut asked) = (0_u64, 0_u64);
            while !is_over.load(SeqCst) {
                let (version, done) = (written[0].load(SeqCst), written[1].load(SeqCst));
                let late_us = (began.elapsed().as_micros() as u64).saturating_sub(done);
                let cached = tiered.get(b"k").expect("the server is up").expect("it is there");
                let found = u64::from_le_bytes(cached.value.try_into().expect("8 bytes"));
                assert!(found >= version || late_us <= WITHIN.as_micros() as u64, "{late_us} us late");
                assert_ne!(cached.source, Source::Stale);
                asked += u64::from(cached.source == Source::Server);
                reads += 1;
            }
            (reads, asked)
        });
        for version in 1..=100 {
            let signal = if version % 8 < 4 { Signal::STOP } else { Signal::CONT };
            listener.signal(signal);
            other.set(b"k", &u64::to_le_bytes(version), Put::default()).expect("stored");
            written[1].store(began.elapsed().as_micros() as u64, SeqCst);
            written[0].store(version, SeqCst);
            sleep(WITHIN * 2);
        }
        is_over.store(true, SeqCst);
        let (reads, asked) = reader.join().expect("no read is late");
        // While the listener is stopped, the server is asked once in each bound, and not once in each read.
        assert!(reads > 20_000 && asked < 2_000, "{asked} of {reads} reads asked");
    });
}

#[test]
fn beats_are_sent_while_a_host_reads_and_not_while_it_rests() {
    let Some(daemon) = larder() else { return };
    let (tiered, other) = (exact_host(&daemon, Duration::from_millis(16)), daemon.client(Options::default()));
    wait_until_pushed(&tiered);
    other.set(b"k", b"v", Put::default()).expect("stored");
    hold(&tiered, b"k");
    let bytes_in_a_second = |reads: bool| {
        let (before, since) = (stat(&other, "", "bytes_read"), Instant::now());
        while since.elapsed() < Duration::from_secs(1) {
            if reads {
                value(&tiered, b"k");
            }
            sleep(Duration::from_millis(1));
        }
        stat(&other, "", "bytes_read") - before
    };
    // Each question takes 4 bytes: one in 2 ms, while ten a second tell that the server is there.
    let reading = bytes_in_a_second(true);
    sleep(Duration::from_millis(300));
    let resting = bytes_in_a_second(false);
    assert!(reading > 400 && resting < 150, "{reading} bytes while it reads, {resting} while it rests");
}

#[test]
fn no_read_that_begins_after_a_change_was_announced_returns_an_older_value() {
    const KEYS: u64 = 20;
    let Some(daemon) = larder() else { return };
    let (hosts, other) = ([host(&daemon), host(&daemon)], daemon.client(Options::default()));
    hosts.iter().for_each(wait_until_pushed);
    let began = Instant::now();
    let written: Vec<[AtomicU64; 2]> = (0..KEYS).map(|_| Default::default()).collect();
    let is_over = AtomicBool::new(false);
    let name = |key: u64| format!("key-{key}").into_bytes();
    // Each version is written at an even time; a reader that finds an older one tells how late that is.
    let late_us = |host: &Tiered, key: u64| {
        let (version, done_us) = {
            let [version, done_us] = &written[key as usize];
            (version.load(SeqCst), done_us.load(SeqCst))
        };
        let begin_us = began.elapsed().as_micros() as u64;
        let found =
            value(host, &name(key)).map_or(0, |value| u64::from_le_bytes(value.try_into().expect("8 bytes")));
        if found < version { begin_us.saturating_sub(done_us) } else { 0 }
    };
    scope(|scope| {
        let readers: Vec<_> = hosts
            .iter()
            .flat_map(|host| [host; 2])
            .map(|host| {
                scope.spawn(|| {
                    let (mut reads, mut latest_us) = (0_u64, 0);
                    while !is_over.load(SeqCst) {
                        for key in 0..KEYS {
                            latest_us = latest_us.max(late_us(host, key));
                        }
                        reads += KEYS;
                    }
                    (reads, latest_us)
                })
            })
            .collect();
        for version in 1..=4_000 {
            let key = version * 7 % KEYS;
            other.set(&name(key), &u64::to_le_bytes(version), Put::default()).expect("stored");
            // The time first: a reader that sees the version knows its time or a later one.
            written[key as usize][1].store(began.elapsed().as_micros() as u64, SeqCst);
            written[key as usize][0].store(version, SeqCst);
        }
        is_over.store(true, SeqCst);
        for reader in readers {
            let (reads, latest_us) = reader.join().expect("no panic");
            // Nothing would end this but an announcement: values are kept for ten minutes.
            assert!(reads > 1_000 && latest_us < 1_000_000, "{latest_us} us late, {reads} reads");
        }
    });
    for key in 0..KEYS {
        let version = written[key as usize][0].load(SeqCst);
        for host in &hosts {
            wait_until("the last change is seen", || {
                value(host, &name(key)) == Some(u64::to_le_bytes(version).to_vec())
            });
        }
    }
}
