//! Counts in the cache: by its own arithmetic, or by compare-and-swap where a rule needs more than a sum.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use larder_rate::{Limit, State, Verdict};

use crate::client::{Cas, Client, Count, Put, RELATIVE_MAX_S};
use crate::error::{Error, Result};
use crate::wire::Malformed;

/// How often a swap is tried that others win.
const ATTEMPTS_MAX: u32 = 200;
/// Added to a time to live: servers count whole seconds, and the clients' clocks may differ.
const SPARE_S: u64 = 5;

/// Counts in the item of the current period, in one round trip.
pub(super) fn count(client: &Client, key: &[u8], limit: &Limit, now_ns: u64, cost: u64) -> Result<Verdict> {
    let (number, left_ns) = limit.period_at(now_ns);
    let mut own = key.to_vec();
    own.extend_from_slice(format!(":{number}").as_bytes());
    let exptime = exptime(now_ns, Duration::from_nanos(left_ns));
    let count = Count { delta: cost, initial: Some((cost, exptime)), ..Count::default() };
    let counter = client.count(&own, count)?;
    // A count is made if it is missing.
    let counted = counter.map_or(u64::MAX, |counter| counter.value);
    Ok(limit.judge_counted(counted, now_ns))
}

/// Reads the state, decides, and writes the new state if the old one is still there; else starts over. A denial writes
/// nothing.
pub(super) fn compare_and_swap(
    client: &Client,
    key: &[u8],
    limit: &Limit,
    now_ns: u64,
    cost: u64,
) -> Result<Verdict> {
    for attempt in 0..ATTEMPTS_MAX {
        let found = client.gets(key)?;
        let state = match &found {
            Some(item) => Some(State::decode(&item.value).ok_or_else(|| no_state(client, key))?),
            None => None,
        };
        let (verdict, new) = limit.decide(state, now_ns, cost);
        let Some(new) = new else { return Ok(verdict) };
        let lives = limit.state_lives(&new, now_ns);
        let put = Put { flags: 0, exptime: exptime(now_ns, lives) };
        let text = new.encode();
        let value = text.as_bytes();
        let is_written = match found.and_then(|item| item.cas) {
            Some(cas) => matches!(client.cas(key, value, cas, put)?, Cas::Stored(_)),
            None => client.add(key, value, put)?,
        };
        if is_written {
            return Ok(verdict);
        }
        pause(attempt);
    }
    Err(fault(client, key, Malformed::TooMuch { max: ATTEMPTS_MAX as usize, unit: "lost swaps" }))
}

/// The error for an item that holds something else; it is left as it is.
fn no_state(client: &Client, key: &[u8]) -> Error {
    fault(client, key, Malformed::Unfitting("the item holds no rate limit".into()))
}

fn fault(client: &Client, key: &[u8], source: Malformed) -> Error {
    let server = client.servers().nth(client.server_of(key)).unwrap_or_default().into();
    Error::Protocol { server, source }
}

/// Waits for a random time that grows, so that threads that lost together do not ask together.
fn pause(attempt: u32) {
    let micros = u64::from(attempt + 1).min(20) * 50;
    crate::clock::sleep(Duration::from_micros(RandomState::new().hash_one(attempt) % micros));
}

/// Returns the expiry of something that matters for so long from now.
fn exptime(now_ns: u64, lives: Duration) -> i32 {
    let seconds = lives.as_secs() + 1 + SPARE_S;
    let seconds = if seconds > RELATIVE_MAX_S as u64 { now_ns / 1_000_000_000 + seconds } else { seconds };
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_relative_up_to_thirty_days() {
        let now_ns = 1_700_000_000_000_000_000;
        assert_eq!(exptime(now_ns, Duration::from_millis(1)), 6);
        assert_eq!(exptime(now_ns, Duration::from_secs(60)), 66);
        assert_eq!(exptime(now_ns, Duration::from_secs(31 * 86_400)), 1_700_000_000 + 31 * 86_400 + 6);
        assert_eq!(exptime(now_ns, Duration::from_secs(1 << 40)), i32::MAX);
    }
}
