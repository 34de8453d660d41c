//! The end of a process in the middle of everything, and what the next one finds: the arena as it was at that
//! instant, and on the device whatever part of the writes under way.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;

use larder_device::{Device, IoBuf};
use larder_store::crash::{CAN_KILL, Killed, arm, disarm};
use larder_store::*;

use super::Sim;
use super::item::{Observed, key_bytes};

/// An operation that was under way when the process ended: what it would have stored.
#[derive(Clone, Debug)]
pub(super) struct Attempted {
    pub key: u64,
    pub values: Vec<Vec<u8>>,
}

thread_local! {
    static COPY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Keys looked up before and after an end between two operations.
const SAMPLE: u64 = 400;

pub(super) fn memory_file(content: Option<&File>) -> MemoryFile {
    let name = c"larder-model";
    let file = File::from(rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC).expect("memory"));
    if let Some(content) = content {
        let bytes = content.metadata().expect("a file").len() as usize;
        COPY.with_borrow_mut(|copy| {
            copy.resize(bytes, 0);
            content.read_exact_at(copy, 0).expect("all of it is there");
            file.write_all_at(copy, 0).expect("memory");
        });
    }
    let name = || b"simulated".to_vec();
    MemoryFile {
        file: Arc::new(file),
        clock: "simulated".into(),
        paths: name(),
        ssd: name(),
        allocate: false,
    }
}

impl Sim {
    /// What is about to be tried with a key, and the values it may have then.
    pub(super) fn attempt(&mut self, key: u64, values: Vec<Vec<u8>>) {
        self.attempted = Some(Attempted { key, values });
    }

    fn memory(&self) -> Arc<File> {
        self.config.memory_file.as_ref().expect("a run with crashes has a memory file").file.clone()
    }

    /// A step, or a part of one and the end of the process.
    pub(super) fn step_and_maybe_die(&mut self) {
        if self.options.crash_one_in == 0 || !self.random.one_in(self.options.crash_one_in) {
            return self.step();
        }
        if !CAN_KILL || self.random.one_in(2) {
            self.step();
            let left = memory_file(Some(&self.memory()));
            return self.begin_again(left, true);
        }
        // Few steps and many, each as likely.
        let scale = self.random.below(9);
        let steps = 1 + self.random.below(1 << scale);
        let left = Rc::new(RefCell::new(None));
        let (found, memory) = (left.clone(), self.memory());
        arm(steps, move || *found.borrow_mut() = Some(memory_file(Some(&memory))));
        while left.borrow().is_none() {
            self.attempted = None;
            let died = catch_unwind(AssertUnwindSafe(|| self.step())).is_err_and(|payload| {
                if !payload.is::<Killed>() {
                    resume_unwind(payload);
                }
                true
            });
            assert_eq!(died, left.borrow().is_some());
        }
        disarm();
        let left = left.borrow_mut().take().expect("the arena at the end");
        self.begin_again(left, false);
    }

    /// Whether a store has the key.
    fn has(&self, store: &Store, key: u64) -> bool {
        self.look_up(store, key, |found| found.is_some())
    }

    fn look_up<R>(&self, store: &Store, key: u64, show: impl Fn(Option<&Found<'_>>) -> R) -> R {
        let bytes = key_bytes(key);
        let hash = store.hash(&bytes);
        let fetch = Fetch { no_bump: true, ..Fetch::default() };
        let mut call = Call { key: &bytes, hash, now: self.now, loaded: None, on_full: OnFull::Drop };
        let plan = match store.fetch(&call, &fetch, &show) {
            Step::Done(answer) => return answer,
            Step::Read(plan) => plan,
            Step::Again | Step::Busy | Step::NoMemory => self.fail(key, "a plain read needs no room"),
        };
        let mut page = IoBuf::zeroed(plan.bytes());
        let read = self.device.read_at(&mut page, plan.offset()).is_ok();
        call.loaded = Some(Loaded { plan: &plan, bytes: read.then_some(&page[..]) });
        store.fetch(&call, &fetch, &show).done().expect("a plain read asks for one read")
    }

    /// The next process, with the memory that the last one left.
    fn begin_again(&mut self, left: MemoryFile, between: bool) {
        // Whoever was not answered does not know; the device may have done any part of what it was told.
        self.waiting.clear();
        for job in std::mem::take(&mut self.writes) {
            let all = self.random.one_in(3);
            let some = self.random.one_in(2);
            for (number, page) in job.data().chunks(4096).enumerate() {
                if all || some && self.random.one_in(2) {
                    let _ = self.device.write_at(page, job.offset + number as u64 * 4096);
                }
            }
        }
        let stats = self.store.stats();
        self.written += stats.ssd_bytes_written;
        self.seen.ssd_errors += stats.ssd_errors;
        self.seen.cleaned += stats.ssd_segments_cleaned;
        self.seen.evictions_ssd += stats.evictions_ssd;
        // Another seed: the one that counts is in the memory.
        let config =
            Config { memory_file: Some(left), seed: self.config.seed.wrapping_add(1), ..self.config.clone() };
        let store = Store::open(&config).expect("the memory is of use");
        let Start::Warm { items, shards_repaired, shards_reset } = store.start() else {
            panic!("{:?}, operation {}: {:?}", self.options, self.operation, store.start());
        };
        assert!(shards_repaired <= u64::from(!between), "{shards_repaired} shards repaired, {between}");
        assert_eq!(shards_reset, 0, "{:?}, operation {}: a shard is emptied", self.options, self.operation);
        self.seen.crashes += 1;
        self.seen.shards_repaired += shards_repaired;
        self.seen.items_back += items;
        store.check().unwrap_or_else(|what| {
            panic!("{:?}, operation {}, after a crash: {what}", self.options, self.operation)
        });
        let ssd_is_on = self.options.ssd_segments == 0 || !self.store.ssd_is_off();
        if between && self.options.faults.is_empty() && !self.is_outage && ssd_is_on {
            for _ in 0..SAMPLE {
                let key = self.random.below(self.options.keys);
                if self.has(&self.store, key) {
                    self.seen.kept += 1;
                    // Looking makes room, which may cost an item its place, or its segment on the SSD its turn.
                    let stats = store.stats();
                    let made_room = stats.evictions > 0 || stats.ssd_bytes_admitted > 0;
                    if !self.has(&store, key) && !made_room {
                        self.fail(key, "lost by a crash");
                    }
                }
            }
        }
        self.config = config;
        self.store = store;
        self.seen.off_at = None;
        self.note_off();
        if let Some(attempted) = self.attempted.take().filter(|_| !between) {
            self.learn(&attempted);
        }
    }

    /// Finds out what became of an operation that nobody was told about: all or nothing.
    fn learn(&mut self, attempted: &Attempted) {
        let key = attempted.key;
        let observed = |found: &Found<'_>| Observed::new(found, &Fetch::default());
        let found = self.look_up(&self.store, key, |found| found.map(observed));
        let truth = self.present(key).cloned();
        let Some(found) = found else {
            // That it is gone is known only now, and may be known again.
            return self.set_model(key, None);
        };
        let is_as_before = truth.as_ref().is_some_and(|truth| found.shows(truth));
        let found = found.item;
        if !is_as_before && !attempted.values.contains(&found.value) {
            let found = (found.value.len(), found.cas, found.expiry);
            let truth = truth.map(|item| (item.value.len(), item.cas, item.expiry));
            self.fail(key, &format!("half done: {found:?} (length, cas, expiry), before {truth:?}"));
        }
        self.seen.done_unsaid += u64::from(!is_as_before);
        self.set_model(key, Some(found));
    }
}
