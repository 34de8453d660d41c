//! What a cache takes of RAM and of the SSD once it holds so many items, told before it is opened: the arithmetic of
//! its layout, its index and its log, for plans.

use crate::policy::cleaning::reserved_segments;
use crate::shadow::bytes_there;
use crate::shard::resize::INDEX_FILL_PERCENT;
use crate::ssd::SEGMENT_BYTES;
use crate::ssd::log::stream::STREAMS;
use crate::store::{Config, FIXED_INDEX_FILL_PERCENT, Store, least_memory};

/// Bytes of an entry of the index.
const ENTRY_BYTES: u64 = 8;
/// A part of the RAM tier that an index never takes: one in so many.
const KEPT_PART: u32 = 8;
/// Bytes written for each byte that leaves RAM for the SSD, without the padding of pages, by the percentage of the SSD
/// that live items take: measured by `tests/retention.rs`, where items of one size are overwritten at random, which
/// mixes live and dead records most.
const CLEANING: [(f64, f64); 4] = [(0.0, 1.0), (35.0, 1.03), (50.0, 1.20), (65.0, 1.62)];

/// What a cache takes of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// The index, in bytes.
    pub index_bytes: u64,
    /// What is left for items in RAM, in bytes.
    pub ram_tier_bytes: u64,
    /// Whether the index keeps the size that it begins with.
    pub keeps_index: bool,
    /// Whether the index has the size that it begins with.
    pub has_first_index: bool,
    /// Bytes of a write buffer of the SSD.
    pub write_buffer_bytes: u32,
}

impl Forecast {
    /// Returns what a cache with these options takes once it has so many items, in both tiers together; `None` if no
    /// store has these options, or its index does not get as large.
    pub fn of(config: &Config, items: u64) -> Option<Forecast> {
        let geometry = Store::geometry(config).ok()?;
        let (first, most) = (geometry.index_bytes, geometry.index_bytes_max);
        let keeps_index = most <= first;
        if keeps_index && kept_index_bytes(items) > first {
            return None;
        }
        let index_bytes =
            if keeps_index { first } else { grown_index_bytes(items, geometry.shards).max(first) };
        let lent = (index_bytes - first).div_ceil(u64::from(geometry.segment_bytes));
        let segments = u64::from(geometry.ram_segments).checked_sub(lent)?;
        let is_left = segments > u64::from(geometry.ram_segments / KEPT_PART);
        (is_left && index_bytes <= most.max(first)).then_some(Forecast {
            index_bytes,
            ram_tier_bytes: segments * u64::from(geometry.segment_bytes),
            keeps_index,
            has_first_index: index_bytes == first,
            write_buffer_bytes: geometry.write_buffer_bytes,
        })
    }

    /// Returns the least memory, in bytes and whole MiB, with which a cache that is otherwise of these options has so
    /// many items and leaves `ram_tier_bytes` for those in RAM; `None` if none that can be addressed does.
    pub fn memory_for(config: &Config, items: u64, ram_tier_bytes: u64) -> Option<u64> {
        least_memory(|memory_bytes| {
            let config = Config { memory_bytes, ..config.clone() };
            Forecast::of(&config, items).is_some_and(|forecast| forecast.ram_tier_bytes >= ram_tier_bytes)
        })
    }
}

/// Returns the bytes of an index that has grown to so many items.
fn grown_index_bytes(items: u64, shards: u32) -> u64 {
    // A shard counts a little more than its share, so that it seldom has too few.
    let entries = items.saturating_add(2 * u64::from(shards) * (items / u64::from(shards)).isqrt());
    index_bytes_for(entries)
}

/// Returns the bytes of an index that grows with the items, once it has so many.
pub fn index_bytes_for(items: u64) -> u64 {
    (u128::from(items) * u128::from(ENTRY_BYTES * 100) / u128::from(INDEX_FILL_PERCENT)).min(u64::MAX.into())
        as u64
}

/// Returns the bytes that an index needs for so many items if it keeps its size.
pub fn kept_index_bytes(items: u64) -> u64 {
    let bytes = u128::from(items) * u128::from(ENTRY_BYTES * 100) / u128::from(FIXED_INDEX_FILL_PERCENT);
    bytes.min(u64::MAX.into()) as u64
}

