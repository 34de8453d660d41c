//! A process that ends at each instant of each change: no shard is emptied, and no item is lost but the one that
//! was being changed.

mod rig;

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use larder_store::crash::{CAN_KILL, Killed, arm, disarm};
use larder_store::*;
use rig::restart::{begin_with, copy, open_left};
use rig::{COUNT, Rig, SET, bytes, config};

/// One of this many next processes ends too while it opens the store.
const ENDS_TWICE: u64 = 5;

/// Processes that follow each other, and what each key may hold.
struct Life {
    rig: Option<Rig>,
    config: Config,
    truth: HashMap<String, Option<Vec<u8>>>,
    /// Ends, those in a change of a shard, and those while the store was opened.
    ends: u64,
    in_changes: u64,
    in_opens: u64,
    /// Items that were there before an end and are not behind it.
    lost: u64,
}

impl Life {
    fn new(memory_mib: u64, ssd_segments: u64) -> Life {
        Life::with(&config(memory_mib << 20, ssd_segments))
    }

    fn with(config: &Config) -> Life {
        let (rig, config) = begin_with(config);
        let rig = Some(rig);
        Life { rig, config, truth: HashMap::new(), ends: 0, in_changes: 0, in_opens: 0, lost: 0 }
    }

    fn rig(&self) -> &Rig {
        self.rig.as_ref().expect("a process runs")
    }

    fn set(&mut self, key: &str, value: Vec<u8>) {
        self.rig().set(key, &value);
        self.truth.insert(key.into(), Some(value));
    }

    /// Stores items of all sizes.
    fn fill(&mut self, count: usize) {
        for i in 0..count {
            let len = if i.is_multiple_of(40) { 50_000 + i } else { 100 + i * 37 % 4_000 };
            self.set(&format!("item-{i}"), bytes(i as u64, len));
        }
    }

    /// Runs what `work` does until its `steps`-th change of the arena; false if it came to its end before.
    fn dies(&self, steps: u64, work: impl FnOnce()) -> Option<MemoryFile> {
        let memory = self.config.memory_file.clone().expect("a file");
        let left = Rc::new(RefCell::new(None));
        let found = left.clone();
        arm(steps, move || *found.borrow_mut() = Some(copy(&memory)));
        if let Err(payload) = catch_unwind(AssertUnwindSafe(work))
            && !payload.is::<Killed>()
        {
            resume_unwind(payload);
        }
        disarm();
        left.take()
    }

    fn begin_again(&mut self, mut left: MemoryFile) {
        self.ends += 1;
        if self.ends.is_multiple_of(ENDS_TWICE) {
            let config = Config { memory_file: Some(left.clone()), ..self.config.clone() };
            self.config = config.clone();
            // Other steps each time, few and many.
            let steps = 1 + self.ends * 7 % (1 << (self.ends / ENDS_TWICE % 10));
            let second = on_one_processor(|| self.dies(steps, || drop(Store::open(&config))));
            if let Some(second) = second {
                self.in_opens += 1;
                left = second;
            } else {
                left = copy(&left);
            }
        }
        let rig = self.rig.take().expect("a process has run");
        let (rig, config) = open_left(rig, left, &self.config);
        let Start::Warm { shards_repaired, shards_reset, .. } = rig.store.start() else {
            panic!("{:?}", rig.store.start());
        };
        assert_eq!(shards_reset, 0, "end {}: a shard is emptied", self.ends);
        self.in_changes += u64::from(shards_repaired > 0);
        (self.rig, self.config) = (Some(rig), config);
    }

    /// Reads every item; `changed` may hold `after`, or nothing.
    fn verify(&mut self, what: &str, changed: &str, after: Option<&Vec<u8>>) {
        let keys: Vec<String> = self.truth.keys().cloned().collect();
        for key in keys {
            let found = self.rig().peek(&key).map(|item| item.value);
            let truth = self.truth[&key].clone();
            match &found {
                Some(value) => {
                    let may = Some(value) == truth.as_ref() || key == changed && Some(value) == after;
                    assert!(may, "{what}, end {}: {key} holds something else", self.ends);
                }
                None => self.lost += u64::from(key != changed && truth.is_some()),
            }
            self.truth.insert(key, found);
        }
    }

