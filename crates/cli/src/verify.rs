//! Compares the items of two servers after a copy.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use serde::Serialize;

use crate::counts::line;
use crate::exit::{Outcome, Verdict};
use crate::items::{CacheItem, Found, read};
use crate::screen::Progress;
use crate::server_clock::TimedServer;
use crate::spool::{KeySpool, Keys, SpooledKey};
use crate::transfer;
use crate::units::show_whole;

/// A copy expires at the nearest second of its server's clock, and what is known of that may move by a second.
const EXPIRY_SLACK_MS: u64 = 1_550;
/// The same where a server does not show its clock: both count whole seconds that begin at different moments.
const UNTIMED_SLACK_MS: u64 = 2_500;

/// Which keys are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// One key in so many.
    pub one_in: u64,
}

impl std::str::FromStr for Sample {
    type Err = String;

    fn from_str(text: &str) -> Result<Sample, String> {
        let number = if text == "all" { Some(1) } else { text.parse().ok() };
        let one_in = number.filter(|one_in| *one_in > 0);
        one_in.map(|one_in| Sample { one_in }).ok_or_else(|| "write all, or N for one key in N".to_string())
    }
}

/// The two ends of a copy.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'a> {
    /// Where items come from.
    pub from: &'a TimedServer<'a>,
    /// Where they go.
    pub to: &'a TimedServer<'a>,
    /// The destination's own items were kept, and may differ.
    pub kept: bool,
}

/// What a comparison found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// Keys whose items are equal, in value, flags and expiry.
    pub equal: u64,
    /// Keys that were changed, touched, deleted or expired at the source since they were listed, or that the
    /// destination kept.
    pub changed: u64,
    /// Keys that the destination has no item for.
    pub missing: u64,
    /// Keys whose items differ.
    pub different: u64,
}

impl Comparison {
    /// Returns whether something needs attention.
    pub fn verdict(&self) -> Verdict {
        if self.missing + self.different > 0 { Verdict::Findings } else { Verdict::Fine }
    }

    /// Returns the lines that end a verb.
    pub fn lines(&self) -> String {
        let mut lines = line("equal", self.equal, "compared: value, flags, expiry");
        for (name, count, about) in [
            ("changed", self.changed, "compared, and changed meanwhile"),
            ("missing", self.missing, "not at the destination: refused, or evicted since"),
            ("different", self.different, "with another value, other flags or another expiry"),
        ] {
            if count > 0 {
                lines.push_str(&line(name, count, about));
            }
        }
        lines
    }
}

/// The counts of several threads.
#[derive(Debug, Default)]
struct Counters {
    equal: AtomicU64,
    changed: AtomicU64,
    missing: AtomicU64,
    different: AtomicU64,
}

impl Counters {
    fn comparison(&self) -> Comparison {
        Comparison {
            equal: self.equal.load(Relaxed),
            changed: self.changed.load(Relaxed),
            missing: self.missing.load(Relaxed),
            different: self.different.load(Relaxed),
        }
    }
}

/// Compares the items of a sample of the keys.
///
/// # Errors
/// A server cannot be asked, or `stop` was set.
pub fn compare(
    ends: Ends<'_>,
    (spool, sample): (&KeySpool, Sample),
    threads: usize,
    stop: &AtomicBool,
    progress: &mut Progress,
) -> Outcome<Comparison> {
    let counters = Counters::default();
    let mut number = 0;
    let mut chosen = |keys: Keys| -> Keys {
        let is_chosen = |_: &SpooledKey| {
            number += 1;
            (number - 1) % sample.one_in == 0
        };
        keys.into_iter().filter(is_chosen).collect()
    };
    let batches = spool.batches()?.map(|keys| keys.map(&mut chosen));
    let total = spool.len().div_ceil(sample.one_in);
    let look = || {
        let Comparison { equal, changed, missing, different } = counters.comparison();
        let done = show_whole(equal + changed + missing + different);
        progress.show(|| vec![format!("compared {done} of {} keys", show_whole(total))]);
    };
    transfer::run(threads, batches, |keys| compare_batch(ends, &keys, &counters), stop, look)?;
    Ok(counters.comparison())
}

