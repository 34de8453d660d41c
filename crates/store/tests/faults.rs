//! The store over a device that fails, lies and forgets: a miss is always allowed, a wrong, older or deleted
//! value never.
//!
//! The model of `model.rs` runs over each fault alone, over all of them together, and, in short, over each
//! fault at each operation. What turns the tier off, and what does not, is told by small tests at the end.

#[path = "model/harness.rs"]
mod harness;
mod rig;
mod seed;

use harness::{Options, Seen, run, times};
use larder_device::{Fault, FaultRule, OpKind, When};
use larder_store::{SsdEvent, Tier};
use rig::{Rig, SET, bytes};
use seed::seed;

const WRITE_FAULTS: [Fault; 7] = [
    Fault::Error,
    Fault::Full,
    Fault::Short,
    Fault::Torn,
    Fault::Lost,
    Fault::Misdirected,
    Fault::FlippedBit,
];
const READ_FAULTS: [Fault; 5] =
    [Fault::Error, Fault::Short, Fault::Misdirected, Fault::Stale, Fault::FlippedBit];

fn every_fault() -> impl Iterator<Item = (OpKind, Fault)> {
    let writes = WRITE_FAULTS.into_iter().map(|fault| (OpKind::Write, fault));
    writes.chain(READ_FAULTS.into_iter().map(|fault| (OpKind::Read, fault)))
}

/// Enough keys that most reads go to the SSD, and values large enough that some land there by themselves.
fn options(seed: u64, operations: u64) -> Options {
    Options { seed, operations, keys: 30_000, large_one_in: 2_000, ..Options::small() }
}

fn total(seen: &[Seen], of: impl Fn(&Seen) -> u64) -> u64 {
    seen.iter().map(of).sum()
}

#[test]
fn two_million_operations_over_every_fault_are_never_answered_wrong() {
    let seed = seed("LARDER_MODEL_SEED");
    let mut all = Vec::new();
    for (number, (kind, fault)) in every_fault().enumerate() {
        // There are twenty reads to a write.
        let chance = if kind == OpKind::Write { 0.15 } else { 0.03 };
        let rule = FaultRule::new(kind, fault, When::Chance(chance));
        let options = Options { faults: vec![rule], ..options(seed ^ number as u64, 120_000) };
        let seen = run(&options);
        println!("{kind:?} {fault:?}: {seen:?}");
        assert!(seen.faults > 0 && seen.ssd_hits > 200, "{kind:?} {fault:?}: {seen:?}");
        assert!(kind == OpKind::Write || seen.off_at.is_none(), "one bad read in thirty: {seen:?}");
        all.push(seen);
    }
    let faults: Vec<_> =
        every_fault().map(|(kind, fault)| FaultRule::new(kind, fault, When::Chance(0.02))).collect();
    let seen = run(&Options { faults, ..options(seed ^ 99, 700_000) });
    println!("all together: {seen:?}");
    all.push(seen);
    assert!(total(&all, |seen| seen.faults) > 3_000, "few faults");
    assert!(total(&all, |seen| seen.header_reads) > 1_000, "few reads of a header alone");
}

fn short(seed: u64, operations: u64, faults: Vec<FaultRule>) -> Seen {
    let options = Options {
        seed,
        operations,
        keys: 250,
        memory_bytes: 3 << 20,
        ssd_segments: 4,
        large_one_in: 5,
        faults,
        ..Options::small()
    };
    run(&options)
}

#[test]
fn each_fault_at_each_operation_of_a_short_run_is_survived() {
    let seed = seed("LARDER_MODEL_SEED");
    // As short as a run that meets the SSD can be.
    let lengths = (700..).step_by(50);
    let plain = lengths.map(|length| (length, short(seed, length, vec![])));
    let (length, plain) =
        plain.into_iter().find(|(_, seen)| seen.reads >= 40 && seen.writes >= 40).expect("in the end");
    println!("{length} operations: {plain:?}");
    let mut runs = 0;
    for (kind, fault) in every_fault() {
        let operations = if kind == OpKind::Read { plain.reads } else { plain.writes };
        for nth in 1..=operations {
            short(seed, length, vec![FaultRule::new(kind, fault, When::Nth(nth))]);
            runs += 1;
        }
    }
    println!("{runs} runs");
}