    /// Ends the process at every instant of an operation on `key`, after which it holds `after`; `prepare` is what
    /// comes before it each time. From `dense` instants on some are left out.
    fn at_each_instant(
        &mut self,
        what: &str,
        key: &str,
        dense: u64,
        prepare: impl Fn(&mut Life, u64),
        operation: impl Fn(&Rig) -> Option<Vec<u8>>,
        after: Option<Vec<u8>>,
    ) {
        let (mut steps, first) = (1, self.ends);
        loop {
            prepare(self, steps);
            let left = self.dies(steps, || drop(operation(self.rig())));
            let Some(left) = left else { break };
            self.begin_again(left);
            self.verify(what, key, after.as_ref());
            steps += 1 + steps / dense;
        }
        self.verify(what, key, after.as_ref());
        println!("{what}: {} ends, {} items lost so far", self.ends - first, self.lost);
        assert!(self.ends > first, "{what} changes nothing");
    }
}

/// Every way to change one item, where there is room for everything.
fn change_items(life: &mut Life, dense: u64) {
    let small = |life: &mut Life, n: u64| life.set("k", bytes(n, 700));
    let large_len = life.rig().store.large_bytes() + 10_000;
    let large = |life: &mut Life, n: u64| life.set("k", bytes(n, large_len));
    let absent = |life: &mut Life, _| {
        life.rig().remove("k", &Remove::default());
        life.truth.insert("k".into(), None);
    };
    let number = |text: &'static str| move |life: &mut Life, _| life.set("k", text.as_bytes().to_vec());
    let touch = |rig: &Rig| {
        let touch = Some(rig.in_seconds(500));
        rig.fetch("k", &Fetch { touch, ..Fetch::default() }).map(|item| item.value)
    };
    // Lengths that put records over the ends of segments at ever other places.
    for len in [0, 701, 3_001, 5_003] {
        let value = bytes(99, len);
        let set = |rig: &Rig| rig.put("k", &value, &SET).and(None);
        life.at_each_instant("a new item", "k", dense, absent, set, Some(value.clone()));
        life.at_each_instant("another length", "k", dense, small, set, Some(value.clone()));
        life.at_each_instant("small over large", "k", dense, large, set, Some(value.clone()));
    }
    for len in [700, large_len] {
        let value = bytes(99, len);
        let set = |rig: &Rig| rig.put("k", &value, &SET).and(None);
        life.at_each_instant("the same length", "k", dense, small, set, Some(value.clone()));
        life.at_each_instant("over large", "k", dense, large, set, Some(value.clone()));
        life.at_each_instant("new of any kind", "k", dense, absent, set, Some(value.clone()));
    }
    let remove = |rig: &Rig| rig.remove("k", &Remove::default()).and(None);
    life.at_each_instant("delete small", "k", dense, small, remove, None);
    life.at_each_instant("delete large", "k", dense, large, remove, None);
    let stale = |rig: &Rig| rig.remove("k", &Remove { invalidate: true, ..Remove::default() }).and(None);
    let prepare = |life: &mut Life, n| small(life, n % 3);
    life.at_each_instant("mark stale", "k", dense, prepare, stale, None);
    life.at_each_instant("mark large stale", "k", dense, large, stale, None);
    let empty = |rig: &Rig| rig.remove("k", &Remove { empty: true, ..Remove::default() }).and(None);
    life.at_each_instant("empty", "k", dense, small, empty, Some(vec![]));
    life.at_each_instant("touch small", "k", dense, small, touch, None);
    life.at_each_instant("touch large", "k", dense, large, touch, None);
    let get = |rig: &Rig| rig.value("k");
    life.at_each_instant("read large", "k", dense, large, get, None);
    let count = |rig: &Rig| rig.arith("k", &COUNT).and(None);
    life.at_each_instant("count in place", "k", dense, number("41"), count, Some(b"42".to_vec()));
    life.at_each_instant("count on", "k", dense, number("99999999"), count, Some(b"100000000".to_vec()));
    let append = Put { mode: PutMode::Append, ..SET };
    for len in [10, large_len] {
        let joined = [bytes(5, 700), vec![7; len]].concat();
        let prepare = |life: &mut Life, _| life.set("k", bytes(5, 700));
        let append = |rig: &Rig| rig.put("k", &vec![7; len], &append).and(None);
        life.at_each_instant("append", "k", dense, prepare, append, Some(joined));
    }
}

