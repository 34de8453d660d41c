//! What each prefix of keys costs and gives, as `stats prefixes` tells it.

use larder_client::{Client, Error};

use crate::exit::Outcome;
use crate::figures::stats;
use crate::units::show_key;

/// The share of the bytes written from which on a prefix is looked at.
const WRITTEN_SHARE_MIN: f64 = 0.2;
/// How many times its share of the hits a prefix may have of the bytes written.
const TIMES_ITS_HITS: f64 = 4.0;
/// The fewest sampled items that such a thing is said by.
const ITEMS_MIN: u64 = 100;

/// Returns whether a prefix writes out of proportion to what it gives: a fifth of the bytes written at least, and four
/// times its share of the hits, by at least 100 sampled items.
pub fn is_out_of_proportion(written_share: f64, hits_share: f64, items: u64) -> bool {
    items >= ITEMS_MIN && written_share >= WRITTEN_SHARE_MIN && written_share >= TIMES_ITS_HITS * hits_share
}

/// A prefix and its amounts, of all keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prefix {
    /// The prefix, without the delimiter; `None` for all that have no row of their own.
    pub name: Option<Vec<u8>>,
    /// Sampled items that the amounts rest on.
    pub items: u64,
    pub ram_bytes: u64,
    pub ssd_bytes: u64,
    pub ssd_bytes_written: u64,
    pub device_reads: u64,
    pub hits: u64,
    pub misses: u64,
}

/// The prefixes of a server, and how they were counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prefixes {
    /// As `stats prefixes` has it: `ready`, or why the amounts tell little.
    pub state: String,
    /// What ends a prefix.
    pub delimiter: Vec<u8>,
    pub rows: Vec<Prefix>,
}

impl Prefixes {
    /// Asks a server. `None` if it does not account for prefixes, or may not tell.
    ///
    /// # Errors
    /// It cannot be asked.
    pub fn ask(client: &Client) -> Outcome<Option<Prefixes>> {
        match stats(client, "prefixes") {
            Err(Error::Refused { .. }) => Ok(None),
            lines => Ok(Prefixes::of(&lines?)),
        }
    }

    /// Returns what lines of `stats prefixes` tell.
    pub fn of(lines: &[(String, String)]) -> Option<Prefixes> {
        let mut prefixes = Prefixes::default();
        let mut last = "";
        for (name, value) in lines {
            let Some((place, member)) = name.strip_prefix("prefix:").and_then(|name| name.split_once(':'))
            else {
                match name.as_str() {
                    "state" => prefixes.state.clone_from(value),
                    "delimiter" => prefixes.delimiter = decoded(value),
                    _ => {}
                }
                continue;
            };
            if std::mem::replace(&mut last, place) != place {
                prefixes.rows.push(Prefix::default());
            }
            if let Some(row) = prefixes.rows.last_mut() {
                row.set(member, value);
            }
        }
        (!prefixes.rows.is_empty()).then_some(prefixes)
    }

    /// Returns how much of all prefixes' amount one has, from 0 to 1.
    pub fn share(&self, row: &Prefix, of: fn(&Prefix) -> u64) -> f64 {
        of(row) as f64 / self.rows.iter().map(of).sum::<u64>().max(1) as f64
    }

    /// Returns the prefix that causes most of the wear, if that is out of proportion.
    pub fn costly(&self) -> Option<&Prefix> {
        let share = |row: &Prefix| self.share(row, |row| row.ssd_bytes_written);
        let is_costly = |row: &&Prefix| {
            let hits = self.share(row, |row| row.hits);
            row.name.is_some() && is_out_of_proportion(share(row), hits, row.items)
        };
        let costly = self.rows.iter().filter(|_| self.state == "ready").filter(is_costly);
        costly.max_by_key(|row| row.ssd_bytes_written)
    }
}

impl Prefix {
    /// Returns its name: `-` for keys without a prefix.
    pub fn shown(&self) -> String {
        match self.name.as_deref() {
            None => "all others".to_string(),
            Some(b"") => "-".to_string(),
            Some(name) => show_key(name),
        }
    }

