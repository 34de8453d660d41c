//! What the store sends of requests on sampled keys, and that it leaves memory for who takes it.

mod rig;

use larder_store::sample::{Event, EventReceiver, Op};
use larder_store::*;
use rig::{Rig, SET, config};

/// A store that sends every request.
fn sampled(memory_mib: u64, ssd_segments: u64) -> (Rig, Vec<EventReceiver>) {
    let rig = Rig::new(memory_mib, ssd_segments);
    let receivers = rig.store.sample(1, 1 << 16);
    (rig, receivers)
}

/// Returns what was sent of a key's requests since the last call; forgets that of others.
fn sent(rig: &Rig, receivers: &mut [EventReceiver], key: &str) -> Vec<Event> {
    let hash = rig.store.hash(key.as_bytes());
    let taken = receivers.iter_mut().flat_map(|receiver| std::iter::from_fn(|| receiver.take()));
    taken.filter(|event| event.hash == hash).collect()
}

fn ops(events: &[Event]) -> Vec<Op> {
    events.iter().map(|event| event.op).collect()
}

#[test]
fn requests_on_an_item_in_ram_are_sent_with_its_size_and_expiry() {
    let (rig, mut receivers) = sampled(8, 0);
    rig.get("key");
    rig.set_with("key", &[1; 100], &Put { expiry: rig.in_seconds(60), ..SET });
    rig.get("key");
    let events = sent(&rig, &mut receivers, "key");
    assert_eq!(ops(&events), [Op::Miss, Op::Set, Op::Hit]);
    let bytes = (RECORD_HEADER_BYTES + 3 + 100) as u32;
    for event in &events[1..] {
        let wanted = (bytes, rig.in_seconds(60), rig.now.get());
        assert_eq!((event.bytes, event.expiry, event.now), wanted);
    }
    let touch = Fetch { touch: Some(rig.in_seconds(90)), without_value: true, ..Fetch::default() };
    rig.fetch("key", &touch);
    let events = sent(&rig, &mut receivers, "key");
    assert_eq!(ops(&events), [Op::Hit, Op::Touch]);
    assert_eq!((events[0].expiry, events[1].expiry), (rig.in_seconds(60), rig.in_seconds(90)));
    rig.put("key", b"more", &Put { mode: PutMode::Append, ..SET });
    rig.put("key", b"no", &Put { mode: PutMode::Add, ..SET });
    let events = sent(&rig, &mut receivers, "key");
    assert_eq!((ops(&events), events[0].bytes), (vec![Op::Set], bytes + 4));
    // A cache of another size may have what this one has not.
    rig.remove("key", &Remove::default());
    rig.remove("key", &Remove::default());
    assert_eq!(ops(&sent(&rig, &mut receivers, "key")), [Op::Delete, Op::Delete]);
}

#[test]
fn a_look_that_is_no_access_is_not_sent_and_a_vivified_item_is_a_miss() {
    let (rig, mut receivers) = sampled(8, 0);
    rig.peek("key");
    rig.fetch("key", &Fetch { vivify: Some(rig.in_seconds(9)), may_win: true, ..Fetch::default() });
    rig.peek("key");
    assert_eq!(ops(&sent(&rig, &mut receivers, "key")), [Op::Miss]);
}

#[test]
fn a_counter_is_sent_as_it_is_stored() {
    let (rig, mut receivers) = sampled(8, 0);
    rig.arith("n", &rig::COUNT);
    rig.set("n", b"9");
    rig.arith("n", &rig::COUNT);
    let events = sent(&rig, &mut receivers, "n");
    assert_eq!(ops(&events), [Op::Set, Op::Set]);
    assert_eq!(events[1].bytes, events[0].bytes + 1);
}

#[test]
fn requests_on_an_item_on_the_ssd_are_sent_once() {
    let (rig, mut receivers) = sampled(16, 16);
    rig.set_on_ssd("key", &[1; 1000], &SET);
    sent(&rig, &mut receivers, "key");
    rig.get("key");
    let touch = Fetch { touch: Some(rig.in_seconds(90)), ..Fetch::default() };
    rig.fetch("key", &touch);
    let events = sent(&rig, &mut receivers, "key");
    assert_eq!(ops(&events), [Op::Hit, Op::Hit, Op::Touch]);
    assert!(events.iter().all(|event| event.bytes == (RECORD_HEADER_BYTES + 3 + 1000) as u32), "{events:?}");
}

#[test]
fn a_large_value_is_sent_as_a_set() {
    let (rig, mut receivers) = sampled(16, 0);
    let bytes = 3 * rig.store.large_bytes();
    rig.set("large", &vec![7; bytes]);
    let events = sent(&rig, &mut receivers, "large");
    assert_eq!((ops(&events), events[0].bytes), (vec![Op::Set], (RECORD_HEADER_BYTES + 5 + bytes) as u32));
}

#[test]
fn a_scale_divides_the_keys_that_are_sent() {
    let (rig, mut receivers) = sampled(8, 0);
    let count = |receivers: &mut Vec<EventReceiver>, scale| {
        rig.store.set_sample_scale(scale);
        (0..4_000).for_each(|number| drop(rig.get(&format!("key {number}"))));
        let taken = receivers.iter_mut().map(|receiver| std::iter::from_fn(|| receiver.take()).count());
        taken.sum::<usize>()
    };
    assert_eq!(count(&mut receivers, 1), 4_000);
    let sixteenth = count(&mut receivers, 16);
    assert!((180..320).contains(&sixteenth), "{sixteenth} of 4,000");
    let rig = Rig::new(8, 0);
    rig.store.set_sample_scale(1);
    rig.get("a store that does not sample sends nothing, whatever its scale");
}

#[test]
fn flushes_are_counted() {
    let rig = Rig::new(8, 0);
    let before = rig.store.flushes();
    rig.store.flush(None, rig.now.get());
    assert_eq!(rig.store.flushes(), before + 1);
}

#[test]
fn memory_for_shadows_is_set_aside_out_of_the_limit() {
    let with = |mib: u64, shadow_bytes| Config { shadow_bytes, ..config(mib << 20, 0) };
    for (mib, given, wanted) in [
        (64, None, (64 << 20) / 100),
        (4 << 10, None, 16 << 20),
        (64, Some(0), 0),
        (64, Some(4 << 20), 4 << 20),
        // Too little to tell anything.
        (16, None, 0),
    ] {
        assert_eq!(with(mib, given).shadow_bytes(), wanted, "{mib} MiB");
    }
    assert_eq!(Config { evict: false, ..with(64, None) }.shadow_bytes(), 0);
    let arena = |given| Rig::with(&with(64, given)).store.stats().arena_bytes;
    let less = arena(Some(0)) - arena(Some(4 << 20));
    assert!(less.abs_diff(4 << 20) < 64 << 10, "{less} bytes");
    let rig = Rig::with(&with(64, Some(4 << 20)));
    assert_eq!(rig.store.memory_limit_bytes(), 64 << 20);
    // A limit that is lowered counts them too.
    assert!(rig.store.set_memory_limit(40 << 20));
    (0..1_000).for_each(|_| rig.store.upkeep(rig.now.get()));
    let stats = rig.store.stats();
    let withheld = stats.ram_segments_withheld * stats.ram_segment_bytes;
    assert!(stats.arena_bytes - withheld <= 36 << 20, "{stats:?}");
    assert!(rig.store.set_memory_limit(64 << 20));
    assert_eq!(rig.store.stats().ram_segments_withheld, 0);
}
