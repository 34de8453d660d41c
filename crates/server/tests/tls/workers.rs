//! Workers with sockets that speak TLS: values of every size, peers of every kind, memory within its bound.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use larder_server::startup::listen;
use larder_server::worker::{Inbox, Worker};
use rustls::{ClientConnection, StreamOwned};

use super::certificates::{Certificates, VERSIONS, connection};
use super::support::{Random, Server, set, value};

/// Workers that serve until the end of the test.
struct Daemon {
    server: Server,
    certificates: Certificates,
    port: u16,
    workers: Vec<JoinHandle<()>>,
}

type Peer = StreamOwned<ClientConnection, TcpStream>;

impl Daemon {
    fn start(args: &[&str], threads: usize) -> Daemon {
        let certificates = Certificates::new();
        let (words, count) = (certificates.words(",ssl_session_cache"), threads.to_string());
        let all = [&["-p", "-1", "-l", "127.0.0.1", "-Z", "-o", &words, "-t", &count], args].concat();
        let server = Server::start(&all, 0);
        let listeners = Arc::new(listen::open(&server.shared.config).expect("a port is free"));
        let port = listeners[0].port.expect("it is TCP");
        let inboxes: Vec<_> = (0..threads).map(|_| Inbox::new().expect("a descriptor")).collect();
        let wakers = inboxes.iter().map(|inbox| inbox.waker().expect("a descriptor"));
        server.shared.set_wakers(wakers.collect());
        let inboxes = Arc::new(inboxes);
        let work = |number: usize| {
            let (shared, inboxes, listeners) = (server.shared.clone(), inboxes.clone(), listeners.clone());
            thread::spawn(move || {
                let worker = Worker::new(number, shared, inboxes, listeners, None).expect("descriptors");
                worker.run().expect("it ends well");
            })
        };
        let workers = (0..threads).map(work).collect();
        Daemon { server, certificates, port, workers }
    }

    fn socket(&self) -> TcpStream {
        let socket = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("an option");
        socket.set_nodelay(true).expect("an option");
        socket
    }

    fn connect(&self, version: usize) -> Peer {
        let config = self.certificates.client(VERSIONS[version], false);
        StreamOwned::new(connection(&config), self.socket())
    }

    fn handshake_errors(&self) -> u64 {
        self.server.shared.lifetime().ssl_handshake_errors
    }