    fn set(&mut self, member: &str, value: &str) {
        let number = value.parse().unwrap_or(0);
        match member {
            "name" => self.name = Some(decoded(value)),
            "items" => self.items = number,
            "ram_bytes" => self.ram_bytes = number,
            "ssd_bytes" => self.ssd_bytes = number,
            "ssd_bytes_written" => self.ssd_bytes_written = number,
            "device_reads" => self.device_reads = number,
            "hits" => self.hits = number,
            "misses" => self.misses = number,
            _ => {}
        }
    }
}

/// Returns the bytes of a name as `metadump` shows it: `%xx` for all that is no letter, digit or `-._~`.
fn decoded(name: &str) -> Vec<u8> {
    let mut parts = name.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        bytes.extend(u8::from_str_radix(digits, 16).ok());
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Lines of three prefixes, of which `scan` writes much and is never read.
    pub(crate) fn lines(state: &str) -> Vec<(String, String)> {
        let row = |place: &str, name: Option<&str>, [items, ram, ssd, written, hits]: [u64; 5]| {
            let own =
                [("items", items), ("ram_bytes", ram), ("ssd_bytes", ssd), ("ssd_bytes_written", written)];
            let numbers = own.into_iter().chain([("hits", hits), ("hits_error", 1)]);
            let name = name.map(|name| ("name", name.to_string())).into_iter();
            let members = name.chain(numbers.map(|(name, number)| (name, number.to_string())));
            members.map(|(name, value)| (format!("prefix:{place}:{name}"), value)).collect::<Vec<_>>()
        };
        let head = [("state", state), ("delimiter", "%3A"), ("sample_rate", "8")];
        let head = head.map(|(name, value)| (name.to_string(), value.to_string()));
        [
            head.to_vec(),
            row("1", Some("user"), [5_000, 600, 300, 500, 900]),
            row("2", Some("scan"), [2_000, 100, 600, 400, 20]),
            row("other", None, [40, 300, 100, 100, 80]),
        ]
        .concat()
    }

    #[test]
    fn the_prefix_that_wears_and_gives_little_is_named() {
        let prefixes = Prefixes::of(&lines("ready")).expect("there are rows");
        assert_eq!((prefixes.rows.len(), prefixes.delimiter.as_slice()), (3, &b":"[..]));
        assert_eq!(prefixes.rows[2].name, None);
        let costly = prefixes.costly().expect("40 % of the wear, 2 % of the hits");
        assert_eq!((costly.shown().as_str(), costly.items), ("scan", 2_000));
        assert_eq!(prefixes.share(costly, |row| row.ssd_bytes_written), 0.4);
        assert_eq!(prefixes.share(costly, |row| row.hits), 0.02);
        assert!(Prefixes::of(&lines("filling")).expect("there are rows").costly().is_none());
        assert_eq!(Prefixes::of(&[("state".to_string(), "off".to_string())]), None);
    }

    #[test]
    fn names_of_any_bytes_are_decoded_and_shown() {
        for (encoded, bytes, shown) in
            [("user", &b"user"[..], "user"), ("", b"", "-"), ("a%2Fb%00%FF", b"a/b\0\xff", "a/b%00%FF")]
        {
            assert_eq!(decoded(encoded), bytes);
            assert_eq!(Prefix { name: Some(decoded(encoded)), ..Prefix::default() }.shown(), shown);
        }
        assert_eq!(decoded("%zz%4"), b"\x04");
        assert_eq!(Prefix::default().shown(), "all others");
    }

    #[test]
    fn little_wear_few_items_and_as_many_hits_are_in_proportion() {
        assert!(is_out_of_proportion(0.4, 0.02, 100));
        assert!(!is_out_of_proportion(0.4, 0.02, 99));
        assert!(!is_out_of_proportion(0.19, 0.0, 100));
        assert!(!is_out_of_proportion(0.4, 0.11, 100));
    }
}
