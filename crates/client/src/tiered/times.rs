//! How long entries are used: for all keys, for those of a prefix, and for a call.

use std::sync::Arc;
use std::time::Duration;

use crate::l1::Hit;

/// How long an entry is used. By default, the times of [`TieredOptions`](super::TieredOptions).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// A value is used for so long without asking its server.
    pub fresh: Duration,
    /// For so long behind that, while another renews it or its server does not answer.
    pub stale: Duration,
    /// That a server does not have a key is known for so long.
    pub negative: Duration,
}

/// The times of keys by their prefixes.
#[derive(Clone, Debug, Default)]
pub(super) struct Prefixes(Arc<Vec<(Box<[u8]>, Times)>>);

impl Prefixes {
    /// Sets the times of a prefix. The longest prefix stays first.
    pub(super) fn set(&mut self, prefix: &[u8], times: Times) {
        let prefixes = Arc::make_mut(&mut self.0);
        prefixes.retain(|(known, _)| **known != *prefix);
        prefixes.push((prefix.into(), times));
        prefixes.sort_by_key(|(known, _)| std::cmp::Reverse(known.len()));
    }

    /// Returns the times of the longest prefix that a key has.
    pub(super) fn of(&self, key: &[u8]) -> Option<Times> {
        self.0.iter().find(|(prefix, _)| key.starts_with(prefix)).map(|(_, times)| *times)
    }
}

/// What an entry may be used for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    /// Without asking the server.
    pub(super) is_fresh: bool,
    /// While another renews it, or the server does not answer.
    pub(super) is_usable: bool,
    /// It is fresh, and for so short a time that it should be renewed.
    pub(super) is_due: bool,
}

impl Use {
    /// Judges an entry that was stored with the times `own`, for a call with the times `call`. The last `early_percent`
    /// of the time for which it is fresh are those in which it is due.
    pub(super) fn of(
        hit: &Hit,
        is_absence: bool,
        (own, call): (&Times, &Times),
        early_percent: u32,
        now_ms: u64,
    ) -> Use {
        let fresh_ms = |times: &Times| ms(if is_absence { times.negative } else { times.fresh });
        // An entry of an item that expires sooner seems older than it is.
        let asked_ms = hit.fresh_until_ms.saturating_sub(fresh_ms(own));
        let fresh_until_ms = asked_ms.saturating_add(fresh_ms(call));
        let usable_until_ms = fresh_until_ms.saturating_add(ms(call.stale));
        // Revalidation was asked for of an entry that is not fresh before its time.
        let is_revoked = !hit.is_fresh && now_ms < hit.fresh_until_ms;
        let is_fresh = !is_revoked && now_ms < fresh_until_ms;
        let early_ms = fresh_ms(call).saturating_mul(u64::from(early_percent.min(100))) / 100;
        Use {
            is_fresh,
            is_usable: now_ms < usable_until_ms,
            is_due: is_fresh && !is_absence && now_ms >= fresh_until_ms.saturating_sub(early_ms),
        }
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(fresh_ms: u64, stale_ms: u64, negative_ms: u64) -> Times {
        let [fresh, stale, negative] = [fresh_ms, stale_ms, negative_ms].map(Duration::from_millis);
        Times { fresh, stale, negative }
    }

    #[test]
    fn the_longest_prefix_of_a_key_decides() {
        let mut prefixes = Prefixes::default();
        prefixes.set(b"a:", times(1, 0, 0));
        prefixes.set(b"a:b:", times(2, 0, 0));
        prefixes.set(b"a:b", times(3, 0, 0));
        prefixes.set(b"a:", times(4, 0, 0));
        let fresh =
            |prefixes: &Prefixes, key: &str| prefixes.of(key.as_bytes()).map(|times| times.fresh.as_millis());
        assert_eq!(
            ["a:b:c", "a:bc", "a:c", "b", ""].map(|key| fresh(&prefixes, key)),
            [Some(2), Some(3), Some(4), None, None]
        );
        prefixes.set(b"", times(5, 0, 0));
        assert_eq!(fresh(&prefixes, "b"), Some(5));
    }

    /// Returns what an entry that was asked for at 10,000 may be used for, each `1` for yes.
    fn used(own: Times, call: Times, is_fresh: bool, early_percent: u32, age_ms: u64) -> String {
        let hit = Hit {
            flags: 0,
            cas: 0,
            epoch: 0,
            mark: 0,
            feed: 0,
            is_fresh,
            fresh_until_ms: 10_000 + own.fresh.as_millis() as u64,
            stale_until_ms: u64::MAX,
        };
        let used = Use::of(&hit, false, (&own, &call), early_percent, 10_000 + age_ms);
        [used.is_fresh, used.is_usable, used.is_due]
            .map(|yes| char::from(b'0' + u8::from(yes)))
            .iter()
            .collect()
    }

    #[test]
    fn a_call_may_want_fresher_entries_or_take_older_ones() {
        let own = times(1000, 5000, 0);
        let at = |call, age_ms| used(own, call, age_ms < 1000, 0, age_ms);
        assert_eq!([0, 999, 1000, 5999, 6000].map(|age| at(own, age)), ["110", "110", "010", "010", "000"]);
        let strict = times(100, 200, 0);
        assert_eq!([99, 100, 299, 300].map(|age| at(strict, age)), ["110", "010", "010", "000"]);
        assert_eq!(at(times(0, 0, 0), 0), "000", "the server is asked in any case");
        let lenient = times(3000, 0, 0);
        assert_eq!([2999, 3000].map(|age| at(lenient, age)), ["110", "000"]);
    }

    #[test]
    fn an_entry_to_be_revalidated_is_not_fresh_for_anyone() {
        let own = times(1000, 5000, 0);
        assert_eq!(used(own, own, false, 0, 10), "010");
        assert_eq!(used(own, times(60_000, 0, 0), false, 0, 10), "010");
    }

    #[test]
    fn an_entry_is_due_in_the_last_part_of_its_time() {
        let own = times(1000, 5000, 0);
        let at = |percent, age_ms| used(own, own, age_ms < 1000, percent, age_ms);
        assert_eq!([799, 800, 999, 1000].map(|age| at(20, age)), ["110", "111", "111", "010"]);
        assert_eq!((at(0, 999), at(100, 0), at(200, 0)), ("110".into(), "111".into(), "111".into()));
    }
}
