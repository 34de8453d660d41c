//! One cache in many processes, which are killed at any moment; and one fetch of a key among all of them.

#[path = "l1/rig.rs"]
mod rig;
#[path = "l1/stalls.rs"]
mod stalls;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Child;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use larder_client::l1::{Claim, Waited};
use larder_client::{L1, Stored};
use rig::{Folder, Numbers, entry, has_namespaces, name, read, role, spawn, spawn_in_namespace, value};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use stalls::{Call, Seen, Span, Watch, now_us, pin, run_first};

const NAME: &str = "shared";
/// A child that its parent has lost ends by itself.
const CHILD_LIFE: Duration = Duration::from_secs(60);

/// The words that children report in.
const CALLS: usize = 0;
const LONGEST_US: usize = 1;
const SLOW: usize = 2;
const HITS: usize = 3;
const START: usize = 4;
const READY: usize = 5;
const FETCHES: usize = 6;
const WRONG: usize = 7;

/// Calls that took longer than 10 ms are noted here: when they began, how long they took, for how much of that the
/// process was ready to run and did not, and its processor.
const SLOW_CALLS: usize = 16;
const SLOW_WORDS: usize = 4;
const SLOW_MAX: u64 = 120;
const SLOW_US: u64 = 10_000;

/// Held by a test that judges who has run on the first processor.
static FIRST_PROCESSOR: Mutex<()> = Mutex::new(());

/// Keys of each process of a storm, which no other changes.
const OWNED: u64 = 200;
const SHARED: u64 = 1 << 40;

#[test]
fn child() {
    let Some((role, options)) = role() else { return };
    let l1 = options.bytes(4 << 20).open(NAME).expect("a cache");
    match role.split_once('-') {
        Some(("storm", nth)) => {
            let nth = nth.parse().expect("a number");
            if let Err(wrong) = catch_unwind(AssertUnwindSafe(|| storm(&l1, nth))) {
                l1.shared_words()[WRONG].fetch_add(1, AcqRel);
                resume_unwind(wrong);
            }
        }
        Some(("herd", _)) => herd(&l1),
        Some(("open", _)) => _ = l1.shared_words()[READY].fetch_add(1, AcqRel),
        Some(("owner", _)) => {
            let _claim = l1.claim(b"key-1");
            l1.shared_words()[READY].fetch_add(1, AcqRel);
            sleep(CHILD_LIFE);
        }
        _ => panic!("what is {role}?"),
    }
}

/// Calls of every kind, until the process is killed. A value that is wrong ends it with an error.
fn storm(l1: &L1, nth: u64) {
    let since = Instant::now();
    // No process id: in namespaces of their own, all have the same.
    let birth = std::time::UNIX_EPOCH.elapsed().expect("a time").as_nanos() as u64;
    let mut numbers = Numbers(birth ^ nth << 48);
    let mut buffer = Vec::new();
    let words = l1.shared_words();
    let mut version = birth << 4;
    let mut own = vec![None; OWNED as usize];
    let run_delay = RunDelay::open();
    let cpu = pin(None, nth as usize);
    while since.elapsed() < CHILD_LIFE {
        version += 1;
        let is_own = numbers.below(2) == 0;
        let of_own = numbers.below(OWNED);
        let key = if is_own { nth * OWNED + of_own } else { SHARED + numbers.below(500) };
        let len = [0, 64, 1_000, 9_000, 28_579][numbers.below(5) as usize];
        let bytes = value(key, version, len);
        let (began_us, delayed_us) = (now_us(), run_delay.us());
        match numbers.below(8) {
            0..3 => {
                assert_eq!(l1.set(&name(key), &entry(&bytes, version)), Stored::Yes);
                own[of_own as usize] = if is_own { Some(Some(version)) } else { own[of_own as usize] };
            }
            3 => {
                l1.delete(&name(key));
                own[of_own as usize] = if is_own { Some(None) } else { own[of_own as usize] };
            }
            _ => {
                let found = read(l1, key, &mut buffer).map(|hit| hit.cas);
                if let (true, Some(expected), Some(found)) = (is_own, own[of_own as usize], found) {
                    assert_eq!(Some(found), expected, "key {key} has a version that was replaced");
                }
                words[HITS].fetch_add(u64::from(found.is_some()), Relaxed);
            }
        }
        let micros = now_us() - began_us;
        words[CALLS].fetch_add(1, Relaxed);
        words[LONGEST_US].fetch_max(micros, Relaxed);
        let delayed_us = run_delay.us() - delayed_us;
        if micros.saturating_sub(delayed_us) > SLOW_US {
            let at = SLOW_CALLS + words[SLOW].fetch_add(1, AcqRel).min(SLOW_MAX - 1) as usize * SLOW_WORDS;
            let call = [began_us, micros, delayed_us, cpu as u64];
            words[at..].iter().zip(call).for_each(|(word, value)| word.store(value, Release));
        }
    }
}

