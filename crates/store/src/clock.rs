//! Time as the store sees it: whole seconds, handed in by the caller. Nothing here reads a clock.

/// A point in time in whole seconds on the caller's clock, which must not run backwards. 0 is never a real
/// moment, so it can stand for "never expires" in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Seconds(pub u32);

/// When an item stops being visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Not by time.
    Never,
    /// From this moment on. A moment in the past makes an item that is stored but never seen, as memcached
    /// does for a negative exptime.
    At(Seconds),
}

impl Expiry {
    /// As kept in a record: 0 for never.
    pub(crate) fn to_raw(self) -> u32 {
        match self {
            Expiry::Never => 0,
            Expiry::At(Seconds(at)) => at.max(1),
        }
    }

    /// From a record.
    pub(crate) fn from_raw(raw: u32) -> Self {
        if raw == 0 { Expiry::Never } else { Expiry::At(Seconds(raw)) }
    }

    /// Whether the moment has come.
    pub fn has_passed(self, now: Seconds) -> bool {
        match self {
            Expiry::Never => false,
            Expiry::At(at) => at <= now,
        }
    }

    /// Whole seconds left; `None` when it never expires.
    pub fn seconds_left(self, now: Seconds) -> Option<u32> {
        match self {
            Expiry::Never => None,
            Expiry::At(at) => Some(at.0.saturating_sub(now.0)),
        }
    }
}
