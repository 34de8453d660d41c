//! One store under several threads at once: no answer older than it may be, no lost count, no segment
//! unaccounted for.

#[path = "threads/history.rs"]
mod history;
mod rig;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use history::{Event, GONE, judge};
use larder_device::{
    Completion, Device, Fault, FaultDevice, FaultRule, FileDevice, FileOptions, IoBuf, IoKind, IoOp, IoQueue,
    MemoryDevice, OpKind, QueueOptions, When, open_queue,
};
use larder_store::*;
use rig::{COUNT, SET, config};

/// How a thread reaches the device.
trait Io {
    fn read(&mut self, store: &Store, plan: &ReadPlan) -> Option<IoBuf>;
    /// Does some of the writes; true if it did any.
    fn write(&mut self, store: &Store) -> bool;
}

/// Blocks on each operation.
struct Inline(Arc<dyn Device>);

impl Io for Inline {
    fn read(&mut self, store: &Store, plan: &ReadPlan) -> Option<IoBuf> {
        let mut bytes = IoBuf::zeroed(plan.bytes());
        match self.0.read_at(&mut bytes, plan.offset()) {
            Ok(_) => Some(bytes),
            Err(_) => {
                store.count_read_error();
                None
            }
        }
    }

    fn write(&mut self, store: &Store) -> bool {
        let Some(job) = store.next_write(false) else { return false };
        let ok = self.0.write_at(job.data(), job.offset).is_ok_and(|n| n == job.data().len());
        store.complete_write(job, ok, NOW);
        true
    }
}

/// Goes through the thread's own queue; several writes may be under way.
struct Queued {
    queue: Box<dyn IoQueue>,
    jobs: Vec<(u64, WriteJob)>,
    next: u64,
}

impl Queued {
    fn take_back(&mut self, store: &Store, done: Vec<Completion>) -> Option<IoBuf> {
        let mut read = None;
        for Completion { token, op, result } in done {
            result.expect("a device that works");
            match op {
                IoOp::Read { buf, .. } => read = Some(buf),
                IoOp::Write { source, .. } => {
                    drop(source);
                    let at = self.jobs.iter().position(|(id, _)| *id == token).expect("a job of ours");
                    store.complete_write(self.jobs.swap_remove(at).1, true, NOW);
                }
            }
        }
        read
    }
}

impl Io for Queued {
    fn read(&mut self, store: &Store, plan: &ReadPlan) -> Option<IoBuf> {
        let buf = self.queue.alloc(plan.bytes());
        let op = IoOp::Read { device: plan.device(), offset: plan.offset(), buf };
        self.queue.submit(0, op).expect("room in the queue");
        loop {
            let mut done = Vec::new();
            self.queue.wait(&mut done, -1).expect("a queue that works");
            if let Some(buf) = self.take_back(store, done) {
                return Some(buf);
            }
        }
    }

    fn write(&mut self, store: &Store) -> bool {
        let mut did = false;
        while self.jobs.len() < 8 {
            let Some(job) = store.next_write(false) else { break };
            self.next += 1;
            let op = IoOp::Write {
                device: job.device,
                offset: job.offset,
                len: job.data().len(),
                source: Box::new(job.share()),
            };
            self.queue.submit(self.next, op).expect("room in the queue");
            self.jobs.push((self.next, job));
            did = true;
        }
        let mut done = Vec::new();
        self.queue.wait(&mut done, if did { 0 } else { 1 }).expect("a queue that works");
        did |= !done.is_empty();
        self.take_back(store, done);
        did
    }
}

const NOW: Seconds = Seconds(1000);

/// One thread's view of the store.
struct Client<'a> {
    store: &'a Store,
    io: &'a mut dyn Io,
    random: u64,
    clock: &'a AtomicU64,
}

