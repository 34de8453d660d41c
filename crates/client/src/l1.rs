//! A cache in shared memory, for all processes of a user on one host.
//!
//! A read takes no lock and never waits. A process that is killed at any instruction loses at most the entry that it
//! was storing or moving.
//!
//! ```no_run
//! use larder_client::{Entry, L1Options, now_ms};
//!
//! let l1 = L1Options::new().open("shop")?;
//! let entry = Entry {
//!     value: b"42",
//!     fresh_until_ms: now_ms() + 1_000,
//!     stale_until_ms: now_ms() + 10_000,
//!     ..Entry::default()
//! };
//! let _ = l1.set(b"answer", &entry);
//! let mut value = Vec::new();
//! assert!(l1.get(b"answer", &mut value).is_some_and(|hit| hit.is_fresh));
//! # Ok::<(), larder_client::L1Error>(())
//! ```
//! In reading order: `layout` (the file), `slot`, `position` and `record` (its words), `ring` (which words may be
//! read), `shard` (get), `shard::write` (everything else), `lock`, `file`, `flight` (one fetch of a key at a time), and
//! `roster` (what each process counts).

use std::cell::Cell;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

mod claim;
mod clock;
mod crash;
mod entry;
mod error;
mod feed;
mod file;
mod flight;
mod header;
mod layout;
mod lock;
mod mapping;
mod options;
mod position;
mod record;
mod ring;
mod roster;
mod shard;
mod slot;
mod stats;
mod sys;
#[cfg(test)]
mod tests;
mod words;

pub use claim::{Claim, Flight, Waited, Waiter};
pub use clock::now_ms;
pub(crate) use clock::now_us;
pub use entry::{Entry, Hit, KEY_BYTES_MAX, Stored, TIME_MS_MAX, Ticket};
pub use error::L1Error;
pub(crate) use feed::{EPOCH_MS_MIN, Feed, FeedId, Turn};
pub use options::L1Options;
pub use stats::{L1Process, L1Processes, L1Stats};
pub(crate) use sys::run_soon;

use file::{CacheFile, Directory, Wanted};
use header::{CLEARS_WORD, GENERATION_WORD};
use layout::{FEEDS, LANES, LINE, Layout, SHARED_WORDS};
use mapping::Mapping;
use record::{HEADER_WORDS, Header, fresh_word, words_for};
use roster::{Roster, Seat};
use shard::Shard;
use shard::write::Writer;
use stats::{Count, Counts};

use crate::simulation::{Fault, is_broken};

/// The caches that this process has open. Closing a second descriptor of a file would
/// release the byte that the process has locked through the first.
static OPEN: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

/// A thread keeps its buffer if that has at most so many bytes.
const BUFFER_BYTES_KEPT: usize = 64 << 10;

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A cache in shared memory. Clones, threads and forked children share it.
#[derive(Clone, Debug)]
pub struct L1 {
    inner: Arc<Inner>,
}

struct Inner {
    cache: CacheFile,
    secrets: RapidSecrets,
    lock_patience: Duration,
    /// The process that has locked a byte of the file (high half), and the number of that byte (low half). One atomic
    /// word instead of a mutex, which a child could inherit locked.
    process: AtomicU64,
    seat: Seat,
}