fn report(life: &Life) {
    println!(
        "{} ends, {} of them in a change of a shard, {} while the store was opened: none emptied a shard",
        life.ends, life.in_changes, life.in_opens
    );
    assert!(life.in_changes > 50 && life.in_opens > 10);
}

/// Runs `work` on one processor: the store is opened by one thread then, of which the instants are counted.
fn on_one_processor<R>(work: impl FnOnce() -> R) -> R {
    let all = rustix::thread::sched_getaffinity(None).expect("the processors");
    let mut one = rustix::thread::CpuSet::new();
    one.set((0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).expect("one"));
    rustix::thread::sched_setaffinity(None, &one).expect("one of those it may use");
    let result = work();
    rustix::thread::sched_setaffinity(None, &all).expect("as before");
    result
}

#[test]
fn no_instant_of_a_change_costs_another_item() {
    if !CAN_KILL {
        return;
    }
    let mut life = Life::new(8, 0);
    life.fill(500);
    change_items(&mut life, u64::MAX);
    report(&life);
    assert_eq!(life.lost, 0);
}

#[test]
fn no_instant_of_a_move_in_a_full_index_empties_a_shard() {
    if !CAN_KILL {
        return;
    }
    let mut life = Life::with(&Config { index_bytes: Some(16 << 10), evict: false, ..config(8 << 20, 0) });
    let entries = life.rig().store.stats().index_capacity as usize;
    (0..entries * 93 / 100).for_each(|i| life.set(&format!("item-{i}"), bytes(i as u64, i % 50)));
    for new in 0..entries / 40 {
        let key = format!("new-{new}");
        let absent = |life: &mut Life, _| {
            life.rig().remove(&key, &Remove::default());
        };
        let set = |rig: &Rig| rig.put(&key, b"new", &SET).and(None);
        life.at_each_instant("a full index", &key, u64::MAX, absent, set, Some(b"new".to_vec()));
    }
    report(&life);
}

/// Stores small items, as many as so many percent of the index has room for at first, and has those before the last
/// few leave RAM, if there is an SSD.
fn fill_index(life: &mut Life, percent: u64) {
    let entries = life.rig().store.stats().index_capacity;
    for i in 0..entries * percent / 100 {
        life.set(&format!("item-{i}"), i.to_le_bytes().to_vec());
        life.rig().perform_io();
    }
    let rig = life.rig();
    while rig.store.stats().ssd_segments > 0 && !rig.store.evict_all(rig.now.get()) {
        rig.settle();
    }
}

#[test]
fn no_instant_of_an_index_that_grows_costs_an_item() {
    if !CAN_KILL {
        return;
    }
    for segments in [0, 2] {
        let (mut steps, mut in_changes) = (1, 0);
        loop {
            let mut life = Life::new(2 + segments / 2, segments);
            fill_index(&mut life, 87);
            let before = life.rig().store.stats();
            assert_eq!(before.ssd_items > before.index_entries / 2, segments > 0, "{before:?}");
            let set_more = || {
                for i in 0..before.index_capacity / 30 {
                    life.rig().set(&format!("new-{i}"), b"new");
                }
            };
            let Some(left) = life.dies(steps, set_more) else {
                assert!(life.rig().store.stats().index_capacity > before.index_capacity);
                break;
            };
            life.begin_again(left);
            life.verify("growth", "", None);
            // With an SSD, which was never read, one of them may have given way to another that looks alike.
            assert!(life.lost <= segments / 2, "after {steps} steps");
            in_changes += life.in_changes;
            steps += 1 + steps / 100;
        }
        println!("{in_changes} ends in a change");
        assert!(in_changes > 100, "{in_changes} ends in a change");
    }
}

