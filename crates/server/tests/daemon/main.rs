//! The built daemon from outside: start, stop, limits, sockets, many connections, an SSD file.

mod background;
mod log;
mod process;
mod restart;
mod start;
mod users;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use process::{Daemon, Folder, Peer, command};
use rustix::process::Signal;

#[test]
fn it_announces_the_port_that_the_kernel_picked_and_ends_well() {
    let mut daemon = Daemon::start(&[]);
    assert_eq!(daemon.announced, format!("TCP INET: {}\n", daemon.port));
    let mut idle = daemon.connect();
    idle.works();
    assert_eq!(daemon.stat("stats settings", "tcpport"), u64::from(daemon.port));
    let took = daemon.stop();
    assert!(took < Duration::from_secs(2), "an idle daemon took {took:?} to end");
    assert_eq!(idle.rest(), b"");
}

#[test]
fn it_ends_well_on_each_signal_that_ends_it_and_goes_on_after_a_hangup() {
    for signal in [Signal::INT, Signal::TERM, Signal::USR1] {
        let mut daemon = Daemon::start(&["-t", "2"]);
        daemon.signal(Signal::HUP);
        daemon.connect().works();
        daemon.signal(signal);
        let (status, _) = daemon.wait();
        assert!(status.success(), "{signal:?}: {status}");
    }
}

#[test]
fn it_ends_well_while_clients_are_busy() {
    let mut daemon = Daemon::start(&["-t", "2"]);
    let port = daemon.port;
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let stopped = &stopped;
            scope.spawn(move || {
                let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the daemon listens");
                let request = format!("set k{number} 0 0 2\r\nhi\r\nget k{number}\r\n").repeat(50);
                let mut answer = vec![0; 1 << 16];
                while !stopped.load(Relaxed) {
                    if stream.write_all(request.as_bytes()).is_err()
                        || stream.read(&mut answer).unwrap_or(0) == 0
                    {
                        return;
                    }
                }
            });
        }
        let mut halfway = daemon.connect();
        halfway.send("set half 0 0 100\r\nabc");
        std::thread::sleep(Duration::from_millis(200));
        let took = daemon.stop();
        stopped.store(true, Relaxed);
        assert!(took < Duration::from_secs(6), "{took:?}");
    });
}

#[test]
fn a_unix_socket_replaces_tcp_and_is_removed_at_the_end() {
    let folder = Folder::new();
    let path = folder.path("socket");
    let mut daemon = Daemon::start_in(folder, &["-s", &path, "-a", "777"]);
    assert_eq!(daemon.announced, format!("UNIX: {path}\n"));
    let mut stream = UnixStream::connect(&path).expect("it listens");
    stream.write_all(b"set k 0 0 2\r\nhi\r\nget k\r\nquit\r\n").expect("it takes");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers and closes");
    assert_eq!(answer, "STORED\r\nVALUE k 0 2\r\nhi\r\nEND\r\n");
    let second = command(&["-s", &path], &daemon.folder.0.join("port2")).output().expect("it runs");
    assert!(!second.status.success());
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("another process listens there"), "{said}");
    daemon.stop();
    assert!(!fs::exists(&path).expect("a folder"), "the socket is left behind");
    // A socket that a killed daemon left behind is in nobody's way.
    let folder = Folder::new();
    let path = folder.path("socket");
    let mut killed = Daemon::start_in(folder, &["-s", &path]);
    killed.signal(Signal::KILL);
    killed.wait();
    assert!(fs::exists(&path).expect("a folder"));
    let folder = std::mem::replace(&mut killed.folder, Folder::new());
    let again = Daemon::start_in(folder, &["-s", &path]);
    UnixStream::connect(&path).expect("it listens");
    drop(again);
}

#[test]
fn a_port_in_use_is_refused_with_what_to_do() {
    let daemon = Daemon::start(&[]);
    let port = daemon.port.to_string();
    let second = command(&["-p", &port, "-l", "127.0.0.1"], &daemon.folder.0.join("port2")).output();
    let second = second.expect("it runs");
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains(&port) && said.contains("choose another port with -p"), "{said}");
}