impl L1Options {
    /// Opens the cache with this name, or makes it. All processes of the user that give the same name and directory
    /// share it. An existing file keeps its own size. A file of another version, or one that was truncated
    /// or damaged in its first page is left to processes that have mapped it, and a new one takes its name.
    ///
    /// Where there is no directory for it, the cache has no file: it is shared with the children that this process
    /// forks.
    ///
    /// # Errors
    /// The name or size is out of bounds, the directory or file is not this user's alone, or there is no room.
    pub fn open(&self, name: &str) -> Result<L1, L1Error> {
        file::check_name(name)?;
        if let Some(directory) = &self.directory {
            return self.open_in(&Directory::open(directory)?, name);
        }
        for directory in file::default_directories() {
            match Directory::open(&directory) {
                Ok(directory) => return self.open_in(&directory, name),
                // The next directory is tried where one cannot be made. An unsafe one is an error.
                Err(L1Error::Io { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.anonymous()
    }

    /// Opens the cache with this name for the values of certain servers, in their order. The first that opens it so
    /// decides whose it is. For other servers this opens another cache instead, whose name is `name`, `-`, and eight
    /// digits: values of different servers never meet under one key.
    ///
    /// # Errors
    /// As [`L1Options::open`].
    pub fn open_for(&self, name: &str, servers: &[&str]) -> Result<L1, L1Error> {
        let number = rapidhash_v3_seeded(servers.join(",").as_bytes(), &RapidSecrets::seed(0)).max(1);
        let l1 = self.open(name)?;
        if header::note_servers(l1.inner.words(), number) {
            return Ok(l1);
        }
        let own = self.open(&format!("{name}-{:08x}", number >> 32))?;
        header::note_servers(own.inner.words(), number);
        Ok(own)
    }

    /// Makes a cache without a file, which is shared with the children that this process forks.
    ///
    /// # Errors
    /// The size is out of bounds, or there is no room.
    pub fn anonymous(&self) -> Result<L1, L1Error> {
        let l1 = self.share(file::anonymous(self.wanted())?);
        l1.init();
        Ok(l1)
    }

    /// Removes the file of the cache with this name. Processes that have it open keep it; the next to open it makes
    /// another. Returns whether there was one.
    ///
    /// # Errors
    /// As [`L1Options::open`].
    pub fn remove(&self, name: &str) -> Result<bool, L1Error> {
        file::check_name(name)?;
        let directories = self.directory.clone().map_or_else(file::default_directories, |own| vec![own]);
        let mut was_there = false;
        for directory in directories.iter().filter(|directory| directory.exists()) {
            was_there |= Directory::open(directory)?.remove(name)?;
        }
        Ok(was_there)
    }

    fn open_in(&self, directory: &Directory, name: &str) -> Result<L1, L1Error> {
        if let Some(l1) = directory.id_of(name).and_then(already_open) {
            return Ok(l1);
        }
        if let Some(cache) = directory.find(name)? {
            return Ok(self.share(cache));
        }
        let l1 = self.share(directory.make(name, self.wanted())?);
        l1.init();
        directory.publish(name)?;
        Ok(l1)
    }

    fn wanted(&self) -> Wanted {
        Wanted { bytes: self.bytes, items: self.items }
    }

    fn share(&self, cache: CacheFile) -> L1 {
        header::note_namespace(&cache.mapping);
        let secrets = RapidSecrets::seed(cache.seed);
        let (lock_patience, process) = (self.lock_patience, AtomicU64::new(0));
        let inner = Arc::new(Inner { cache, secrets, lock_patience, process, seat: Seat::default() });
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|inner| inner.strong_count() > 0);
        open.push(Arc::downgrade(&inner));
        L1 { inner }
    }
}

fn already_open(id: (u64, u64)) -> Option<L1> {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let inner = open.iter().filter_map(Weak::upgrade).find(|inner| inner.cache.id == id)?;
    Some(L1 { inner })
}

impl L1 {
    /// Copies the key's value to `value` and returns the rest of its entry; `None`, and an empty `value`, if there is
    /// none that is fresh or stale. Takes no lock.
    #[inline]
    pub fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Option<Hit> {
        self.get_by(key, value, Inner::hit)
    }

    /// As [`L1::get`]. An entry of a feed is fresh only if it was its server's less than `within_us` microseconds
    /// before this read.
    #[inline]
    pub(crate) fn get_exact(&self, key: &[u8], value: &mut Vec<u8>, within_us: u64) -> Option<Hit> {
        self.get_by(key, value, |inner, header| inner.exact_hit(header, within_us))
    }

    #[inline]
    fn get_by(
        &self,
        key: &[u8],
        value: &mut Vec<u8>,
        hit: impl FnOnce(&Inner, &Header) -> Option<Hit>,
    ) -> Option<Hit> {
        let inner = &*self.inner;
        let hash = inner.hash(key);
        let shard = inner.shard(hash);
        let header = shard.read(hash, key, value);
        // A feed may have been extended since the entry was copied, or have had a beat, after it was forgotten.
        let is_there = |header: &Header| {
            header.feed() == 0 || is_broken(Fault::BeatNotLookedBehind) || shard.has(hash, header)
        };
        let hit = header.and_then(|header| hit(inner, &header).filter(|_| is_there(&header)));
        inner.counts().add(if hit.is_some() { Count::Hits } else { Count::Misses });
        if hit.is_none() {
            value.clear();
        }
        hit
    }

    /// As [`L1::get`], with a function that is given the entry and the value, in a buffer of the thread.
    #[inline]
    pub fn get_with<T>(&self, key: &[u8], with: impl FnOnce(&Hit, &[u8]) -> T) -> Option<T> {
        self.with_buffer(|value| self.get(key, value).map(|hit| with(&hit, value)))
    }

    /// Calls a function with a buffer of the thread.
    #[inline]
    pub(crate) fn with_buffer<T>(&self, with: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        // Taken, so that the function may read other keys.
        let mut value = BUFFER.take();
        let result = with(&mut value);
        if value.capacity() <= BUFFER_BYTES_KEPT {
            BUFFER.set(value);
        }
        result
    }

    /// Stores an entry. A ticket of the key that was taken before is out of date then.
    pub fn set(&self, key: &[u8], entry: &Entry) -> Stored {
        let hash = self.inner.hash(key);
        let generation = self.inner.generation().load(Acquire);
        self.inner.store(hash, key, entry, generation, None)
    }

    /// Returns the state of a key, to be taken before the key is fetched from a server, or changed there.
    #[must_use]
    pub fn begin_fetch(&self, key: &[u8]) -> Ticket {
        let inner = &*self.inner;
        let hash = inner.hash(key);
        Ticket {
            hash,
            version: inner.version(hash).load(Acquire),
            generation: inner.generation().load(Acquire),
            clears: inner.clears().load(Acquire),
        }
    }

    /// Stores a fetched entry, unless the key was stored or deleted, or everything was cleared, after the ticket was
    /// taken: the entry may be older than that. Where revalidation was asked for meanwhile, the entry is
    /// stored, and is not fresh.
    pub fn fill(&self, ticket: &Ticket, key: &[u8], entry: &Entry) -> Stored {
        let hash = self.inner.hash(key);
        self.inner.store(hash, key, entry, ticket.generation, Some(ticket))
    }

    /// Makes an entry fresh until a time, and stale for as long behind it as before, without its value being sent
    /// again: the server has told that the key still has this cas. Returns whether the entry is there and has it too.
    pub fn touch(&self, ticket: &Ticket, key: &[u8], cas: u64, fresh_until_ms: u64) -> bool {
        self.renew(ticket, key, (cas, 0), fresh_until_ms)
    }

    /// As [`L1::touch`], for an entry that was fetched under a feed.
    pub(crate) fn renew(
        &self,
        ticket: &Ticket,
        key: &[u8],
        (cas, feed): (u64, FeedId),
        fresh_until_ms: u64,
    ) -> bool {
        let hash = self.inner.hash(key);
        let mut writer = self.inner.writer(hash);
        let is_current = self.inner.is_current(ticket, hash);
        is_current && writer.touch(hash, key, (cas, feed), fresh_word(fresh_until_ms, ticket.generation))
    }

    /// Forgets a key; returns whether it had an entry. No ticket that was taken before can bring one back.
    pub fn delete(&self, key: &[u8]) -> bool {
        let inner = &*self.inner;
        let hash = inner.hash(key);
        let mut writer = inner.writer(hash);
        if !is_broken(Fault::DeleteKeepsVersion) {
            inner.bump(hash);
        }
        let was_there = writer.delete(hash, key);
        if was_there {
            inner.counts().add(Count::Deleted);
        }
        was_there
    }

    /// Returns the number by which a change of the key is to be announced.
    pub(crate) fn token(&self, key: &[u8]) -> u64 {
        self.inner.hash(key)
    }

    /// Forgets the key with this [token](Self::token). No ticket that was taken before can bring its entry back.
    pub(crate) fn forget(&self, token: u64) {
        let inner = &*self.inner;
        let mut writer = inner.writer(token);
        if !is_broken(Fault::ForgetKeepsVersion) {
            inner.bump(token);
        }
        writer.delete_hash(token);
    }

    /// Forgets everything. No ticket that was taken before can bring anything back.
    pub fn clear(&self) {
        let inner = &*self.inner;
        inner.clears().fetch_add(1, AcqRel);
        for nth in 0..inner.cache.layout.shards {
            inner.shard_at(nth).write(inner.counts(), now_ms(), inner.lock_patience).clear();
        }
    }

    /// Makes every entry stale, until it is fetched or touched with a ticket that was taken later.
    pub fn revalidate_all(&self) {
        self.inner.generation().fetch_add(1, AcqRel);
    }

    /// Claims the fetch of a missing key, so that one thread of the host fetches it and the others wait.
    pub fn claim(&self, key: &[u8]) -> Claim {
        Claim::new(self, self.inner.hash(key))
    }

    /// Words that all processes share, zero in a new file, for the caller's use: the state of a breaker, say. A
    /// process that is killed leaves them as they are.
    #[must_use]
    pub fn shared_words(&self) -> &[AtomicU64] {
        self.inner.part(self.inner.cache.layout.shared_at, SHARED_WORDS)
    }

    /// Returns the counts of all processes together since the file was made. Those of a killed process stay.
    #[must_use]
    pub fn stats(&self) -> L1Stats {
        self.inner.roster().sum().stats()
    }

    /// Returns the counts of each process that lives, and those of all others together. A file has rows for 256
    /// processes at a time, or for one in each 32 KiB if it has less than 8 MiB, and for 16 at least. A process that
    /// finds none free at its first call has none until it opens the file again. Takes about 10 us a process.
    #[must_use]
    pub fn stats_by_process(&self) -> L1Processes {
        let process = sys::process();
        let stats_at = self.inner.cache.layout.stats_at;
        let own = self.inner.seat.lines_at(process).map(|at| (at - stats_at) / LINE);
        self.inner.roster().by_process(process as u32, own)
    }

    /// Returns the threads that are changing a shard now, by the ids that the kernel gave them: for finding out what a
    /// slow change waits for. Beside each is how often its shard was changed, modulo 2^32, so that two looks can tell
    /// whether it is still the same change.
    #[must_use]
    pub fn writers(&self) -> Vec<(u32, u32)> {
        (0..self.inner.cache.layout.shards).filter_map(|nth| self.inner.shard_at(nth).holder()).collect()
    }

    /// Returns about how many entries there are, expired ones included. It reads the whole index.
    #[must_use]
    pub fn len(&self) -> usize {
        (0..self.inner.cache.layout.shards).map(|nth| self.inner.shard_at(nth).len()).sum()
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.inner.cache.layout.bytes
    }

    /// The longest value, in bytes, under a key of any length: about 2/5 of a shard, of which there is one for each
    /// 4 MiB.
    #[must_use]
    pub fn value_bytes_max(&self) -> usize {
        let key_words = words_for(KEY_BYTES_MAX, 0) - HEADER_WORDS;
        (self.inner.cache.layout.record_words_max() - HEADER_WORDS - key_words) * mapping::WORD
    }

    /// The file; `None` if the cache has none.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.inner.cache.path.as_deref()
    }

    fn init(&self) {
        for nth in 0..self.inner.cache.layout.shards {
            self.inner.shard_at(nth).init();
        }
    }
}

impl Inner {
    #[inline]
    fn words(&self) -> &Mapping {
        &self.cache.mapping
    }

    fn file(&self) -> &File {
        &self.cache.file
    }

    fn part(&self, at: usize, len: usize) -> &[AtomicU64] {
        &self.words()[at..at + len]
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        rapidhash_v3_seeded(key, &self.secrets)
    }

    #[inline]
    fn shard(&self, hash: u64) -> Shard<'_> {
        Shard::of(self.words(), &self.cache.layout, hash)
    }

    fn shard_at(&self, nth: usize) -> Shard<'_> {
        Shard::at(self.words(), &self.cache.layout, nth)
    }

