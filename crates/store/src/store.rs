//! The store: shards behind locks over the two tiers, and the work that no request asks for: making room,
//! writes, upkeep.

mod ages;
mod change;
mod dump;
mod growth;
mod identity;
mod layout;
mod limit;
mod listing;
mod open;
mod reclaim;
mod survey;
mod sweep;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::Seconds;
use crate::departures::Departed;
use crate::index::entry::State;
use crate::index::hash::KeyHash;
use crate::policy::admission::Admission;
use crate::policy::s3fifo::RamQueue;
use crate::prefetch::prefetch;
use crate::read::ReadPlan;
use crate::sample::{EventReceiver, PrefixNames, Sampler, event_ring};
use crate::shard::Shard;
use crate::shard::evict::{Evicted, OnFull};
use crate::ssd::health::{Access, SsdEvent};
use crate::ssd::write::WriteJob;
use crate::store::layout::Layout;
use crate::tiers::Tiers;

use growth::{Growth, Whereabouts};
use sweep::Sweep;

pub use ages::Ages;
pub use dump::{Dump, Listed};
pub(crate) use layout::{FIXED_INDEX_FILL_PERCENT, least_memory};
pub use layout::{Geometry, LOG_RECORD_BYTES_MAX};
pub use listing::ListedItem;
pub use open::{MemoryFile, Start};
pub use survey::SsdSurvey;

/// A stretch of a device that the SSD tier may use.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The caller's number for the device; comes back in plans and jobs.
    pub device: usize,
    /// Where the stretch begins, in bytes; a multiple of 4096.
    pub offset: u64,
    /// Its length in bytes; only whole segments of [`crate::SEGMENT_BYTES`] are used.
    pub bytes: u64,
}

/// What a store is opened with.
#[derive(Clone, Debug)]
pub struct Config {
    /// The bound on everything the store keeps in memory, in bytes.
    pub memory_bytes: u64,
    /// The SSD tier; empty for none.
    pub ssd: Vec<Span>,
    /// The expected size of an item with its key, in bytes, from which the index is sized.
    pub item_bytes: u32,
    /// The size of the index, in bytes, instead: its first size, where it can grow.
    pub index_bytes: Option<u64>,
    /// The most bytes a second to write to the SSD.
    pub ssd_write_limit: Option<u64>,
    /// Which items that leave RAM are written to the SSD; with a write limit, only those that were read or
    /// stored again.
    pub ssd_admission: Admission,
    /// Live items that are all kept on the SSD, in percent of its bytes: while there are no more, those in a
    /// segment that is reused are moved. Beyond that the oldest ones go, but for some that were read.
    pub ssd_live_percent: u32,
    /// Memory that its caller takes for shadows, out of `memory_bytes`, in bytes; `None` for
    /// [so much](Config::shadow_bytes). Without eviction there are no shadows, and none is set aside.
    pub shadow_bytes: Option<u64>,
    /// Whether items may be evicted; without, a store that finds no room answers [`Step::NoMemory`].
    pub evict: bool,
    /// Where the memory lives, if not in the process's own.
    pub memory_file: Option<MemoryFile>,
    /// Random: seeds the hash and tells this store's pages from any other's. One that goes on with a memory
    /// file goes on with the seed that is there.
    pub seed: u64,
    /// The first cas unique of a store that begins empty; must tell nothing of `seed`. Best random and not
    /// small: a client may hold a cas unique of an earlier process, or use a small number for "never".
    pub first_cas: u64,
}

impl Config {
    /// A cache of `memory_bytes` of RAM that may evict, without an SSD, for items of about 1,000 bytes. It begins
    /// empty, with a fixed seed: a program whose keys come from elsewhere sets a random one.
    pub fn new(memory_bytes: u64) -> Config {
        Config {
            memory_bytes,
            ssd: Vec::new(),
            item_bytes: 1000,
            index_bytes: None,
            ssd_write_limit: None,
            ssd_admission: Admission::All,
            ssd_live_percent: 70,
            shadow_bytes: Some(0),
            evict: true,
            memory_file: None,
            seed: 1,
            first_cas: 1 << 32,
        }
    }
}

