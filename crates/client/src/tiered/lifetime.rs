//! How long an entry may be used: by the options, and by the item's own expiry.

use std::time::Duration;

use super::TieredOptions;
use crate::client::RELATIVE_MAX_S;
use crate::clock::{Clock, UnixClock};
use crate::simulation::{Fault, is_broken};

/// Until when an entry is fresh, and until when it is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lifetime {
    /// When the server was asked for it, or to store it.
    pub(super) asked_ms: u64,
    pub(super) fresh_until_ms: u64,
    pub(super) stale_until_ms: u64,
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Lifetime {
    /// Of an item that was asked for at `asked_ms` and then had so many seconds left to live; negative or `None` for
    /// ever.
    pub(super) fn of_item(options: &TieredOptions, asked_ms: u64, ttl_s: Option<i64>) -> Lifetime {
        let left_ms = ttl_s.and_then(|seconds| u64::try_from(seconds).ok()).map(|seconds| seconds * 1000);
        let expires_ms = left_ms.map_or(u64::MAX, |left_ms| asked_ms.saturating_add(left_ms));
        let fresh_until_ms = asked_ms.saturating_add(ms(options.fresh)).min(expires_ms);
        let stale_until_ms = fresh_until_ms.saturating_add(ms(options.stale)).min(expires_ms);
        Lifetime { asked_ms, fresh_until_ms, stale_until_ms }
    }

    /// Returns whether the item was over as soon as it was stored.
    pub(super) fn is_over(self) -> bool {
        self.stale_until_ms <= self.asked_ms
    }

    /// Of what a server said that it does not have.
    pub(super) fn of_absence(options: &TieredOptions, asked_ms: u64) -> Lifetime {
        let known = if is_broken(Fault::AbsenceAsFresh) { options.fresh } else { options.negative };
        let until_ms = asked_ms.saturating_add(ms(known));
        Lifetime { asked_ms, fresh_until_ms: until_ms, stale_until_ms: until_ms }
    }
}

/// Returns the seconds that an item has to live which is stored now with this exptime; `None` for ever.
pub(super) fn seconds_left(exptime: i32) -> Option<i64> {
    match exptime {
        0 => None,
        ..0 => Some(0),
        1..=RELATIVE_MAX_S => Some(exptime.into()),
        unix => {
            let now_s = i64::try_from(UnixClock.now_ms() / 1000).unwrap_or(i64::MAX);
            Some((i64::from(unix) - now_s).max(0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_used_no_longer_than_its_item_lives() {
        let options = TieredOptions::default();
        let of = |ttl_s| {
            let Lifetime { fresh_until_ms, stale_until_ms, .. } = Lifetime::of_item(&options, 5_000, ttl_s);
            (fresh_until_ms, stale_until_ms)
        };
        assert_eq!(of(None), (6_000, 16_000));
        assert_eq!(of(Some(-1)), (6_000, 16_000));
        assert_eq!(of(Some(3)), (6_000, 8_000));
        assert_eq!(of(Some(0)), (5_000, 5_000));
        let absence = Lifetime::of_absence(&options, 5_000);
        assert_eq!((absence.fresh_until_ms, absence.stale_until_ms), (5_000, 5_000));
    }

    #[test]
    fn exptimes_are_read_as_memcached_reads_them() {
        let now_s = (UnixClock.now_ms() / 1000) as i32;
        assert_eq!([0, -1, 1, RELATIVE_MAX_S].map(seconds_left), [None, Some(0), Some(1), Some(2_592_000)]);
        assert_eq!(seconds_left(RELATIVE_MAX_S + 1), Some(0), "a time in 1970");
        assert!(seconds_left(now_s + 100).is_some_and(|left| (98..=100).contains(&left)));
    }
}
