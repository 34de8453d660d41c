//! The statistics of a cache that many processes use: those of each that lives, and the sum of all that ever did.

#[path = "l1/rig.rs"]
mod rig;

use std::process::Child;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::thread::sleep;
use std::time::{Duration, Instant};

use larder_client::L1;
use rig::{Folder, entry, has_namespaces, name, read, role, spawn, spawn_in_namespace, value};

const NAME: &str = "counted";
/// Of this size, a file has rows for 16 processes.
const BYTES: u64 = 512 << 10;
const ROWS: usize = 16;
/// The word in which children report that they have counted.
const READY: usize = 0;
/// A child that its parent has lost ends by itself.
const CHILD_LIFE: Duration = Duration::from_secs(60);

/// Stores 3 values, and counts as many hits and half as many misses as its role says. Then it lives until it is
/// killed.
#[test]
fn child() {
    let Some((role, options)) = role() else { return };
    let l1 = options.bytes(BYTES).open(NAME).expect("a cache");
    let hits: u64 = role.parse().expect("a number");
    let mut buffer = Vec::new();
    (0..3).for_each(|version| _ = l1.set(&name(1), &entry(&value(1, version, 100), version)));
    (0..hits).for_each(|_| assert!(read(&l1, 1, &mut buffer).is_some()));
    (0..hits / 2).for_each(|key| assert!(read(&l1, 1_000 + key, &mut buffer).is_none()));
    l1.shared_words()[READY].fetch_add(1, AcqRel);
    sleep(CHILD_LIFE);
}

fn opened(folder: &Folder) -> L1 {
    folder.options(BYTES).open(NAME).expect("a cache")
}

/// Starts a child for each number of hits, and waits until all have counted.
fn start(l1: &L1, folder: &Folder, hits: &[u64], spawn: fn(&str, &Folder) -> Child) -> Vec<Child> {
    let ready = l1.shared_words()[READY].load(Acquire) + hits.len() as u64;
    let children = hits.iter().map(|hits| spawn(&hits.to_string(), folder)).collect();
    let since = Instant::now();
    while l1.shared_words()[READY].load(Acquire) < ready {
        assert!(since.elapsed() < Duration::from_secs(30), "children that do not count");
        sleep(Duration::from_millis(1));
    }
    children
}

fn kill(children: &mut [Child]) {
    for child in children {
        child.kill().expect("a child can be killed");
        child.wait().expect("a child ends");
    }
}

/// Returns the id and the hits of each living process, and the hits of all others. Checks all other counts, and that
/// they add up to the sum.
fn counts(l1: &L1) -> (Vec<(u32, u64)>, u64) {
    let (found, sum) = (l1.stats_by_process(), l1.stats());
    let all = found.living.iter().map(|process| process.stats).chain([found.others]);
    let (mut hits, mut misses, mut stored) = (0, 0, 0);
    for stats in all {
        assert_eq!((stats.hits / 2, stats.evicted, stats.shards_reset), (stats.misses, 0, 0));
        (hits, misses, stored) = (hits + stats.hits, misses + stats.misses, stored + stats.stored);
    }
    assert_eq!((hits, misses, stored), (sum.hits, sum.misses, sum.stored));
    assert!(found.living.iter().all(|process| process.stats.stored == 3));
    (found.living.iter().map(|process| (process.pid, process.stats.hits)).collect(), found.others.hits)
}

fn with_ids(children: &[Child], hits: &[u64]) -> Vec<(u32, u64)> {
    let mut all: Vec<_> = children.iter().map(Child::id).zip(hits.iter().copied()).collect();
    all.sort_unstable();
    all
}

#[test]
fn each_process_has_its_counts_while_it_lives_and_the_sum_keeps_them() {
    let folder = Folder::new();
    let l1 = opened(&folder);
    assert_eq!(counts(&l1), (vec![], 0), "to ask is not to use");
    let mut children = start(&l1, &folder, &[10, 20, 30, 40], spawn);
    assert_eq!(counts(&l1), (with_ids(&children, &[10, 20, 30, 40]), 0));
    kill(&mut [children.remove(1)]);
    assert_eq!(counts(&l1), (with_ids(&children, &[10, 30, 40]), 20), "one was killed");
    children.extend(start(&l1, &folder, &[2], spawn));
    assert_eq!(counts(&l1), (with_ids(&children, &[10, 30, 40, 2]), 20), "one has its row");
    kill(&mut children);
    assert_eq!(counts(&l1), (vec![], 102));
    drop(l1);
    assert_eq!(counts(&opened(&folder)), (vec![], 102));
}

#[test]
fn processes_beyond_the_rows_are_counted_among_the_others() {
    let folder = Folder::new();
    let l1 = opened(&folder);
    let mut children = start(&l1, &folder, &[10; ROWS], spawn);
    assert_eq!(counts(&l1), (with_ids(&children, &[10; ROWS]), 0));
    let mut beyond = start(&l1, &folder, &[100; 4], spawn);
    assert_eq!(counts(&l1), (with_ids(&children, &[10; ROWS]), 400));
    kill(&mut children);
    assert_eq!(counts(&l1), (vec![], 560), "a row that becomes free is for those that begin");
    let mut next = start(&l1, &folder, &[6; ROWS], spawn);
    assert_eq!(counts(&l1), (with_ids(&next, &[6; ROWS]), 560));
    kill(&mut next);
    kill(&mut beyond);
    assert_eq!(counts(&l1), (vec![], 656));
}

#[test]
fn a_process_that_closed_another_descriptor_of_the_file_keeps_its_row() {
    let folder = Folder::new();
    let l1 = opened(&folder);
    let mut buffer = Vec::new();
    (0..3).for_each(|version| _ = l1.set(&name(1), &entry(&value(1, version, 100), version)));
    (0..8).for_each(|_| _ = read(&l1, 1, &mut buffer));
    (0..4).for_each(|key| _ = read(&l1, 1_000 + key, &mut buffer));
    // That ends all locks that this process has on the file.
    drop(std::fs::File::open(l1.path().expect("it has a file")).expect("it can be opened"));
    let mut children = start(&l1, &folder, &[10], spawn);
    let mut expected = with_ids(&children, &[10]);
    expected.push((std::process::id(), 8));
    expected.sort_unstable();
    assert_eq!(counts(&l1), (expected, 0));
    kill(&mut children);
    assert_eq!(counts(&l1), (vec![(std::process::id(), 8)], 10));
}

/// Each is the first process of its namespace.
#[test]
fn processes_with_equal_ids_have_rows_of_their_own() {
    if !has_namespaces() {
        println!("SKIPPED: this user may not make PID namespaces");
        return;
    }
    let folder = Folder::new();
    let l1 = opened(&folder);
    let mut children = start(&l1, &folder, &[10, 20], spawn_in_namespace);
    let (mut living, others) = counts(&l1);
    living.sort_unstable();
    assert_eq!((living, others), (vec![(1, 10), (1, 20)], 0));
    kill(&mut children);
    let since = Instant::now();
    // What was killed is their parent, with which they end a little later.
    while counts(&l1) != (vec![], 30) {
        assert!(since.elapsed() < Duration::from_secs(20), "{:?}", counts(&l1));
        sleep(Duration::from_millis(5));
    }
}