    #[inline]
    fn hit(&self, header: &Header) -> Option<Hit> {
        let now_ms = now_ms();
        let feed_end_ms = match header.feed() {
            0 => u64::MAX,
            feed => feed::end_ms(self.feeds(), feed, now_ms),
        };
        header.hit(now_ms, self.generation().load(Relaxed), feed_end_ms)
    }

    /// As [`Inner::hit`]. An entry of a feed is fresh only if it is exact within a time.
    #[inline]
    fn exact_hit(&self, header: &Header, within_us: u64) -> Option<Hit> {
        if header.feed() == 0 {
            return self.hit(header);
        }
        let now_us = now_us();
        let is_exact =
            feed::is_exact(self.feeds(), header.feed(), header.fresh_until_ms(), now_us, within_us);
        let feed_end_ms = feed::end_ms(self.feeds(), header.feed(), now_us / 1000);
        // Loaded behind the beat: all entries are made stale before a beat is noted.
        let hit = header.hit(now_us / 1000, self.generation().load(Relaxed), feed_end_ms)?;
        Some(Hit { is_fresh: hit.is_fresh && is_exact, ..hit })
    }

    fn feeds(&self) -> &[AtomicU64] {
        self.part(self.cache.layout.feeds_at, FEEDS * LINE)
    }