impl Client<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % bound
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, SeqCst)
    }

    fn run<R>(&mut self, key: &str, mut operation: impl FnMut(&Call<'_>) -> Step<R>) -> Option<R> {
        let hash = self.store.hash(key.as_bytes());
        let mut loaded: Option<(ReadPlan, Option<IoBuf>)> = None;
        let began = Instant::now();
        loop {
            let call = Call {
                key: key.as_bytes(),
                hash,
                now: NOW,
                loaded: loaded.as_ref().map(|(plan, bytes)| Loaded { plan, bytes: bytes.as_deref() }),
                on_full: OnFull::Wait,
            };
            match operation(&call) {
                Step::Done(result) => return Some(result),
                Step::NoMemory => return None,
                Step::Read(plan) => {
                    let bytes = self.io.read(self.store, &plan);
                    loaded = Some((plan, bytes));
                }
                Step::Again => {}
                Step::Busy => {
                    if !self.io.write(self.store) {
                        std::thread::yield_now();
                    }
                    assert!(began.elapsed() < Duration::from_secs(20), "busy for good");
                }
            }
        }
    }

    fn put(&mut self, key: &str, value: &[u8], put: &Put) -> Option<PutResult> {
        let store = self.store;
        let large = key.len() + value.len() + 32 > store.large_bytes();
        self.run(key, |call| {
            let mut payload = Payload::Bytes(value);
            if large {
                match store.reserve(call, value.len()) {
                    Step::Done(mut incoming) => {
                        while incoming.missing() > 0 {
                            let come = value.len() - incoming.missing();
                            match store.receive(call, &mut incoming, &value[come..]) {
                                Step::Done(()) | Step::Again => {}
                                Step::Busy => return Step::Busy,
                                _ => return Step::NoMemory,
                            }
                        }
                        payload = Payload::Incoming(incoming);
                    }
                    Step::Busy => return Step::Busy,
                    _ => return Step::NoMemory,
                }
            }
            store.put(call, put, &mut payload)
        })
    }
}

/// A value that says which version of which key it is, all the way through.
fn value_of(key: u32, version: u64, len: usize) -> Vec<u8> {
    let mut value = Vec::with_capacity(len + 32);
    while value.len() < len.max(16) {
        value.extend_from_slice(&version.to_le_bytes());
        value.extend_from_slice(&u64::from(key).to_le_bytes());
    }
    value
}

/// The version in a value, which is whole and the key's.
fn version_in(key: u32, value: &[u8]) -> u64 {
    let version = u64::from_le_bytes(value[..8].try_into().expect("8 bytes"));
    for part in value.chunks(16) {
        assert_eq!(part[..8], version.to_le_bytes(), "a value of two versions");
        assert_eq!(part[8..], u64::from(key).to_le_bytes(), "another key's value");
    }
    version
}

/// What one thread did: events, cas uniques that it won with, counts.
#[derive(Default)]
struct Log {
    events: Vec<Event>,
    won: Vec<(u32, u64)>,
    counted: Vec<u64>,
}

const COUNTERS: u64 = 16;

struct Plan {
    keys: u64,
    operations: u64,
    seconds: u64,
    large_len: u64,
}

