//! How large a sample is: one key of how many, so that shadows keep to their memory.

/// What a shadow's item takes, and the size of an item that the first sample is chosen for: large, since a sample that
/// is too large becomes smaller, and none becomes larger.
const SHADOW_ITEM_BYTES: u64 = 48;
const ITEM_BYTES: u64 = 16 << 10;
/// The scale up to which a sample becomes smaller, as a multiple of its first one.
const SCALES: u32 = 1 << 16;
/// Events between two looks at the memory taken.
const EVENTS_A_LOOK: u32 = 64;

/// The sample of some shadows, and the memory that these may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// One of so many keys is in the sample: a power of two.
    pub keys: u32,
    first: u32,
    memory_bytes_max: usize,
    events: u32,
}

impl Scale {
    /// A sample for shadows of caches which have so many bytes of RAM and SSD in all.
    pub(super) fn of_caches(cache_bytes: u64, memory_bytes_max: usize) -> Scale {
        let items = (cache_bytes / ITEM_BYTES).max(1);
        let most = (memory_bytes_max as u64 / 2 / SHADOW_ITEM_BYTES).max(1);
        let keys = items.div_ceil(most).next_power_of_two().min(1 << 30) as u32;
        Scale { memory_bytes_max, ..Scale::unbounded(keys) }
    }

    /// A sample of one key of `keys`, a power of two, without a bound on memory.
    pub(super) fn unbounded(keys: u32) -> Scale {
        Scale { keys, first: keys, memory_bytes_max: usize::MAX, events: 0 }
    }

    /// Counts an event. Returns whether shadows that take `memory_bytes` are to halve: at half of the bound, since a
    /// table that grows doubles.
    pub(super) fn is_too_large(&mut self, memory_bytes: impl FnOnce() -> usize) -> bool {
        self.events += 1;
        self.events.is_multiple_of(EVENTS_A_LOOK) && memory_bytes() > self.memory_bytes_max / 2
    }

    /// Halves the sample. Returns false if it is as small as it becomes.
    pub(super) fn halve(&mut self) -> bool {
        let may_halve = self.keys / self.first < SCALES;
        self.keys *= if may_halve { 2 } else { 1 };
        may_halve
    }
}
