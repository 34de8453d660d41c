//! From a memory limit to counts and sizes: how a store divides its memory. Arithmetic only.

use crate::error::OpenError;
use crate::header::{HEADER_PAGE_BYTES, LAYOUT_WORDS};
use crate::index::entry::{RAM_BYTES_MAX, SSD_SEGMENTS_MAX, part_bits};
use crate::ssd::SEGMENT_BYTES;

/// What a store is to be made of.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// The bound on everything the store keeps in memory, in bytes.
    pub memory_bytes: u64,
    /// Segments of the SSD tier, [`SEGMENT_BYTES`] each; 0 for none.
    pub ssd_segments: u32,
    /// The expected size of an item with its key, in bytes; the index is made for that many.
    pub item_bytes: u32,
    /// The size of the index at first, in bytes, if not computed from the other sizes.
    pub index_bytes: Option<u64>,
    /// Whether the index may begin small and grow.
    pub index_grows: bool,
    /// Of the memory, what its user takes for shadows, in bytes; `None`: a part of it.
    pub shadow_bytes: Option<u64>,
}

impl Sizes {
    /// Returns what is set aside for shadows, in bytes: a hundredth of the memory and 16 MiB at most, unless given.
    /// None is set aside where that would be too little to tell anything.
    pub(crate) fn shadow_bytes(&self) -> u64 {
        let bytes = self.shadow_bytes.unwrap_or((self.memory_bytes / SHADOW_PARTS).min(SHADOW_BYTES_MAX));
        if bytes < SHADOW_BYTES_MIN { 0 } else { bytes.min(self.memory_bytes) }
    }
}

/// How the memory is divided. All sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub shards: u32,
    /// Of the index: at first, and at most.
    pub buckets_per_shard: u32,
    pub buckets_per_shard_max: u32,
    pub ghosts_per_shard: u32,
    pub segment_bytes: usize,
    pub segments: u32,
    pub write_buffer_bytes: usize,
    pub write_buffers: u32,
    pub ssd_segments: u32,
    /// Memory, and addresses behind it for an index that grows: those take no memory of their own, since RAM
    /// segments give way to them.
    pub arena_bytes: u64,
    pub reserve_bytes: u64,
    pub index_bytes: u64,
    pub table_bytes: u64,
    pub buffer_bytes: u64,
}

/// How a store divides its memory and how large its SSD is, for what imagines one of these sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// RAM segments, while the index has its first size.
    pub ram_segments: u32,
    /// Bytes of one.
    pub segment_bytes: u32,
    /// Shards, each of which has queues of its own.
    pub shards: u32,
    /// Records above this many bytes have RAM segments of their own.
    pub large_bytes: usize,
    /// The index at first, in bytes.
    pub index_bytes: u64,
    /// The most that the index may become, in bytes.
    pub index_bytes_max: u64,
    /// Keys that are remembered after their items left.
    pub ghosts: u64,
    /// Segments of the SSD, [`SEGMENT_BYTES`] each.
    pub ssd_segments: u32,
    /// Bytes of a write buffer of the SSD; no smaller record lies in two.
    pub write_buffer_bytes: u32,
}

const MIB: u64 = 1 << 20;
/// What shadows have: so small a part of the memory, and no more than tells enough. Less than the least tells nothing.
const SHADOW_PARTS: u64 = 100;
const SHADOW_BYTES_MAX: u64 = 16 * MIB;
const SHADOW_BYTES_MIN: u64 = MIB / 4;
/// A RAM tier below this holds too few segments to be a cache.
const RAM_BYTES_MIN: u64 = MIB;
/// RAM a shard should have at least, in bytes and in items of the expected size: its segments are a 64th of
/// it, and what items leave free at a segment's end is lost.
const SHARD_RAM_BYTES: u64 = 4 * MIB;
const SHARD_ITEMS: u64 = 1024;
const SHARDS_MAX: u64 = 256;
/// The fill that an index which keeps its size is made for, in percent; it reaches more before anything gives way.
pub(crate) const FIXED_INDEX_FILL_PERCENT: u64 = 94;
const BUCKET_BYTES: u64 = 64;
const BUCKET_ENTRIES: u64 = 8;
/// RAM, too, has an index for items of this size, as small as memcached's smallest common ones.
const RAM_ITEM_BYTES: u64 = 96;
/// An index that grows begins as one for items of this size in RAM, and this size in both tiers. It may grow to one
/// for items of that size, and to so many percent of the memory.
const GROWS_FROM_RAM_ITEM_BYTES: u64 = 1024;
const GROWS_FROM_ITEM_BYTES: u64 = 16 << 10;
const GROWS_TO_ITEM_BYTES: u64 = 64;
const GROWS_TO_PERCENT: u64 = 75;
/// Keys that left and are remembered, a byte each, for every item that RAM would hold.
const GHOSTS_PER_RAM_ITEM_MAX: u64 = 4;
/// A segment without an SSD. Records of the log go on from one to the next, and half a segment is the mean loss
/// behind a large record. With an SSD they are larger, since a large record is written segment by segment.
const RAM_SEGMENT_BYTES: u64 = 8 << 10;
/// The longest record of the log, in bytes. A longer one has RAM segments of its own.
pub const LOG_RECORD_BYTES_MAX: usize = 128 << 10;
/// The same without an SSD, in parts of a shard's RAM.
const LOG_RECORD_SHARE: usize = 32;
/// What each carved region may lose to alignment.
const ALIGN_SLACK: u64 = 64;