#[test]
fn a_process_that_ends_over_a_device_that_fails_leaves_nothing_wrong_behind() {
    let seed = seed("LARDER_MODEL_SEED");
    let mut all = Vec::new();
    for (number, (kind, fault)) in every_fault().enumerate() {
        let chance = if kind == OpKind::Write { 0.15 } else { 0.03 };
        all.push(run(&Options {
            seed: seed ^ number as u64,
            operations: 30_000 * times(),
            keys: 250,
            memory_bytes: 3 << 20,
            ssd_segments: 4,
            large_one_in: 5,
            faults: vec![FaultRule::new(kind, fault, When::Chance(chance))],
            crash_one_in: 300,
            ..Options::small()
        }));
    }
    let ends = total(&all, |seen| seen.crashes);
    println!("{ends} ends, {all:?}");
    assert!(ends > 1_000 * times() && total(&all, |seen| seen.faults) > 100 * times(), "{all:?}");
    assert!(total(&all, |seen| seen.ssd_hits) > 1_000 * times(), "{all:?}");
}

#[test]
fn a_device_that_fails_for_good_turns_the_tier_off_and_everything_goes_on_from_ram() {
    let seed = seed("LARDER_MODEL_SEED");
    for (number, kind) in [OpKind::Read, OpKind::Write, OpKind::Read].into_iter().enumerate() {
        let mut faults = vec![FaultRule::new(kind, Fault::Error, When::From(1_000 >> (3 * number)))];
        if number == 2 {
            faults.push(FaultRule::new(OpKind::Write, Fault::Error, When::From(100)));
        }
        let seen = run(&Options { faults, ..options(seed ^ number as u64, 150_000) });
        println!("{kind:?}: {seen:?}");
        assert!(seen.off_at.is_some_and(|at| at < 100_000), "{seen:?}");
        assert!(seen.ram_hits > 5_000, "{seen:?}");
    }
}

#[test]
fn a_device_that_fails_and_works_again_brings_nothing_back_that_it_held_before() {
    let seed = seed("LARDER_MODEL_SEED");
    let outages = Options { outage_one_in: 15_000, keys: 10_000, ..options(seed, 600_000 * times()) };
    let seen = [run(&outages), run(&Options { seed: seed ^ 1, crash_one_in: 20_000, ..outages.clone() })];
    println!("{seen:?}");
    assert!(seen[0].came_back > 3 && seen[0].ssd_hits > 1_000, "{seen:?}");
}

/// Items on the SSD under these names.
fn on_ssd(rig: &Rig, names: &str, count: u32) -> Vec<String> {
    let keys: Vec<String> = (0..count).map(|i| format!("{names}-{i}")).collect();
    for (i, key) in keys.iter().enumerate() {
        // One to a page, so that a page that is lost loses one.
        rig.set(key, &bytes(i as u64, 3_000));
    }
    rig.push_out();
    keys
}

#[test]
fn failures_with_a_success_in_between_do_not_turn_the_tier_off() {
    let rig = Rig::new(4, 16);
    let keys = on_ssd(&rig, "key", 200);
    for round in keys.chunks(10) {
        rig.device.inject(FaultRule::new(OpKind::Read, Fault::Error, When::From(1)));
        round[..9].iter().for_each(|key| assert_eq!(rig.peek(key), None));
        rig.device.heal();
        assert!(rig.peek(&round[9]).is_some(), "a read that succeeds");
    }
    assert!(!rig.store.ssd_is_off());
    assert_eq!(rig.store.stats().ssd_errors, 180);
}

/// Turns the tier off: reads fail for six seconds. Returns the items that were not asked for meanwhile.
fn turn_off(rig: &Rig) -> Vec<String> {
    let mut keys = on_ssd(rig, "key", 60);
    rig.device.inject(FaultRule::new(OpKind::Read, Fault::Error, When::From(1)));
    rig.at(rig.now.get().0 + 1);
    keys.drain(..15).for_each(|key| assert_eq!(rig.peek(&key), None));
    rig.at(rig.now.get().0 + 6);
    assert!(!rig.store.ssd_is_off());
    keys.drain(..1).for_each(|key| assert_eq!(rig.peek(&key), None));
    assert!(rig.store.ssd_is_off(), "sixteen failures in a row");
    assert_eq!(rig.store.next_ssd_event(), Some(SsdEvent::TurnedOff(1)));
    keys
}

