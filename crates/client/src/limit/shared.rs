//! Counts in the cache: by its own arithmetic, or by compare-and-swap where a rule needs more than a sum.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use super::{Limit, State, Verdict, fixed};
use crate::client::{Cas, Client, Count, Put};
use crate::error::{Error, Result};
use crate::wire::Malformed;

/// How often a swap is tried that others win.
const ATTEMPTS_MAX: u32 = 200;
/// Added to a time to live: servers count whole seconds, and the clients' clocks may differ.
const SPARE_S: u64 = 5;
/// Up to here a server takes an expiry for relative.
const RELATIVE_MAX_S: u64 = 30 * 86_400;

/// Counts in the item of the current period, in one round trip.
pub(super) fn count(client: &Client, key: &[u8], limit: &Limit, now_ns: u64, cost: u64) -> Result<Verdict> {
    let (number, left_ns) = fixed::period(limit, now_ns);
    let mut own = key.to_vec();
    own.extend_from_slice(format!(":{number}").as_bytes());
    let exptime = exptime(now_ns, Duration::from_nanos(left_ns));
    let count = Count { delta: cost, initial: Some((cost, exptime)), ..Count::default() };
    let counter = client.count(&own, count)?;
    // A count is made if it is missing.
    let counted = counter.map_or(u64::MAX, |counter| counter.value);
    Ok(fixed::judge(limit, counted, left_ns))
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
        let state = found.as_ref().and_then(|item| State::decode(&item.value));
        let (verdict, new) = limit.decide(state, now_ns, cost);
        let Some(new) = new.filter(|_| cost > 0) else { return Ok(verdict) };
        let lives = limit.state_lives(&new, now_ns);
        let put = Put { flags: 0, exptime: exptime(now_ns, lives) };
        let value = new.encode();
        let is_written = match found.and_then(|item| item.cas) {
            Some(cas) => matches!(client.cas(key, &value, cas, put)?, Cas::Stored(_)),
            None => client.add(key, &value, put)?,
        };
        if is_written {
            return Ok(verdict);
        }
        pause(attempt);
    }
    let server = client.servers().nth(client.server_of(key)).unwrap_or_default().into();
    Err(Error::Protocol {
        server,
        source: Malformed::TooMuch { max: ATTEMPTS_MAX as usize, unit: "lost swaps" },
    })
}

/// Waits for a random time that grows, so that threads that lost together do not ask together.
fn pause(attempt: u32) {
    let micros = u64::from(attempt + 1).min(20) * 50;
    std::thread::sleep(Duration::from_micros(RandomState::new().hash_one(attempt) % micros));
}

/// Returns the expiry of something that matters for so long from now.
fn exptime(now_ns: u64, lives: Duration) -> i32 {
    let seconds = lives.as_secs() + 1 + SPARE_S;
    let seconds = if seconds > RELATIVE_MAX_S { now_ns / 1_000_000_000 + seconds } else { seconds };
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

impl State {
    /// Three numbers with blanks between, so that an operator can read them.
    fn encode(&self) -> Vec<u8> {
        let State([one, two, three]) = self;
        format!("{one} {two} {three}").into_bytes()
    }

    /// Returns none for what is no state; it is then overwritten.
    fn decode(bytes: &[u8]) -> Option<State> {
        let mut words = std::str::from_utf8(bytes).ok()?.split(' ');
        let mut number = || words.next()?.parse().ok();
        Some(State([number()?, number()?, number()?]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_and_nothing_else_is_one() {
        for state in [State([0, 0, 0]), State([u64::MAX, 1, u64::MAX])] {
            assert_eq!(State::decode(&state.encode()), Some(state));
        }
        for other in [&b""[..], b"1 2", b"1 2 x", b"1 2 18446744073709551616", b"\xff 1 2"] {
            assert_eq!(State::decode(other), None);
        }
    }

    #[test]
    fn an_expiry_is_relative_up_to_thirty_days() {
        let now_ns = 1_700_000_000_000_000_000;
        assert_eq!(exptime(now_ns, Duration::from_millis(1)), 6);
        assert_eq!(exptime(now_ns, Duration::from_secs(60)), 66);
        assert_eq!(exptime(now_ns, Duration::from_secs(31 * 86_400)), 1_700_000_000 + 31 * 86_400 + 6);
        assert_eq!(exptime(now_ns, Duration::from_secs(1 << 40)), i32::MAX);
    }
}
