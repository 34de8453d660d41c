//! The store under a simulated device and clock, beside the map that knows what it may answer.

#[path = "crash.rs"]
mod crash;
#[path = "item.rs"]
mod item;
#[path = "reads.rs"]
mod reads;

use std::collections::HashMap;

use larder_device::{Device, Fault, FaultDevice, FaultRule, IoBuf, MemoryDevice, OpKind, When};
use larder_store::*;

use item::{Item, Random, arith_values, counted_to, key_bytes, number};
use reads::Waiting;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    pub seed: u64,
    pub operations: u64,
    pub keys: u64,
    pub memory_bytes: u64,
    pub ssd_segments: u32,
    pub evict: bool,
    /// Of how many values one is surely large; 0 for none.
    pub large_one_in: u64,
    /// What the device does wrong.
    pub faults: Vec<FaultRule>,
    /// After how many operations, on average, the process ends and another goes on with its memory; 0 for
    /// never.
    pub crash_one_in: u64,
    /// After how many operations, on average, the device begins to fail, or works again; 0 for never.
    pub outage_one_in: u64,
}

impl Options {
    pub fn small() -> Options {
        Options {
            seed: 1,
            operations: 100_000,
            keys: 60_000,
            memory_bytes: 6 << 20,
            ssd_segments: 6,
            evict: true,
            large_one_in: 0,
            faults: Vec::new(),
            crash_one_in: 0,
            outage_one_in: 0,
        }
    }
}

/// How many times as much as in `make test` the long form does.
pub fn times() -> u64 {
    std::env::var("LARDER_MODEL_TIMES").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// What was met on the way.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Entries the index has room for at the end, for each that it had room for at first.
    pub index_growth: f64,
    pub ram_hits: u64,
    pub ssd_hits: u64,
    /// Plain reads without the value that one page was read for.
    pub header_reads: u64,
    pub misses: u64,
    pub mutations_on_ssd: u64,
    pub busy: u64,
    pub no_memory: u64,
    pub turns: u64,
    pub readmissions: u64,
    /// SSD segments whose live records were all moved; live items that were overwritten on the SSD.
    pub cleaned: u64,
    pub evictions_ssd: u64,
    /// Faults of the device: as it counted them, and as the store did.
    pub faults: u64,
    pub ssd_errors: u64,
    /// The operation after which the SSD tier was seen off.
    pub off_at: Option<u64>,
    /// How often the SSD tier came back.
    pub came_back: u64,
    /// Device reads and writes.
    pub reads: u64,
    pub writes: u64,
    /// Ends of the process; shards found half changed, items found, operations found done that nobody was
    /// told about, keys of a sample found as before.
    pub crashes: u64,
    pub shards_repaired: u64,
    pub items_back: u64,
    pub done_unsaid: u64,
    pub kept: u64,
}

/// One key's truth: what is there, and what was there since a time, for reads under way.
#[derive(Default)]
struct History {
    now: Option<Item>,
    /// Earlier truths with the operation number at which each ended; no longer than the longest read under
    /// way.
    before: Vec<(u64, Option<Item>)>,
}

struct Sim {
    random: Random,
    store: Store,
    device: FaultDevice<MemoryDevice>,
    now: Seconds,
    operation: u64,
    model: HashMap<u64, History>,
    flush_at: Option<Seconds>,
    waiting: Vec<Waiting>,
    writes: Vec<WriteJob>,
    seen: Seen,
    options: Options,
    config: Config,
    attempted: Option<crash::Attempted>,
    /// Bytes written to the SSD by processes that ended.
    written: u64,
    is_outage: bool,
    traced: Option<u64>,
}

