//! What became of a request that does not read a value.

/// How a request ended. How that reads depends on the verb and the wire:
/// [`Reply::outcome`](crate::Reply::outcome).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Stored.
    Stored,
    /// Not stored: the mode's condition did not hold (`add` of a present item, `append` to an absent one).
    NotStored,
    /// The item's cas is another.
    Exists,
    /// There is no such item.
    NotFound,
    /// Removed, or marked stale.
    Deleted,
    /// The expiry is changed.
    Touched,
    /// The new value of a counter.
    Number {
        /// Never padded in an answer, whatever the stored value looks like.
        value: u64,
    },
    /// A counter operation on a value that is no number.
    NonNumeric,
    /// The item would be larger than the server stores.
    TooLarge,
    /// No room, and nothing may be evicted.
    OutOfMemory,
    /// A store's data was not followed by CR LF (for a caller that streams the value itself).
    BadDataChunk,
    /// Done: flush, verbosity, administrative commands; `version`, `mn`, `quit` answer in their own words.
    Ok,
    /// Counters are back at zero (`stats reset`).
    Reset,
    /// `flush_all` is disabled.
    FlushNotAllowed,
    /// The server could not do it, and why; the reason is one line without a line end.
    Failed {
        /// For people; no client matches it.
        reason: &'static str,
    },
}
