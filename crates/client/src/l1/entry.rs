//! Entries: as they are stored and as they are found.

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 250;
/// Times of an entry are kept in 40 bits: 34 years of milliseconds. A later one is taken for this.
pub const TIME_MS_MAX: u64 = (1 << 40) - 1;

/// An entry to be stored. Times are those of [`now_ms`](super::now_ms).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The value; at most [`L1::value_bytes_max`](super::L1::value_bytes_max) bytes.
    pub value: &'a [u8],
    /// The client flags that the server keeps with the value.
    pub flags: u32,
    /// The version of the value on the server; 0 if unknown.
    pub cas: u64,
    /// The caller's number of the server's life in which `cas` means something.
    pub epoch: u32,
    /// A mark of the caller's, such as one for "the server does not have this key".
    pub mark: u8,
    /// The feed of announcements under which it was fetched, a number that [`Tiered`](crate::Tiered) knows; 0 for
    /// none. The entry is fresh while the feed lasts, at most until `fresh_until_ms`.
    pub feed: u16,
    /// Until then the entry may be used without asking the server.
    pub fresh_until_ms: u64,
    /// Until then the entry is found at all; never before `fresh_until_ms`, and at most 49 days behind it.
    pub stale_until_ms: u64,
}

/// An entry that was found, without its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The client flags.
    pub flags: u32,
    /// The version of the value on the server; 0 if unknown.
    pub cas: u64,
    /// The caller's number of the server's life.
    pub epoch: u32,
    /// The caller's mark.
    pub mark: u8,
    /// The feed of announcements under which it was fetched; 0 for none.
    pub feed: u16,
    /// Whether the entry may be used without asking the server: it is not yet `fresh_until_ms`, and nothing has asked
    /// for revalidation since the entry was fetched or last touched.
    pub is_fresh: bool,
    /// Until then the entry is fresh, unless revalidation is asked for.
    pub fresh_until_ms: u64,
    /// Until then the entry is found.
    pub stale_until_ms: u64,
}

/// The result of storing an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Stored {
    /// The entry is stored.
    Yes,
    /// The entry is not stored, because the key was deleted or stored, or the cache cleared, after the ticket was
    /// taken.
    Refused,
    /// The entry is not stored, because it is too large. An earlier entry of the key is deleted.
    TooLarge,
}

/// The state of a key before it was fetched: see [`L1::begin_fetch`](super::L1::begin_fetch).
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    pub(super) hash: u64,
    pub(super) version: u64,
    pub(super) generation: u64,
    pub(super) clears: u64,
}