#[test]
fn no_instant_of_an_index_that_shrinks_costs_an_item() {
    if !CAN_KILL {
        return;
    }
    for segments in [0, 2] {
        let mut life = Life::new(2 + segments / 2, segments);
        let began = life.rig().store.stats();
        fill_index(&mut life, 300);
        let grown = life.rig().store.stats();
        assert!(grown.index_capacity > 2 * began.index_capacity, "{grown:?}");
        let keys: Vec<String> = life.truth.keys().filter(|key| !key.ends_with('7')).cloned().collect();
        for key in keys {
            life.rig().remove(&key, &Remove::default());
            life.truth.insert(key, None);
        }
        let lost =
            life.truth.keys().filter(|key| key.ends_with('7') && life.rig().peek(key).is_none()).count();
        let upkeep = |rig: &Rig| {
            rig.store.upkeep(rig.now.get());
            None
        };
        life.at_each_instant("an index that shrinks", "", 50, |_, _| {}, upkeep, None);
        report(&life);
        assert!(life.lost <= lost as u64, "{} lost, and {lost} before", life.lost);
        let stats = life.rig().store.stats();
        assert_eq!(stats.index_capacity, began.index_capacity, "{stats:?}");
        assert!(stats.ram_tier_bytes >= began.ram_tier_bytes, "{began:?} {stats:?}");
        life.rig().store.check().expect("every count is right");
    }
}

#[test]
fn no_instant_of_making_room_empties_a_shard() {
    if !CAN_KILL {
        return;
    }
    let mut life = Life::new(4, 0);
    let refill = |life: &mut Life, n: u64| {
        for i in 0..60 {
            let number = n * 60 + i;
            let len = if i == 7 { 40_000 } else { 100 + number as usize * 37 % 5_000 };
            life.set(&format!("item-{}", number % 3_000), bytes(number, len));
            life.rig().get(&format!("item-{}", number * 7 % 3_000));
        }
    };
    (0..60).for_each(|n| refill(&mut life, n));
    let value = bytes(1, 300_000);
    let set = |rig: &Rig| rig.put("k", &value, &SET).and(None);
    life.at_each_instant("a large value", "k", 60, refill, set, Some(value.clone()));
    let all = |rig: &Rig| rig.store.evict_all(rig.now.get()).then(Vec::new);
    life.at_each_instant("all of it", "", 60, refill, all, None);
    report(&life);
}

#[test]
fn no_instant_of_moving_to_the_ssd_and_back_empties_a_shard() {
    if !CAN_KILL {
        return;
    }
    let mut life = Life::new(6, 12);
    let refill = |life: &mut Life, n: u64| {
        for i in 0..60 {
            let number = n * 60 + i;
            let len = if i % 20 == 7 { 40_000 } else { 100 + number as usize * 37 % 9_000 };
            life.set(&format!("item-{}", number % 3_000), bytes(number, len));
        }
        // Read twice, some of them are copied back to RAM.
        for i in 0..60 {
            (0..2).for_each(|_| drop(life.rig().get(&format!("item-{}", (n * 60 + i * 7) % 3_000))));
        }
    };
    (0..60).for_each(|n| refill(&mut life, n));
    let churn = |rig: &Rig| {
        for number in 0..40 {
            let key = format!("item-{}", number * 71 % 3_000);
            (0..3).for_each(|_| drop(rig.get(&key)));
            rig.perform_io();
        }
        rig.store.evict_all(rig.now.get()).then(Vec::new)
    };
    life.at_each_instant("reads, writes and demotions", "", 40, refill, churn, None);
    change_items(&mut life, 30);
    report(&life);
}
