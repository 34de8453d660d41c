//! Tests of the whole cache that need to see its memory.

mod kills;
mod locks;
mod rows;
mod scribbles;
mod values;

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::file::{self, CacheFile};
use super::mapping::Mapping;
use super::{Entry, L1, L1Error, L1Options, now_ms};
use values::{name, value};

/// A cache of one shard, whose small ring holds some 50 KiB and whose main ring some 350 KiB.
fn small_cache() -> L1 {
    let options = L1Options::new().bytes(512 << 10).lock_patience(Duration::from_millis(20));
    options.anonymous().expect("there is memory")
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

#[test]
fn a_thread_that_asks_for_it_is_run_soon_after_it_wakes() {
    let slice_ns = || {
        super::run_soon();
        let text = std::fs::read_to_string("/proc/thread-self/sched").ok()?;
        let line = text.lines().find(|line| line.starts_with("se.slice"))?;
        line.rsplit(' ').next()?.parse::<u64>().ok()
    };
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("the kernel says it");
    let mut release = release.split('.').map_while(|part| part.parse().ok());
    // Older kernels have one slice for all, and some do not show it.
    if (release.next(), release.next()) >= (Some(6_u32), Some(12)) {
        let shown = std::thread::spawn(slice_ns).join().expect("it ends");
        assert!(shown.is_none_or(|ns| ns == 100_000), "{shown:?}");
    }
}

/// What the model of the whole client needs of its hosts.
impl L1 {
    /// Maps the memory again, as another process does.
    pub(crate) fn mapped_again(&self) -> L1 {
        let cache = &self.inner.cache;
        let file = cache.file.try_clone().expect("a descriptor");
        let mapping = Mapping::new(&file, cache.layout.bytes as usize).expect("it can be mapped");
        let CacheFile { seed, id, .. } = *cache;
        L1Options::new().share(CacheFile {
            file,
            mapping,
            layout: cache.layout.clone(),
            seed,
            id,
            path: None,
        })
    }

    pub(crate) fn all_words(&self) -> Vec<u64> {
        snapshot(self)
    }

    pub(crate) fn put_all_words(&self, words: &[u64]) {
        restore(self, words);
    }

    /// Forgets all entries, as if there had been no room. No change may be under way.
    pub(crate) fn evict_all(&self) {
        let layout = &self.inner.cache.layout;
        self.inner.words()[layout.indexes_at..layout.rings_at].iter().for_each(|slot| slot.store(0, Relaxed));
    }
}

impl L1Options {
    /// Makes a cache that places keys in the same way each time.
    pub(crate) fn simulated(&self) -> Result<L1, L1Error> {
        let l1 = self.share(CacheFile { seed: 11, ..file::anonymous(self.wanted())? });
        l1.init();
        Ok(l1)
    }
}
