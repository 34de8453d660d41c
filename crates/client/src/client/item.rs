//! What a read returns, and what it can ask for.

/// A value with what belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// The value.
    pub value: Vec<u8>,
    /// The client flags that it was stored with.
    pub flags: u32,
    /// The cas unique, if it was asked for.
    pub cas: Option<u64>,
    /// Seconds left to live, if they were asked for; -1 for ever.
    pub ttl_s: Option<i64>,
    /// What the server said about renewing the item.
    pub lease: Lease,
    /// The server will announce the next change of the key, as [`Fetch::announce`] asked.
    pub is_announced: bool,
}

/// The race to renew an item: at most one client is told to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// This client is to compute the value and store it, with the item's cas unique.
    pub is_mine: bool,
    /// Another client was told to.
    pub is_taken: bool,
    /// The item was marked stale: its value is old.
    pub is_stale: bool,
}

/// What a [`fetch`](super::Client::fetch) asks for besides the value, its flags, its cas unique and its time to live.
/// Times are as for [`Put::exptime`](super::Put::exptime).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fetch {
    /// The cas unique of a copy that the caller has: if it is still current, no value is sent.
    pub unless_cas: Option<u64>,
    /// When that copy was fetched, in milliseconds of [`HostClock`](crate::HostClock). A server that was restarted may
    /// give out the same cas uniques again; so what a connection says that was made later is not believed, and the
    /// value is fetched. `None` believes it in any case.
    pub copied_ms: Option<u64>,
    /// On a miss, creates an empty item for so long; the first client to ask has the lease to fill it.
    pub vivify: Option<i32>,
    /// Takes the lease to renew the item if it has fewer seconds left than this.
    pub recache: Option<i32>,
    /// Gives the item a new expiry.
    pub touch: Option<i32>,
    /// Does not count as an access.
    pub no_bump: bool,
    /// Wants the next change of the key to be announced.
    pub announce: Option<Announce>,
}

/// To whom a change is to be announced: to a subscription of the same host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announce {
    /// The number of the server that has the subscription. A request to another server asks for no announcement.
    pub server: usize,
    /// The server's number of the subscription.
    pub subscription: u64,
    /// The number by which the change is announced.
    pub token: u64,
}

/// What a fetch found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// No item.
    Miss,
    /// The item is the caller's copy, [`Fetch::unless_cas`]: the value is left out and empty here.
    Unchanged(Item),
    /// The item. With `vivify`, an empty one that this or another client is to fill: see its [`Lease`].
    Found(Item),
}