/// Returns how long each of the calls waited that were noted as slow, and that nothing else explains.
fn waits_us(l1: &L1, seen: &Seen) -> Vec<u64> {
    let words = l1.shared_words();
    let slow = words[SLOW].load(Acquire);
    let noted = slow.min(SLOW_MAX) as usize;
    let notes = words[SLOW_CALLS..].chunks(SLOW_WORDS).take(noted);
    let waited_us = |note: &[AtomicU64]| {
        let [began_us, took_us, delayed_us, cpu] = [0, 1, 2, 3].map(|at| note[at].load(Acquire));
        seen.waited_us(Call { span: Span(began_us, began_us + took_us), delayed_us, cpu: cpu as usize })
    };
    // Of those that are not noted, nothing is explained.
    notes.map(waited_us).chain(std::iter::repeat_n(u64::MAX, slow as usize - noted)).collect()
}

/// How long this thread could have run and another one had its processor: no wait that the cache causes.
struct RunDelay(File);

impl RunDelay {
    fn open() -> RunDelay {
        RunDelay(File::open("/proc/thread-self/schedstat").expect("the kernel counts it"))
    }

    fn us(&self) -> u64 {
        let mut line = [0; 96];
        let len = self.0.read_at(&mut line, 0).expect("it can be read");
        let line = std::str::from_utf8(&line[..len]).expect("three numbers");
        line.split(' ').nth(1).and_then(|ns| ns.parse::<u64>().ok()).expect("a number") / 1_000
    }
}

fn kill(child: &mut Child) {
    let ended = child.try_wait().expect("a child can be asked");
    assert!(ended.is_none(), "a process found something wrong: {ended:?}");
    child.kill().expect("a child can be killed");
    // The kernel's counts of it are read before they go with it.
    let pid = Pid::from_child(child);
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).expect("a child ends");
    sleep(Duration::from_millis(1));
    child.wait().expect("a child ends");
}

/// Keeps four processes busy with one cache, and kills one of them after the other.
/// Returns how many shards were emptied.
fn kill_under_load(kills: u64, spawn: fn(&str, &Folder) -> Child) -> u64 {
    let folder = Folder::new();
    let l1 = folder.options(4 << 20).open(NAME).expect("a cache");
    let mut numbers = Numbers(u64::from(std::process::id()));
    let start = |nth: u64| spawn(&format!("storm-{nth}"), &folder);
    let watch = Watch::start(&l1);
    let mut children: Vec<Child> = (0..4).map(start).collect();
    let mut buffer = Vec::new();
    for kill_nth in 0..kills {
        sleep(Duration::from_micros(500 + numbers.below(8_000)));
        let nth = numbers.below(4) as usize;
        kill(&mut children[nth]);
        // With keys of its own: the one before may not have ended yet, where another process stands between.
        // On the processor of the one before.
        children[nth] = start(4 + 4 * kill_nth + nth as u64);
        if kill_nth % 10 == 0 {
            (0..500).for_each(|key| _ = read(&l1, SHARED + key, &mut buffer));
        }
    }
    // The last of them have had no time yet.
    sleep(Duration::from_millis(50));
    children.iter_mut().for_each(kill);
    (0..500).for_each(|key| _ = read(&l1, SHARED + key, &mut buffer));
    let waits_us = waits_us(&l1, &watch.end());
    let (slow, waits) = (waits_us.len(), waits_us.iter().filter(|waited_us| **waited_us > SLOW_US).count());
    let [calls, longest, hits] = [CALLS, LONGEST_US, HITS].map(|at| l1.shared_words()[at].load(Relaxed));
    let stats = l1.stats();
    println!(
        "{kills} kills, {calls} calls, {hits} hits; longest {longest} us, {slow} slow, \
         {waits} waits over 10 ms; {stats:?}"
    );
    assert_eq!(l1.shared_words()[WRONG].load(Relaxed), 0, "processes that found something wrong");
    assert!(calls > kills * 50 && hits > kills * 10, "{calls} calls, {hits} hits");
    stats.shards_reset
}

