//! A dump is read as it was written, and every damage to it is found.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use crate::exit::Failure;
use crate::items::CacheItem;

fn item(number: u32, value_bytes: usize) -> CacheItem {
    CacheItem {
        key: format!("key {number}\0\n").into_bytes(),
        value: (0..value_bytes).map(|at| (at as u32 ^ number) as u8).collect(),
        flags: number.wrapping_mul(0x0101_0101),
        expires_unix_ms: (number % 2 == 1).then_some(1_800_000_000_000 + u64::from(number)),
    }
}

fn write(path: &Path, items: &[CacheItem]) {
    let mut writer = DumpWriter::create(path).expect("it is created");
    items.iter().for_each(|item| writer.add(item).expect("it is written"));
    writer.finish().expect("it is finished");
}

fn read(path: &Path) -> Result<Vec<CacheItem>, Failure> {
    let blocks: Result<Vec<_>, _> = DumpReader::open(path)?.collect();
    Ok(blocks?.into_iter().flatten().collect())
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("items.dump");
    (folder, path)
}

#[test]
fn items_of_every_size_are_read_as_they_were_written() {
    let (_folder, path) = folder();
    let sizes = [0, 1, 100, 4096, 1 << 20, (1 << 20) - 20, 10 << 20, 3];
    for items in [Vec::new(), sizes.iter().zip(1..).map(|(bytes, number)| item(number, *bytes)).collect()] {
        write(&path, &items);
        assert_eq!(read(&path), Ok(items.clone()));
        let checked = DumpReader::open(&path).expect("a dump").check(|_| Ok(()));
        let bytes = items.iter().map(CacheItem::bytes).sum();
        assert_eq!(checked, Ok((items.len() as u64, bytes)));
    }
}

#[test]
fn a_byte_that_is_changed_anywhere_is_found() {
    let (_folder, path) = folder();
    let items: Vec<_> = (1..8).map(|number| item(number, 30)).collect();
    write(&path, &items);
    let whole = fs::read(&path).expect("it is read");
    for at in 0..whole.len() {
        for bit in [0, 7] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            fs::write(&path, &damaged).expect("it is written");
            assert!(read(&path).is_err(), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn a_file_that_is_cut_or_longer_is_found() {
    let (_folder, path) = folder();
    let items: Vec<_> = (1..40).map(|number| item(number, 100_000)).collect();
    write(&path, &items);
    let whole = fs::read(&path).expect("it is read");
    let steps = (0..whole.len()).step_by(9_973).chain(whole.len() - 60..whole.len());
    for bytes in steps {
        fs::write(&path, &whole[..bytes]).expect("it is written");
        assert!(read(&path).is_err(), "{bytes} bytes of {}", whole.len());
    }
    for more in [&b"\0"[..], &whole[whole.len() - 40..], &whole[40..]] {
        fs::write(&path, [&whole, more].concat()).expect("it is written");
        assert!(read(&path).is_err(), "{} bytes more", more.len());
    }
}

#[test]
fn a_block_that_is_missing_or_of_another_dump_is_found() {
    let (_folder, path) = folder();
    let items: Vec<_> = (1..5).map(|number| item(number, BLOCK_FULL_BYTES)).collect();
    write(&path, &items);
    let first = fs::read(&path).expect("it is read");
    write(&path, &items);
    let second = fs::read(&path).expect("it is read");
    let block = BLOCK_BYTES + get_u32(&first, HEAD_BYTES + PAYLOAD_BYTES) as usize;
    let (head, from_second) = (HEAD_BYTES, HEAD_BYTES + block);
    let without = [&first[..head], &first[from_second..]].concat();
    let exchanged = [&first[..head], &second[head..from_second], &first[from_second..]].concat();
    for damaged in [without, exchanged] {
        fs::write(&path, damaged).expect("it is written");
        assert!(read(&path).is_err());
    }
}

#[test]
fn a_file_of_others_is_neither_read_nor_replaced() {
    let (_folder, path) = folder();
    for text in [&b""[..], b"#!/bin/sh\n", &[0; 4096]] {
        fs::write(&path, text).expect("it is written");
        assert!(read(&path).is_err());
        assert!(DumpWriter::create(&path).is_err());
        assert_eq!(fs::read(&path).expect("it is there"), text);
    }
}

#[test]
fn a_dump_that_is_not_finished_leaves_nothing() {
    let (folder, path) = folder();
    write(&path, &[item(1, 10)]);
    let mut writer = DumpWriter::create(&path).expect("it is created");
    writer.add(&item(2, 3 << 20)).expect("it is written");
    drop(writer);
    assert_eq!(read(&path), Ok(vec![item(1, 10)]));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}
