//! Items on their way: read from a server, and stored on another.

use std::time::{SystemTime, UNIX_EPOCH};

use larder_client::{Client, Error, Fetch, Fetched, Item, NewItem, Put};

use crate::counts::Counts;
use crate::exit::{Failure, Outcome};

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

    /// Returns the exptime that a server is to be given now: 0 never. `None` if the item has expired.
    fn exptime(&self, now_unix_ms: u64) -> Option<i32> {
        let Some(expires_unix_ms) = self.expires_unix_ms else { return Some(0) };
        // To the nearest second: a copy lives neither longer nor shorter on average.
        let left_s = (expires_unix_ms.saturating_sub(now_unix_ms) + 500) / 1000;
        match left_s {
            0 => None,
            1..=RELATIVE_MAX_S => i32::try_from(left_s).ok(),
            _ => Some(i32::try_from(expires_unix_ms / 1000).unwrap_or(i32::MAX)),
        }
    }
}

/// Returns this host's time in Unix milliseconds.
pub fn now_unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
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
pub fn read<K: AsRef<[u8]>>(client: &Client, keys: &[K]) -> Outcome<Vec<Found>> {
    let fetch = Fetch { no_bump: true, ..Fetch::default() };
    let asked: Vec<(&[u8], Fetch)> = keys.iter().map(|key| (key.as_ref(), fetch)).collect();
    let now_unix_ms = now_unix_ms();
    let fetched = client.fetch_many(&asked).into_iter().zip(keys);
    fetched.map(|(fetched, key)| found(client, key.as_ref(), fetched, now_unix_ms)).collect()
}

fn found(
    client: &Client,
    key: &[u8],
    fetched: larder_client::Result<Fetched>,
    now_unix_ms: u64,
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
            let expires_unix_ms =
                left_s.map(|left_s| now_unix_ms.saturating_add(left_s.saturating_mul(1000)));
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
pub fn store(client: &Client, items: &[CacheItem], add: bool, counts: &Counts) -> Outcome<()> {
    let now_unix_ms = now_unix_ms();
    let (mut new, mut bytes) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
    for item in items {
        match item.exptime(now_unix_ms) {
            None => counts.gone(1),
            Some(exptime) => {
                let put = Put { flags: item.flags, exptime };
                new.push(NewItem { key: &item.key, value: &item.value, put });
                bytes.push(item.bytes());
            }
        }
    }
    for (stored, bytes) in client.store_many(&new, add).into_iter().zip(bytes) {
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

    #[test]
    fn an_expiry_becomes_an_exptime_that_servers_read_as_the_same_time() {
        let now = 1_800_000_000_000;
        assert_eq!(expiring(None).exptime(now), Some(0));
        assert_eq!(expiring(Some(now + 1_000)).exptime(now), Some(1));
        assert_eq!(expiring(Some(now + 2_592_000_000)).exptime(now), Some(2_592_000));
        assert_eq!(expiring(Some(now + 2_592_001_000)).exptime(now), Some(1_802_592_001));
        assert_eq!(expiring(Some(u64::MAX / 2)).exptime(now), Some(i32::MAX));
    }

    #[test]
    fn an_item_that_has_expired_is_never_stored_for_ever() {
        let now = 1_800_000_000_000;
        for expired in [now, now - 1, now + 499, 1] {
            assert_eq!(expiring(Some(expired)).exptime(now), None, "{expired}");
        }
    }
}
