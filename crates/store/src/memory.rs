//! The memory of a store: one mapping, how it is divided, and its first page.

pub(crate) mod arena;
pub(crate) mod arena_header;
pub(crate) mod layout;
