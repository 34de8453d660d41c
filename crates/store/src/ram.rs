//! The RAM tier: segments of records, and the pool they come from. What leaves and when is `evict`'s
//! business.

pub(crate) mod pool;
