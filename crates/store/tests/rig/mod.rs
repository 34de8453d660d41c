//! A store, a device in memory and a clock, with every read and write performed where it is asked for. Never
//! a test.

#![allow(dead_code, reason = "each test binary uses its part")]

pub mod restart;

use std::cell::Cell;

use larder_device::{Device, FaultDevice, IoBuf, MemoryDevice};
use larder_store::*;

/// Everything a reader may learn of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub value: Vec<u8>,
    pub client_flags: u32,
    pub cas: u64,
    pub expiry: Expiry,
    pub stale: bool,
    pub won: bool,
    pub win_sent: bool,
    pub fetched: bool,
    pub tier: Tier,
}

pub struct Rig {
    pub store: Store,
    pub device: FaultDevice<MemoryDevice>,
    pub now: Cell<Seconds>,
    /// Whether writes are performed when the store is busy; else operations go on with [`OnFull::Drop`].
    pub writes: Cell<bool>,
    fillers: Cell<u64>,
}

pub const SET: Put = Put { client_flags: 7, ..Put::new(PutMode::Set) };

pub const COUNT: Arith = Arith {
    delta: 1,
    decrement: false,
    initial: None,
    compare: None,
    new_cas: None,
    touch: None,
    key_is_binary: false,
};

pub fn config(memory_bytes: u64, ssd_segments: u64) -> Config {
    let span = Span { device: 0, offset: 0, bytes: ssd_segments * SEGMENT_BYTES };
    Config {
        ssd: if ssd_segments == 0 { vec![] } else { vec![span] },
        item_bytes: 2048,
        seed: 42,
        first_cas: 1 << 20,
        ..Config::new(memory_bytes)
    }
}

impl Rig {
    pub fn new(memory_mib: u64, ssd_segments: u64) -> Rig {
        Rig::with(&config(memory_mib << 20, ssd_segments))
    }

    pub fn with(config: &Config) -> Rig {
        let bytes = config.ssd.iter().map(|span| span.offset + span.bytes).max().unwrap_or(SEGMENT_BYTES);
        Rig {
            store: Store::open(config).expect("the configuration fits"),
            device: FaultDevice::new(MemoryDevice::new(bytes), 1),
            now: Cell::new(Seconds(1000)),
            writes: Cell::new(true),
            fillers: Cell::new(0),
        }
    }

    /// The same device and time under another store.
    pub fn with_store(self, store: Store) -> Rig {
        Rig { store, ..self }
    }

    pub fn at(&self, seconds: u32) {
        self.now.set(Seconds(seconds));
        self.store.upkeep(self.now.get());
    }

    pub fn in_seconds(&self, seconds: u32) -> Expiry {
        Expiry::At(Seconds(self.now.get().0 + seconds))
    }

    /// Performs one write, if one may start.
    pub fn write_one(&self) -> bool {
        let Some(job) = self.store.next_write(false) else { return false };
        let ok = self.device.write_at(job.data(), job.offset).is_ok_and(|n| n == job.data().len());
        self.store.complete_write(job, ok, self.now.get());
        true
    }

    /// Performs one read of the store's own, if there is one to do.
    pub fn read_back_one(&self) -> bool {
        let Some(plan) = self.store.next_readmission() else { return false };
        let bytes = self.read(&plan);
        self.store.readmit(Loaded { plan: &plan, bytes: bytes.as_deref() }, self.now.get());
        true
    }

    /// Performs all writes and reads that the store wants now.
    pub fn perform_io(&self) {
        while self.write_one() || self.read_back_one() {}
    }

    /// Brings everything that waits for the device there.
    pub fn settle(&self) {
        self.store.seal_writes();
        while self.write_one() {}
    }

    pub fn read(&self, plan: &ReadPlan) -> Option<IoBuf> {
        let mut bytes = IoBuf::zeroed(plan.bytes());
        match self.device.read_at(&mut bytes, plan.offset()) {
            Ok(_) => Some(bytes),
            Err(_) => {
                self.store.count_read_error();
                None
            }
        }
    }