    /// Returns whether another process with this number lives.
    fn is_alive(&self, process: u32) -> bool {
        flight::is_alive(process, self.file())
    }

    fn roster(&self) -> Roster<'_> {
        let layout = &self.cache.layout;
        Roster::new(self.part(layout.stats_at, Layout::stats_words(layout.rows)), self.file())
    }

    /// Returns the line that this thread counts in.
    #[inline]
    fn counts(&self) -> Counts<'_> {
        let (process, thread) = sys::ids();
        let lines_at = match self.seat.lines_at(process) {
            Some(lines_at) => lines_at,
            None => self.seat.take(process, self.roster(), self.cache.layout.stats_at),
        };
        Counts(self.words(), lines_at + thread as usize % LANES * LINE)
    }

    #[inline]
    fn generation(&self) -> &AtomicU64 {
        &self.words()[GENERATION_WORD]
    }

    fn clears(&self) -> &AtomicU64 {
        &self.words()[CLEARS_WORD]
    }

    /// The count of changes of the key; keys share some.
    fn version(&self, hash: u64) -> &AtomicU64 {
        let layout = &self.cache.layout;
        &self.words()[layout.versions_at + spread(hash, layout.versions)]
    }

    /// The word of the table of fetches; keys share some.
    fn flight(&self, hash: u64) -> &AtomicU64 {
        let layout = &self.cache.layout;
        &self.words()[layout.flights_at + spread(hash, layout.flights)]
    }

    fn writer(&self, hash: u64) -> Writer<'_> {
        self.shard(hash).write(self.counts(), now_ms(), self.lock_patience)
    }

    fn bump(&self, hash: u64) {
        crash::step();
        self.version(hash).fetch_add(1, AcqRel);
    }

    fn is_current(&self, ticket: &Ticket, hash: u64) -> bool {
        ticket.hash == hash
            && (ticket.version == self.version(hash).load(Acquire) || is_broken(Fault::TicketIgnored))
            && ticket.clears == self.clears().load(Acquire)
    }

    fn store(
        &self,
        hash: u64,
        key: &[u8],
        entry: &Entry,
        generation: u64,
        ticket: Option<&Ticket>,
    ) -> Stored {
        let layout: &Layout = &self.cache.layout;
        if key.len() > KEY_BYTES_MAX {
            return Stored::TooLarge;
        }
        let fits = words_for(key.len(), entry.value.len()) <= layout.record_words_max();
        let header = fits.then(|| Header::new(hash, key, entry, generation));
        let mut writer = self.writer(hash);
        if ticket.is_some_and(|ticket| !self.is_current(ticket, hash)) {
            self.counts().add(Count::Refused);
            return Stored::Refused;
        }
        // Before the change, so that a writer killed in between has refused tickets for nothing.
        self.bump(hash);
        match header {
            Some(header) => {
                writer.store(&header, key, entry.value, layout.small_record_words_max());
                Stored::Yes
            }
            None => {
                writer.delete(hash, key);
                Stored::TooLarge
            }
        }
    }

    /// Returns the number of this process in the file, by whose lock others see that it lives. The lock is taken
    /// again each time: a child has none, and a library that has closed the file has ended it.
    fn process_id(&self) -> Option<u32> {
        let process = sys::process() << 32;
        let known = self.process.load(Acquire);
        let id = known as u32;
        if known >> 32 << 32 == process && flight::keep_id(self.file(), id) {
            return Some(id);
        }
        let id = flight::new_id(self.file())?;
        // Where another thread was first, its number counts; the byte of this one stays locked for nothing.
        match self.process.compare_exchange(known, process | u64::from(id), AcqRel, Acquire) {
            Ok(_) => Some(id),
            Err(others) => Some(others as u32),
        }
    }
}

/// Spreads hashes over `len` places, by other bits than those that choose the shard and the bucket.
fn spread(hash: u64, len: usize) -> usize {
    let mixed = u128::from(hash.wrapping_mul(0x9E37_79B9_7F4A_7C15)) * len as u128;
    (mixed >> 64) as usize
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("L1").field("path", &self.cache.path).field("bytes", &self.cache.layout.bytes).finish()
    }
}
