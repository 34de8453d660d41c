//! Tests of the whole cache that need to see its memory.

mod kills;
mod locks;
mod scribbles;

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::{Entry, L1, L1Options, now_ms};

/// A cache of one shard, whose small ring holds some 50 KiB and whose main ring some 350 KiB.
fn small_cache() -> L1 {
    let options = L1Options::new().bytes(512 << 10).lock_patience(Duration::from_millis(20));
    options.anonymous().expect("there is memory")
}

/// A value that tells its key, its version and its length.
fn value(key: u64, version: u64, len: usize) -> Vec<u8> {
    let mut state =
        key.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ version.wrapping_mul(0xD1B5_4A32_D192_ED03) ^ len as u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&(state ^ state >> 29).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

fn name(key: u64) -> Vec<u8> {
    format!("key-{key}").into_bytes()
}

/// An entry that stays fresh during a test, with its version as cas.
fn entry(value: &[u8], version: u64) -> Entry<'_> {
    let later = now_ms() + 1_000_000;
    Entry { value, cas: version, fresh_until_ms: later, stale_until_ms: later, ..Entry::default() }
}

/// Returns the version of a key that the cache has; checks that the value is that version's.
fn version(l1: &L1, key: u64) -> Option<u64> {
    let mut found = Vec::new();
    let hit = l1.get(&name(key), &mut found)?;
    assert!(found == value(key, hit.cas, found.len()), "key {key} has a value that nobody stored");
    Some(hit.cas)
}

fn snapshot(l1: &L1) -> Vec<u64> {
    l1.inner.words().iter().map(|word| word.load(Relaxed)).collect()
}

fn restore(l1: &L1, words: &[u64]) {
    for (word, value) in l1.inner.words().iter().zip(words) {
        word.store(*value, Relaxed);
    }
}