    /// Runs an operation to its end; `None` when there was no memory for it.
    pub fn run<R>(&self, key: &str, mut operation: impl FnMut(&Call<'_>) -> Step<R>) -> Option<R> {
        let hash = self.store.hash(key.as_bytes());
        let mut loaded: Option<(ReadPlan, Option<IoBuf>)> = None;
        let mut on_full = OnFull::Wait;
        for _ in 0..10_000 {
            let call = Call {
                key: key.as_bytes(),
                hash,
                now: self.now.get(),
                loaded: loaded.as_ref().map(|(plan, bytes)| Loaded { plan, bytes: bytes.as_deref() }),
                on_full,
            };
            match operation(&call) {
                Step::Done(result) => return Some(result),
                Step::NoMemory => return None,
                Step::Again => {}
                Step::Read(plan) => {
                    let bytes = self.read(&plan);
                    loaded = Some((plan, bytes));
                }
                Step::Busy => {
                    assert!(on_full == OnFull::Wait, "who does not wait is not told to");
                    if !self.writes.get() {
                        on_full = OnFull::Drop;
                    } else {
                        assert!(self.write_one() || self.read_back_one(), "busy with nothing to wait for");
                    }
                }
            }
        }
        panic!("an operation on {key} does not come to an end");
    }

    pub fn put(&self, key: &str, value: &[u8], put: &Put) -> Option<PutResult> {
        let large = key.len() + value.len() + 32 > self.store.large_bytes();
        let small_mode = matches!(put.mode, PutMode::Append | PutMode::Prepend);
        self.run(key, |call| {
            let mut payload = Payload::Bytes(value);
            if large && !small_mode {
                match self.store.reserve(call, value.len()) {
                    Step::Done(mut incoming) => {
                        while incoming.missing() > 0 {
                            let come = value.len() - incoming.missing();
                            match self.store.receive(call, &mut incoming, &value[come..]) {
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
            self.store.put(call, put, &mut payload)
        })
    }

    /// Sets; panics when it is not stored. Answers the cas unique.
    pub fn set(&self, key: &str, value: &[u8]) -> u64 {
        self.set_with(key, value, &SET)
    }

    pub fn set_with(&self, key: &str, value: &[u8], put: &Put) -> u64 {
        match self.put(key, value, put) {
            Some(PutResult::Stored(cas)) => cas,
            other => panic!("{key} was not stored: {other:?}"),
        }
    }

    pub fn fetch(&self, key: &str, fetch: &Fetch) -> Option<Item> {
        let show = |found: &Found<'_>| {
            let mut value = Vec::new();
            found.value.append_to(&mut value);
            Item {
                value,
                client_flags: found.client_flags,
                cas: found.cas,
                expiry: found.expiry_after,
                stale: found.stale,
                won: found.won,
                win_sent: found.win_sent,
                fetched: found.fetched,
                tier: found.tier,
            }
        };
        self.run(key, |call| self.store.fetch(call, fetch, |found| found.map(show))).flatten()
    }

    pub fn get(&self, key: &str) -> Option<Item> {
        self.fetch(key, &Fetch::default())
    }

    /// Looks without leaving a trace.
    pub fn peek(&self, key: &str) -> Option<Item> {
        self.fetch(key, &Fetch { no_bump: true, ..Fetch::default() })
    }

    pub fn value(&self, key: &str) -> Option<Vec<u8>> {
        self.get(key).map(|item| item.value)
    }

    pub fn arith(&self, key: &str, arith: &Arith) -> Option<ArithResult> {
        self.run(key, |call| self.store.arith(call, arith))
    }

    pub fn remove(&self, key: &str, remove: &Remove) -> Option<RemoveResult> {
        self.run(key, |call| self.store.remove(call, remove))
    }

    /// Pushes everything that is in RAM now out to the SSD, by storing more than RAM holds after it, and
    /// reading it so often that it takes the main queue too.
    pub fn push_out(&self) {
        let bytes = self.store.stats().ram_tier_bytes * 3;
        let chunk = self.store.large_bytes() / 2;
        for _ in 0..bytes / chunk as u64 {
            self.fillers.set(self.fillers.get() + 1);
            let key = format!("filler-{}", self.fillers.get());
            // Gone by the time the next test step looks for room on the SSD.
            self.put(&key, &vec![0; chunk], &Put { expiry: self.in_seconds(1), ..SET });
            (0..3).for_each(|_| drop(self.get(&key)));
        }
        self.settle();
    }

    /// Stores an item and has it demoted; it is on the SSD then, unread.
    pub fn set_on_ssd(&self, key: &str, value: &[u8], put: &Put) -> u64 {
        let cas = self.set_with(key, value, put);
        self.push_out();
        let item = self.peek(key);
        assert_eq!(item.map(|item| item.tier), Some(Tier::Ssd), "{key} is on the SSD");
        cas
    }
}

/// Bytes that tell where they are and whose.
pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (seed.wrapping_mul(31) ^ i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}