pub fn run(options: &Options) -> Seen {
    let ssd_bytes = u64::from(options.ssd_segments) * SEGMENT_BYTES;
    let span = Span { device: 0, offset: 0, bytes: ssd_bytes };
    let config = Config {
        memory_bytes: options.memory_bytes,
        ssd: if ssd_bytes == 0 { vec![] } else { vec![span] },
        item_bytes: 512,
        index_bytes: None,
        ssd_write_limit: None,
        ssd_admission: Admission::All,
        ssd_live_percent: 70,
        shadow_bytes: Some(0),
        evict: options.evict,
        memory_file: (options.crash_one_in > 0).then(|| crash::memory_file(None)),
        seed: options.seed,
        first_cas: 1 << 20,
    };
    let mut sim = Sim {
        random: Random(options.seed),
        store: Store::open(&config).expect("the options fit"),
        device: FaultDevice::new(MemoryDevice::new(ssd_bytes.max(4096)), options.seed),
        now: Seconds(1000),
        operation: 0,
        model: HashMap::new(),
        flush_at: None,
        waiting: Vec::new(),
        writes: Vec::new(),
        seen: Seen::default(),
        options: options.clone(),
        config: config.clone(),
        attempted: None,
        written: 0,
        is_outage: false,
        traced: std::env::var("LARDER_MODEL_KEY").ok().and_then(|key| key.parse().ok()),
    };
    options.faults.iter().for_each(|rule| sim.device.inject(rule.clone()));
    sim.store.make_ready(&config, b"simulated");
    let capacity = sim.store.stats().index_capacity;
    while sim.operation < options.operations {
        sim.step_and_maybe_die();
    }
    while let Some(read) = sim.waiting.pop() {
        sim.complete_read(read);
    }
    sim.store.check().unwrap_or_else(|what| panic!("seed {}: {what}", options.seed));
    let stats = sim.store.stats();
    sim.seen.turns = (sim.written + stats.ssd_bytes_written) / ssd_bytes.max(1);
    let counts = sim.device.counts();
    sim.seen.faults = counts.total();
    sim.seen.index_growth = stats.index_capacity as f64 / capacity as f64;
    sim.seen.ssd_errors += stats.ssd_errors;
    sim.seen.cleaned += stats.ssd_segments_cleaned;
    sim.seen.evictions_ssd += stats.evictions_ssd;
    [sim.seen.reads, sim.seen.writes, _] = counts.operations;
    if options.faults.is_empty() && options.outage_one_in == 0 {
        assert_eq!(stats.ssd_errors, 0, "a faultless device gives no errors: seed {}", options.seed);
    }
    assert!(stats.index_entries <= stats.index_capacity);
    sim.seen
}

impl Sim {
    fn fail(&self, key: u64, what: &str) -> ! {
        panic!("{:?}, operation {}, key {key}: {what}", self.options, self.operation)
    }

    /// Says what was done to the key that `LARDER_MODEL_KEY` names.
    fn trace(&self, key: u64, what: impl FnOnce() -> String) {
        if self.traced == Some(key) {
            println!("{} at {}: {}", self.operation, self.now.0, what());
        }
    }

    fn step(&mut self) {
        self.note_off();
        self.operation += 1;
        if self.options.outage_one_in > 0 && self.random.one_in(self.options.outage_one_in) {
            self.toggle_outage();
        }
        if self.random.one_in(2000) {
            self.now.0 += 1 + self.random.below(3) as u32;
            if self.flush_at.is_some_and(|at| at <= self.now) {
                self.flush_at = None;
                self.forget_all();
            }
            self.store.upkeep(self.now);
        }
        match self.random.below(8) {
            0..2 => self.start_write(),
            2..4 => self.finish_write(),
            4 => self.readmission(),
            _ => {}
        }
        if !self.waiting.is_empty() && (self.waiting.len() > 6 || self.random.one_in(3)) {
            let at = self.random.below(self.waiting.len() as u64) as usize;
            let read = self.waiting.swap_remove(at);
            self.complete_read(read);
        }
        // Half the operations go to a twentieth of the keys.
        let hot = self.options.keys.div_ceil(20);
        let key =
            if self.random.one_in(2) { self.random.below(hot) } else { self.random.below(self.options.keys) };
        match self.random.below(100) {
            0..50 => self.start_read(key),
            50..55 => self.touching_read(key),
            55..80 => self.put(key, PutMode::Set),
            80..82 => self.put(key, PutMode::Add),
            82..84 => self.put(key, PutMode::Replace),
            84..86 => self.put(key, PutMode::Append),
            86..88 => self.put(key, PutMode::Prepend),
            88..93 => self.arith(key),
            93..99 => self.remove(key),
            _ if self.random.one_in(4000) => self.flush(),
            _ => {}
        }
    }

    fn start_write(&mut self) {
        let reads_wait = self.random.one_in(2);
        if let Some(job) = self.store.next_write(reads_wait) {
            self.writes.push(job);
        }
    }

