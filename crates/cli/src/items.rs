//! Items on their way: read from a server, and stored on another.

use larder_client::{Client, Error, Fetch, Fetched, Item, NewItem, Put};

use crate::counts::Counts;
use crate::exit::{Failure, Outcome};
use crate::server_clock::{TimedServer, now_unix_ms};
use crate::spool::SpooledKey;

/// Exptimes beyond so many seconds, 30 days, are Unix times (memcached's rule).
const RELATIVE_MAX_S: u64 = 2_592_000;

/// An item without its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheItem {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
    /// The client flags.
    pub flags: u32,
    /// When it expires, in Unix milliseconds by this host's clock; never if there is none.
    pub expires_unix_ms: Option<u64>,
}

impl CacheItem {
    /// Returns the bytes of key and value.
    pub fn bytes(&self) -> u64 {
        (self.key.len() + self.value.len()) as u64
    }

    /// Returns the exptime that makes a server expire the item nearest to its time: 0 never. The server's clock shows
    /// `now_s`; a server without a clock gets the seconds left by this host's clock. `None` if the item has expired.
    fn exptime(&self, server: &TimedServer<'_>, now_s: Option<u64>, now_unix_ms: u64) -> Option<i32> {
        let Some(expires_unix_ms) = self.expires_unix_ms else { return Some(0) };
        let (at_s, left_s) = match now_s {
            Some(now_s) => {
                let at_s = server.server_s(expires_unix_ms);
                (at_s, at_s.saturating_sub(now_s))
            }
            None => (expires_unix_ms / 1000, (expires_unix_ms.saturating_sub(now_unix_ms) + 500) / 1000),
        };
        // A Unix time is not rounded. But a server whose clock shows 1970 reads it as the seconds left.
        let is_unix_time = at_s > RELATIVE_MAX_S && (now_s.is_some() || left_s > RELATIVE_MAX_S);
        match left_s {
            0 => None,
            _ if is_unix_time => Some(i32::try_from(at_s).unwrap_or(i32::MAX)),
            _ => i32::try_from(left_s).ok(),
        }
    }
}

/// What a key had at its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The item, and its cas unique at this server.
    Item(CacheItem, u64),
    /// No item, or one that expires now.
    Gone,
    /// An item that is marked stale, or the empty one that stands for a value which a client creates.
    Stale,
    /// The server, or the protocol, has no way to read it, with the reason.
    Refused(String),
}

/// Reads the items of many keys. The server does not count it as an access.
///
/// # Errors
/// The server cannot be asked.
pub fn read(server: &TimedServer<'_>, keys: &[&SpooledKey]) -> Outcome<Vec<Found>> {
    let fetch = Fetch { no_bump: true, ..Fetch::default() };
    let asked: Vec<(&[u8], Fetch)> = keys.iter().map(|key| (key.as_ref(), fetch)).collect();
    let (first_s, now_unix_ms) = (server.recent_s()?, now_unix_ms());
    let fetched = server.client.fetch_many(&asked);
    let between_s = first_s.zip(server.now_s()?);
    let expires_unix_ms = |key: &SpooledKey, left_s: u64| match between_s {
        Some(between_s) => server.host_ms(expires_s(key.expires_unix_s, left_s, between_s)),
        None => now_unix_ms.saturating_add(left_s.saturating_mul(1000)),
    };
    let fetched = fetched.into_iter().zip(keys);
    let found = |(fetched, key): (_, &&SpooledKey)| {
        found(server.client, key.as_ref(), fetched, |left_s| expires_unix_ms(key, left_s))
    };
    fetched.map(found).collect()
}

/// Returns the second at which an item expires, by its server's clock, from the seconds that it has left. The server
/// showed one of two seconds when it told them; where these differ, the expiry that it listed decides.
fn expires_s(listed_s: u64, left_s: u64, (first_s, last_s): (u64, u64)) -> u64 {
    let (earliest_s, latest_s) = (first_s.saturating_add(left_s), last_s.saturating_add(left_s));
    // A worker of a server may count the seconds left from the second before.
    let is_near = (earliest_s.saturating_sub(1)..=latest_s.saturating_add(1)).contains(&listed_s);
    if is_near { listed_s } else { u64::midpoint(earliest_s, latest_s) }
}

fn found(
    client: &Client,
    key: &[u8],
    fetched: larder_client::Result<Fetched>,
    expires_unix_ms: impl Fn(u64) -> u64,
) -> Outcome<Found> {
    match fetched {
        Ok(Fetched::Found(item)) if is_stale(&item) => {
            // The right to renew a stale item goes to the first reader; this one leaves it to the next.
            if let (true, Some(cas)) = (item.lease.is_mine, item.cas) {
                client.give_back(key, cas)?;
            }
            Ok(Found::Stale)
        }
        Ok(Fetched::Found(Item { ttl_s: Some(0), .. }) | Fetched::Miss | Fetched::Unchanged(_)) => {
            Ok(Found::Gone)
        }
        Ok(Fetched::Found(Item { value, flags, ttl_s, cas, .. })) => {
            let left_s = ttl_s.and_then(|left_s| u64::try_from(left_s).ok());
            let expires_unix_ms = left_s.map(expires_unix_ms);
            let item = CacheItem { key: key.to_vec(), value, flags, expires_unix_ms };
            Ok(Found::Item(item, cas.unwrap_or(0)))
        }
        Err(error) => reason(error).map(Found::Refused),
    }
}

