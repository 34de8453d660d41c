//! Opening a store: empty, or with what an earlier process left in the memory file.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

use super::growth::{Growth, Whereabouts};
use super::identity::{Content, Identity};
use super::sweep::Sweep;
use super::{Config, Span, Store};
use crate::arena::Arena;
use crate::departures::Departures;
use crate::error::OpenError;
use crate::header::{ArenaHeader, Cold, HEADER_PAGE_BYTES};
use crate::index::Index;
use crate::index::entry::SSD_SEGMENTS_MAX;
use crate::index::hash::Hasher;
use crate::policy::admission::{Admission, LiveAdmission};
use crate::policy::write_budget::WriteBudget;
use crate::ram::compaction::Compaction;
use crate::ram::pool::Pool;
use crate::shard::Shard;
use crate::shard::recover::RecoveryCounts;
use crate::ssd::SEGMENT_BYTES;
use crate::ssd::log::{Log, Rules, SegmentLocation};
use crate::ssd::segment_table::Table;
use crate::store::layout::{Geometry, Layout, Sizes};
use crate::tiers::Tiers;

/// A file that holds a store's memory, so that a later process can go on with it.
#[derive(Clone, Debug)]
pub struct MemoryFile {
    /// Open for reading and writing, and this process's alone; best in a file system in memory.
    pub file: Arc<File>,
    /// Names the clock that the store's seconds are counted on: memory with another's times is of no use.
    pub clock: String,
    /// Names the SSD's files and devices as the operator does: memory of an SSD with other names is of use
    /// with that one, and refused with this.
    pub paths: Vec<u8>,
    /// Names what the SSD holds, as it is found: memory that points at something else is of no use.
    pub ssd: Vec<u8>,
    /// Whether all of the file is allocated before it is used. In a file system that other files can fill, a
    /// page that finds no room ends the process.
    pub allocate: bool,
}

/// How a store began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Empty, and why.
    Cold(Cold),
    /// With what an earlier process left.
    Warm {
        /// Items that are back, in RAM and on the SSD.
        items: u64,
        /// Shards that were being changed when the process ended, and have been repaired.
        shards_repaired: u64,
        /// Shards that were damaged, and have been emptied.
        shards_reset: u64,
    },
}

/// Threads that read the memory of an earlier process through.
const RECOVER_THREADS_MAX: usize = 16;

impl Store {
    /// Checks that a store of these sizes could be opened, without taking any memory.
    ///
    /// # Errors
    /// [`OpenError::MemoryTooSmall`] or [`OpenError::TooLarge`], with the arithmetic.
    pub fn check_sizes(config: &Config) -> Result<(), OpenError> {
        Layout::new(&sizes_of(config)?).map(drop)
    }

    /// Returns how a store of these options would divide its memory, without taking any.
    ///
    /// # Errors
    /// As [`check_sizes`](Store::check_sizes).
    pub fn geometry(config: &Config) -> Result<Geometry, OpenError> {
        Ok(Layout::new(&sizes_of(config)?)?.geometry())
    }

    /// Returns the least memory limit, in whole MiB, with which the RAM tier has `ram_tier_bytes`: `None` if
    /// none that can be addressed does.
    pub fn memory_for(config: &Config, ram_tier_bytes: u64) -> Option<u64> {
        Layout::memory_for(&sizes_of(config).ok()?, ram_tier_bytes)
    }

