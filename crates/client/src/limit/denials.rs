//! Denials in the cache that the processes of a host share: a key that was denied asks no server until its cost could
//! pass.

use std::time::Duration;

use larder_rate::{Algorithm, Limit, Verdict};

use crate::l1::{Entry, L1, now_ms};

/// Before a key in the shared cache. No text begins with this byte.
const PREFIX: &[u8] = b"\xffdenied:";
/// The mark of a denial among the entries of the shared cache.
const DENIED: u8 = 2;
const NS_PER_MS: u64 = 1_000_000;

/// The shared cache, and how long it keeps a denial.
#[derive(Clone, Debug)]
pub(super) struct Denials {
    l1: L1,
    max: Duration,
}

/// What was denied, as an entry holds it: a denial is that of this limit and cost only.
type Asked = [u64; 5];

/// The words of an entry's value: what was denied, what remained, when the cost could pass, and when all of the limit
/// is available again.
const ENTRY_WORDS: usize = 8;

impl Denials {
    pub(super) fn new(l1: L1, max: Duration) -> Denials {
        Denials { l1, max }
    }

    /// Returns the time that a denial is counted from: one before the server is asked.
    pub(super) fn now_ms(&self) -> u64 {
        now_ms()
    }

    /// Returns the denial that still holds.
    pub(super) fn get(&self, key: &[u8], limit: &Limit, cost: u64) -> Option<Verdict> {
        let mut value = Vec::new();
        self.l1.get(&own_key(key), &mut value).filter(|hit| hit.mark == DENIED && hit.is_fresh)?;
        let words: [u64; ENTRY_WORDS] = decode(&value)?;
        let [asked @ .., remaining, retry_ms, reset_ms] = words;
        let now_ms = now_ms();
        let wait_ms = retry_ms.checked_sub(now_ms).filter(|wait_ms| *wait_ms > 0)?;
        (asked == asked_of(limit, cost)).then(|| Verdict {
            is_allowed: false,
            remaining,
            retry_after_ns: Some(wait_ms.saturating_mul(NS_PER_MS)),
            reset_after_ns: reset_ms.saturating_sub(now_ms).max(wait_ms).saturating_mul(NS_PER_MS),
        })
    }

    /// Keeps a denial that was asked for at `asked_ms`, until its cost could pass.
    pub(super) fn keep(&self, key: &[u8], limit: &Limit, cost: u64, verdict: &Verdict, asked_ms: u64) {
        let Some(wait_ms) = verdict.retry_after_ns.map(|ns| ns / NS_PER_MS).filter(|ms| *ms > 0) else {
            return;
        };
        let max_ms = u64::try_from(self.max.as_millis()).unwrap_or(u64::MAX);
        let until_ms = asked_ms.saturating_add(wait_ms.min(max_ms));
        let retry_ms = asked_ms.saturating_add(wait_ms);
        let reset_ms = asked_ms.saturating_add(verdict.reset_after_ns / NS_PER_MS);
        let mut value = Vec::with_capacity(ENTRY_WORDS * 8);
        for word in asked_of(limit, cost).into_iter().chain([verdict.remaining, retry_ms, reset_ms]) {
            value.extend_from_slice(&word.to_le_bytes());
        }
        let entry = Entry {
            value: &value,
            mark: DENIED,
            fresh_until_ms: until_ms,
            stale_until_ms: until_ms,
            ..Entry::default()
        };
        let own_key = own_key(key);
        if own_key.len() <= crate::l1::KEY_BYTES_MAX {
            // Without room the server is asked again.
            let _ = self.l1.set(&own_key, &entry);
        }
    }
}

fn own_key(key: &[u8]) -> Vec<u8> {
    [PREFIX, key].concat()
}

fn asked_of(limit: &Limit, cost: u64) -> Asked {
    let (kind, burst) = match limit.algorithm {
        Algorithm::FixedWindow => (0, 0),
        Algorithm::SlidingWindow => (1, 0),
        Algorithm::Gcra { burst } => (2, burst),
    };
    [limit.count, limit.period_ms(), kind, burst, cost]
}

fn decode(value: &[u8]) -> Option<[u64; ENTRY_WORDS]> {
    let (words, []) = value.as_chunks::<8>() else { return None };
    let words: &[[u8; 8]; ENTRY_WORDS] = words.try_into().ok()?;
    Some(words.map(u64::from_le_bytes))
}
