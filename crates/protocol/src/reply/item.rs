//! What an answer may have to tell about an item besides its value.

/// An item as its executor saw it. Fields that the answer at hand does not need may be left at their default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemInfo {
    /// Opaque client flags.
    pub client_flags: u32,
    /// The item's cas after the request.
    pub cas: u64,
    /// The value's length in bytes after the request.
    pub value_len: u32,
    /// Seconds to live before the request changed that; None: never expires (and so for an item just
    /// vivified).
    pub ttl_before_s: Option<u32>,
    /// Seconds to live after the request; None: never expires.
    pub ttl_after_s: Option<u32>,
    /// Seconds since the last access before this one.
    pub idle_s: u32,
    /// Whether it had been read before.
    pub hit_before: bool,
    /// It is marked stale (`X`).
    pub stale: bool,
    /// This client won the right to refill it (`W`).
    pub won: bool,
    /// Another client had already won it (`Z`). A stale item that this client has not won is shown so, too.
    pub win_sent: bool,
    /// The item was stored under a key sent as base64, and shows its key so.
    pub key_is_binary: bool,
}