    /// Opens a store: with what its memory file holds, if that is of use, and else empty; [`Store::start`]
    /// tells which. An empty one with a memory file is of use to a later process only after
    /// [`Store::make_ready`].
    ///
    /// # Errors
    /// See [`OpenError`]. A memory file that is refused is left as it is.
    pub fn open(config: &Config) -> Result<Store, OpenError> {
        let sizes = sizes_of(config)?;
        let layout = Layout::new(&sizes)?;
        // Only for sizes that were found fit: it has an entry a segment.
        let locations = stripe(&config.ssd);
        let opened = match &config.memory_file {
            Some(memory) => {
                let identity = identity_of(memory, &memory.ssd, config, &sizes, &layout);
                open_memory(memory, &identity, config.seed)?
            }
            None => OpenedMemory { seed: config.seed, cold: Some(Cold::NoFile), is_short: false },
        };
        let OpenedMemory { seed, cold, is_short } = opened;
        let file = config.memory_file.as_ref().map(|memory| &*memory.file);
        let bytes = layout.arena_bytes + layout.reserve_bytes;
        let mut arena =
            Arena::new(bytes as usize, file).map_err(|source| OpenError::Map { bytes, source })?;
        if config.memory_file.as_ref().is_some_and(|memory| memory.allocate) {
            arena = arena.with_limited_room();
        }
        let mut store = Store::carve(arena, config, layout, locations, seed);
        store.start = match cold {
            Some(why) => store.begin(why, config.first_cas),
            None => store.recover(),
        };
        if is_short {
            store.tiers.pool.withhold_missing();
        }
        Ok(store)
    }

    /// How the store began.
    pub fn start(&self) -> Start {
        self.start
    }

    /// Makes the memory one that a later process may go on with if it finds an SSD of the name `ssd`. For a
    /// store that began cold, nothing that was on the SSD before may verify; for a warm one it is a new
    /// name for the same content.
    pub fn make_ready(&self, config: &Config, ssd: &[u8]) {
        if config.memory_file.is_some() {
            self.tiers.header.finish(ssd);
        }
    }

    fn carve(
        mut arena: Arena,
        config: &Config,
        layout: Layout,
        locations: Vec<SegmentLocation>,
        seed: u64,
    ) -> Store {
        let header = ArenaHeader::new(arena.carve(HEADER_PAGE_BYTES / 8));
        let segments = layout.segments as usize;
        let memory = arena.carve_shared(segments * layout.segment_bytes);
        // Write buffers go to the device as they are; behind the segments, whole pages too, they cost no
        // gaps.
        let write_buffers =
            (0..layout.write_buffers).map(|_| arena.carve_pages(layout.write_buffer_bytes)).collect();
        let lines = arena.carve(layout.write_buffers as usize);
        let pool = Pool::new(memory, arena.carve(segments), arena.carve(segments), layout.segment_bytes);
        let table = Table::new(arena.carve(locations.len()));
        let ghosts = layout.ghosts_per_shard as usize;
        let heads: Vec<_> = (0..layout.shards).map(|_| (arena.carve(1), arena.carve(ghosts))).collect();
        // Last, since only the front of it is in use.
        let [first, most] =
            [layout.buckets_per_shard, layout.buckets_per_shard_max].map(|buckets| buckets as usize);
        let (buckets, stretch) = arena.carve_strided(first, most, layout.shards as usize);
        let growth = Growth::new(stretch, &layout);
        let indexes = buckets
            .into_iter()
            .map(|buckets| Index::new(buckets, layout.buckets_per_shard, table.part_bits()));
        let mut whereabouts = Vec::new();
        let shards = indexes.zip(heads).map(|(index, (head, ghost))| {
            whereabouts.push(Whereabouts::new(&index));
            Mutex::new(Shard::new(index, pool.new_owner(), head, ghost, layout.segment_bytes))
        });
        let shards = shards.collect();
        let tiers = Tiers {
            log: Log::new(table, locations, write_buffers, lines, log_rules(config, &layout, seed)),
            hasher: Hasher::new(seed),
            header,
            admission: LiveAdmission::new(config.first_admission()),
            evict: config.evict,
            compaction: Compaction::new(layout.segments, layout.segment_bytes),
            large_bytes: layout.large_bytes(),
            departures: Departures::default(),
            pool,
        };
        Store {
            tiers,
            shards,
            layout,
            indexes: whereabouts,
            growth,
            start: Start::Cold(Cold::NoFile),
            next_victim: AtomicU32::new(0),
            memory_bytes: config.memory_bytes,
            memory_limit: AtomicU64::new(config.memory_bytes),
            shadow_bytes: config.shadow_bytes(),
            swept: Mutex::new(Sweep::default()),
            openings: Mutex::default(),
            last_upkeep: AtomicU32::new(0),
        }
    }

