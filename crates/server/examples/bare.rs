//! The least that answers gets from an SSD: sockets by epoll, one direct read of 4 KiB a get by the same I/O
//! queue as the daemon's, one thread; no store, no index, no checks, one made-up value for every key. What a
//! get costs Larder beyond this is Larder's own; `scripts/proof/targets` measures both.
//!
//! `bare FILE MIB VALUE_BYTES` fills FILE, listens on a port of 127.0.0.1 that the kernel picks, and names it in
//! the file of `MEMCACHED_PORT_FILENAME`, as memcached does.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use larder_device::{
    Completion, Device, FileDevice, FileOptions, IoBuf, IoKind, IoOp, IoQueue, QueueOptions, Wake, open_queue,
};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

const PAGE_BYTES: usize = 4096;
const DEPTH: u32 = 1024;
const LISTENER: u64 = u64::MAX;
const IO: u64 = u64::MAX - 1;

/// A reply's place in the order of the requests.
enum Reply {
    /// Its read is under way.
    Waits(u64),
    /// What it says up to the value, and the page that the value is taken from.
    Page(Vec<u8>, IoBuf),
    /// It needed no read.
    Lines(String),
}

struct Peer {
    stream: TcpStream,
    input: Vec<u8>,
    replies: VecDeque<Reply>,
}

struct Bare {
    queue: Box<dyn IoQueue>,
    pages: u64,
    value_bytes: usize,
    peers: Vec<Option<Peer>>,
    /// Reads under way: whose, and the head of the reply.
    reads: Vec<Option<(usize, Vec<u8>)>>,
    free: Vec<usize>,
    received: Vec<u8>,
    sent: Vec<u8>,
}

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let [_, path, mib, value_bytes] = &words[..] else {
        eprintln!("bare: FILE MIB VALUE_BYTES");
        std::process::exit(2);
    };
    let number =
        |word: &str| word.parse::<u64>().map_err(|_| io::Error::other(format!("{word} is no number")));
    let (mib, value_bytes) = (number(mib)?, number(value_bytes)? as usize);
    assert!(value_bytes <= PAGE_BYTES, "a value is taken from one page");
    fill(path, mib)?;
    let size_bytes = Some(mib << 20);
    let options = FileOptions { size_bytes, format: true, ..FileOptions::new(path) };
    let device = FileDevice::open(&options).map_err(io::Error::other)?;
    let pages = device.len() / PAGE_BYTES as u64;
    let options = QueueOptions { depth: DEPTH, wake: Wake::Edge, ..QueueOptions::default() };
    let queue = open_queue(IoKind::Auto, &[Arc::new(device) as Arc<dyn Device>], options)?.queue;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    if let Ok(file) = std::env::var("MEMCACHED_PORT_FILENAME") {
        let unfinished = format!("{file}.new");
        std::fs::write(&unfinished, format!("TCP INET: {}\n", listener.local_addr()?.port()))?;
        std::fs::rename(unfinished, file)?;
    }
    Bare {
        queue,
        pages,
        value_bytes,
        peers: Vec::new(),
        reads: Vec::new(),
        free: Vec::new(),
        received: vec![0; 64 << 10],
        sent: Vec::new(),
    }
    .run(&listener)
}

/// Writes the whole file, since what was never written is answered without the device.
fn fill(path: &str, mib: u64) -> io::Result<()> {
    let mut file = File::create(path)?;
    for _ in 0..mib {
        file.write_all(&[b'v'; 1 << 20])?;
    }
    file.sync_all()
}

