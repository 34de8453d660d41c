//! A server without sockets, disks or a running clock: what a worker does, done by the test when it chooses.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use larder_device::{Device, IoBuf, MemoryDevice};
use larder_server::clock::Clock;
use larder_server::config::Config;
use larder_server::session::{Ctx, Session, Ticket, Wait};
use larder_server::shared::Shared;
use larder_server::startup::tls;
use larder_store::shadow::Shadows;
use larder_store::{ReadPlan, SEGMENT_BYTES, Seconds, Span, Store};

/// What all clients share, and a device in memory. Time stands still unless the test [passes](Server::pass)
/// some.
pub struct Server {
    pub shared: Arc<Shared>,
    pub device: Option<Arc<MemoryDevice>>,
    began: Instant,
    waited: Cell<Duration>,
    /// Reads performed.
    pub reads: Cell<u64>,
    /// What they read, in order.
    pub plans: RefCell<Vec<ReadPlan>>,
}

/// How many SSD segments a server has that uses the SSD.
pub const SSD_SEGMENTS: u64 = 12;

impl Server {
    /// A RAM tier only.
    pub fn ram() -> Server {
        Server::start(&["-m", "64"], 0)
    }

    /// Both tiers.
    pub fn ssd() -> Server {
        Server::start(&["-m", "64"], SSD_SEGMENTS)
    }

    /// One of each.
    pub fn both() -> [Server; 2] {
        [Server::ram(), Server::ssd()]
    }

    /// With options as on the command line.
    pub fn start(args: &[&str], ssd_segments: u64) -> Server {
        let args = ["memcached", "-t", "1"].iter().chain(args).copied();
        let config = Config::from_args(args).expect("the test's options are valid");
        let bytes = ssd_segments * SEGMENT_BYTES;
        let spans = if bytes > 0 { vec![Span { device: 0, offset: 0, bytes }] } else { vec![] };
        let sizes = larder_store::Config {
            memory_bytes: config.memory_limit_bytes,
            ssd: spans,
            item_bytes: 512,
            index_bytes: None,
            ssd_write_limit: None,
            ssd_admission: config.ssd_admission,
            ssd_live_percent: config.ssd_live_percent,
            shadow_bytes: config.shadow_memory_bytes,
            evict: config.evictions,
            memory_file: None,
            seed: 7,
            first_cas: 1 << 20,
        };
        let store = Store::open(&sizes).expect("the sizes fit");
        if sizes.shadow_bytes() > 0 {
            // As many requests are sent as in a daemon; here none are taken.
            let shadows = Shadows::new(&sizes, sizes.shadow_bytes()).expect("the sizes fit");
            store.sample_by_prefix(shadows.scale(), 2048, config.prefix_delimiter);
        }
        let mut shared = Shared::new(store, Clock::new(), config, "none");
        shared.tls = tls::open(&shared.config).expect("the test's certificates are valid");
        shared.clock.pause();
        if let Some(auth) = &shared.auth {
            auth.load().expect("the test's users are valid");
        }
        let device = (bytes > 0).then(|| Arc::new(MemoryDevice::with_alignment(bytes, 4096)));
        Server {
            shared: Arc::new(shared),
            device,
            began: Instant::now(),
            waited: Cell::default(),
            reads: Cell::default(),
            plans: RefCell::default(),
        }
    }

    /// Lets seconds pass.
    pub fn pass(&self, seconds: i64) {
        self.shared.clock.shift(seconds);
        self.shared.store.upkeep(self.now());
    }

    /// Lets so much pass of the time that waits are measured by.
    pub fn wait(&self, time: Duration) {
        self.waited.set(self.waited.get() + time);
    }

    /// Returns the instant by which waits are measured.
    pub fn instant(&self) -> Instant {
        self.began + self.waited.get()
    }

    pub fn now(&self) -> Seconds {
        self.shared.clock.now()
    }

    /// Performs every write there is.
    pub fn write_all(&self) {
        while self.write_one(true) {}
    }