    /// Begins in zeroed memory.
    fn begin(&mut self, why: Cold, first_cas: u64) -> Start {
        self.tiers.header.begin(first_cas);
        for shard in &mut self.shards {
            let shard = shard.get_mut().unwrap_or_else(PoisonError::into_inner);
            shard.begin_queues();
        }
        Start::Cold(why)
    }

    /// Goes on with what an earlier process left.
    ///
    /// May itself be ended at any instant: a shard counts as changing while it is looked at, and what all
    /// share is worked out from what stays.
    fn recover(&mut self) -> Start {
        self.growth.begin_recovery();
        let (tiers, layout) = (&self.tiers, &self.layout);
        tiers.log.recover(tiers.epoch());
        let kept = tiers.pool.kept();
        let were_demoting = tiers.pool.were_demoting(layout.shards);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = processors.min(RECOVER_THREADS_MAX).min(self.shards.len());
        let share = self.shards.len().div_ceil(threads);
        let take_share = |first: usize, shards: &mut [Mutex<Shard>]| {
            let live = vec![(0, 0); layout.ssd_segments as usize];
            let mut counts = RecoveryCounts { live, ram_items: 0, repaired: 0, reset: 0 };
            for (number, shard) in (first..).zip(shards) {
                let shard = shard.get_mut().unwrap_or_else(PoisonError::into_inner);
                let place = (number as u32, layout.shards);
                shard.recover(tiers, place, &were_demoting[number], &kept, &mut counts);
            }
            for (segment, &(live, pages)) in counts.live.iter().enumerate().filter(|(_, live)| live.0 > 0) {
                tiers.log.table.add_live(segment as u32, live, pages);
            }
            (counts.ram_items, counts.repaired, counts.reset)
        };
        let mut shares = self.shards.chunks_mut(share).enumerate();
        let counts: Vec<(u64, u64, u64)> = std::thread::scope(|scope| {
            let (_, own) = shares.next().expect("a store has shards");
            let others: Vec<_> = shares
                .map(|(nth, shards)| {
                    let take_share = &take_share;
                    scope.spawn(move || take_share(nth * share, shards))
                })
                .collect();
            let own = take_share(0, own);
            let others = others.into_iter().map(|other| other.join());
            std::iter::once(Ok(own)).chain(others).collect::<Result<_, _>>()
        })
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        tiers.pool.free_the_rest(&kept);
        let items_on_ssd = tiers.log.table.items();
        self.lend_again();
        // Entries into earlier generations are cleared: the sweep has nothing left to do.
        *self.swept.get_mut().unwrap_or_else(PoisonError::into_inner) =
            Sweep::begin(self.tiers.log.table.openings());
        let sum = |of: fn(&(u64, u64, u64)) -> u64| counts.iter().map(of).sum::<u64>();
        Start::Warm {
            items: sum(|count| count.0) + items_on_ssd,
            shards_repaired: sum(|count| count.1),
            shards_reset: sum(|count| count.2),
        }
    }
}

/// A memory file that is ready to be mapped.
struct OpenedMemory {
    /// The store's.
    seed: u64,
    /// Why the store begins empty, if it does.
    cold: Option<Cold>,
    /// Whether memory that an earlier process had given back is missing.
    is_short: bool,
}