    /// Waits until `is_so`.
    fn until(&self, what: &str, is_so: impl Fn(&Server) -> bool) {
        let began = Instant::now();
        while !is_so(&self.server) {
            assert!(began.elapsed() < Duration::from_secs(30), "{what}");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.server.shared.stop();
        for worker in self.workers.drain(..) {
            let ended = worker.join();
            assert!(ended.is_ok() || thread::panicking(), "a worker panicked");
        }
    }
}

fn ask(peer: &mut Peer, request: &[u8], reply: &[u8]) {
    peer.write_all(request).expect("it takes");
    let mut got = vec![0; reply.len()];
    peer.read_exact(&mut got).expect("it answers");
    assert!(got == reply, "{} bytes of another reply", got.len());
}

fn works(peer: &mut Peer) {
    ask(peer, b"mn\r\n", b"MN\r\n");
}

#[test]
fn values_of_every_size_pass_while_others_do_the_same() {
    let daemon = Daemon::start(&["-m", "512", "-I", "64m"], 2);
    thread::scope(|scope| {
        for number in 0..4 {
            let mut peer = daemon.connect(number % 2);
            scope.spawn(move || {
                for len in [0, 1, 100, 2000, 16_384, 65_536, 70_000, 1 << 20, 32 << 20] {
                    let key = format!("k{number}");
                    let bytes: Vec<u8> = (0..len).map(|at| (at * 7 % 253 + number) as u8).collect();
                    ask(&mut peer, &set(&key, &bytes), b"STORED\r\n");
                    let reply = [value(&key, &bytes), b"END\r\n".to_vec()].concat();
                    ask(&mut peer, format!("get {key}\r\n").as_bytes(), &reply);
                }
                ask(&mut peer, &b"mn\r\n".repeat(20_000), &b"MN\r\n".repeat(20_000));
            });
        }
    });
    daemon.until("memory is given back", |server| server.shared.budget.used() == 0);
}

#[test]
fn requests_before_the_end_are_answered_and_the_end_is_told() {
    let daemon = Daemon::start(&[], 1);
    for version in [0, 1] {
        let mut peer = daemon.connect(version);
        works(&mut peer);
        peer.write_all(&b"mn\r\n".repeat(500)).expect("it takes");
        peer.conn.send_close_notify();
        peer.flush().expect("it takes");
        let mut rest = Vec::new();
        peer.read_to_end(&mut rest).expect("the daemon ends its stream as well");
        assert_eq!(rest.len(), 500 * 4, "all is answered");
        // An end of the socket alone.
        let mut peer = daemon.connect(version);
        peer.write_all(&b"mn\r\n".repeat(500)).expect("it takes");
        peer.sock.shutdown(Shutdown::Write).expect("it is open");
        rest.clear();
        peer.read_to_end(&mut rest).expect("the daemon ends its stream");
        assert_eq!(rest.len(), 500 * 4, "all is answered");
        let mut peer = daemon.connect(version);
        ask(&mut peer, b"mn\r\nquit\r\n", b"MN\r\n");
        assert_eq!(peer.read(&mut [0; 1]).expect("the daemon ends its stream"), 0);
    }
    assert_eq!(daemon.handshake_errors(), 0);
}

#[test]
fn peers_that_do_not_shake_hands_are_closed_and_counted_and_others_are_served() {
    let daemon = Daemon::start(&[], 1);
    let mut peer = daemon.connect(1);
    works(&mut peer);
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut socket = daemon.socket();
        let garbage: Vec<u8> =
            (0..[1, 100, 1 << 20][seed as usize % 3]).map(|_| random.next() as u8).collect();
        let _ = socket.write_all(&garbage);
        let _ = socket.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        match socket.read_to_end(&mut answer) {
            Ok(_) => assert!(answer.len() <= 7, "at most an alert: {answer:?}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
    works(&mut peer);
    daemon.until("all are counted", |_| daemon.handshake_errors() == 40);
    daemon.until("memory is given back", |server| server.shared.budget.used() == 0);
}

#[test]
fn handshakes_that_are_begun_hold_a_quarter_of_the_memory_and_give_way_to_others() {
    let daemon = Daemon::start(&["--conn-memory", "4m"], 1);
    let budget = &daemon.server.shared.budget;
    let mut peer = daemon.connect(1);
    works(&mut peer);
    // Three of four records of a hello that is as long as may be.
    let mut hello = [&[1, 0, 0xFE, 0, 3, 3][..], &[7; 48 << 10]].concat();
    hello = hello
        .chunks(16 << 10)
        .flat_map(|part| [&[22, 3, 1, (part.len() >> 8) as u8, part.len() as u8], part].concat())
        .collect();
    let began = Instant::now();
    let begun: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut socket = daemon.socket();
            socket.write_all(&hello).expect("the system takes it");
            socket
        })
        .collect();
    let mut most = 0;
    while began.elapsed() < Duration::from_millis(500) {
        works(&mut peer);
        most = most.max(budget.used());
    }
    assert!(most > budget.limit() / 8 && most <= budget.limit() / 4 + (128 << 10), "{most} bytes are held");
    works(&mut daemon.connect(1));
    assert!(began.elapsed() < Duration::from_secs(8), "{:?} for a handshake beside others", began.elapsed());
    daemon.until("those that do not end are closed", |_| daemon.handshake_errors() >= 20);
    drop(begun);
    daemon.until("memory is given back", |server| server.shared.budget.used() == 0);
}

#[test]
fn a_stream_that_breaks_after_the_handshake_is_closed() {
    let daemon = Daemon::start(&[], 1);
    let mut peer = daemon.connect(1);
    works(&mut peer);
    peer.sock.write_all(&[23, 3, 3, 0, 32]).and_then(|()| peer.sock.write_all(&[7; 32])).expect("it takes");
    let mut rest = Vec::new();
    assert!(peer.read_to_end(&mut rest).is_err(), "an alert");
    daemon.until("it is counted", |server| server.shared.lifetime().ssl_proto_errors == 1);
    works(&mut daemon.connect(1));
}

#[test]
fn peers_that_do_not_read_hold_no_more_than_the_budget_and_lose_no_byte() {
    const PEERS: usize = 48;
    const LEN: usize = 3 << 20;
    let daemon = Daemon::start(&["-m", "128", "-I", "8m", "--conn-memory", "4m"], 2);
    let bytes: Vec<u8> = (0..LEN).map(|at| (at % 247) as u8).collect();
    let mut filler = daemon.connect(1);
    ask(&mut filler, &set("large", &bytes), b"STORED\r\n");
    ask(&mut filler, &set("small", &bytes[..1000]), b"STORED\r\n");
    let mut peers: Vec<Peer> = (0..PEERS).map(|number| daemon.connect(number % 2)).collect();
    for peer in &mut peers {
        peer.write_all(b"get large\r\nget small\r\n").expect("it takes");
    }
    let limit = daemon.server.shared.budget.limit();
    let began = Instant::now();
    let mut most = 0;
    while began.elapsed() < Duration::from_millis(500) {
        most = most.max(daemon.server.shared.budget.used());
        works(&mut filler);
    }
    assert!(most > 0 && most <= limit, "{most} bytes of {limit}");
    let reply =
        [value("large", &bytes), b"END\r\n".to_vec(), value("small", &bytes[..1000]), b"END\r\n".to_vec()];
    let reply = reply.concat();
    for peer in &mut peers {
        let mut got = vec![0; reply.len()];
        peer.read_exact(&mut got).expect("it answers");
        assert!(got == reply, "other bytes");
    }
    drop(peers);
    daemon.until("memory is given back", |server| server.shared.budget.used() == 0);
}

#[test]
fn idle_connections_hold_nothing_of_the_budget() {
    let daemon = Daemon::start(&["-c", "2000"], 2);
    let peers: Vec<Peer> = (0..500)
        .map(|number| {
            let mut peer = daemon.connect(number % 2);
            works(&mut peer);
            peer
        })
        .collect();
    daemon.until("none is held", |server| server.shared.budget.used() == 0);
    drop(peers);
    daemon.until("none is open", |server| {
        server.shared.connections.load(std::sync::atomic::Ordering::Relaxed) == 0
    });
    let totals = daemon.server.shared.lifetime();
    assert_eq!((totals.ssl_new_sessions, totals.ssl_handshake_errors), (500, 0));
}