/// Lets `seconds` pass one by one, and performs what the store asks for.
fn wait(rig: &Rig, seconds: u32) {
    for _ in 0..seconds {
        rig.at(rig.now.get().0 + 1);
        rig.perform_io();
    }
}

#[test]
fn failures_of_one_moment_do_not_turn_the_tier_off() {
    let rig = Rig::new(4, 16);
    let keys = on_ssd(&rig, "key", 60);
    rig.device.inject(FaultRule::new(OpKind::Read, Fault::Error, When::From(1)));
    keys[..40].iter().for_each(|key| assert_eq!(rig.peek(key), None));
    rig.device.heal();
    assert!(!rig.store.ssd_is_off());
    keys[40..].iter().for_each(|key| assert!(rig.peek(key).is_some(), "{key}"));
}

#[test]
fn a_tier_that_is_off_answers_nothing_and_ram_goes_on() {
    let rig = Rig::new(4, 16);
    let kept = turn_off(&rig);
    wait(&rig, 3);
    kept.iter().for_each(|key| assert_eq!(rig.get(key), None, "{key} came back"));
    for i in 0..5_000_u64 {
        rig.set(&format!("new-{i}"), &bytes(i, 2_000));
    }
    assert_eq!(rig.value("new-4999"), Some(bytes(4_999, 2_000)));
    let old: Vec<_> = (0..5_000).filter_map(|i| rig.get(&format!("new-{i}"))).collect();
    assert!(old.len() > 500 && old.iter().all(|item| item.tier == larder_store::Tier::Ram));
    rig.set_with("new", b"1", &SET);
    rig.store.check().expect("the counts are right");
}

#[test]
fn a_tier_that_is_off_comes_back_empty_when_its_device_works_again() {
    let rig = Rig::new(4, 16);
    let kept = turn_off(&rig);
    for i in 0..2_000_u64 {
        rig.set(&format!("meanwhile-{i}"), &bytes(i, 2_000));
    }
    wait(&rig, 30);
    let failed: Vec<_> = std::iter::from_fn(|| rig.store.next_ssd_event()).collect();
    assert_eq!(failed, [2, 4, 8, 16].map(SsdEvent::ProbeFailed), "pauses grow");
    assert!(rig.store.ssd_is_off());
    rig.device.heal();
    wait(&rig, 16);
    assert!(!rig.store.ssd_is_off());
    assert_eq!(rig.store.next_ssd_event(), Some(SsdEvent::TurnedOn));
    let stats = rig.store.stats();
    assert_eq!((stats.ssd_turned_off, stats.ssd_items), (1, 0));
    assert!(stats.ssd_probes >= 8, "{stats:?}");
    kept.iter().for_each(|key| assert_eq!(rig.get(key), None, "{key} came back"));
    let again = on_ssd(&rig, "again", 2_000);
    let there = again.iter().filter(|key| rig.peek(key).is_some_and(|item| item.tier == Tier::Ssd)).count();
    assert!(there > 1_000, "{there} of {}", again.len());
    again.iter().enumerate().for_each(|(i, key)| assert_eq!(rig.value(key), Some(bytes(i as u64, 3_000))));
    rig.store.check().expect("the counts are right");
}

#[test]
fn a_device_that_loses_writes_does_not_come_back() {
    let rig = Rig::new(4, 16);
    turn_off(&rig);
    rig.device.heal();
    rig.device.inject(FaultRule::new(OpKind::Write, Fault::Lost, When::From(1)));
    wait(&rig, 40);
    assert!(rig.store.ssd_is_off() && rig.store.next_ssd_event() == Some(SsdEvent::ProbeFailed(2)));
}

#[test]
fn a_device_that_reads_but_no_longer_writes_is_turned_off_too() {
    let rig = Rig::new(4, 16);
    let keys = on_ssd(&rig, "key", 100);
    rig.device.inject(FaultRule::new(OpKind::Write, Fault::Error, When::From(1)));
    for (i, key) in keys.iter().enumerate() {
        if rig.store.ssd_is_off() {
            return;
        }
        assert!(rig.peek(key).is_some(), "what was written before is there");
        for j in 0..20 {
            rig.set(&format!("new-{i}-{j}"), &bytes(j, 6_000));
        }
        while rig.write_one() {}
        rig.at(rig.now.get().0 + 1);
    }
    panic!("still on after {} failures", rig.store.stats().ssd_errors);
}