/// Refuses what index entries cannot address.
fn check_limits(sizes: &Sizes) -> Result<(), OpenError> {
    let too_large = |what, bytes, max| Err(OpenError::TooLarge { what, bytes, max });
    if sizes.memory_bytes > RAM_BYTES_MAX {
        return too_large("a memory limit", sizes.memory_bytes, RAM_BYTES_MAX);
    }
    let (segments, segments_max) = (u64::from(sizes.ssd_segments), u64::from(SSD_SEGMENTS_MAX - 1));
    if segments > segments_max {
        return too_large("an SSD tier", segments * SEGMENT_BYTES, segments_max * SEGMENT_BYTES);
    }
    Ok(())
}

/// Returns the bytes of the index at first, and those that it may come to have if it grows.
fn index_bytes(sizes: &Sizes, buffer_bytes: u64) -> (u64, u64) {
    let (memory, item) = (sizes.memory_bytes, u64::from(sizes.item_bytes.max(16)));
    let ssd_bytes = u64::from(sizes.ssd_segments) * SEGMENT_BYTES;
    let index_for = |entries: u64| entries * BUCKET_BYTES / BUCKET_ENTRIES * 100 / FIXED_INDEX_FILL_PERCENT;
    // What the SSD's part of the index leaves is for items in RAM, which need entries too.
    let ram_entries = memory.saturating_sub(buffer_bytes + index_for(ssd_bytes / item)) / item;
    let entries = (ssd_bytes / item + ram_entries).max(memory / RAM_ITEM_BYTES);
    let (first, most) = match growth_max(sizes) {
        Some(times) => {
            let in_both = memory + ssd_bytes;
            let first = (memory / GROWS_FROM_RAM_ITEM_BYTES).max(in_both / grows_from(sizes));
            let most = index_for(in_both / GROWS_TO_ITEM_BYTES).min(memory / 100 * GROWS_TO_PERCENT);
            (sizes.index_bytes.unwrap_or(index_for(first)).max(most / times), most)
        }
        None => (sizes.index_bytes.unwrap_or(index_for(entries)), 0),
    };
    // More than any memory is refused later; the sums before that must not overflow.
    (first.min(1 << 60), most)
}

/// Returns the size of an item, in bytes, for which an index that grows begins.
fn grows_from(sizes: &Sizes) -> u64 {
    GROWS_FROM_ITEM_BYTES.max(sizes.item_bytes.into())
}

/// Returns to how many times its first size an index may grow; `None` if it keeps its size.
///
/// The bits of a part that choose among buckets no longer tell keys apart within these: at its full size, one new key
/// in 12,000 drops another item. Three times are more, one in 6,000 with an SSD of 16 TiB, but little enough.
fn growth_max(sizes: &Sizes) -> Option<u64> {
    let parts = 1_u64 << part_bits(sizes.ssd_segments);
    let times = (parts * 2 / 5).max(3);
    (sizes.index_grows && times < parts).then_some(times)
}

/// Returns the bytes of a write buffer and the number of them; none without an SSD.
fn write_buffers(memory: u64, ssd_bytes: u64) -> (u64, u64) {
    match (ssd_bytes, memory >= 32 * MIB) {
        (0, _) => (0, 0),
        (_, true) => (256 << 10, (memory / 16 / (256 << 10)).clamp(12, 64)),
        (_, false) => (64 << 10, 12),
    }
}

/// Returns the number of shards, a power of two.
fn shard_count(ram_bytes: u64, item: u64) -> u64 {
    1 << (ram_bytes / SHARD_RAM_BYTES.max(SHARD_ITEMS * item)).clamp(1, SHARDS_MAX).ilog2()
}