#[test]
fn over_the_limit_a_connection_is_told_so_and_closed() {
    let daemon = Daemon::start(&["-c", "2", "-t", "2"]);
    let (mut first, mut second) = (daemon.connect(), daemon.connect());
    first.works();
    second.works();
    for _ in 0..3 {
        assert_eq!(daemon.connect().rest(), b"ERROR Too many open connections\r\n");
    }
    drop(first);
    let began = Instant::now();
    loop {
        let mut third = daemon.connect();
        let _ = third.stream.write_all(b"mn\r\n");
        if third.take(2) == b"MN" {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "nobody is let in");
        std::thread::sleep(Duration::from_millis(10));
    }
    second.works();
}

#[test]
fn over_the_limit_without_maxconns_fast_a_connection_waits() {
    let daemon = Daemon::start(&["-c", "2", "-o", "no_maxconns_fast"]);
    let (mut first, mut second) = (daemon.connect(), daemon.connect());
    first.works();
    second.works();
    let mut third = daemon.connect();
    third.send("mn\r\n");
    third.stream.set_read_timeout(Some(Duration::from_millis(400))).expect("a timeout");
    let waits = third.stream.read(&mut [0; 4]).expect_err("it is not served");
    assert!(matches!(waits.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut), "{waits}");
    drop(first);
    third.stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    assert_eq!(third.take(4), b"MN\r\n");
}