    /// Performs one write, or lets it fail; false when there is none.
    pub fn write_one(&self, ok: bool) -> bool {
        let Some(job) = self.shared.store.next_write(false) else { return false };
        if ok {
            let device = self.device.as_ref().expect("only an SSD is written to");
            let written = device.write_at(job.data(), job.offset).expect("the device takes it");
            assert_eq!(written, job.data().len());
        }
        self.shared.store.complete_write(job, ok, self.now());
        true
    }

    /// Moves every item from RAM to the SSD, if there is one.
    pub fn push_out(&self) {
        if self.device.is_none() {
            return;
        }
        for _ in 0..10_000 {
            if self.shared.store.evict_all(self.now()) {
                let stats = self.shared.store.stats();
                assert_eq!(stats.ram_items, 0, "everything left RAM");
                return;
            }
            self.write_all();
        }
        panic!("RAM does not empty");
    }

    /// Performs a read.
    fn read(&self, plan: &ReadPlan) -> (IoBuf, usize) {
        self.reads.set(self.reads.get() + 1);
        self.plans.borrow_mut().push(plan.clone());
        let mut buffer = IoBuf::zeroed(plan.bytes());
        let device = self.device.as_ref().expect("only an SSD is read from");
        let bytes = device.read_at(&mut buffer, plan.offset()).expect("the device gives it");
        (buffer, bytes)
    }
}

/// A connection's session, the bytes on the way to it, and what the driver owes it.
pub struct Client {
    pub session: Session,
    /// Reads it asked for that have not been performed.
    pub owed: Vec<(Ticket, ReadPlan)>,
    /// Sent by the peer, not received yet.
    pub inbox: Vec<u8>,
    /// What the peer got.
    pub got: Vec<u8>,
    /// How many reads may be under way for it.
    pub read_room: usize,
    /// Whether the peer takes what it is sent at once.
    pub takes: bool,
}

/// As much as a worker reads at a time.
const READ_BYTES: usize = 64 << 10;
/// As much as a worker lets a session have to send.
const OUTPUT_BYTES: usize = 256 << 10;

impl Client {
    pub fn new() -> Client {
        let config = Config::from_args(["memcached"]).expect("no options are valid");
        Client::configured(&config)
    }

    /// A connection to a server with options that matter to connections.
    pub fn to(server: &Server) -> Client {
        Client::configured(&server.shared.config)
    }

    fn configured(config: &Config) -> Client {
        Client {
            session: Session::new(config),
            owed: Vec::new(),
            inbox: Vec::new(),
            got: Vec::new(),
            read_room: 200,
            takes: true,
        }
    }

