//! The administrative text commands, parsed. `parse/admin.rs` has their grammar; the server decides whether a
//! command is allowed and carries it out.

use crate::reply::Reply;

/// An administrative command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admin<'a> {
    /// `cache_memlimit MEGABYTES`, at least 8.
    MemoryLimit(u32, Reply<'a>),
    /// `shutdown [graceful]`. Whether it is enabled at all comes before whether its mode makes sense.
    Shutdown(ShutdownMode, Reply<'a>),
    /// `lru ...`
    Lru(Lru, Reply<'a>),
    /// `slabs ...`
    Slabs(Slabs, Reply<'a>),
    /// `lru_crawler ...`
    Crawler(Crawler<'a>, Reply<'a>),
    /// `watch [CLASS]*`; None when a class is unknown (`ERROR`, once it is clear that watching is allowed).
    Watch(Option<WatchClasses>, Reply<'a>),
    /// `extstore OPTION VALUE`: an option that exists and the rest of the line, not interpreted.
    Extstore(&'a [u8], &'a [u8], Reply<'a>),
    /// `refresh_certs`
    RefreshCerts(Reply<'a>),
    /// `config get cluster`: which servers share the keys.
    Cluster(Reply<'a>),
    /// `debugtime ...`: exists only in test servers; others answer `ERROR`.
    DebugTime(Clock, Reply<'a>),
}

/// How to shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownMode {
    /// At once.
    Now,
    /// Save what can be saved first.
    Graceful,
    /// No such mode.
    Invalid,
}

/// `lru`: how memcached's segmented LRU is tuned. The numbers are checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lru {
    /// `tune HOT% WARM% HOT_FACTOR WARM_FACTOR`
    Tune {
        /// Share of the hot queue.
        hot_percent: u32,
        /// Share of the warm queue.
        warm_percent: u32,
        /// Age factor of the hot queue.
        hot_factor: f64,
        /// Age factor of the warm queue.
        warm_factor: f64,
    },
    /// `mode flat|segmented`
    Mode {
        /// Segmented rather than flat.
        segmented: bool,
    },
    /// `temp_ttl SECONDS`; None (a negative number): off.
    TempTtl(Option<u32>),
}

// The factors are never NaN: the parser only lets numbers above zero through.
impl Eq for Lru {}

/// `slabs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slabs {
    /// `reassign SOURCE DESTINATION`
    Reassign {
        /// From this class.
        source: i32,
        /// To this one.
        destination: i32,
    },
    /// `automove ...`
    Automove(Automove),
}

/// `slabs automove`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Automove {
    /// `0|1|2`
    Level(u32),
    /// `ratio|freeratio|window VALUE`, checked and of no consequence.
    Tuning,
}

/// `lru_crawler`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crawler<'a> {
    /// `enable`
    Enable,
    /// `disable`
    Disable,
    /// `sleep MICROSECONDS`, at most a second.
    Sleep(u32),
    /// `tocrawl NUMBER`
    ToCrawl(u32),
    /// `crawl CLASSES`
    Crawl(&'a [u8]),
    /// `metadump all|hash|CLASSES`
    Metadump(&'a [u8]),
    /// `mgdump all|hash|CLASSES`
    Mgdump(&'a [u8]),
}

/// What a watcher wants to see: a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchClasses(pub u16);

impl WatchClasses {
    /// `rawcmds`
    pub const RAWCMDS: WatchClasses = WatchClasses(1);
    /// `evictions`
    pub const EVICTIONS: WatchClasses = WatchClasses(1 << 1);
    /// `fetchers`, which is also what `watch` alone means.
    pub const FETCHERS: WatchClasses = WatchClasses(1 << 2);
    /// `mutations`
    pub const MUTATIONS: WatchClasses = WatchClasses(1 << 3);
    /// `sysevents`
    pub const SYSEVENTS: WatchClasses = WatchClasses(1 << 4);
    /// `connevents`
    pub const CONNEVENTS: WatchClasses = WatchClasses(1 << 5);
    /// `proxyreqs proxyevents proxyuser`, of which there are none without a proxy.
    pub const PROXY: WatchClasses = WatchClasses(1 << 6);
    /// `deletions`
    pub const DELETIONS: WatchClasses = WatchClasses(1 << 7);

    /// Whether this set holds all of `other`.
    pub fn contains(self, other: WatchClasses) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether this set holds any of `other`.
    #[inline]
    pub fn meets(self, other: WatchClasses) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the classes of both sets.
    #[must_use]
    pub const fn and(self, other: WatchClasses) -> WatchClasses {
        WatchClasses(self.0 | other.0)
    }

    pub(crate) fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"rawcmds" => Self::RAWCMDS,
            b"evictions" => Self::EVICTIONS,
            b"fetchers" => Self::FETCHERS,
            b"mutations" => Self::MUTATIONS,
            b"sysevents" => Self::SYSEVENTS,
            b"connevents" => Self::CONNEVENTS,
            b"proxyreqs" | b"proxyevents" | b"proxyuser" => Self::PROXY,
            b"deletions" => Self::DELETIONS,
            _ => return None,
        })
    }
}

/// `debugtime`: the test suite's hold on the server's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// `p`: stop it.
    Pause,
    /// `r`: let it go on.
    Resume,
    /// Move it by so many seconds.
    Shift(i64),
}

impl<'a> Admin<'a> {
    /// How to answer.
    pub fn reply(&self) -> &Reply<'a> {
        match self {
            Admin::MemoryLimit(_, reply)
            | Admin::Shutdown(_, reply)
            | Admin::Lru(_, reply)
            | Admin::Slabs(_, reply)
            | Admin::Crawler(_, reply)
            | Admin::Watch(_, reply)
            | Admin::Extstore(_, _, reply)
            | Admin::RefreshCerts(reply)
            | Admin::Cluster(reply)
            | Admin::DebugTime(_, reply) => reply,
        }
    }
}