/// Returns the number of keys that all shards together remember after their items left.
///
/// A key is remembered for as long as others stay. Without an SSD that is as many as RAM holds, and no more,
/// since a key that comes back later is not wanted soon either. With one it is as many as both tiers hold,
/// within a part of RAM that does not show.
fn ghosts(ram_items: u64, ssd_items: u64) -> u64 {
    (ram_items + ssd_items).min(ram_items * GHOSTS_PER_RAM_ITEM_MAX)
}

/// Returns the size of a RAM segment. With an SSD a shard has 64 or so, within bounds.
fn segment_bytes(ssd_bytes: u64, ram_bytes_a_shard: u64) -> u64 {
    match ssd_bytes {
        0 => RAM_SEGMENT_BYTES,
        _ => 1 << (ram_bytes_a_shard / 64).clamp(16 << 10, 256 << 10).ilog2(),
    }
}

/// Returns the least memory, in bytes and whole MiB, that is enough: `None` if none that can be addressed is.
pub(crate) fn least_memory(is_enough: impl Fn(u64) -> bool) -> Option<u64> {
    // More memory is more RAM, but where write buffers or shards become larger: the few steps at the end.
    let (mut low, mut high) = (0, RAM_BYTES_MAX / MIB);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if is_enough(middle * MIB) { high = middle } else { low = middle }
    }
    (high..high + 64).find(|&mib| is_enough(mib * MIB)).map(|mib| mib * MIB)
}

impl Layout {
    pub(crate) fn new(sizes: &Sizes) -> Result<Layout, OpenError> {
        check_limits(sizes)?;
        let (limit, shadow_bytes) = (sizes.memory_bytes, sizes.shadow_bytes());
        let sizes = &Sizes { memory_bytes: limit - shadow_bytes, ..sizes.clone() };
        let memory = sizes.memory_bytes;
        let ssd_bytes = u64::from(sizes.ssd_segments) * SEGMENT_BYTES;
        let item = u64::from(sizes.item_bytes.max(16));
        let (write_buffer_bytes, write_buffers) = write_buffers(memory, ssd_bytes);
        let buffer_bytes = write_buffer_bytes * write_buffers;
        let (wanted, most) = index_bytes(sizes, buffer_bytes);
        let ram_estimate = memory.saturating_sub(wanted + buffer_bytes);
        let shards = shard_count(ram_estimate, item);
        let buckets_per_shard = (wanted / BUCKET_BYTES / shards).max(1);
        let times = buckets_per_shard * growth_max(sizes).unwrap_or(1);
        let buckets_per_shard_max = (most / BUCKET_BYTES / shards).clamp(buckets_per_shard, times);
        let index_bytes = buckets_per_shard * shards * BUCKET_BYTES;
        let segment_bytes = segment_bytes(ssd_bytes, ram_estimate / shards);
        let ghosts_per_shard = (ghosts(ram_estimate / item, ssd_bytes / item) / shards).max(16);
        let ssd_table =
            u64::from(sizes.ssd_segments) * size_of::<crate::ssd::segment_table::SsdSegmentMeta>() as u64;
        let fixed = index_bytes
            + buffer_bytes
            + ssd_table
            + shards * (ghosts_per_shard + size_of::<crate::shard::ShardHead>() as u64)
            + write_buffers * size_of::<crate::ssd::write_buffer::WriteBufferState>() as u64
            + ALIGN_SLACK * (shards * 3 + write_buffers + 8)
            + HEADER_PAGE_BYTES as u64
            + 2 * 4096;
        let meta_bytes =
            size_of::<crate::ram::pool::OwnerWord>() + size_of::<crate::ram::pool::RamSegmentMeta>();
        let per_segment = segment_bytes + meta_bytes as u64;
        let segments = memory.saturating_sub(fixed) / per_segment;
        if segments * segment_bytes < RAM_BYTES_MIN || buckets_per_shard_max > u64::from(u32::MAX) {
            return Err(OpenError::MemoryTooSmall {
                limit,
                index: index_bytes,
                other: fixed - index_bytes + shadow_bytes,
                ram_min: RAM_BYTES_MIN,
                ssd: ssd_bytes,
                item: if growth_max(sizes).is_some() { grows_from(sizes) } else { item },
            });
        }
        let table_bytes = fixed - index_bytes - buffer_bytes + segments * (per_segment - segment_bytes);
        Ok(Layout {
            shards: shards as u32,
            buckets_per_shard: buckets_per_shard as u32,
            buckets_per_shard_max: buckets_per_shard_max as u32,
            ghosts_per_shard: ghosts_per_shard as u32,
            segment_bytes: segment_bytes as usize,
            segments: segments as u32,
            write_buffer_bytes: write_buffer_bytes as usize,
            write_buffers: write_buffers as u32,
            ssd_segments: sizes.ssd_segments,
            arena_bytes: fixed + segments * per_segment,
            reserve_bytes: (buckets_per_shard_max - buckets_per_shard) * shards * BUCKET_BYTES,
            index_bytes,
            table_bytes,
            buffer_bytes,
        })
    }