    fn with(&mut self, server: &Server, call: impl FnOnce(&mut Session, &mut Ctx<'_>)) {
        let mut reads = Vec::new();
        let mut ctx = Ctx {
            place: (0, 0),
            shared: &server.shared,
            connection: 0,
            counters: &server.shared.counters[0],
            latencies: &server.shared.latencies[0],
            now: server.now(),
            instant: server.instant(),
            read_room: self.read_room.saturating_sub(self.owed.len()),
            read_bytes: usize::MAX,
            heavy_read_bytes: usize::MAX,
            memory_is_short: false,
            is_light: true,
            output_bytes_max: OUTPUT_BYTES,
            reads: &mut reads,
        };
        call(&mut self.session, &mut ctx);
        server.shared.budget.give(self.session.take_claimed() as u64);
        self.owed.append(&mut reads);
    }

    /// Another peer takes the place of this one.
    pub fn replace(&mut self, server: &Server) {
        self.session.end_line(&server.shared.budget);
        *self = Client::new();
    }

    /// The peer sends; the session gets as far as it can without the SSD.
    pub fn send(&mut self, server: &Server, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
        self.drive(server);
    }

    /// What a worker does when a socket is ready: turns, receives, sends.
    pub fn drive(&mut self, server: &Server) {
        loop {
            if self.takes {
                self.take(server, usize::MAX);
            }
            if self.session.can_resume(OUTPUT_BYTES) {
                self.with(server, Session::resume);
            } else if self.session.wants_input() && !self.inbox.is_empty() {
                self.receive(server);
            } else {
                break;
            }
        }
        if self.takes {
            self.take(server, usize::MAX);
        }
    }

    fn receive(&mut self, server: &Server) {
        if let Some(spare) = self.session.receive_into() {
            assert!(!spare.is_empty(), "a place to receive into has room");
            let len = spare.len().min(self.inbox.len());
            spare[..len].copy_from_slice(&self.inbox[..len]);
            self.inbox.drain(..len);
            self.with(server, |session, ctx| session.received(ctx, len));
        } else {
            let len = self.inbox.len().min(READ_BYTES);
            let bytes: Vec<u8> = self.inbox.drain(..len).collect();
            self.with(server, |session, ctx| session.advance(ctx, &bytes));
        }
    }

    /// The peer takes up to `limit` bytes of what there is to send.
    pub fn take(&mut self, server: &Server, mut limit: usize) {
        loop {
            let got = &mut self.got;
            let taken = self.session.out.flush(|bytes, _| {
                let len = bytes.len().min(limit);
                if len == 0 {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                got.extend_from_slice(&bytes[..len]);
                limit -= len;
                Ok(len)
            });
            let taken = taken.expect("a peer that is there");
            let can_resume = self.session.wait() == Wait::Drain && self.session.can_resume(OUTPUT_BYTES);
            if taken == 0 || !can_resume {
                return;
            }
            self.with(server, Session::resume);
        }
    }

    /// Performs one of the reads that are owed, or lets it fail.
    pub fn deliver(&mut self, server: &Server, at: usize, ok: bool) {
        let (ticket, plan) = self.owed.remove(at);
        let (buffer, bytes) = server.read(&plan);
        let bytes = ok.then_some(bytes);
        if !ok {
            server.shared.store.count_read_error();
        }
        server.shared.budget.give(plan.bytes() as u64);
        self.with(server, |session, ctx| session.read_done(ctx, ticket, plan, buffer, bytes));
        self.drive(server);
    }

    /// Tries again what waits for room or reads.
    pub fn retry(&mut self, server: &Server) {
        if matches!(self.session.wait(), Wait::Room | Wait::Reads | Wait::Login) {
            self.with(server, |session, ctx| session.resume(ctx));
        }
        self.drive(server);
    }

    /// Whether nothing is owed and it wants nothing but what the peer sends next.
    pub fn is_quiet(&self) -> bool {
        let open = self.session.wants_input() && self.inbox.is_empty();
        self.owed.is_empty() && self.session.out.is_empty() && (open || self.session.is_over())
    }

    /// Gives it everything owed until it is quiet.
    ///
    /// # Panics
    /// When it never is: a session stuck.
    pub fn settle(&mut self, server: &Server) {
        self.settle_beside(server, Server::write_all);
    }

    /// [`settle`](Self::settle) while something else goes on.
    pub fn settle_beside(&mut self, server: &Server, beside: impl Fn(&Server)) {
        self.takes = true;
        self.read_room = self.read_room.max(1);
        for _ in 0..100_000 {
            self.drive(server);
            if !self.owed.is_empty() {
                self.deliver(server, 0, true);
            } else if self.is_quiet() {
                return;
            } else {
                beside(server);
                server.wait(Duration::from_millis(10));
                self.retry(server);
            }
        }
        panic!("stuck: waits for {:?}, {} bytes unread", self.session.wait(), self.inbox.len());
    }

    /// Sends and answers what comes back, once all of it has.
    pub fn ask(&mut self, server: &Server, bytes: impl AsRef<[u8]>) -> Vec<u8> {
        self.send(server, bytes.as_ref());
        self.settle(server);
        std::mem::take(&mut self.got)
    }

    /// As [`ask`](Self::ask), as text.
    pub fn say(&mut self, server: &Server, bytes: impl AsRef<[u8]>) -> String {
        self.ask(server, bytes).iter().map(|byte| char::from(*byte)).collect()
    }
}

/// A set of a value.
pub fn set(key: &str, value: &[u8]) -> Vec<u8> {
    [format!("set {key} 0 0 {}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

/// What a get of it answers, without the end.
pub fn value(key: &str, value: &[u8]) -> Vec<u8> {
    [format!("VALUE {key} 0 {}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

/// Small repeatable randomness.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}