/// What became of a request.
#[derive(Debug)]
pub enum Step<T> {
    /// It is done.
    Done(T),
    /// It needs this read; then call again with its outcome.
    Read(ReadPlan),
    /// Room is being made, in bounded steps: serve others, then call again.
    Again,
    /// There is no room until a write completes: perform writes and call again, at last with
    /// [`OnFull::Drop`].
    Busy,
    /// There is no room and none can be made, or not without waiting for a write (with [`OnFull::Drop`]).
    NoMemory,
}

impl<T> Step<T> {
    /// The result, if it is done.
    pub fn done(self) -> Option<T> {
        match self {
            Step::Done(result) => Some(result),
            _ => None,
        }
    }
}

/// A cache over RAM and SSD, shared by threads. It performs no I/O and reads no clock: see the crate's page.
pub struct Store {
    pub(crate) tiers: Tiers,
    pub(crate) shards: Vec<Mutex<Shard>>,
    layout: Layout,
    indexes: Vec<Whereabouts>,
    growth: Growth,
    start: Start,
    next_victim: AtomicU32,
    /// The memory limit the arena was made for, and the one in force.
    memory_bytes: u64,
    memory_limit: AtomicU64,
    /// What is set aside of it for shadows.
    shadow_bytes: u64,
    swept: Mutex<Sweep>,
    openings: Mutex<ages::OpeningTimes>,
    last_upkeep: AtomicU32,
}

