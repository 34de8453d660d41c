//! The RAM tier: segments of records, the pool they come from, and how hard to look for room in them. Which items
//! leave and when is decided in `policy`.

pub(crate) mod compaction;
pub(crate) mod pool;
