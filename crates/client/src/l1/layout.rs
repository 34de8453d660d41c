//! Where everything lies in the file, computed from its size. Counted in words.
//!
//! ```text
//!  header | shared words | feeds | statistics | flights | versions | controls | indexes | rings
//!  4 KiB    4 KiB          4 KiB   1/51 or less                      a line or two, and ...  of each shard
//! ```

use super::mapping::WORD;
use super::position::OFFSET_BITS;

/// Words of one cache line.
pub(super) const LINE: usize = 8;
/// Slots in a bucket: a cache line.
pub(super) const BUCKET: usize = LINE;
/// Words that callers share among processes.
pub(super) const SHARED_WORDS: usize = 512;
/// Servers that may have feeds: a line each.
pub(super) const FEEDS: usize = 64;
/// Lines of counts that the threads of a process share.
pub(super) const LANES: usize = 8;
/// Words of a process's row of statistics: which process it is, its counts at first, and its lines.
pub(super) const ROW: usize = (2 + LANES) * LINE;
/// Words of a shard's control: the lock in one line, the bounds of the rings in the next.
pub(super) const CONTROL: usize = 2 * LINE;

/// The smallest file.
pub(super) const BYTES_MIN: u64 = 512 << 10;
/// The largest file.
pub(super) const BYTES_MAX: u64 = 64 << 30;

const PAGE: usize = 512;
/// A shard has this much or more, where there are two, so that the largest value is a quarter of it.
const SHARD_BYTES: u64 = 4 << 20;
const SHARDS_MAX: u64 = 256;
/// The small ring's share of a shard's rings, one in this many.
const SMALL_SHARE: usize = 8;
/// There is a row of statistics for so many bytes of the file, within these bounds.
const BYTES_PER_ROW: u64 = 32 << 10;
const ROWS_MIN: u64 = 16;
const ROWS_MAX: u64 = 256;
/// The index takes at most this share of the file, one in so many.
const INDEX_SHARE: u64 = 4;

/// Where everything lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Bytes of the file.
    pub(super) bytes: u64,
    /// The number of entries for which the index was made.
    pub(super) items: u64,
    pub(super) shards: usize,
    /// Buckets of a shard.
    pub(super) buckets: usize,
    /// Words of a shard's small ring, and of its main ring.
    pub(super) small: usize,
    pub(super) main: usize,
    /// Rows of statistics.
    pub(super) rows: usize,
    pub(super) flights: usize,
    pub(super) versions: usize,
    pub(super) shared_at: usize,
    pub(super) feeds_at: usize,
    pub(super) stats_at: usize,
    pub(super) flights_at: usize,
    pub(super) versions_at: usize,
    pub(super) controls_at: usize,
    pub(super) indexes_at: usize,
    pub(super) rings_at: usize,
}

impl Layout {
    /// Lays out a file of so many bytes (whole pages of 4 KiB within the bounds), for about `items` entries.
    pub(super) fn new(bytes: u64, items: u64) -> Layout {
        let shards = 1 << (bytes / SHARD_BYTES).clamp(1, SHARDS_MAX).ilog2();
        let rows = (bytes / BYTES_PER_ROW).clamp(ROWS_MIN, ROWS_MAX) as usize;
        let flights = (bytes / 8192).clamp(64, 8192) as usize;
        let versions = (bytes / 1024).clamp(512, 1 << 20) as usize;
        // Half full with as many items as are expected, so that few buckets overflow.
        let slots = items.saturating_mul(2).clamp(64, bytes / INDEX_SHARE / WORD as u64);
        let buckets = (slots as usize).div_ceil(BUCKET * shards);
        let shared_at = PAGE;
        let feeds_at = shared_at + SHARED_WORDS;
        let stats_at = feeds_at + FEEDS * LINE;
        let flights_at = stats_at + Layout::stats_words(rows);
        let versions_at = flights_at + flights.next_multiple_of(LINE);
        let controls_at = versions_at + versions.next_multiple_of(LINE);
        let indexes_at = controls_at + shards * CONTROL;
        let rings_at = (indexes_at + shards * buckets * BUCKET).next_multiple_of(PAGE);
        let ring_words = (bytes as usize / WORD - rings_at) / shards / LINE * LINE;
        let small = ring_words / SMALL_SHARE / LINE * LINE;
        let main = ring_words - small;
        assert!(main < 1 << OFFSET_BITS, "a ring of {main} words has more than a position can say");
        Layout {
            bytes,
            items,
            shards,
            buckets,
            small,
            main,
            rows,
            flights,
            versions,
            shared_at,
            feeds_at,
            stats_at,
            flights_at,
            versions_at,
            controls_at,
            indexes_at,
            rings_at,
        }
    }

    /// Words of the statistics: lines that all processes without a row share, and so many rows.
    pub(super) fn stats_words(rows: usize) -> usize {
        LANES * LINE + rows * ROW
    }

    /// Words of the longest record: half of a main ring, so that an empty one always has room.
    pub(super) fn record_words_max(&self) -> usize {
        self.main / 2
    }

    /// Words of the longest record that begins in the small ring.
    pub(super) fn small_record_words_max(&self) -> usize {
        self.small / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_every_size_lie_in_order_and_inside_the_file() {
        for bytes in [BYTES_MIN, 1 << 20, 3 << 20, 8 << 20, 64 << 20, 100 << 20, 1 << 30, BYTES_MAX] {
            for items in [0, bytes / 256, bytes / 64, u64::MAX] {
                let at = Layout::new(bytes, items);
                assert!(at.shards.is_power_of_two() && at.buckets > 0);
                assert!(at.versions_at >= at.flights_at + at.flights);
                assert!(
                    at.controls_at >= at.versions_at + at.versions && at.controls_at.is_multiple_of(LINE)
                );
                assert!(at.rings_at >= at.indexes_at + at.shards * at.buckets * BUCKET);
                let end = at.rings_at + at.shards * (at.small + at.main);
                assert!(end as u64 <= bytes / 8 && at.small >= 1024, "{at:?}");
                let rings = (at.shards * (at.small + at.main) * WORD) as u64;
                assert!(rings >= bytes / 8 * 5, "{rings} of {bytes} for records");
            }
        }
    }

    #[test]
    fn the_default_size_takes_a_value_of_a_mebibyte() {
        let layout = Layout::new(64 << 20, (64 << 20) / 256);
        assert!(layout.record_words_max() * WORD > (1 << 20) + 1024, "{layout:?}");
    }
}
