//! What each fault does, and that it is reproducible. Never a queue.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use larder_device::{Device, Fault, FaultDevice, FaultRule, IoBuf, MemoryDevice, OpKind, PAGE_BYTES, When};
use support::{MIB, Random};

const PAGE: u64 = PAGE_BYTES as u64;

fn device(seed: u64) -> FaultDevice<MemoryDevice> {
    FaultDevice::new(MemoryDevice::new(MIB), seed)
}

fn pages(count: usize, byte: u8) -> IoBuf {
    let mut buf = IoBuf::zeroed(count * PAGE_BYTES);
    buf.fill(byte);
    buf
}

fn write(device: &impl Device, offset: u64, buf: &IoBuf) {
    assert_eq!(device.write_at(buf, offset).expect("a write"), buf.len());
}

fn read(device: &impl Device, offset: u64, count: usize) -> IoBuf {
    let mut buf = pages(count, 0xee);
    assert_eq!(device.read_at(&mut buf, offset).expect("a read"), buf.len());
    buf
}

fn inject(device: &FaultDevice<MemoryDevice>, kind: OpKind, fault: Fault, when: When) {
    device.inject(FaultRule::new(kind, fault, when));
}

/// How many bits differ.
fn distance(a: &[u8], b: &[u8]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

#[test]
fn without_rules_nothing_goes_wrong() {
    let device = device(1);
    write(&device, 0, &pages(3, 7));
    assert!(read(&device, 0, 3).iter().all(|&b| b == 7));
    device.discard(0, PAGE).expect("a discard");
    assert_eq!((device.counts().total(), device.counts().operations), (0, [1, 1, 1]));
}

#[test]
fn the_nth_operation_fails_and_no_other() {
    let device = device(1);
    inject(&device, OpKind::Read, Fault::Error, When::Nth(3));
    let mut buf = pages(1, 0);
    let failed: Vec<u32> = (1..6).filter(|_| device.read_at(&mut buf, 0).is_err()).collect();
    assert_eq!(failed, [3]);
    write(&device, 0, &buf);
    assert_eq!(device.counts().of(OpKind::Read, Fault::Error), 1);
}

#[test]
fn a_full_device_stays_full_until_healed() {
    let device = device(1);
    inject(&device, OpKind::Write, Fault::Full, When::From(2));
    write(&device, 0, &pages(1, 1));
    for _ in 0..3 {
        let error = device.write_at(&pages(1, 2), 0).expect_err("a full device");
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    }
    device.heal();
    assert!(read(&device, 0, 1).iter().all(|&b| b == 1));
    write(&device, 0, &pages(1, 2));
}

#[test]
fn a_short_write_says_so_and_a_torn_one_does_not() {
    for (fault, honest) in [(Fault::Short, true), (Fault::Torn, false)] {
        for seed in 0..50 {
            let device = device(seed);
            inject(&device, OpKind::Write, fault, When::Nth(1));
            let said = device.write_at(&pages(2, 9), 0).expect("a write");
            let bytes = read(&device, 0, 2);
            let written = bytes.iter().filter(|&&b| b == 9).count();
            assert!(written > 0 && written < bytes.len() && written.is_multiple_of(512), "{written}");
            assert!(bytes[..written].iter().all(|&b| b == 9) && bytes[written..].iter().all(|&b| b == 0));
            assert_eq!(said, if honest { written } else { bytes.len() });
        }
    }
}

#[test]
fn a_short_read_fills_what_it_says() {
    let device = device(3);
    write(&device, 0, &pages(2, 9));
    inject(&device, OpKind::Read, Fault::Short, When::Nth(1));
    let mut buf = pages(2, 0);
    let n = device.read_at(&mut buf, 0).expect("a read");
    assert!(n > 0 && n < buf.len() && n.is_multiple_of(512));
    assert!(buf[..n].iter().all(|&b| b == 9) && buf[n..].iter().all(|&b| b == 0));
}

#[test]
fn a_lost_write_is_acknowledged_and_not_there() {
    let device = device(1);
    write(&device, 0, &pages(1, 1));
    inject(&device, OpKind::Write, Fault::Lost, When::Nth(1));
    write(&device, 0, &pages(1, 2));
    assert!(read(&device, 0, 1).iter().all(|&b| b == 1));
}

#[test]
fn a_misdirected_write_lands_on_other_pages() {
    for seed in 0..50 {
        let device = device(seed);
        inject(&device, OpKind::Write, Fault::Misdirected, When::Nth(1));
        write(&device, 8 * PAGE, &pages(2, 5));
        let all = read(&device, 0, (MIB / PAGE) as usize);
        let hit: Vec<usize> =
            (0..).zip(all.chunks(PAGE_BYTES)).filter(|(_, p)| p[0] == 5).map(|(n, _)| n).collect();
        assert_eq!(hit.len(), 2);
        assert!(hit[1] == hit[0] + 1 && hit[0] != 8, "{hit:?}");
    }
}

#[test]
fn a_misdirected_read_brings_other_pages() {
    for seed in 0..50 {
        let device = device(seed);
        for page in 0..MIB / PAGE {
            write(&device, page * PAGE, &pages(1, page as u8));
        }
        inject(&device, OpKind::Read, Fault::Misdirected, When::Nth(1));
        let bytes = read(&device, 8 * PAGE, 1);
        assert!(bytes[0] != 8 && bytes.iter().all(|&b| b == bytes[0]));
    }
}

#[test]
fn a_stale_read_brings_what_was_overwritten() {
    let device = device(1);
    write(&device, 0, &pages(4, 1));
    inject(&device, OpKind::Read, Fault::Stale, When::Nth(1));
    write(&device, PAGE, &pages(2, 2));
    write(&device, 2 * PAGE, &pages(1, 3));
    let stale: Vec<u8> = read(&device, 0, 4).chunks(PAGE_BYTES).map(|page| page[9]).collect();
    assert_eq!(stale, [1, 1, 2, 1]);
    let fresh: Vec<u8> = read(&device, 0, 4).chunks(PAGE_BYTES).map(|page| page[9]).collect();
    assert_eq!(fresh, [1, 2, 3, 1]);
}

#[test]
fn one_bit_is_flipped_on_the_way_in_or_out() {
    for seed in 0..50 {
        let device = device(seed);
        write(&device, 0, &pages(1, 1));
        inject(&device, OpKind::Read, Fault::FlippedBit, When::Nth(1));
        assert_eq!(distance(&read(&device, 0, 1), &pages(1, 1)), 1);
        assert_eq!(distance(&read(&device, 0, 1), &pages(1, 1)), 0);
        inject(&device, OpKind::Write, Fault::FlippedBit, When::Nth(1));
        write(&device, 0, &pages(1, 1));
        assert_eq!(distance(&read(&device, 0, 1), &pages(1, 1)), 1);
    }
}

#[test]
fn slowness_is_told_to_the_hook() {
    let ticks = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&ticks);
    let device = device(1).with_slow_hook(move |n| {
        told.fetch_add(n, Ordering::Relaxed);
    });
    inject(&device, OpKind::Read, Fault::Slow(250), When::From(2));
    for _ in 0..3 {
        read(&device, 0, 1);
    }
    assert_eq!(ticks.load(Ordering::Relaxed), 500);
}