#[test]
fn idle_connections_are_closed_when_asked_for() {
    let daemon = Daemon::start(&["-o", "idle_timeout=1"]);
    let (mut silent, mut halfway, mut busy) = (daemon.connect(), daemon.connect(), daemon.connect());
    silent.works();
    halfway.send("get half");
    for _ in 0..20 {
        busy.works();
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(silent.rest(), b"");
    assert_eq!(halfway.rest(), b"");
    busy.works();
    assert_eq!(daemon.stat("stats", "idle_kicks"), 2);
}

#[test]
fn two_thousand_idle_connections_are_in_nobodys_way() {
    let daemon = Daemon::start(&["-c", "3000", "-t", "2"]);
    let mut peers: Vec<Peer> = (0..2000).map(|_| daemon.connect()).collect();
    daemon.wait_for("curr_connections", 2001);
    peers[1999].works();
    peers[0].works();
    assert!(daemon.stat("stats", "response_obj_bytes") < 1 << 20, "idle connections hold no buffers");
    drop(peers);
    daemon.wait_for("curr_connections", 1);
}

#[test]
fn values_up_to_the_limit_come_back() {
    let daemon = Daemon::start(&["-m", "128", "-I", "32m"]);
    let mut peer = daemon.connect();
    for len in [0, 1, 4096, 65_535, 131_072, 1_047_552, 1_500_000, 20 << 20] {
        let value: Vec<u8> = (0..len).map(|at| (at * 31 + at / 251) as u8).collect();
        peer.send(format!("set big 7 0 {len}\r\n"));
        peer.send(&value);
        peer.send("\r\nget big\r\n");
        assert_eq!(peer.until("\r\n"), b"STORED\r\n");
        assert_eq!(peer.until("\r\n"), format!("VALUE big 7 {len}\r\n").into_bytes());
        assert!(peer.take(len) == value, "{len} bytes come back changed");
        assert_eq!(peer.take(7), b"\r\nEND\r\n");
    }
    peer.send(format!("set big 0 0 {}\r\n", 33 << 20));
    peer.send(vec![b'x'; 33 << 20]);
    assert_eq!(peer.ask("\r\nget big\r\n", "END\r\n"), "SERVER_ERROR object too large for cache\r\nEND\r\n");
    peer.works();
}

#[test]
fn clients_that_leave_in_the_middle_leave_nothing_behind() {
    let daemon = Daemon::start(&["-m", "64", "-t", "2"]);
    for round in 0..120 {
        let mut peer = daemon.connect();
        let sent = match round % 4 {
            0 => format!("set k 0 0 1000000\r\n{}", "x".repeat(1000 * round)),
            1 => format!("set k 0 0 900\r\n{}", "x".repeat(round)),
            2 => "get k".to_string(),
            _ => "get nope\r\n".repeat(1000),
        };
        peer.send(sent);
    }
    daemon.wait_for("curr_connections", 1);
    assert_eq!(daemon.stat("stats larder", "ram_segments_reserved"), 0);
    let mut peer = daemon.connect();
    assert_eq!(peer.ask("get k\r\n", "END\r\n"), "END\r\n");
    peer.works();
}

#[test]
fn a_client_that_ends_its_side_gets_every_answer_and_is_closed() {
    let daemon = Daemon::start(&["-t", "2"]);
    let value = "v".repeat(1000);
    daemon.connect().ask(&format!("set k 0 0 1000\r\n{value}\r\n"), "STORED\r\n");
    let once = format!("VALUE k 0 1000\r\n{value}\r\nEND\r\n");
    for requests in [0, 1, 2, 30, 20_000] {
        for _ in 0..if requests < 100 { 50 } else { 3 } {
            let mut peer = daemon.connect();
            peer.send("get k\r\n".repeat(requests));
            peer.finish();
            let answer = peer.rest();
            assert_eq!(answer.len(), requests * once.len());
            assert!(answer.chunks(once.len()).all(|answer| answer == once.as_bytes()));
        }
    }
    daemon.wait_for("curr_connections", 1);
}

#[test]
fn a_long_pipeline_is_answered_to_its_end_before_the_client_sends_more() {
    let daemon = Daemon::start(&[]);
    let mut peer = daemon.connect();
    let value = "v".repeat(4000);
    peer.ask(&format!("set k 0 0 4000\r\n{value}\r\n"), "STORED\r\n");
    let once = format!("VALUE k 0 4000\r\n{value}\r\nEND\r\n").len();
    for requests in [5_000, 9_362, 9_363, 9_364, 18_725, 30_000] {
        let mut sender = peer.stream.try_clone().expect("a second handle");
        let pipeline = "get k\r\n".repeat(requests);
        let sending = std::thread::spawn(move || sender.write_all(pipeline.as_bytes()));
        let mut left = requests * once;
        while left > 0 {
            left -= peer.take(left.min(1 << 20)).len();
        }
        sending.join().expect("no panic").expect("all is sent");
    }
}

#[test]
fn gets_of_one_page_are_one_read() {
    let folder = Folder::new();
    let ssd = format!("{}:128m", folder.path("ssd"));
    let args = ["-p", "-1", "-l", "127.0.0.1", "-m", "16", "-t", "1", "--item-size", "1k", "--ssd", &ssd];
    let daemon = Daemon::start_in(folder, &args);
    let mut peer = daemon.connect();
    let value = |key: usize| format!("{key:0>40}");
    const KEYS: usize = 100;
    for key in 0..KEYS {
        peer.ask(&format!("set page-{key} 0 0 40\r\n{}\r\n", value(key)), "STORED\r\n");
    }
    // What fills RAM is read, or the policy would sooner keep items that are so much smaller.
    let filler = "f".repeat(2000);
    for number in 0..20_000 {
        peer.send(format!("set filler-{number} 0 0 2000 noreply\r\n{filler}\r\n"));
        peer.ask(&format!("get filler-{number}\r\n"), "END\r\n");
    }
    let larder = |name| daemon.stat("stats larder", name);
    let before = (larder("get_hits_ssd"), larder("ssd_device_reads"));
    let keys: String = (0..KEYS).map(|key| format!(" page-{key}")).collect();
    let found: String = (0..KEYS).map(|key| format!("VALUE page-{key} 0 40\r\n{}\r\n", value(key))).collect();
    assert_eq!(peer.ask(&format!("get{keys}\r\n"), "END\r\n"), format!("{found}END\r\n"));
    let (hits, reads) = (larder("get_hits_ssd") - before.0, larder("ssd_device_reads") - before.1);
    assert!(hits > KEYS as u64 / 2, "{hits} of {KEYS} were on the SSD");
    assert!(reads > 0 && reads * 10 < hits, "{reads} reads for {hits} hits of some forty a page");
}

/// The value that a key has in its nth version.
fn version(key: usize, version: usize) -> Vec<u8> {
    let len = 200 + (key * 7919 + version * 104_729) % 6000;
    let mut value = format!("{key}:{version}:").into_bytes();
    value.extend((0..len).map(|at| (at * key + version) as u8));
    value
}

/// Threads that store and read keys of their own over an SSD file, several times what fits in RAM; whatever
/// is found must be what was stored last.
fn hammer(io: &str) {
    let folder = Folder::new();
    let ssd = format!("{}:256m", folder.path("ssd"));
    let args = [
        "-p",
        "-1",
        "-l",
        "127.0.0.1",
        "-m",
        "16",
        "-t",
        "2",
        "--item-size",
        "1k",
        "--io",
        io,
        "--ssd",
        &ssd,
    ];
    let mut daemon = Daemon::start_in(folder, &args);
    const KEYS: usize = 5000;
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let mut peer = daemon.connect();
            scope.spawn(move || {
                let mut stored = vec![0; KEYS];
                let (mut found, mut asked, mut seed) = (0, 0, thread + 1);
                for round in 1..=12 {
                    for batch in 0..50 {
                        let mut request = Vec::new();
                        for _ in 0..20 {
                            seed = (seed * 1_103_515_245 + 12_345) % (1 << 31);
                            let key = (seed >> 8) % KEYS;
                            stored[key] += 1;
                            let value = version(key, stored[key]);
                            let head = format!("set {thread}-{key} 0 0 {} noreply\r\n", value.len());
                            request.extend([head.as_bytes(), &value, b"\r\n"].concat());
                        }
                        request.extend(b"get");
                        let mut keys = Vec::new();
                        for _ in 0..30 {
                            seed = (seed * 1_103_515_245 + 12_345) % (1 << 31);
                            let key = (seed >> 8) % KEYS;
                            keys.push(key);
                            request.extend(format!(" {thread}-{key}").bytes());
                        }
                        peer.send([&request[..], b"\r\n"].concat());
                        let mut keys = keys.into_iter();
                        loop {
                            let line = String::from_utf8(peer.until("\r\n")).expect("a line of text");
                            let Some(head) = line.strip_prefix("VALUE ") else {
                                assert_eq!(line, "END\r\n", "round {round}, batch {batch}");
                                break;
                            };
                            let name = head.split(' ').next().expect("a key");
                            let key = keys
                                .find(|key| format!("{thread}-{key}") == name)
                                .expect("in the order asked for");
                            let expected = version(key, stored[key]);
                            let value = peer.take(expected.len() + 2);
                            assert!(
                                value[..expected.len()] == expected[..],
                                "{name} is not its last version"
                            );
                            found += 1;
                        }
                        asked += 30;
                    }
                }
                assert!(found * 2 > asked, "{found} of {asked} found");
            });
        }
    });
    assert!(daemon.stat("stats larder", "get_hits_ssd") > 1000, "the SSD answers");
    assert_eq!(daemon.stat("stats larder", "ssd_errors"), 0);
    daemon.stop();
}