impl Store {
    /// Hashes a key once for all that follows.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        self.tiers.hasher.hash(key)
    }

    /// Begins to fetch the key's index buckets into the processor's cache, so that a batch's misses overlap.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        self.indexes[self.shard_of(hash) as usize].prefetch(hash);
    }

    /// Begins to fetch the key's item itself, if it is in RAM. Worth its while once the buckets have had the
    /// time to come, for all of a batch before the first is served. Does nothing while another
    /// thread has the shard.
    #[inline]
    pub fn prefetch_item(&self, hash: KeyHash) {
        let Ok(shard) = self.shards[self.shard_of(hash) as usize].try_lock() else { return };
        if let Some((_, entry)) = shard.index().find(hash).filter(|(_, entry)| entry.state() == State::Ram) {
            prefetch(self.tiers.pool.owner_address(entry.ram_offset()));
            let start = self.tiers.pool.address() + entry.ram_offset() as usize;
            for line in 0..PREFETCHED_LINES {
                prefetch(start + line * CACHE_LINE_BYTES);
            }
        }
    }

    /// Values whose record exceeds this many bytes should arrive through [`Store::reserve`].
    pub fn large_bytes(&self) -> usize {
        self.tiers.large_bytes
    }

    /// The largest value the RAM tier can take at all, in bytes: half of it, and no more than 1 GiB.
    pub fn value_bytes_max(&self) -> u64 {
        (u64::from(self.tiers.pool.limit()) * self.layout.segment_bytes as u64 / 2).min(VALUE_BYTES_MAX)
    }

    pub(crate) fn lock(&self, shard: u32) -> MutexGuard<'_, Shard> {
        self.shards[shard as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn shard_of(&self, hash: KeyHash) -> u32 {
        hash.shard(self.layout.shards)
    }

    /// Makes every item that is there now invisible, or, with `at`, every item that is there then. One flush
    /// can wait at a time: a later call replaces it. O(1): nothing is visited.
    pub fn flush(&self, at: Option<Seconds>, now: Seconds) {
        self.tick(now);
        match at.filter(|at| *at > now) {
            Some(at) => self.tiers.header.flush_later(at.0),
            None => self.tiers.header.flush_now(),
        }
    }

    /// Returns whether a flush was planned with [`flush`](Self::flush) and is not due yet.
    pub fn flush_is_pending(&self, now: Seconds) -> bool {
        self.tick(now);
        self.tiers.header.flush_is_pending()
    }

    /// Carries out a flush that has come due.
    #[inline]
    pub(crate) fn tick(&self, now: Seconds) {
        self.tiers.header.tick(now.0);
    }

    /// Evicts until `wanted` segments are free beyond the spare ones; `Err` says why not. The work of one call is
    /// bounded: for more the step is [`Step::Again`].
    pub(crate) fn make_room<T>(
        &self,
        own: u32,
        wanted: u32,
        now: Seconds,
        on_full: OnFull,
    ) -> Result<(), Step<T>> {
        let target = wanted + self.tiers.spare_segments() + self.growth.segments_wanted();
        let shards = self.layout.shards;
        let fair = self.tiers.pool.limit() / shards;
        let (mut blocked, mut idle) = (0, 0);
        let mut work = EVICTION_WORK;
        while self.tiers.pool.free_count() < target {
            if work == 0 {
                return Err(Step::Again);
            }
            if !self.tiers.evict && !self.tiers.compaction.may_look(now) {
                return Err(Step::NoMemory);
            }
            let mut victim = self.change(own);
            if victim.segments() < fair || blocked + idle > 0 {
                drop(victim);
                victim = self.change(self.next_victim.fetch_add(1, Relaxed) % shards);
                if victim.segments() < fair / 2 && idle < shards {
                    idle += 1;
                    continue;
                }
            }
            let free_before = self.tiers.pool.free_count();
            let evicted = victim.evict_segment(&self.tiers, now, on_full, &mut work);
            let in_vain = evicted != Evicted::Blocked && self.tiers.pool.free_count() <= free_before;
            if !self.tiers.evict && !in_vain {
                self.tiers.compaction.note_success();
            }
            match evicted {
                Evicted::Segment => {}
                Evicted::Part => return Err(Step::Again),
                Evicted::Blocked if on_full == OnFull::Wait && self.tiers.evict => return Err(Step::Busy),
                Evicted::Blocked if blocked > self.layout.segments => return Err(Step::NoMemory),
                Evicted::Blocked => blocked += 1,
                Evicted::Nothing if idle > 2 * shards => {
                    let demotion = self.tiers.log.writes_pending() > 0 && on_full == OnFull::Wait;
                    return Err(if demotion { Step::Busy } else { Step::NoMemory });
                }
                Evicted::Nothing => idle += 1,
            }
            if !self.tiers.evict && blocked > 8 {
                let waits = self.tiers.log.writes_pending() > 0 && on_full == OnFull::Wait;
                return Err(if waits { Step::Busy } else { Step::NoMemory });
            }
        }
        Ok(())
    }

    /// The next write to perform, if one may start now: with `reads_wait` at most 256 KiB are under way, up to
    /// 1 MiB as more of the write buffers wait, so that reads keep their pace.
    pub fn next_write(&self, reads_wait: bool) -> Option<WriteJob> {
        self.sweep_if_wanted();
        self.tiers.log.next_write(reads_wait)
    }

    /// Takes a job back that could not be started.
    pub fn put_back(&self, job: WriteJob) {
        self.tiers.log.put_back(job);
    }

    /// Takes a performed write back; drop what [`WriteJob::share`] gave first.
    pub fn complete_write(&self, job: WriteJob, ok: bool, now: Seconds) {
        if let Some(demotion) = self.tiers.log.complete_write(job, ok) {
            self.change(self.shard_of(demotion.hash)).end_demotion(&self.tiers, now, &demotion);
            if demotion.from.state() == State::Ssd {
                self.tiers.log.end_move(&demotion);
            }
        }
    }

    /// Writes under way and waiting.
    pub fn writes_pending(&self) -> usize {
        self.tiers.log.writes_pending()
    }

    /// Queues all that is only in write buffers to be written, as before a stop.
    pub fn seal_writes(&self) {
        self.tiers.log.seal_all();
    }

    /// Reports a read that failed on the device; failures that last turn the SSD tier off until probes of it
    /// succeed. Successful reads are counted by the operations they were made for.
    pub fn count_read_error(&self) {
        self.tiers.log.count_outcome(Access::Read, false);
    }

    /// Returns the oldest change of the SSD tier that was not returned yet, for an operator.
    pub fn next_ssd_event(&self) -> Option<SsdEvent> {
        self.tiers.log.health.next_event()
    }

    /// Starts or stops to note the items that leave RAM, for [`take_departed`](Self::take_departed).
    pub fn note_departures(&self, on: bool) {
        self.tiers.departures.turn(on);
    }

    /// Takes the items that have left RAM since the last call, and the number of those that were not noted because
    /// the queue for 256 of them was full. Items that leave the SSD are not among them: their keys are there.
    pub fn take_departed(&self) -> (Vec<Departed>, u64) {
        self.tiers.departures.take()
    }

    /// Starts to send what requests on one key of `scale`, a power of two, do. Returns the receiving ends: all shards
    /// together have rings for about `slots` events. To be called once, before requests.
    pub fn sample(&self, scale: u32, slots: usize) -> Vec<EventReceiver> {
        self.sample_with(scale, slots, None)
    }

    /// The same, with the number of each key's prefix, which ends before the first `delimiter`. Returns what gives the
    /// names of numbers, too.
    pub fn sample_by_prefix(
        &self,
        scale: u32,
        slots: usize,
        delimiter: u8,
    ) -> (Vec<EventReceiver>, Arc<PrefixNames>) {
        let names = Arc::new(PrefixNames::new(delimiter, self.tiers.hasher.clone()));
        (self.sample_with(scale, slots, Some(&names)), names)
    }

    fn sample_with(&self, scale: u32, slots: usize, names: Option<&Arc<PrefixNames>>) -> Vec<EventReceiver> {
        let each = (slots / self.shards.len()).max(RING_SLOTS_MIN).next_power_of_two();
        let begin = |shard| {
            let (sender, receiver) = event_ring(each);
            *self.lock(shard).sampler() = Sampler::new(scale, sender, names.cloned());
            receiver
        };
        (0..self.layout.shards).map(begin).collect()
    }

    /// Sends what requests on one key of `scale`, a power of two, do from now on, if the store [samples](Self::sample).
    pub fn set_sample_scale(&self, scale: u32) {
        (0..self.layout.shards).for_each(|shard| self.lock(shard).sampler().set_scale(scale));
    }

    /// Returns how many flushes have taken effect since the memory was made, modulo 2^32.
    pub fn flushes(&self) -> u32 {
        self.tiers.epoch()
    }

    /// Whether the SSD tier was turned off by repeated failures (or there is none).
    pub fn ssd_is_off(&self) -> bool {
        self.tiers.log.is_off()
    }

    /// Runs the upkeep that no request waits for; call it now and then (some times a second).
    pub fn upkeep(&self, now: Seconds) {
        self.tick(now);
        self.tiers.log.health.tick(now);
        if self.last_upkeep.swap(now.0, Relaxed) != now.0 && !self.tiers.log.is_off() {
            self.tiers.log.free_spent(now, self.tiers.epoch());
        }
        if let Ok(mut openings) = self.openings.try_lock() {
            openings.note(self.tiers.log.table.openings(), self.layout.ssd_segments, now);
        }
        self.sweep();
        self.shrink(now);
        self.shrink_index();
    }

    fn shards_repaired_and_reset(&self) -> (u64, u64) {
        match self.start {
            Start::Warm { shards_repaired, shards_reset, .. } => (shards_repaired, shards_reset),
            Start::Cold(_) => (0, 0),
        }
    }

    /// Returns which items that leave RAM are written to the SSD now.
    pub fn admission(&self) -> Admission {
        self.tiers.admission.get()
    }

    /// Writes other items to the SSD from now on.
    pub fn set_admission(&self, admission: Admission) {
        self.tiers.admission.set(admission);
    }

    /// What the store knows of itself.
    pub fn stats(&self) -> Stats {
        let (log, pool) = (&self.tiers.log, &self.tiers.pool);
        let ram_segments = self.layout.segments - pool.lent_count();
        let (shards_repaired, shards_reset) = self.shards_repaired_and_reset();
        let mut stats = Stats {
            arena_bytes: self.layout.arena_bytes,
            ram_tier_bytes: u64::from(ram_segments) * self.layout.segment_bytes as u64,
            ram_segment_bytes: self.layout.segment_bytes as u64,
            ram_segments: ram_segments.into(),
            ram_segments_free: pool.free_count().into(),
            ram_segments_reserved: pool.reserved_count().into(),
            ram_segments_withheld: pool.withheld_count().into(),
            index_capacity_max: self.layout.index_entries_max(),
            table_bytes: self.layout.table_bytes,
            buffer_bytes: self.layout.buffer_bytes,
            shadow_bytes: self.shadow_bytes,
            shards: u64::from(self.layout.shards),
            shards_repaired,
            shards_reset,
            ssd_items: if log.is_off() { 0 } else { log.table.items_since(self.tiers.epoch()) },
            ssd_segments: u64::from(log.segments()),
            ssd_segments_used: u64::from(log.segments_used()),
            ssd_device_writes: log.device_writes.load(Relaxed),
            ssd_bytes_written: log.bytes_written.load(Relaxed),
            ssd_bytes_admitted: log.bytes_admitted.load(Relaxed),
            ssd_bytes_moved: log.bytes_moved.load(Relaxed),
            ssd_segments_cleaned: log.segments_cleaned.load(Relaxed),
            ssd_turned_off: log.health.turned_off.load(Relaxed),
            ssd_probes: log.health.probes.load(Relaxed),
            evictions_ssd: log.evictions.load(Relaxed),
            ssd_errors: log.health.errors.load(Relaxed),
            ssd_writes_pending: log.writes_pending() as u64,
            ..Stats::default()
        };
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let head = shard.head();
            stats.index_capacity += shard.index().capacity();
            stats.index_bytes += shard.index().bytes();
            stats.index_entries += head.index_entries;
            stats.index_evictions += head.index_evictions;
            stats.index_collisions += head.index_collisions;
            stats.ssd_false_reads += shard.ssd_false_reads();
            let [small, main] =
                [RamQueue::Small, RamQueue::Main].map(|queue| shard.visible(queue, self.tiers.epoch()));
            stats.ram_items += small.items + main.items;
            stats.ram_item_bytes += small.bytes + main.bytes;
            stats.ram_items_small += small.items;
            stats.ram_items_main += main.items;
            let found_gone = shard.found_gone();
            stats.found_expired += found_gone.expired;
            stats.found_flushed += found_gone.flushed;
            stats.evictions_ram += head.evictions;
            stats.evicted_unread += head.evicted_unread;
            stats.ssd_admissions_dropped += head.admissions_dropped;
            stats.ssd_admissions_refused += head.admissions_refused;
            let refusals = shard.refusals();
            stats.ssd_refused_expiring += refusals.expiring;
            stats.ssd_refused_limit += refusals.limit;
            stats.ssd_refused_unwanted += refusals.unwanted;
            stats.ssd_refused_unfit += refusals.unfit;
            stats.reclaimed += head.reclaimed;
            stats.expired_unread += head.expired_unread;
        }
        let by_index = stats.index_evictions + stats.index_collisions;
        stats.evictions = stats.evictions_ram + stats.evictions_ssd + by_index;
        stats
    }

    /// Empties RAM as if all of it were needed at once, but for what the policy keeps again and again; for
    /// tests. False when writes must complete first: perform them, then call again.
    pub fn evict_all(&self, now: Seconds) -> bool {
        for shard in 0..self.layout.shards {
            for _ in 0..8 * self.layout.segments {
                match self.change(shard).evict_segment(&self.tiers, now, OnFull::Wait, &mut { u32::MAX }) {
                    Evicted::Segment | Evicted::Part => {}
                    Evicted::Blocked => return false,
                    Evicted::Nothing => break,
                }
            }
        }
        self.seal_writes();
        self.writes_pending() == 0
    }

    /// Recounts all counts and compares them; for tests, while no other thread uses the store.
    ///
    /// # Errors
    /// A description of the first difference.
    pub fn check(&self) -> Result<(), String> {
        let pool = &self.tiers.pool;
        let (free, reserved) = (pool.free_count(), pool.reserved_count());
        let mut known = free + reserved + pool.withheld_count() + pool.lent_count();
        for (number, shard) in self.shards.iter().enumerate() {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.check(&self.tiers).map_err(|what| format!("shard {number}: {what}"))?;
            let (used, given_up) = shard.recount_segments(pool);
            known += used + given_up;
        }
        if known != pool.count() {
            return Err(format!("of {} RAM segments {known} are known, {free} of them free", pool.count()));
        }
        Ok(())
    }

    /// Makes room for the promotion of a record of `segments` segments, without waiting for anything.
    pub(crate) fn top_up(&self, own: u32, segments: u32, now: Seconds) {
        let tiers = &self.tiers;
        if tiers.evict && tiers.is_promotable(segments) && !tiers.has_room_to_promote(segments) {
            let _ = self.make_room::<()>(own, segments, now, OnFull::Wait);
        }
    }
}

