//! A process that forks: the child makes connections of its own and leaves its parent's alone.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use fork::{Fork, fork, waitpid};
use larder_client::limit::{Limit, Limiter, OnFailure};
use larder_client::{Client, Options, Put};
use rustix::process::{Signal, kill_process};

use crate::fake::{Closed, Fake, opaque, patient, read_line};
use crate::servers::each;

#[test]
fn parent_and_child_each_get_their_own_answers() {
    for daemon in each(&[]) {
        let client = daemon.client(patient());
        client.set(b"parent", b"of parent", Put::default()).expect("it is stored");
        // A fence is unread on the connection that the child inherits.
        client.quiet().set(b"quiet", b"v", Put::default()).expect("it is sent");
        match fork().expect("the process forks") {
            Fork::Child => {
                let mut wrong = 0;
                for number in 0..500 {
                    let value = format!("child {number}");
                    let stored = client.set(b"child", value.as_bytes(), Put::default());
                    let found = client.get(b"child").ok().flatten().map(|item| item.value);
                    wrong += i32::from(stored.is_err() || found.as_deref() != Some(value.as_bytes()));
                }
                let _ = client.set(b"wrong in child", wrong.to_string().as_bytes(), Put::default());
                leave(wrong == 0);
            }
            Fork::Parent(child) => {
                for number in 0..500 {
                    let value = format!("parent {number}");
                    client.set(b"parent", value.as_bytes(), Put::default()).expect("it is stored");
                    let found = client.get(b"parent").expect("it answers").expect("it is there");
                    assert_eq!(found.value, value.as_bytes());
                }
                let _ = waitpid(child);
                let wrong =
                    client.get(b"wrong in child").expect("it answers").expect("the child came to its end");
                assert_eq!(wrong.value, b"0");
            }
        }
    }
}

#[test]
fn a_child_of_a_child_connects_anew_and_the_parent_goes_on_with_its_connection() {
    let fake = Fake::start(|number, mut peer| {
        while let Some(line) = read_line(&mut peer) {
            let value = number.to_string();
            let _ = write!(peer, "VA {} f0{}\r\n{value}\r\n", value.len(), opaque(&line));
        }
    });
    let client = fake.client(patient());
    let number = || client.get(b"k").expect("it answers").expect("it is there").value;
    assert_eq!(number(), b"0");
    if let Fork::Child = fork().expect("the process forks") {
        let _ = (client.get(b"k"), client.get(b"k"));
        if let Fork::Child = fork().expect("the process forks") {
            let _ = (client.get(b"k"), client.get(b"k"));
            leave(true);
        }
        std::thread::sleep(Duration::from_secs(1));
        leave(true);
    }
    let began = Instant::now();
    while fake.connections() < 3 {
        assert!(began.elapsed() < Duration::from_secs(20), "{} connections", fake.connections());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(number(), b"0");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(fake.connections(), 3, "one for each process");
}

/// A lock of the client that another thread holds at the moment of the fork is locked for ever in the child.
#[test]
fn a_child_forked_while_other_threads_are_busy_does_not_hang() {
    let fake = Fake::start(|_, mut peer| {
        while let Some(line) = read_line(&mut peer) {
            let _ = write!(peer, "EN{}\r\n", opaque(&line));
        }
    });
    let options = Options { connections_max: 2, ..patient() };
    let client = fake.client(options.clone());
    // Nothing listens at the limiter's server, so it counts in this process, under a lock.
    let closed = Closed::new();
    let nowhere = Client::new([closed.server()], options).expect("there is a server");
    let limiter = Limiter::new(nowhere, OnFailure::Local);
    let limit = Limit::gcra(1_000_000, Duration::from_secs(1));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    let _ = client.get(b"k");
                }
            });
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    let _ = limiter.check(b"k", &limit, 1);
                }
            });
        }
        let work = || {
            let found = client.get(b"k");
            let passed = limiter.check(b"k", &limit, 1);
            matches!((found, passed), (Ok(None), Ok(decision)) if decision.is_allowed)
        };
        let all_end = (0..60).all(|_| child_ends(work));
        is_over.store(true, Relaxed);
        assert!(all_end, "a child hangs or fails");
    });
}

/// Ends a child without what the standard library does at an exit: for that it takes locks that may be held for ever.
/// The parent learns by the signal whether all was well.
fn leave(is_well: bool) -> ! {
    let signal = if is_well { Signal::KILL } else { Signal::TERM };
    let _ = kill_process(rustix::process::getpid(), signal);
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Forks. Returns whether the child comes to its end in time, and with true.
fn child_ends(work: impl Fn() -> bool) -> bool {
    let Fork::Parent(child) = fork().expect("the process forks") else {
        leave(work());
    };
    let pid = rustix::process::Pid::from_raw(child);
    let began = Instant::now();
    loop {
        let ended = rustix::process::waitpid(pid, rustix::process::WaitOptions::NOHANG).expect("a child");
        if let Some((_, status)) = ended {
            return status.terminating_signal() == Some(Signal::KILL.as_raw());
        }
        if began.elapsed() > Duration::from_secs(20) {
            let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
            let _ = waitpid(child);
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