#[test]
fn threads_get_what_they_stored_last_over_an_ssd_file() {
    hammer("auto");
}

#[test]
fn threads_get_what_they_stored_last_by_threads_of_io() {
    hammer("threads");
}

#[test]
fn a_killed_daemon_starts_again_on_its_ssd_file() {
    let folder = Folder::new();
    let ssd = format!("{}:80m", folder.path("ssd"));
    let args = ["-p", "-1", "-l", "127.0.0.1", "-m", "16", "--item-size", "1k", "--ssd", &ssd];
    let mut daemon = Daemon::start_in(folder, &args);
    let value = "v".repeat(2000);
    for _ in 0..3 {
        let mut peer = daemon.connect();
        for number in 0..10_000 {
            peer.send(format!("set k{number} 0 0 2000 noreply\r\n{value}\r\n"));
        }
        peer.ask("mn\r\n", "MN\r\n");
        assert!(daemon.stat("stats larder", "ssd_items") > 1000, "the SSD is in use");
        daemon.signal(Signal::KILL);
        daemon.wait();
        let folder = std::mem::replace(&mut daemon.folder, Folder::new());
        daemon = Daemon::start_in(folder, &args);
        let mut peer = daemon.connect();
        // The index is in memory: nothing of the past is found, and nothing of it is taken for new.
        for number in (0..10_000).step_by(500) {
            assert_eq!(peer.ask(&format!("get k{number}\r\n"), "END\r\n"), "END\r\n");
        }
        peer.works();
    }
    daemon.stop();
}