#[test]
fn a_rule_for_a_range_leaves_the_rest_alone() {
    let device = device(1);
    let within = Some(2 * PAGE..3 * PAGE);
    device.inject(FaultRule { within, ..FaultRule::new(OpKind::Read, Fault::Error, When::From(1)) });
    let mut buf = pages(2, 0);
    let failed: Vec<u64> = (0..5).filter(|page| device.read_at(&mut buf, page * PAGE).is_err()).collect();
    assert_eq!(failed, [1, 2]);
}

#[test]
fn chance_hits_about_as_often_as_it_says() {
    let device = device(11);
    inject(&device, OpKind::Read, Fault::Error, When::Chance(0.1));
    inject(&device, OpKind::Read, Fault::FlippedBit, When::Chance(0.1));
    let mut buf = pages(1, 0);
    for _ in 0..10_000 {
        let _ = device.read_at(&mut buf, 0);
    }
    let counts = device.counts();
    let (errors, flips) = (counts.of(OpKind::Read, Fault::Error), counts.of(OpKind::Read, Fault::FlippedBit));
    // Five standard deviations; the flips are those of the operations that did not fail.
    assert!((850..=1150).contains(&errors), "{errors} errors");
    assert!((757..=1043).contains(&flips), "{flips} flips");
}

/// Runs a fixed load under every fault; returns all that could be seen of it.
fn trace(seed: u64) -> (Vec<Result<usize, Option<i32>>>, Vec<u8>) {
    let device = device(seed);
    let faults = [
        Fault::Error,
        Fault::Full,
        Fault::Short,
        Fault::Torn,
        Fault::Lost,
        Fault::Misdirected,
        Fault::Stale,
        Fault::FlippedBit,
    ];
    for kind in [OpKind::Read, OpKind::Write] {
        for fault in faults {
            inject(&device, kind, fault, When::Chance(0.05));
        }
    }
    let mut random = Random(99);
    let mut buf = pages(4, 0);
    let mut seen = Vec::new();
    let mut bytes = Vec::new();
    for n in 0..500 {
        let offset = random.below(MIB / PAGE - 4) * PAGE;
        let result = if n % 2 == 0 {
            random.fill(&mut buf);
            device.write_at(&buf, offset)
        } else {
            let result = device.read_at(&mut buf, offset);
            bytes.extend_from_slice(&buf);
            result
        };
        seen.push(result.map_err(|error| error.raw_os_error()));
    }
    assert!(device.counts().total() > 50);
    (seen, bytes)
}

#[test]
fn the_seed_decides_everything() {
    assert!(trace(5) == trace(5));
    assert!(trace(5) != trace(6));
}