fn work(client: &mut Client<'_>, plan: &Plan, thread: u64) -> Log {
    let mut log = Log { counted: vec![0; COUNTERS as usize], ..Log::default() };
    let end = Instant::now() + Duration::from_secs(plan.seconds);
    for operation in 0..plan.operations {
        if operation % 64 == 0 && Instant::now() > end {
            break;
        }
        if client.below(4) == 0 {
            client.io.write(client.store);
        }
        if operation % 2_048 == 0 {
            // Nothing expires here, but what fails must fail for seconds to count.
            client.store.upkeep(Seconds(NOW.0 + (operation / 2_048) as u32));
        }
        if client.below(8) == 0
            && let Some(readmission) = client.store.next_readmission()
        {
            let bytes = client.io.read(client.store, &readmission);
            client.store.readmit(Loaded { plan: &readmission, bytes: bytes.as_deref() }, NOW);
        }
        let (a, b) = (client.below(plan.keys), client.below(plan.keys));
        let number = a.min(b) as u32;
        let key = format!("key-{number}");
        let version = (operation << 8) | thread;
        let len = match client.below(200) {
            0 => plan.large_len + client.below(plan.large_len),
            1..20 => 2_000 + client.below(10_000),
            _ => client.below(500),
        };
        let value = value_of(number, version, len as usize);
        let began = client.tick();
        let mut event = Event { key: number, version, began, ended: 0, is_write: true };
        match client.below(100) {
            0..40 => {
                event.is_write = false;
                let store = client.store;
                let found = client.run(&key, |call| {
                    store.fetch(call, &Fetch::default(), |found| {
                        found.map(|found| {
                            let mut value = Vec::new();
                            found.value.append_to(&mut value);
                            value
                        })
                    })
                });
                let Some(value) = found.flatten() else { continue };
                event.version = version_in(number, &value);
            }
            40..65 => {
                if !matches!(client.put(&key, &value, &SET), Some(PutResult::Stored(_))) {
                    continue;
                }
            }
            65..70 => {
                let put = Put { mode: PutMode::Add, ..SET };
                if !matches!(client.put(&key, &value, &put), Some(PutResult::Stored(_))) {
                    continue;
                }
            }
            70..80 => {
                let store = client.store;
                let cas = client.run(&key, |call| {
                    store.fetch(call, &Fetch::default(), |found| found.map(|found| found.cas))
                });
                let Some(cas) = cas.flatten() else { continue };
                event.began = client.tick();
                let put = Put { compare: Some(cas), ..SET };
                if !matches!(client.put(&key, &value, &put), Some(PutResult::Stored(_))) {
                    continue;
                }
                log.won.push((number, cas));
            }
            80..85 => {
                event.version = GONE;
                let store = client.store;
                let removed = client.run(&key, |call| store.remove(call, &Remove::default()));
                // "Not found" says that it is gone too, but not that nobody is just storing it.
                if removed != Some(RemoveResult::Removed) {
                    continue;
                }
            }
            85..88 => {
                // Touching must not change the value, large or small, here or there.
                event.is_write = false;
                let store = client.store;
                let fetch = Fetch { touch: Some(Expiry::At(Seconds(9_000))), ..Fetch::default() };
                let found = client.run(&key, |call| {
                    store.fetch(call, &fetch, |found| {
                        found.map(|found| {
                            let mut value = Vec::new();
                            found.value.append_to(&mut value);
                            value
                        })
                    })
                });
                let Some(value) = found.flatten() else { continue };
                event.version = version_in(number, &value);
            }
            _ => {
                let counter = client.below(COUNTERS);
                let store = client.store;
                let arith = Arith { initial: Some((1, Expiry::Never)), ..COUNT };
                let result = client.run(&format!("counter-{counter}"), |call| store.arith(call, &arith));
                assert!(matches!(result, Some(ArithResult::Value { .. })), "{result:?}");
                log.counted[counter as usize] += 1;
                continue;
            }
        }
        event.ended = client.tick();
        log.events.push(event);
    }
    log
}

/// Runs threads over one store and checks everything they saw. With `exact`, nothing was evicted and all
/// counts add up.
fn hammer(
    store: &Store,
    threads: u64,
    plan: &Plan,
    exact: bool,
    io: impl Fn() -> Box<dyn Io> + Sync,
) -> Stats {
    let clock = AtomicU64::new(0);
    let logs: Vec<Log> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let (clock, io) = (&clock, &io);
                scope.spawn(move || {
                    let mut io = io();
                    let mut client = Client { store, io: &mut *io, random: thread + 7, clock };
                    let log = work(&mut client, plan, thread);
                    // Whoever leaves takes his writes to their end.
                    while store.writes_pending() > 0 && io.write(store) {}
                    log
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a thread that ends")).collect()
    });
    let mut last = io();
    store.seal_writes();
    while store.writes_pending() > 0 {
        last.write(store);
    }
    let judged = judge(logs.iter().flat_map(|log| log.events.iter().copied()));
    let mut won: Vec<_> = logs.iter().flat_map(|log| log.won.iter().copied()).collect();
    let wins = won.len();
    won.sort_unstable();
    won.dedup();
    assert_eq!(won.len(), wins, "two threads replaced the same version");
    let mut client = Client { store, io: &mut *last, random: 1, clock: &clock };
    let mut counted = 0;
    for counter in 0..COUNTERS {
        let read = client.run(&format!("counter-{counter}"), |call| {
            store.fetch(call, &Fetch::default(), |found| {
                found.map(|found| {
                    let mut value = Vec::new();
                    found.value.append_to(&mut value);
                    String::from_utf8_lossy(&value).trim().parse::<u64>().expect("a number")
                })
            })
        });
        let sum: u64 = logs.iter().map(|log| log.counted[counter as usize]).sum();
        counted += sum;
        if exact {
            assert_eq!(read.flatten().unwrap_or(0), sum, "counter {counter}");
        } else {
            assert!(read.flatten().unwrap_or(0) <= sum, "counter {counter} counted too far");
        }
    }
    store.check().expect("every count is right");
    let stats = store.stats();
    println!("{judged} reads judged, {wins} cas won, {counted} counted: {stats:?}");
    stats
}