/// `LARDER_L1_KILLS` for how many.
#[test]
fn processes_killed_under_load_leave_no_wrong_value_and_no_lock() {
    let kills = std::env::var("LARDER_L1_KILLS").ok().and_then(|kills| kills.parse().ok());
    let emptied = kill_under_load(kills.unwrap_or(300), spawn);
    assert_eq!(emptied, 0, "a lock was waited for, or a shard made no sense");
}

/// Keeps two processes on two processors busy with one cache, and calls `disturb` with the first, until so many
/// calls were slow. The first is on the first processor. Returns how long each of the calls waited.
fn waits_beside(slow: u64, mut disturb: impl FnMut(Pid, &L1)) -> Vec<u64> {
    let folder = Folder::new();
    let l1 = folder.options(4 << 20).open(NAME).expect("a cache");
    let watch = Watch::start(&l1);
    let mut children: Vec<Child> = (0..2).map(|nth| spawn(&format!("storm-{nth}"), &folder)).collect();
    let since = Instant::now();
    while l1.shared_words()[SLOW].load(Acquire) < slow && since.elapsed() < Duration::from_secs(20) {
        disturb(Pid::from_child(&children[0]), &l1);
        sleep(Duration::from_millis(5));
    }
    children.iter_mut().for_each(kill);
    waits_us(&l1, &watch.end())
}

#[test]
fn a_wait_for_a_holder_that_stands_still_in_the_lock_is_counted() {
    let _alone = FIRST_PROCESSOR.lock().unwrap_or_else(PoisonError::into_inner);
    let waits_us = waits_beside(5, |child, l1| {
        kill_process(child, Signal::STOP).expect("it runs");
        let holder = l1.writers();
        sleep(Duration::from_millis(2));
        // The other process holds the lock for less.
        if !holder.is_empty() && l1.writers() == holder {
            sleep(Duration::from_millis(20));
        }
        kill_process(child, Signal::CONT).expect("it runs");
    });
    let counted = waits_us.iter().filter(|waited_us| **waited_us > SLOW_US).count();
    assert!(waits_us.len() >= 5 && counted >= 4, "{waits_us:?}");
}

#[test]
fn a_wait_for_a_holder_that_is_given_no_processor_is_not_counted() {
    let _alone = FIRST_PROCESSOR.lock().unwrap_or_else(PoisonError::into_inner);
    let hog = |_: Pid, _: &L1| {
        let busy = std::thread::spawn(|| {
            pin(None, 0);
            let may = run_first(10);
            let since = Instant::now();
            while may && since.elapsed() < Duration::from_millis(20) {
                std::hint::spin_loop();
            }
        });
        busy.join().expect("it ends");
    };
    let waits_us = waits_beside(5, hog);
    let counted = waits_us.iter().filter(|waited_us| **waited_us > SLOW_US).count();
    assert!(counted * 5 <= waits_us.len(), "{waits_us:?}");
}

/// The threads of several containers have the same small ids.
#[test]
fn processes_with_equal_ids_killed_under_load_leave_no_wrong_value() {
    if !has_namespaces() {
        println!("SKIPPED: this user may make no PID namespaces");
        return;
    }
    let emptied = kill_under_load(100, spawn_in_namespace);
    assert!(emptied <= 100, "a kill empties one shard at most: {emptied}");
}

/// Fetches a key once all are ready, if no other does.
fn herd(l1: &L1) {
    let words = l1.shared_words();
    words[READY].fetch_add(1, AcqRel);
    let since = Instant::now();
    while words[START].load(Acquire) == 0 && since.elapsed() < CHILD_LIFE {
        sleep(Duration::from_millis(1));
    }
    let mut buffer = Vec::new();
    while read(l1, 1, &mut buffer).is_none() {
        let flight = match l1.claim(b"key-1") {
            Claim::Owner(flight) => flight,
            Claim::Waiter(waiter) => match waiter.wait(CHILD_LIFE) {
                Waited::Owner(flight) => flight,
                Waited::Finished => continue,
                Waited::TimedOut => panic!("nobody has fetched the key"),
            },
        };
        assert!(flight.is_shared());
        // Another may have stored it between the look and the claim.
        if read(l1, 1, &mut buffer).is_none() {
            words[FETCHES].fetch_add(1, AcqRel);
            sleep(Duration::from_millis(30));
            assert_eq!(l1.set(b"key-1", &entry(&value(1, 1, 500), 1)), Stored::Yes);
        }
    }
}

