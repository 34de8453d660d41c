//! A memory file of which bytes are changed between two processes, most of them where the tables are.

use std::os::unix::fs::FileExt;

use larder_store::*;

use super::harness::Choices;
use super::rig::restart::{again, begin};
use super::rig::{COUNT, Rig, SET, bytes};

/// The word that says that the file was made is not what is tried here.
const MADE: std::ops::Range<u64> = 4088..4096;

/// One input: what the first process does, what is changed, and what the next one does. Returns how many shards were
/// emptied.
pub fn check(data: &[u8]) -> u64 {
    let (damage, work) = data.split_at(data.len() / 2);
    let (mut choices, mut damage) = (Choices::new(work), Choices::new(damage));
    let (rig, config) = begin(3, [0, 6][choices.below(2)]);
    use_it(&rig, &mut choices);
    let stats = rig.store.stats();
    let file = config.memory_file.as_ref().expect("a file").file.clone();
    let len = file.metadata().expect("a file").len();
    let tables = 4096 + stats.ram_tier_bytes + stats.buffer_bytes;
    while !damage.is_over() {
        let (from, bound) = match damage.below(4) {
            0 => (4080, len - 4080),
            1 => (4096, stats.ram_tier_bytes),
            _ => (tables, len - tables),
        };
        let at = from + damage.below(bound as usize) as u64;
        if MADE.contains(&at) {
            continue;
        }
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).expect("inside");
        let changed = match damage.below(3) {
            0 => damage.below(256) as u8,
            1 => byte[0] ^ 1 << damage.below(8),
            _ => 0xFF,
        };
        file.write_all_at(&[changed], at).expect("inside");
    }
    let rig = again(rig, &config);
    let Start::Warm { shards_reset, .. } = rig.store.start() else { panic!("{:?}", rig.store.start()) };
    use_it(&rig, &mut choices);
    rig.store.check().expect("the store is in order");
    shards_reset
}

/// Does a little of everything; what is answered does not matter.
fn use_it(rig: &Rig, choices: &mut Choices<'_>) {
    for _ in 0..400 {
        let key = format!("key-{}", choices.below(700));
        match choices.below(8) {
            0..2 => drop(rig.put(&key, &bytes(1, choices.below(6_000)), &SET)),
            2 => drop(rig.put(&key, &bytes(1, choices.below(200_000)), &SET)),
            3 => drop(rig.remove(&key, &Remove::default())),
            4 => drop(rig.arith(&key, &COUNT)),
            5 => drop(rig.put(&key, b"+", &Put { mode: PutMode::Append, ..SET })),
            _ => drop(rig.get(&key)),
        }
        rig.write_one();
        if choices.below(20) == 0 {
            rig.at(rig.now.get().0 + 1);
            if let Some(plan) = rig.store.next_readmission() {
                let page = rig.read(&plan);
                rig.store.readmit(Loaded { plan: &plan, bytes: page.as_deref() }, rig.now.get());
            }
        }
    }
    rig.settle();
}