#[test]
fn threads_over_both_tiers_never_read_what_was_replaced_and_lose_no_count() {
    // So much SSD that nothing is ever dropped.
    let store = Store::open(&Config { item_bytes: 16_384, ..config(6 << 20, 128) }).expect("it fits");
    let device = Arc::new(MemoryDevice::new(128 * SEGMENT_BYTES));
    let plan = Plan { keys: 3_000, operations: 150_000, seconds: 60, large_len: 30_000 };
    let stats = hammer(&store, 4, &plan, true, || Box::new(Inline(device.clone())));
    assert!(stats.ssd_items > 200 && stats.evictions == 0 && stats.ssd_admissions_dropped == 0, "{stats:?}");
}

#[test]
fn threads_over_a_small_ssd_that_is_filled_again_and_again() {
    let store = Store::open(&config(6 << 20, 5)).expect("it fits");
    let device = Arc::new(MemoryDevice::new(5 * SEGMENT_BYTES));
    let plan = Plan { keys: 20_000, operations: 150_000, seconds: 60, large_len: 60_000 };
    let stats = hammer(&store, 3, &plan, false, || Box::new(Inline(device.clone())));
    assert!(stats.ssd_bytes_written > 6 * SEGMENT_BYTES, "{stats:?}");
}

#[test]
fn threads_over_a_device_that_fails_and_lies_and_at_last_gives_up() {
    let device = FaultDevice::new(MemoryDevice::new(8 * SEGMENT_BYTES), 5);
    for (kind, fault) in [
        (OpKind::Write, Fault::Error),
        (OpKind::Write, Fault::Torn),
        (OpKind::Write, Fault::Lost),
        (OpKind::Read, Fault::Error),
        (OpKind::Read, Fault::Misdirected),
        (OpKind::Read, Fault::FlippedBit),
    ] {
        device.inject(FaultRule::new(kind, fault, When::Chance(0.02)));
    }
    device.inject(FaultRule::new(OpKind::Read, Fault::Error, When::From(20_000)));
    let device = Arc::new(device);
    let store = Store::open(&config(12 << 20, 8)).expect("it fits");
    let plan = Plan { keys: 20_000, operations: 100_000, seconds: 60, large_len: 60_000 };
    let stats = hammer(&store, 4, &plan, false, || Box::new(Inline(device.clone())));
    assert!(stats.ssd_errors > 100 && store.ssd_is_off(), "{stats:?}");
}

#[test]
fn threads_in_memory_alone_lose_no_count() {
    let store = Store::open(&config(256 << 20, 0)).expect("it fits");
    let device = Arc::new(MemoryDevice::new(SEGMENT_BYTES));
    let plan = Plan { keys: 500, operations: 200_000, seconds: 60, large_len: 150_000 };
    let stats = hammer(&store, 4, &plan, true, || Box::new(Inline(device.clone())));
    assert_eq!(stats.evictions, 0);
}

#[test]
fn threads_with_queues_of_their_own_over_a_file() {
    let path = std::env::temp_dir().join(format!("larder-threads-{}", std::process::id()));
    let options = FileOptions { size_bytes: Some(9 * SEGMENT_BYTES), ..FileOptions::new(&path) };
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(&options).expect("a file"));
    let bytes = device.len();
    let store =
        Store::open(&Config { ssd: vec![Span { device: 0, offset: 0, bytes }], ..config(24 << 20, 0) });
    let store = store.expect("it fits");
    let plan = Plan { keys: 30_000, operations: 100_000, seconds: 60, large_len: 100_000 };
    let stats = hammer(&store, 3, &plan, false, || {
        let devices = [device.clone()];
        let opened = open_queue(IoKind::Auto, &devices, QueueOptions::default()).expect("a queue");
        Box::new(Queued { queue: opened.queue, jobs: Vec::new(), next: 0 })
    });
    drop((store, device));
    let _ = std::fs::remove_file(&path);
    assert!(stats.ssd_device_writes > 10, "{stats:?}");
}