fn ready(l1: &L1, processes: u64) {
    let since = Instant::now();
    while l1.shared_words()[READY].load(Acquire) < processes {
        assert!(since.elapsed() < CHILD_LIFE, "the children do not start");
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn processes_that_make_a_cache_at_once_make_one() {
    for _ in 0..4 {
        let folder = Folder::new();
        join((0..16).map(|nth| spawn(&format!("open-{nth}"), &folder)).collect());
        let l1 = folder.options(1 << 20).open(NAME).expect("a cache");
        assert_eq!(l1.bytes(), 4 << 20, "the first of them made it");
        assert_eq!(l1.shared_words()[READY].load(Acquire), 16);
    }
}

fn join(children: Vec<Child>) {
    for mut child in children {
        assert!(child.wait().expect("a child ends").success());
    }
}

#[test]
fn of_64_processes_that_miss_a_key_one_fetches_it() {
    let folder = Folder::new();
    let l1 = folder.options(1 << 20).open(NAME).expect("a cache");
    let children: Vec<Child> = (0..64).map(|nth| spawn(&format!("herd-{nth}"), &folder)).collect();
    ready(&l1, 64);
    l1.shared_words()[START].store(1, Release);
    join(children);
    assert_eq!(l1.shared_words()[FETCHES].load(Acquire), 1);
}

#[test]
fn a_killed_process_hands_its_fetch_over() {
    let folder = Folder::new();
    let l1 = folder.options(1 << 20).open(NAME).expect("a cache");
    let mut owner = spawn("owner-0", &folder);
    ready(&l1, 1);
    assert!(matches!(l1.claim(b"key-1"), Claim::Waiter(_)));
    let children: Vec<Child> = (0..8).map(|nth| spawn(&format!("herd-{nth}"), &folder)).collect();
    ready(&l1, 9);
    l1.shared_words()[START].store(1, Release);
    sleep(Duration::from_millis(100));
    assert_eq!(l1.shared_words()[FETCHES].load(Acquire), 0, "the owner lives");
    let since = Instant::now();
    kill(&mut owner);
    while l1.shared_words()[FETCHES].load(Acquire) == 0 {
        assert!(since.elapsed() < Duration::from_secs(10), "nobody takes the fetch over");
        sleep(Duration::from_millis(1));
    }
    join(children);
    assert_eq!(l1.shared_words()[FETCHES].load(Acquire), 1);
}

#[test]
fn a_wait_ends_when_the_fetch_ends_or_the_time_is_over() {
    let folder = Folder::new();
    let l1 = folder.options(1 << 20).open(NAME).expect("a cache");
    let Claim::Owner(flight) = l1.claim(b"key-1") else { panic!("nobody has it") };
    let Claim::Waiter(waiter) = l1.claim(b"key-1") else { panic!("it is taken") };
    let since = Instant::now();
    assert!(matches!(waiter.wait(Duration::from_millis(60)), Waited::TimedOut));
    assert!((60..2_000).contains(&since.elapsed().as_millis()), "{:?}", since.elapsed());
    assert!(matches!(waiter.wait(Duration::ZERO), Waited::TimedOut));
    let other = std::thread::spawn(move || waiter.wait(Duration::from_secs(20)));
    sleep(Duration::from_millis(20));
    drop(flight);
    assert!(matches!(other.join().expect("it ends"), Waited::Finished));
    assert!(matches!(l1.claim(b"key-1"), Claim::Owner(_)));
}

#[test]
fn a_process_never_waits_for_its_own_fetch_of_another_key() {
    let folder = Folder::new();
    let l1 = folder.options(512 << 10).open(NAME).expect("a cache");
    // More keys than the table has words, so that some share one.
    let flights: Vec<_> = (0..500u64)
        .map(|key| match l1.claim(&name(key)) {
            Claim::Owner(flight) => flight,
            Claim::Waiter(_) => panic!("key {key} waits for this process"),
        })
        .collect();
    let shared = flights.iter().filter(|flight| flight.is_shared()).count();
    assert!((40..=64).contains(&shared), "{shared}");
    drop(flights);
    assert!(
        (0..500u64).all(|key| matches!(l1.claim(&name(key)), Claim::Owner(flight) if flight.is_shared()))
    );
}