/// Returns the bytes that a record of so many bytes takes on the SSD, with its part of what is left empty at the ends
/// of pages and of write buffers.
pub fn ssd_bytes_of_record(record_bytes: u32, write_buffer_bytes: u32) -> f64 {
    bytes_there(record_bytes, f64::from(write_buffer_bytes.max(1)))
}

/// Returns the bytes of an SSD of which `live_bytes` take so many percent, beside the segments that are open or kept
/// free, in whole segments.
pub fn ssd_bytes_for(live_bytes: f64, live_percent: f64) -> u64 {
    let segments = (live_bytes * 100.0 / live_percent / SEGMENT_BYTES as f64).ceil() as u64;
    let kept = STREAMS + reserved_segments(u32::try_from(segments).unwrap_or(u32::MAX));
    segments.saturating_add(kept as u64).saturating_mul(SEGMENT_BYTES)
}

/// Returns the bytes written for each byte that leaves RAM for the SSD, without the padding of pages, if live items
/// take so many percent of the SSD and are overwritten at random. From 65 percent on it is that of 65.
pub fn cleaning_factor(live_percent: f64) -> f64 {
    let above = CLEANING.partition_point(|(percent, _)| *percent < live_percent);
    match (CLEANING.get(above.wrapping_sub(1)), CLEANING.get(above)) {
        (Some((low, at_low)), Some((high, at_high))) => {
            at_low + (at_high - at_low) * (live_percent - low) / (high - low)
        }
        (Some((_, factor)), None) | (_, Some((_, factor))) => *factor,
        (None, None) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Span;

    fn config(memory_mib: u64, ssd_gib: u64) -> Config {
        let span = Span { device: 0, offset: 0, bytes: ssd_gib << 30 };
        Config { ssd: vec![span], shadow_bytes: None, ..Config::new(memory_mib << 20) }
    }

    #[test]
    fn an_index_takes_about_nine_bytes_an_item_beside_what_it_begins_with() {
        let few = Forecast::of(&config(1024, 100), 1).expect("fits");
        let many = Forecast::of(&config(1024, 100), 50_000_000).expect("fits");
        assert!(few.index_bytes < 64 << 20 && !few.keeps_index, "{few:?}");
        let each = many.index_bytes as f64 / 50e6;
        assert!((9.0..9.3).contains(&each), "{each}");
        let left = few.index_bytes + few.ram_tier_bytes - many.index_bytes - many.ram_tier_bytes;
        assert!(left < 1 << 20, "{few:?} {many:?}");
        assert_eq!(Forecast::of(&config(1024, 100), 500_000_000), None);
    }

    #[test]
    fn the_memory_for_so_many_items_is_the_least() {
        for (ssd_gib, items, ram_mib) in [(10, 1, 32), (100, 50_000_000, 500), (20_000, 1_000_000_000, 4_000)]
        {
            let wanted = Config { item_bytes: 20_000, ..config(0, ssd_gib) };
            let memory = Forecast::memory_for(&wanted, items, ram_mib << 20).expect("there is one");
            let with = |memory_bytes| Forecast::of(&Config { memory_bytes, ..wanted.clone() }, items);
            assert!(with(memory).expect("fits").ram_tier_bytes >= ram_mib << 20);
            assert!(with(memory - (1 << 20)).is_none_or(|less| less.ram_tier_bytes < ram_mib << 20));
        }
    }

    #[test]
    fn a_fuller_ssd_writes_more() {
        let factors = [0.0, 20.0, 35.0, 42.5, 50.0, 65.0, 90.0].map(cleaning_factor);
        assert!(factors.is_sorted() && factors[0] == 1.0 && factors[6] == 1.62, "{factors:?}");
        assert!((factors[3] - 1.115).abs() < 1e-9);
    }

    #[test]
    fn an_ssd_has_room_for_what_is_dead() {
        let bytes = ssd_bytes_for(100e9, 50.0);
        assert!(bytes.is_multiple_of(SEGMENT_BYTES) && (200e9..200.2e9).contains(&(bytes as f64)), "{bytes}");
        assert_eq!(ssd_bytes_for(1.0, 50.0), 4 * SEGMENT_BYTES);
        assert_eq!(ssd_bytes_for(f64::MAX, 50.0), u64::MAX);
    }
}
