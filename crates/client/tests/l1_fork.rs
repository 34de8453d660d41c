//! A process that forks while it uses a cache, as a server does that starts its workers so.

#[path = "l1/rig.rs"]
mod rig;

use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use larder_client::l1::{Claim, Waited};
use larder_client::{L1, L1Options, L1Stats};
use rig::{entry, name, read, value};

/// Runs `work` in a child; returns whether it returned true.
fn in_child(work: impl FnOnce() -> bool) -> libc::pid_t {
    // SAFETY: the child only calls the cache, which takes no lock of this process that another thread may hold, and
    // then ends without running any of the parent's exit code.
    unsafe {
        match libc::fork() {
            0 => {
                let is_right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(false);
                libc::_exit(if is_right { 0 } else { 1 })
            }
            child => child,
        }
    }
}

fn ends_well(child: libc::pid_t) -> bool {
    let mut status = 0;
    // SAFETY: waits for a child of this process, and writes to the integer it is given.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    ended == child && status == 0
}

fn wait_for(l1: &L1, word: usize, value: u64) -> bool {
    let since = Instant::now();
    while l1.shared_words()[word].load(Acquire) != value {
        if since.elapsed() > Duration::from_secs(20) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// One test, so that no other thread is in the middle of something at a fork.
#[test]
fn children_share_the_cache_and_are_processes_of_their_own() {
    let l1 = L1Options::new().bytes(1 << 20).anonymous().expect("there is memory");
    let mut buffer = Vec::new();
    let _ = l1.set(&name(1), &entry(&value(1, 1, 100), 1));
    let mut flight = Some(l1.claim(b"the parent fetches it"));
    assert!(matches!(flight, Some(Claim::Owner(_))));

    // A child finds the entries, stores, and gives back no flight of its parent's.
    let child = in_child(|| {
        let _ = l1.set(&name(2), &entry(&value(2, 1, 100), 1));
        let found = read(&l1, 1, &mut Vec::new()).is_some();
        let Claim::Waiter(waiter) = l1.claim(b"the parent fetches it") else { panic!("the parent has it") };
        drop(flight.take());
        let lives = matches!(waiter.wait(Duration::from_millis(100)), Waited::TimedOut);
        // One of these may share its place with the key that the parent fetches.
        let own =
            (0..9).any(|key| matches!(l1.claim(&name(key)), Claim::Owner(flight) if flight.is_shared()));
        println!("found {found}, the parent lives {lives}, an own flight {own}");
        found && lives && own
    });
    assert!(ends_well(child));
    assert!(read(&l1, 2, &mut buffer).is_some());
    assert!(matches!(l1.claim(b"the parent fetches it"), Claim::Waiter(_)), "the child has ended it");
    drop(flight);

    // What a child counts is its own, and stays when it has ended; what its parent counted is not counted again.
    let counts = || {
        let found = l1.stats_by_process();
        let reads = |stats: &L1Stats| stats.hits + stats.misses;
        let living: Vec<_> = found.living.iter().map(|one| (one.pid, reads(&one.stats))).collect();
        (living, reads(&found.others), reads(&l1.stats()))
    };
    let parent = std::process::id();
    let (before, others, sum) = counts();
    let [(pid, own)] = before[..] else { panic!("only the parent lives: {before:?}") };
    assert_eq!((pid, own + others), (parent, sum));
    let child = in_child(|| {
        (0..7).for_each(|key| _ = read(&l1, key, &mut Vec::new()));
        let (living, ..) = counts();
        l1.shared_words()[1].store(1, Release);
        let mut expected = vec![(parent, own), (std::process::id(), 7)];
        expected.sort_unstable();
        wait_for(&l1, 1, 2) && living == expected
    });
    assert!(wait_for(&l1, 1, 1));
    assert_eq!(counts().0.len(), 2);
    l1.shared_words()[1].store(2, Release);
    assert!(ends_well(child));
    assert_eq!(counts(), (vec![(parent, own)], others + 7, sum + 7));

    // A child that ends with a flight of its own hands it over, although its parent has the file open too.
    let child = in_child(|| {
        let claim = l1.claim(b"the child fetches it");
        l1.shared_words()[0].store(1, Release);
        let is_told = wait_for(&l1, 0, 2);
        std::mem::forget(claim);
        is_told
    });
    assert!(wait_for(&l1, 0, 1));
    let Claim::Waiter(waiter) = l1.claim(b"the child fetches it") else { panic!("the child has it") };
    assert!(matches!(waiter.wait(Duration::from_millis(60)), Waited::TimedOut));
    l1.shared_words()[0].store(2, Release);
    let since = Instant::now();
    assert!(matches!(waiter.wait(Duration::from_secs(20)), Waited::Owner(_)));
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    assert!(ends_well(child));

    // Children that are killed while they store leave no lock.
    for nth in 0..50 {
        let child = in_child(|| {
            let since = Instant::now();
            while since.elapsed() < Duration::from_secs(20) {
                let _ = l1.set(&name(nth), &entry(&value(nth, 1, 9_000), 1));
            }
            true
        });
        std::thread::sleep(Duration::from_millis(2 + nth % 5));
        // SAFETY: a child of this process that has not been waited for.
        unsafe { libc::kill(child, libc::SIGKILL) };
        assert!(!ends_well(child));
        let _ = l1.set(&name(nth), &entry(&value(nth, 2, 9_000), 2));
        assert_eq!(read(&l1, nth, &mut buffer).map(|hit| hit.cas), Some(2));
    }
    assert_eq!(l1.stats().shards_reset, 0);
}