    /// Completes some write under way; the device has its bytes only now.
    fn finish_write(&mut self) {
        if self.writes.is_empty() {
            return;
        }
        let at = self.random.below(self.writes.len() as u64) as usize;
        let job = self.writes.swap_remove(at);
        let written = self.device.write_at(job.data(), job.offset);
        if let Err(error) = &written {
            assert_ne!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
        }
        let ok = written.is_ok_and(|written| written == job.data().len());
        self.store.complete_write(job, ok, self.now);
    }

    /// What the device gives; a failure is reported to the store.
    fn read(&mut self, plan: &ReadPlan) -> Option<IoBuf> {
        let mut bytes = IoBuf::zeroed(plan.bytes());
        match self.device.read_at(&mut bytes, plan.offset()) {
            Ok(read) => {
                // Whoever carries out a short read goes on; here it ends as the device's last bytes would.
                bytes[read..].fill(0);
                Some(bytes)
            }
            Err(_) => {
                self.store.count_read_error();
                None
            }
        }
    }

    /// Has every operation of the device fail, or none.
    fn toggle_outage(&mut self) {
        self.is_outage = !self.is_outage;
        if !self.is_outage {
            return self.device.heal();
        }
        for kind in [OpKind::Read, OpKind::Write] {
            self.device.inject(FaultRule::new(kind, Fault::Error, When::From(1)));
        }
    }

    fn note_off(&mut self) {
        if self.seen.off_at.is_some() && !self.store.ssd_is_off() {
            self.seen.off_at = None;
            self.seen.came_back += 1;
        }
        if self.seen.off_at.is_none() && self.options.ssd_segments > 0 && self.store.ssd_is_off() {
            self.seen.off_at = Some(self.operation);
        }
    }

    fn readmission(&mut self) {
        if let Some(plan) = self.store.next_readmission() {
            let bytes = self.read(&plan);
            self.store.readmit(Loaded { plan: &plan, bytes: bytes.as_deref() }, self.now);
            self.seen.readmissions += 1;
        }
    }