/// Finds out what a memory file holds and readies it to be mapped.
fn open_memory(memory: &MemoryFile, identity: &Identity<'_>, seed: u64) -> Result<OpenedMemory, OpenError> {
    let bytes = identity.layout.arena_bytes;
    let all_bytes = bytes + identity.layout.reserve_bytes;
    let map = |source| OpenError::Map { bytes, source };
    let (seed, cold) = match identity.examine(&memory.file).map_err(map)? {
        Content::Arena(seed) => (seed, None),
        Content::Useless(why) => (seed, Some(why)),
        Content::OtherOptions(made) => return Err(OpenError::OtherOptions(made)),
        Content::Foreign => return Err(OpenError::NotMemory),
    };
    if cold.is_some() {
        identity.begin(&memory.file, seed).and_then(|()| memory.file.set_len(all_bytes)).map_err(map)?;
    }
    let mut is_short = false;
    if memory.allocate
        && let Err(source) =
            larder_device::allocate(&memory.file, bytes, cold.as_ref().map(|_| HEADER_PAGE_BYTES as u64))
    {
        // All that a store has in use is there: only segments that it gave back can be missing.
        is_short = cold.is_none() && source.kind() == io::ErrorKind::StorageFull;
        if cold.is_some() {
            // It had nothing of use, and shall not keep room that is short.
            let _ = memory.file.set_len(0);
        }
        if !is_short {
            return Err(OpenError::NoRoom { bytes, source });
        }
    }
    Ok(OpenedMemory { seed, cold, is_short })
}

fn identity_of<'a>(
    memory: &'a MemoryFile,
    ssd: &'a [u8],
    config: &Config,
    sizes: &'a Sizes,
    layout: &'a Layout,
) -> Identity<'a> {
    Identity { clock: &memory.clock, paths: &memory.paths, ssd, evict: config.evict, sizes, layout }
}

impl Config {
    /// Returns the bytes of RAM and SSD together.
    pub(crate) fn cache_bytes(&self) -> u64 {
        self.memory_bytes + self.ssd.iter().map(|span| span.bytes).sum::<u64>()
    }

    /// Returns which items are written to the SSD at first: with a write limit only those that return.
    pub fn first_admission(&self) -> Admission {
        if self.ssd_write_limit.is_some() { Admission::Returning } else { self.ssd_admission }
    }

    /// Returns how much of the memory is set aside for shadows, in bytes: a hundredth of it and 16 MiB at most, unless
    /// given. 0 without eviction, and where it would be too little to tell anything.
    pub fn shadow_bytes(&self) -> u64 {
        sizes_of(self).map_or(0, |sizes| sizes.shadow_bytes())
    }
}

/// The rules that the SSD log follows.
fn log_rules(config: &Config, layout: &Layout, seed: u64) -> Rules {
    Rules {
        store: seed,
        write_buffer_bytes: layout.write_buffer_bytes,
        demotion_bytes_max: layout.segments as usize * layout.segment_bytes / 4,
        reuses: config.evict,
        live_percent_max: config.ssd_live_percent.min(100),
        budget: WriteBudget::new(config.ssd_write_limit),
    }
}

fn sizes_of(config: &Config) -> Result<Sizes, OpenError> {
    let segments = config.ssd.iter().map(|span| span.bytes / SEGMENT_BYTES).fold(0, u64::saturating_add);
    let ssd_segments = u32::try_from(segments).ok().filter(|segments| *segments < SSD_SEGMENTS_MAX);
    Ok(Sizes {
        memory_bytes: config.memory_bytes,
        ssd_segments: ssd_segments.ok_or(OpenError::TooLarge {
            what: "an SSD tier",
            bytes: segments.saturating_mul(SEGMENT_BYTES),
            max: u64::from(SSD_SEGMENTS_MAX - 1) * SEGMENT_BYTES,
        })?,
        item_bytes: config.item_bytes,
        index_bytes: config.index_bytes,
        // What may not be evicted is not moved out of the way of an index either, once RAM is full.
        index_grows: config.evict,
        shadow_bytes: if config.evict { config.shadow_bytes } else { Some(0) },
    })
}

/// Lays the SSD segments over the spans, taking turns.
fn stripe(spans: &[Span]) -> Vec<SegmentLocation> {
    let counts: Vec<u64> = spans.iter().map(|span| span.bytes / SEGMENT_BYTES).collect();
    let rows = counts.iter().copied().max().unwrap_or(0);
    let location = |row, (span, &count): (&Span, &u64)| {
        (row < count).then(|| SegmentLocation {
            device: span.device as u32,
            offset: span.offset + row * SEGMENT_BYTES,
        })
    };
    (0..rows)
        .flat_map(|row| spans.iter().zip(&counts).filter_map(move |place| location(row, place)))
        .collect()
}
