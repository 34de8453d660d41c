//! How much of the memory limit the values of a store without an SSD fill, by their size.

use larder_store::*;

use crate::rig::{Rig, bytes, config};

const MEMORY_BYTES: u64 = 16 << 20;

/// Stores values of the sizes in turn, one and a half times what the memory holds, and returns the part of the
/// memory limit that the bytes of the values kept are, in thousandths.
fn kept(sizes: &[usize]) -> u64 {
    let rig = Rig::with(&Config { item_bytes: 512, ..config(MEMORY_BYTES, 0) });
    let values: Vec<_> = sizes.iter().map(|size| bytes(*size as u64, *size)).collect();
    let (mut sent, mut items) = (0, 0_u64);
    while sent < MEMORY_BYTES * 3 / 2 {
        let value = &values[items as usize % values.len()];
        rig.set(&format!("key-{items:08}"), value);
        sent += value.len() as u64 + 44;
        items += 1;
    }
    rig.store.check().expect("every count is right");
    let stats = rig.store.stats();
    (stats.ram_item_bytes - stats.ram_items * 44) * 1000 / MEMORY_BYTES
}

#[test]
fn values_of_every_size_fill_the_memory() {
    let sizes = [
        (50, 460),
        (200, 710),
        (1_000, 840),
        (4_000, 860),
        (8_200, 870),
        (10_000, 870),
        (22_000, 870),
        (33_000, 870),
        (70_000, 870),
        (100_000, 870),
        (140_000, 830),
        (202_000, 840),
        (300_000, 840),
        (512 << 10, 840),
    ];
    for (size, least) in sizes {
        let kept = kept(&[size]);
        println!("{size} bytes: {kept}");
        assert!(kept >= least, "values of {size} bytes fill {kept} thousandths of the memory");
    }
}

#[test]
fn values_of_mixed_sizes_fill_the_memory() {
    for sizes in [&[100, 10_000, 33_000][..], &[500, 70_000, 3_000, 300_000], &[9_000, 20_000, 120_000]] {
        let kept = kept(sizes);
        println!("{sizes:?}: {kept}");
        assert!(kept >= 850, "values of {sizes:?} bytes fill {kept} thousandths of the memory");
    }
}