/// The work of one step of making room, in records looked at: about half a millisecond.
const EVICTION_WORK: u32 = 2048;
/// Memcached's own bound on an item.
pub(crate) const VALUE_BYTES_MAX: u64 = 1 << 30;
/// The least events that a shard's ring of sampled requests has room for.
const RING_SLOTS_MIN: usize = 16;
const CACHE_LINE_BYTES: usize = 64;
/// Of an item that is fetched ahead: header, key and a short value. The processor sees a longer one coming by
/// itself.
const PREFETCHED_LINES: usize = 3;

/// The store's own figures; those of requests are the server's. Bytes are bytes, the rest are counts.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the names say it; docs/stats.md explains each to operators")]
pub struct Stats {
    pub arena_bytes: u64,
    pub ram_tier_bytes: u64,
    pub ram_segment_bytes: u64,
    pub ram_segments: u64,
    pub ram_segments_free: u64,
    pub ram_segments_reserved: u64,
    pub ram_segments_withheld: u64,
    pub index_bytes: u64,
    pub index_capacity: u64,
    pub index_capacity_max: u64,
    pub index_entries: u64,
    pub index_evictions: u64,
    pub index_collisions: u64,
    pub table_bytes: u64,
    pub buffer_bytes: u64,
    pub shadow_bytes: u64,
    pub ram_items: u64,
    pub ram_items_small: u64,
    pub ram_items_main: u64,
    pub ram_item_bytes: u64,
    pub ssd_items: u64,
    pub ssd_segments: u64,
    pub ssd_segments_used: u64,
    pub ssd_device_writes: u64,
    pub ssd_bytes_written: u64,
    pub ssd_bytes_admitted: u64,
    pub ssd_admissions_dropped: u64,
    pub ssd_admissions_refused: u64,
    pub ssd_refused_expiring: u64,
    pub ssd_refused_limit: u64,
    pub ssd_refused_unwanted: u64,
    pub ssd_refused_unfit: u64,
    pub ssd_writes_pending: u64,
    pub ssd_errors: u64,
    pub ssd_false_reads: u64,
    pub ssd_bytes_moved: u64,
    pub ssd_segments_cleaned: u64,
    pub ssd_turned_off: u64,
    pub ssd_probes: u64,
    pub evictions: u64,
    pub evictions_ram: u64,
    pub evictions_ssd: u64,
    pub evicted_unread: u64,
    pub reclaimed: u64,
    pub expired_unread: u64,
    pub shards: u64,
    pub found_expired: u64,
    pub found_flushed: u64,
    pub shards_repaired: u64,
    pub shards_reset: u64,
}