    /// Runs an operation to its end, reading at once what it asks for, but with writes in between.
    fn complete<R>(&mut self, key: u64, mut call: impl FnMut(&Store, &Call<'_>) -> Step<R>) -> Option<R> {
        let bytes = key_bytes(key);
        let hash = self.store.hash(&bytes);
        let mut loaded: Option<(ReadPlan, Option<IoBuf>)> = None;
        let mut on_full = OnFull::Wait;
        for _ in 0..1000 {
            let step = {
                let loaded = loaded.as_ref().map(|(plan, bytes)| Loaded { plan, bytes: bytes.as_deref() });
                call(&self.store, &Call { key: &bytes, hash, now: self.now, loaded, on_full })
            };
            match step {
                Step::Done(result) => {
                    self.seen.mutations_on_ssd += u64::from(loaded.is_some());
                    return Some(result);
                }
                Step::Read(plan) => {
                    let read = self.read(&plan);
                    if self.random.one_in(4) {
                        self.finish_write();
                    }
                    loaded = Some((plan, read));
                }
                Step::Again => {}
                Step::Busy => {
                    self.seen.busy += 1;
                    if self.random.one_in(3) {
                        on_full = OnFull::Drop;
                    }
                    self.start_write();
                    self.finish_write();
                }
                Step::NoMemory => {
                    self.seen.no_memory += 1;
                    return None;
                }
            }
        }
        self.fail(key, "an operation does not come to an end")
    }

    /// What is there now, expiry considered.
    fn present(&self, key: u64) -> Option<&Item> {
        let item = self.model.get(&key)?.now.as_ref()?;
        (!item.expiry.has_passed(self.now)).then_some(item)
    }

    fn set_model(&mut self, key: u64, item: Option<Item>) {
        self.trace(key, || {
            let item = item
                .as_ref()
                .map(|item| (item.value.len(), item.cas, item.expiry, item.stale, item.win_sent));
            format!("the truth is {item:?} (length, cas, expiry, stale, win sent)")
        });
        let operation = self.operation;
        let oldest = self.waiting.iter().map(|read| read.began).min().unwrap_or(operation);
        let history = self.model.entry(key).or_default();
        let before = std::mem::replace(&mut history.now, item);
        history.before.retain(|(ended, _)| *ended >= oldest);
        history.before.push((operation, before));
    }

    fn forget_all(&mut self) {
        let keys: Vec<u64> = self.model.keys().copied().collect();
        for key in keys {
            self.set_model(key, None);
        }
    }

    fn value(&mut self, key: u64) -> Vec<u8> {
        if self.options.large_one_in > 0 && self.random.one_in(self.options.large_one_in) {
            let len = 10_000 + self.random.below(100_000);
            return (0..len).map(|i| ((i / 8) ^ key) as u8).collect();
        }
        if self.random.one_in(6) {
            return self.random.below(1000).to_string().into_bytes();
        }
        let len = match self.random.below(10_000) {
            0..7000 => self.random.below(300),
            7000..9700 => self.random.below(4000),
            9700..9980 => self.random.below(30_000),
            9980..9999 => self.random.below(200_000),
            _ => self.random.below(700_000),
        } as usize;
        let start = self.random.next();
        let word = (start ^ key).to_le_bytes();
        (0..len).map(|i| word[i % 8] ^ (i / 8) as u8).collect()
    }

    fn expiry(&mut self) -> Expiry {
        match self.random.below(6) {
            0 => Expiry::At(Seconds(self.now.0 + self.random.below(5) as u32)),
            1 => Expiry::At(Seconds(self.now.0 + self.random.below(4000) as u32)),
            2 if self.random.one_in(10) => Expiry::At(Seconds(1)),
            _ => Expiry::Never,
        }
    }

    fn put(&mut self, key: u64, mode: PutMode) {
        let value = self.value(key);
        let present = self.present(key).cloned();
        let compare = (mode != PutMode::Add && self.random.one_in(10)).then(|| match &present {
            Some(item) if !self.random.one_in(3) => item.cas,
            _ => self.random.below(1_000_000),
        });
        let put = Put {
            mode,
            client_flags: self.random.next() as u32,
            expiry: self.expiry(),
            compare,
            new_cas: None,
            invalidate: self.random.one_in(5),
            vivify: None,
            key_is_binary: false,
            item_bytes_max: 1 << 20,
        };
        let old = present.as_ref().map_or(&[][..], |item| &item.value);
        self.attempt(key, vec![value.clone(), [old, &value].concat(), [&value, old].concat()]);
        let large = value.len() > self.store.large_bytes();
        let result = self.complete(key, |store, call| {
            let mut payload = Payload::Bytes(&value);
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
            store.put(call, &put, &mut payload)
        });
        let Some(result) = result else {
            // Nothing was stored; whether the old item is still there, only a read can tell.
            return;
        };
        let fresh = |cas| Item {
            value: value.clone(),
            client_flags: put.client_flags,
            expiry: put.expiry,
            cas,
            stale: false,
            win_sent: false,
        };
        match (result, mode, present) {
            (PutResult::Stored(cas), PutMode::Append | PutMode::Prepend, Some(item)) => {
                if compare.is_some_and(|compare| compare != item.cas) {
                    self.fail(key, "appended in spite of another cas");
                }
                let value = match mode {
                    PutMode::Append => [item.value, value].concat(),
                    _ => [value, item.value].concat(),
                };
                self.set_model(key, Some(Item { value, cas, stale: false, win_sent: false, ..item }));
            }
            (PutResult::Stored(_), PutMode::Append | PutMode::Prepend | PutMode::Replace, None) => {
                self.fail(key, "stored over nothing")
            }
            (PutResult::Stored(cas), _, Some(item)) if compare.is_some_and(|compare| compare != item.cas) => {
                if !put.invalidate || compare.is_some_and(|compare| compare > item.cas) {
                    self.fail(key, "stored in spite of another cas");
                }
                let stale = Item { expiry: item.expiry, stale: true, win_sent: item.win_sent, ..fresh(cas) };
                self.set_model(key, Some(stale));
            }
            (PutResult::Stored(_), PutMode::Set, None) if compare.is_some() => {
                self.fail(key, "stored with a cas of nothing")
            }
            (PutResult::Stored(cas), ..) => self.set_model(key, Some(fresh(cas))),
            (PutResult::NotStored, PutMode::Add, None) => self.fail(key, "add met what is not there"),
            (PutResult::NotStored, PutMode::Add, Some(_)) => {}
            (PutResult::NotStored | PutResult::NotFound, ..) => self.set_model(key, None),
            (PutResult::Exists, _, None) => self.fail(key, "another cas of what is not there"),
            (PutResult::Exists, _, Some(item)) => {
                if compare.is_none_or(|compare| compare == item.cas) {
                    self.fail(key, "the right cas refused");
                }
            }
            (PutResult::TooLarge, _, Some(item)) => assert!(item.value.len() + value.len() > 900_000),
            (PutResult::TooLarge, _, None) => self.fail(key, "appending to nothing is too large"),
        }
    }

    fn arith(&mut self, key: u64) {
        let arith = Arith {
            delta: 1 + self.random.below(100),
            decrement: self.random.one_in(2),
            // A value that counting does not reach, so that what was created is told from what was counted.
            initial: self.random.one_in(3).then(|| (1_000_000_000 + self.random.below(50), Expiry::Never)),
            compare: None,
            new_cas: None,
            touch: self.random.one_in(5).then(|| self.expiry()),
            key_is_binary: false,
        };
        let present = self.present(key).cloned();
        self.attempt(key, arith_values(&arith, present.as_ref()));
        let Some(result) = self.complete(key, |store, call| store.arith(call, &arith)) else { return };
        match (result, present) {
            (ArithResult::NotFound, _) if arith.initial.is_some() => self.fail(key, "not created"),
            (ArithResult::NotFound, _) => self.set_model(key, None),
            (ArithResult::Exists, _) => self.fail(key, "no cas was given"),
            (ArithResult::NonNumeric, Some(item)) if number(&item).is_none() || item.value.len() > 20 => {}
            (ArithResult::NonNumeric, Some(_)) => self.fail(key, "a number is called none"),
            (ArithResult::NonNumeric, None) => self.fail(key, "nothing is called no number"),
            (ArithResult::Value { value, cas, expiry, .. }, present) => {
                let counted =
                    present.as_ref().and_then(|item| Some((item, number(item)?))).filter(|(item, old)| {
                        counted_to(&arith, *old) == value && expiry == arith.touch.unwrap_or(item.expiry)
                    });
                let width = counted.map(|(item, _)| item.value.len());
                let item = match (counted, arith.initial) {
                    (Some((item, _)), _) => item.clone(),
                    (None, Some((initial, _))) if initial == value => Item {
                        value: vec![],
                        client_flags: 0,
                        expiry: Expiry::Never,
                        cas,
                        stale: false,
                        win_sent: false,
                    },
                    _ => self.fail(key, &format!("counted to {value} from {present:?}")),
                };
                let width = width.unwrap_or(0);
                let value = format!("{value:<width$}").into_bytes();
                self.set_model(key, Some(Item { value, cas, expiry, ..item }));
            }
        }
    }

    fn remove(&mut self, key: u64) {
        let invalidate = self.random.one_in(4);
        let empty = self.random.one_in(8);
        let touch = self.random.one_in(2).then(|| self.expiry());
        let remove = Remove { compare: None, invalidate, empty, touch, new_cas: None };
        let present = self.present(key).cloned();
        self.attempt(
            key,
            vec![Vec::new(), present.as_ref().map_or_else(Vec::new, |item| item.value.clone())],
        );
        let Some(result) = self.complete(key, |store, call| store.remove(call, &remove)) else { return };
        match (result, present) {
            (RemoveResult::Exists, _) => self.fail(key, "no cas was given"),
            (RemoveResult::Removed | RemoveResult::Kept(_), None) => {
                self.fail(key, "removed what is not there")
            }
            (RemoveResult::Kept(_), _) if !invalidate && !empty => {
                self.fail(key, "kept what was to be removed")
            }
            (RemoveResult::Kept(cas), Some(mut item)) => {
                if invalidate {
                    (item.stale, item.win_sent) = (true, false);
                }
                item.expiry = touch.or(empty.then_some(Expiry::Never)).unwrap_or(item.expiry);
                if empty {
                    item.value.clear();
                    item.client_flags = 0;
                }
                item.cas = cas;
                self.set_model(key, Some(item));
            }
            _ => self.set_model(key, None),
        }
    }

    fn flush(&mut self) {
        let at = self.random.one_in(2).then(|| Seconds(self.now.0 + 1 + self.random.below(20) as u32));
        self.store.flush(at, self.now);
        self.flush_at = at;
        if at.is_none() {
            self.forget_all();
        }
    }
}