fn is_stale(item: &Item) -> bool {
    item.lease.is_stale || (item.lease.is_taken && item.value.is_empty())
}

/// Returns why one item was refused, without the server's name.
///
/// # Errors
/// The error is about more than one item.
fn reason(error: Error) -> Outcome<String> {
    match error {
        Error::Refused { line, .. } => Ok(line),
        error @ (Error::Key(_) | Error::ValueTooLarge { .. }) => Ok(error.to_string()),
        error => Err(Failure::of(error)),
    }
}

/// Stores items and counts what became of them; with `add`, only those whose keys have none yet.
///
/// # Errors
/// The server cannot be asked.
pub fn store(server: &TimedServer<'_>, items: &[CacheItem], add: bool, counts: &Counts) -> Outcome<()> {
    let (now_s, now_unix_ms) = (server.recent_s()?, now_unix_ms());
    let (mut new, mut bytes) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
    for item in items {
        match item.exptime(server, now_s, now_unix_ms) {
            None => counts.gone(1),
            Some(exptime) => {
                let put = Put { flags: item.flags, exptime };
                new.push(NewItem { key: &item.key, value: &item.value, put });
                bytes.push(item.bytes());
            }
        }
    }
    for (stored, bytes) in server.client.store_many(&new, add).into_iter().zip(bytes) {
        match stored {
            Ok(true) => counts.moved(bytes),
            Ok(false) => counts.kept(),
            Err(error) => counts.refused(reason(error)?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expiring(expires_unix_ms: Option<u64>) -> CacheItem {
        CacheItem { key: b"k".to_vec(), value: Vec::new(), flags: 0, expires_unix_ms }
    }

    const NOW_S: u64 = 1_800_000_000;
    const NOW_MS: u64 = NOW_S * 1_000;

    fn client() -> Client {
        let server = "127.0.0.1:1".parse().expect("an address");
        Client::new([server], larder_client::Options::default()).expect("a client")
    }

    #[test]
    fn an_expiry_becomes_an_exptime_of_the_servers_own_clock() {
        let client = client();
        for lag_ms in [0, 3_600_000, -3_600_000] {
            let server = TimedServer::lagging(&client, Some(lag_ms));
            let now_s = NOW_S.saturating_add_signed(-lag_ms / 1_000);
            let exptime = |left_ms: Option<u64>| {
                let item = expiring(left_ms.map(|left_ms| NOW_MS + left_ms));
                item.exptime(&server, Some(now_s), NOW_MS)
            };
            let at = |left_s| i32::try_from(now_s + left_s).ok();
            assert_eq!(exptime(None), Some(0));
            for left_s in [1, 2, 2_591_999, 2_592_000, 2_592_001] {
                assert_eq!(exptime(Some(left_s * 1_000)), at(left_s), "{left_s}");
                assert_eq!(exptime(Some(left_s * 1_000 + 499)), at(left_s), "{left_s}");
                assert_eq!(exptime(Some(left_s * 1_000 + 500)), at(left_s + 1), "{left_s}");
            }
            assert_eq!(exptime(Some(u64::MAX / 2)), Some(i32::MAX));
        }
    }

    #[test]
    fn an_expiry_becomes_what_is_left_for_a_server_without_a_clock_or_in_1970() {
        let client = client();
        let server = TimedServer::lagging(&client, None);
        let exptime = |left_ms| expiring(Some(NOW_MS + left_ms)).exptime(&server, None, NOW_MS);
        assert_eq!(exptime(1_000), Some(1));
        assert_eq!(exptime(2_592_000_000), Some(2_592_000));
        assert_eq!(exptime(2_592_001_000), Some(1_802_592_001));
        let lag_ms = NOW_MS as i64 - 50_000;
        let in_1970 = TimedServer::lagging(&client, Some(lag_ms));
        assert_eq!(expiring(Some(NOW_MS + 7_000)).exptime(&in_1970, Some(50), NOW_MS), Some(7));
        assert_eq!(
            expiring(Some(NOW_MS + 2_592_000_000)).exptime(&in_1970, Some(50), NOW_MS),
            Some(2_592_050)
        );
    }

    #[test]
    fn an_item_that_has_expired_is_never_stored_for_ever() {
        let client = client();
        for (lag_ms, now_s) in [(None, None), (Some(0), Some(NOW_S)), (Some(-5_000), Some(NOW_S + 5))] {
            let server = TimedServer::lagging(&client, lag_ms);
            for expired in [NOW_MS, NOW_MS - 1, NOW_MS + 499, 1] {
                assert_eq!(expiring(Some(expired)).exptime(&server, now_s, NOW_MS), None, "{expired}");
            }
        }
    }

    #[test]
    fn a_second_that_begins_while_items_are_read_does_not_change_their_expiry() {
        let expiry = NOW_S + 100;
        for (told_at, first, last) in [(0, 0, 0), (0, 0, 1), (1, 0, 1), (1, 0, 3), (0, 1, 1), (2, 2, 2)] {
            let left_s = expiry - (NOW_S + told_at);
            assert_eq!(
                expires_s(expiry, left_s, (NOW_S + first, NOW_S + last)),
                expiry,
                "{told_at} {first} {last}"
            );
        }
        // Touched since it was listed.
        assert_eq!(expires_s(expiry, 5_000, (NOW_S, NOW_S)), NOW_S + 5_000);
        assert_eq!(expires_s(0, 5_000, (NOW_S, NOW_S)), NOW_S + 5_000);
    }
}
