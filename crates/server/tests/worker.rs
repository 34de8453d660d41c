//! One event loop with sockets, over a device in memory that takes its time: who gets to read from it.

mod support;

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use larder_device::{Device, IoKind, MemoryDevice, QueueOptions, Wake, open_queue};
use larder_server::startup::listen;
use larder_server::worker::{Inbox, Worker};
use support::{Client, Server, set};

/// A device whose reads take a while.
struct Slow(Arc<MemoryDevice>);

impl Device for Slow {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        thread::sleep(Duration::from_micros(200));
        self.0.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(buf, offset)
    }

    fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        self.0.discard(offset, len)
    }

    fn len(&self) -> u64 {
        self.0.len()
    }

    fn alignment(&self) -> usize {
        self.0.alignment()
    }
}

const KEYS: usize = 5000;
const VALUE_BYTES: usize = 1000;

/// Gets of one client's items, each once, with so many always in flight; answers how many were answered in a while.
fn keep_asking(port: u16, client: usize, in_flight: usize) -> usize {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let (mut asked, mut got, mut answered) = (0, Vec::new(), 0);
    let mut piece = vec![0; 1 << 16];
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(400) && answered < KEYS {
        let until = KEYS.min(answered + in_flight);
        let gets: String = (asked..until).map(|key| format!("get {client}:{key:04}\r\n")).collect();
        asked = until;
        stream.write_all(gets.as_bytes()).expect("it takes");
        let len = stream.read(&mut piece).expect("it answers");
        assert!(len > 0, "it closed the connection");
        got.extend_from_slice(&piece[..len]);
        let reply = format!("VALUE {client}:{answered:04} 0 {VALUE_BYTES}\r\n");
        let reply_bytes = reply.len() + VALUE_BYTES + "\r\nEND\r\n".len();
        assert!(got.starts_with(reply.as_bytes()) || got.len() < reply_bytes, "{}", got.escape_ascii());
        answered += got.len() / reply_bytes;
        got.drain(..got.len() / reply_bytes * reply_bytes);
    }
    answered
}

#[test]
fn who_waits_for_the_ssd_comes_before_who_was_just_answered() {
    const CLIENTS: usize = 4;
    let server = Server::start(&["-m", "64", "-p", "-1", "-l", "127.0.0.1"], support::SSD_SEGMENTS);
    let mut filler = Client::new();
    for client in 0..CLIENTS {
        for key in 0..KEYS {
            filler.ask(&server, set(&format!("{client}:{key:04}"), &[b'v'; VALUE_BYTES]));
        }
    }
    server.push_out();
    let listeners = Arc::new(listen::open(&server.shared.config).expect("a port is free"));
    let port = listeners[0].port.expect("it is TCP");
    let inboxes = Arc::new(vec![Inbox::new().expect("a descriptor")]);
    server.shared.set_wakers(vec![inboxes[0].waker().expect("a descriptor")]);
    let device = Slow(server.device.clone().expect("there is an SSD"));
    let shared = server.shared.clone();
    let worker = thread::spawn(move || {
        let devices: [Arc<dyn Device>; 1] = [Arc::new(device)];
        // Half of the queue is kept for writes: the gets of one client are more than it takes.
        let options = QueueOptions { depth: 16, wake: Wake::Edge, ..QueueOptions::default() };
        let queue = open_queue(IoKind::Threads, &devices, options).expect("threads can be had").queue;
        Worker::new(0, shared, inboxes, listeners, Some(queue)).and_then(Worker::run)
    });
    let clients: Vec<_> =
        (0..CLIENTS).map(|client| thread::spawn(move || keep_asking(port, client, 64))).collect();
    let counts: Vec<usize> =
        clients.into_iter().map(|client| client.join().expect("it got its own")).collect();
    server.shared.stop();
    worker.join().expect("it does not panic").expect("it ends well");
    let (least, most) = (counts.iter().min(), counts.iter().max());
    assert!(least > Some(&100) && least.map(|least| least * 2) >= most.copied(), "{counts:?}");
}

#[test]
fn a_turn_of_many_small_requests_costs_as_much_as_one_of_a_large_reply() {
    // A turn of more is heavy, and waits for those that are not.
    const LIGHT_BYTES: usize = 64 << 10;
    let server = Server::ram();
    let mut client = Client::new();
    client.ask(&server, "add k 0 0 1\r\nx\r\n");
    assert!(client.session.take_cost() < LIGHT_BYTES / 4);
    client.ask(&server, "add k 0 0 1\r\nx\r\n".repeat(20));
    assert!(client.session.take_cost() > LIGHT_BYTES);
}