impl Bare {
    fn run(mut self, listener: &TcpListener) -> io::Result<()> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, self.queue.wake_fd(), EventData::new_u64(IO), EventFlags::IN | EventFlags::ET)?;
        let mut events = Vec::with_capacity(256);
        let mut completions = Vec::new();
        loop {
            let timeout = self.queue.is_ready().then(Default::default);
            events.clear();
            match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                match event.data.u64() {
                    IO => {}
                    LISTENER => {
                        let (stream, _) = listener.accept()?;
                        stream.set_nonblocking(true)?;
                        stream.set_nodelay(true)?;
                        let number = self.peers.len() as u64;
                        epoll::add(&epoll, &stream, EventData::new_u64(number), EventFlags::IN)?;
                        self.peers.push(Some(Peer { stream, input: Vec::new(), replies: VecDeque::new() }));
                    }
                    number => self.receive(number as usize)?,
                }
            }
            self.queue.reap(&mut completions);
            for completion in completions.drain(..) {
                self.complete(completion)?;
            }
            self.queue.flush()?;
        }
    }

    /// Takes what a peer sent, and asks for the pages of its gets.
    fn receive(&mut self, number: usize) -> io::Result<()> {
        let Some(peer) = &mut self.peers[number] else { return Ok(()) };
        match peer.stream.read(&mut self.received) {
            Ok(0) => {
                self.peers[number] = None;
                return Ok(());
            }
            Ok(len) => peer.input.extend_from_slice(&self.received[..len]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(_) => {
                self.peers[number] = None;
                return Ok(());
            }
        }
        let mut at = 0;
        while let Some(len) = peer.input[at..].iter().position(|byte| *byte == b'\n') {
            let line = peer.input[at..at + len].trim_ascii_end();
            at += len + 1;
            let Some(key) = line.strip_prefix(b"get ") else {
                peer.replies.push_back(Reply::Lines(match line {
                    b"version" => "VERSION 0.0.0\r\n".to_string(),
                    // Whoever measures wants to know which process it is.
                    b"stats" => format!("STAT pid {}\r\nEND\r\n", std::process::id()),
                    _ => "END\r\n".to_string(),
                }));
                continue;
            };
            let head = [b"VALUE ", key, format!(" 0 {}\r\n", self.value_bytes).as_bytes()].concat();
            // FNV-1a, which spreads keys well enough over pages.
            let hash = key.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
            });
            let place = self.free.pop().unwrap_or(self.reads.len());
            if place == self.reads.len() {
                self.reads.push(None);
            }
            self.reads[place] = Some((number, head));
            peer.replies.push_back(Reply::Waits(place as u64));
            let offset = hash % self.pages * PAGE_BYTES as u64;
            let op = IoOp::Read { device: 0, offset, buf: self.queue.alloc(PAGE_BYTES) };
            self.queue
                .submit(place as u64, op)
                .map_err(|_| io::Error::other("more than the queue's depth"))?;
        }
        peer.input.drain(..at);
        self.send(number)
    }

    /// A page has come: its reply, and all before it that are ready, go out in one piece.
    fn complete(&mut self, completion: Completion) -> io::Result<()> {
        let (number, head) = self.reads[completion.token as usize].take().expect("a read is answered once");
        self.free.push(completion.token as usize);
        completion.result?;
        let IoOp::Read { buf, .. } = completion.op else { return Ok(()) };
        let Some(peer) = &mut self.peers[number] else { return Ok(()) };
        let mine = |reply: &&mut Reply| matches!(reply, Reply::Waits(token) if *token == completion.token);
        let place = peer.replies.iter_mut().find(mine).expect("its place is kept");
        *place = Reply::Page(head, buf);
        self.send(number)
    }

    fn send(&mut self, number: usize) -> io::Result<()> {
        let Some(peer) = &mut self.peers[number] else { return Ok(()) };
        self.sent.clear();
        while let Some(reply) = peer.replies.pop_front_if(|reply| !matches!(reply, Reply::Waits(_))) {
            match reply {
                Reply::Page(head, page) => {
                    self.sent.extend_from_slice(&head);
                    self.sent.extend_from_slice(&page[..self.value_bytes]);
                    self.sent.extend_from_slice(b"\r\nEND\r\n");
                }
                Reply::Lines(lines) => self.sent.extend_from_slice(lines.as_bytes()),
                Reply::Waits(_) => unreachable!("it is not taken while it waits"),
            }
        }
        if !self.sent.is_empty() && peer.stream.write_all(&self.sent).is_err() {
            self.peers[number] = None;
        }
        Ok(())
    }
}