fn compare_batch(ends: Ends<'_>, keys: &Keys, counters: &Counters) -> Outcome<()> {
    let (keys, slack_ms): (Vec<_>, _) = (keys.iter().collect(), ends.slack_ms());
    let (from, to) = (read(ends.from, &keys)?, read(ends.to, &keys)?);
    for ((source, copy), listed) in from.into_iter().zip(to).zip(keys) {
        let counter = match (source, copy) {
            (Found::Item(source, _), Found::Item(copy, _)) if are_equal(&source, &copy, slack_ms) => {
                &counters.equal
            }
            (Found::Item(..), Found::Item(..)) if ends.kept => &counters.changed,
            (Found::Item(source, cas), copy) => match copy {
                // It may have changed after it was read.
                _ if has_changed(ends, &source, cas, listed) || !is_there(ends, listed)? => &counters.changed,
                Found::Item(..) => &counters.different,
                Found::Gone | Found::Stale | Found::Refused(_) => &counters.missing,
            },
            (Found::Gone | Found::Stale | Found::Refused(_), _) => &counters.changed,
        };
        counter.fetch_add(1, Relaxed);
    }
    Ok(())
}

impl Ends<'_> {
    /// Returns how far apart the expiries of equal items may seem, in milliseconds.
    fn slack_ms(&self) -> u64 {
        let are_timed = self.from.has_clock() && self.to.has_clock();
        if are_timed { EXPIRY_SLACK_MS } else { UNTIMED_SLACK_MS }
    }
}

/// Returns whether the source's item was replaced or touched since it was listed, so that its copy may differ.
fn has_changed(ends: Ends<'_>, item: &CacheItem, cas: u64, listed: &SpooledKey) -> bool {
    let listed_unix_ms = (listed.expires_unix_s > 0).then(|| ends.from.host_ms(listed.expires_unix_s));
    cas != listed.cas || !expire_together(item.expires_unix_ms, listed_unix_ms, ends.slack_ms())
}

/// Returns whether the source still has the item that was listed.
fn is_there(ends: Ends<'_>, listed: &SpooledKey) -> Outcome<bool> {
    let now = read(ends.from, &[listed])?;
    Ok(matches!(now.as_slice(), [Found::Item(item, cas)] if !has_changed(ends, item, *cas, listed)))
}

fn are_equal(one: &CacheItem, other: &CacheItem, slack_ms: u64) -> bool {
    let expire_together = expire_together(one.expires_unix_ms, other.expires_unix_ms, slack_ms);
    one.value == other.value && one.flags == other.flags && expire_together
}

fn expire_together(one: Option<u64>, other: Option<u64>, slack_ms: u64) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => one.abs_diff(other) <= slack_ms,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_all_keys_or_one_in_some() {
        assert_eq!("all".parse(), Ok(Sample { one_in: 1 }));
        assert_eq!("100".parse(), Ok(Sample { one_in: 100 }));
        for bad in ["", "0", "-1", "some", "1%"] {
            assert!(bad.parse::<Sample>().is_err(), "{bad}");
        }
    }

    #[test]
    fn items_are_equal_in_value_flags_and_expiry() {
        let item = |value: &[u8], flags, expires_unix_ms| CacheItem {
            key: b"k".to_vec(),
            value: value.to_vec(),
            flags,
            expires_unix_ms,
        };
        let one = item(b"v", 1, Some(10_000));
        assert!(are_equal(&one, &item(b"v", 1, Some(11_500)), EXPIRY_SLACK_MS));
        for other in [
            item(b"w", 1, Some(10_000)),
            item(b"v", 2, Some(10_000)),
            item(b"v", 1, None),
            item(b"v", 1, Some(14_000)),
        ] {
            assert!(!are_equal(&one, &other, EXPIRY_SLACK_MS), "{other:?}");
        }
    }
}