    /// Returns the least memory, in whole MiB, that leaves `ram_bytes` for items in RAM: `None` if none that can
    /// be addressed does.
    pub(crate) fn memory_for(sizes: &Sizes, ram_bytes: u64) -> Option<u64> {
        least_memory(|memory_bytes| {
            let layout = Layout::new(&Sizes { memory_bytes, ..sizes.clone() });
            layout.is_ok_and(|layout| u64::from(layout.segments) * layout.segment_bytes as u64 >= ram_bytes)
        })
    }

    /// All of it, to compare with another; what is reserved behind the arena shows in a file's length.
    pub(crate) fn words(&self) -> [u64; LAYOUT_WORDS] {
        let Layout { shards, buckets_per_shard, ghosts_per_shard, segment_bytes, segments, .. } = *self;
        let Layout { write_buffer_bytes, write_buffers, ssd_segments, arena_bytes, index_bytes, .. } = *self;
        [
            shards.into(),
            buckets_per_shard.into(),
            ghosts_per_shard.into(),
            segment_bytes as u64,
            segments.into(),
            write_buffer_bytes as u64,
            write_buffers.into(),
            ssd_segments.into(),
            arena_bytes,
            index_bytes,
            self.table_bytes,
            self.buffer_bytes,
        ]
    }

    /// Returns how many entries the index may come to have room for.
    pub(crate) fn index_entries_max(&self) -> u64 {
        u64::from(self.shards) * u64::from(self.buckets_per_shard_max) * BUCKET_ENTRIES
    }

    /// Returns what matters of it to the policy.
    pub(crate) fn geometry(&self) -> Geometry {
        Geometry {
            ram_segments: self.segments,
            segment_bytes: self.segment_bytes as u32,
            shards: self.shards,
            large_bytes: self.large_bytes(),
            index_bytes: self.index_bytes,
            index_bytes_max: self.index_bytes + self.reserve_bytes,
            ghosts: u64::from(self.shards) * u64::from(self.ghosts_per_shard),
            write_buffer_bytes: self.write_buffer_bytes as u32,
            ssd_segments: self.ssd_segments,
        }
    }

    /// Returns the size in bytes above which a record gets RAM segments of its own.
    pub(crate) fn large_bytes(&self) -> usize {
        if self.write_buffers == 0 {
            let share = self.segments as usize * self.segment_bytes / self.shards as usize / LOG_RECORD_SHARE;
            return share.clamp(self.segment_bytes / 2, LOG_RECORD_BYTES_MAX);
        }
        (self.segment_bytes / 2).min(self.write_buffer_bytes - 4096)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(memory_mib: u64, ssd_gib: u64) -> Sizes {
        Sizes {
            memory_bytes: memory_mib * MIB,
            ssd_segments: (ssd_gib * 1024 * MIB / SEGMENT_BYTES) as u32,
            item_bytes: 512,
            index_bytes: None,
            index_grows: true,
            shadow_bytes: None,
        }
    }

    #[test]
    fn the_memory_limit_bounds_everything() {
        for (memory, ssd) in
            [(2, 0), (3, 0), (64, 0), (64, 1), (256, 8), (1024, 0), (4096, 100), (100_000, 1000)]
        {
            let layout = Layout::new(&sizes(memory, ssd)).expect("fits");
            assert!(layout.arena_bytes <= memory * MIB, "{memory} {ssd} {layout:?}");
            let ram = layout.segments as u64 * layout.segment_bytes as u64;
            assert!(ram + layout.index_bytes + layout.table_bytes + layout.buffer_bytes <= memory * MIB);
            assert!(ram * 10 >= layout.arena_bytes * 3, "{memory} {ssd} {layout:?}");
        }
    }

    #[test]
    fn an_index_that_eats_the_memory_is_refused_with_the_arithmetic() {
        let fixed = Sizes { index_grows: false, ..sizes(64, 4) };
        for (sizes, parts) in [
            (fixed, ["4 GiB of SSD", "512 bytes an item"]),
            (sizes(64, 128), ["128 GiB of SSD", "16384 bytes an item"]),
            (Sizes { item_bytes: 20_000, ..sizes(64, 1_000) }, ["1000 GiB of SSD", "20000 bytes an item"]),
        ] {
            let text = Layout::new(&sizes).expect_err("64 MiB cannot index that").to_string();
            for part in ["64 MiB", "items in RAM need 1 MiB"].into_iter().chain(parts) {
                assert!(text.contains(part), "{text}");
            }
        }
        let large = Sizes { item_bytes: 1 << 20, ..sizes(64, 128) };
        assert!(Layout::new(&large).is_ok(), "few items");
    }

    #[test]
    fn the_memory_that_is_said_to_be_enough_is_and_none_that_is_less() {
        for (ssd, item_bytes) in [(0, 512), (1, 512), (8, 512), (8, 100), (100, 512), (1_000, 4_096)] {
            for ram in [1, 2, 7, 64, 1_000] {
                let sizes = Sizes { item_bytes, ..sizes(0, ssd) };
                let enough = Layout::memory_for(&sizes, ram * MIB).expect("that can be addressed");
                let ram_of = |memory_bytes| {
                    let layout = Layout::new(&Sizes { memory_bytes, ..sizes.clone() });
                    layout.map_or(0, |layout| u64::from(layout.segments) * layout.segment_bytes as u64)
                };
                let case = format!("{ssd} GiB of {item_bytes}, {ram} MiB: {} MiB", enough / MIB);
                assert!(ram_of(enough) >= ram * MIB, "{case}");
                assert!(ram_of(enough - MIB) < ram * MIB, "{case}");
            }
        }
        assert_eq!(Layout::memory_for(&sizes(0, 0), RAM_BYTES_MAX), None);
    }

    #[test]
    fn an_index_begins_small_and_has_addresses_for_what_it_may_become() {
        // Of all gibibytes of SSD beyond 1,024 each doubling takes a bit of what chooses a bucket.
        for (memory, ssd, least_percent, most_percent) in [
            (2, 0, 1, 12),
            (64, 0, 1, 12),
            (100_000, 0, 1, 12),
            (64, 1, 3, 74),
            (128, 1, 3, 74),
            (1_024, 1, 2, 25),
            (64_000, 1_024, 3, 74),
            (64_000, 4_096, 13, 74),
            (64_000, 8_192, 25, 74),
            (64_000, 16_384, 25, 74),
        ] {
            let grows = Layout::new(&sizes(memory, ssd)).expect("fits");
            let (least, most) = (grows.index_bytes, grows.index_bytes + grows.reserve_bytes);
            assert!(
                grows.arena_bytes <= memory * MIB && least <= memory * MIB * least_percent / 100,
                "{grows:?}"
            );
            assert!(most >= memory * MIB * most_percent / 100 && most <= memory * MIB * 3 / 4, "{grows:?}");
            let times = u64::from(grows.buckets_per_shard_max / grows.buckets_per_shard);
            assert!(times > 1 && times < 1 << part_bits(grows.ssd_segments), "{grows:?}");
            let kept = Sizes { index_grows: false, item_bytes: 16 << 10, ..sizes(memory, ssd) };
            assert_eq!(Layout::new(&kept).expect("fits").reserve_bytes, 0);
        }
    }

    #[test]
    fn a_size_that_is_given_is_the_first_one_and_no_bound() {
        for (memory, ssd) in [(64, 0), (128, 1), (64_000, 1_024)] {
            let automatic = Layout::new(&sizes(memory, ssd)).expect("fits");
            let most = automatic.index_bytes + automatic.reserve_bytes;
            let mut firsts = Vec::new();
            for hint in [0, most / 100, most / 10, most / 2, most * 11 / 10] {
                let hinted = Sizes { index_bytes: Some(hint), ..sizes(memory, ssd) };
                let layout = Layout::new(&hinted).expect("fits");
                let first = layout.index_bytes;
                let last = first + layout.reserve_bytes;
                assert!(
                    first * 10 >= hint * 9 && first * 9 <= hint.max(most / 20) * 10,
                    "{hint}: {layout:?}"
                );
                assert!(last * 10 >= most * 9 && last * 9 <= hint.max(most) * 10, "{hint}: {layout:?}");
                firsts.push(first);
            }
            assert!(firsts.is_sorted() && firsts[4] > firsts[1], "{firsts:?}");
        }
    }

    #[test]
    fn an_item_costs_at_most_ten_bytes_of_index() {
        let sizes = Sizes { item_bytes: 100, index_grows: false, ..sizes(100_000, 100) };
        let layout = Layout::new(&sizes).expect("fits");
        let items = (100 * 1024 * MIB + 100_000 * MIB) / 100;
        assert!(layout.index_bytes as f64 / items as f64 <= 10.0);
    }
}
